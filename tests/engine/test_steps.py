"""The order of B's members: what saves most first, what only pays together as one step."""

from itertools import pairwise

import pytest
from msgspec.structs import replace
from promised import followed, promised
from random_networks import chain, tangle
from wirings import Wiring, resnet50

from convlint.engine.steps import (
    LEAST_GAIN,
    LOTS,
    NONE,
    Members,
    NetworkPlan,
    State,
    Wishes,
    changed,
    ordered,
)
from convlint.model.channels import channels_of

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


def test_nothing_is_kept_and_nothing_limited_unless_asked() -> None:
    wishes = Wishes()
    assert not wishes.keeps_results
    assert wishes.fixed.isdisjoint(LOTS)
    assert wishes.max_parameters is wishes.max_flops is wishes.target_us is None


def test_channels_meet_and_settings_hold_for_all() -> None:
    network = resnet50(BAD, dtype="fp32", layout="NCHW")
    _, promise = promised(network, "v100")
    after = followed(network, promise)
    assert {(str(layer.dtype), layer.layout) for layer in after.layers} == {("fp16", "NHWC")}
    assert [group.width % 8 for group in channels_of(after).groups if group.writers and not group.fixed] == [0] * sum(
        1 for group in channels_of(after).groups if group.writers and not group.fixed
    )
    for edge in after.edges:
        assert edge.C == after.layers[edge.consumer].C


def test_some_members_are_some_of_it() -> None:
    network = resnet50(BAD, dtype="fp32", layout="NCHW")
    _, promise = promised(network, "v100")
    assert changed(network, promise, NONE).layers == network.layers
    dtype = changed(network, promise, Members({"dtype": promise.optimum.choices["dtype"]}, {}))
    assert {(str(layer.dtype), layer.layout) for layer in dtype.layers} == {("fp16", "NCHW")}
    assert [layer.K for layer in dtype.layers] == [layer.K for layer in network.layers]


def test_an_image_is_filled_up_for_all_that_read_it() -> None:
    net = Wiring(N=64)
    network = net.network(net.conv(net.conv(net.image, 64, 7, 2), 64, 3))
    _, promise = promised(network)
    after = followed(network, promise)
    assert after.layers[0].C == 4
    assert after.operations[0].C == 4


def test_layers_that_stand_alone_change_by_themselves() -> None:
    net = Wiring(C=64, N=32, size=56)
    network = replace(net.network(net.conv(net.conv(net.image, 60, 3), 64, 3)), operations=())
    _, promise = promised(network)
    after = followed(network, promise)
    assert [(layer.C, layer.K) for layer in after.layers] == [(64, 64), (64, 64)]
    assert [edge.C for edge in after.edges] == [64]
    assert all(promise.advice.coupling.group_of_lever(lever) is None for lever in promise.optimum.levers.values())


def test_a_plan_says_nothing_of_what_was_not_asked() -> None:
    now = State(time_us=1.0, grade=None, parameters=None, flops=None)
    plan = NetworkPlan(
        path="x", gpu="a100", mode="training", batch=None, now=now, after=now, steps=(), network=resnet50()
    )
    assert (plan.is_reached, plan.target_us) == (None, None)
    assert plan.without_time == plan.unpriced == plan.notes == ()
    with pytest.raises(AttributeError):
        plan.is_exact = False  # type: ignore[misc]
