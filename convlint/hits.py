"""What rules hit before it is priced: one hit per rule and layer, joined where a whole network shares it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from convlint.expr import Expr, UnknownValue
from convlint.facts import LayerFacts, shortened
from convlint.model import Location
from convlint.report import Scalar
from convlint.rulebook import Case, Rule


# stand in a joined message for what is only known once all layers were checked
_COUNT, _LAYERS = "\x00count\x00", "\x00layers\x00"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A rule that does not hold: where, why, and what its fix would set (per layer)."""

    rule: Rule
    case: Case
    name: str  # of the layer
    indices: tuple[int, ...]  # of the network's layers; empty: the network itself
    location: Location
    message: str
    describe: str = ""
    set: tuple[Mapping[str, Scalar], ...] = ()  # one for each index
    other: Mapping[str, Scalar] = field(default_factory=dict)
    join: bool = False
    join_message: str = ""

    @staticmethod
    def of(rule: Rule, case: Case, index: int | None, values: LayerFacts, location: Location) -> Hit:
        """The hit of one layer, its texts rendered while the layer's values are at hand. Raises UnknownValue."""
        new: dict[str, Scalar] = {}
        other: dict[str, Scalar] = {}
        describe = ""
        if case.fix is not None:
            new = _evaluated(case.fix.set, values)
            other = {name: value for name, value in _evaluated(case.fix.other, values).items() if value}
            describe = case.fix.describe.render(_Over(values, new))
        join = rule.join is not None and _joins(rule.join.when, values)
        new, other = _changes(new, values), _changes(other, values)
        if other and (not new or _distance(other, values) < _distance(new, values)):
            new, other = other, new  # the nearer good value is the one to set
        return Hit(
            rule=rule,
            case=case,
            name=values.layer.name,
            indices=() if index is None else (index,),
            location=location,
            message=case.message.render(values),
            describe=describe,
            set=(new,),
            other=other,
            join=join,
            join_message=rule.join.message.render(_Over(values, {"count": _COUNT, "layers": _LAYERS}))
            if join and rule.join
            else "",
        )


class _Over(dict[str, Any]):
    """New values first, the layer's own behind them."""

    def __init__(self, values: LayerFacts, new: Mapping[str, Any]) -> None:
        super().__init__(new)
        self.values_behind = values

    def __missing__(self, name: str) -> Any:
        return self.values_behind[name]


def _joins(when: Expr | None, values: LayerFacts) -> bool:
    try:
        return when is None or bool(when.evaluate(values))
    except UnknownValue:
        return False


def _evaluated(pairs: Iterable[tuple[str, Expr]], values: LayerFacts) -> dict[str, Scalar]:
    return {name: expr.evaluate(values) for name, expr in pairs}


def _changes(new: Mapping[str, Scalar], values: LayerFacts) -> dict[str, Scalar]:
    """Only what differs from the layer's present value; 0 stands for "there is none"."""
    return {
        name: value
        for name, value in new.items()
        if not (isinstance(value, int) and value == 0 and not isinstance(value, bool) and not name.startswith("Pad"))
        and ("." in name or name not in values or not _same(values[name], value))
    }


def _distance(changes: Mapping[str, Scalar], values: LayerFacts) -> float:
    """How far the sizes move, relative to what they are."""
    return sum(abs(value - values[name]) / max(1, abs(values[name])) for name, value in changes.items() if isinstance(value, int | float))


def _same(old: Any, new: Scalar) -> bool:
    try:
        return bool(old == new)
    except UnknownValue:
        return False


def joined(hits: list[Hit], applicable: Mapping[str, int], layers: int) -> list[Hit]:
    """Hits in order; those of a rule that all its layers share (or that always joins) become one."""
    groups: dict[str, list[Hit]] = {}
    for hit in hits:
        if hit.join:
            groups.setdefault(hit.rule.info.code, []).append(hit)
    whole = {}
    for code, group in groups.items():
        join = group[0].rule.join
        assert join is not None
        shared = len(group) == applicable.get(code) and layers > 1
        if len(group) > 1 and (join.share == "any" or shared):
            whole[code] = _join(group)
    result = []
    for hit in hits:
        code = hit.rule.info.code
        if code not in whole or not hit.join:
            result.append(hit)
        elif hit is groups[code][0]:
            result.append(whole[code])
    return result


def _join(group: list[Hit]) -> Hit:
    names = shortened([hit.name for hit in group], 4)
    first = group[0]
    text = first.join_message.replace(_COUNT, str(len(group))).replace(_LAYERS, names)
    return replace(
        first,
        indices=tuple(index for hit in group for index in hit.indices),
        message=text,
        set=_one_batch([hit.set[0] for hit in group]),
        other={},
    )


def _one_batch(sets: list[Mapping[str, Scalar]]) -> tuple[Mapping[str, Scalar], ...]:
    """A network has one batch size: where each layer wants its own N, the largest serves them all."""
    if all(set(changes) == {"N"} for changes in sets):
        return ({"N": max(changes["N"] for changes in sets)},) * len(sets)  # type: ignore[type-var]
    return tuple(sets)
