"""Markdown from plain text, read back by a reader of Markdown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from handbook.markup import block, code, table, text

SIGNS = st.text(alphabet="ab1 *_`[]()<>|#{}&\\!-+.:/h", max_size=40)


def shown(markdown: str) -> str:
    """The words that a reader sees, without markup."""
    tokens = MarkdownIt().parseInline(markdown)[0].children or []
    assert {token.type for token in tokens} <= {"text", "text_special"}, tokens
    return "".join(token.content for token in tokens)


@given(SIGNS)
def test_nothing_in_a_text_is_markup(plain: str) -> None:
    assert shown(text(plain)) == " ".join(plain.split())


@pytest.mark.parametrize(
    ("plain", "markdown"),
    [
        ("see https://a.b/c_d.", "see <https://a.b/c_d>."),
        ("https://a.b = Table 4; github x@y", "<https://a.b> = Table 4; github x@y"),
        ("https://a.b, https://c.d", "<https://a.b>, <https://c.d>"),
        ("a | b", "a &#124; b"),
    ],
)
def test_addresses_become_links(plain: str, markdown: str) -> None:
    assert text(plain) == markdown


@pytest.mark.parametrize(("plain", "markdown"), [("C % 8", "`C % 8`"), ("a `b`", "``a `b```"), ("a\n b", "`a b`")])
def test_code(plain: str, markdown: str) -> None:
    assert code(plain) == markdown


def test_blocks_and_tables() -> None:
    assert block(["a: 1"], "yaml") == ["```yaml", "a: 1", "```", ""]
    assert table(("a", "b"), [("1", "2")], right=[1]) == ["| a | b |", "| --- | --: |", "| 1 | 2 |", ""]
