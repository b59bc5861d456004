"""What changes with the width of a group."""

from __future__ import annotations

from fractions import Fraction

from convlint.model.channel_walk import channels_of
from convlint.model.channels import ChannelGroup, Reader
from convlint.model.layer import ConvLayer
from convlint.model.network import Edge, Network
from convlint.model.operation import Operation


def test_a_group_names_all_its_layers_in_order() -> None:
    group = ChannelGroup(width=8, writers=(3, 1), readers=(Reader(2, Fraction(1)), Reader(1, Fraction(1))))
    assert group.layers == (1, 2, 3)
    assert not group.only_input


def test_edges_bring_what_the_layer_then_reads() -> None:
    network = Network(
        path="x",
        layers=(ConvLayer(name="a", C=3, K=60), ConvLayer(name="b", C=60, K=8), ConvLayer(name="c", C=8, K=8)),
        edges=(
            Edge(consumer=1, producers=(0,), source="a", C=60, H=None, W=None),
            Edge(consumer=2, producers=(1,), source="b", C=None, H=None, W=None),
        ),
        operations=(
            Operation(kind="input", C=3),
            Operation(kind="conv", layer=0, inputs=(0,), C=60),
            Operation(kind="conv", layer=1, inputs=(1,), C=8),
            Operation(kind="conv", layer=2, inputs=(2,), C=8),
        ),
    )
    channels = channels_of(network)
    wide = channels.widened(network, {channels.written[0]: 64, channels.written[1]: 16})
    assert [edge.C for edge in wide.edges] == [64, None]
    assert [(layer.C, layer.K) for layer in wide.layers] == [(3, 64), (64, 16), (16, 8)]
