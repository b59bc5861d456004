"""What a rule says: messages with names in them, messages of fragments, and the names that a rule needs."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from small_networks import rulebook

from convlint.facts.quantity import UNKNOWN as UNKNOWN_of_rule
from convlint.rulebook.expr import UNKNOWN, ExprError, UnknownValue
from convlint.rulebook.grammar import compile_decision, compile_expr
from convlint.rulebook.rule import Decision, Fragments, Template

NAMES: Mapping[str, Any] = {"C": "number", "K": "number", "gpu.sms": "number", "dtype": "text", "on": "truth"}


def decision(check: str, *, when: str | None = None, **let: str) -> Decision:
    names = dict(NAMES)
    compiled = []
    for name, text in let.items():
        compiled.append((name, compile_expr(text, names)))
        names[name] = compiled[-1][1].type
    return compile_decision(
        None if when is None else compile_expr(when, names), compiled, compile_expr(check, names)
    )  # fmt: skip


def facts(**values: object) -> dict[str, Any]:
    return {"C": 62, "K": 64, "gpu": SimpleNamespace(sms=108), "dtype": "fp16", "on": True, **values}


@pytest.mark.parametrize(
    ("parts", "values", "result"),
    [
        ({"check": "C % 8 == 0"}, {}, False),
        ({"check": "C % 8 == 0"}, {"C": 64}, True),
        ({"check": "C % 8 == 0", "when": "K == 1"}, {}, None),
        ({"check": "false", "when": "not on"}, {}, None),
        ({"check": "true"}, {}, True),
        ({"check": "wide == C", "wide": "ceil_to(C, 8)"}, {}, False),
        ({"check": "b == 65", "a": "C + 2", "b": "a + 1"}, {}, True),
        ({"check": "known(K)"}, {"K": UNKNOWN}, False),
        ({"check": "not known(gpu.sms) or gpu.sms > 100"}, {}, True),
        ({"check": "dtype in ('fp16', 'bf16')"}, {}, True),
        ({"check": "C == 62 or K > 3"}, {"K": UNKNOWN}, True),
        ({"check": "C > 1", "when": "C == 1", "bad": "C // 0"}, {}, None),  # `let` is not reached
    ],
)
def test_verdicts(parts: dict[str, str], values: dict[str, object], result: bool | None) -> None:
    assert decision(**parts).evaluate(facts(**values)) is result


def test_what_let_names_is_there_for_the_messages() -> None:
    values = facts()
    decision("wide == C", wide="ceil_to(C, 8)", odd="wide != C").evaluate(values)
    assert (values["wide"], values["odd"]) == (64, True)


@pytest.mark.parametrize(
    "parts",
    [
        {"check": "C > 1", "when": "K > 1"},
        {"check": "K > 1"},
        {"check": "wide > 1", "wide": "K + 1"},
        {"check": "wide > 1", "wide": "K"},
    ],
)
def test_unknown_values_are_signalled(parts: dict[str, str]) -> None:
    with pytest.raises(UnknownValue):
        decision(**parts).evaluate(facts(K=UNKNOWN))


def test_a_check_that_is_itself_unknown_is_handed_back() -> None:
    """The rule applies there, though it cannot be checked: what all layers share is counted so."""
    assert decision("on").evaluate(facts(on=UNKNOWN)) is UNKNOWN


SQUARES = {"a": "C * C", "b": "a * a", "c": "b * b", "d": "c * c", "e": "d * d"}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"check": "C // (K - 64) == 1"}, "divides by zero: C // (K - 64) == 1"),
        ({"check": "C > 1", "when": "C % (K - 64) == 1"}, "divides by zero: C % (K - 64) == 1"),
        ({"check": "C > 1", "a": "1", "b": "C / (a - 1)"}, "divides by zero: C / (a - 1)"),
        ({"check": "C > 1", **SQUARES}, "the numbers grow too large: d * d"),
        ({"check": "ceil(C / 0.0000000000001 * 1e12 * 1e12 * K) > 1"}, None),
    ],
)
def test_the_expression_that_has_no_result_is_named(parts: dict[str, str], message: str | None) -> None:
    if message is None:
        assert decision(**parts).evaluate(facts()) is True
        return
    with pytest.raises(ExprError) as caught:
        decision(**parts).evaluate(facts(C=10**6))
    assert caught.value.message == message


VALUES = {
    "C": 62,
    "share": 12.345,
    "gpu": SimpleNamespace(sms=108, id=UNKNOWN_of_rule),
    "lost": UNKNOWN_of_rule,
    "runtime.x": 3,
}


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (("plain",), "plain"),
        ((), ""),
        (("C=", ("C", ""), "!"), "C=62!"),
        ((("share", ".1f"), "%"), "12.3%"),
        ((("C", ".0f"),), "62"),
        ((("gpu.sms", ""),), "108"),
        ((("runtime.x", ""),), "3"),  # a dotted name that stands there as it is
        ((("lost", ".0f"),), "?"),
        ((("gpu.id", ""),), "?"),
        ((("lost.more", ""),), "?"),
    ],
)
def test_templates(parts: tuple[Any, ...], text: str) -> None:
    template = Template(parts)
    assert template.render(VALUES) == text
    assert template.names == {part[0] for part in parts if isinstance(part, tuple)}


def test_templates_are_compared_by_what_they_say() -> None:
    assert Template(("a",)) == Template(("a",)) != Template(("b",))
    assert len({Template(("a",)), Template(("a",)), Template((("a", ""),))}) == 2


OTHERWISE = Template(("the title",))


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([("C == 62", "odd"), ("C == 64", "even")], "odd"),
        ([("C == 62", "odd"), (None, "always")], "odd, always"),
        ([("C == 64", "even")], "the title"),
        ([("K == 64", "unknown")], "the title"),  # holds only where it is known to
    ],
)
def test_fragments(pieces: list[tuple[str | None, str]], text: str) -> None:
    made = tuple(
        (None if when is None else compile_expr(when, {"C": "number", "K": "number"}), Template((words,)))
        for when, words in pieces
    )
    fragments = Fragments(made, OTHERWISE)
    assert fragments.render({"C": 62, "K": UNKNOWN_of_rule}) == text
    assert fragments.names == {name for when, _ in pieces if when is not None for name in when[0]}


def test_the_names_that_a_rule_needs_and_those_that_it_prints(tmp_path: Path) -> None:
    (rule,) = rulebook(
        tmp_path,
        {
            "when": "H > 1", "let": "{ wide: 'ceil_to(C, 8)' }", "check": "wide == C and known(W)",
            "message": "{C} {K} {wide}", "fix": '{ describe: "{R}", set: { C: wide } }',
            "join": '{ message: "{count} of {network.layers}" }',
        },
    ).rules  # fmt: skip
    assert rule.names() == {"H", "C"}  # what fires it, and neither what it prints nor what it only asks about
    assert rule.names_in_messages() == {"C", "K", "wide", "R", "count", "network.layers"}
