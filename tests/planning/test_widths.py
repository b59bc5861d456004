"""Which widths a group may get."""

from __future__ import annotations

import pytest
from wirings import Wiring

from convlint.model.channel_walk import channels_of
from convlint.model.network import Network
from convlint.planning import widths
from convlint.planning.widths import candidates, narrower, needed


def of_layer(network: Network, index: int, *alignments: int) -> tuple[int, ...] | None:
    channels = channels_of(network)
    return candidates(network, channels, alignments or (8,)).get(channels.written[index])


def between(width: int, C: int = 64) -> Network:
    net = Wiring(C=C)
    return net.network(net.conv(net.conv(net.image, width, 3), 64))


@pytest.mark.parametrize(
    ("width", "alignments", "expected"),
    [
        (60, (8,), (60, 64)),
        (60, (4, 8), (60, 64)),
        (58, (4, 8), (58, 60, 64)),
        (64, (8,), None),  # 128 is more than half as wide again
        (96, (8,), (96, 128)),
        (90, (8,), (90, 96, 128)),
        (85, (8,), (85, 88, 96)),  # 127.5 is the most
        (86, (8,), (86, 88, 96, 128)),
        (3, (8,), (3, 8)),  # what the vectors want is allowed however much it is
        (512, (1,), None),
        (100, (1,), (100, 128)),
    ],
)
def test_today_is_first_and_wider_ones_follow(
    width: int, alignments: tuple[int, ...], expected: tuple[int, ...] | None
) -> None:
    assert of_layer(between(width), 0, *alignments) == expected


@pytest.mark.parametrize(
    ("C", "expected"), [(3, (3, 4, 8)), (4, (4, 8)), (6, (6, 8)), (1, (1, 4, 8)), (8, None), (64, None)]
)
def test_the_input_is_filled_up_to_what_kernels_take(C: int, expected: tuple[int, ...] | None) -> None:
    network = between(64, C)
    channels = channels_of(network)
    (image,) = [number for number, group in enumerate(channels.groups) if group.inputs]
    assert candidates(network, channels, (8,)).get(image) == expected


def test_what_is_fixed_has_no_choice() -> None:
    network = between(60)
    assert of_layer(network, 1) is None  # handed out
    net = Wiring()
    assert of_layer(net.network(net.conv(net.image, 21, head=True)), 0) is None


def test_groups_keep_whole_widths_and_may_get_powers_of_two() -> None:
    net = Wiring(C=64)
    x = net.conv(net.conv(net.image, 192, 1), 192, 3, groups=32)
    network = net.network(net.conv(x, 64))
    assert of_layer(network, 0) == (192, 256)  # 6 of each, and 8
    assert all(width % 32 == 0 for width in of_layer(network, 1) or ())


def test_a_concatenation_with_what_cannot_change_is_made_whole() -> None:
    net = Wiring(C=2)
    x = net.conv(net.image, 61, 3)
    flow = net._step("reshape", (net.image,), 2, net.size(net.image))
    network = net.network(net.conv(net.concat(x, flow), 64))
    assert 62 in (of_layer(network, 0) or ())  # with the 2 beside it, 64


def test_squeezed_maps_are_not_worth_it() -> None:
    net = Wiring(C=64)
    x = net.conv(net.image, 64, 3)
    gate = net.conv(net.conv(net.resize(x, 1), 10), 64)
    network = net.network(net.conv(net.add(x, gate), 64))
    assert of_layer(network, 1) is None


def test_very_many_ways_are_thinned_out() -> None:
    net = Wiring(C=64)
    x = net.image
    for _ in range(30):
        x = net.conv(x, 90, 3)
    network = net.network(net.conv(x, 64))
    channels = channels_of(network)
    free = candidates(network, channels, (4, 8))
    assert set(free.values()) == {(90, 92, 96, 128)}
    assert widths.fewer(free, channels, 8) == free
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(widths, "MOST_PRICED", 300)
        assert set(widths.fewer(free, channels, 8).values()) == {(90, 96, 128)}
        patch.setattr(widths, "MOST_PRICED", 200)
        assert set(widths.fewer(free, channels, 8).values()) == {(90, 96)}


@pytest.mark.parametrize(
    ("width", "alignments", "expected"), [(60, (8,), 64), (58, (4, 8), 64), (64, (8,), 64), (96, (4, 8), 96)]
)
def test_what_only_fills_tiles_is_more_than_needed(width: int, alignments: tuple[int, ...], expected: int) -> None:
    network = between(width)
    channels = channels_of(network)
    assert needed(channels.written[0], network, channels, alignments) == expected
    (image,) = [number for number, group in enumerate(channels.groups) if group.inputs]
    assert needed(image, between(64, 3), channels_of(between(64, 3)), alignments) == 8


@pytest.mark.parametrize(
    ("width", "expected"),
    [(65, (64,)), (72, (64,)), (74, None), (392, (384,)), (330, (320,)), (64, None), (130, (128,)), (31, None)],
)
def test_tiles_just_below_are_near(width: int, expected: tuple[int, ...] | None) -> None:
    network = between(width)
    channels = channels_of(network)
    assert narrower(network, channels).get(channels.written[0]) == expected


def test_what_is_fixed_gets_no_narrower() -> None:
    network = between(65)
    channels = channels_of(network)
    assert narrower(network, channels).keys() == {channels.written[0]}
