"""Files of Python that are to be edited: opened and parsed, or the reason why it is not."""

from __future__ import annotations

from collections.abc import Callable

from convlint.errors import InputFault
from convlint.fixes.python.constructors import Imports
from convlint.fixes.python.source import PythonSource

Read = Callable[[str], bytes | None]  # the content of a file; None where it cannot be read
Opened = tuple[PythonSource, Imports]


def opened(read: Read, path: str) -> Opened | str:
    """The file at `path` with what it imports, or why there is none."""
    raw = read(path)
    if raw is None:
        return "the file cannot be read"
    try:
        source = PythonSource(raw)
    except InputFault as fault:
        return fault.message
    return source, Imports(source.nodes)


class Sources:
    """What was opened so far, by path, each once."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._opened: dict[str, Opened | str] = {}

    def of(self, path: str) -> Opened | str:
        """As `opened` has it."""
        if path not in self._opened:
            self._opened[path] = opened(self._read, path)
        return self._opened[path]
