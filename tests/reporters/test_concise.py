"""One line a finding."""

from __future__ import annotations

from pathlib import Path

from reports import full_report

from convlint.reporters import Style, reporter

SNAPSHOTS = Path(__file__).parent / "snapshots"


def test_concise_snapshot() -> None:
    assert reporter("concise")(full_report(), Style()) == (SNAPSHOTS / "concise.txt").read_text(encoding="utf-8")
