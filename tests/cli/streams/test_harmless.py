"""The last look at what is printed: nothing that a log or a terminal would obey gets past it, all else does."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parsed import workflow_commands

from convlint.cli.streams.gate import harmless
from convlint.reporters.ink import INK_CODES, painter

ANNOTATION = "::error file=a.yaml,line=3,title=CL102 x::C is 60%0AFix: use C=64"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("53 layers in 1 file", "53 layers in 1 file"),
        ("a::b\n  c ::d::e\n", "a::b\n  c ::d::e\n"),
        ("größe 中文 🙂 ─ can ×\tx", "größe 中文 🙂 ─ can ×\tx"),
        ("::error::pwn", ":_error::pwn"),
        ("ok\n::stop-commands::x\n", "ok\n:_stop-commands::x\n"),
        ("ok\n  \t ::set-env name=a::b", "ok\n  \t :_set-env name=a::b"),
        ("::::", ":_::"),
        ("\u3000\u2003::error::x", "  :_error::x"),
        ("ok\r::error::x", "ok ::error::x"),
        ("ok\r\n::error::x\r\n", "ok \n:_error::x \n"),
        ("ok\x85::error::x", "ok ::error::x"),
        ("ok\u2028::error::x", "ok ::error::x"),
        ("\x00::error::x", ":_error::x"),
        ("\u200b::error::x", ":_error::x"),
        ("\ufeff::error::x", ":_error::x"),
        ("\x1b[31m::error::x", "[31m::error::x"),
        ("a ##[error]x", "a #_[error]x"),
        ("a ##vso[task.setvariable]x", "a #_vso[task.setvariable]x"),
        ("a ##teamcity[x]", "a #_teamcity[x]"),
        ("####[error]", "#___[error]"),
        ("#\x00#[error]", "#_[error]"),
        ("## heading [x]", "## heading [x]"),
        ("\x1b[2J\x1b]0;title\x07", "[2J]0;title"),
        ("\u202egnp.exe\x7f\x9b2J", "gnp.exe2J"),
        ("\ud800", "\ufffd"),
        (ANNOTATION, ":_" + ANNOTATION[2:]),
    ],
)
def test_what_becomes_of_it(raw: str, shown: str) -> None:
    assert harmless(raw) == shown


def test_colours_are_those_of_the_reports_alone() -> None:
    paint = painter(True)
    report = "".join(f"{paint(ink, 'word')}\n" for ink in ("error", "strong", "frame", "faint", "lost", "fix", "label"))
    assert harmless(report, inks=True) == report
    assert "\x1b" not in harmless(report)
    assert harmless("\x1b[1m::error::x\x1b[0m", inks=True) == "\x1b[1m:_error::x\x1b[0m"
    for other in ("\x1b[8mhidden", "\x1b[2J", "\x1b]8;;http://x\x07", "\x1b[1", "\x1b[\x1b[0m1m", "\x1b[38;5;1m"):
        assert "\x1b" not in harmless(other, inks=True).replace("\x1b[0m", "")


def test_annotations_pass_where_they_are_asked_for() -> None:
    text = f"{ANNOTATION}\n::notice title=a::b\n12 layers: 1 error\n"
    assert harmless(text, annotations=True) == text


@pytest.mark.parametrize(
    "line",
    [
        "::stop-commands::x", "::error::x", "::add-mask::x", "::set-output name=a::b", "::error line=3::x",
        "  ::error file=a::b", "::ERROR file=a::b", "::error file=a", "::debug file=a::b", "::error  file=a::b",
    ],
)  # fmt: skip
def test_no_other_command_passes_with_the_annotations(line: str) -> None:
    assert workflow_commands(harmless(f"{ANNOTATION}\n{line}\n", annotations=True)) == workflow_commands(ANNOTATION)


def test_text_that_goes_on_with_a_line_is_told_from_one_that_starts_it() -> None:
    assert harmless("::a\n::b", starts_line=False) == "::a\n:_b"


pieces = st.sampled_from(
    ["::", ":", "#", "##", "[", "vso", "error", "\n", "\r", " ", "\t", "\x1b[31m", "\x1b[0m", "\x00", "\u2028", "x"]
)
texts = st.lists(pieces | st.text(max_size=3), max_size=12).map("".join)


@given(texts, st.booleans(), st.booleans())
def test_nothing_is_left_to_obey(text: str, inks: bool, starts_line: bool) -> None:
    shown = harmless(text, inks=inks, starts_line=starts_line)
    assert workflow_commands(shown if starts_line else "x" + shown) == []
    for code in INK_CODES if inks else ():
        shown = shown.replace(f"\x1b[{code}m", "")
    assert [c for c in shown if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")] == []
    assert [c for c in shown if unicodedata.category(c) == "Cf" and c not in "\u200c\u200d"] == []


@given(texts, st.booleans())
def test_what_is_harmless_stays_as_it_is(text: str, inks: bool) -> None:
    shown = harmless(text, inks=inks)
    assert harmless(shown, inks=inks) == shown


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("+a: 1\r\n b: 2\r\n", "+a: 1\r\n b: 2\r\n"),
        (" a\rb\r\n", " a b\r\n"),
        ("a\r\n::error::x\r\n", "a\r\n:_error::x\r\n"),
        ("a\r\r\n\x1b[2Jb\r\n", "a \r\n[2Jb\r\n"),
    ],
)
def test_line_breaks_of_two_characters_may_pass(raw: str, shown: str) -> None:
    assert harmless(raw, returns=True) == shown
    assert "\r" not in harmless(raw)
