"""Sizes, times, parameters and FLOPs of layers at other widths."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from planned import priced
from random_networks import tangle
from wirings import Wiring, mobilenet_v2

from convlint.engine.networks import estimated
from convlint.estimate.memory import parameters
from convlint.gpus.gpu import load_gpu
from convlint.model.channel_walk import channels_of
from convlint.model.gemm import flops
from convlint.model.runtime import Runtime
from convlint.planning.prices import MISALIGNED_US, NARROWING, Bounds, Prices

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


def bounded(needed: int, parameters: float = 1.0, flops: float = 0.0) -> Prices:
    net = Wiring(C=64)
    network = net.network(net.conv(net.conv(net.image, 96, 1), 64))
    channels = channels_of(network)
    bounds = Bounds({channels.written[0]: needed}, parameters, flops)
    return Prices(network.layers, {}, channels, A100, network.runtime, "training", bounds)


@pytest.mark.parametrize(
    ("C", "K", "worse"),
    [(64, 96, False), (64, 100, True), (60, 96, True), (72, 104, False), (68, 96, True)],
)
def test_no_channels_get_a_worse_multiple_of_a_vector(C: int, K: int, worse: bool) -> None:
    prices = bounded(200)
    assert prices.is_misaligned(0, C, K) is worse
    assert (prices.cost(0, C, K).time_us >= MISALIGNED_US) is worse


def test_what_was_no_multiple_may_be_any() -> None:
    net = Wiring(C=62)
    prices = priced(net.network(net.conv(net.image, 61)))
    assert not prices.is_misaligned(0, 62, 63)
    assert prices.is_misaligned(0, 63, 61)


def test_what_is_wider_than_needed_costs_what_it_adds() -> None:
    prices, free = bounded(104, parameters=2.0), bounded(128, parameters=2.0)
    for K in (96, 104):
        assert prices.cost(0, 64, K) == free.cost(0, 64, K)
    wide, plain = prices.cost(0, 64, 128), free.cost(0, 64, 128)
    assert wide.time_us == pytest.approx(plain.time_us + 2.0 * 64 * (128 - 104))
    assert wide[1:] == plain[1:]
    work = bounded(104, parameters=0.0, flops=1e-3).cost(0, 64, 128)
    assert work.time_us == pytest.approx(plain.time_us + 1e-3 * (plain.flops - plain.flops * 104 / 128))


@pytest.mark.parametrize(("K", "kept"), [(88, 88 / 96), (80, 80 / 96)])
def test_what_is_narrower_has_to_save_more_than_the_work_it_takes_away(K: int, kept: float) -> None:
    prices = bounded(96)
    now = prices.cost(0, 64, 96).time_us
    plain = Prices(prices.layers, {}, prices.channels, A100, Runtime(), "training")
    expected = MISALIGNED_US if K % 8 else NARROWING * (1 - kept) * now
    assert prices.cost(0, 64, K).time_us == pytest.approx(plain.cost(0, 64, K).time_us + expected)


def test_a_narrower_depthwise_layer_does_as_much_less_work_as_it_has_fewer_channels() -> None:
    net = Wiring(C=64)
    x = net.conv(net.conv(net.image, 72, 1), 72, 3, groups=72)
    network = net.network(net.conv(x, 64, 1))
    channels = channels_of(network)
    bounds = Bounds({}, 0.0, 0.0)
    free, bound = (
        Prices(network.layers, {}, channels, A100, network.runtime, "training", *given) for given in ((), (bounds,))
    )
    now, then = free.cost(1, 72, 72), free.cost(1, 64, 64)
    assert then.flops / now.flops == pytest.approx(64 / 72)
    toll = bound.cost(1, 64, 64).time_us - then.time_us
    assert toll == pytest.approx(NARROWING * (1 - 64 / 72) * bound.cost(1, 72, 72).time_us)
