"""Sums of tables minimised by elimination: what brute force finds, within bounded tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from random import Random

import pytest

from convlint.planning.elimination import WIDEST, Table, eliminate, order


def random_tables(random: Random, choices: dict[int, int], scopes: Sequence[tuple[int, ...]]) -> list[Table]:
    tables = []
    for scope in scopes:
        entries = 1
        for variable in scope:
            entries *= choices[variable]
        tables.append(Table(scope, [random.random() for _ in range(entries)]))
    return tables


def cost(found: dict[int, int], tables: Sequence[Table], choices: dict[int, int]) -> float:
    whole = 0.0
    for scope, costs in tables:
        place = 0
        for variable in scope:
            place = place * choices[variable] + found[variable]
        whole += costs[place]
    return whole


@pytest.mark.parametrize("seed", range(20))
def test_it_finds_what_brute_force_finds(seed: int) -> None:
    random = Random(seed)
    choices = {variable: random.randint(1, 4) for variable in range(5)}
    scopes = [tuple(sorted(random.sample(range(5), random.randint(1, 3)))) for _ in range(6)]
    scopes += [(variable,) for variable in choices]
    tables = random_tables(random, choices, scopes)
    sequence, held = order(choices, scopes, 10_000)
    assert held == []
    found = eliminate(choices, tables, sequence)
    best = min(
        cost(dict(enumerate(combination)), tables, choices) for combination in product(*map(range, choices.values()))
    )
    assert cost(found, tables, choices) == pytest.approx(best, rel=1e-12)


def test_of_equals_the_first_choice_is_taken() -> None:
    assert eliminate({0: 3, 1: 2}, [Table((0, 1), [1.0] * 6)], [0, 1]) == {0: 0, 1: 0}


def test_chains_need_no_table_of_more_than_two_variables() -> None:
    choices = dict.fromkeys(range(100), 5)
    sequence, held = order(choices, list(pairwise(range(100))), 25)
    assert held == []
    assert sorted(sequence) == list(range(100))


def test_what_would_need_a_larger_table_is_held() -> None:
    choices = dict.fromkeys(range(6), 4)
    everything = [tuple(range(6))]
    sequence, held = order(choices, everything, 4**4)
    assert len(held) == 2
    assert sorted([*sequence, *held]) == list(range(6))


@pytest.mark.parametrize(("size", "held"), [(WIDEST, 0), (WIDEST + 1, WIDEST + 1)])
def test_all_of_a_scope_that_is_too_wide_are_held(size: int, held: int) -> None:
    assert len(order(dict.fromkeys(range(size), 1), [tuple(range(size))], 1000)[1]) == held


def test_nothing_to_choose_is_no_trouble() -> None:
    assert order({}, [()], 10) == ([], [])
    assert eliminate({}, [], []) == {}
