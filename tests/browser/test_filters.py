"""Filters show the findings that are asked for, and say how many of all these are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import pytest
from report_pages import MIXED_NAMES, Made
from watched_pages import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

Makes = Callable[[str], Made]


@pytest.fixture
def page(watch: Watch, made: Makes) -> Page:
    return watch.open(made("mixed").page)


def shown(page: Page) -> list[Locator]:
    """The findings that can be seen; the count has to agree with them."""
    findings = page.locator("article.finding").all()
    seen = [one for one in findings if one.is_visible()]
    count = page.locator("output#count").inner_text()
    assert re.match(rf"{len(seen)} of {len(findings)} findings?\b", count), count
    assert [one for one in findings if one.get_attribute("hidden") is None] == seen
    return seen


def values(found: Iterable[Locator], name: str) -> list[str]:
    return [one.get_attribute(name) or "" for one in found]


def test_all_are_shown_at_first(page: Page) -> None:
    assert set(values(shown(page), "data-severity")) == {"error", "warning", "info"}


@pytest.mark.parametrize("severity", ["error", "warning", "info"])
def test_a_severity_is_left_out_and_comes_back(page: Page, severity: str) -> None:
    before = shown(page)
    box = page.locator(f"#filters input[name=severity][value={severity}]")
    assert box.is_checked()
    box.uncheck()
    left = [one for one in values(before, "data-severity") if one != severity]
    assert values(shown(page), "data-severity") == left
    assert len(left) < len(before)
    box.check()
    assert len(shown(page)) == len(before)


def test_only_one_rule_is_shown(page: Page) -> None:
    codes = values(shown(page), "data-code")
    choice = page.locator("#filters select[name=code]")
    for code in sorted(set(codes)):
        choice.select_option(code)
        assert values(shown(page), "data-code") == [code] * codes.count(code)
    choice.select_option(index=0)
    assert len(shown(page)) == len(codes)


def texts(finding: Locator) -> str:
    """What a finding without layers is found by: the folder of its file bears this test's name."""
    return " ".join(finding.locator(".message, .place").all_text_contents())


@pytest.mark.parametrize("part", ["stem", "block0", "block0.conv", "late"])
def test_only_findings_of_layers_with_that_name_are_shown(page: Page, part: str) -> None:
    """A finding of the whole network has no layers of its own, but its message may name some."""
    wanted = {str(number) for number, name in enumerate(MIXED_NAMES) if part in name}
    findings = shown(page)
    of = zip(values(findings, "id"), values(findings, "data-layers"), findings, strict=True)
    left = [name for name, numbers, one in of if wanted & set(numbers.split()) or (not numbers and part in texts(one))]
    assert 0 < len(left) < len(findings)
    page.locator("#filters input[type=search][name=layer]").fill(part)
    assert values(shown(page), "id") == left
    page.locator("#filters input[type=search][name=layer]").fill("")
    assert len(shown(page)) == len(findings)


@pytest.mark.parametrize("word", ["network", "multiple", "yaml"])
def test_words_of_messages_and_places_are_no_names_of_layers(page: Page, word: str) -> None:
    page.locator("#filters input[name=layer]").fill(word)
    assert [numbers for numbers in values(shown(page), "data-layers") if numbers] == []


def test_filters_hold_together(page: Page) -> None:
    page.locator("#filters input[name=layer]").fill("block0")
    page.locator("#filters input[value=info]").uncheck()
    page.locator("#filters select[name=code]").select_option("CL102")
    found = shown(page)
    assert {*zip(values(found, "data-code"), values(found, "data-severity"), strict=True)} == {("CL102", "warning")}
    assert len(found) == 1
    page.locator("#filters input[value=info]").check()
    assert values(shown(page), "data-severity") == ["warning", "info"]


def test_nothing_that_fits_is_said(page: Page) -> None:
    page.locator("#filters input[name=layer]").fill("no layer is called this")
    assert shown(page) == []


def test_enter_in_the_search_keeps_the_page(page: Page) -> None:
    field = page.locator("#filters input[name=layer]")
    field.fill("stem")
    address, count = page.url, len(shown(page))
    field.press("Enter")
    assert page.url == address
    assert len(shown(page)) == count


def test_the_count_says_what_hides_the_others(page: Page) -> None:
    everything = len(shown(page))
    count = page.locator("output#count")
    assert "hidden" not in count.inner_text()
    infos = page.locator("article.finding[data-severity=info]").count()
    page.locator("#filters input[value=info]").uncheck()
    assert count.inner_text() == f"{everything - infos} of {everything} findings; hidden: {infos} by severity"
    page.locator("#filters select[name=code]").select_option("CL102")
    page.locator("#filters input[name=layer]").fill("stem")
    left = len(shown(page))
    numbers = {reason: int(number) for number, reason in re.findall(r"(\d+) by (\w+)", count.inner_text())}
    assert set(numbers) == {"severity", "rule", "layer"}
    assert sum(numbers.values()) == everything - left


def test_the_count_says_that_the_choice_of_a_gpu_hides_findings(watch: Watch, made: Makes) -> None:
    file, report = made("two targets")
    page = watch.open(file)
    for total in report["totals"]:
        gpu = total["gpu"]
        page.locator("select#target").select_option(label=gpu)
        others = sum(one["gpu"] not in (gpu, None) for one in report["findings"])
        assert others > 0
        assert f"hidden: {others} of other GPUs than {gpu}" in page.locator("output#count").inner_text()
        for one in shown(page):
            assert re.search(rf"on ({gpu}|every GPU)", one.locator("h3").inner_text())


@pytest.mark.parametrize("way", ["reload", "back"])
def test_what_is_shown_is_what_the_controls_say_after_a_return(watch: Watch, made: Makes, way: str) -> None:
    """A browser gives some controls the values that they had, others not."""
    file = made("two targets").page
    page = watch.open(file)
    page.locator("#filters input[value=info]").uncheck()
    page.locator("#filters select[name=code]").select_option("CL102")
    page.locator("#filters input[name=layer]").fill("block0")
    page.locator("select#target").select_option(index=1)
    page.locator("#sort-largest").click()
    if way == "reload":
        page.reload()
    else:
        page.goto("about:blank")
        page.go_back()
    page.wait_for_timeout(300)
    boxes = {box.get_attribute("value") for box in page.locator("#filters input:checked").all()}
    code = page.locator("#filters select[name=code]").input_value()
    layer = page.locator("#filters input[name=layer]").input_value()
    gpu = page.locator("select#target option:checked").inner_text()
    seen = shown(page)
    for one in page.locator("article.finding").all():
        names = {MIXED_NAMES[int(number)] for number in (one.get_attribute("data-layers") or "").split()}
        found = any(layer in name for name in names) if names else layer in texts(one)
        fits = one.get_attribute("data-severity") in boxes and code in ("", one.get_attribute("data-code"))
        assert (one.get_attribute("id") in values(seen, "id")) is (
            fits and found and one.get_attribute("data-gpu") in (gpu, "")
        )
    cell = page.locator("#layers td.wide > span:visible").first
    assert cell.get_attribute("data-target") == page.locator("select#target").input_value()
    rows = [int(one.get_attribute("data-layer") or "") for one in page.locator("tr.layer").all()]
    assert (rows == sorted(rows)) is (page.locator("#sort-network").get_attribute("aria-pressed") == "true")
