"""Which values of a file have to be written anew."""

from __future__ import annotations

from mended_specs import network_of

from convlint.fixes.change import Change
from convlint.fixes.stated import Stated
from convlint.model.channel_walk import channels_of

CHAIN = network_of(
    "  - { name: image, op: input, N: 8, C: 3, H: 32, W: 32 }\n  - { name: a, K: 60 }\n  - { name: b, C: 60, K: 16 }\n",
    defaults="kernel_size: 3, padding: 1",
)


def test_values_are_written_where_their_layer_stands() -> None:
    stated = Stated(CHAIN)
    stated.claims({(None, "runtime.tf32"): (True, (0,)), (1, "dtype"): ("fp16", (1,)), (1, "PadH"): (2.0, (2,))})
    assert stated.changes == {
        Change(layer=None, field="runtime.tf32", value=True): (0,),
        Change(layer=2, field="dtype", value="fp16"): (1,),
        Change(layer=2, field="PadH", value=2): (2,),
    }


def test_a_batch_that_is_carried_is_written_where_it_comes_in() -> None:
    stated = Stated(CHAIN)
    stated.claims({(0, "N"): (16, (0, 1)), (1, "N"): (16, (0, 1))})
    assert stated.changes == {Change(layer=0, field="N", value=16): (0, 1)}


def test_widths_are_written_wherever_they_are_stated() -> None:
    stated, channels = Stated(CHAIN), channels_of(CHAIN)
    group = channels.written[0]
    by_layer = channels.changes(CHAIN.layers, {group: 64})
    stated.widths(channels, {group: 64}, {group: (4, 2)}, by_layer)
    expected = {Change(layer=1, field="K", value=64): (4, 2), Change(layer=2, field="C", value=64): (4, 2)}
    assert stated.changes == expected
    stated.claims({(0, "K"): (64, (2, 5))})
    assert stated.changes[Change(layer=1, field="K", value=64)] == (4, 2, 5)
