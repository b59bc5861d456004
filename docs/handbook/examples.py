"""A rule's examples as parts of specs: what it finds in them, and the same with its fix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from convlint.cli.commands.rules import flow
from convlint.files.located_yaml import Value, parse, read_text
from convlint.mend.examples import example_findings, is_of_source
from convlint.model.report import Finding, Scalar
from convlint.rulebook.rule import Rule

_OF_SPEC = ("gpu", "mode", "runtime", "defaults", "layers")
# one key for all axes: depth, height, width
_AXES = {
    "kernel_size": ("T", "R", "S"),
    "stride": ("StrideD", "U", "V"),
    "dilation": ("DilD", "DilH", "DilW"),
    "padding": ("PadD", "PadH", "PadW"),
    "output_padding": ("OutPadD", "OutPadH", "OutPadW"),
}


class Example(Struct, frozen=True, kw_only=True):
    """A failing example: what is given and what the rule finds there; of suppressions, only what it says.

    `mended` is the same with the fix; None where that sets nothing that a spec could hold, or is but a first step.
    """

    given: Value
    message: str
    finding: Finding | None = None
    of_source: bool = False
    mended: Value | None = None


def document(rule: Rule) -> Mapping[str, Value]:
    """The keys of a rule's file."""
    parsed = parse(read_text(rule.path))
    assert parsed is not None
    keys: Mapping[str, Value] = parsed.data
    return keys


def failing(rule: Rule) -> list[Example]:
    """All failing examples, in the order of the file."""
    return [_example(rule, item.data) for item in document(rule)["examples"].data["fail"].data]


def _example(rule: Rule, item: Mapping[str, Value]) -> Example:
    given = item["given"]
    if rule.scope == "suppression":
        return Example(given=given, message=str(item["message"].data))
    finding = example_findings(rule, given)[0][0]
    if is_of_source(given):
        return Example(given=given, message=finding.message, finding=finding, of_source=True)
    mended = None
    if finding.fix is not None and finding.fix.set:
        mended = _mended(given, finding.fix.set, {finding.layer, *finding.layers})
        mended = None if example_findings(rule, mended)[0] else mended
    return Example(given=given, message=finding.message, finding=finding, mended=mended)


def shown(rule: Rule) -> Example:
    """The example that explains best: one of a spec before one of source, one that is mended before one that is not."""
    return min(failing(rule), key=lambda each: (each.of_source, each.mended is None))


def passing(rule: Rule, most: int) -> list[Value]:
    """The first few examples of specs that pass; of source, where there are no others."""
    items = list(document(rule)["examples"].data["pass"].data)
    return ([item for item in items if not is_of_source(item)] or items)[:most]


def plain(value: Scalar) -> str:
    """A value as YAML has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _mended(given: Value, changes: Mapping[str, Scalar], hit: set[str | None]) -> Value:
    fields = {key: Value(plain(value), given.span, plain=True) for key, value in changes.items()}
    runtime = {key.partition(".")[2]: fields.pop(key) for key in list(fields) if key.startswith("runtime.")}
    data = dict(given.data)
    if runtime:
        before = data["runtime"].data if "runtime" in data else {}
        data["runtime"] = Value({**before, **runtime}, given.span)
    if fields and "layers" in data:
        items = [_with(item, fields) if _name(item) in hit else item for item in data["layers"].data]
        data["layers"] = Value(items, given.span)
        return Value(data, given.span)
    return _with(Value(data, given.span), fields)


def _name(item: Value) -> str | None:
    return item.data["name"].data if "name" in item.data else None


def _with(item: Value, fields: Mapping[str, Value]) -> Value:
    """The layer with other values; one key for all axes gives way to one for each where one of these is set."""
    data = dict(item.data)
    for key, axes in _AXES.items():
        if key in data and not fields.keys().isdisjoint((*axes, *(f"{axis}_end" for axis in axes))):
            data |= _by_axis(data.pop(key), axes)
    return Value(_sides({**data, **fields}, item), item.span)


def _by_axis(value: Value, axes: tuple[str, str, str]) -> dict[str, Value]:
    """One number is that of height and width, a list has one for each axis, the last of them of the width."""
    several = value.data if isinstance(value.data, list) else [value, value]
    return dict(zip(axes[3 - len(several) :], several, strict=True))


def _sides(data: dict[str, Value], item: Value) -> dict[str, Value]:
    """The same with uneven padding as a spec has it, one number for each side, and with one key for output padding."""
    if out := [data.pop(axis) for axis in _AXES["output_padding"] if axis in data]:
        data["output_padding"] = out[0] if len({each.data for each in out}) == 1 else Value(out, item.span)
    ends = {key: data.pop(key) for key in list(data) if key.startswith("Pad") and key.endswith("_end")}
    begins = {f"{axis}_end": data.get(axis, Value("0", item.span, plain=True)) for axis in _AXES["padding"]}
    if all(end.data == begins[key].data for key, end in ends.items()):
        return data
    sides = [side for key in ("PadH_end", "PadW_end") for side in (begins[key], ends.get(key, begins[key]))]
    kept = {key: value for key, value in data.items() if key not in ("PadH", "PadW")}
    return kept | {"padding": Value(sides, item.span)}


def lines(given: Value) -> Iterator[str]:
    """The example as lines of a spec; of source and of suppressions, as it was read."""
    spec = {key: value for key, value in given.data.items() if key in _OF_SPEC}
    rest = {key: value for key, value in given.data.items() if key not in _OF_SPEC}
    is_layer = bool(rest) and not is_of_source(given) and "text" not in rest
    for key, value in {**spec, **({} if is_layer else rest)}.items():
        if isinstance(value.data, list):
            yield f"{key}:"
            yield from (f"  - {flow(item)}" for item in value.data)
        else:
            yield f"{key}: {flow(value)}"
    if is_layer and "layers" not in spec:
        yield "layers:"
        yield f"  - {flow(Value(rest, given.span))}"
