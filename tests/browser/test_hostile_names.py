"""Names and messages from outside are text: they run nothing, ask for nothing and turn nothing round."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from report_pages import HOSTILE_NAMES, RUN, Made, make_page, named_layers
from reports import ALIGNMENT, at, finding, full_report, rendered
from watched_pages import Watch, overflow_px

from convlint.model.report import Fix, InputError, SkippedRule

if TYPE_CHECKING:
    from playwright.sync_api import Page

Makes = Callable[[str], Made]
TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")  # they order the text around them


def used(page: Page) -> None:
    """Everything that can be clicked, hovered or filtered has been, and nothing ran."""
    page.locator("#sort-largest").click()
    for row in page.locator("tr.layer").all():
        row.hover()
    field = page.locator("#filters input[name=layer]")
    for name in HOSTILE_NAMES[:4]:
        field.fill(name)
    field.fill("")
    for point in page.locator("#roofline-chart svg [aria-label='dot'] > *").all()[:20]:
        point.hover(force=True)
    for link in page.locator("a[href^='#']:not(.skip)").all():
        if link.is_visible():
            link.click()
    schemes = page.eval_on_selector_all(
        "a", "all => all.map(one => one.getAttribute('href').replace(/(?<=^#|:).*/, ''))"
    )
    assert set(schemes) <= {"#", "https:"}
    handlers = page.evaluate("""[...document.querySelectorAll("main *")].filter(
        one => one.getAttributeNames().some(name => name.startsWith("on") || name === "style")).length""")
    assert handlers == 0
    assert page.evaluate("window.ran") is None


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_names_of_layers_are_text(watch: Watch, made: Makes, theme: str) -> None:
    page = watch.open(made("hostile").page, theme=theme)
    rows = page.locator("tr.layer").all()
    assert len(rows) == len(HOSTILE_NAMES)
    for row, name in zip(rows, HOSTILE_NAMES, strict=True):
        assert TURNING.sub("", name) in (row.text_content() or "")
    used(page)


def test_no_character_turns_the_text_around_it(watch: Watch, made: Makes) -> None:
    page = watch.open(made("hostile").page)
    assert TURNING.findall(page.locator("html").inner_text()) == []
    assert TURNING.findall(made("hostile").page.read_text(encoding="utf-8")) == []
    assert "\U0001f468\u200d\U0001f469\u200d\U0001f467" in page.locator("body").inner_text()


@pytest.mark.parametrize("width", [360, 1280])
def test_long_names_keep_within_the_window(watch: Watch, made: Makes, width: int) -> None:
    page = watch.open(made("hostile").page, width=width)
    assert overflow_px(page) == 0
    for box in page.locator("tr.layer").all():
        assert box.evaluate("one => one.getBoundingClientRect().height") < 450


def test_paths_and_errors_are_text(watch: Watch, tmp_path: Path) -> None:
    folder = tmp_path / f"<img src=x onerror={RUN}><"
    folder.mkdir()
    source = folder / f"script><script>{RUN}<"  # the path has </script>, which no file name can have
    source.mkdir()
    (tmp_path / "made").mkdir()
    spec = source / "script>\u202e'\".yaml"
    broken = f'  - {{ name: broken, C: "</script><img src=x onerror={RUN}>", H: 8, W: 8, K: 8, kernel_size: 3 }}\n'
    spec.write_text(named_layers(HOSTILE_NAMES[:2]) + broken, encoding="utf-8")
    made = make_page(tmp_path / "made", spec)
    page = watch.open(made.page)
    assert f"<img src=x onerror={RUN}><" in page.locator("body").inner_text()
    assert f"onerror={RUN}>" in page.locator("#missing").inner_text()
    used(page)


def test_every_text_of_a_report_is_text(watch: Watch, tmp_path: Path) -> None:
    """Messages and rules too, which users write in files of their own."""
    text = f"</script></style>\"'><img src=x onerror={RUN}><svg onload={RUN}>"
    rule = replace(ALIGNMENT, name=text, title=text, rationale=text, source=replace(ALIGNMENT.source, document=text))
    place = replace(at(6, "62"), path=text)
    fix = Fix(describe=text, safety="unsafe", set={text: text})
    one = finding(rule, text, place, "conv2", advised=True, lost_us=48.0, lost_percent=1.5, fix=fix)
    report = full_report(
        findings=(one,),
        errors=(InputError(path=text, message=text),),
        skipped=(SkippedRule(code=text, layer=text, path=text, needs=(text,)),),
    )
    file = tmp_path / "report.html"
    file.write_text(rendered("html", report), encoding="utf-8")
    page = watch.open(file)
    assert text in page.locator("article.finding").inner_text()
    used(page)
