"""The order of B's members: what saves most first, what only pays together as one step."""

from __future__ import annotations

from itertools import pairwise

import pytest
from promised import promised
from random_networks import chain, tangle
from wirings import Wiring, resnet50

from convlint.planning.steps import LEAST_GAIN, NONE, Members, ordered

BAD = (60, 124, 250, 500)


@pytest.mark.parametrize("build", [chain, tangle])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("gpu", ["v100", "a100"])
def test_all_members_are_in_one_step_each_of_which_saves(build: object, seed: int, gpu: str) -> None:
    assert callable(build)
    _, promise = promised(build(seed), gpu)
    best, search = promise.optimum, promise.search
    steps = ordered(Members(best.choices, best.levers), search)
    taken, times = NONE, [search.total_us({}, {})]
    for step in steps:
        assert not set(step.choices) & set(taken.choices)
        assert not set(step.levers) & set(taken.levers)
        taken = taken.plus(step)
        times.append(search.total_us(*taken))
    assert (taken.choices.keys(), taken.levers.keys()) == (best.choices.keys(), best.levers.keys())
    assert times == sorted(times, reverse=True)


def test_what_saves_most_is_first() -> None:
    _, promise = promised(resnet50(BAD, dtype="fp32", layout="NCHW"), "v100")
    best, search = promise.optimum, promise.search
    first, *_ = ordered(Members(best.choices, best.levers), search)
    assert list(first.choices) == ["dtype"]  # the layout alone costs, and sizes wait for the Tensor Cores


def test_small_sizes_that_follow_each_other_are_one_step() -> None:
    _, promise = promised(resnet50(BAD), "h100")
    best, search = promise.optimum, promise.search
    steps = ordered(Members({}, best.levers), search)
    now_us, taken, saved = search.total_us({}, {}), NONE, []
    for step in steps:
        before = search.total_us(*taken)
        taken = taken.plus(step)
        saved.append(before - search.total_us(*taken))
    single = [us < LEAST_GAIN * now_us and len(step) == 1 for us, step in zip(saved, steps, strict=True)]
    assert not any(one and other for one, other in pairwise(single))


def test_nothing_to_take() -> None:
    net = Wiring(C=64, N=32, size=56)
    _, promise = promised(net.network(net.conv(net.conv(net.image, 64, 3), 64, 3)))
    assert ordered(NONE, promise.search) == []
    assert len(NONE) == 0
