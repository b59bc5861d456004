"""What becomes of a group of channels of which several fixes want something."""

from __future__ import annotations

import pytest

from convlint.fixes.widths import agreed, group_of, obstacle
from convlint.model.channel_walk import channels_of
from convlint.model.channels import THE_INPUT, ChannelGroup
from convlint.readers.spec.reader import read_spec


@pytest.mark.parametrize(
    ("width", "multiple_of", "wanted", "expected"),
    [
        (60, 1, [64], 64),
        (60, 1, [64, 128], 128),
        (60, 1, [128, 64], 128),
        (60, 4, [64], 64),
        (60, 6, [64], 72),  # a multiple of 8 as well as of 6
        (60, 60, [64], None),  # 120 channels are another network
        (60, 7, [64], 70),
        (130, 1, [128], 128),
        (130, 1, [128, 192], 128),  # the first of those that contradict each other
        (130, 1, [192, 128], 192),
        (130, 5, [128], None),
    ],
)
def test_the_width_that_satisfies_all(width: int, multiple_of: int, wanted: list[int], expected: int | None) -> None:
    group = ChannelGroup(width=width, multiple_of=multiple_of)
    assert agreed(group, dict.fromkeys(wanted)) == expected


def test_what_cannot_change_says_why() -> None:
    assert obstacle(ChannelGroup(width=60), [64]) == ""
    assert obstacle(ChannelGroup(width=60, fixed=("fc depends on it",)), [64]) == "fc depends on it"
    assert obstacle(ChannelGroup(width=3, fixed=(THE_INPUT,)), [4]) == ""  # zeros can be added
    assert obstacle(ChannelGroup(width=3, fixed=(THE_INPUT,)), [4, 2]) == THE_INPUT


NET = """\
version: 1
defaults: { N: 8, kernel_size: 3, padding: 1 }
layers:
  - { name: image, op: input, C: 3, H: 32, W: 32 }
  - { name: a, K: 60 }
  - { name: dw, K: 120, groups: 60 }
  - { name: b, K: 30 }
  - { name: join, op: concat, inputs: [a, b] }
  - { name: c, K: 8 }
"""


def test_the_group_behind_a_field() -> None:
    network, _ = read_spec(NET, "net.yaml")
    assert network is not None
    channels = channels_of(network)
    own = channels.written[0]

    def of(index: int, field: str, value: int) -> tuple[int, int] | None:
        return group_of(channels, network.layers[index], index, field, value)

    assert of(0, "K", 64) == of(1, "C", 64) == of(1, "K", 128) == of(2, "C", 128) == (own, 64)
    assert of(1, "K", 126) == (own, 63)
    assert of(1, "K", 127) is None  # two for each channel
    assert of(3, "C", 96) is None  # of two groups
