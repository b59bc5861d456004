"""The cards at the top of the page, and what stands below them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from reports import ALL_TIMES, NETWORK, full_report, priced, total

from convlint.gpus.calibration import CalibrationUse
from convlint.report import Fix
from convlint.reporters.page.assembling import page
from convlint.reporters.page.findings import items
from convlint.reporters.page.verdicts import cards, grades, plan_command
from convlint.reporters.totals import verdicts


def test_each_target_has_its_verdict_and_what_to_do_first() -> None:
    report = full_report()
    (card,) = cards(report, items(report))
    assert (card.gpu, card.grade, card.device) == ("a100", "C", "NVIDIA A100 SXM4 40GB")
    assert len(card.first) == 3
    assert card.more == 2
    assert 'And 2 more, in the <a href="#findings">' in page(report)
    assert len(card.costs.dearest) == 3


def test_a_gpu_that_waits_for_its_host_is_said_on_the_card() -> None:
    report = full_report()
    assert cards(report, [])[0].pace == ""
    waiting = tuple(replace(each, host_us=4000.0) for each in report.networks)
    (card,) = cards(replace(report, networks=waiting), [])
    assert card.pace == "the host needs about 4 ms to start the kernels, the GPU 3.25 ms to run them"


def test_what_was_not_read_is_said_at_the_top() -> None:
    report = full_report()
    assert report.errors
    broken = page(replace(report, layers=(), findings=(), networks=(), total=None, totals=()))
    head = broken[: broken.index("</header>")]
    assert 'href="#missing"' in head
    assert "not read, or not whole" in head
    assert "Nothing found in what could be read." in broken
    whole = page(replace(report, errors=()))
    assert "not read, or not whole" not in whole


def test_the_card_says_what_the_text_report_says() -> None:
    batch = replace(priced(), gpu="a100", severity="warning", fix=Fix(describe="N=8", safety="unsafe", set={"N": 8}))
    for findings in ((), (batch,)):
        report = full_report(findings=findings)
        (card,) = cards(report, items(report))
        ((_, text),) = verdicts(report)
        assert card.time in text
        assert f"{card.after} with all of it" in text
        assert card.asks_for_a_batch == text.endswith("but another batch") == bool(findings)
        assert ("batch unchanged" in page(report)) is bool(findings)


def test_where_some_times_are_unknown_the_others_are_added_up() -> None:
    first, *others = full_report().layers
    unknown = total("a100", None)
    report = full_report(layers=(replace(first, times={"a100": None}), *others), total=unknown, totals=(unknown,))
    text = page(report)
    assert "<strong>2.44 ms</strong> for 3 of 4 layers that are priced" in text
    assert 'unseen">grade </span>?' in text


def test_what_the_times_rest_on_is_on_the_card() -> None:
    report = full_report()
    (card,) = cards(report, [])
    assert card.basis == "held against timings of this generation for 4 layers"
    use = CalibrationUse(path="gpu.json", gpu="a100", device="NVIDIA A100-SXM4-40GB", rows=120, cudnn=None)
    (card,) = cards(replace(report, calibrations=(use,)), [])
    assert card.basis == f"calibrated on {use.device}, 120 passes; held against timings of this generation for 4 layers"
    (card,) = cards(replace(report, calibrations=(replace(use, reason="another clock"),)), [])
    assert "calibrated" not in card.basis


def test_the_grade_is_read_out_as_text_and_explained() -> None:
    text = page(full_report())
    assert '<span class="unseen">grade </span>C' in text
    assert 'aria-label="grade' not in text
    assert grades() == "A from 0.90, B from 0.75, C from 0.60, D from 0.40, else F"
    assert grades() in text


@pytest.mark.parametrize(
    ("path", "gpus", "command"),
    [
        ("nets/spec.yaml", ("a100",), "convlint plan nets/spec.yaml --gpu a100"),
        ("nets/my net.yaml", ("a100",), "convlint plan 'nets/my net.yaml' --gpu a100"),
        ("<flags>", ("a100",), "convlint plan FILE --gpu a100"),
        ("nets/spec.yaml", ("a100", "t4"), "convlint plan nets/spec.yaml --gpu GPU"),
    ],
)
def test_the_command_of_the_plan(path: str, gpus: tuple[str, ...], command: str) -> None:
    layers = tuple(replace(each, layer=replace(each.layer, path=path)) for each in full_report().layers)
    report = full_report(layers=layers, networks=(replace(NETWORK, path=path),), targets=gpus)
    assert plan_command(report) == command


def test_the_plan_of_a_model_of_the_config_and_of_several_files() -> None:
    layers = tuple(replace(each, layer=replace(each.layer, model="segnet")) for each in full_report().layers)
    assert plan_command(full_report(layers=layers)) == "convlint plan --model segnet --gpu a100"
    other = replace(NETWORK, path="nets/other.yaml")
    assert plan_command(full_report(networks=(NETWORK, other))) == "convlint plan FILE --gpu a100"


def test_without_times_there_is_nothing_to_plan() -> None:
    unknown = total("a100", None)
    assert plan_command(full_report(total=unknown, totals=(unknown,))) == ""
    known = total("a100", ALL_TIMES)
    assert "convlint plan" not in page(full_report(total=known, totals=(known,)), judged=False)
