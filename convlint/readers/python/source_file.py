"""Parse one Python file, and convert the positions of its nodes to the lines and columns of reports.

The standard library's parser is used: it is fast, and its positions are exact to the byte. It is given bytes, so that
it handles a byte order mark and a declared encoding itself.
"""

from __future__ import annotations

import ast
import re
import warnings
from functools import cached_property
from typing import TypeGuard

from convlint.files.bounded_file import file_size, open_regular, python_text
from convlint.files.repository import is_quiet
from convlint.model.errors import InputFault
from convlint.model.location import Location, Span
from convlint.readers.python.walking import Nodes, by_kind, walked

LARGEST = 2 << 20  # bytes; what people write is a hundredth of it, and the tree takes a hundred times as much memory


# Text of files that do more with their networks than to try them
_USES = re.compile(
    rb"\.backward\(|\.fit\(|\.step\(|\boptim|load_state_dict|\.load\(|load_weights|\.export\(|DataLoader|Trainer|"
    rb"(?<!def )(?<![.\w])(?:train|evaluate|infer|predict)\w*\("
)
_TRIES = re.compile(rb"\b(?:rand|randn|randint|random|ones|zeros|empty|Input|summary|profile|print)\(")


class SourceFile:
    """A parsed file. `path` is as reports show it; lines and columns count from 1, columns in code points."""

    def __init__(self, path: str, content: bytes, tree: ast.Module) -> None:
        self.path, self.content, self.tree = path, content, tree

    @cached_property
    def nodes(self) -> Nodes:
        """The nodes of the tree by type, without leaves; collected once, as several readers ask for them."""
        return by_kind(walked(self.tree))

    @cached_property
    def text(self) -> str:
        """The text of the file, with LF at every line end."""
        return python_text(self.content)

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def content_lines(self) -> list[bytes]:
        """The lines as bytes, in which the parser counts columns."""
        return self.content.splitlines()

    @cached_property
    def is_quiet(self) -> bool:
        """Whether it is a test, documentation or vendored code, for which no findings are reported."""
        return is_quiet(self.path)

    @cached_property
    def trials(self) -> tuple[range, ...]:
        """The lines in which a module tries what it defines: below its guard, or in a test of its own."""
        body = self.tree.body
        guards = list(filter(is_guard, body))
        called = {last_name(node.value.func) for guard in guards for node in guard.body
                  if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)}  # fmt: skip
        tests = [node for node in body if isinstance(node, ast.FunctionDef)
                 and (node.name in called or node.name.lstrip("_").startswith("test"))]  # fmt: skip
        if not (guards or tests) or _USES.search(self.content):  # most files have neither
            return ()
        makes = {node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
        classes = any(isinstance(node, ast.ClassDef) for node in body)
        return tuple(
            lines
            for part in (*guards, *tests)
            if (lines := range(part.lineno, (part.end_lineno or part.lineno) + 1))
            and ((classes and self._tries(lines)) or (is_guard(part) and _only_makes(part.body, makes)))
        )

    def _tries(self, lines: range) -> bool:
        return _TRIES.search(b"\n".join(self.content_lines[lines.start - 1 : lines.stop - 1])) is not None

    def span(self, node: ast.expr | ast.stmt | ast.keyword | ast.arg) -> Span:
        """Return the position of a node; the end is exclusive."""
        line, end_line, end_offset = node.lineno, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return line, self._column(line, node.col_offset), end_line, self._column(end_line, end_offset)

    def locate(self, node: ast.expr | ast.stmt | ast.keyword | ast.arg) -> Location:
        """Return the location of a node for a report."""
        line, column, end_line, end_column = self.span(node)
        return Location(path=self.path, line=line, column=column, end_line=end_line, end_column=end_column)

    def _column(self, line: int, offset: int) -> int:
        text = "" if self.text.isascii() or line > len(self._lines) else self._lines[line - 1]
        if text.isascii():  # where byte offsets are columns
            return offset + 1
        return len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "ignore")) + 1


def read_bytes(path: str) -> bytes:
    """Read a Python file. Raises InputFault if it is no regular file, or larger than LARGEST."""
    with open_regular(path) as stream:
        size = min(file_size(stream), LARGEST)
        content = stream.read(size + 1)  # to ask for room for the largest takes longer than to read most files
        if len(content) > size:  # it grows, or is of a file system that does not say
            content += stream.read(LARGEST - size)
    if len(content) > LARGEST:
        raise InputFault(f"larger than {LARGEST >> 20} MiB, the limit for Python")
    return content


def parsed(path: str, content: bytes) -> SourceFile:
    """Parse `content` as the file at `path`. Raises InputFault if it is no text, or is no valid Python."""
    file = SourceFile(path, content, syntax_tree(content))
    _ = file.text  # the parser passes over bytes in comments that are no text; what points into the file needs it
    return file


def syntax_tree(content: bytes) -> ast.Module:
    """Parse Python. Raises InputFault, with the line and column if these are known, if it is not valid."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes, which are the author's affair
            return ast.parse(content)
    except SyntaxError as error:
        column = error.offset if error.lineno and error.offset and error.offset > 0 else None
        raise InputFault(f"syntax error: {error.msg}", line=error.lineno or None, column=column) from None
    except ValueError as error:  # a null byte
        raise InputFault(f"syntax error: {error}") from None
    except (RecursionError, MemoryError):
        raise InputFault("nests deeper than Python itself would read") from None


def unparsed(node: ast.AST) -> str:
    """Return the code of a node; its place for one that nests deeper than it can be written, as a sum of hundreds."""
    try:
        return ast.unparse(node)
    except RecursionError:
        return f"{type(node).__name__}:{getattr(node, 'lineno', 0)}:{getattr(node, 'col_offset', 0)}"


def dotted(node: ast.expr) -> str:
    """Return `a.b.c` for a chain of attributes; '' for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(parts))) if isinstance(node, ast.Name) else ""


def last_name(node: ast.expr) -> str:
    """Return `c` of `a.b.c` or `f().c`; '' for an expression without a name."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def is_guard(node: ast.stmt) -> TypeGuard[ast.If]:
    """Whether the statement is `if __name__ == "__main__":`, the guard around the code of a script."""
    if not isinstance(node, ast.If):
        return False
    tests = node.test.values if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And) else [node.test]
    return any(
        isinstance(test, ast.Compare)
        and len(test.ops) == 1
        and isinstance(test.ops[0], ast.Eq)
        and {_word(test.left), _word(test.comparators[0])} == {"__name__", "__main__"}
        for test in tests
    )


def _only_makes(code: list[ast.stmt], names: set[str]) -> bool:
    """Whether each statement keeps what a function or class of these names gives, as `net = resnet(10)` does."""
    return all(
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and getattr(node.value.func, "id", "") in names
        for node in code
    )


def _word(node: ast.expr) -> object:
    """Return the identifier of a name, or the value of a constant."""
    return node.id if isinstance(node, ast.Name) else node.value if isinstance(node, ast.Constant) else None
