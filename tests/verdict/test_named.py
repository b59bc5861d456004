"""What a comment names: each rule by itself, dated, and told where it stands."""

from __future__ import annotations

from datetime import date

import pytest

from convlint.rulebook.book import load_rulebook
from convlint.verdict.comments import Comment, find_comments
from convlint.verdict.named import Naming, line_below

TODAY = date(2026, 5, 1)


def comment(text: str) -> Comment:
    (found,) = find_comments(f"# convlint: {text}", python=True)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ignore[CL102] -- why", [("CL102", {"CL102"}, False, False)]),
        ("ignore[CL102, prefer-nhwc]", [("CL102", {"CL102"}, False, False), ("prefer-nhwc", {"CL401"}, False, False)]),
        ("ignore[CL999]", [("CL999", set(), True, False)]),
        ("ignore[CL102] until 2026-04-30", [("CL102", {"CL102"}, False, True)]),
        ("ignore[CL102] until 2026-05-01", [("CL102", {"CL102"}, False, False)]),
        ("ignore CL102", [(None, set(), True, False)]),
    ],
)
def test_each_rule_by_itself(text: str, expected: list[tuple[object, ...]]) -> None:
    named = list(Naming(load_rulebook(), TODAY).of(comment(text)))
    assert [(each.key and each.key.text, each.codes, bool(each.problem), each.expired) for each in named] == expected


def test_a_mention_points_at_the_rule_and_else_at_the_comment() -> None:
    naming = Naming(load_rulebook(), TODAY)
    (rule,) = naming.of(comment("ignore[CL102] -- why"))
    mention = rule.mention("a.py", used=False, layer="conv")
    assert (mention.location.path, mention.location.line, mention.location.column) == ("a.py", 1, 20)
    assert (mention.rule, mention.reason, mention.used, mention.layer) == ("CL102", "why", False, "conv")
    (unread,) = naming.of(comment("ignore CL102"))
    assert (unread.mention("a.py", used=True).location.column, unread.mention("a.py", used=True).rule) == (1, "")


def test_other_comments_between_are_passed_over() -> None:
    lines = ["# convlint: ignore[CL102]", "  # more", "a = 1"]
    (found,) = find_comments("\n".join(lines), python=True)
    assert line_below(found, lines) == 3
    assert line_below(found, lines[:1]) == 2
