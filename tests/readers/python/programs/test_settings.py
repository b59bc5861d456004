"""The same assignment on both sides of a test."""

import pytest
from msgspec.structs import replace

from convlint.model.location import Location
from convlint.readers.python.programs.settings import BENCHMARK, ENABLED, Condition, Event, cases_joined, holding


def event(value: bool, *tests: str, line: int = 1, name: str = BENCHMARK, also: tuple[Condition, ...] = ()) -> Event:
    """An assignment under tests; those of one text stand at one place, and `@` in front says: at none."""
    conditions = [
        replace(one, place=None if test.startswith("@") else ("train.py", len(one.key), 0))
        for test in tests
        for one in holding(test.removeprefix("@"))
    ]
    return Event(name, (value,), Location(path="train.py", line=line), (*conditions, *also))


def shown(events: tuple[Event, ...] | list[Event]) -> list[object]:
    return [(each.name, each.value, each.at, {(one.key, one.truth) for one in each.conditions}) for each in events]


ELSEWHERE = Condition("elsewhere", "train.py:3")
SPAWNED = Condition("elsewhere", "train.py:3", soft=True)


@pytest.mark.parametrize(
    ("given", "joined"),
    [
        ([event(True, "one"), event(True, "not (one)")], [event(True)]),
        ([event(True, "a", "one"), event(True, "a", "not (one)")], [event(True, "a")]),
        ([event(True, "one"), event(True, "not (one)", "two"), event(True, "not (one)", "not (two)")], [event(True)]),
        ([event(True, "not (one)", "two"), event(True, "not (one)", "not (two)"), event(True, "one")], [event(True)]),
        ([event(True, "x is None"), event(True, "x is not None")], [event(True)]),
        ([event(True, "one"), event(True, "not (one)", also=(SPAWNED,))], [event(True)]),
        ([event(True, "one", also=(SPAWNED,)), event(True, "not (one)")], [event(True)]),
        # Another setting between them is no matter, and the order of the others stays.
        (
            [event(True, "one"), event(False, line=2, name=ENABLED), event(True, "not (one)")],
            [event(False, line=2, name=ENABLED), event(True)],
        ),
    ],
)
def test_both_outcomes_are_any_run(given: list[Event], joined: list[Event]) -> None:
    assert shown(cases_joined(given, of_processes=True)) == shown(joined)


@pytest.mark.parametrize(
    "given",
    [
        [event(True, "one"), event(True, "two")],
        [event(True, "one"), event(True, "not (one)", "two")],
        [event(True, "one"), event(False, "not (one)")],
        [event(True, "one"), event(True, "not (one)", line=2)],
        [event(True, "one"), event(True, "not (one)", also=(ELSEWHERE,))],
        # On the first path, the value is another one in the end.
        [event(True, "one"), event(False, "one", line=2), event(True, "not (one)")],
        # Texts that are equal may mean two things, in two functions.
        [event(True, "@one"), event(True, "@not (one)")],
        [event(True, "one"), event(True, "@not (one)")],
    ],
)
def test_others_stay_apart(given: list[Event]) -> None:
    assert cases_joined(given, of_processes=True) == tuple(given)


def test_what_another_process_sets_is_no_case_of_this_one() -> None:
    given = [event(True, "one"), event(True, "not (one)", also=(SPAWNED,))]
    assert cases_joined(given, of_processes=False) == tuple(given)


def test_many_settings_are_left_as_they_are() -> None:
    given = [event(True, *tests, line=line) for line in range(400) for tests in (["one"], ["not (one)"])]
    assert cases_joined(given, of_processes=True) == tuple(given)
