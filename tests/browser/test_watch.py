"""What is watched for is seen: each of these pages does one thing that a report must never do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from watched_pages import Watch, overflow_px, violations

if TYPE_CHECKING:
    from playwright.sync_api import Browser

POLICY = "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; script-src 'none'\">"


@pytest.fixture
def free_watch(browser: Browser) -> Iterator[Watch]:
    """A watch that no test fails for."""
    opened = Watch(browser)
    yield opened
    opened.close()


def written(folder: Path, body: str, head: str = "") -> Path:
    page = folder / "page.html"
    text = f"<!doctype html><html lang=en><head><meta charset=utf-8><title>Page</title>{head}</head><body>{body}"
    page.write_text(text, encoding="utf-8")
    return page


@pytest.mark.parametrize(
    ("body", "head", "said"),
    [
        ("<script>console.error('broken')</script>", "", "console error: broken"),
        ("<script>console.warn('old')</script>", "", "console warning: old"),
        ("<script>missing()</script>", "", "page error: "),
        ("<script>Promise.reject(new Error('late'))</script>", "", "page error: late"),
        ("<img src=x alt=''>", "", "request: file:///"),
        ("<link rel=stylesheet href=http://127.0.0.1:9/a.css>", "", "request: http://127.0.0.1:9/a.css"),
        ("<script>setTimeout(() => fetch('http://127.0.0.1:9/'), 10)</script>", "", "request: http://127.0.0.1:9/"),
        ("<script>window.ran = 1</script>", POLICY, "refused by the policy: script-src-elem: inline"),
        ("<p style='color: red'>red</p>", POLICY, "refused by the policy: style-src-attr: inline"),
        ("<script>setTimeout(() => alert('hello'))</script>", "", "dialog: hello"),
    ],
)
def test_each_trouble_is_kept(tmp_path: Path, free_watch: Watch, body: str, head: str, said: str) -> None:
    free_watch.open(written(tmp_path, body, head))
    assert [one for one in free_watch.trouble() if one.startswith(said)] != []
    assert free_watch.trouble() == []


def test_a_page_that_does_nothing_wrong_is_no_trouble(tmp_path: Path, free_watch: Watch) -> None:
    body = "<main><h1>Page</h1><a href='#there'>go</a><p id=there>text</p></main><script>window.ran = 1</script>"
    page = free_watch.open(written(tmp_path, body))
    page.get_by_text("go").click()
    assert free_watch.trouble() == []
    assert violations(page) == []
    assert overflow_px(page) == 0


def test_what_axe_and_the_width_find_is_said(tmp_path: Path, free_watch: Watch) -> None:
    body = "<button></button><input><div style='width: 3000px'>wide</div>"
    page = free_watch.open(written(tmp_path, body))
    assert {one.split()[0] for one in violations(page)} >= {"button-name", "label"}
    assert overflow_px(page) > 1000
