"""Layers, findings and points of the chart lead to each other; layers can be sorted and targets switched."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from report_pages import Made
from watched_pages import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Page

Makes = Callable[[str], Made]
IN_VIEW = """one => { const box = one.getBoundingClientRect();
    return box.height > 0 && box.bottom > 0 && box.top < window.innerHeight; }"""


@pytest.fixture
def page(watch: Watch, made: Makes) -> Page:
    return watch.open(made("mixed").page)


def arrived(page: Page, name: str) -> None:
    """The address, `:target` and the window are at the element of that id."""
    page.wait_for_function("name => document.querySelector(':target')?.id === name", arg=name)
    assert page.url.endswith(f"#{name}")
    page.wait_for_function(f"name => ({IN_VIEW})(document.getElementById(name))", arg=name)


def order(page: Page) -> list[int]:
    return [int(one.get_attribute("data-layer") or "") for one in page.locator("#layers tr.layer").all()]


def test_every_link_within_the_page_leads_somewhere(watch: Watch, made: Makes) -> None:
    for name in ("mixed", "two targets", "resnet50"):
        page = watch.open(made(name).page)
        links = page.eval_on_selector_all("a[href^='#']", "all => all.map(one => one.getAttribute('href').slice(1))")
        assert links
        assert page.evaluate("all => all.filter(one => !document.getElementById(one))", links) == []


def test_a_layer_leads_to_its_findings_and_they_lead_back(page: Page) -> None:
    pairs = 0
    for row in page.locator("#layers tr.layer").all():
        number = row.get_attribute("data-layer") or ""
        for link in row.locator("a[href^='#finding-']").all():
            finding = (link.get_attribute("href") or "")[1:]
            link.click()
            arrived(page, finding)
            assert number in (page.locator(f"#{finding}").get_attribute("data-layers") or "").split()
            back = page.locator(f"#{finding} a[href='#layer-{number}']").first
            back.click()
            arrived(page, f"layer-{number}")
            pairs += 1
    assert pairs >= 6


@pytest.mark.parametrize("width", [360, 1280])
def test_links_of_a_long_page_arrive(watch: Watch, made: Makes, width: int) -> None:
    """Where what lies outside the window is not laid out before it is scrolled to."""
    file, report = made("2000 layers")
    page = watch.open(file, width=width)
    watch.unfold(page)
    last = max(int(one.get_attribute("data-layer") or "") for one in page.locator("tr.layer:has(.dot)").all()[-1:])
    link = page.locator(f"#layer-{last} a[href^='#finding-']").first
    finding = (link.get_attribute("href") or "")[1:]
    link.click()
    arrived(page, finding)
    page.locator(f"#{finding} a[href='#layer-{last}']").first.click()
    arrived(page, f"layer-{last}")
    page.goto(f"{file.as_uri()}#finding-{len(report['findings']) - 1}")
    arrived(page, f"finding-{len(report['findings']) - 1}")


@pytest.mark.parametrize("width", [360, 1280])
def test_sections_are_reached_from_the_top(watch: Watch, made: Makes, width: int) -> None:
    page = watch.open(made("mixed").page, width=width)
    names = page.eval_on_selector_all("nav a", "all => all.map(one => one.getAttribute('href').slice(1))")
    assert names == ["verdict", "findings", "time", "roofline", "missing"]
    for name in names:
        if width > 800:
            page.evaluate("scrollTo(0, 0)")
        page.locator(f"nav a[href='#{name}']").click()  # on a narrow screen wherever the page is scrolled to
        arrived(page, name)
        top = page.evaluate("name => document.querySelector(`#${name} h2`).getBoundingClientRect().top", name)
        bar = page.evaluate("document.querySelector('nav').getBoundingClientRect().bottom")
        assert max(bar, 0) - 1 <= top < 900, "the heading is outside the window, or the bar of links lies over it"


def test_a_link_opens_what_a_narrow_page_folds(watch: Watch, made: Makes) -> None:
    page = watch.open(made("resnet50").page, width=400)
    assert not page.locator("#layers").is_visible()
    finding = page.locator("article.finding[data-severity=info]").first
    assert not finding.is_visible()
    page.locator("nav a[href='#time']").click()
    page.locator("#layers").wait_for()
    link = page.locator("#layers a.info").first
    name = (link.get_attribute("href") or "")[1:]
    link.click()
    arrived(page, name)
    assert page.locator("#infos").get_attribute("open") is not None


def test_a_link_arrives_where_pages_may_move(watch: Watch, made: Makes) -> None:
    page = watch.open(made("mixed").page, motion=True)
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "smooth"
    link = page.locator("#layers a[href^='#finding-']").last
    link.click()
    arrived(page, (link.get_attribute("href") or "")[1:])


def test_nothing_moves_where_less_motion_is_asked_for(page: Page) -> None:
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"


def test_the_keyboard_goes_on_where_a_link_led(page: Page) -> None:
    link = page.locator("#layers a[href^='#finding-']").first
    finding = (link.get_attribute("href") or "")[1:]
    link.focus()
    page.keyboard.press("Enter")
    arrived(page, finding)
    page.keyboard.press("Tab")
    assert page.evaluate("name => document.getElementById(name).contains(document.activeElement)", finding)


def test_a_link_shows_a_finding_that_filters_hid(page: Page) -> None:
    """Again too, where the address stays as it is; and the count says what is shown."""
    link = page.locator("#layers a[href^='#finding-']").first
    finding = (link.get_attribute("href") or "")[1:]
    for _ in range(2):
        page.locator("#filters input[name=layer]").fill("no layer is called this")
        assert not page.locator(f"#{finding}").is_visible()
        link.click()
        arrived(page, finding)
        seen = page.locator("article.finding:not([hidden])").count()
        assert page.locator("output#count").inner_text().startswith(f"{seen} of ")


def test_a_link_shows_a_finding_of_another_target(watch: Watch, made: Makes) -> None:
    file, report = made("two targets")
    page = watch.open(file)
    other = report["totals"][1]["gpu"]
    finding = next(number for number, one in enumerate(report["findings"]) if one["gpu"] == other)
    page.locator(f"#verdict a[href='#finding-{finding}']").first.click()
    arrived(page, f"finding-{finding}")
    assert page.locator("select#target option:checked").inner_text() == other


def test_a_point_of_the_roofline_leads_to_its_layer(page: Page) -> None:
    points = page.locator("#roofline-chart svg [aria-label='dot'] > *")
    points.first.wait_for()
    assert points.count() >= 6
    points.last.click(force=True)  # points may lie on one another
    page.wait_for_function("/^#layer-[0-9]+$/.test(location.hash)")
    arrived(page, page.url.partition("#")[2])


def test_layers_are_sorted_by_time_and_back(watch: Watch, made: Makes) -> None:
    for name in ("mixed", "resnet50"):
        file, report = made(name)
        page = watch.open(file)
        network, largest = page.locator("#sort-network"), page.locator("#sort-largest")
        times = [layer["estimates"][0]["time_us"] for layer in report["layers"]]
        assert order(page) == list(range(len(times)))
        assert (network.get_attribute("aria-pressed"), largest.get_attribute("aria-pressed")) == ("true", "false")
        largest.click()
        by_time = [times[number] for number in order(page)]
        assert by_time == sorted(times, reverse=True)
        assert order(page) != list(range(len(times)))
        assert (network.get_attribute("aria-pressed"), largest.get_attribute("aria-pressed")) == ("false", "true")
        network.click()
        assert order(page) == list(range(len(times)))
        assert (network.get_attribute("aria-pressed"), largest.get_attribute("aria-pressed")) == ("true", "false")


def test_a_target_is_switched(watch: Watch, made: Makes) -> None:
    file, report = made("two targets")
    page = watch.open(file)
    choice = page.locator("select#target")
    gpus = [one["gpu"] for one in report["totals"]]
    assert [one.inner_text() for one in choice.locator("option").all()] == gpus
    seen = {}
    for gpu in (*gpus, gpus[0]):
        choice.select_option(label=gpu)
        page.wait_for_timeout(300)
        said = page.locator("article.finding").all()
        count = page.locator("output#count").inner_text()
        visible = [one.get_attribute("id") for one in said if one.is_visible()]
        assert count.startswith(f"{len(visible)} of ")
        look = (page.locator("#layers").inner_text(), page.locator("#roofline-chart").inner_html(), tuple(visible))
        assert seen.setdefault(gpu, look) == look  # switched back, all is as it was
        mine = [one for one in report["findings"] if one["gpu"] in (gpu, None)]
        assert len(visible) == len(mine)
    for first, other in zip(*seen.values(), strict=True):
        assert first != other


def test_one_target_needs_no_switch(page: Page) -> None:
    assert not page.locator("select#target").is_visible()


def test_a_link_in_a_card_leads_to_the_numbers_of_its_gpu(watch: Watch, made: Makes) -> None:
    page = watch.open(made("two targets").page)
    assert page.locator("#target").input_value() == "0"
    card = page.locator("article.target").nth(1)
    link = card.locator("dd a[href^='#layer-']").first
    share = (card.locator("dl dd").first.inner_text()).removeprefix(link.inner_text()).split(",")[0].strip()
    link.click()
    assert page.locator("#target").input_value() == "1"
    row = page.locator(link.get_attribute("href") or "")
    shown = row.locator("td.number span[data-target='1']").inner_text()
    assert round(float(shown.removesuffix(" %"))) == int(share.removesuffix(" %"))
