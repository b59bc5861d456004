"""Which values a fix may set."""

from __future__ import annotations

from typing import Any

import pytest

from convlint.engine.new_values import impossible, new_value
from convlint.facts.unknown import UNKNOWN, UnknownValue
from convlint.model.layer import ConvLayer, with_output
from convlint.report import Scalar
from convlint.rulebook.expr import ExprError


@pytest.mark.parametrize(
    ("name", "value", "result"),
    [
        ("C", 64, 64),
        ("C", 64.0, 64),
        ("C", 0, 0),  # there is none
        ("C", 2**31, 2**31),
        ("C", 2**31 + 1, None),
        ("dtype", "fp16", "fp16"),
        ("layout", "auto", "auto"),
        ("bias", False, False),
        ("runtime.deterministic", True, True),
        ("runtime.gpu_clock", "boost", "boost"),
        ("runtime.xla_gpu_autotune_level", -1, -1),  # no size
    ],
)
def test_what_a_layer_can_take(name: str, value: Any, result: Any) -> None:
    found = new_value(name, value)
    assert (found, type(found)) == (result, type(result))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("dtype", "fp61", "sets dtype to 'fp61', which is not one of fp64, fp32, tf32, fp16, bf16, fp8, int8"),
        ("layout", "nhwc", "sets layout to 'nhwc', which is not one of NCHW, NHWC, auto"),
        ("C", 1.5, "sets C to 1.5, which is no whole number"),
        ("C", -1, "sets C to -1, which no layer can have"),
        ("PadH", -0.5, "sets PadH to -0.5, which no layer can have"),
    ],
)
def test_a_wrong_rule_is_told(name: str, value: Any, message: str) -> None:
    with pytest.raises(ExprError) as caught:
        new_value(name, value)
    assert caught.value.message == message


@pytest.mark.parametrize("name", ["C", "dtype", "runtime.tf32"])
def test_what_is_not_known_is_not_set(name: str) -> None:
    with pytest.raises(UnknownValue):
        new_value(name, UNKNOWN)


def layer(**sizes: Any) -> ConvLayer:
    values = {"N": 8, "C": 62, "H": 28, "W": 28, "K": 60, "R": 3, "S": 3} | sizes
    return with_output(ConvLayer(name="a", **values))


@pytest.mark.parametrize(
    ("sizes", "changes", "problem"),
    [
        ({}, {"C": 64}, None),
        ({}, {"dtype": "fp16", "layout": "NHWC", "N": 0}, None),  # which shape nothing
        ({}, {"groups": 2}, None),
        ({}, {"groups": 4}, "sets groups=4, but groups=4 must divide C=62 and K=60"),
        ({"groups": 2}, {"C": 63}, "sets C=63, but groups=2 must divide C=63 and K=60"),
        ({"groups": 4}, {"C": 63}, None),  # nothing divides as it is
        ({"groups": 4}, {"C": 64}, None),
        ({"C": None}, {"groups": 4}, None),  # as far as it is known
        ({"C": None}, {"groups": 7}, "sets groups=7, but groups=7 must divide C=None and K=60"),
        ({}, {"R": 28}, None),
        ({}, {"R": 29}, "sets R=29, which leaves no output"),
        ({}, {"DilH": 14, "DilW": 2}, "sets DilH=14, DilW=2, which leaves no output"),
        ({"H": 2}, {"S": 40}, None),  # there is none as it is
        ({"H": None}, {"R": 99}, None),
    ],
)
def test_what_no_layer_can_be(sizes: dict[str, Any], changes: dict[str, Scalar], problem: str | None) -> None:
    assert impossible(changes, layer(**sizes)) == problem
