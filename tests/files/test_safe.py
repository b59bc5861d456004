"""What comes from files is harmless before any format sees it."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convlint.cli.streams.gate import harmless
from convlint.files.safe import ascii_only, clean, clean_path, fields, is_exact, number, plain
from convlint.model.location import Location


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("conv1", "conv1"),
        ("größe 中文 🙂", "größe 中文 🙂"),
        ("a\nb\r\nc\td", "a b  c d"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x07link", "]8;;http://xlink"),
        ("a\x00b\x7fc\x9bd", "abc"),  # U+009B opens a control sequence that d ends
        ("user\u202egnp.exe", "usergnp.exe"),
        ("\u2066a\u2069\u200f\ufeff\u061c", "a"),
        ("line\u2028sep\u2029\x85", "line sep  "),
        ("\ud800 lone", "\ufffd lone"),
        ("\uffff\ufdd0", "\ufffd\ufffd"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("##[error]x", "#_[error]x"),
        ("##vso[task.setvariable]", "#_vso[task.setvariable]"),
        ("#\x00#[error]", "#_[error]"),
        ("## heading", "## heading"),
    ],
)
def test_clean(raw: str, shown: str) -> None:
    assert clean(raw) == shown


@pytest.mark.parametrize("text", ["", "K: 64", "\n  K: 64", "\r\n\tK: 64,\r\n", "名 🙂\u200d", "# #[x", "## x"])
def test_exact(text: str) -> None:
    assert is_exact(text)


@pytest.mark.parametrize(
    "text",
    ["\x07", "\r", "\n\r", "\x85", "\u2028", "\u00a0", "\u202e", "\ufeff", "\ud800", "\ufdd0", "##[error]", "\x0b"],
)
def test_not_exact(text: str) -> None:
    assert not is_exact(text)
    assert not is_exact(f"K: {text}64")


@given(st.text())
def test_what_is_exact_reaches_its_reader(text: str) -> None:
    written = json.dumps({"text": text}, ensure_ascii=False)
    assert not is_exact(text) or harmless(written) == written


@given(st.text())
def test_cleaned_text_is_one_harmless_line(text: str) -> None:
    cleaned = clean(text)
    assert len(cleaned.splitlines()) <= 1
    assert not [c for c in cleaned if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")]
    cleaned.encode("utf-8")
    assert clean(cleaned) == cleaned


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("./a/b.yaml", "a/b.yaml"),
        ("././/a", "a"),
        ("../a", "../a"),
        (".", "."),
        ("./", "."),
        ("/abs", "/abs"),
        ("::error ::x", "./::error ::x"),
        ("./::error ::x", "./::error ::x"),
    ],
)
def test_paths(raw: str, shown: str) -> None:
    assert clean_path(raw) == shown


def test_ascii_only() -> None:
    assert ascii_only("é中😀") == r"\xe9\u4e2d\U0001f600"


@pytest.mark.parametrize(
    ("value", "written"),
    [(None, None), (float("nan"), None), (float("inf"), None), (1.23456, 1.235), (7, 7), (2**70, 2**70)],
)
def test_numbers(value: float | None, written: float | None) -> None:
    assert number(value) == written


def test_fields_of_records_are_json_under_their_own_names() -> None:
    at = Location(path="./a\x1b[31m.yaml", line=3)
    assert fields(at, "path", "line", "column") == {"path": "a.yaml", "line": 3, "column": None}
    values = ("a\tb", 1.23456, float("nan"), True, (1, (2.5,)), {"runtime.x": 1.23456789})
    assert plain(values) == ["a b", 1.235, None, True, [1, [2.5]], {"runtime.x": 1.234568}]
