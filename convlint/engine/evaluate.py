"""The layer rules evaluated on one layer's facts: which do not hold, which cannot be checked."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from convlint.engine.hits import Flaw, Found, holds, places_of
from convlint.errors import RuleError
from convlint.facts.layer import LayerFacts
from convlint.rulebook.expr import ExprError, UnknownValue
from convlint.rulebook.rule import Case, Rule
from convlint.rulebook.vocabulary import OWN_NAMES


class Evaluation(Struct, frozen=True, kw_only=True):
    """What the rules say of one layer; `applicable` are the codes whose `when` held and whose `check` is known."""

    flaws: tuple[Flaw, ...]
    skipped: tuple[tuple[str, tuple[str, ...]], ...]  # code, what it needs
    applicable: tuple[str, ...]


class Evaluator:
    """A fixed list of rules, in order."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = rules
        self._names: dict[str, frozenset[str]] = {}  # by code; asked for at every layer that lacks something
        # A rule that reads a layer's own name, wherever it does, may find something else in one of equal fields.
        self.tells_apart = any(rule.scope == "layer" and rule.names_anywhere() & OWN_NAMES for rule in rules)

    def evaluate(self, facts: LayerFacts, *, connected: bool, exists: bool = True) -> Evaluation:
        """All rules on one layer, the general ones silent where a specific one speaks.

        Of a layer that `exists` not, and is only thought of, a rule that cannot be evaluated says nothing.
        """
        found: list[Found] = []
        worded: list[Flaw | None] = []  # None: silenced by one that was found before
        skipped: list[tuple[str, tuple[str, ...]]] = []
        applicable: list[str] = []
        for rule in self.rules:
            if rule.scope == "edge" and not connected:
                continue
            try:
                right = rule.decision.evaluate(facts)
                if right is None:  # `when` does not hold
                    continue
                if not right:  # raises where it is unknown: the rule then applies to nothing here
                    flaw = Found.of(rule, _case(rule, facts), facts)
                    worded.append(None if _is_silenced(flaw, found) else flaw.worded(facts))
                    found.append(flaw)
                applicable.append(rule.info.code)
            except UnknownValue:
                code = rule.info.code
                names = self._names.get(code) or self._names.setdefault(code, rule.names())
                skipped.append((code, facts.needs(names)))
            except ExprError as error:
                if not exists:
                    continue
                line, column = _place(rule, error)
                raise RuleError(error.message, path=rule.path, line=line, column=column) from error
        flaws = tuple([flaw for flaw in worded if flaw is not None and not _is_silenced(flaw, found)])
        return Evaluation(flaws=flaws, skipped=tuple(skipped), applicable=tuple(applicable))

    def broken(self, facts: LayerFacts) -> list[tuple[Rule, Case, tuple[str, ...]]]:
        """The rules that a layer which is only thought of would break, silenced or not: with the case, and where.

        None that cannot be checked is among them.
        """
        found = []
        for rule in self.rules:
            try:
                right = rule.decision.evaluate(facts)
                if right is not None and not right:
                    case = _case(rule, facts)
                    found.append((rule, case, places_of(case, facts)))
            except (UnknownValue, ExprError):
                continue
        return found


_SIZES = frozenset(("N", "C", "K", "groups"))


def _is_silenced(flaw: Found | Flaw, found: Sequence[Found]) -> bool:
    return bool(flaw.rule.yields_to) and any(_silences(other, flaw) for other in found)


def _silences(specific: Found, general: Found | Flaw) -> bool:
    """Whether the general flaw is the specific one's again: of two that point at sizes, only where they share one."""
    if specific.rule.info.code not in general.rule.yields_to:
        return False
    sizes, others = _SIZES.intersection(specific.places), _SIZES.intersection(general.places)
    return not sizes or not others or not sizes.isdisjoint(others)


def _place(rule: Rule, error: ExprError) -> tuple[int | None, int | None]:
    """Where in its file a rule is wrong: at its fix for what that sets, else at what it checks."""
    keys = ("fix", "variants") if error.message.startswith("sets ") else ("check",)
    return next((rule.lines[key] for key in keys if key in rule.lines), (None, None))


def _case(rule: Rule, facts: LayerFacts) -> Case:
    return next((case for case in rule.cases[:-1] if holds(case.when, facts)), rule.cases[-1])
