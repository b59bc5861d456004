"""What rules find on layers: their checks evaluated, each with the values that would hold, and how severe it is."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from convlint.facts.layer import OWN_NAMES, LayerFacts
from convlint.facts.target import assumptions
from convlint.model.errors import RuleError
from convlint.model.estimates import Basis
from convlint.model.layer import OF_STEPS, ConvLayer, Dtype, Loss, with_output
from convlint.model.location import Location
from convlint.model.network import Edge
from convlint.model.report import Identity, Scalar, Severity
from convlint.model.runtime import VERSIONS, Runtime, Version
from convlint.model.text import Blank, Text, joined
from convlint.rulebook.book import builtin_folder
from convlint.rulebook.expr import UNKNOWN, Expr, ExprError, UnknownValue
from convlint.rulebook.rule import Case, Rule

_FIELDS = frozenset(ConvLayer.__struct_fields__)
_SHAPELESS = frozenset(
    ("N", "C", "K", "groups", "dtype", "layout", "bias", "copies_input", "unfolded")
)  # leave the output's size alone
_CHANNELS_ALONE = frozenset(("C", "K"))
# P, Q and Z are always the computed ones; what a fix changes is what the spec states
_DECLARED = {"P": "declared_P", "Q": "declared_Q", "Z": "declared_Z"}


def edge_after(edge: Edge, before: Sequence[ConvLayer], after: Sequence[ConvLayer]) -> Edge:
    """The edge once its layers have changed; its C follows that of the consumer only if they were equal before."""
    old, new = before[edge.consumer].C, after[edge.consumer].C
    return replace(edge, C=new) if edge.C is not None and edge.C == old != new else edge


def with_fix(layer: ConvLayer, changes: Mapping[str, Scalar]) -> ConvLayer:
    """The layer after `changes` to its fields (those of the runtime are not its own)."""
    if _CHANNELS_ALONE.issuperset(changes):
        return replace(layer, **changes) if changes else layer
    values: dict[str, object] = {}
    for name, value in sorted(changes.items(), reverse=True):  # PadH_end before PadH
        if name in _DECLARED:
            values[_DECLARED[name]] = value
        elif name == "dtype":
            values[name] = Dtype(str(value))
        elif name in _FIELDS:
            values[name] = value
            if name in ("PadD", "PadH", "PadW") and getattr(layer, name) == getattr(layer, name + "_end"):
                values.setdefault(name + "_end", value)
    if not values:
        return layer
    fixed = replace(layer, **values)
    return fixed if _SHAPELESS.issuperset(values) else with_output(fixed)


def with_settings(runtime: Runtime, changes: Mapping[str, Scalar]) -> Runtime:
    """The runtime after those of `changes` that start with `runtime.`."""
    values = {name.removeprefix("runtime."): value for name, value in changes.items() if name.startswith("runtime.")}
    versions = {name: Version(str(values[name])) for name in VERSIONS if name in values}
    return replace(runtime, **{**values, **versions}) if values else runtime


# What no file of the network's states: it follows from other layers, stands in code, or is what is installed.
NOT_WRITTEN = frozenset(("copies_input", "unfolded", "runtime.framework_version", "runtime.cudnn"))
_WORDS = {"dtype": tuple(dtype.value for dtype in Dtype), "layout": ("NCHW", "NHWC", "auto")}
_MAX_SIZE = 2**31


def is_size(name: str, value: Any) -> bool:
    """Whether `new_value` returns `value` as it is, which is so for nearly every value of a fix."""
    return type(value) is int and 0 <= value <= _MAX_SIZE and name not in _WORDS


def new_value(name: str, value: Any) -> Scalar | None:
    """`value` for the field `name`, or None where it is larger than any layer's may be.

    0 stands for "there is none". Raises ExprError where the rule itself is wrong, UnknownValue for UNKNOWN.
    """
    if value is UNKNOWN:
        bool(value)
    if name in _WORDS and value not in _WORDS[name]:
        raise ExprError(f"sets {name} to {value!r}, which is not one of {', '.join(_WORDS[name])}")
    if "." in name or isinstance(value, bool | str):
        result: Scalar = value
        return result
    if value < 0:
        raise ExprError(f"sets {name} to {value}, which no layer can have")
    if value > _MAX_SIZE:
        return None
    if value != int(value):
        raise ExprError(f"sets {name} to {value}, which is no whole number")
    return int(value)


_SHAPING = frozenset(("groups", "C", "K"))
_HARMLESS = frozenset(("dtype", "layout", "N"))
_CHANNELS = _HARMLESS | {"C", "K"}  # one group divides any of them, and they leave the output's size alone


def impossible(changes: Mapping[str, Scalar], layer: ConvLayer) -> str | None:
    """Why these `changes` make a possible layer impossible; None where they do not."""
    if changes.keys() <= _HARMLESS or (layer.groups == 1 and changes.keys() <= _CHANNELS):
        return None
    after = with_fix(layer, changes)
    set_to = ", ".join(f"{name}={value}" for name, value in changes.items())
    if _SHAPING & changes.keys() and _divides(layer) and not _divides(after):
        return f"sets {set_to}, but groups={after.groups} must divide C={after.C} and K={after.K}"
    if _has_output(layer) and not _has_output(after):
        return f"sets {set_to}, which leaves no output"
    return None


def _has_output(layer: ConvLayer) -> bool:
    return all(size is None or size > 0 for size in (layer.Z, layer.P, layer.Q))


def _divides(layer: ConvLayer) -> bool:
    return all(size is None or (layer.groups > 0 and size % layer.groups == 0) for size in (layer.C, layer.K))


# in a joined message what is only known once all layers were checked
COUNT, LAYERS = Blank("count"), Blank("layers")
_BLANKS = {"count": COUNT, "layers": LAYERS}


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


class Violation(Struct, frozen=True):
    """A rule that does not hold, and where: all that decides whether a more specific one silences it."""

    rule: Rule
    case: Case
    places: tuple[str, ...]

    def flaw(self, values: LayerFacts, *, batches: bool = True) -> Flaw:
        """The flaw, with the values of its fix and its texts; `values` are the facts of the layer.

        Without `batches`, a fix that sets N alone sets nothing. Raises UnknownValue.
        """
        rule, case, fix, code = self.rule, self.case, self.case.fix, self.rule.info.code
        setting = None if not batches and fix is not None and [name for name, _ in fix.set] == ["N"] else fix
        stated: dict[str, Scalar] = {}  # what the fix sets, whatever the layer is
        new: dict[str, Scalar] = {}
        other: dict[str, Scalar] = {}
        if setting is not None and setting.set:
            stated = _evaluated(setting.set, rule, values)
            new = _possible(_changes(stated, values), rule, values)
        if setting is not None and setting.other:
            other = {name: value for name, value in _evaluated(setting.other, rule, values).items() if value}
            other = _possible(_changes(other, values), rule, values)
        if other and (not new or _distance(other, values) < _distance(new, values)):
            new, other = other, new  # the nearer good value is the one to set
        join = rule.join is not None and (rule.join.when is None or rule.join.when.holds(values))
        return Flaw(
            rule=rule,
            case=case,
            places=self.places,
            message=case.message.render(values, code=code) + _assumed(rule, values),
            describe="" if fix is None else fix.describe.render(values, stated, code=code),
            set=new,
            other=other,
            join=join,
            join_message=rule.join.message.render(values, _BLANKS, code=code) if join and rule.join else "",
        )


def _assumed(rule: Rule, values: LayerFacts) -> str:
    """The defaults that a rule on the network assumes for settings that were left out, to end its message with."""
    words = assumptions(values.context.runtime, rule.names()) if rule.scope == "network" else []
    return Text(" ({effect})", effect=joined(Text("; "), words)) if words else ""


def places_of(case: Case, values: LayerFacts) -> tuple[str, ...]:
    """The fields that a case points at, best first."""
    return tuple([name for name, expr in case.at if expr is None or expr.holds(values)])


def holds(expr: Expr | None, values: LayerFacts) -> bool:
    """Whether there is an `expr`, and it is known to be true."""
    return expr is not None and expr.holds(values)


class Price(Struct, frozen=True):
    """What a hit costs, as `Finding` has it, and the change that its fix makes alone; in us, None: no price."""

    lost_us: float | None = None
    alone_us: float | None = None
    capacity_us: float | None = None
    change_us: float | None = None
    advised: bool = False
    pays_with: tuple[str, ...] = ()
    basis: Basis | None = None
    lost_step_us: float | None = None  # of the whole step: of a rule on that, and of a setting of the network


UNPRICED = Price()


def added(parts: Sequence[float | None]) -> float | None:
    """The sum; None where a part is unknown."""
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


class Hit(Struct, frozen=True):
    """A flaw where it was found: one layer, the network (no index), or all the layers that share it."""

    flaw: Flaw
    indices: tuple[int, ...]  # of the network's layers
    names: tuple[str, ...]
    location: Location
    message: str
    sets: tuple[Mapping[str, Scalar], ...]  # the fix for each index
    other: Mapping[str, Scalar]
    severity: Severity  # as far as it is decided
    number: int  # which hit of its target it is, kept by its copies: what is noted of a hit goes by it
    identities: tuple[Identity, ...] = ()  # one for each index
    price: Price = UNPRICED
    emerged: bool = False  # stands only once others are mended
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

        A finding on the network itself is about memory, and gets no plan for the time of an image.
        """
        if not self.indices:
            return False
        if self.flaw.set:
            return len(self.flaw.set) == 1 and "N" in self.flaw.set
        spec = self.flaw.case.fix
        return spec is not None and {name for name, _ in spec.set} == {"N"}


def _evaluated(pairs: Iterable[tuple[str, Expr]], rule: Rule, values: LayerFacts) -> dict[str, Scalar]:
    """The new values of a fix; built-in rules leave out negative sizes, those of a layer that fits nothing."""
    new_values = [(name, expr.evaluate(values)) for name, expr in pairs]
    if all(is_size(name, value) for name, value in new_values):
        return dict(new_values)
    if any(_is_negative(name, value) for name, value in new_values) and _is_ours(rule):
        new_values = [(name, value) for name, value in new_values if not _is_negative(name, value)]
    changes = ((name, new_value(name, value)) for name, value in new_values)
    return {name: value for name, value in changes if value is not None}


def _is_negative(name: str, value: Any) -> bool:
    return isinstance(value, int | float) and value < 0 and "." not in name


def _is_ours(rule: Rule) -> bool:
    return rule.path.startswith(builtin_folder())


def _changes(new: Mapping[str, Scalar], values: LayerFacts) -> dict[str, Scalar]:
    """Only what differs from the layer's present value; 0 stands for "there is none"."""
    if not new:
        return {}
    changed = {
        name: value
        for name, value in new.items()
        if (name.startswith(("Pad", "OutPad")) or value is False or value != 0)
        and ("." in name or not _same(values[_DECLARED.get(name, name)], value))
    }
    for name in new:  # one side of a padding alone would read as both
        if name.startswith("Pad") and (name.removesuffix("_end") in changed or f"{name}_end" in changed):
            changed[name] = new[name]
    return changed


def _possible(changes: dict[str, Scalar], rule: Rule, values: LayerFacts) -> dict[str, Scalar]:
    """The changes where a layer can have them; else nothing for a built-in rule, and ExprError for others."""
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


class Evaluation(Struct, frozen=True, kw_only=True):
    """What the rules say of one layer; `applicable` are the codes whose `when` held and whose `check` is known."""

    flaws: tuple[Flaw, ...]
    skipped: tuple[tuple[str, tuple[str, ...]], ...]  # code, what it needs
    applicable: tuple[str, ...]


class Evaluator:
    """A fixed list of rules, in order."""

    def __init__(self, rules: Sequence[Rule], *, batches: bool = True) -> None:
        """Without `batches`, a fix that sets another batch does not name it."""
        self.rules, self._batches = rules, batches
        # What is asked for at every layer: the rule, its function, whether it is about an edge, its code.
        self._decisions = [(rule, rule.decision.decide, rule.scope == "edge", rule.info.code) for rule in rules]
        self._names: dict[str, frozenset[str]] = {}  # by code; asked for at every layer that lacks something

    @cached_property
    def tells_apart(self) -> bool:
        """Whether a rule reads a layer's own name, so that layers of equal fields may have different flaws."""
        return any(rule.scope == "layer" and rule.names_anywhere() & OWN_NAMES for rule in self.rules)

    def evaluate(self, facts: LayerFacts, *, connected: bool, exists: bool = True) -> Evaluation:
        """Evaluates all rules on one layer; flaws of general rules are left out where a specific one has the same.

        For a hypothetical layer, which does not `exists`, a rule that cannot be evaluated is passed over.
        """
        violations: list[Violation] = []
        flaws: list[Flaw] = []
        skipped: list[tuple[str, tuple[str, ...]]] = []
        applicable: list[str] = []
        for rule, decide, of_edge, code in self._decisions:
            if of_edge and not connected:
                continue
            try:
                try:
                    right = decide(facts)
                except (ArithmeticError, ValueError):
                    right = rule.decision.one_by_one(facts)
                if right is None:  # `when` does not hold
                    continue
                if not right:  # raises where it is unknown: the rule then applies to nothing here
                    case = _case(rule, facts)
                    violation = Violation(rule, case, places_of(case, facts))
                    if not _is_silenced(violation, violations):
                        flaw = violation.flaw(facts, batches=self._batches)
                        if facts.layer.unfolded and ("C" in flaw.set or "C" in flaw.other):
                            continue  # its C is the product's, which no width alone decides
                        flaws.append(flaw)
                    violations.append(violation)
                applicable.append(code)
            except UnknownValue:
                names = self._names.get(code) or self._names.setdefault(code, rule.names())
                skipped.append((code, facts.needs(names)))
            except ExprError as error:
                if not exists:
                    continue
                line, column = _place(rule, error)
                raise RuleError(error.message, path=rule.path, line=line, column=column) from error
        spoken = tuple([flaw for flaw in flaws if not _is_silenced(flaw, violations)])
        return Evaluation(flaws=spoken, skipped=tuple(skipped), applicable=tuple(applicable))

    def broken(self, facts: LayerFacts, codes: Collection[str] | None = None) -> list[Violation]:
        """The rules that a hypothetical layer breaks, silenced or not.

        Rules that cannot be checked are left out; with `codes`, only those rules are asked.
        """
        violations = []
        for rule in self.rules if codes is None else [rule for rule in self.rules if rule.info.code in codes]:
            try:
                right = rule.decision.evaluate(facts)
                if right is not None and not right:
                    case = _case(rule, facts)
                    violations.append(Violation(rule, case, places_of(case, facts)))
            except (UnknownValue, ExprError):
                continue
        return violations


_SIZES = frozenset(("N", "C", "K", "groups"))


def _is_silenced(flaw: Violation | Flaw, violations: Sequence[Violation]) -> bool:
    yields_to = flaw.rule.yields_to
    specific = [violation for violation in violations if violation.rule.info.code in yields_to] if yields_to else ()
    return any(_are_one(violation, flaw) for violation in specific) if specific else False


def _are_one(specific: Violation, general: Violation | Flaw) -> bool:
    """Whether both flaws are the same; two that point at sizes are only where they share a size."""
    sizes, others = _SIZES.intersection(specific.places), _SIZES.intersection(general.places)
    return not sizes or not others or not sizes.isdisjoint(others)


def _place(rule: Rule, error: ExprError) -> tuple[int | None, int | None]:
    """Where in its file a rule is wrong: at its fix for what that sets, else at what it checks."""
    keys = ("fix", "variants") if error.message.startswith("sets ") else ("check",)
    return next((rule.lines[key] for key in keys if key in rule.lines), (None, None))


def _case(rule: Rule, facts: LayerFacts) -> Case:
    return next((case for case in rule.cases[:-1] if holds(case.when, facts)), rule.cases[-1])


# Severity by price: a large loss warns by itself. Where many small losses make up most of what the advice saves, the
# largest of them warn too, so that a network with much to gain never has infos alone.
WARNING_SHARE = 0.01  # of the network's time: what loses that much is a warning
STEP_SHARE = 0.05  # the same of the whole step, for rules that speak of it
SAVING_SHARE = 0.05  # where all advice saves that much,
SAID_SHARE = 0.5  # warnings have to come to this share of what it saves


def stated(flaw: Flaw, layer: ConvLayer | None = None) -> Severity:
    """The severity that the rule states for this case, before its price is known.

    A priced rule judges what runs. It is no more than info where the dtype was only read from storage, or where it asks
    for another dtype for a module, around which autocast may stand.
    """
    severity = flaw.case.severity
    if layer is None or severity != "warning" or flaw.rule.loss == "none":
        return severity
    assumed = layer.dtype_source == "storage" or (layer.dtype_source == "module" and "dtype" in flaw.set)
    return "info" if assumed else severity


def graded(hits: Sequence[Hit], network_us: float) -> list[Hit]:
    """The joined hits with their severities; `network_us` is what all layers take."""
    advised = [hit for hit in hits if _is_weighed(hit) and hit.price.advised]
    advised.sort(key=lambda hit: -(hit.price.lost_us or 0.0))
    saved_us = sum(hit.price.lost_us or 0.0 for hit in advised)
    warnings: set[int] = set()  # by number
    said_us = 0.0
    for hit in advised:
        lost_us = hit.price.lost_us or 0.0
        wanting = saved_us >= SAVING_SHARE * network_us and said_us < SAID_SHARE * saved_us
        if lost_us <= 0 or not (lost_us >= WARNING_SHARE * network_us or wanting):
            break
        warnings.add(hit.number)
        said_us += lost_us
    return [
        replace(hit, severity="warning" if hit.number in warnings else "info") if _is_weighed(hit) else hit
        for hit in hits
    ]


def priced_by_step(
    hits: Sequence[Hit], lost_us: Mapping[Loss, float], step_us: float | None, beside_us: Mapping[int, float],
    most_us: float | None,
) -> list[Hit]:  # fmt: skip
    """The hits with the time lost of the whole step, where they concern more than convolutions.

    Rules on the step warn by that loss. `beside_us` is what a setting saves in other operations, by the number of a
    hit: norms and activations of 16 bits move half of the bytes, for example. Wider layers cost time there (negative),
    and do not warn where the step gets no shorter. Less work for the GPU shortens the step by `most_us` at most
    (None: no host); beyond that the GPU waits for the host.
    """
    result = []
    most_us = math.inf if most_us is None else most_us
    for hit in hits:
        lost = lost_us.get(hit.rule.loss) if hit.rule.loss in OF_STEPS else None
        if lost is not None and step_us and hit.severity != "error":
            severity: Severity = "warning" if lost >= STEP_SHARE * step_us else "info"
            hit = replace(hit, severity=severity, price=replace(hit.price, lost_step_us=lost))
        elif hit.number in beside_us:
            saved_us = (hit.price.lost_us or 0.0) + beside_us[hit.number]
            if hit.severity == "warning" and saved_us <= 0:
                hit = replace(hit, severity="info")
            hit = replace(hit, price=replace(hit.price, lost_step_us=min(max(0.0, saved_us), most_us)))
        elif (hit.price.lost_us or 0.0) > most_us:
            hit = replace(hit, price=replace(hit.price, lost_step_us=most_us))
        result.append(hit)
    return result


def saving_at_most(hits: Iterable[Hit], all_us: float) -> list[Hit]:
    """The hits, of whose settings none saves more of the step than `all_us`, what all advice saves together.

    The host starts more operations under autocast, so that the step shrinks by less than the GPU's time.
    """
    all_us = max(0.0, all_us)
    return [
        replace(hit, price=replace(hit.price, lost_step_us=all_us))
        if hit.rule.loss not in OF_STEPS and (hit.price.lost_step_us or 0.0) > all_us
        else hit
        for hit in hits
    ]


def _is_weighed(hit: Hit) -> bool:
    """Whether its price decides: it is no error, and its rule has a price."""
    return hit.severity != "error" and bool(hit.indices) and hit.rule.loss != "none"
