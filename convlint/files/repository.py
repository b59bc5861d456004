"""Where a repository begins, and which of its files hold no code of its own."""

from __future__ import annotations

import os
from functools import cache

_MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
TEST_FOLDERS = frozenset({"test", "tests", "testing", "unittests", "doc", "docs"})
VENDOR_FOLDERS = frozenset({"third_party", "thirdparty", "vendor", "vendored", "_vendor", "external", "extern"})


def is_quiet(path: str) -> bool:
    """Whether a path is that of a test, of documentation or of vendored code, on which findings are not reported.

    Folders above the repository say nothing of what it holds, whatever they are called.
    """
    folder, name = os.path.split(path)
    name = name.lower()
    if name.startswith("test_") or name.endswith(("_test.py", "_tests.py")) or name in ("conftest.py", "tests.py"):
        return True
    return _is_quiet_inside(folder, os.getcwd())


def _names_quiet(folder: str) -> bool:
    return not (TEST_FOLDERS | VENDOR_FOLDERS).isdisjoint(folder.lower().replace(os.sep, "/").split("/"))


@cache
def _is_quiet_inside(folder: str, current: str) -> bool:
    """The same of a folder, by its path in the repository; `current` is what its own path starts from."""
    full = os.path.join(current, folder)
    return _names_quiet(full) and _names_quiet(os.path.relpath(full, os.path.join(current, root_of(folder))))


def root_of(path: str) -> str:
    """The root of the repository that contains a file or folder.

    A folder with `.git` takes precedence over one with a package's metadata, as a repository may hold several
    packages. Without either, it is the current folder if `path` lies below it, and otherwise the file's own folder. A
    home folder holds many projects: there it is the folder right below that leads to `path`.
    """
    start = os.path.abspath((path if os.path.isdir(path) else os.path.dirname(path)) or ".")
    folders = [start]  # innermost first
    while (above := os.path.dirname(folders[-1])) != folders[-1]:
        folders.append(above)
    marked = [here for here in folders if any(os.path.lexists(os.path.join(here, mark)) for mark in _MARKS)]
    known = [here for here in marked if os.path.lexists(os.path.join(here, _MARKS[0]))]
    current = os.getcwd()
    inside = folders[: folders.index(current) + 1] if current in folders else [start]
    if len(inside) > 1 and current in (os.path.expanduser("~"), os.sep):
        del inside[-1]
    found = (known or marked or inside[-1:])[0]
    shown = os.path.relpath(found)
    return shown if len(shown) < len(found) else found
