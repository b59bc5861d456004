"""Times with some levers pulled, held against the check's of the same network."""

from __future__ import annotations

from itertools import combinations

import pytest
from planned import RULEBOOK, target
from wirings import Wiring, resnet50

from convlint.model.channel_walk import channels_of
from convlint.model.network import Network
from convlint.model.runtime import Runtime
from convlint.planning.advice import Adviser
from convlint.planning.levers import Lever, applied, levers_of, of_choice
from convlint.planning.prices import MISALIGNED_US
from convlint.planning.settings import Choice, on_host, settings
from convlint.planning.subsets import GRAPHS, LEAST_SHARE, Subsets
from convlint.planning.wishes import Wishes

ON = Choice(GRAPHS, True, (), "graphs", "safe")


def pair(runtime: Runtime | None = None) -> Network:
    net = Wiring(C=3, dtype="fp32", layout="NCHW")
    return net.network(net.conv(net.conv(net.conv(net.image, 60, 3), 60, 3), 64), runtime=runtime)


def levers(network: Network) -> list[Lever]:
    ways = settings(network, Adviser(RULEBOOK.of_networks), target(), "training", Wishes())
    written = channels_of(network).written
    widths = {written[0]: 64, written[1]: 64}
    return levers_of(network, max(ways, key=lambda one: len(one.choices)), (), widths, channels_of(network))


@pytest.mark.parametrize("runtime", [None, Runtime(tf32=False)])
def test_every_subset_takes_what_its_network_takes(runtime: Runtime | None) -> None:
    network = pair(runtime)
    found = levers(network)
    subsets = Subsets(network, channels_of(network), found, range(3), target(), "training")
    for size in range(len(found) + 1):
        for pulled in combinations(range(len(found)), size):
            changed = applied(network, [found[number] for number in pulled], channels_of(network))
            expected = on_host(changed, target(), "training").gpu_us
            assert subsets.gpu_us(set(pulled)) == pytest.approx(expected), pulled
            assert [subsets.layer(index, set(pulled)) for index in range(3)] == list(changed.layers)


def test_layers_without_time_are_left_out() -> None:
    network = pair()
    subsets = Subsets(network, channels_of(network), levers(network), [0, 2], target(), "training")
    whole = Subsets(network, channels_of(network), [], [0, 1, 2], target(), "training")
    assert subsets.gpu_us(set()) == whole.gpu_us(set(), [0, 2])
    assert subsets.touched([0]) == [0, 2]


def test_a_setting_of_the_runtime_touches_every_layer() -> None:
    network = pair()
    subsets = Subsets(network, channels_of(network), [of_choice(ON)], range(3), target(), "training")
    assert subsets.touched([0]) == [0, 1, 2]
    assert subsets.touched([]) == []


def test_the_host_sets_the_pace_unless_the_step_is_recorded() -> None:
    network = resnet50(N=1, runtime=Runtime(framework="pytorch"), mode="inference")
    hosted = on_host(network, target(), "inference")
    assert hosted.is_bound
    subsets = Subsets(
        network, channels_of(network), [of_choice(ON)], range(54), target(), "inference", hosted.host_us
    )  # fmt: skip
    gpu_us = subsets.gpu_us(set())
    assert gpu_us == pytest.approx(hosted.gpu_us)
    assert subsets.step_us(gpu_us, set()) == hosted.host_us
    assert subsets.step_us(gpu_us, {0}) == gpu_us


def test_levers_that_misalign_a_layer_together_with_others_alone_do_not_pay() -> None:
    """Two halves of a concatenation: 62 and 66 are 128 together, 64 and 66 are 130, 64 and 72 are 136."""
    net = Wiring(C=64)
    one, other = net.conv(net.image, 62, 3), net.conv(net.image, 66, 3)
    network = net.network(net.conv(net.concat(one, other), 64))
    channels = channels_of(network)
    widths = {channels.written[0]: 64, channels.written[1]: 72}
    found = [
        Lever(kind="channels", describe="", safety="unsafe", layers=channels.groups[one].layers, group=one, width=width)
        for one, width in widths.items()
    ]
    subsets = Subsets(network, channels, found, range(3), target(), "training")
    assert subsets.gpu_us({0}) > MISALIGNED_US
    assert subsets.gpu_us({1}) > MISALIGNED_US
    assert subsets.gpu_us({0, 1}) < MISALIGNED_US


def test_levers_on_channels_have_to_save_a_share_of_what_they_change() -> None:
    network = pair()
    found = levers(network)
    subsets = Subsets(network, channels_of(network), found, range(3), target(), "training")
    for number, lever in enumerate(found):
        expected = 0.0 if lever.group is None else LEAST_SHARE * subsets.gpu_us(set(), lever.layers)
        assert subsets.least_us([number], set()) == expected
    assert subsets.least_us([], set()) == 0.0
