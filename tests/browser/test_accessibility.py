"""The page is for everybody: axe finds nothing grave, and the keyboard reaches all that the mouse does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from report_pages import Made
from watched_pages import Watch, violations

if TYPE_CHECKING:
    from playwright.sync_api import Page

Makes = Callable[[str], Made]
STOP = """() => {
    const one = document.activeElement, look = getComputedStyle(one);
    const outlined = look.outlineStyle !== "none" && parseFloat(look.outlineWidth) >= 1;
    return { what: one.id || one.name || one.getAttribute("href") || one.tagName, page: one === document.body,
             seen: one.matches(":focus-visible") && (outlined || look.boxShadow !== "none") };
}"""


def stops(page: Page) -> list[tuple[str, bool]]:
    """What Tab comes to from the top, each with whether one can see that it is there."""
    found: list[tuple[str, bool]] = []
    for _ in range(400):
        page.keyboard.press("Tab")
        stop = page.evaluate(STOP)
        if stop["page"]:
            break
        found.append((stop["what"], stop["seen"]))
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["mixed", "two targets", "no layers", "unread", "hostile"])
def test_axe_finds_nothing_grave(watch: Watch, made: Makes, name: str, theme: str) -> None:
    assert violations(watch.open(made(name).page, theme=theme)) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_grave_in_a_narrow_window(watch: Watch, made: Makes, theme: str) -> None:
    assert violations(watch.open(made("two targets").page, theme=theme, width=360)) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_tab_reaches_everything_and_is_seen_there(watch: Watch, made: Makes, theme: str) -> None:
    page = watch.open(made("two targets").page, theme=theme)
    found = stops(page)
    names = {what for what, _ in found}
    assert names >= {"target", "sort-network", "sort-largest", "severity", "code", "layer"}
    assert any(what.startswith("#finding-") for what in names)
    assert any(what.startswith("#layer-") for what in names)
    assert [what for what, seen in found if not seen] == []


def test_keys_do_what_clicks_do(watch: Watch, made: Makes) -> None:
    page = watch.open(made("mixed").page)
    page.locator("#sort-largest").focus()
    page.keyboard.press("Space")
    assert page.locator("#sort-largest").get_attribute("aria-pressed") == "true"
    before = page.locator("output#count").inner_text()
    page.locator("#filters input[value=info]").focus()
    page.keyboard.press("Space")
    assert page.locator("output#count").inner_text() != before


def test_the_count_is_read_out_and_charts_have_names(watch: Watch, made: Makes) -> None:
    page = watch.open(made("mixed").page)
    assert page.get_by_role("status").filter(has_text="findings").count() == 1
    page.locator("#roofline-chart svg").first.wait_for()
    nameless = page.evaluate("""[...document.querySelectorAll("svg")].filter(one => !one.closest("[aria-hidden=true]")
        && !one.getAttribute("aria-label") && !one.getAttribute("aria-labelledby") && !one.querySelector("title")
        && !one.closest("figure")?.querySelector("figcaption")).length""")
    assert nameless == 0
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.locator("h1").count() == 1
