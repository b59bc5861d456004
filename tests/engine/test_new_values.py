"""Which values a fix may set."""

from __future__ import annotations

from typing import Any

import pytest

from convlint.engine.new_values import new_value
from convlint.facts.unknown import UNKNOWN, UnknownValue
from convlint.rulebook.expr import ExprError


@pytest.mark.parametrize(
    ("name", "value", "result"),
    [
        ("C", 64, 64),
        ("C", 64.0, 64),
        ("C", 0, 0),  # there is none
        ("C", -1, None),
        ("C", 2**31, 2**31),
        ("C", 2**31 + 1, None),
        ("PadH", -0.5, None),
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
