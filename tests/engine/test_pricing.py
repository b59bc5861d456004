"""What changes of single layers come to as things are."""

from __future__ import annotations

import pytest
from wirings import Wiring

from convlint.engine.pricing import Pricer
from convlint.engine.timing import Timing
from convlint.estimate import estimate_layer
from convlint.gpus.gpu import load_gpu
from convlint.model.network import Network
from convlint.rulebook.book import load_rulebook

A100 = load_gpu("a100")
BOOK = load_rulebook()


def network() -> Network:
    net = Wiring(C=64, N=33, size=28)
    return net.network(net.conv(net.conv(net.image, 72, 3), 64, 3, H=None, W=None))


def pricer() -> Pricer:
    net = network()
    estimates = [estimate_layer(layer, A100, net.runtime, "training") for layer in net.layers]
    return Pricer(Timing(net, A100, "training"), estimates)


def test_times_are_those_of_the_estimate() -> None:
    prices = pricer()
    assert prices.estimates[0] is not None
    assert prices.now_us(0) == pytest.approx(prices.estimates[0].time_us)
    after, now = prices.time_after(0, {"K": 128}), prices.now_us(0)
    assert after is not None
    assert now is not None
    assert prices.change_us(0, {"K": 128}) == after - now
    assert prices.at_batch(0, 64) == prices.time_after(0, {"N": 64})
    assert prices.layers[0] is prices.running[0]


def test_a_setting_of_the_runtime_is_no_change_of_a_layer() -> None:
    prices = pricer()
    assert prices.time_after(0, {"runtime.tf32": False}) == prices.now_us(0)


def test_what_is_not_predictable_has_no_price() -> None:
    prices = pricer()
    assert prices.now_us(1) is prices.change_us(1, {"K": 128}) is None
    assert prices.change_us(0, {}) is None
    assert prices.capacity_us(1, BOOK.by_key["CL201"]) is None


@pytest.mark.parametrize(("code", "field"), [("CL203", "lost_to_tiles_us"), ("CL204", "lost_to_waves_us")])
def test_capacity_is_that_of_the_passes_that_the_rule_names(code: str, field: str) -> None:
    prices, rule = pricer(), BOOK.by_key[code]
    assert prices.estimates[0] is not None
    passes = prices.estimates[0].passes
    lost = sum(getattr(one, field) for which, one in passes.items() if which in rule.loss_passes)
    assert prices.capacity_us(0, rule) == pytest.approx(lost)
    assert prices.capacity_us(0, BOOK.by_key["CL102"]) is None
