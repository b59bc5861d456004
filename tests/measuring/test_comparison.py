"""Predicted beside measured."""

from __future__ import annotations

from math import sqrt

import pytest
from measured import row_of

from convlint.engine.check import Target
from convlint.gpus.gpu import load_gpu
from convlint.measuring.comparison import Compared, agreement, compared
from convlint.measuring.wanted import wanted
from convlint.readers.spec.reader import read_spec
from convlint.rulebook.book import load_rulebook

A100 = Target(label="a100", gpu=load_gpu("a100"))
SPEC = """\
version: 1
defaults: { N: 8, dtype: fp16, layout: NHWC, kernel_size: 3, padding: 1 }
layers:
  - { name: a, C: 64, H: 32, W: 32, K: 64, first: false }
"""


def pair(predicted: float | None, measured: float | None) -> Compared:
    return Compared(layer="a", which="fprop", predicted_us=predicted, measured_us=measured)


def test_each_pass_has_its_prediction_its_timing_or_the_reason_for_none() -> None:
    network, _ = read_spec(SPEC, "net.yaml")
    assert network is not None
    found = wanted(network, load_rulebook(), A100, "training")
    fprop, dgrad, wgrad = (part.options[0] for part in found.parts)
    some = compared(["a"], found.parts, found.estimates, {fprop: row_of(fprop, 40.0, 0.03, 12)}, {dgrad: "no kernel"})
    estimate = found.estimates[0]
    assert estimate is not None
    assert [(one.layer, one.which) for one in some] == [("a", "fprop"), ("a", "dgrad"), ("a", "wgrad")]
    assert [one.predicted_us for one in some] == [each.time_us for each in estimate.passes.values()]
    assert [(one.measured_us, one.spread, one.runs, one.reason) for one in some] == [
        (40.0, 0.03, 12, ""), (None, 0.0, 0, "no kernel"), (None, 0.0, 0, ""),
    ]  # fmt: skip
    assert some[0].ratio == pytest.approx(estimate.passes["fprop"].time_us / 40.0)
    assert some[1].ratio is None
    assert wgrad not in {fprop, dgrad}


def test_a_bias_is_told_apart_from_what_is_left_of_the_error() -> None:
    found = agreement([pair(200.0, 100.0), pair(400.0, 100.0), pair(200 * sqrt(2), 100.0), pair(None, 1.0)])
    assert found is not None
    assert (found.count, found.bias) == (3, pytest.approx(2 * sqrt(2)))
    assert found.error == pytest.approx(2 * sqrt(2) - 1)
    assert found.error_unbiased == pytest.approx(1 - 1 / sqrt(2))


def test_without_a_pair_there_is_no_agreement() -> None:
    assert agreement([pair(None, 1.0), pair(2.0, None)]) is None
