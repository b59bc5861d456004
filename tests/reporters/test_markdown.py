"""Markdown for a comment: what fits, and names as they are."""

import pytest
from markdown_it import MarkdownIt
from parsed import READERS
from reports import ALIGNMENT, at, finding, full_report, many, rendered

from convlint.model.report import Fix
from convlint.reporters import markdown


@pytest.mark.parametrize("unicode", [True, False])
def test_markdown_fits_a_comment_and_says_what_is_left_out(unicode: bool) -> None:
    text = rendered("markdown", many(5_000), unicode=unicode)
    assert 60_000 < len(text.encode()) <= 65_536
    kept, _ = READERS["markdown"](text)
    assert f"*{5_000 - kept} rows left out" in text
    assert "left out" not in rendered("markdown", many(10), unicode=unicode)
    assert "| 🔴 error |" in text or not unicode


def test_markdown_shows_names_as_they_are() -> None:
    fix = Fix(describe="torch.backends.cudnn.benchmark = True", safety="safe", set={})
    one = finding(ALIGNMENT, "C=62 (|x|) <b>", at(6, "62"), "block*_1", fix=fix)
    text = rendered("markdown", full_report(findings=(one,), errors=()))
    assert (
        "<code>block&#42;&#95;1</code> C=62 (&#124;x&#124;) &#60;b&#62;<br>Fix: torch.backends.cudnn.benchmark = True"
        in text
    )


def test_headlines() -> None:
    assert rendered("markdown", full_report()).startswith("### ❌ convlint: incomplete")
    assert rendered("markdown", full_report(errors=())).startswith("### ⚠️ convlint: 6 findings")
    clean = full_report(errors=(), findings=())
    assert rendered("markdown", clean).startswith("### ✅ convlint: nothing found")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("- x", "&#45; x"), ("+ x", "&#43; x"), ("1. x", "1&#46; x"), ("12) x", "12&#41; x"), ("-\tx", "&#45; x"),
        ("-x", "-x"), ("1.5 x", "1.5 x"), ("x - y", "x - y"), ("3-D", "3-D"), ("1 x", "1 x"),
    ],
)  # fmt: skip
def test_no_text_begins_a_list(text: str, written: str) -> None:
    assert markdown.prose(text) == written
    tokens = MarkdownIt("commonmark").parse(markdown.prose(text))
    assert {token.type for token in tokens} == {"paragraph_open", "inline", "paragraph_close"}
