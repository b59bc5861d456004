"""What estimates say: sums over the passes that run, and equal ones are equal."""

from __future__ import annotations

import pytest
from convolutions import A100, RUNTIME, conv

from convlint.estimate import LayerEstimate, PassEstimate, estimate_layer
from convlint.model.layer import PASSES


def estimate(**sizes) -> LayerEstimate:
    return estimate_layer(conv(**sizes), A100, RUNTIME, "training")


@pytest.mark.parametrize("calls", [1, 3])
@pytest.mark.parametrize("sizes", [{"N": 55}, {"C": 512, "K": 72}, {"C": 96, "K": 96, "groups": 96}, {"first": True}])
def test_a_layer_is_the_sum_of_its_passes(sizes, calls):
    whole = estimate(calls=calls, **sizes)
    each = whole.passes.values()
    assert whole.time_us == pytest.approx(calls * sum(one.time_us for one in each))
    assert whole.unquantized_us == pytest.approx(calls * sum(one.unquantized_us for one in each))
    assert list(whole.passes) == [which for which in PASSES if which != "dgrad" or not sizes.get("first")]


def test_a_pass_says_in_numbers_what_it_pays_for():
    one = estimate(C=512, K=72, H=28, W=28).passes["fprop"]
    assert isinstance(one, PassEstimate)
    assert one.tflops == pytest.approx(one.flops / one.time_us * 1e-6)
    assert one.arithmetic_intensity == pytest.approx(one.flops / one.bytes)
    assert one.waves == pytest.approx(one.tiles / (A100.sms * one.resident_tiles))
    assert one.last_wave_tiles == one.tiles % (A100.sms * one.resident_tiles)
    assert one.time_us - one.unquantized_us >= max(one.lost_to_tiles_us, one.lost_to_waves_us) > 0


def test_equal_layers_have_equal_estimates():
    assert estimate(N=55) == estimate(N=55)
    assert estimate(N=55) != estimate(N=56)
    assert estimate(calls=2).passes == estimate().passes
