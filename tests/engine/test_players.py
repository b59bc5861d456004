"""Sets of fixes: which exist, what they change, and which is the fastest; the game around them in `test_game`."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from convlint.engine.hits import Flaw
from convlint.engine.players import Changes, Player, fastest, key_of, merged, subsets
from convlint.rulebook.book import load_rulebook

RULE = load_rulebook().by_key["CL102"]


def player(code: str, **changes: Any) -> Player:
    rule = replace(RULE, info=replace(RULE.info, code=code))
    return Player(Flaw(rule=rule, case=rule.cases[-1], places=(), message=code), changes)


@pytest.mark.parametrize(
    ("players", "changes"),
    [
        ([], {}),
        ([player("A", C=64)], {"C": 64}),
        ([player("A", C=64), player("B", layout="NHWC")], {"C": 64, "layout": "NHWC"}),
        ([player("A", C=64), player("B", C=64, K=8)], {"C": 64, "K": 8}),
        ([player("A", C=64), player("B", C=128)], None),
        ([player("A", C=64), player("B", K=8), player("C", C=128)], None),
    ],
)
def test_what_they_change_together(players: list[Player], changes: Changes | None) -> None:
    assert merged(players) == changes


def test_equal_changes_have_equal_keys() -> None:
    assert key_of({"C": 64, "K": 8}) == key_of({"K": 8, "C": 64}) != key_of({"C": 64, "K": 16})


@given(
    st.lists(st.dictionaries(st.sampled_from(["C", "K", "layout"]), st.sampled_from([1, 2]), min_size=1), max_size=5)
)
def test_subsets_are_those_that_set_no_field_twice_smaller_ones_first(drawn: list[dict[str, int]]) -> None:
    players = [player(f"P{number}", **changes) for number, changes in enumerate(drawn)]
    every = [found for size in range(1, len(players) + 1) for found in combinations(players, size)]
    exist = [(found, merged(found)) for found in every if merged(found) is not None]
    assert list(subsets(players)) == exist


def test_of_equals_the_fastest_is_the_smallest_then_the_first_by_code() -> None:
    a, b, c = player("A", C=1), player("B", K=1), player("C", N=1)
    times = {key_of({"K": 1}): 60.0, key_of({"N": 1}): 60.0, key_of({"C": 1, "K": 1}): 60.0}
    assert fastest([a, b, c], 100.0, lambda changes: times.get(key_of(changes))) == ((b,), 60.0)
    assert fastest([a, b, c], 50.0, lambda changes: times.get(key_of(changes))) == ((), 50.0)
