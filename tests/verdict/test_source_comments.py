"""Comments in Python source: what they silence, and when it is said that they silence nothing."""

from __future__ import annotations

from datetime import date

import pytest
from msgspec.structs import replace
from source_records import RULEBOOK, literal, record

from convlint.model.location import Location
from convlint.model.source import SourceReading, Unread
from convlint.report import Finding, Skipped
from convlint.verdict.source_comments import SourceComments

TODAY = date(2026, 1, 1)
CODES = {"CL102", "CL506"}


def _reading(text: str, path: str = "net.py", **more: object) -> SourceReading:
    fields = {"files": (path,), "lines": {path: tuple(text.split("\n"))}, "whole": True} | more
    return SourceReading(**fields)  # type: ignore[arg-type]


def _finding(
    line: int, path: str = "net.py", code: str = "CL102", layer: str | None = None, end: int | None = None
) -> Finding:
    rule = RULEBOOK.by_key[code].info
    at = Location(path=path, line=line, column=1, end_line=end or line, end_column=9)
    return Finding(rule=rule, severity="info", message="", location=at, layer=layer)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("a = 60  # convlint: ignore[CL102] -- paper", 1, "paper"),
        ("# convlint: ignore[channel-alignment] -- above\na = 60", 2, "above"),
        ("# convlint: ignore[CL1] -- above\n# prose\na = 60", 3, "above"),
        ("# convlint: file-ignore[CL102] -- all\n\n\na = 60", 4, "all"),
        ("a = 60  # convlint: ignore[CL506] -- other", 1, None),
        ("a = 60  # convlint: ignore[CL102] until 2025-12-31 -- over", 1, None),
        ("a = 60  # convlint: ignore[CL102] until 2026-12-31 -- not yet", 1, "not yet"),
        ("b = 1  # convlint: ignore[CL102]\na = 60", 2, None),  # of another line, not alone on its own
        ("s = '# convlint: ignore[CL102] -- text'", 1, None),
        ("'''\n# convlint: ignore[CL102] -- text\n'''\na = 60", 4, None),
    ],
)
def test_on_the_line_or_alone_above_it(text: str, line: int, reason: str | None) -> None:
    assert SourceComments(_reading(text), RULEBOOK, CODES, TODAY).reason(_finding(line)) == reason


def test_on_any_line_of_a_call() -> None:
    comments = SourceComments(_reading("a = f(\n    1,\n)  # convlint: ignore[CL102] -- it"), RULEBOOK, CODES, TODAY)
    assert comments.reason(_finding(1, end=3)) == "it"
    assert comments.reason(_finding(1)) is None


def test_at_the_construction_of_what_a_literal_elsewhere_is_blamed_for() -> None:
    layer = record("Net.conv", line=2, path="net.py", K_of=(literal(60, 9, path="train.py"),))
    reading = _reading("import x\nself.conv = conv()  # convlint: ignore[CL102] -- here", layers=(layer,))
    comments = SourceComments(reading, RULEBOOK, CODES, TODAY)
    blamed = replace(_finding(9, "train.py", layer="Net.conv"), location=literal(60, 9, path="train.py").at)
    assert comments.reason(blamed) == "here"
    assert comments.reason(_finding(9, "train.py", layer="Net.other")) is None
    assert comments.reason(_finding(8, "other.py", layer="Net.conv")) is None  # another layer of that name


def test_of_another_file_nothing() -> None:
    comments = SourceComments(_reading("# convlint: file-ignore[CL102] -- all\na = 60"), RULEBOOK, CODES, TODAY)
    assert comments.reason(_finding(2, "other.py")) is None


def _unused(
    reading: SourceReading, *asked: Finding, skipped: tuple[Skipped, ...] = ()
) -> list[tuple[int | None, bool]]:
    comments = SourceComments(reading, RULEBOOK, CODES, TODAY)
    for finding in asked:
        comments.reason(finding)
    return [(mention.location.line, mention.used) for mention in comments.mentions(skipped)]


TEXT = "a = 60  # convlint: ignore[CL102]"


def test_what_silences_nothing_is_unused() -> None:
    assert _unused(_reading(TEXT)) == [(1, False)]
    assert _unused(_reading(TEXT), _finding(1)) == [(1, True)]


def test_nobody_can_say_so_where_something_is_not_known() -> None:
    at = Location(path="net.py", line=1, column=5)
    assert _unused(_reading(TEXT, whole=False)) == [(1, True)]
    assert _unused(_reading(TEXT, unread=(Unread(at=at, why="config"),))) == [(1, True)]
    assert _unused(_reading(TEXT.replace("CL102", "CL101"))) == [(1, True)]  # a rule that does not count
    skipped = (Skipped(code="CL102", layer=None, path="net.py", needs=("x",)),)
    assert _unused(_reading(TEXT), skipped=skipped) == [(1, True)]


def test_of_files_that_were_not_given_nothing_is_said() -> None:
    assert _unused(_reading(TEXT, files=("other.py",))) == []


def test_what_cannot_be_read_has_a_problem() -> None:
    texts = "a = 1  # convlint: ignore\nb = 2  # convlint: ignore[CL999]"
    first, second = SourceComments(_reading(texts), RULEBOOK, CODES, TODAY).mentions(())
    assert first.problem.startswith("write ignore[CL102]")
    assert second.problem.startswith("unknown rule 'CL999'")
    assert not SourceComments(_reading("a = 1"), RULEBOOK, CODES, TODAY)
