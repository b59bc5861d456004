"""Which functions and modules can lead to a setting: the rest of a program need not be followed."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable

from convlint.readers.python.programs.assignments import TRACES
from convlint.readers.python.programs.closure import Imports
from convlint.readers.python.programs.reach import Reach
from convlint.readers.python.programs.segments import Segment
from convlint.readers.python.programs.unit import Function, Unit

_WORD = re.compile(rb"\w+")
_LARGE = 80  # files; in smaller ones it is worth to know under what each import takes place
SETS = re.compile(b"|".join(map(re.escape, TRACES)))


def may_set(content: bytes) -> bool:
    """Whether there is anything in it that SETS finds; asked of whole files, and sooner answered."""
    return any(trace in content for trace in TRACES)


class Relevant:
    """Those that set something, and those that say the name of one of these; over all files asked about so far."""

    def __init__(self, imports: Imports, reach: Reach) -> None:
        self._imports, self._reach = imports, reach
        self._files: set[str] = set()
        self._functions: set[tuple[str, int]] = set()
        self._modules: set[str] = set()
        self._direct: set[str] = set()
        self._names: set[bytes] = set()
        self._hot: dict[str, list[int]] = {}

    def add(self, files: Iterable[str]) -> None:
        """Looks through more files."""
        new = set(files) - self._files
        if not new:
            return
        self._files |= new
        self._hot.clear()
        segments = [each for path in self._files for each in self._reach.segments(path)]
        found = self._setting(segments)
        self._functions = {(each.path, each.line) for each in found if each.kind == "function"}
        self._modules = {each.path for each in found if each.kind != "function"}
        self._direct = set(self._modules)
        importers: dict[str, list[str]] = {}
        for path in self._files:
            for each in self._imports.near(path):
                importers.setdefault(each, []).append(path)
        waiting = list(self._modules)
        while waiting:
            for path in importers.get(waiting.pop(), ()):
                if path not in self._modules:
                    self._modules.add(path)
                    waiting.append(path)

    def function(self, unit: Unit, node: Function) -> bool:
        """Whether a function can lead to a setting."""
        return (unit.path, node.lineno) in self._functions

    def module(self, path: str) -> bool:
        """Whether to import a file can."""
        return path in self._modules

    def passes_on(self, path: str) -> bool:
        """Whether a file of a large repository only imports what sets something: it need not be parsed."""
        return path not in self._direct and len(self._files) > _LARGE

    def imports(self, path: str) -> bool:
        """Whether anything that a file imports can."""
        return not self._modules.isdisjoint(self._imports.near(path))

    def between(self, unit: Unit, first: int, last: int) -> bool:
        """Whether lines of a file say anything that can lead to a setting."""
        if unit.path not in self._hot:
            self._hot[unit.path] = _lines_with(self._names, unit.file.content)
        lines = self._hot[unit.path]
        at = bisect.bisect_left(lines, first)
        return at < len(lines) and lines[at] <= last

    def _setting(self, segments: list[Segment]) -> list[Segment]:
        content = self._imports.project.content
        setting = {path for path in self._files if may_set(content(path) or b"")}
        found: list[Segment] = []
        rest: list[Segment] = []
        for each in segments:
            (found if each.path in setting and each.has(SETS) else rest).append(each)
        self._names = set()
        new = found
        while new:
            names = {name.encode() for each in new for name in (each.name, each.cls) if name and name != "__init__"}
            self._names |= names
            new = [each for each in rest if not names.isdisjoint(each.words)]
            if new:
                chosen = {id(each) for each in new}
                rest = [each for each in rest if id(each) not in chosen]
                found = found + new
        return found


def _lines_with(names: set[bytes], content: bytes) -> list[int]:
    """The lines that say one of the names, or set something by themselves."""
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    sets = may_set(content)
    return [
        number
        for number, line in enumerate(content.split(b"\n"), 1)
        if not names.isdisjoint(_WORD.findall(line)) or (sets and may_set(line))
    ]
