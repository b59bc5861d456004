"""What to do first: the gravest and dearest, and as one piece what only pays together."""

from __future__ import annotations

import time

import pytest
from msgspec.structs import replace
from reports import ALIGNMENT, FIRST_LAYER, LAYERS, LAYOUT, at, finding, full_report, priced_report

from convlint.report import Finding, Fix
from convlint.reporters.page.advice import first_steps
from convlint.reporters.page.findings import items

ALL = {0, 1, 2, 3}


def advised(rule: object, layer: str | None, lost_us: float | None, *pays_with: str, **more: object) -> Finding:
    return finding(
        rule, "said", at(6, "62"), layer, advised=True, lost_us=lost_us, lost_percent=None if lost_us is None else 1.5,
        pays_with=pays_with, fix=Fix(describe=f"fix of {layer}", safety="safe", set={}), **more,
    )  # type: ignore[arg-type]  # fmt: skip


def first(*findings: Finding) -> list[list[str]]:
    report = full_report(findings=findings)
    return [[item.code for item in each.items] for each in first_steps(items(report), "a100", ALL)]


def test_each_has_a_fix() -> None:
    found = first_steps(items(full_report()), "a100", ALL)
    assert found
    assert all(item.fix for each in found for item in each.items)


def test_what_only_pays_together_is_one_piece() -> None:
    layout = advised(LAYOUT, None, 96.0, layers=LAYERS)
    stem, conv2 = advised(FIRST_LAYER, "stem", 50.0, "CL401"), advised(ALIGNMENT, "conv2", 10.0)
    assert first(layout, stem, conv2) == [["CL401", "CL103"], ["CL102"]]
    (both, _) = first_steps(items(full_report(findings=(layout, stem, conv2))), "a100", ALL)
    assert both.saves == "saves 146 us, 3.0 % of the convolutions"
    assert both.rules == "CL401, CL103"
    assert [saves for _, saves in both.fixes] == ["96 us", "50 us"]
    assert both.layers == (0, 1, 2, 3)


def test_each_change_among_several_says_what_it_does_alone() -> None:
    layout = advised(LAYOUT, None, 96.0, layers=LAYERS)
    stem = advised(FIRST_LAYER, "stem", 50.0, "CL401")
    assert stem.fix is not None
    stem = replace(stem, fix=replace(stem.fix, time_change_us=12.0, alone=True))
    (both,) = first_steps(items(full_report(findings=(layout, stem))), "a100", ALL)
    assert [says for _, says in both.fixes] == ["96 us", "50 us, alone 12 us slower"]


def test_what_pays_with_another_layers_fix_is_not_what_is_meant() -> None:
    assert first(advised(LAYOUT, "conv2", 96.0), advised(FIRST_LAYER, "stem", 50.0, "CL401")) == [["CL401"], ["CL103"]]


def test_a_chain_of_three_is_one_piece() -> None:
    chain = (
        advised(LAYOUT, "stem", 9.0),
        advised(FIRST_LAYER, "stem", 8.0, "CL401"),
        advised(ALIGNMENT, "stem", 7.0, "CL103"),
    )
    assert first(*chain) == [["CL401", "CL103", "CL102"]]
    assert first(*reversed(chain)) == [["CL401", "CL103", "CL102"]]


def test_one_fix_of_many_layers_is_one_piece() -> None:
    fix = Fix(describe="use C=64", safety="unsafe", set={"C": 64})
    report = full_report(
        findings=tuple(
            replace(advised(ALIGNMENT, name, lost), fix=fix) for name, lost in zip(LAYERS, (1, 9, 5, 2), strict=True)
        )
    )
    (one,) = first_steps(items(report), "a100", ALL)
    assert (len(one.items), one.layers, one.rules) == (4, (0, 1, 2, 3), "CL102 channel-alignment")
    assert [(item.layers, saves) for item, saves in one.fixes] == [((1,), "17 us")]
    assert one.saves == "saves 17 us, 6.0 % of the convolutions"


def test_ten_thousand_findings_that_pay_together_are_soon_joined() -> None:
    layout, stem = advised(LAYOUT, None, 96.0), advised(FIRST_LAYER, "stem", 1.0, "CL401")
    found = items(full_report(findings=(layout, stem)))
    many = [found[0], *(replace(found[1], number=number, edit=f"fix {number}") for number in range(1, 10_000))]
    start = time.process_time()
    (one, *_) = first_steps(many, "a100", ALL)
    assert len(one.items) == 10_000
    assert time.process_time() - start < 5


def test_warnings_come_before_infos_that_save_more() -> None:
    info = advised(FIRST_LAYER, "stem", 50.0, severity="info")
    assert first(info, advised(LAYOUT, None, None, layers=LAYERS)) == [["CL401"], ["CL103"]]
    assert first(replace(info, advised=False)) == []


def test_the_sum_of_what_is_taken_together_is_that_of_its_parts() -> None:
    report = priced_report()
    found = first_steps(items(report), "a100", ALL)
    (joined,) = (each for each in found if len(each.items) > 1)
    assert {item.code for item in joined.items} == {"CL102", "CL103", "CL401"}
    saved = sum(item.lost_us for item in joined.items)
    assert saved == pytest.approx(210.25 + 48.0 + 96.0)
    assert joined.saves.startswith("saves 354 us, ")


def test_another_targets_and_another_modes_findings_are_left_out() -> None:
    own = advised(ALIGNMENT, "conv2", 10.0, gpu="a100")
    report = full_report(findings=(own, replace(own, gpu="t4")))
    assert len(first_steps(items(report), "a100", ALL)) == 1
    assert first_steps(items(report), "a100", {0, 2, 3}) == ()
