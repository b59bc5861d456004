"""Single changes of a plan, in words and applied."""

from __future__ import annotations

from planned import RULEBOOK, target
from wirings import Wiring, resnext50

from convlint.model.channel_walk import channels_of
from convlint.model.layer import Dtype
from convlint.model.network import Network
from convlint.planning.advice import Adviser
from convlint.planning.levers import Lever, applied, levers_of
from convlint.planning.settings import settings
from convlint.planning.wishes import Wishes


def pair(dtype: str = "fp32", layout: str = "NCHW") -> Network:
    net = Wiring(C=3, dtype=dtype, layout=layout)  # type: ignore[arg-type]
    return net.network(net.conv(net.conv(net.conv(net.image, 60, 3), 60, 3), 64))


def levers(
    network: Network, widths: dict[int, int], *, all_of_it: bool = True, own: tuple[int, ...] = ()
) -> list[Lever]:
    ways = settings(network, Adviser(RULEBOOK.of_networks), target(), "training", Wishes())
    setting = max(ways, key=lambda one: len(one.choices)) if all_of_it else ways[0]
    return levers_of(network, setting, own, widths, channels_of(network))


def test_each_choice_and_each_group_is_one() -> None:
    network = pair()
    written = channels_of(network).written
    found = levers(network, {written[0]: 64, written[1]: 64})
    assert [lever.kind for lever in found] == ["dtype", "layout", "channels", "channels"]
    assert [lever.layers for lever in found] == [(0, 1, 2), (0, 1, 2), (0, 1), (1, 2)]
    assert found[2].describe == "64 channels for 60: K of conv0, C of conv1"
    assert [lever.safety for lever in found] == ["unsafe", "safe", "unsafe", "unsafe"]
    assert "mixed precision" in found[0].describe


def test_zeros_in_the_input_change_the_weights() -> None:
    network = pair("fp16", "NHWC")
    (image,) = [number for number, group in enumerate(channels_of(network).groups) if group.inputs]
    (lever,) = levers(network, {image: 4})
    assert lever.safety == "unsafe"
    assert lever.fills_up
    assert lever.describe == "fill the input up to 4 channels with zeros, in it and in the weights of conv0"


def test_layers_that_keep_their_layout_are_no_part_of_the_change() -> None:
    nchw = resnext50(6, layout="NCHW")
    grouped = tuple(index for index, layer in enumerate(nchw.layers) if layer.groups > 1)
    (layout,) = levers(nchw, {}, own=grouped)
    assert layout.choice is not None
    assert layout.choice.value == "NHWC"
    assert set(layout.layers).isdisjoint(grouped)
    assert len(layout.layers) + len(grouped) == len(nchw.layers)


def test_single_layers_change_layout_alone() -> None:
    network = resnext50(6)
    grouped = tuple(index for index, layer in enumerate(network.layers) if layer.groups > 1)
    (layout,) = levers(network, {}, all_of_it=False, own=grouped)
    assert layout.layers == grouped
    assert "keep this layer in NCHW" in layout.describe


def test_applied_together_they_make_the_network() -> None:
    network = pair()
    channels = channels_of(network)
    found = levers(network, {channels.written[0]: 64})
    changed = applied(network, found, channels)
    assert [(layer.C, layer.K) for layer in changed.layers] == [(3, 64), (64, 60), (60, 64)]
    assert {(layer.dtype, layer.layout) for layer in changed.layers} == {(Dtype.fp16, "NHWC")}
    assert applied(network, [], channels) == network
