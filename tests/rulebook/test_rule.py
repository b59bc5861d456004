"""What a rule says: messages with names in them, messages of fragments, and the names that a rule needs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from small_networks import rulebook

from convlint.facts.quantity import UNKNOWN
from convlint.rulebook.expr import compile_expr
from convlint.rulebook.rule import Fragments, Template

VALUES = {"C": 62, "share": 12.345, "gpu": SimpleNamespace(sms=108, id=UNKNOWN), "lost": UNKNOWN, "runtime.x": 3}


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
    assert fragments.render({"C": 62, "K": UNKNOWN}) == text
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
