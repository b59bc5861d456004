"""The findings of the page: their severity in words, their GPU, and reasons that are not said twice in full."""

import re
from html import escape

from msgspec.structs import replace
from reports import ALIGNMENT, at, finding, full_report

from convlint.model.report import Fix
from convlint.reporters.causes import ranked
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
        assert item.finding.rule is rule
        assert bool(page_of(rule)) is built_in
        assert ('<a class="code" href="' + page_of(rule) in page(report)) is built_in


def test_the_first_steps_are_those_of_the_text() -> None:
    report = full_report()
    found = items(report)
    steps = first_steps(report, found)
    of = ranked(report)
    assert steps
    assert [step.change for step in steps] == [cause.change for cause in (*of.errors[:5], *of.first)]
    text = page(report)
    for step in steps:
        assert found[step.number].code == step.rule.partition(" ")[0]
        assert f'<a href="#finding-{step.number}">{escape(step.change)}</a>' in text


def test_a_step_says_what_it_saves_on_each_target() -> None:
    fix = Fix(describe="use C=64", safety="unsafe", set={"C": 64})
    one = finding(ALIGNMENT, "said", at(6, "62"), "conv2", advised=True, lost_us=9.0, lost_percent=1.5, fix=fix)
    other = replace(one, gpu="t4", lost_us=4.0, layer="conv3")
    report = full_report(findings=(replace(one, gpu="a100"), other), targets=("a100", "t4"))
    (step,) = first_steps(report, items(report))
    assert step.saves == (("a100", "9 us"), ("t4", "4 us"))
    assert len(step.layers) == 2
    assert "9 us on a100" in page(report)
    (alone,) = first_steps(full_report(findings=(one,)), items(full_report(findings=(one,))))
    assert alone.saves == (("", "9 us, 1.5 %"),)
