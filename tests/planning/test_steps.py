"""The order of steps: most saved per change first, and together what only pays together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import pytest

from convlint.planning.steps import LEAST_GAIN, ordered


class Made:
    """Stands for `Subsets`: times by what is pulled; lever n touches the layers named for it."""

    def __init__(
        self, time_us: Callable[[frozenset[int]], float], touches: dict[int, set[int]], least_us: float,
        least_of: dict[int, float] | None = None,
    ) -> None:  # fmt: skip
        self._time_us, self._touches, self._least_us, self._least_of = time_us, touches, least_us, least_of

    def touched(self, numbers: Iterable[int]) -> list[int]:
        return sorted({index for number in numbers for index in self._touches[number]})

    def gpu_us(self, pulled: Collection[int], layers: Iterable[int] | None = None) -> float:
        return self._time_us(frozenset(pulled)) if layers is None or list(layers) else 0.0

    def least_us(self, numbers: Iterable[int], pulled: Collection[int]) -> float:
        if self._least_of is not None:
            return max((self._least_of[number] for number in numbers), default=0.0)
        return self._least_us * len(list(numbers))

    def step_us(self, gpu_us: float, pulled: Collection[int]) -> float:
        return gpu_us


def steps(
    time_us: Callable[[frozenset[int]], float], levers: int, touches: dict[int, set[int]] | None = None,
    least_us: float = 0.0,
) -> object:  # fmt: skip
    made = Made(time_us, touches or {number: {0} for number in range(levers)}, least_us)
    return ordered(made, range(levers))  # type: ignore[arg-type]


def saving(*each: float) -> Callable[[frozenset[int]], float]:
    return lambda pulled: 1000 - sum(each[number] for number in pulled)


def test_what_saves_most_is_first() -> None:
    assert steps(saving(10, 50, 30), 3) == [(1,), (2,), (0,)]


@pytest.mark.parametrize(
    ("saved", "expected"), [(0.0, []), (-5.0, []), (1000 * LEAST_GAIN, []), (1001 * LEAST_GAIN, [(0,)])]
)
def test_what_saves_nothing_is_no_step(saved: float, expected: list[tuple[int, ...]]) -> None:
    assert steps(saving(saved), 1) == expected


def test_two_that_only_pay_together_are_one_step() -> None:
    def time_us(pulled: frozenset[int]) -> float:
        return 1000 - (300 if {0, 2} <= pulled else 0) - (10 if 1 in pulled else 0)

    assert steps(time_us, 3) == [(0, 2), (1,)]


def test_of_several_steps_that_of_most_per_change_is_first() -> None:
    def time_us(pulled: frozenset[int]) -> float:
        return 1000 - (30 if {0, 2} <= pulled else 0) - (20 if 1 in pulled else 0)

    assert steps(time_us, 3) == [(1,), (0, 2)]


def test_three_that_only_pay_together_are_one_step() -> None:
    assert steps(lambda pulled: 900 if {0, 1, 2} <= pulled else 1000, 3) == [(0, 1, 2)]


def test_strangers_are_no_pair() -> None:
    """Connected ones come first: lever 3 has no layer in common with those that pay."""
    touches = {0: {0}, 1: {0, 1}, 2: {1}, 3: {9}}
    assert steps(lambda pulled: 900 if {0, 1, 2} <= pulled else 1000, 4, touches) == [(0, 1, 2)]


def test_what_pays_only_once_others_are_pulled_comes_after_them() -> None:
    def time_us(pulled: frozenset[int]) -> float:
        return 1000 - (100 if 1 in pulled else 0) - (500 if {0, 1} <= pulled else 0)

    assert steps(time_us, 2) == [(1,), (0,)]


def test_what_pays_no_more_once_others_are_pulled_is_dropped() -> None:
    assert steps(lambda pulled: 900 if pulled else 1000, 2) == [(0,)]


def test_nothing_to_pull() -> None:
    assert steps(saving(), 0) == []


def test_an_order_in_which_less_is_saved_is_not_taken() -> None:
    """Lever 1 alone and the pair pay at first; once the pair is pulled, 1 costs more than it saves without 3."""

    def time_us(pulled: frozenset[int]) -> float:
        saved = 40 * (1 in pulled) + 100 * ({0, 2} <= pulled) - 60 * ({0, 1, 2} <= pulled)
        return 1000 - saved - 50 * ({1, 3} <= pulled)

    found = steps(time_us, 4)
    assert {number for unit in found for number in unit} == {0, 1, 2, 3}  # type: ignore[attr-defined]


def test_what_saves_less_than_its_layers_ask_for_is_no_step() -> None:
    assert steps(saving(10, 50, 30), 3, least_us=20) == [(1,), (2,)]
    assert steps(saving(10, 50, 30), 3, {0: {0}, 1: {1}, 2: {2}}, least_us=31) == [(1,)]


def test_a_pair_comes_before_what_saves_less_for_each_of_its_levers() -> None:
    """Six levers that save a little alone, and two neighbours that save much together."""

    def time_us(pulled: frozenset[int]) -> float:
        return 1000 - 10 * len(pulled & {0, 1, 2, 3, 4, 5}) - (200 if {6, 7} <= pulled else 0)

    touches = {number: {number} for number in range(6)} | {6: {6}, 7: {6, 7}}
    found = steps(time_us, 8, touches)
    assert found == [(6, 7), *((number,) for number in range(6))]


def test_of_a_pair_that_which_pays_alone_is_a_step_of_its_own() -> None:
    """It saves 10 alone and 300 with its neighbour: both come before what saves 50."""

    def time_us(pulled: frozenset[int]) -> float:
        return 1000 - 10 * (0 in pulled) - 290 * ({0, 1} <= pulled) - 50 * (2 in pulled)

    assert steps(time_us, 3, {0: {0}, 1: {0}, 2: {5}}) == [(0,), (1,), (2,)]


def test_a_neighbour_of_what_is_pulled_is_looked_at_anew() -> None:
    """Lever 1 saves nothing alone, and 100 after 0: that is more than the 30 of 2."""

    def time_us(pulled: frozenset[int]) -> float:
        return 1000 - 250 * (0 in pulled) - 100 * ({0, 1} <= pulled) - 30 * (2 in pulled)

    assert steps(time_us, 3, {0: {0}, 1: {0}, 2: {5}}) == [(0,), (1,), (2,)]


def test_one_that_saves_less_but_enough_for_itself_is_a_step_too() -> None:
    made = Made(saving(2, 1.5), {0: {0, 1}, 1: {1}}, 0.0, least_of={0: 10.0, 1: 1.0})
    assert ordered(made, [0, 1]) == ordered(made, [1]) == [(1,)]  # type: ignore[arg-type]
