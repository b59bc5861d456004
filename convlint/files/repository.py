"""Where a repository begins, and which of its files hold no code of its own."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache

_MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
TEST_FOLDERS = frozenset({"test", "tests", "testing", "unittests", "doc", "docs"})
VENDOR_FOLDERS = frozenset({"third_party", "thirdparty", "vendor", "vendored", "_vendor", "external", "extern"})


def is_quiet(path: str) -> bool:
    """Whether a path is that of a test, of documentation or of vendored code, on which findings are not reported.

    Folders above the repository say nothing of what it holds, whatever they are called, nor do those above the current
    folder, into which somebody went.
    """
    folder, name = os.path.split(path)
    name = name.lower()
    if name.startswith("test_") or name.endswith(("_test.py", "_tests.py")) or name in ("conftest.py", "tests.py"):
        return True
    return _names_quiet(folder) and _is_quiet_inside(folder, os.getcwd())


def _names_quiet(folder: str) -> bool:
    return not (TEST_FOLDERS | VENDOR_FOLDERS).isdisjoint(folder.lower().replace(os.sep, "/").split("/"))


@cache
def _is_quiet_inside(folder: str, current: str) -> bool:
    """The same of a folder, by its path in the repository; `current` is what its own path starts from."""
    full = os.path.normpath(os.path.join(current, folder))
    return _names_quiet(os.path.relpath(full, _outermost(full, current)))


def _outermost(folder: str, current: str) -> str:
    """The outermost repository around an absolute folder: vendored code may be one of its own inside it.

    Without `.git`, the outermost folder with a package's metadata, or the current one if that lies above it.
    """
    folders = _from_inside(folder)
    known, marked = _repositories(folders)
    if current in folders and not _holds_projects(current):
        marked = sorted({*marked, current}, key=len, reverse=True)
    return (known or marked or [folder])[-1]


def _from_inside(folder: str) -> list[str]:
    """An absolute folder and those above it, innermost first."""
    folders = [folder]
    while (above := os.path.dirname(folders[-1])) != folders[-1]:
        folders.append(above)
    return folders


def _repositories(folders: Iterable[str]) -> tuple[list[str], list[str]]:
    """Those of the folders that have `.git`, and those that have that or a package's metadata, in their order."""
    marks = {here: [mark for mark in _MARKS if os.path.lexists(os.path.join(here, mark))] for here in folders}
    return [here for here, present in marks.items() if _MARKS[0] in present], [
        here for here, present in marks.items() if present
    ]


def _holds_projects(folder: str) -> bool:
    """Whether many projects lie in it: it is somebody's home, or the root of the disk."""
    return folder in (os.path.expanduser("~"), os.sep)


def root_of(path: str) -> str:
    """The root of the repository that contains a file or folder.

    A folder with `.git` takes precedence over one with a package's metadata, as a repository may hold several
    packages. Without either, it is the current folder if `path` lies below it, and otherwise the file's own folder. A
    home folder holds many projects: there it is the folder right below that leads to `path`.
    """
    start = os.path.abspath((path if os.path.isdir(path) else os.path.dirname(path)) or ".")
    folders = _from_inside(start)
    known, marked = _repositories(folders)
    current = os.getcwd()
    inside = folders[: folders.index(current) + 1] if current in folders else [start]
    if len(inside) > 1 and _holds_projects(current):
        del inside[-1]
    root = (known or marked or inside[-1:])[0]
    shown = os.path.relpath(root)
    return shown if len(shown) < len(root) else root


def from_checkout(path: str, variable: str) -> str:
    """The path from the checkout that a CI service names in a variable of the environment, by which it knows files.

    As it is where the variable names no folder above the current one, or the path is that of no file.
    """
    root = os.environ.get(variable, "")
    root = os.path.realpath(root) if os.path.isabs(root) else ""
    absolute = os.path.abspath(path)
    if not root or not os.getcwd().startswith(os.path.join(root, "")) or not os.path.exists(path):
        return path
    return os.path.relpath(absolute, root) if absolute.startswith(os.path.join(root, "")) else path
