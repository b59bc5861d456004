"""What a finding's fix sets: for each of its layers, and for all of them where they share it."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_networks import checked, layer, rulebook

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


def test_advice_that_keeps_the_results_and_costs_time_is_not_given(tmp_path: Path) -> None:
    """NCHW on Tensor Cores is transposed, so that a rule for it is refuted; the other way it is heard."""
    rule = {"loss": "fix", "severity": "info"}
    to_nchw = {**rule, "check": 'layout == "NCHW"', "fix": "{ describe: d, safety: safe, set: { layout: \"'NCHW'\" } }"}
    assert checked(rulebook(tmp_path, to_nchw), layer("a")).findings == ()
    unsafe = {**to_nchw, "fix": to_nchw["fix"].replace("safe,", "unsafe,")}
    assert len(checked(rulebook(tmp_path, unsafe), layer("a")).findings) == 1
    to_nhwc = {**rule, "check": 'layout == "NHWC"', "fix": "{ describe: d, safety: safe, set: { layout: \"'NHWC'\" } }"}
    assert len(checked(rulebook(tmp_path, to_nhwc), layer("a", layout="NCHW")).findings) == 1


def test_what_a_fix_changes_on_one_gpu_is_not_said_of_several(tmp_path: Path) -> None:
    """A rule that no GPU changes is checked on the first target alone, and names none."""
    fix = '{ describe: "use C=64", set: { C: "64" } }'
    rules = rulebook(tmp_path, {"check": "C == 64", "fix": fix})
    for gpus, known in (("a100", True), ("k80 h100", False)):
        (finding,) = checked(rules, layer("a", C=62), gpus=gpus).findings
        assert finding.gpu is None
        assert finding.fix is not None
        assert (finding.fix.time_change_us is not None) is known
