"""A rule: what it states, and how its expressions decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import force_setattr

from convlint.model.layer import Loss, equal_without
from convlint.model.report import RuleInfo, Severity
from convlint.model.text import COMMA, Text, joined, printed
from convlint.rulebook.expr import GLOBALS, UNKNOWN, Expr, function


@equal_without("_value")
class Decision(Struct, frozen=True, kw_only=True):
    """All expressions that decide whether a rule is broken, as one function."""

    when: Expr | None
    let: tuple[tuple[str, Expr], ...]
    check: Expr
    code: CodeType
    _value: Any = None  # the function that `code` is

    def __post_init__(self) -> None:
        force_setattr(self, "_value", function(self.code, GLOBALS))

    def evaluate(self, values: dict[str, Any]) -> Any:
        """None where `when` does not hold, else the value of `check`; what `let` names is put into `values`.

        Raises UnknownValue, or ExprError for the expression whose arithmetic has no result.
        """
        try:
            return self._value(values)
        except (ArithmeticError, ValueError):  # ArithmeticError: division by zero, overflow, the gcd of a fraction
            return self.one_by_one(values)

    @property
    def decide(self) -> Callable[[dict[str, Any]], Any]:
        """`evaluate`, but for what arithmetic raises: then `one_by_one` tells more."""
        function_: Callable[[dict[str, Any]], Any] = self._value
        return function_

    def one_by_one(self, values: dict[str, Any]) -> Any:
        """The same, expression by expression: the one that has no result says so."""
        if self.when is not None and not self.when.evaluate(values):
            return None
        for name, expr in self.let:
            values[name] = expr.evaluate(values)
        return self.check.evaluate(values)


# what a rule judges: the last three are what stands in Python source
Scope = Literal["layer", "edge", "network", "suppression", "construction", "width", "program"]
SOURCE_SCOPES: tuple[Scope, ...] = ("construction", "width", "program")
_NOTHING: Mapping[str, Any] = {}


class Template:
    """A message with `{name}` or `{name:format}` in it; only names, never expressions."""

    __slots__ = ("_made", "parts")

    def __init__(self, parts: tuple[str | tuple[str, str], ...]) -> None:
        self.parts = parts
        self._made: tuple[str, tuple[tuple[str, str, str, str, str], ...]] | None = None

    @property
    def names(self) -> frozenset[str]:
        """What it prints."""
        return frozenset(part[0] for part in self.parts if isinstance(part, tuple))

    def _steps(self) -> tuple[str, tuple[tuple[str, str, str, str, str], ...]]:
        """(its text, and of each value: field, name, what stands before its dot, what behind it, format).

        Every finding is rendered, but of most rules there is none.
        """
        if self._made is None:
            text = "".join(part if isinstance(part, str) else f"{{{_field(*part)}}}" for part in self.parts)
            values = [part for part in self.parts if isinstance(part, tuple)]
            steps = []
            for name, form in values:
                first, _, attribute = name.partition(".")
                steps.append((_field(name, form), name, first, attribute, form))
            self._made = text, tuple(steps)
        return self._made

    @property
    def text(self) -> str:
        """With its fields in braces."""
        return self._steps()[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Template) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)

    def render(self, values: Mapping[str, Any], over: Mapping[str, Any] = _NOTHING, *, code: str = "") -> Text:
        """The text of the rule `code` under `values`, and `over` before them; what is unknown shows as "?"."""
        text, steps = self._steps()
        shown = {}
        for shown_as, name, first, attribute, form in steps:
            if name in over:
                value = over[name]
            elif not attribute or name in values:
                value = values[name]
            else:
                value = values[first]
                value = value if value is UNKNOWN else getattr(value, attribute)
            shown[shown_as] = "?" if value is UNKNOWN else printed(value, form)
        return Text.of(text, shown, code)


def _field(name: str, form: str) -> str:
    return f"{name}:{form}" if form else name


class Fragments:
    """A message made of the texts whose condition is known to hold, joined by commas; `otherwise` where none does."""

    __slots__ = ("names", "otherwise", "pieces")

    def __init__(self, pieces: tuple[tuple[Expr | None, Template], ...], otherwise: Template) -> None:
        self.pieces, self.otherwise = pieces, otherwise
        read = [expr.names for expr, _ in pieces if expr is not None]
        self.names = frozenset().union(*read, *(text.names for _, text in pieces))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fragments) and (self.pieces, self.otherwise) == (other.pieces, other.otherwise)

    def __hash__(self) -> int:
        return hash((self.pieces, self.otherwise))

    def render(self, values: dict[str, Any], over: Mapping[str, Any] = _NOTHING, *, code: str = "") -> str:
        """The texts that hold, each rendered as `Template.render` does. Raises ExprError."""
        templates = [text for when, text in self.pieces if when is None or when.holds(values)]
        texts = [text.render(values, over, code=code) for text in templates]
        return joined(Text.of(COMMA, code=code), texts) or self.otherwise.render(values, over, code=code)


Message = Template | Fragments


class FixSpec(Struct, frozen=True, kw_only=True):
    """How to mend it: alternatives of (description, field -> expression), the first one preferred."""

    describe: Template
    safety: Literal["safe", "unsafe"]
    set: tuple[tuple[str, Expr], ...]
    other: tuple[tuple[str, Expr], ...]  # a second good value, on the other side
    priced: bool  # whether the model knows what it changes
    changes: Literal["network", "results"] = "network"  # where it is unsafe


class Case(Struct, frozen=True, kw_only=True):
    """What a rule says: its default, or a variant that replaces parts of it where `when` holds."""

    when: Expr | None
    severity: Severity
    message: Message
    at: tuple[tuple[str, Expr | None], ...]
    fix: FixSpec | None


class Join(Struct, frozen=True, kw_only=True):
    """When the findings of many layers become one of the network.

    If all share it (`all`), always (`any`), or those alone that their price makes infos (`info`): a warning keeps its
    own line. Layers join only where the message and the fix say the same of them.
    """

    share: Literal["all", "any", "info"]
    when: Expr | None
    message: Message


@equal_without("lines")
class Rule(Struct, frozen=True, kw_only=True):
    """One rule, compiled. `needs_gpu`: its verdict or price depends on the target.

    `in_source` is the same rule as it judges source code, where it does so beside its own scope.
    """

    info: RuleInfo
    scope: Scope
    opt_in: bool
    yields_to: frozenset[str]
    decision: Decision
    cases: tuple[Case, ...]  # variants first, the default last
    loss: Loss
    loss_passes: tuple[str, ...]
    join: Join | None
    needs_gpu: bool
    path: str
    lines: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # of some keys in the file
    in_source: Rule | None = None

    def names(self) -> frozenset[str]:
        """Every name of the vocabulary that decides whether the rule fires."""
        when, let, check = self.decision.when, self.decision.let, self.decision.check
        parts = [check, *(expr for _, expr in let), *([when] if when else [])]
        return frozenset(name for expr in parts for name in expr.names)

    def names_in_messages(self) -> frozenset[str]:
        """Every name that its texts print."""
        texts: list[Message] = [case.message for case in self.cases]
        texts += [self.join.message] if self.join else []
        texts += [case.fix.describe for case in self.cases if case.fix]
        return frozenset(name for text in texts for name in text.names)

    def names_anywhere(self) -> frozenset[str]:
        """Every name that what it finds depends on: whether it fires, in which case, what it says and what it sets."""
        parts: list[Expr | None] = [self.join.when] if self.join else []
        for case in self.cases:
            parts += [case.when, *(expr for _, expr in case.at)]
            parts += [expr for _, expr in (*case.fix.set, *case.fix.other)] if case.fix else []
        read = frozenset(name for expr in parts if expr is not None for name in expr.names)
        return read | self.names() | self.names_in_messages()
