"""Which functions of its files a program may reach: those whose name is said in what it reaches, and no fewer."""

from __future__ import annotations

from collections.abc import Iterable

from convlint.readers.python.programs.segments import Segment, segments
from convlint.readers.python.programs.unit import Units


class Reach:
    """Reaches from entries, over segments that are cut once for each file."""

    def __init__(self, units: Units) -> None:
        self._units = units
        self._cut: dict[str, list[Segment]] = {}

    def of(self, files: Iterable[str]) -> list[Segment]:
        """The segments that a program of these files may run; bodies of modules are run all."""
        waiting: list[Segment] = []
        functions: dict[bytes, list[Segment]] = {}
        classes: dict[bytes, list[Segment]] = {}
        methods: dict[tuple[str, str], list[Segment]] = {}
        for path in files:
            for each in self.segments(path):
                if each.kind == "module" or (each.handed_over and not each.is_method):
                    waiting.append(each)
                if each.kind == "module":
                    continue
                if each.is_method:
                    methods.setdefault((each.path, each.cls), []).append(each)
                elif each.kind == "class":
                    classes.setdefault(each.name.encode(), []).append(each)
                else:
                    functions.setdefault(each.name.encode(), []).append(each)
        return _closed(waiting, functions, classes, methods)

    def segments(self, path: str) -> list[Segment]:
        """All segments of one file; none of one that cannot be read."""
        if path not in self._cut:
            content = self._units.imports.project.content(path)
            self._cut[path] = segments(self._units, path, content) if content is not None else []
        return self._cut[path]


def _closed(
    waiting: list[Segment],
    functions: dict[bytes, list[Segment]],
    classes: dict[bytes, list[Segment]],
    methods: dict[tuple[str, str], list[Segment]],
) -> list[Segment]:
    reached: dict[int, Segment] = {}
    said: set[bytes] = set()
    live: dict[bytes, list[Segment]] = {}  # methods of classes that are said, by name
    while waiting:
        segment = waiting.pop()
        if id(segment) in reached:
            continue
        reached[id(segment)] = segment
        if segment.kind == "class":
            for method in methods.get((segment.path, segment.cls), ()):
                name = method.name.encode()
                live.setdefault(name, []).append(method)
                if name in said or name.startswith(b"__") or method.handed_over:
                    waiting.append(method)
        for word in segment.words - said:
            said.add(word)
            waiting += functions.get(word, ())
            waiting += classes.get(word, ())
            waiting += live.get(word, ())
    return list(reached.values())
