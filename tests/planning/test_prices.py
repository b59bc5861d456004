"""Sizes, times, parameters and FLOPs of layers at other widths."""

from __future__ import annotations

from msgspec.structs import replace
from planned import priced
from random_networks import tangle
from wirings import Wiring, mobilenet_v2

from convlint.engine.networks import estimated
from convlint.estimate.memory import parameters
from convlint.gpus.gpu import load_gpu
from convlint.model.channel_walk import channels_of
from convlint.model.gemm import flops
from convlint.planning.prices import Prices

A100 = load_gpu("a100")


def test_sizes_are_those_of_the_widened_network() -> None:
    for seed in range(10):
        network = tangle(seed)
        channels = channels_of(network)
        widths = {number: group.width + 8 for number, group in enumerate(channels.groups) if not group.fixed}
        wide = channels.widened(network, widths)
        prices = priced(network)
        for index, layer in enumerate(wide.layers):
            assert prices.sizes(index, widths) == (layer.C, layer.K), (seed, layer.name)
            assert prices.sized(index, layer.C or 0, layer.K or 0).groups == layer.groups


def test_a_channel_multiplier_is_kept() -> None:
    net = Wiring(C=64)
    x = net.conv(net.image, 44, 3)
    network = net.network(net.conv(net.conv(x, 88, 3, groups=44), 64))
    prices, group = priced(network), channels_of(network).written[0]
    assert prices.sizes(1, {group: 48}) == (48, 96)
    assert prices.sizes(2, {group: 48}) == (96, 64)


def test_costs_are_the_estimates() -> None:
    network = mobilenet_v2(1.4)
    prices = priced(network)
    estimates = estimated(network, network.layers, A100, "training").estimates
    for index, (layer, estimate) in enumerate(zip(network.layers, estimates, strict=True)):
        cost = prices.cost(index, layer.C or 0, layer.K or 0)
        assert estimate is not None
        assert cost.time_us == estimate.time_us
        assert (cost.parameters, cost.flops) == (parameters([layer]), flops(layer))


def test_the_faster_layout_of_a_layer_counts() -> None:
    net = Wiring(C=96)
    network = net.network(net.conv(net.image, 96, 3, groups=4))
    one = Prices(network.layers, {0: "NCHW"}, channels_of(network), A100, network.runtime, "training")
    nhwc, nchw = priced(network), priced(replace(network, layers=(replace(network.layers[0], layout="NCHW"),)))
    assert nchw.cost(0, 96, 96).time_us < nhwc.cost(0, 96, 96).time_us
    assert one.cost(0, 96, 96) == nchw.cost(0, 96, 96)
    assert one.prefers_alternative(0, 96, 96)
    assert not nhwc.prefers_alternative(0, 96, 96)


def test_what_cannot_run_has_no_time() -> None:
    net = Wiring(C=64)
    network = net.network(net.conv(net.image, 64, 3, N=None))
    assert priced(network).cost(0, 64, 64).time_us == float("inf")
