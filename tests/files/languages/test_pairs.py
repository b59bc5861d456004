"""Texts in two languages at once, through all that is done to them on their way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convlint.files.languages.pairs import english_of, other_of, pair, tidied, unmarked

ALIKE = pair("K=60 is odd", "K=60 是奇数")
TEXTS = st.text(st.characters(exclude_characters="\x02\x03\x1f"), max_size=20)


def test_each_half_is_what_was_put_in() -> None:
    assert (english_of(ALIKE), other_of(ALIKE)) == ("K=60 is odd", "K=60 是奇数")
    assert pair("same", "same") == "same"
    assert (english_of("plain"), other_of("plain")) == ("plain", "plain")


def test_words_before_behind_and_between_are_those_of_their_language() -> None:
    text = f"{pair('once CL1 is mended, ', '改正 CL1 之后，')}{ALIKE} (a100)"
    assert english_of(text) == "once CL1 is mended, K=60 is odd (a100)"
    assert other_of(text) == "改正 CL1 之后，K=60 是奇数 (a100)"


def test_pairs_stand_within_pairs() -> None:
    text = pair(f"{ALIKE}; then stop", f"{ALIKE}；然后停下")
    assert english_of(text) == "K=60 is odd; then stop"
    assert other_of(text) == "K=60 是奇数；然后停下"


def test_what_is_filled_in_later_is_filled_into_both() -> None:
    text = pair("of \x00layers\x00", "\x00layers\x00 的").replace("\x00layers\x00", pair("a and b", "a 和 b"))
    assert (english_of(text), other_of(text)) == ("of a and b", "a 和 b 的")


@given(TEXTS, TEXTS, TEXTS)
def test_any_text_survives(english: str, other: str, beside: str) -> None:
    text = beside + pair(english, other) + beside
    assert english_of(text) == beside + english + beside
    assert other_of(text) == beside + other + beside


@given(st.text("\x02\x03\x1fab", max_size=40))
def test_no_mark_is_left_whatever_a_name_holds(text: str) -> None:
    for half in (english_of(text), other_of(text), unmarked(text)):
        assert not {"\x02", "\x03", "\x1f"} & set(half)


@pytest.mark.parametrize(
    ("text", "shown"),
    [("修正 （可选） 或 K", "修正（可选）或 K"), ("a, b (c)", "a, b (c)"), ("K=64 （时间）", "K=64（时间）"), ("", "")],
)
def test_no_space_stands_beside_full_width_punctuation(text: str, shown: str) -> None:
    assert tidied(text) == shown
