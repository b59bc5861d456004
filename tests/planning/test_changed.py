"""The network with some of B: what is connected to a layer that changes follows."""

from __future__ import annotations

from msgspec.structs import replace
from promised import followed, promised
from wirings import Wiring, resnet50

from convlint.model.channel_walk import channels_of
from convlint.planning.changed import changed, group_of
from convlint.planning.steps import NONE, Members

BAD = (60, 124, 250, 500)


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
    assert all(group_of(promise, lever) is None for lever in promise.optimum.levers.values())
