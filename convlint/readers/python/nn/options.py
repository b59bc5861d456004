"""Find the defaults of command line options that are numbers: of argparse, absl and TensorFlow's flags.

Which parser made an object can rarely be followed: a network gets `opt` from code that finds its class by name. So an
attribute is an option by its own name and that of its object, or because all that is read from that is an option, if
all programs that have the file agree on its default.
"""

from __future__ import annotations

import ast
import os
import re
from functools import cache, cached_property
from typing import NamedTuple

from convlint.files.repository import is_quiet
from convlint.model.grouping import grouped
from convlint.readers.python.evaluator.values import Const, Preset, Value, literal, stated_by
from convlint.readers.python.imports import ProjectImports
from convlint.readers.python.source_file import SourceFile, last_name

_DECLARES = re.compile(rb"\.(?:add_argument|set_defaults|DEFINE_(?:integer|float))\(")
_SEVERAL = 3  # options by which an object with another name is known
# Usual names of what holds the options, besides those that a call of the parser is assigned to
_HOLDERS = frozenset({"args", "opt", "opts", "options", "flags", "FLAGS"})
# `\b` keeps the time of a long word without a sign proportional to its length.
_HOLDS = re.compile(rb"^[ \t]*(?:self\.)?(\w+)\b[^\n=]*=[^\n]*\bparse(?:_known)?_args\(", re.MULTILINE)
# `opt.width = 8`, `opt.width *= 2`, and both of `opt.width, opt.depth = 8, 2`
_ASSIGNS = re.compile(
    rb"[\n:;,][ \t]*(?:self\.)?(\w+)\.(\w+)[ \t]*(?:(?:[-+*/%]|//)?=(?!=)|(?=,[^=\n()]{0,200}[ \t]=[ \t]))"
)
_ASSIGNS_BY_NAME = re.compile(rb"\bsetattr\((\w+),[ \t]*['\"](\w+)")
_GIVES = re.compile(rb"\bparse(?:_known)?_args\(([^()]+)")  # instead of what the user gives
_SETS = re.compile(rb"\b(?:%s)\.\w+[ \t]*=" % "|".join(_HOLDERS).encode())


class _Programs(NamedTuple):
    """What the files of some programs say of options."""

    declared: dict[str, list[Const | None]]  # the defaults of each; None for those that are no literal numbers
    holders: frozenset[str]
    assigned: dict[str, list[str]]  # the names of objects of which an attribute is set otherwise


class CommandLineOptions:
    """The options of a project."""

    def __init__(self, imports: ProjectImports) -> None:
        self._imports, self._project = imports, imports.project
        self.value, self._around, self._programs = cache(self._value), cache(self._around_file), cache(self._read)
        self._nearest, self._read_from = cache(self._nearest_to), cache(self._names_read)
        self._declared, self._said = cache(self._declared_in), cache(self._said_in)

    def _value(self, holder: str, name: str, path: str) -> Preset | None:
        """Return the attribute `name` of an object called `holder` in a file; None if it is no number known there."""
        programs = self._around(path)
        defaults = self._declared(path).get(name) or programs.declared.get(name) or []
        numbers = [default for default in defaults if default is not None]
        if not numbers or len(numbers) < len(defaults) or any(each.value != numbers[0].value for each in numbers):
            return None
        holders = programs.holders | {holder}
        if not holders.isdisjoint(programs.assigned.get(name, ())):
            return None
        if holder not in programs.holders and not self._reads_options(holder, path, programs):
            return None
        return Preset("config", Const(numbers[0].value, stated_by(*numbers)))

    def values(self, holder: str, path: str) -> dict[str, Value]:
        """Return all numbers among the attributes of an object with a usual name for options: `**vars(args)`."""
        programs = self._around(path)
        names = sorted({*programs.declared, *self._declared(path)}) if holder in programs.holders else ()
        values = {name: self.value(holder, name, path) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    def _reads_options(self, holder: str, path: str, programs: _Programs) -> bool:
        """Whether nothing but options is read from an object with another name, and several of them."""
        names = self._read_from(holder, path)
        return len(names) >= _SEVERAL and all(
            name in programs.declared or not programs.holders.isdisjoint(programs.assigned.get(name, ()))
            for name in names
        )

    def _names_read(self, holder: str, path: str) -> frozenset[str]:
        reads = re.findall(rb"\b%s\.(\w+)" % holder.encode(), self._project.content(path) or b"")
        return frozenset(name.decode() for name in reads)

    def _around_file(self, path: str) -> _Programs:
        """Return what programs with the file say, or those nearby if no imports lead there, as some look for names."""
        return self._programs(self._imports.beside(path) or self._nearest(os.path.dirname(path)))

    def _nearest_to(self, folder: str) -> frozenset[str]:
        """Return what says something in a folder, or in the next above that has a parser: others are other projects."""
        above = os.path.dirname(folder)
        if above == folder:
            return self._saying
        inside = frozenset(path for path in self._saying if path.startswith(folder + os.sep))
        parses = any(_parses(self._project.content(path) or b"") for path in inside if not is_quiet(path))
        return inside if parses else self._nearest(above)

    @cached_property
    def _saying(self) -> frozenset[str]:
        return frozenset(self._project.where(_says))

    def _read(self, paths: frozenset[str]) -> _Programs:
        files = [path for path in sorted(paths) if not is_quiet(path)]
        declared = [option for path in files for option in self._declared(path).items()]
        return _Programs(
            grouped((name, default) for name, defaults in declared for default in defaults),
            _HOLDERS.union(*(self._said(path)[0] for path in files)),
            grouped(pair for path in files for pair in self._said(path)[1]),
        )

    def _said_in(self, path: str) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
        """Return what a file calls its options, and the attributes that it sets, each with the name of its object."""
        content = self._project.content(path) or b""
        parses = b"_args(" in content
        sets = [(name, of) for of, name in _ASSIGNS.findall(b"\n" + content) + _ASSIGNS_BY_NAME.findall(content)]
        for given in _GIVES.findall(content) if parses else ():
            sets += [(name.replace(b"-", b"_"), b"args") for name in re.findall(rb"--([\w-]+)", given)]
        holders = _HOLDS.findall(content) if parses else ()
        return (
            frozenset(name.decode() for name in holders),
            frozenset((name.decode(), of.decode()) for name, of in sets),
        )

    def _declared_in(self, path: str) -> dict[str, list[Const | None]]:
        if not _DECLARES.search(self._project.content(path) or b""):
            return {}
        file = self._project.file(path)
        calls = file.nodes[ast.Call] if file is not None else ()
        return grouped((name, _number(file, name, default)) for call in calls for name, default in _of_call(call))


def _parses(content: bytes) -> bool:
    return any(word in content for word in (b"parse_args(", b"parse_known_args(", b".DEFINE_"))


def _says(content: bytes) -> bool:
    return bool(_parses(content) or _DECLARES.search(content) or _SETS.search(content))


def _of_call(call: ast.Call) -> list[tuple[str, ast.expr | None]]:
    """Return the options that a call declares or gives another default."""
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    match last_name(call.func):
        case "set_defaults":
            return [(name, value) for name, value in keywords.items() if name is not None]
        case "add_argument":
            flags = list(map(_text, call.args)) or [""]
            name = next((flag for flag in flags if flag.startswith("--")), flags[0])
            is_given = (not name.startswith("-") and "nargs" not in keywords) or _is_true(keywords.get("required"))
            name = _text(keywords.get("dest")) or name.lstrip("-").replace("-", "_")
            return [(name, None if is_given else keywords.get("default"))]
        case "DEFINE_integer" | "DEFINE_float":
            given = dict(zip(("name", "default"), call.args, strict=False)) | keywords
            return [(_text(given.get("name")), given.get("default"))]
    return []


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _number(file: SourceFile | None, name: str, default: ast.expr | None) -> Const | None:
    value = default.value if isinstance(default, ast.Constant) else None
    if file is None or default is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return literal(file, default, value, name, default=True)
