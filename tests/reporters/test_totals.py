"""The verdict on a network in words: for each target and mode, and what is no part of it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from reports import full_report, layer_times, priced, total

from convlint.report import Fix, Total
from convlint.reporters.totals import outcome, verdict, verdicts

STEP = layer_times(45_700.0, 38_000.0, 35_000.0)
PASS = layer_times(12_300.0, 12_300.0, 12_000.0)


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (total("a100", STEP), "45.7 ms of convolutions per training step, grade B; 38 ms with all of it"),
        (
            total("a100", layer_times(45_700.0, 45_699.0, 10_000.0)),
            "45.7 ms of convolutions per training step, grade F; 1 us less with all of it",
        ),
        (
            total("a100", PASS, "inference"),
            "12.3 ms of convolutions per forward pass, grade A; no fix is advised",
        ),
        (total("a100", None), ""),
    ],
)
def test_the_verdict(one: Total, text: str) -> None:
    assert verdict(one) == text


def test_each_mode_and_each_target_has_its_own_verdict() -> None:
    both = (total("a100", STEP), total("a100", PASS, "inference"))
    report = full_report(total=both[0], totals=both)
    assert list(verdicts(report)) == [
        (both[0], "45.7 ms of convolutions per training step, grade B; 38 ms with all of it"),
        (both[1], "12.3 ms of convolutions per forward pass, grade A; no fix is advised"),
    ]
    unknown = (both[0], total("a100", None, "inference"))
    assert [text for _, text in verdicts(replace(report, totals=unknown))] == [
        "45.7 ms of convolutions per training step, grade B; 38 ms with all of it",
        "time per forward pass unknown",
    ]
    assert [one.gpu for one, _ in verdicts(replace(report, totals=(both[0], total("t4", STEP))))] == ["a100", "t4"]
    assert list(verdicts(replace(report, total=None, totals=()))) == []
    assert list(verdicts(full_report(total=unknown[1], totals=unknown[1:]))) == []


def test_another_batch_is_no_fix_but_said() -> None:
    one = total("a100", PASS, "inference")
    finding = replace(priced(), gpu="a100", severity="warning", fix=Fix(describe="N=8", safety="unsafe", set={"N": 8}))
    said = "12.3 ms of convolutions per forward pass, grade A; no fix is advised"
    for found, text in ((finding, f"{said} but another batch"), (replace(finding, severity="info"), said)):
        report = full_report(total=one, totals=(one,), findings=(found,))
        assert list(verdicts(report)) == [(one, text)]


def test_another_batch_is_no_part_of_what_all_advice_makes() -> None:
    one = total("a100", STEP)
    batch = replace(priced(), gpu="a100", severity="warning", fix=Fix(describe="N=8", safety="unsafe", set={"N": 8}))
    report = full_report(total=one, totals=(one,), findings=(batch,))
    assert [text for _, text in verdicts(report)] == [
        "45.7 ms of convolutions per training step, grade B; 38 ms with all of it but another batch"
    ]


@pytest.mark.parametrize(
    ("after_us", "said"), [(38_000.0, ("38 ms", False)), (45_699.0, ("1 us", True)), (45_700.0, ("", False))]
)
def test_what_all_advice_makes_of_the_time(after_us: float, said: tuple[str, bool]) -> None:
    assert outcome(layer_times(45_700.0, after_us, 35_000.0)) == said
