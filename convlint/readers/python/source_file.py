"""One Python file parsed: its tree, and where a node of it stands in lines and columns as reports have them.

The standard library's parser is enough: it is fast, and its positions are exact to the byte. It gets bytes, so that a
byte order mark and a declared encoding are its own to read.
"""

from __future__ import annotations

import ast
import warnings
from functools import cached_property
from typing import TypeGuard

from convlint.errors import InputFault
from convlint.files.bounded_file import file_size, open_regular, python_text
from convlint.files.bounded_file import is_quiet as is_quiet
from convlint.model.location import Location, Span
from convlint.readers.python.walking import Nodes, by_kind, walked

LARGEST = 2 << 20  # bytes; what people write is a hundredth of it, and the tree takes a hundred times as much memory


class SourceFile:
    """A file that was parsed. `path` is as reports show it; lines and columns count from 1, columns in code points."""

    def __init__(self, path: str, content: bytes, tree: ast.Module) -> None:
        self.path, self.content, self.tree = path, content, tree

    @cached_property
    def nodes(self) -> Nodes:
        """The nodes of the tree by kind, but for leaves: gathered in one walk for all who look for some."""
        return by_kind(walked([self.tree]))

    @cached_property
    def text(self) -> str:
        """What the file says, with LF for every end of a line."""
        return python_text(self.content)

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def _narrow(self) -> bool:
        """Whether a byte is a character, in all of it."""
        return self.text.isascii()

    @cached_property
    def content_lines(self) -> list[bytes]:
        """The lines as the parser counts their columns, in bytes."""
        return self.content.splitlines()

    @cached_property
    def is_quiet(self) -> bool:
        """Whether it is a test, documentation or other people's code: nothing is said about those."""
        return is_quiet(self.path)

    def span(self, node: ast.expr | ast.stmt | ast.keyword | ast.arg) -> Span:
        """Where the node stands; the end is exclusive."""
        end_line, end_offset = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return (
            node.lineno,
            self._column(node.lineno, node.col_offset),
            end_line,
            self._column(end_line, end_offset),
        )

    def locate(self, node: ast.expr | ast.stmt | ast.keyword | ast.arg) -> Location:
        """The node's place in a report."""
        line, column, end_line, end_column = self.span(node)
        return Location(path=self.path, line=line, column=column, end_line=end_line, end_column=end_column)

    def _column(self, line: int, offset: int) -> int:
        text = "" if self._narrow or line > len(self._lines) else self._lines[line - 1]
        if text.isascii():
            return offset + 1
        return len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "ignore")) + 1


def read_bytes(path: str) -> bytes:
    """The content of a Python file. Raises InputFault for no regular file, or one too large to be written by hand."""
    with open_regular(path) as stream:
        size = min(file_size(stream), LARGEST)
        content = stream.read(size + 1)  # to ask for room for the largest takes longer than to read most files
        if len(content) > size:  # it grows, or is of a file system that does not say
            content += stream.read(LARGEST - size)
    if len(content) > LARGEST:
        raise InputFault(f"larger than {LARGEST >> 20} MiB, the limit for Python")
    return content


def parsed(path: str, content: bytes) -> SourceFile:
    """The file at `path` that holds `content`. Raises InputFault for no text, and what this Python cannot parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes, which are the author's affair
            tree = ast.parse(content)
    except SyntaxError as error:
        column = error.offset if error.lineno and error.offset and error.offset > 0 else None
        raise InputFault(f"syntax error: {error.msg}", line=error.lineno or None, column=column) from None
    except ValueError as error:  # a null byte
        raise InputFault(f"syntax error: {error}") from None
    except (RecursionError, MemoryError):
        raise InputFault("nests deeper than Python itself would read") from None
    file = SourceFile(path, content, tree)
    _ = file.text  # the parser passes over bytes in comments that are no text; what points into the file needs it
    return file


def is_guard(node: ast.stmt) -> TypeGuard[ast.If]:
    """Whether this is `if __name__ == "__main__":`, below which stands what a script does."""
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


def _word(node: ast.expr) -> object:
    """The name, or the text, that an expression is."""
    return node.id if isinstance(node, ast.Name) else node.value if isinstance(node, ast.Constant) else None
