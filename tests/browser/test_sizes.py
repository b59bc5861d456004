"""Pages of nothing, of nothing that could be read, and of very many layers."""

from collections.abc import Callable

import pytest
from report_pages import Made
from watched_pages import Watch, overflow_px

Makes = Callable[[str], Made]


@pytest.mark.parametrize("name", ["no layers", "unread"])
def test_nothing_to_show_is_said_with_the_reason(watch: Watch, made: Makes, name: str) -> None:
    file, report = made(name)
    page = watch.open(file)
    assert page.locator("tr.layer").count() == 0
    missing = page.locator("#missing")
    assert missing.is_visible()
    for error in report["errors"]:
        assert error["message"] in missing.inner_text()
        assert "network.yaml" in missing.inner_text()
    assert report["errors"]
    assert overflow_px(page) == 0


@pytest.mark.parametrize("name", ["resnet50", "two targets", "300 layers, two targets"])
def test_a_narrow_page_is_at_most_five_screens(watch: Watch, made: Makes, name: str) -> None:
    page = watch.open(made(name).page, width=400)
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollHeight") <= 5 * 844  # of a telephone
    assert overflow_px(page) == 0


def test_ten_thousand_layers_are_all_there(watch: Watch, made: Makes) -> None:
    file, report = made("10000 layers")
    page = watch.open(file)
    assert page.locator("tr.layer").count() == 10_000
    total = len(report["findings"])
    assert total > 1000
    assert page.locator("article.finding").count() == total
    page.locator("#filters input[value=warning]").uncheck()
    left = sum(one["severity"] != "warning" for one in report["findings"])
    page.wait_for_function("text => document.getElementById('count').textContent.trim().startsWith(text)",
                           arg=f"{left} of {total}")  # fmt: skip
    assert page.locator("article.finding:not([hidden])").count() == left
    page.locator("#layer-9999").scroll_into_view_if_needed()
    assert page.locator("#layer-9999").is_visible()
