"""What a finding's fix sets: for each of its layers, and for all of them where they share it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from small_networks import checked, layer, rulebook

from convlint.engine import fixes
from convlint.engine.fixes import is_refuted
from convlint.engine.hits import Flaw, Hit, Price
from convlint.model.location import Location
from convlint.report import Fix, Severity
from convlint.rulebook.book import load_rulebook

WIDEN = {
    "check": "C % 8 == 0", "loss": "fix", "let": '{ wide: "ceil_to(C, 8)" }',
    "fix": '{ describe: "use more channels", set: { C: wide } }',
    "join": '{ share: any, message: "{count} layers are odd: {layers}" }',
}  # fmt: skip


def the_fix(folder: Path, layers: str, rule: dict[str, str] = WIDEN) -> Fix:
    (finding,) = checked(rulebook(folder, rule), layers).findings
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


FIX = Fix(describe="d", safety="safe", set={"C": 64}, time_change_us=1.0)


@pytest.mark.parametrize(
    ("loss", "severity", "advised", "fix", "refuted"),
    [
        ("fix", "info", False, FIX, True),
        ("fix", "info", True, FIX, False),  # with others it pays
        ("fix", "warning", False, FIX, False),
        ("fix", "error", False, FIX, False),
        ("none", "info", False, FIX, False),  # it is not about time
        ("fix", "info", False, replace(FIX, safety="unsafe"), False),
        ("fix", "info", False, replace(FIX, time_change_us=0.0), False),
        ("fix", "info", False, replace(FIX, time_change_us=None), False),
        ("fix", "info", False, None, False),
    ],
)
def test_what_a_prediction_refutes(
    loss: str, severity: Severity, advised: bool, fix: Fix | None, refuted: bool, tmp_path: Path
) -> None:
    (rule,) = rulebook(tmp_path, {"loss": loss, "fix": '{ describe: d, set: { C: "64" } }'}).rules
    flaw = Flaw(rule=rule, case=rule.cases[-1], places=(), message="m", set={"C": 64})
    hit = Hit(
        flaw=flaw, indices=(0,), names=("a",), location=Location(path="a"), message="m", sets=(flaw.set,), other={},
        severity=severity, price=Price(advised=advised),
    )  # fmt: skip
    assert is_refuted(hit, fix) is refuted


def test_what_a_fix_changes_on_one_gpu_is_not_said_of_several(tmp_path: Path) -> None:
    """A rule that no GPU changes is checked on the first target alone, and names none."""
    rules = rulebook(tmp_path, {"check": "N == 108", "fix": '{ describe: "use N=108", set: { N: "108" } }'})
    for gpus, known in (("a100", True), ("a100 k80", False)):
        (finding,) = checked(rules, layer("a", N=55, C=4096, H=16, W=16, K=256), gpus=gpus, mode="inference").findings
        assert finding.gpu is None
        assert finding.fix is not None
        assert finding.fix.set == {"N": 108}
        assert (finding.fix.time_change_us is not None) is known


# --- what each alternative changes

BETWEEN = {
    "check": "K % 64 == 0", "loss": "tile", "join": '{ share: any, message: "{layers}" }',
    "fix": '{ describe: "multiples of 64", set: { K: "ceil_to(K, 64)" }, or: { K: "floor_to(K, 64)" } }',
}  # fmt: skip


def test_alternatives_say_what_they_do_to_time_and_work(tmp_path: Path) -> None:
    """The nearer one is named first; one that takes work away is no fix. Work is that of all layers."""
    fix = the_fix(tmp_path, layer("a", K=72) + layer("b", K=72), BETWEEN)
    assert (fix.set, fix.states_effect, fix.applicable) == ({"K": 128}, True, False)
    found = re.fullmatch(
        r"multiples of 64: K=64 \(time ([+-]\d+) %, work -11 %\) or K=128 \(time ([+-]\d+) %, work \+78 %\)",
        fix.describe,
    )
    assert found is not None
    assert int(found[1]) < int(found[2])


def test_work_is_only_told_where_it_changes(tmp_path: Path) -> None:
    layout = {
        "check": 'layout == "NHWC"', "loss": "fix",
        "fix": "{ describe: d, set: { layout: \"'NHWC'\" }, or: { runtime.tf32: true } }",
    }  # fmt: skip
    fix = the_fix(tmp_path, layer("a", layout="NCHW"), layout)
    assert fix.describe == "d"  # of a setting, what B has is the fix
    assert fix.applicable
    assert (fix.time_change_us or 0.0) < 0


def test_without_a_prediction_alternatives_are_named_alone(tmp_path: Path) -> None:
    fix = the_fix(tmp_path, layer("a", K=72, H=None), BETWEEN)
    assert fix.describe == "multiples of 64: K=64 or K=128"


@pytest.mark.parametrize(("most", "told"), [(2, True), (1, False)])
def test_what_many_layers_would_change_is_not_worked_out(
    most: int, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fixes, "MOST_PRICED", most)
    fix = the_fix(tmp_path, layer("a", K=72) + layer("b", K=72), BETWEEN)
    assert ("work" in fix.describe) is fix.states_effect is told
    assert fix.time_change_us is not None


def test_a_batch_is_told_by_image_and_by_step(tmp_path: Path) -> None:
    spec = layer("a", N=55, C=4096, H=16, W=16, K=256)
    (finding,) = [one for one in checked(load_rulebook(), spec, mode="inference").findings if one.rule.code == "CL204"]
    assert finding.fix is not None
    assert finding.fix.describe == (
        "a batch with fuller waves: N=108 (time per image -32 %, per step +34 %) or "
        "N=54 (time per image -32 %, per step -33 %)"
    )
    assert finding.fix.states_effect
