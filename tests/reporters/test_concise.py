"""One line a finding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from reports import full_report

from convlint.reporters import Style, reporter

SNAPSHOTS = Path(__file__).parent / "snapshots"


def test_concise_snapshot(same_as_before: Callable[[Path, str], None]) -> None:
    same_as_before(SNAPSHOTS / "concise.txt", reporter("concise")(full_report(), Style()))
