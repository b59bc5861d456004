"""Files of Python that are to be edited: each opened and parsed once, or the reason why it is not."""

from __future__ import annotations

from collections.abc import Callable

from convlint.errors import InputFault
from convlint.fixes.python.constructors import Imports
from convlint.fixes.python.source import PythonSource

Opened = tuple[PythonSource, Imports]


class Sources:
    """What was opened so far, by path."""

    def __init__(self, read: Callable[[str], bytes | None]) -> None:
        """`read` gives the content of a file; None where it cannot be read."""
        self._read = read
        self._opened: dict[str, Opened | str] = {}

    def of(self, path: str) -> Opened | str:
        """The file at `path` with what it imports, or why there is none."""
        if path not in self._opened:
            self._opened[path] = self._open(path)
        return self._opened[path]

    def _open(self, path: str) -> Opened | str:
        raw = self._read(path)
        if raw is None:
            return "the file cannot be read"
        try:
            source = PythonSource(raw)
        except InputFault as fault:
            return fault.message
        return source, Imports(source.nodes)
