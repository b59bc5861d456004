"""Edits are applied where they belong, and never two in one place."""

from __future__ import annotations

import pytest

from convlint.fixes.edits import Edit, applied


@pytest.mark.parametrize(
    ("edits", "after"),
    [
        ([], "0123456789"),
        ([Edit(2, 4, "ab")], "01ab456789"),
        ([Edit(8, 9, ""), Edit(0, 1, "xyz")], "xyz12345679"),
        ([Edit(3, 3, "+")], "012+3456789"),
        ([Edit(10, 10, "+"), Edit(0, 0, "-")], "-0123456789+"),
        ([Edit(2, 4, "a"), Edit(4, 4, "+"), Edit(4, 5, "b")], "01a+b56789"),
    ],
)
def test_each_edit_replaces_its_characters(edits: list[Edit], after: str) -> None:
    assert applied("0123456789", edits) == after


@pytest.mark.parametrize(
    "edits",
    [
        [Edit(2, 4, "a"), Edit(3, 5, "b")],
        [Edit(2, 4, "a"), Edit(2, 4, "a")],
        [Edit(2, 5, "a"), Edit(3, 3, "b")],
        [Edit(3, 3, "a"), Edit(3, 3, "b")],
        [Edit(9, 11, "a")],
        [Edit(-1, 1, "a")],
        [Edit(4, 2, "a")],
    ],
)
def test_what_overlaps_or_leaves_the_text_is_refused(edits: list[Edit]) -> None:
    with pytest.raises(ValueError, match="edit"):
        applied("0123456789", edits)
