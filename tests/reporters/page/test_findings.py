"""The findings of the page: their severity in words, their GPU, and reasons that are not said twice in full."""

from __future__ import annotations

import re
import time

import pytest
from msgspec.structs import replace
from reports import ALIGNMENT, FIRST_LAYER, LAYERS, LAYOUT, at, finding, full_report, priced_report

from convlint.model.report import Finding, Fix
from convlint.reporters.page.assembling import page
from convlint.reporters.page.findings import first_steps, items
from convlint.reporters.words import page_of


def test_reasons_stand_in_full_once_for_each_rule() -> None:
    found = items(full_report())
    said: set[str] = set()
    for item in found:
        assert item.repeats is (item.code in said)
        said.add(item.code)
    assert sum(item.repeats for item in found) == 1
    text = page(full_report())
    assert text.count("<details><summary>as for the other CL102</summary>") == 1


def test_reasons_are_not_left_to_a_finding_of_another_gpu() -> None:
    """Which the choice of a GPU hides."""
    report = full_report()
    one = report.findings[0]
    several = (replace(one, gpu="a100"), replace(one, gpu="t4"), replace(one, gpu="a100"))
    found = items(replace(report, findings=several, targets=("a100", "t4")))
    assert [(item.gpu, item.repeats) for item in found] == [("a100", False), ("t4", False), ("a100", True)]
    assert all(item.repeats for item in items(replace(report, findings=(replace(one, gpu=None), *several)))[1:])


def test_severity_is_a_word_and_a_mark_beside_its_colour() -> None:
    chips = re.findall(r'<a class="dot (\w+)"[^>]*>(.*?)</a>', page(full_report()))
    assert {severity for severity, _ in chips} == {"error", "warning", "info"}
    marks = {severity: re.search(r'aria-hidden="true">(.)</span>', inner) for severity, inner in chips}
    assert len({mark[1] for mark in marks.values() if mark}) == 3
    for severity, inner in chips:
        assert f'<span class="unseen">{severity} </span>' in inner


def test_each_finding_names_its_gpus_where_there_are_several() -> None:
    report = full_report()
    first, *others = report.findings
    several = replace(report, findings=(replace(first, gpu="a100"), *others), targets=("a100", "t4"))
    text = page(several)
    heads = re.findall(r"<h3><span class=\"badge.*?</h3>", text, re.DOTALL)
    assert len(heads) == len(report.findings)
    assert sum("on a100" in head for head in heads) == 1
    assert sum("on every GPU" in head for head in heads) == len(heads) - 1
    assert "on every GPU" not in page(report)


def test_the_code_leads_to_the_page_of_a_rule_and_of_no_rule_of_the_users_own() -> None:
    first = full_report().findings[0]
    for built_in in (True, False):
        rule = replace(first.rule, built_in=built_in)
        report = replace(full_report(), findings=(replace(first, rule=rule),))
        (item,) = items(report)
        assert item.page == page_of(rule)
        assert bool(item.page) is built_in
        assert ('<a class="code" href="' + page_of(rule) in page(report)) is built_in


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
