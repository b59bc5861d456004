"""A rule's examples as parts of specs: what it finds in them, and the same with its fix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from convlint.cli.commands.rules import flow
from convlint.files.located_yaml import Value, parse, read_text
from convlint.linting.rule_examples import example_findings
from convlint.linting.source_examples import is_of_source
from convlint.report import Finding, Scalar
from convlint.rulebook.rule import Rule

_OF_SPEC = ("gpu", "mode", "runtime", "defaults", "layers")
_AXES = (("kernel_size", ("R", "S")), ("stride", ("U", "V")), ("dilation", ("DilH", "DilW")))


class Example(Struct, frozen=True, kw_only=True):
    """A failing example: what is given and what the rule finds there; of suppressions, only what it says."""

    given: Value
    message: str
    finding: Finding | None
    of_source: bool

    @property
    def mended(self) -> Value | None:
        """The same with the fix; None where that sets nothing that a spec could hold."""
        if self.finding is None or self.finding.fix is None or self.of_source or not self.finding.fix.set:
            return None
        return _mended(self.given, self.finding.fix.set, {self.finding.layer, *self.finding.layers})


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
        return Example(given=given, message=str(item["message"].data), finding=None, of_source=False)
    finding = example_findings(rule, given)[0][0]
    return Example(given=given, message=finding.message, finding=finding, of_source=is_of_source(given))


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
    """The layer with other values; one number for both axes gives way to two where one of these is set."""
    data = dict(item.data)
    for both, axes in _AXES:
        if both in data and not fields.keys().isdisjoint(axes):
            data |= dict.fromkeys(axes, data.pop(both))
    if "padding" in data and data["padding"].plain and any(field.startswith("Pad") for field in fields):
        data |= dict.fromkeys(("PadH", "PadW"), data.pop("padding"))
    return Value({**data, **fields}, item.span)


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
