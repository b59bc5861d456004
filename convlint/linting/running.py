"""How inputs run, where the command line or the config says so: settings of the runtime, dtype and layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from convlint.errors import InputFault, UsageError
from convlint.files.located_yaml import Value
from convlint.model.layer import ConvLayer, Dtype, Layout
from convlint.model.location import Span
from convlint.model.network import Network
from convlint.model.runtime import Runtime

if TYPE_CHECKING:
    from convlint.config.toml_source import Spot

_NOWHERE: Span = (0, 0, 0, 0)


class Running(Struct, frozen=True, kw_only=True):
    """What somebody says of how inputs run; what is not said is left out of `settings`, or None."""

    settings: Mapping[str, Any] = {}
    dtype: Dtype | None = None
    layout: Layout | None = None


def value_of(raw: object) -> Value:
    """What a setting is given as on the command line or in TOML, as YAML would hold it."""
    if isinstance(raw, bool):
        return Value("true" if raw else "false", _NOWHERE, plain=True)
    if isinstance(raw, int | float):
        return Value(str(raw), _NOWHERE, plain=True)
    return Value(raw, _NOWHERE)


def settings_of(given: Mapping[str, Value]) -> dict[str, Any]:
    """Settings of the runtime as a spec has them. Raises InputFault for each that is none."""
    from convlint.readers.spec.reader import runtime_of

    runtime, errors = runtime_of(Value(dict(given), _NOWHERE) if given else None)
    if errors:
        raise InputFault("; ".join(error.message for error in errors))
    return {name: getattr(runtime, name) for name in runtime.spans}


def settings_in_config(entries: Mapping[str, tuple[object, Spot]]) -> dict[str, Any]:
    """Settings of the runtime as a config has them. Raises UsageError with the place of one that is none."""
    settings: dict[str, Any] = {}
    for name, (raw, at) in entries.items():
        try:
            settings |= settings_of({name: value_of(raw)})
        except InputFault as fault:
            at.fail(fault.message)
    return settings


def pairs_of(options: Iterable[str]) -> dict[str, str]:
    """`--runtime KEY=VALUE`, each key once. Raises UsageError."""
    given: dict[str, str] = {}
    for option in options:
        key, found, text = option.partition("=")
        if not found:
            raise UsageError(f"--runtime: {option!r} is not KEY=VALUE")
        if key in given:
            raise UsageError(f"--runtime: {key} is given twice")
        given[key] = text
    return given


def from_options(runtime: Sequence[str], dtype: str | None, layout: str | None) -> Running:
    """`--runtime KEY=VALUE`, `--dtype` and `--layout`. Raises UsageError that names the option."""
    from convlint.readers.spec.fields import dtype_of, layout_of

    try:
        settings = settings_of({key: Value(text, _NOWHERE, plain=True) for key, text in pairs_of(runtime).items()})
    except InputFault as fault:
        raise UsageError(f"--runtime: {fault.message}") from None
    try:
        return Running(
            settings=settings,
            dtype=None if dtype is None else dtype_of(Value(dtype, _NOWHERE)),
            layout=None if layout is None else layout_of(Value(layout, _NOWHERE)),  # type: ignore[arg-type]
        )
    except InputFault as fault:
        raise UsageError(f"--{fault.message}") from None


def as_it_runs(network: Network, asked: Running, usual: Running) -> Network:
    """The network as it will run: `asked` whatever it says itself, `usual` where it says nothing."""
    layers = tuple(_layer(layer, asked, usual) for layer in network.layers)
    said = _said(network.runtime) - ({"framework"} if network.stored else set())  # which the file was written by
    settings = {name: value for name, value in usual.settings.items() if name not in said} | dict(asked.settings)
    spans = {name: span for name, span in network.runtime.spans.items() if name not in asked.settings}
    return replace(network, layers=layers, runtime=replace(network.runtime, **settings, spans=spans))


def _said(runtime: Runtime) -> set[str]:
    """The settings that an input gives itself."""
    unsaid = Runtime()
    differing = {name for name in Runtime.__struct_fields__ if getattr(runtime, name) != getattr(unsaid, name)}
    return differing | set(runtime.spans)


def _layer(layer: ConvLayer, asked: Running, usual: Running) -> ConvLayer:
    changes: dict[str, Any] = {}
    dtype = asked.dtype
    if dtype is None and (layer.dtype is None or layer.dtype_source != "stated"):
        dtype = usual.dtype
    if dtype is not None and layer.dtype != Dtype.int8:  # what is quantized stays so
        changes |= {"dtype": dtype, "dtype_source": "stated"}
    layout = asked.layout or (usual.layout if layer.layout == "auto" else None)
    if layout is not None:
        changes["layout"] = layout
    return replace(layer, **changes) if changes else layer
