"""Python source as text and syntax tree: places of nodes, and rewrites of literals, keywords and statements.

Each result is parsed again, and refused unless its syntax tree differs from the old one in exactly what was wanted.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from msgspec.structs import replace

from convlint.files.bounded_file import python_encoding
from convlint.fixes.edits import Edit, applied
from convlint.model.errors import InputFault
from convlint.model.location import CodeEdit, Span, TextEdit
from convlint.model.report import Fix
from convlint.readers.python.walking import Nodes, bodies, by_kind, every


def by_columns(edit: CodeEdit, content: bytes) -> TextEdit:
    """The same edit by lines and columns, in the encoding that the module declares."""
    encoding = python_encoding(content)

    def place(offset: int) -> tuple[int, int]:
        begin = content.rfind(b"\n", 0, offset) + 1
        return content.count(b"\n", 0, offset) + 1, len(content[begin:offset].decode(encoding)) + 1

    (line, column), (end_line, end_column) = place(edit.start), place(edit.end)
    return TextEdit(path=edit.path, line=line, column=column, end_line=end_line, end_column=end_column, text=edit.new)


def fix_with_edits(fix: Fix, edits: Mapping[str, Iterable[Edit]], content: Callable[[str], bytes | None]) -> Fix:
    """The fix with its edits by file, in bytes and by columns. They change what a run computes, so none is safe."""
    code_edits = tuple(
        CodeEdit(path=path, start=edit.start, end=edit.end, new=edit.new)
        for path, file_edits in sorted(edits.items())
        for edit in file_edits
    )
    by_places = tuple(by_columns(edit, content(edit.path) or b"") for edit in code_edits)
    return replace(fix, code_edits=code_edits, edits=by_places, edits_safety="unsafe")


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
        match = _LINE_BREAK.search(self.text, offset)
        return start, len(self.text) if match is None else match.start()

    def line_break(self, offset: int) -> str:
        """How the line ends that a character is in."""
        match = _LINE_BREAK.search(self.text, offset)
        return "\n" if match is None else match.group()

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
        return None if start is None or end is None else self._calls.get((start, end))

    @cached_property
    def _calls(self) -> Mapping[tuple[int, int], ast.Call]:
        """By the characters that they begin and end with."""
        return {self.extent(call): call for call in self.nodes[ast.Call]}

    def in_bytes(self, edits: Sequence[Edit]) -> tuple[Edit, ...]:
        """Edits of characters as edits of the file's bytes, in order."""
        codec = self.encoding.removesuffix("-sig")
        done, at = 0, len(self.raw) - len(self.text.encode(codec))  # the byte order mark
        byte_edits = []
        for edit in sorted(edits):
            start = at + len(self.text[done : edit.start].encode(codec))
            at = start + len(self.text[edit.start : edit.end].encode(codec))
            done = edit.end
            byte_edits.append(Edit(start, at, edit.new))
        return tuple(byte_edits)


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


def same(old: PythonSource, text: str, rewrites: Rewrites) -> bool:
    """Whether `text` differs from a module in nothing but what was to be rewritten. Raises InputFault for no Python."""
    new = parsed(text)
    if len(old.tree.body) != len(new.body):
        return False
    lines, others = _LINE_BREAK.split(old.text), _LINE_BREAK.split(text)
    edited = {node.lineno for node in (*rewrites.literals, *rewrites.keywords)}
    # Statements of one text are one, wherever they stand; that of a decorator is above theirs.
    pending: list[tuple[Any, Any]] = [
        (node, other)
        for node, other in zip(old.tree.body, new.body, strict=True)
        if node.col_offset != other.col_offset
        or node.end_col_offset != other.end_col_offset
        or lines[node.lineno - 1 : node.end_lineno] != others[other.lineno - 1 : other.end_lineno]
        or getattr(node, "decorator_list", None)
        or not edited.isdisjoint(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    ]
    while pending:
        node, other = pending.pop()
        if type(node) is not type(other):
            return False
        if isinstance(node, list):
            if len(node) != len(other):
                return False
            pending += zip(node, other, strict=True)
        elif isinstance(node, ast.Constant) and node in rewrites.literals:
            pending.append((rewrites.literals[node], other.value))
        elif isinstance(node, ast.Call) and node in rewrites.keywords:
            keywords = [*node.keywords, *_keywords(rewrites.keywords[node])]
            pending += ((node.func, other.func), (node.args, other.args), (keywords, other.keywords))
        elif isinstance(node, ast.AST):
            for name in node._fields:
                mine, theirs = getattr(node, name, None), getattr(other, name, None)
                # Most fields are contexts, texts and empty lists that are equal.
                empty = mine.__class__ is theirs.__class__ is list and not (mine or theirs)
                if not (mine is theirs or empty or (mine.__class__ is theirs.__class__ is str and mine == theirs)):
                    pending.append((mine, theirs))
        elif node != other:
            return False
    return True


def _keywords(keywords: Mapping[str, Value]) -> list[ast.keyword]:
    return [ast.keyword(name, ast.parse(repr(value), mode="eval").body) for name, value in keywords.items()]


_LONE_RETURN = re.compile(r"\r(?!\n)")  # a line break for the parser, and not for the tokenizer
_SPACE = frozenset((tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT))


def rewritten(source: PythonSource, rewrites: Rewrites) -> tuple[Edit, ...]:
    """The edits in bytes, in order. Raises InputFault where the edited module would not be the same otherwise."""
    edits = _edits(source, rewrites)
    try:
        text = applied(source.text, edits)
    except ValueError:
        raise InputFault("what would change overlaps") from None
    if not same(source, text, rewrites):
        raise InputFault("the edited module would mean something else")
    return _in_bytes(source, edits, text)


def _in_bytes(source: PythonSource, edits: Sequence[Edit], text: str) -> tuple[Edit, ...]:
    """The edits in bytes. Raises InputFault where these do not make `text`: some encodings carry state along."""
    in_bytes = source.in_bytes(edits)
    if applied_to_bytes(source.raw, in_bytes) != text.encode(source.encoding):
        raise InputFault(f"its {source.encoding} cannot be edited in places")
    return in_bytes


def rewritten_each(source: PythonSource, parts: Sequence[Rewrites]) -> list[tuple[Edit, ...] | str]:
    """The edits of each part by itself, or why there are none; the module is parsed once where all can be made."""
    if not parts:
        return []
    try:
        edits = rewritten(
            source,
            Rewrites(
                {node: value for part in parts for node, value in part.literals.items()},
                {call: keywords for part in parts for call, keywords in part.keywords.items()},
            ),
        )
        places = sorted((edit, number) for number, part in enumerate(parts) for edit in _edits(source, part))
    except InputFault as fault:
        # Parsing is what takes time: halves find the parts that fail in a few parses, not one for each.
        half = len(parts) // 2
        if not half:
            return [fault.message]
        return [*rewritten_each(source, parts[:half]), *rewritten_each(source, parts[half:])]
    result: list[tuple[Edit, ...]] = [() for _ in parts]
    for (_, number), edit in zip(places, edits, strict=True):
        result[number] += (edit,)
    return [*result]


def _edits(source: PythonSource, rewrites: Rewrites) -> list[Edit]:
    """The edits in characters."""
    return [
        *(Edit(*source.extent(node), repr(value)) for node, value in rewrites.literals.items()),
        *(_added(source, call, keywords) for call, keywords in rewrites.keywords.items()),
    ]


def applied_to_bytes(raw: bytes, edits: Iterable[Edit]) -> bytes:
    """The file after edits of its bytes, which put in nothing but ASCII."""
    return applied(raw.decode("latin-1"), edits).encode("latin-1")


def _added(source: PythonSource, call: ast.Call, keywords: Mapping[str, Value]) -> Edit:
    """The edit behind the last argument; on new lines where each argument has its own, and a comma ends the last."""
    new = [f"{name}={value!r}" for name, value in keywords.items()]
    start, end = source.extent(call)
    last, comma = _last_two(source.text[start:end])
    at, closing = start + last, end - 1
    arguments = sorted(source.extent(node) for node in (*call.args, *(word.value for word in call.keywords)))
    if not arguments:
        return Edit(at, at, ", ".join(new))
    first_of_line, end_of_line = source.line_around(arguments[-1][0])[0], source.line_around(at)[1]
    indent = source.text[first_of_line : arguments[-1][0]]
    indent = indent[: len(indent) - len(indent.lstrip(" \t"))]
    if comma is None or not start + comma < end_of_line <= closing or not _one_a_line(source, call, arguments):
        return Edit(at, at, "".join(f", {text}" for text in new))
    line_break = source.line_break(at)
    return Edit(end_of_line, end_of_line, "".join(f"{line_break}{indent}{text}," for text in new))


def _one_a_line(source: PythonSource, call: ast.Call, arguments: list[tuple[int, int]]) -> bool:
    """Whether every argument begins on another line than what comes before it ends on."""
    before = source.extent(call.func)[1]
    for start, end in arguments:
        if source.line_around(start)[0] <= before:
            return False
        before = end
    return True


def _last_two(call: str) -> tuple[int, int | None]:
    """Where the last argument of a call ends (its opening bracket, if it has none), and the comma behind it."""
    lines = [0]
    stream = io.StringIO(_LONE_RETURN.sub("\n", f"({call})"), newline="")
    for text in stream:
        lines.append(lines[-1] + len(text))
    stream.seek(0)
    tokens = [token for token in tokenize.generate_tokens(stream.readline) if token.type not in _SPACE]
    tokens = [token for token in tokens if token.type != tokenize.ENDMARKER][:-2]  # both closing brackets
    trails = tokens[-1].string == ","
    places = [lines[token.end[0] - 1] + token.end[1] - 1 for token in tokens[-2:]]
    return (places[0], places[1] - 1) if trails else (places[-1], None)


_COMPOUND = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.For, ast.AsyncFor, ast.While, ast.With,
    ast.AsyncWith, ast.Try, ast.TryStar, ast.Match,
)  # fmt: skip


# A comment with blank lines around it above a definition, as the title of a section has them; no `# %%`
_HEADING = re.compile(r"^[ \t]*(?:\r\n?|\n)((?:#(?! %%).*(?:\r\n?|\n))+)(?:[ \t]*(?:\r\n?|\n))+\Z", re.MULTILINE)


def inserted(source: PythonSource, before: tuple[int, int], statement: str) -> tuple[Edit, ...]:
    """The edit in bytes that puts `statement` in front of the one at line and column, both from 1.

    It gets a line of its own with the same indentation, above the comment that belongs to the other one; where
    something stands in front on the line, the same line.
    Raises InputFault where there is no statement, and where the edited module would not be the same otherwise.
    """
    places = ((body, number) for body in bodies(source.tree) for number in range(len(body)))
    body, number = next(((body, n) for body, n in places if _place(source, body[n]) == before), ([], 0))
    if not body:
        raise InputFault("no statement begins there")
    node = body[number]
    at = _start(source, node)
    line = source.line_around(at)[0]
    indent = source.text[line:at]
    if not indent.strip(" \t\f"):
        # As pycodestyle wants it, two blank lines stand between a statement and a definition.
        blank = 2 if not indent and isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) else 0
        new = f"{statement}{source.line_break(at) * (1 + blank)}{indent}"
        last = body[number - 1] if number else None
        at = _above_comment(source, line, indent, last) + len(indent)
        if blank and last is not None and (heading := _HEADING.search(source.text, source.end(last), at)):
            at = heading.start(1)
    elif isinstance(node, _COMPOUND):
        raise InputFault("something else stands on its line")
    else:
        new = f"{statement}; "
    edit = Edit(at, at, new)
    text = applied(source.text, [edit])
    tree = parsed(text)
    body.insert(number, parsed(statement).body[0])
    try:
        is_wanted = ast.dump(source.tree) == ast.dump(tree)
    finally:
        del body[number]
    if not is_wanted:
        raise InputFault("the edited module would mean something else")
    return _in_bytes(source, [edit], text)


def _place(source: PythonSource, node: ast.stmt) -> tuple[int, int]:
    at = source.offset(node)
    return node.lineno, at - source.line_around(at)[0] + 1


def _start(source: PythonSource, node: ast.stmt) -> int:
    """Where a statement begins, decorators included."""
    decorators = getattr(node, "decorator_list", [])
    return source.text.rindex("@", 0, source.extent(decorators[0])[0]) if decorators else source.offset(node)


def _above_comment(source: PythonSource, line: int, indent: str, last: ast.stmt | None) -> int:
    """Where the comment begins that stands right above a line, as far in and behind `last`; without one, the line.

    One that begins the file is about all of it, and `# %%` begins a cell of what an editor runs by itself.
    """
    above, floor = line, 0 if last is None else source.end(last)
    while above > 0:
        before = source.line_around(above - 1)[0]
        text = source.text[before:above]
        if before < floor or not text.startswith(f"{indent}#") or text.startswith(f"{indent}# %%"):
            return above
        above = before
    return line
