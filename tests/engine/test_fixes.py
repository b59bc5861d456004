"""What a finding's fix sets: for each of its layers, and for all of them where they share it."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_networks import checked, layer, rulebook

from convlint.engine.changes import with_fix, with_settings
from convlint.model.layer import ConvLayer, Dtype, with_output
from convlint.model.runtime import Runtime
from convlint.report import Fix

WIDEN = {
    "check": "C % 8 == 0", "loss": "fix", "let": '{ wide: "ceil_to(C, 8)" }',
    "fix": '{ describe: "use more channels", set: { C: wide } }',
    "join": '{ share: any, message: "{count} layers are odd: {layers}" }',
}  # fmt: skip


def the_fix(folder: Path, layers: str) -> Fix:
    (finding,) = checked(rulebook(folder, WIDEN), layers).findings
    assert finding.fix is not None
    return finding.fix


@pytest.mark.parametrize(
    ("channels", "shared", "each"),
    [
        ([62], {"C": 64}, [64]),
        ([62, 61], {"C": 64}, [64, 64]),
        ([62, 70, 93], {}, [64, 72, 96]),
    ],
)
def test_joined_layers_keep_what_each_of_them_gets(
    channels: list[int], shared: dict[str, int], each: list[int], tmp_path: Path
) -> None:
    fix = the_fix(tmp_path, "".join(layer(f"l{C}", C=C) for C in channels))
    assert fix.set == shared
    assert [dict(changes) for changes in fix.by_layer] == [{"C": C} for C in each]


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


def test_advice_that_keeps_the_results_and_costs_time_is_not_given(tmp_path: Path) -> None:
    """NCHW on Tensor Cores is transposed, so that a rule for it is refuted; the other way it is heard."""
    rule = {"loss": "fix", "severity": "info"}
    to_nchw = {**rule, "check": 'layout == "NCHW"', "fix": "{ describe: d, safety: safe, set: { layout: \"'NCHW'\" } }"}
    assert checked(rulebook(tmp_path, to_nchw), layer("a")).findings == ()
    unsafe = {**to_nchw, "fix": to_nchw["fix"].replace("safe,", "unsafe,")}
    assert len(checked(rulebook(tmp_path, unsafe), layer("a")).findings) == 1
    to_nhwc = {**rule, "check": 'layout == "NHWC"', "fix": "{ describe: d, safety: safe, set: { layout: \"'NHWC'\" } }"}
    assert len(checked(rulebook(tmp_path, to_nhwc), layer("a", layout="NCHW")).findings) == 1
