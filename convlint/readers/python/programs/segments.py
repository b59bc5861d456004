"""A file cut into its functions and the rest, each with the words in it: what a program may reach goes by those.

Files are cut by indentation, without parsing them: a program's closure is large, and what is looked at closely small.
Words and not names: strings count, so that what is reached through a registry counts as reached. A line that could be
of two segments is of the module, which runs always.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Literal

from convlint.readers.python.programs.imports import IMPORT
from convlint.readers.python.programs.unit import Function, Unit, Units
from convlint.readers.python.walking import every

_WORD = re.compile(rb"[A-Za-z_]\w*")
_COMMENT = re.compile(rb"#[^\n]*")
_EXPORTS = re.compile(rb"^__all__\s*\+?=\s*[\[(][^\])]*[\])]", re.MULTILINE)
_HEAD = re.compile(rb"([ \t]*)(?:(def|async[ \t]+def|class)[ \t]+(\w+)|(@.*)|(\S.*))?")
_CONTINUED = (b")", b"]", b"}", b"#", b'"', b"'")
# Decorators that hand a function to nobody.
_PLAIN = {
    b"no_grad", b"inference_mode", b"staticmethod", b"classmethod", b"property", b"lru_cache", b"cache", b"wraps",
    b"main", b"command", b"option", b"dataclass", b"contextmanager", b"jit", b"script", b"abstractmethod", b"overload",
    b"cached_property", b"deprecated", b"torch", b"click", b"hydra", b"functools", b"abc", b"setter",
}  # fmt: skip
Kind = Literal["module", "class", "function"]


class Segment:
    """A function, a class without its methods, or the rest of a file."""

    def __init__(
        self, units: Units, path: str, name: str = "", cls: str = "", kind: Kind = "module", line: int = 0
    ) -> None:
        """`line` is that of its `def` or `class`."""
        self._units, self.path, self.name, self.cls, self.kind, self.line = units, path, name, cls, kind, line
        self.lines: list[bytes] = []
        self.decorators: list[bytes] = []
        self._found: dict[re.Pattern[bytes], bool] = {}

    @cached_property
    def content(self) -> bytes:
        """Its text; of a module without imports and exports, as those reach nothing by themselves."""
        text = b"".join(self.lines)
        return _EXPORTS.sub(b"", IMPORT.sub(b"", text)) if self.kind == "module" else text

    @cached_property
    def words(self) -> frozenset[bytes]:
        """All words in it, those of comments left out."""
        return frozenset(_WORD.findall(_COMMENT.sub(b"", self.content)))

    @property
    def is_method(self) -> bool:
        """Whether it is a function of a class."""
        return self.kind == "function" and bool(self.cls)

    @cached_property
    def handed_over(self) -> bool:
        """Whether a decorator may have put it where nothing names it: into a registry."""
        return any(not _PLAIN & set(_WORD.findall(line)) for line in self.decorators)

    def has(self, pattern: re.Pattern[bytes]) -> bool:
        """Whether a pattern is found in it; remembered, as programs share their files."""
        if pattern not in self._found:
            self._found[pattern] = pattern.search(self.content) is not None
        return self._found[pattern]

    @property
    def unit(self) -> Unit | None:
        """Its file, parsed; None where that cannot be."""
        return self._units.get(self.path)

    @cached_property
    def node(self) -> Function | ast.ClassDef | None:
        """What it is in the parsed file; None for a module."""
        unit = self.unit if self.kind != "module" else None
        return unit.at.get(self.line) if unit is not None else None

    @property
    def body(self) -> list[ast.stmt]:
        """Its statements; functions and classes among them are segments of their own."""
        if self.kind == "module":
            return self.unit.file.tree.body if self.unit is not None else []
        return self.node.body if self.node is not None else []


def segments(units: Units, path: str, content: bytes) -> list[Segment]:
    """The segments of a file, that of the module first."""
    module = Segment(units, path)
    found, cls, here = [module], module, module
    inside = -1  # the indentation of what is in `cls`
    decorators: list[bytes] = []
    for number, line in enumerate(content.splitlines(keepends=True), 1):
        deeper = line[:1] in (b" ", b"\t") and (cls is module or (inside >= 0 and line[: inside + 1].isspace()))
        if deeper and not decorators:  # nothing can begin there: most lines
            here.lines.append(line)
            continue
        match = _HEAD.match(line)
        indent = len(match[1]) if match else 0
        keyword, name, decorator, rest = match.group(2, 3, 4, 5) if match else (None, None, None, None)
        blank = not (keyword or decorator or rest) or (rest is not None and rest.startswith(_CONTINUED))
        if not blank and indent == 0:
            here = cls = module
            inside = -1
        elif not blank and cls is not module and (inside < 0 or indent <= inside):
            inside, here = (indent if inside < 0 else inside), cls
        if keyword and (indent == 0 or (cls is not module and indent == inside and here is cls)):
            kind: Kind = "class" if keyword == b"class" else "function"
            title = (name or b"").decode("utf-8", "replace")
            if indent == 0:
                here = Segment(units, path, title, title if kind == "class" else "", kind, number)
                cls = here if kind == "class" else module
                inside = -1
            elif kind == "function":
                here = Segment(units, path, title, cls.name, kind, number)
            if here is not cls or indent == 0:
                here.decorators = decorators
                found.append(here)
        elif decorator and indent in (0, inside):
            decorators = [*decorators, decorator]
            here.lines.append(line)
            continue
        here.lines.append(line)
        if not blank:
            decorators = []
    return found


def parts(segment: Segment) -> Iterator[ast.AST]:
    """The nodes of a segment; of a module or a class, without functions and classes, which are segments too."""
    if segment.kind == "function":
        yield from every(segment.node) if segment.node is not None else ()
        return
    for node in segment.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from every(node)
