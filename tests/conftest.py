"""How property tests run, and how snapshots are compared or, with `--refresh`, written anew.

Property tests have no deadlines, which a busy machine would miss; in CI they take the same examples each time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--refresh", action="store_true", help="write snapshots anew instead of comparing with them")


@pytest.fixture
def same_as_before(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Holds a text to a snapshot file."""

    def compare(snapshot: Path, text: str) -> None:
        if request.config.getoption("--refresh"):
            snapshot.write_text(text, encoding="utf-8")
        assert text == snapshot.read_text(encoding="utf-8")

    return compare
