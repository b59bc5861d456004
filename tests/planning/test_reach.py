"""How far a plan goes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from planned import planned, target
from wirings import resnet50

from convlint.estimate.memory import parameters
from convlint.model.runtime import Runtime
from convlint.planning import reach
from convlint.planning.levers import Lever
from convlint.planning.reach import fitting
from convlint.planning.wishes import Wishes

BAD = resnet50((60, 124, 250, 500), dtype="fp32", layout="NCHW")
KEPT = frozenset({"batch"})


def test_a_time_that_safe_steps_reach_takes_safe_steps_alone() -> None:
    found = planned(BAD, target_us=30_000.0)
    assert found.is_reached
    assert [step.kinds for step in found.steps] == [("layout",)]


def test_no_step_more_than_it_takes() -> None:
    every = planned(BAD, fixed=KEPT)
    goal = every.steps[5].after.time_us + 1
    found = planned(BAD, fixed=KEPT, target_us=goal)
    assert found.is_reached
    assert found.after.time_us <= goal
    assert len(found.steps) <= 6
    assert found.steps[-1].before.time_us > goal


def test_a_time_out_of_reach_takes_all_steps() -> None:
    every, found = planned(BAD, fixed=KEPT), planned(BAD, fixed=KEPT, target_us=1.0)
    assert found.is_reached is False
    assert len(found.steps) == len(every.steps)


def test_a_time_that_is_reached_already_takes_none() -> None:
    found = planned(BAD, target_us=1e9)
    assert (found.is_reached, found.steps) == (True, ())


def test_who_asks_for_no_time_reaches_none() -> None:
    assert planned(BAD).is_reached is None


def widened(steps: int) -> tuple[list[tuple[int, ...]], list[Lever]]:
    levers = [Lever(kind="dtype", describe="", safety="unsafe")]
    levers += [Lever(kind="channels", describe="", safety="unsafe", group=n, width=64) for n in range(steps)]
    return [(number,) for number in range(len(levers))], levers


@pytest.mark.parametrize(("room", "kept"), [(0, 0), (1, 1), (4, 4), (9, 9), (20, 9)])
def test_what_no_longer_fits_into_memory_is_left_out_from_the_end(
    room: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    units, levers = widened(9)
    sized = [replace(BAD, path=str(count)) for count in range(11)]
    monkeypatch.setattr(reach, "_is_too_much", lambda network, *_: network is not BAD and int(network.path) > room)

    def with_units(chosen: object) -> object:
        return sized[sum(unit != (0,) for unit in chosen)]  # type: ignore[attr-defined]

    found = fitting(units, levers, with_units, BAD, target(), "training", Wishes())  # type: ignore[arg-type]
    assert found == units[: kept + 1]


def test_what_is_too_large_already_may_stay_so() -> None:
    large = resnet50((60, 124, 250, 500), N=2048, runtime=Runtime(optimizer="adam"))
    found = planned(large, fixed=KEPT)
    assert any("channels" in step.kinds for step in found.steps)


def test_limits_hold_for_layers_that_share_a_module() -> None:
    layers = tuple(replace(layer, node=f"block{index % 50}", path="net.py") for index, layer in enumerate(BAD.layers))
    found = planned(replace(BAD, layers=layers), fixed=KEPT, max_parameters=0.004)
    now, after = parameters(layers), parameters(found.network.layers)
    assert now is not None
    assert after is not None
    assert now < after <= 1.004 * now
