"""A layer and a runtime after a fix."""

from __future__ import annotations

import pytest

from convlint.engine.changes import with_fix, with_settings
from convlint.model.layer import ConvLayer, Dtype, with_output
from convlint.model.runtime import Runtime

CONV = with_output(
    ConvLayer(name="a", N=1, C=8, H=9, W=9, K=8, R=3, S=3, PadH=1, PadW=1, PadH_end=1, PadW_end=1, dtype=Dtype.fp32)
)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {"P": 9, "Q": 9}),
        ({"runtime.tf32": True}, {"C": 8}),
        ({"C": 16, "layout": "NHWC"}, {"C": 16, "layout": "NHWC", "P": 9}),
        ({"dtype": "fp16"}, {"dtype": Dtype.fp16}),
        ({"R": 5}, {"R": 5, "P": 7, "Q": 9}),
        ({"PadH": 2}, {"PadH": 2, "PadH_end": 2, "P": 11}),  # one side of a padding that is even means both
        ({"PadH": 2, "PadH_end": 1}, {"PadH": 2, "PadH_end": 1, "P": 10}),
        ({"P": 5}, {"declared_P": 5, "P": 9}),
    ],
)
def test_a_layer_after_a_fix(changes: dict[str, int | str | bool], expected: dict[str, object]) -> None:
    after = with_fix(CONV, changes)
    assert {name: getattr(after, name) for name in expected} == expected


def test_a_runtime_after_a_fix() -> None:
    assert with_settings(Runtime(), {"runtime.cudnn_benchmark": True, "C": 8}) == Runtime(cudnn_benchmark=True)
    assert with_settings(Runtime(), {"C": 8}) == Runtime()
