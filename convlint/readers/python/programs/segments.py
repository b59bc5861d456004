"""Cut files into segments (functions, classes, the rest), and find those that a program may reach or surely runs.

Files are cut by their lines, without parsing: a program's closure may have a thousand files.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property, partial
from itertools import chain
from operator import methodcaller
from typing import Any, Literal, TypeVar

from convlint.model.grouping import grouped
from convlint.readers.python.imports import IMPORT
from convlint.readers.python.programs.unit import Definition, ResolvedName, SourceUnit, Units, local_names
from convlint.readers.python.source_file import is_guard
from convlint.readers.python.walking import every

_WORD = re.compile(rb"[A-Za-z_]\w*")
_ATTRIBUTE = re.compile(rb"[.'\"]\s*([A-Za-z_]\w*)")
_CALLED = re.compile(rb"([A-Za-z_]\w*)\(")
_LONG_TEXT = re.compile(rb"\"\"\".*?\"\"\"|'''.*?'''", re.DOTALL)
_PROSE = re.compile(_LONG_TEXT.pattern + rb"|#[^\n]*", re.DOTALL)
_GUARD = re.compile(rb"^if __name__\b", re.MULTILINE)
_COMMENT = re.compile(rb"#[^\n]*")
_EXPORTS = re.compile(rb"^__all__\s*\+?=\s*[\[(][^\])]*[\])]", re.MULTILINE)
_HEAD = re.compile(rb"([ \t]*)(?:(def|async[ \t]+def|class)[ \t]+(\w+)|(@.*)|(\S.*))?")
_CONTINUED = (b")", b"]", b"}", b"#", b'"', b"'")
# Words of decorators that register a function nowhere
_PLAIN = {
    b"no_grad", b"inference_mode", b"staticmethod", b"classmethod", b"property", b"lru_cache", b"cache", b"wraps",
    b"main", b"option", b"dataclass", b"contextmanager", b"jit", b"script", b"abstractmethod", b"overload",
    b"cached_property", b"deprecated", b"torch", b"click", b"hydra", b"functools", b"abc", b"setter",
}  # fmt: skip
# A decorator that registers what a command line or launcher runs, as of click, typer, sacred and Modal
_COMMAND = re.compile(rb"@(?!click\b|typer\b)[\w.]+\.(?:command|automain|local_entrypoint)\b|@app\.function\(")
Kind = Literal["module", "class", "function"]
Result = TypeVar("Result")


class Segment:
    """A function, a class without its methods, or the rest of a module."""

    def __init__(
        self, units: Units, path: str, name: str = "", cls: str = "", kind: Kind = "module", line: int = 0
    ) -> None:
        """`line` is that of its `def` or `class`."""
        self._units, self.path, self.name, self.cls, self.kind, self.line = units, path, name, cls, kind, line
        self.lines: list[bytes] = []
        self.decorators: list[bytes] = []
        self._matches: dict[re.Pattern[bytes], bool] = {}
        self._seen: dict[Callable[[Segment], Any], Any] = {}

    def once(self, look: Callable[[Segment], Result]) -> Result:
        """Return `look(self)`, computed once, as programs share their files."""
        if look not in self._seen:
            self._seen[look] = look(self)
        result: Result = self._seen[look]
        return result

    @cached_property
    def content(self) -> bytes:
        """Its text; for a module, without imports and `__all__`, which by themselves reach nothing."""
        text = b"".join(self.lines)
        return _EXPORTS.sub(b"", IMPORT.sub(b"", text)) if self.kind == "module" else text

    @cached_property
    def words(self) -> frozenset[bytes]:
        """All words in it, without those of comments and docstrings."""
        return frozenset(_WORD.findall(_PROSE.sub(b"", self.content)))

    @cached_property
    def attributes(self) -> frozenset[bytes]:
        """The words behind a dot or a quote."""
        return frozenset(_ATTRIBUTE.findall(_COMMENT.sub(b"", self.content)))

    @cached_property
    def called(self) -> frozenset[bytes]:
        """The words in front of a parenthesis."""
        return called(self.content)

    @cached_property
    def by_import(self) -> bytes:
        """The part that an import runs: without docstrings and the code below the guard."""
        return _LONG_TEXT.sub(b"", _GUARD.split(self.content, maxsplit=1)[0])

    @property
    def is_method(self) -> bool:
        """Whether it is a method."""
        return self.kind == "function" and bool(self.cls)

    @cached_property
    def handed_over(self) -> bool:
        """Whether it is called without its name: installed as a command, or put into a registry by a decorator."""
        return self._is_installed or any(not _PLAIN & set(_WORD.findall(line)) for line in self.decorators)

    @property
    def is_command(self) -> bool:
        """Whether a command line or launcher may run it."""
        registered = self.kind == "function" and not self.cls and any(map(_COMMAND.search, self.decorators))
        return registered or self._is_installed

    @property
    def _is_installed(self) -> bool:
        installed = self._units.imports.project.commands.get(self.path, ())
        return self.kind == "function" and not self.cls and self.name in installed

    def calls_own(self, name: bytes) -> bool:
        """Whether a name that its file defines means that: it imports nothing itself, and asks no object for it."""
        return self.kind != "class" and b"import" not in self.words and name not in self.attributes

    def has(self, pattern: re.Pattern[bytes]) -> bool:
        """Whether a pattern is found in it, searched once, as programs share their files."""
        if pattern not in self._matches:
            self._matches[pattern] = pattern.search(self.content) is not None
        return self._matches[pattern]

    @property
    def unit(self) -> SourceUnit | None:
        """Its parsed file; None if it cannot be parsed."""
        return self._units.get(self.path)

    @cached_property
    def node(self) -> Definition | ast.ClassDef | None:
        """Its definition in the parsed file; None for a module."""
        unit = self.unit if self.kind != "module" else None
        return unit.at.get(self.line) if unit is not None else None

    @cached_property
    def local(self) -> frozenset[str]:
        """The names of a function's own variables, which may be those of functions of the module."""
        unit, node = self.unit, self.node
        return local_names(node, unit) if unit is not None and isinstance(node, Definition) else frozenset()

    def resolve(self, node: ast.expr) -> ResolvedName:
        """Return what a name in it means."""
        return self.unit.resolve(node, self.local) if self.unit is not None else ResolvedName()

    @property
    def body(self) -> list[ast.stmt]:
        """Its statements, including functions and classes that are segments of their own."""
        if self.kind == "module":
            return self.unit.file.tree.body if self.unit is not None else []
        return self.node.body if self.node is not None else []


def called(content: bytes) -> frozenset[bytes]:
    """Return the words in front of a parenthesis."""
    return frozenset(_CALLED.findall(_COMMENT.sub(b"", content)))


def segments(units: Units, path: str, content: bytes) -> list[Segment]:
    """Cut a file into segments, the module first."""
    module = Segment(units, path)
    result, cls, here = [module], module, module
    inside = -1  # the indentation of what is in `cls`
    decorators: list[bytes] = []
    for number, line in enumerate(content.splitlines(keepends=True), 1):
        deeper = line[:1] in (b" ", b"\t") and (cls is module or (inside >= 0 and line[: inside + 1].isspace()))
        if deeper and not decorators:  # nothing can begin there: most lines
            here.lines.append(line)
            continue
        match = _HEAD.match(line)
        assert match is not None  # each part of it may be missing
        indent = len(match[1])
        keyword, name, decorator, rest = match.group(2, 3, 4, 5)
        # A line that begins with a bracket or quote ends an expression of the line above.
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
                result.append(here)
        elif decorator and indent in (0, inside):
            # Kept until the definition that follows, to which they belong.
            decorators = [*decorators, decorator]
            here.lines.append(line)
            continue
        here.lines.append(line)
        if not blank:
            decorators = []
    return result


def parts(segment: Segment) -> Iterator[ast.AST]:
    """Yield the nodes of a segment, without functions and classes that are segments of their own."""
    if segment.kind == "function":
        yield from every(segment.node) if segment.node is not None else ()
        return
    for node in segment.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from every(node)


class Imported(Segment):
    """The body of an imported module, without the code below its guard."""

    def __init__(self, units: Units, module: Segment) -> None:
        super().__init__(units, module.path)
        self.lines = module.lines

    @cached_property
    def content(self) -> bytes:
        """Its text up to the guard."""
        return _GUARD.split(super().content, maxsplit=1)[0]

    @property
    def body(self) -> list[ast.stmt]:
        """Its statements without the guard."""
        return [statement for statement in super().body if not is_guard(statement)]


class Reached:
    """The segments that a program may reach: those that its imports reach, which programs share, and others."""

    def __init__(self, own: Iterable[Segment], shared: Reached | None = None) -> None:
        self._own, self._shared = tuple(own), shared
        self._having: dict[object, list[Segment]] = {}

    def __iter__(self) -> Iterator[Segment]:
        """Return an iterator over the segments."""
        return chain(self._shared or (), self._own)

    def having(self, what: re.Pattern[bytes] | Callable[[Segment], bool]) -> list[Segment]:
        """Return the segments in which a pattern is found, or for which a function returns True."""
        if what not in self._having:
            shared = self._shared.having(what) if self._shared is not None else []
            says = methodcaller("has", what) if isinstance(what, re.Pattern) else what
            self._having[what] = shared + list(filter(says, self._own))
        return self._having[what]


_Lists = dict[Any, tuple[Segment, ...]]


class _Search:
    """The segments that some files reach: it can go on with more files."""

    def __init__(self, before: _Search | None = None) -> None:
        """Start where the search `before` ended, if given."""
        self.files: frozenset[str] = before.files if before else frozenset()
        self.by_name: frozenset[str] = frozenset()  # files that calls import, whose names come from a config
        self.reached: dict[Segment, None] = before.reached.copy() if before else {}
        self._definitions: _Lists = before._definitions.copy() if before else {}  # functions and classes
        self._methods: _Lists = before._methods.copy() if before else {}
        self._words: set[bytes] = before._words.copy() if before else set()
        self._live: _Lists = before._live.copy() if before else {}  # methods of classes that were named, by name

    def add(self, files: Iterable[str], parts: Iterable[Segment], by_name: frozenset[str]) -> _Search:
        """Add the segments of more files, and all that these and the others reach now."""
        waiting: list[Segment] = []
        self.by_name = by_name
        for part in parts:
            # Any module may be imported for its side effects, and a registry is read by computed names.
            computed = part.handed_over or part.path in by_name
            if part.kind == "module" or (computed and not part.is_method):
                waiting.append(part)
            if part.is_method:
                _append(self._methods, (part.path, part.cls), part)
            elif part.kind != "module":
                name = part.name.encode()
                _append(self._definitions, name, part)
                if name in self._words:
                    waiting.append(part)
        self._follow(waiting)
        self.files = self.files.union(files)
        return self

    @cached_property
    def result(self) -> Reached:
        """What it reaches, once it has ended."""
        return Reached(self.reached)

    def _follow(self, waiting: list[Segment]) -> None:
        words = self._words
        while waiting:
            segment = waiting.pop()
            if segment in self.reached:
                continue
            self.reached[segment] = None
            for method in self._methods.get((segment.path, segment.cls), ()) if segment.kind == "class" else ():
                _append(self._live, method.name.encode(), method)
                if _runs(method, words):
                    waiting.append(method)
            for word in sorted(segment.words - words):  # in the same order in each run
                named = self._definitions.get(word, ())
                if own := [part for part in named if part.path == segment.path and segment.calls_own(word)]:
                    waiting += own  # `main` of a script that imports another one
                    continue
                words.add(word)
                waiting += named
                waiting += self._live.get(word, ())


def _append(lists: _Lists, key: object, segment: Segment) -> None:
    """Append to the list of a key; searches that started from one another share the lists."""
    lists[key] = (*lists.get(key, ()), segment)


_MOST_SEARCHES = 8


class Reach:
    """Finds the segments that programs may reach; each file is cut once."""

    def __init__(self, units: Units) -> None:
        self._units = units
        self.segments = cache(self._segments)
        self._imported = cache(partial(Imported, units))
        self._searches: list[_Search] = []  # of the files that the latest programs import

    def of(self, files: Iterable[str], by_name: frozenset[str] = frozenset()) -> Reached:
        """Return the segments that a program of these files may run: all module bodies, and what they name.

        The program begins in the first of them, and imports the others, without the code below their guards.
        """
        entry, *others = tuple(files) or ("",)
        imported = self._of_imported(others, by_name)
        search = _Search(imported).add((entry,), self.segments(entry), by_name)
        return Reached(list(search.reached)[len(imported.reached) :], imported.result)

    def _of_imported(self, files: Sequence[str], by_name: frozenset[str]) -> _Search:
        """Return the search in these files, continued from the largest one in some of them: programs share most."""
        wanted = frozenset(files)
        before = max((search for search in self._searches
                      if search.files <= wanted and by_name.intersection(search.files) <= search.by_name),
                     key=lambda search: len(search.files), default=_Search())  # fmt: skip
        if before.files == wanted:
            return before
        more = [path for path in files if path not in before.files]
        parts = (
            self._imported(part) if part.kind == "module" else part for path in more for part in self.segments(path)
        )
        search = _Search(before).add(more, parts, by_name)
        self._searches = [*self._searches, search][-_MOST_SEARCHES:]
        return search

    def _segments(self, path: str) -> list[Segment]:
        """Return the segments of one file; none if it cannot be read."""
        content = self._units.imports.project.content(path)
        return segments(self._units, path, content) if content is not None else []


def led_to(first: Segment, among: Iterable[Segment]) -> list[Segment]:
    """Return a segment, and those of `among` that it names, directly or indirectly."""
    definitions = grouped([(segment.name.encode(), segment) for segment in among if segment.kind != "module"])
    reached = {first: None}
    waiting = [first]
    while waiting:
        words = waiting.pop().words & definitions.keys()
        new = [segment for word in sorted(words) for segment in definitions[word] if segment not in reached]
        reached.update(dict.fromkeys(new))
        waiting += new
    return list(reached)


Place = tuple[str, int]  # path and line of a `def` or `class`


def run_surely(reached: Iterable[Segment]) -> list[Segment]:
    """Return the segments among `reached` that the program surely runs, by resolved names."""
    waiting: list[Segment] = []
    others: dict[Place, Segment] = {}
    methods: dict[tuple[str, str], list[Segment]] = {}
    for part in reached:
        if part.kind == "module":
            waiting.append(part)
            continue
        others[part.path, part.line] = part
        if part.is_method:
            methods.setdefault((part.path, part.cls), []).append(part)
        elif part.handed_over:
            waiting.append(part)
    followed: dict[Segment, None] = {}
    words: set[bytes] = set()
    live: list[Segment] = []
    while waiting:
        segment = waiting.pop()
        if segment in followed:
            continue
        followed[segment] = None
        # A method is called on objects of unknown type, so that its bare name counts.
        words |= segment.words
        if segment.kind == "class":
            live += methods.get((segment.path, segment.name), ())
        # The last is taken first, so that the code comes in the order in which it is written.
        waiting += [others[place] for place in sorted(segment.once(_leads_to), reverse=True) if place in others]
        waiting += [method for method in live if _runs(method, words)]
        live = [method for method in live if not _runs(method, words)]
    return list(followed)


def _leads_to(segment: Segment) -> frozenset[Place]:
    """Return the definitions to which the names of a segment resolve."""
    bases: Sequence[ast.AST] = segment.node.bases if isinstance(segment.node, ast.ClassDef) else ()
    names = (node for node in (*parts(segment), *bases) if isinstance(node, ast.Name | ast.Attribute))
    meanings = [segment.resolve(node) for node in names if isinstance(node.ctx, ast.Load)]
    return frozenset((meaning.unit.path, meaning.node.lineno) for meaning in meanings if meaning.unit and meaning.node)


def _runs(method: Segment, words: set[bytes]) -> bool:
    """Whether a method of a used class runs: its name occurs, Python calls it, or a decorator registers it."""
    return method.name.encode() in words or method.name.startswith("__") or method.handed_over
