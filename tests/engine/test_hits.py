"""A flaw: where it points, which case speaks, and what its fix would set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from layer_facts import facts
from small_networks import checked, layer, rulebook

from convlint.engine.hits import COUNT, LAYERS, Flaw, holds
from convlint.rulebook.book import Rulebook, load_rulebook
from convlint.rulebook.expr import ExprError, compile_expr

LAYER = "name: a, N: 8, C: 62, H: 28, W: 28, K: 60, R: 3, S: 3, padding: 1, dtype: fp16"


def flaw(folder: Path, written: str = LAYER, **parts: str) -> Flaw:
    (rule,) = rulebook(folder, {"check": "C == 1", **parts}).rules
    return Flaw.of(rule, rule.cases[-1], facts(written))


def fix(new: str, other: str = "", describe: str = "d") -> dict[str, str]:
    return {"fix": f'{{ describe: "{describe}", set: {{ {new} }}' + (f", or: {{ {other} }}" if other else "") + " }"}


@pytest.mark.parametrize(
    ("new", "sets"),
    [
        ("C: '64'", {"C": 64}),
        ("C: '62'", {}),  # what is there already
        ("C: '64', K: '60'", {"C": 64}),
        ("C: '0'", {}),  # there is none
        ("C: 'C * 1000000000'", {}),  # larger than any layer may be
        ("PadH: '0'", {"PadH": 0, "PadH_end": 0}),  # a padding may well be none
        ("PadH: '2'", {"PadH": 2, "PadH_end": 2}),
        ("bias: 'false'", {"bias": False}),  # not known, so that it changes
        ("dtype: \"'bf16'\"", {"dtype": "bf16"}),
        ("dtype: \"'fp16'\"", {}),
        ("runtime.tf32: 'true'", {"runtime.tf32": True}),  # a setting is always said
    ],
)
def test_a_fix_sets_what_differs(new: str, sets: dict[str, Any], tmp_path: Path) -> None:
    if "PadH" in sets:
        new += ", PadH_end: '" + str(sets["PadH_end"]) + "'"
    assert flaw(tmp_path, **fix(new)).set == sets


def test_one_side_of_a_padding_alone_names_both(tmp_path: Path) -> None:
    assert flaw(tmp_path, **fix("PadH: '1', PadH_end: '2'")).set == {"PadH": 1, "PadH_end": 2}
    assert flaw(tmp_path, **fix("PadH: '1', PadH_end: '1', PadW: '2', PadW_end: '1'")).set == {"PadW": 2, "PadW_end": 1}


def test_a_declared_output_is_compared_with_what_was_declared(tmp_path: Path) -> None:
    assert flaw(tmp_path, LAYER + ", P: 29", **fix("P: 'P'")).set == {"P": 28}
    assert flaw(tmp_path, LAYER + ", P: 28", **fix("P: 'P'")).set == {}


@pytest.mark.parametrize(
    ("new", "other", "sets", "others"),
    [
        ("C: '64'", "C: '61'", {"C": 61}, {"C": 64}),  # the nearer one is the one to set
        ("C: '64'", "C: '60'", {"C": 64}, {"C": 60}),  # as near: the first
        ("C: '64'", "C: '32'", {"C": 64}, {"C": 32}),
        ("C: '0'", "C: '56'", {"C": 56}, {}),
        ("C: '64'", "C: '0'", {"C": 64}, {}),
        ("C: '64', N: '80'", "C: '124', N: '8'", {"C": 124}, {"C": 64, "N": 80}),  # by share of what is there
    ],
)
def test_of_two_good_values_the_nearer_is_set(
    new: str, other: str, sets: dict[str, int], others: dict[str, int], tmp_path: Path
) -> None:
    made = flaw(tmp_path, **fix(new, other))
    assert (made.set, made.other) == (sets, others)


@pytest.mark.parametrize(
    ("new", "problem"),
    [
        ("C: '0 - 1'", "sets C to -1, which no layer can have"),
        ("groups: '7'", "sets groups=7, but groups=7 must divide C=62 and K=60"),
        ("PadH: '0', PadH_end: '0', R: '40'", "which leaves no output"),
    ],
)
def test_a_rule_that_asks_for_what_no_layer_can_be_is_wrong(new: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ExprError) as caught:
        flaw(tmp_path, **fix(new))
    assert problem in caught.value.message
    with pytest.raises(ExprError):
        flaw(tmp_path, **fix("C: '64'", new.replace("R: '40'", "R: '41'")))


@pytest.mark.parametrize(
    ("sizes", "sets"),
    [
        ({"H": 3, "W": 3, "padding": 0}, {}),  # both computed sizes are negative
        ({"H": 3, "W": 3, "padding": [0, 6]}, {"Q": 7}),
        ({"H": 9, "W": 9, "padding": 0}, {"P": 1, "Q": 1}),
    ],
)
def test_our_own_rules_ask_no_layer_for_a_negative_size(sizes: dict[str, Any], sets: dict[str, int]) -> None:
    rules = Rulebook([load_rulebook().by_key["CL001"]])
    (finding,) = checked(rules, layer("a", kernel_size=9, P=5, Q=5, **sizes)).findings
    assert finding.fix is not None
    assert finding.fix.set == sets


def test_what_a_fix_says_has_the_new_values(tmp_path: Path) -> None:
    made = flaw(tmp_path, message="{C} of {K}", **fix("C: '64'", describe="use {C}, K={K}"))
    assert (made.message, made.describe) == ("62 of 60", "use 64, K=60")


def test_a_flaw_points_at_what_breaks_the_rule(tmp_path: Path) -> None:
    assert flaw(tmp_path, at="[C, K]").places == ("C", "K")
    assert flaw(tmp_path, at="{ C: C == 1, K: K == 60, N: NPQ > 1e9 }").places == ("K",)


@pytest.mark.parametrize(
    ("join", "joins", "message"),
    [
        ('{ message: "{count}: {layers}, N={N}" }', True, f"{COUNT}: {LAYERS}, N=8"),
        ('{ when: C == 62, message: "{C}" }', True, "62"),
        ('{ when: C == 63, message: "{C}" }', False, ""),
    ],
)
def test_what_it_says_of_many_layers(join: str, joins: bool, message: str, tmp_path: Path) -> None:
    made = flaw(tmp_path, join=join)
    assert (made.join, made.join_message) == (joins, message)


@pytest.mark.parametrize(("text", "truth"), [(None, False), ("C == 62", True), ("C == 1", False), ("calls > K", False)])
def test_what_is_not_known_does_not_hold(text: str | None, truth: bool) -> None:
    expr = None if text is None else compile_expr(text, {"C": "number", "K": "number", "calls": "number"})
    assert holds(expr, facts("C: 62")) is truth
