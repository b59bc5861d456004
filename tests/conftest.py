"""How property tests run, what the end of a run says, and how snapshots are compared or, by `--refresh`, written.

Property tests have no deadlines, which a busy machine would miss; in CI they take the same examples each time.
Tests marked `browser` run only where `-m` names them, and a line at the end says how many wait. Another says on which
versions of Python the packages were installed, and on which they were not; a third names rules without a translation.
"""

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--refresh", action="store_true", help="write snapshots anew instead of comparing with them")


def pytest_collection_finish() -> None:
    """What pytest keeps of all tests is left out of each later search for garbage, which would go through it again."""
    gc.collect()
    gc.freeze()


WAITING = pytest.StashKey[int]()


@pytest.hookimpl(trylast=True)  # `-m` and `-k` choose first, and folders mark their tests
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "browser" in config.option.markexpr:
        return
    waiting = [item for item in items if item.get_closest_marker("browser")]
    config.stash[WAITING] = len(waiting)
    if waiting:
        config.hook.pytest_deselected(items=waiting)
        items[:] = [item for item in items if item not in waiting]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With several processes each worker collects, and only the one that started them reports."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["waiting"] = session.config.stash.get(WAITING, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[WAITING] = getattr(node, "workeroutput", {}).get("waiting", 0)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if count := config.stash.get(WAITING, 0):
        tests = "1 test waits" if count == 1 else f"{count} tests wait"
        terminalreporter.write_line(f"{tests} for a browser: make test-browser")
    properties = {
        item for reports in terminalreporter.stats.values() for each in reports
        for item in getattr(each, "user_properties", ())
    }  # fmt: skip
    for what in ("packages tried on", "packages not tried on"):
        if versions := sorted(version for name, version in properties if name == what):
            terminalreporter.write_line(f"{what} Python {', '.join(versions)}")
    for what in sorted({name for name, _ in properties if name.startswith("rules not yet in ")}):
        terminalreporter.write_line(f"{what} {', '.join(sorted(code for name, code in properties if name == what))}")


@pytest.fixture
def same_as_before(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Holds a text to a snapshot file."""

    def compare(snapshot: Path, text: str) -> None:
        if request.config.getoption("--refresh"):
            snapshot.write_text(text, encoding="utf-8")
        assert text == snapshot.read_text(encoding="utf-8")

    return compare


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new folder, which is the current one and the root of a project."""
    from convlint.run import run

    monkeypatch.chdir(tmp_path)
    run._root.cache_clear()  # it keeps the root of the folder before
    return tmp_path
