"""What rules find: flaws, and where they were hit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct, field

from convlint.engine.new_values import impossible, is_size, new_value
from convlint.estimate.basis import Basis
from convlint.facts.defaults import assumptions
from convlint.facts.layer import LayerFacts
from convlint.files.languages.saying import say
from convlint.model.location import Location
from convlint.report import Identity, Scalar, Severity
from convlint.rulebook.expr import Expr, ExprError, UnknownValue
from convlint.rulebook.folders import builtin_folder
from convlint.rulebook.rule import Case, Rule

# stand in a joined message for what is only known once all layers were checked
COUNT, LAYERS = "\x00count\x00", "\x00layers\x00"
_STAND_INS = {"count": COUNT, "layers": LAYERS}


class Flaw(Struct, frozen=True, kw_only=True):
    """A rule that does not hold for some values: what it says, and what its fix would set. Knows no layer."""

    rule: Rule
    case: Case
    places: tuple[str, ...]  # the fields to point at, best first
    message: str
    describe: str = ""
    set: Mapping[str, Scalar] = field(default_factory=dict)
    other: Mapping[str, Scalar] = field(default_factory=dict)
    join: bool = False
    join_message: str = ""
    side: str = ""  # C or K, where that is a number which other layers share:
    group: int | None = None  # the group of channels that would have to change,
    part: int = 0  # which part of the axis that is, and
    width: int = 0  # how wide it should be
    refused: bool = False  # no value that its fix could set is one to which no rule objects
    composed: bool = False  # C is the sum of such numbers, and none of them can be told to be the one at fault

    @property
    def key(self) -> tuple[str, str]:
        """The rule's code, and the side: what tells a layer's flaws apart."""
        return self.rule.info.code, self.side

    @staticmethod
    def of(rule: Rule, case: Case, values: LayerFacts) -> Flaw:
        """The flaw, its texts rendered while the values are at hand. Raises UnknownValue."""
        return Found.of(rule, case, values).worded(values)


class Found(NamedTuple):
    """A flaw without words: where a specific one silences it, none are made."""

    rule: Rule
    case: Case
    places: tuple[str, ...]
    stated: dict[str, Scalar]  # what the fix sets, whatever the layer is
    set: dict[str, Scalar]
    other: dict[str, Scalar]

    @staticmethod
    def of(rule: Rule, case: Case, values: LayerFacts) -> Found:
        """Raises UnknownValue."""
        stated: dict[str, Scalar] = {}
        other: dict[str, Scalar] = {}
        if case.fix is not None:
            stated = _evaluated(case.fix.set, rule, values)
            other = {name: value for name, value in _evaluated(case.fix.other, rule, values).items() if value}
        new = _possible(_changes(stated, values), rule, values)
        other = _possible(_changes(other, values), rule, values)
        if other and (not new or _distance(other, values) < _distance(new, values)):
            new, other = other, new  # the nearer good value is the one to set
        return Found(rule, case, places_of(case, values), stated, new, other)

    def worded(self, values: LayerFacts) -> Flaw:
        """With its texts; `values` are those that it was found with."""
        rule, case, fix = self.rule, self.case, self.case.fix
        join = rule.join is not None and (rule.join.when is None or rule.join.when.holds(values))
        return Flaw(
            rule=rule,
            case=case,
            places=self.places,
            message=case.message.render(values) + _assumed(rule, values),
            describe="" if fix is None else fix.describe.render(values, self.stated),
            set=self.set,
            other=self.other,
            join=join,
            join_message=rule.join.message.render(values, _STAND_INS) if join and rule.join else "",
        )


def _assumed(rule: Rule, values: LayerFacts) -> str:
    """What the verdict on the whole network takes for granted: settings that were left out have a default."""
    words = assumptions(values.context.runtime, rule.names()) if rule.scope == "network" else []
    return say(" ({effect})", effect=say("; ").join(words)) if words else ""


def places_of(case: Case, values: LayerFacts) -> tuple[str, ...]:
    """The fields that a case points at, best first."""
    return tuple([name for name, expr in case.at if expr is None or expr.holds(values)])


def holds(expr: Expr | None, values: LayerFacts) -> bool:
    """Whether there is an `expr`, and it is known to be true."""
    return expr is not None and expr.holds(values)


class Price(NamedTuple):
    """What a hit costs, as `Finding` has it, and the change that its fix makes alone; in us, None: no price."""

    lost_us: float | None = None
    alone_us: float | None = None
    capacity_us: float | None = None
    change_us: float | None = None
    advised: bool = False
    pays_with: tuple[str, ...] = ()
    basis: Basis | None = None


UNPRICED = Price()


class Hit(NamedTuple):
    """A flaw where it was found: one layer, the network (no index), or all the layers that share it."""

    flaw: Flaw
    indices: tuple[int, ...]  # of the network's layers
    names: tuple[str, ...]
    location: Location
    message: str
    sets: tuple[Mapping[str, Scalar], ...]  # the fix for each index
    other: Mapping[str, Scalar]
    severity: Severity  # as far as it is decided
    identities: tuple[Identity, ...] = ()  # one for each index
    price: Price = UNPRICED
    came_to_light: bool = False  # stands only once others are mended
    follows: str = ""  # of channels that several layers share: what changes with them, in words
    others: tuple[Mapping[str, Scalar], ...] = ()  # for each index, what `other` comes to there
    fired: tuple[int, ...] = ()  # of those, where the rule itself fired
    of_network: bool = False  # a setting of the network, said once of all layers that change with it
    changes_us: tuple[float, ...] = ()  # of such a setting and of `other`, what each alone adds to the network's time

    @property
    def rule(self) -> Rule:
        """The rule that was broken."""
        return self.flaw.rule

    @property
    def key(self) -> tuple[str, str]:
        """Rule and side."""
        return self.flaw.key

    @property
    def sets_batch(self) -> bool:
        """Whether its fix is another batch, which is the whole network's, or would be if one were good.

        A finding on the network itself says what its memory allows: no plan for the time of an image.
        """
        if not self.indices:
            return False
        if self.flaw.set:
            return len(self.flaw.set) == 1 and "N" in self.flaw.set
        spec = self.flaw.case.fix
        return spec is not None and {name for name, _ in spec.set} == {"N"}


def _evaluated(pairs: Iterable[tuple[str, Expr]], rule: Rule, values: LayerFacts) -> dict[str, Scalar]:
    """The new values; of ours, where a layer that fits nothing leaves a negative size, those that are none."""
    found = [(name, expr.evaluate(values)) for name, expr in pairs]
    if all(is_size(name, value) for name, value in found):
        return dict(found)
    if any(_is_negative(name, value) for name, value in found) and _is_ours(rule):
        found = [(name, value) for name, value in found if not _is_negative(name, value)]
    changes = ((name, new_value(name, value)) for name, value in found)
    return {name: value for name, value in changes if value is not None}


def _is_negative(name: str, value: Any) -> bool:
    return isinstance(value, int | float) and value < 0 and "." not in name


def _is_ours(rule: Rule) -> bool:
    return rule.path.startswith(builtin_folder())


# P, Q and Z are always the computed ones; what a fix changes is what the spec states
_PRESENT = {"P": "declared_P", "Q": "declared_Q", "Z": "declared_Z"}


def _changes(new: Mapping[str, Scalar], values: LayerFacts) -> dict[str, Scalar]:
    """Only what differs from the layer's present value; 0 stands for "there is none"."""
    if not new:
        return {}
    changed = {
        name: value
        for name, value in new.items()
        if (name.startswith(("Pad", "OutPad")) or value is False or value != 0)
        and ("." in name or not _same(values[_PRESENT.get(name, name)], value))
    }
    for name in new:  # one side of a padding alone would read as both
        if name.startswith("Pad") and (name.removesuffix("_end") in changed or f"{name}_end" in changed):
            changed[name] = new[name]
    return changed


def _possible(changes: dict[str, Scalar], rule: Rule, values: LayerFacts) -> dict[str, Scalar]:
    """What a layer can be; nothing where a rule of ours, about a layer that fits nothing, would ask for more."""
    problem = impossible(changes, values.layer) if changes else None
    if problem is None:
        return changes
    if _is_ours(rule):
        return {}
    raise ExprError(problem)


def _distance(changes: Mapping[str, Scalar], values: LayerFacts) -> float:
    """How far the sizes move, relative to what they are."""
    return sum(
        float(abs(value - values[name]) / max(1, abs(values[name])))
        for name, value in changes.items()
        if isinstance(value, int | float) and "." not in name
    )


def _same(old: Any, new: Scalar) -> bool:
    try:
        return bool(old == new)
    except UnknownValue:
        return False
