"""States along a plan: one ideal for all letters, batches one after the other, and what is left to warn of."""

from __future__ import annotations

from itertools import pairwise

import pytest
from msgspec.structs import replace
from planned import RULEBOOK, checked_us, planned, target
from wirings import densenet201, mobilenet_v2, resnet50

from convlint.engine.check import check_network
from convlint.model.network import Network
from convlint.model.runtime import Runtime
from convlint.planning.plan import STILL, STORED, WRAPPED
from convlint.planning.result import Plan

BAD = (60, 124, 250, 500)
EAGER = Runtime(framework="pytorch")


def letters(found: Plan) -> list[str]:
    states = [found.now, *(step.after for step in found.steps)]
    return [state.grade or "?" for state in states]


@pytest.mark.parametrize(
    "network",
    [
        resnet50(BAD, N=1, runtime=EAGER, mode="inference"),
        resnet50((65, 130, 260, 516), dtype="fp32", layout="NCHW"),
        mobilenet_v2(1.4),
    ],
)
@pytest.mark.parametrize("gpu", ["a100", "rtx4090"])
def test_no_letter_is_worse_than_one_before(network: Network, gpu: str) -> None:
    found = planned(network, gpu, network.mode or "training")
    assert found.steps
    assert all(after <= before for before, after in pairwise(letters(found))), letters(found)


def test_what_waits_for_its_host_is_far_from_its_ideal() -> None:
    """Its check grades it A, as it knows no advice; the plan records it, and is ten times as fast."""
    found = planned(resnet50(C=4, N=1, runtime=EAGER, mode="inference"), mode="inference")
    assert found.after.time_us < 0.2 * found.now.time_us
    assert letters(found)[0] == "F"


def test_without_steps_the_letter_is_that_of_the_check() -> None:
    network = resnet50(C=4, N=256)
    result = check_network(network, RULEBOOK, [target()], "training")
    ideal_us = sum(times.ideal_us for one in result.layers if (times := one.times["a100"]) is not None)
    assert ideal_us / checked_us(planned(network), network) >= 0.9
    assert letters(planned(network)) == ["A"]


@pytest.mark.slow
def test_batches_follow_each_other_until_none_is_advised() -> None:
    found = planned(densenet201(30))
    assert found.steps[-1].kinds == ("batch",)
    assert [step.kinds for step in found.steps].count(("batch",)) == 1
    assert found.after.time_us == pytest.approx(checked_us(found), rel=1e-12)
    result = check_network(found.network, RULEBOOK, [target()], "training")
    batches = [one.fix.set for one in result.findings if one.severity == "warning" and one.fix and "N" in one.fix.set]
    assert batches == []
    assert not [note for note in found.notes if note.startswith(STILL)]


def test_settings_without_a_price_are_part_of_the_planned_network() -> None:
    runtime = Runtime(framework="pytorch", cudnn_benchmark=False, fixed_input_size=True, deterministic=False)
    found = planned(resnet50(BAD, runtime=runtime))
    assert [finding.rule.code for finding in found.unpriced] == ["CL501"]
    assert found.network.runtime.cudnn_benchmark is True
    assert found.after.time_us == pytest.approx(checked_us(found), rel=1e-12)
    enough = planned(resnet50(BAD, runtime=runtime), target_us=1e9)
    assert enough.network.runtime.cudnn_benchmark is False


def test_what_changes_the_network_is_not_set_without_a_price() -> None:
    runtime = Runtime(framework="pytorch", cudnn_benchmark=True, fixed_input_size=False, mixed_precision=True)
    found = planned(resnet50(N=256, runtime=runtime))
    assert found.unpriced
    safe = [one for one in found.unpriced if one.fix is not None and one.fix.safety == "safe"]
    changed = {name for one in safe if one.fix is not None for name in one.fix.set if name.startswith("runtime.")}
    assert (found.network.runtime == runtime) is not bool(changed)


def warned(found: Plan) -> set[str]:
    result = check_network(found.network, RULEBOOK, [target(found.gpu)], found.mode)
    return {one.rule.code for one in result.findings if one.severity != "info" and one.fix is not None}


@pytest.mark.parametrize("widths", [(65, 130, 260, 516), (72, 144, 288, 576), BAD])
@pytest.mark.parametrize("gpu", ["a100", "t4"])
def test_the_planned_network_has_no_warning_with_a_price(widths: tuple[int, int, int, int], gpu: str) -> None:
    """The check would rather make some of these a little narrower: so does the plan."""
    found = planned(resnet50(widths), gpu)
    assert warned(found) == set()
    assert found.notes == ()
    if widths != BAD:
        assert (found.after.parameters or 0) < (found.now.parameters or 0)


def test_what_the_check_still_warns_of_is_said() -> None:
    """Within no more parameters than today hardly anything can be widened."""
    found = planned(resnet50(BAD), "t4", max_parameters=0.0)
    assert warned(found) == {"CL102"}
    (note,) = [note for note in found.notes if note.startswith(STILL)]
    assert "CL102 in " in note
    assert " layers" in note
    fixed = planned(resnet50(BAD), "t4", fixed=frozenset({"channels"}))
    assert warned(fixed) == {"CL102"}
    assert fixed.notes == ()
    enough = planned(resnet50(BAD), "t4", target_us=0.97 * found.now.time_us)
    assert enough.is_reached
    assert enough.notes == ()


@pytest.mark.parametrize(("source", "expected"), [("storage", STORED), ("module", WRAPPED), ("stated", None)])
def test_a_dtype_that_nobody_stated_is_said(source: str, expected: str | None) -> None:
    network = resnet50(C=4, dtype="fp32", layout="NCHW")
    layers = tuple(replace(layer, dtype_source=source) for layer in network.layers)
    found = planned(replace(network, layers=layers), fixed=frozenset({"batch"}))
    assert found.notes == (() if expected is None else (expected,))
    kept = planned(replace(network, layers=layers), fixed=frozenset({"batch", "dtype"}))
    assert kept.notes == ((STORED,) if source == "storage" else ())
