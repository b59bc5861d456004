"""Python source as text and syntax tree: places of nodes, edits in bytes, and comparing two modules."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from msgspec.structs import replace

from convlint.files.bounded_file import python_encoding
from convlint.fixes.edits import Edit
from convlint.model.errors import InputFault
from convlint.model.location import CodeEdit, Span, TextEdit
from convlint.model.report import Fix
from convlint.readers.python.walking import Nodes, by_kind, every


def by_columns(edit: CodeEdit, content: bytes) -> TextEdit:
    """The same edit by lines and columns, in the encoding that the module declares."""
    encoding = python_encoding(content)

    def place(offset: int) -> tuple[int, int]:
        begin = content.rfind(b"\n", 0, offset) + 1
        return content.count(b"\n", 0, offset) + 1, len(content[begin:offset].decode(encoding)) + 1

    (line, column), (end_line, end_column) = place(edit.start), place(edit.end)
    return TextEdit(
        path=edit.path, line=line, column=column, end_line=end_line, end_column=end_column, text=edit.new
    )  # fmt: skip


def fix_with_edits(fix: Fix, edits: tuple[CodeEdit, ...], content: Callable[[str], bytes]) -> Fix:
    """The fix with its edits, by bytes and by columns. Edits of code change what a run computes, so none is safe."""
    by_places = tuple(by_columns(edit, content(edit.path)) for edit in edits)
    return replace(fix, code_edits=edits, edits=by_places, edits_safety="unsafe")


_LINE_BREAK = re.compile(r"\r\n|\r|\n")  # what Python takes for one; a form feed is none


class Lines:
    """The lines of Python text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(match.end() for match in _LINE_BREAK.finditer(text))]
        self._narrow = text.isascii()  # a character is a byte

    def extent(self, node: ast.expr) -> tuple[int, int]:
        """The characters of an expression: from, and up to."""
        return self.offset(node), self.end(node)

    def offset(self, node: ast.stmt | ast.expr) -> int:
        """The character that a node begins with."""
        return self._offset(node.lineno, node.col_offset)

    def end(self, node: ast.stmt | ast.expr) -> int:
        """The character behind a node."""
        assert node.end_lineno is not None  # the parser gives every node its end
        assert node.end_col_offset is not None
        return self._offset(node.end_lineno, node.end_col_offset)

    def place(self, line: int, column: int) -> int | None:
        """The character at a line and a column, both from 1; None where there is no such line."""
        return self._starts[line - 1] + column - 1 if 0 < line <= len(self._starts) else None

    def line_around(self, offset: int) -> tuple[int, int]:
        """The characters of the line that a character is in: from, and up to its line break."""
        start = self._starts[bisect_right(self._starts, offset) - 1]
        found = _LINE_BREAK.search(self.text, offset)
        return start, len(self.text) if found is None else found.start()

    def line_break(self, offset: int) -> str:
        """How the line ends that a character is in."""
        found = _LINE_BREAK.search(self.text, offset)
        return "\n" if found is None else found.group()

    def _offset(self, line: int, column: int) -> int:
        """The character at a place that is counted as the parser does: from line 1, in bytes of UTF-8."""
        start = self._starts[line - 1]
        if self._narrow:
            return start + column
        text = self.text[start : start + column]  # no fewer characters than bytes
        return start + (column if text.isascii() else len(text.encode()[:column].decode()))


MOST_BYTES = 4 << 20  # a syntax tree takes many times the memory of its text


class PythonSource(Lines):
    """`text` is the module in characters, without a byte order mark; `tree` its syntax."""

    def __init__(self, raw: bytes) -> None:
        """Raises InputFault for what is no Python, and for text that its encoding would write in another way."""
        if len(raw) > MOST_BYTES:
            raise InputFault(f"more than {MOST_BYTES >> 20} MiB of Python")
        try:
            self.encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
            text = raw.decode(self.encoding)
            faithful = text.encode(self.encoding) == raw
        except (SyntaxError, UnicodeError, LookupError) as error:
            raise InputFault(f"not text: {error}") from None
        if not faithful:
            raise InputFault(f"its {self.encoding} is not as it would be written anew")
        super().__init__(text)
        self.raw = raw
        self.tree = parsed(self.text)

    @cached_property
    def nodes(self) -> Nodes:
        """Those of the tree, by kind."""
        return by_kind(every(self.tree))

    def call_at(self, span: Span) -> ast.Call | None:
        """The call that is exactly there; a span that is no more than a line holds none for sure."""
        line, column, end_line, end_column = span
        start, end = self.place(line, column), self.place(end_line, end_column)
        found = None
        for call in self._calls.get((line, end_line), ()):
            if self.extent(call) == (start, end):
                found = call
        return found

    @cached_property
    def _calls(self) -> Mapping[tuple[int, int | None], list[ast.Call]]:
        """By the lines that they begin and end on."""
        found: dict[tuple[int, int | None], list[ast.Call]] = {}
        for call in self.nodes[ast.Call]:
            found.setdefault((call.lineno, call.end_lineno), []).append(call)
        return found

    def in_bytes(self, edits: Sequence[Edit]) -> tuple[Edit, ...]:
        """Edits of characters as edits of the file's bytes, in order."""
        codec = self.encoding.removesuffix("-sig")
        done, at = 0, len(self.raw) - len(self.text.encode(codec))  # the byte order mark
        found = []
        for edit in sorted(edits):
            start = at + len(self.text[done : edit.start].encode(codec))
            at = start + len(self.text[edit.start : edit.end].encode(codec))
            done = edit.end
            found.append(Edit(start, at, edit.new))
        return tuple(found)


def parsed(text: str | bytes) -> ast.Module:
    """The syntax tree of Python text. Raises InputFault."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the compiler, about what the text does
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputFault(f"not Python: {error}") from None


Value = int | bool | tuple[int, ...]


class Rewrites(NamedTuple):
    """What literals become, and which keywords calls get, by name."""

    literals: Mapping[ast.Constant, Value]
    keywords: Mapping[ast.Call, Mapping[str, Value]]


class ParsedModule(NamedTuple):
    """A syntax tree, and the text that it was parsed from."""

    tree: ast.Module
    lines: Lines


def same(old: ParsedModule, new: ParsedModule, rewrites: Rewrites) -> bool:
    """Whether two modules differ in nothing but what was to be rewritten."""
    wanted = len(rewrites.literals) + len(rewrites.keywords)
    comparison = _Comparison(rewrites)
    if not comparison.agree(old, new, _Texts(old.lines, new.lines)):
        return False
    # A literal in a statement of unchanged text was not met: then the trees are compared as a whole.
    return len(comparison.met) == wanted or _Comparison(rewrites).agree(old, new, None)


class _Texts(NamedTuple):
    """The text of both modules. Two statements of one kind that have one text are the same, wherever they stand."""

    old: Lines
    new: Lines

    def differing(self, old: list[ast.stmt], new: list[ast.stmt]) -> Iterator[tuple[ast.stmt, ast.stmt]]:
        for one, other in zip(old, new, strict=True):
            if type(one) is not type(other) or _text(self.old, one) != _text(self.new, other):
                yield one, other


class _Comparison:
    """Compares two syntax trees; `met` are the nodes that were to be rewritten and have been."""

    def __init__(self, rewrites: Rewrites) -> None:
        self.rewrites = rewrites
        self.met: set[ast.AST] = set()

    def agree(self, old: ParsedModule, new: ParsedModule, texts: _Texts | None) -> bool:
        """Whether all that has another text is as it was meant; without texts, whether all is."""
        pending: list[tuple[Any, Any]] = [(old.tree, new.tree)]
        while pending:
            one, other = pending.pop()
            if type(one) is not type(other):
                return False
            if isinstance(one, list):
                if len(one) != len(other):
                    return False
                by_text = texts is not None and one and isinstance(one[0], ast.stmt)
                pending += texts.differing(one, other) if texts and by_text else zip(one, other, strict=True)
            elif isinstance(one, ast.Constant) and one in self.rewrites.literals:
                if not self._became(one, other):
                    return False
            elif isinstance(one, ast.AST):
                fields = {name: (getattr(one, name, None), getattr(other, name, None)) for name in one._fields}
                if isinstance(one, ast.Call) and self.rewrites.keywords.get(one) and not self._gained(one, fields):
                    return False
                pending += fields.values()
            elif one != other:
                return False
        return True

    def _became(self, literal: ast.Constant, new: ast.Constant) -> bool:
        wanted = self.rewrites.literals[literal]
        self.met.add(literal)
        return type(new.value) is type(wanted) and new.value == wanted

    def _gained(self, call: ast.Call, fields: dict[str, tuple[Any, Any]]) -> bool:
        """Whether a call got its keywords behind all others, which alone are left in `fields`."""
        added = self.rewrites.keywords[call]
        self.met.add(call)
        before, after = fields["keywords"]
        gained = (after or [])[-len(added) :]
        fields["keywords"] = before, (after or [])[: -len(added)]
        return {each.arg: ast.unparse(each.value) for each in gained} == {
            name: repr(value) for name, value in added.items()
        }


def _text(lines: Lines, node: ast.stmt) -> str:
    """What a statement says, from its first decorator on."""
    decorators = getattr(node, "decorator_list", None)
    return lines.text[lines.offset(decorators[0] if decorators else node) : lines.end(node)]
