"""Times of a network at settings of its levers: what the check of the changed network says."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from wirings import Wiring, resnext50

from convlint.engine.timing import Timing, as_laid_out, key_of
from convlint.estimate import time_us
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import Dtype, Layout
from convlint.model.network import Network
from convlint.model.runtime import Runtime

A100 = load_gpu("a100")


def pair(one: Layout = "NHWC", other: Layout = "NHWC", *, dtypes: str = "fp16 fp16", **edge: Any) -> Network:
    net = Wiring(C=64, N=32, size=28)
    network = net.network(net.conv(net.conv(net.image, 64, 3), 64, 3))
    layers = tuple(
        replace(layer, layout=layout, dtype=Dtype(dtype))
        for layer, layout, dtype in zip(network.layers, (one, other), dtypes.split(), strict=True)
    )
    return replace(network, layers=layers, edges=tuple(replace(each, **edge) for each in network.edges))


@pytest.mark.parametrize(
    ("network", "copied"),
    [
        (pair(), False),
        (pair("NCHW", "NHWC"), True),
        (pair("NHWC", "NCHW"), True),
        (pair("NHWC", "auto"), False),
        (pair("NHWC", "NCHW", copied=False), False),  # the reader knows that it is not
        (pair(dtypes="fp32 fp16"), True),
        (pair(dtypes="fp32 tf32"), False),  # stored alike
    ],
)
def test_what_arrives_otherwise_is_copied(network: Network, copied: bool) -> None:
    assert [layer.copies_input for layer in as_laid_out(network)] == [False, copied]
    timing = Timing(network, A100, "training")
    alone = time_us(network.layers[1], A100, network.runtime, "training")
    assert alone is not None
    assert ((timing.times(timing.now)[1] or 0.0) > alone) is copied


def test_a_framework_that_chooses_the_layout_makes_no_copies() -> None:
    network = replace(pair("NCHW", "NHWC"), runtime=Runtime(framework="tensorflow"))
    assert {(layer.layout, layer.copies_input) for layer in as_laid_out(network)} == {("auto", False)}


def test_what_a_reader_saw_copied_is_copied_in_nhwc_alone() -> None:
    network = pair()
    seen = (network.layers[0], replace(network.layers[1], copies_input=True))
    assert as_laid_out(replace(network, layers=seen))[1].copies_input
    turned = tuple(replace(layer, layout="NCHW") for layer in seen)
    assert not as_laid_out(replace(network, layers=turned))[1].copies_input


def test_a_setting_costs_what_the_network_costs_that_has_it() -> None:
    network = resnext50(6, dtype="fp32", layout="NCHW")
    timing = Timing(network, A100, "training")
    grouped = [index for index, layer in enumerate(network.layers) if layer.groups > 1]
    layers = tuple(
        replace(layer, dtype=Dtype.fp16, layout="NCHW" if index in grouped else "NHWC")
        for index, layer in enumerate(network.layers)
    )
    setting = timing.setting(layers, network.runtime)
    other = replace(network, layers=layers)
    assert setting.running == as_laid_out(other)
    again = Timing(other, A100, "training")
    assert timing.times(setting) == again.times(again.now)
    assert sum(layer.copies_input for layer in setting.running) >= len(grouped)


def test_sizes_change_their_layers_alone() -> None:
    network = pair()
    timing = Timing(network, A100, "training")
    plain = timing.gpu_us(timing.now, {})
    changed = timing.gpu_us(timing.now, {1: {"K": 128}})
    one, two = (timing.time_us(timing.now, 1, changes) or 0.0 for changes in ({}, {"K": 128}))
    assert changed - plain == pytest.approx(two - one)
    assert timing.sum_us(timing.now, (0, 1), {1: {"K": 128}}) == pytest.approx(changed)


def test_the_ideal_is_no_longer_than_the_time() -> None:
    timing = Timing(pair(), A100, "training")
    ideal, now = timing.ideal_us(timing.now, 1), timing.time_us(timing.now, 1)
    assert ideal is not None
    assert now is not None
    assert 0 < ideal <= now


def test_int8_has_no_time_where_training_is_asked_for() -> None:
    network = replace(pair(dtypes="int8 int8"), mode="training")
    timing = Timing(network, A100, "training")
    assert timing.times(timing.now) == [None, None]
    assert timing.ideal_us(timing.now, 0) is timing.estimate(timing.now, 0) is None
    assert timing.gpu_us(timing.now, {}) == 0.0


def test_equal_changes_have_one_key() -> None:
    assert key_of({"C": 1, "K": 2}) == key_of({"K": 2, "C": 1}) != key_of({"K": 2})
    assert key_of({}) == ()
