"""What scripts say is said in the language of the page."""

import re
from collections.abc import Callable

from report_pages import Made
from watched_pages import Watch

HAN = re.compile(r"[\u4e00-\u9fff]")


def test_counts_notes_and_the_roofline_are_in_chinese(watch: Watch, made: Callable[[str], Made]) -> None:
    page = watch.open(made("chinese").page)
    assert re.match(r"^\d+ 个发现中的 \d+ 个；已隐藏：不属于 \S+ 的 \d+ 个$", page.locator("#count").inner_text())
    page.locator("input[name=severity]").first.uncheck()
    assert re.search(r"已隐藏：.*按严重程度 \d+ 个", page.locator("#count").inner_text())
    page.locator("#roofline-chart[data-drawn]").wait_for()
    shown = " ".join(page.locator("#roofline-chart text").all_text_contents())
    assert "每字节的有用 FLOP →" in shown
    assert "可达到：" in shown
    assert "undefined" not in shown + page.locator("#roofline-note").inner_text()
    assert page.locator("html").get_attribute("lang") == "zh"


def test_nothing_is_wider_than_a_phone(watch: Watch, made: Callable[[str], Made]) -> None:
    page = watch.open(made("chinese").page)
    page.set_viewport_size({"width": 360, "height": 800})
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 360
    assert HAN.search(page.locator("main").inner_text())
