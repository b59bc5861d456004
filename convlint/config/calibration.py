"""Calibration files, which `[tool.convlint] calibration` names: writing them, and reading them as untrusted input.

TOML, as configs are: people can read it, compare two of them, and add comments; every defect has a line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from json import dumps
from typing import Any, Final

from convlint.config.toml_source import Spot, choice_of, date_of, kind_of, number_of, read_toml, table_of, text_of
from convlint.files.safe import clean
from convlint.gpus.gpu import KINDS, Calibration, CalibrationFile, CalibrationOrigin, Constant, Factors, Group, load_gpu
from convlint.model.errors import UsageError, shown, suggestion
from convlint.model.layer import PASSES, Dtype
from convlint.model.runtime import Version

FORMAT: Final = 1
_VERSIONS: Final = ("compute_capability", "convlint", "cudnn", "cuda", "framework_version")
# Keys of the file, and whether each must be there.
_TOP: Final[Mapping[str, bool]] = {
    "format": True, "gpu": True, "device": True, "compute_capability": True, "convlint": True, "cudnn": False,
    "cuda": False, "framework": False, "framework_version": False, "date": False, "rows": True, "error_before": True,
    "error_after": True, "constants": False, "groups": False,
}  # fmt: skip
_CONSTANT: Final[Mapping[str, bool]] = {"value": True, "rows": True, "spread": True}
_GROUP: Final[Mapping[str, bool]] = {
    "kind": True, "dtype": True, "pass": True, "rows": True, "spread": True, "factor": False,
}  # fmt: skip
_FACTOR: Final = (0.05, 20.0)
_LAUNCH_US: Final = (-1000.0, 1000.0)
_SHARE: Final = (0.0, 1e6)  # spreads and errors
_MOST_ROWS: Final = 10**9
_HEAD: Final = """\
# What timings on this GPU say of convlint's estimates; `calibration` in [tool.convlint] names this file.
# Clocks and bandwidth are factors on the model's own, launch_us is added to every pass, factors of groups are on times.
# Spreads and errors are medians, as shares: 0.08 is 8 %. What is not here, the timings did not tell.
"""


def read_calibration(path: str, shown_path: str) -> CalibrationFile:
    """The calibration in the file at `path`. Raises UsageError with file, line and column for whatever is wrong."""
    source = read_toml(path, shown_path)
    top = Spot(source, ())
    values = _keys(source.values, _TOP, top)
    if values["format"] != FORMAT or isinstance(values["format"], bool):
        top.below("format").fail(f"must be {FORMAT}: this convlint reads no other form")
    readers: dict[str, Callable[[Any, Spot], Any]] = {
        "device": _text, "framework": _text, "date": lambda value, at: date_of(value, at, "2026-01-31").isoformat(),
    }  # fmt: skip
    readers |= dict.fromkeys(_VERSIONS, _version)
    origin = CalibrationOrigin(
        **{name: read(values[name], top.below(name)) for name, read in readers.items() if name in values}
    )
    return CalibrationFile(path=shown_path, origin=origin, calibration=_calibration(values, top, origin))


def calibration_text(origin: CalibrationOrigin, calibration: Calibration) -> str:
    """The file of a calibration, as `read_calibration` reads it."""
    lines = [f"format = {FORMAT}", f"gpu = {_quoted(calibration.gpu)}"]
    for name in ("device", "compute_capability", "convlint", "cudnn", "cuda", "framework", "framework_version"):
        value = getattr(origin, name)
        if value is not None:
            lines.append(f"{name} = {_quoted(str(value))}")
    if origin.date is not None:
        lines.append(f"date = {date.fromisoformat(origin.date).isoformat()}")
    lines.append(f"rows = {calibration.rows}")
    lines += [f"{name} = {_figure(getattr(calibration, name))}" for name in ("error_before", "error_after")]
    factors = {name: getattr(calibration, name) for name in Factors.__struct_fields__}
    constants = {name: constant for name, constant in factors.items() if constant is not None}
    lines += ["", "[constants]"] if constants else []
    for name, constant in constants.items():
        value = f"value = {_figure(constant.value)}, rows = {constant.rows}, spread = {_figure(constant.spread)}"
        lines.append(f"{name} = {{ {value} }}")
    for group in calibration.groups:
        lines += ["", "[[groups]]", f"kind = {_quoted(group.kind)}", f"dtype = {_quoted(group.dtype.value)}"]
        lines += [f"pass = {_quoted(group.which)}", f"rows = {group.rows}", f"spread = {_figure(group.spread)}"]
        lines += [] if group.factor is None else [f"factor = {_figure(group.factor)}"]
    return _HEAD + "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return dumps(clean(text), ensure_ascii=False)


def _figure(value: float) -> str:
    return f"{value:.5g}"


def _calibration(values: Mapping[str, Any], top: Spot, origin: CalibrationOrigin) -> Calibration:
    gpu = _gpu(values["gpu"], top.below("gpu"), origin.compute_capability, top.below("compute_capability"))
    rows = _rows(values["rows"], top.below("rows"))
    errors: dict[str, Any] = {
        name: number_of(values[name], top.below(name), *_SHARE) for name in ("error_before", "error_after")
    }
    at = top.below("constants")
    table = _keys(values.get("constants", {}), dict.fromkeys(Factors.__struct_fields__, False), at)
    constants: dict[str, Any] = {name: _constant(name, value, at.below(name), rows) for name, value in table.items()}
    groups = _groups(values.get("groups", []), top.below("groups"), rows)
    return Calibration(gpu=gpu, rows=rows, groups=groups, **errors, **constants)


def _gpu(value: Any, at: Spot, capability: Version, place: Spot) -> str:
    name = text_of(value, at)
    try:
        gpu = load_gpu(name)
    except UsageError as error:
        at.fail(str(error))
    if gpu.compute_capability != capability:
        place.fail(f"{gpu.id} has compute capability {gpu.compute_capability}, not {capability}")
    return gpu.id


def _constant(name: str, value: Any, at: Spot, most: int) -> Constant:
    table = _keys(value, _CONSTANT, at)
    bounds = _LAUNCH_US if name == "launch_us" else _FACTOR
    return Constant(
        number_of(table["value"], at.below("value"), *bounds),
        _rows(table["rows"], at.below("rows"), most),
        number_of(table["spread"], at.below("spread"), *_SHARE),
    )


def _groups(value: Any, at: Spot, most: int) -> tuple[Group, ...]:
    if not isinstance(value, list):
        at.fail("must be tables: [[groups]]")
    groups: dict[tuple[str, str, str], Group] = {}
    for number, item in enumerate(value):
        here = at.below(number)
        table = _keys(item, _GROUP, here)
        group = Group(
            kind=choice_of(table["kind"], here.below("kind"), KINDS),
            dtype=Dtype(choice_of(table["dtype"], here.below("dtype"), [dtype.value for dtype in Dtype])),
            which=choice_of(table["pass"], here.below("pass"), PASSES),
            rows=_rows(table["rows"], here.below("rows"), most),
            spread=number_of(table["spread"], here.below("spread"), *_SHARE),
            factor=number_of(table["factor"], here.below("factor"), *_FACTOR) if "factor" in table else None,
        )
        key = group.kind, group.dtype.value, group.which
        if key in groups:  # which of the two factors holds, nobody could tell
            here.fail(f"{' '.join(key)} is there twice")
        groups[key] = group
    return tuple(groups.values())


def _keys(value: Any, known: Mapping[str, bool], at: Spot) -> dict[str, Any]:
    """A table with no key but the `known` ones, and all of those that must be there."""
    table = table_of(value, at)
    for key in table:
        if key not in known:
            near = suggestion(key, known) or f"; known are {', '.join(known)}"
            at.below(key).fail(f"unknown key {shown(key)!r}{near}")
    missing = [key for key, needed in known.items() if needed and key not in table]
    if missing:
        at.fail(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    return table


def _text(value: Any, at: Spot) -> str:
    return clean(text_of(value, at))


def _version(value: Any, at: Spot) -> Version:
    try:
        return Version(_text(value, at))
    except ValueError:
        at.fail('must be a version such as "9.1"')


def _rows(value: Any, at: Spot, most: int = _MOST_ROWS) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        at.fail(f"must be a whole number, not {kind_of(value)}")
    if not 1 <= value <= most:
        at.fail(f"must be from 1 to {most:,}")
    return value
