"""Programs are judged by what they surely set; what is an expression is no flaw and may be what a rule lacks."""

from __future__ import annotations

from typing import Any

import pytest
from source_records import at, checked, only, program, said, setting

from convlint.engine.source.programs import merged

TUNED = setting("cudnn.benchmark", True, 9, certain=True)
FIXED = {
    "complete": True, "cudnn_benchmark": False, "deterministic": False, "fixed_input_size": True,
    "evidence": (("CIFAR100", at(5, "data.py")),),
}  # fmt: skip
VARYING = {"fixed_input_size": False, "evidence": (("multi_scale", at(7, "train.py")),)}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (FIXED, ("CL501", 1, "info")),
        (FIXED | {"fixed_input_size": None}, None),
        (FIXED | {"fixed_input_size": False}, None),
        (FIXED | {"cudnn_benchmark": None}, None),
        (FIXED | {"deterministic": True}, None),
        (FIXED | {"deterministic": None}, None),
        (FIXED | {"trainer": "lightning.Trainer"}, None),
        (FIXED | {"settings": (setting("cudnn.benchmark", False),)}, None),
        (FIXED | {"has_convolutions": False}, None),
        (FIXED | {"framework": "tensorflow"}, None),
        (VARYING | {"cudnn_benchmark": True, "settings": (TUNED,)}, ("CL502", 9, "info")),
        (VARYING | {"settings": (TUNED,)}, None),
        (VARYING | {"cudnn_benchmark": True, "settings": (setting("cudnn.benchmark", True, 9),)}, None),
        ({"cudnn_benchmark": True, "settings": (TUNED,)}, None),
        ({"conflict": (setting("cudnn.deterministic", True, 4), TUNED)}, ("CL503", 9, "warning")),
        ({"deterministic": True, "cudnn_benchmark": True}, None),
        (
            {"framework": "mxnet", "fixed_input_size": True,
             "autotune_disabled": (setting("MXNET_CUDNN_AUTOTUNE_DEFAULT", "0", 3),)},
            ("CL504", 3, "info"),
        ),
        ({"framework": "mxnet", "autotune_disabled": (setting("MXNET_CUDNN_AUTOTUNE_DEFAULT", "0", 3),)}, None),
        ({"tf32": False, "settings": (setting("cudnn.allow_tf32", False, 4),)}, ("CL106", 4, "info")),
        ({"tf32": None, "settings": (setting("cudnn.allow_tf32", None, 4),)}, None),
        ({"tf32": False, "has_convolutions": False}, None),
        ({"cudnn_enabled": False}, ("CL507", 1, "warning")),
        ({"cudnn_enabled": None, "settings": (setting("cudnn.enabled", None),)}, None),
        ({"cudnn_enabled": False, "has_convolutions": False}, None),
        ({"backward_in_autocast": (at(8, "train.py"),)}, ("CL508", 8, "info")),
        ({"autocast_around_loss": (at(6, "train.py"),)}, ("CL509", 6, "info")),
    ],
)  # fmt: skip
def test_what_is_said_of_a_program(given: dict[str, Any], expected: tuple[str, int, str] | None) -> None:
    found = checked(program(**given)).findings
    assert [(each.rule.code, each.location.line, each.severity) for each in found] == ([expected] if expected else [])


def test_a_conflict_names_both_places_and_guards() -> None:
    seed = setting("cudnn.deterministic", True, 105, guard="exp.seed is not None")
    speed = setting("cudnn.benchmark", True, 115)
    for pair in ((seed, speed), (speed, seed)):
        finding = only(checked(program(conflict=pair, settings=(seed, speed))))
        assert finding.message.startswith(
            "cudnn.benchmark=True at train.py:115 follows cudnn.deterministic=True at train.py:105 "
            "(if exp.seed is not None): only deterministic"
        )
        assert finding.location.line == 115


def test_evidence_is_named_with_its_place() -> None:
    finding = only(checked(program(**FIXED)))
    assert "(CIFAR100 at data.py:5)" in finding.message
    assert finding.fix is not None
    assert (finding.fix.safety, dict(finding.fix.set)) == ("unsafe", {"runtime.cudnn_benchmark": True})


def test_each_place_is_a_finding() -> None:
    found = checked(program(backward_in_autocast=(at(8, "train.py"), at(20, "train.py"))))
    assert [line for _, line, _ in said(found)] == [8, 20]
    assert len({finding.fingerprint for finding in found.findings}) == 2


def test_of_one_script_the_reading_that_knows_more_counts() -> None:
    less, more = program(), program(complete=True)
    assert merged([less, more]) == merged([more, less]) == [more]
    assert [each.path for each in merged([program("b.py"), program("a.py")])] == ["a.py", "b.py"]
