"""The same assignment in both branches of a test."""

import pytest

from convlint.model.location import Location
from convlint.readers.python.programs.settings import BENCHMARK, ENABLED, Condition, Event, holding, without_cases


def event(value: bool, *tests: str, line: int = 1, name: str = BENCHMARK, also: tuple[Condition, ...] = ()) -> Event:
    conditions = tuple(one for test in tests for one in holding(test))
    return Event(name, (value,), Location(path="train.py", line=line), (*conditions, *also))


ELSEWHERE = Condition("elsewhere", "train.py:3")
SPAWNED = Condition("elsewhere", "train.py:3", soft=True)


@pytest.mark.parametrize(
    ("given", "joined"),
    [
        ([event(True, "one"), event(True, "not (one)")], [event(True)]),
        ([event(True, "a", "one"), event(True, "a", "not (one)")], [event(True, "a")]),
        ([event(True, "one"), event(True, "not (one)", "two"), event(True, "not (one)", "not (two)")], [event(True)]),
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
    assert without_cases(given) == tuple(joined)


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
    ],
)
def test_others_stay_apart(given: list[Event]) -> None:
    assert without_cases(given) == tuple(given)
