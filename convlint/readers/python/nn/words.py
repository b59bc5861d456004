"""The words of the code of a file, by the names at its top that they define: of no comment, and of no docstring."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from convlint.readers.python.source_file import SourceFile, is_guard
from convlint.readers.python.walking import every

WORD = re.compile(rb"[A-Za-z_]\w*")


def words_by_name(file: SourceFile) -> dict[str, frozenset[bytes]]:
    """What each name at the top of the file stands for, in words; one that is defined twice, in those of both."""
    found: dict[str, frozenset[bytes]] = {}
    lines = _code(file)
    for node in file.tree.body:
        names = _defines(node)
        if names:
            code = b"\n".join(map(_without_comment, lines[node.lineno - 1 : node.end_lineno]))
            words = frozenset(WORD.findall(code))
            for name in names:
                found[name] = found.get(name, frozenset()) | words
    return found


def _without_comment(line: bytes) -> bytes:
    """Up to a comment; one behind which a quotation mark stands may be within a text, and stays."""
    if b"#" not in line:
        return line
    if line.lstrip().startswith(b"#"):
        return b""
    at = line.find(b"#", max(line.rfind(b'"'), line.rfind(b"'")) + 1)
    return line if at < 0 else line[:at]


def _code(file: SourceFile) -> list[bytes]:
    """The lines of a file, those of docstrings empty."""
    lines = file.text.encode("utf-8", "surrogatepass").split(b"\n")
    for text in _docstrings(file.tree.body):
        end = text.end_lineno or text.lineno
        if not lines[text.lineno - 1][: text.col_offset].strip() and not lines[end - 1][text.end_col_offset :].strip():
            lines[text.lineno - 1 : end] = [b""] * (end - text.lineno + 1)
    return lines


def _docstrings(body: Sequence[ast.stmt]) -> Iterator[ast.Expr]:
    """The texts that are statements, in definitions and in what they hold."""
    waiting = [body]
    while waiting:
        for node in waiting.pop():
            if isinstance(node, ast.Expr):
                if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
                    yield node
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.If | ast.Try | ast.With):
                waiting.append(node.body)


def _defines(node: ast.stmt) -> list[str]:
    """The names that a statement at the top of a file gives a meaning."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return [each.id for target in targets for each in every(target) if isinstance(each, ast.Name)]
    if isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While):
        inner = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)]
        return [*(["__main__"] if is_guard(node) else []), *(name for each in inner for name in _defines(each))]
    return []
