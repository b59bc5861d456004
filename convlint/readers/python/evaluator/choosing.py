"""`if`, and which of its sides any run took: what stands in the others, no call of the source reaches."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator.paths import Run, fork
from convlint.readers.python.evaluator.values import Unknown

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.compiler import Compiler
    from convlint.readers.python.evaluator.scope import Scope

Side = tuple[str, int, int]  # path, first and last line


class Choices:
    """The sides of conditions that were left out by a known test, and those that some run takes or may take."""

    def __init__(self) -> None:
        self.left: set[Side] = set()
        self.taken: set[Side] = set()


class Untaken:
    """The lines of sides that some run left out, and none took."""

    def __init__(self, left: AbstractSet[Side], taken: AbstractSet[Side]) -> None:
        self._spans: dict[str, list[tuple[int, int]]] = {}  # by path, in order, none within another
        for path, first, last in sorted(left - taken):
            spans = self._spans.setdefault(path, [])
            if not spans or last > spans[-1][1]:
                spans.append((first, last))

    def holds(self, path: str, line: int) -> bool:
        """Whether a line of a file is one of them."""
        spans = self._spans.get(path, [])
        at = bisect_right(spans, line, key=lambda span: span[0])
        return at > 0 and line <= spans[at - 1][1]


def chosen(compiler: Compiler, node: ast.If) -> Run:
    """`if test: ... else: ...`."""
    test, text = compiler.expression(node.test), compiler.text(node.test)
    body, other = compiler.block(node.body), compiler.block(node.orelse)
    path = compiler.file.path
    sides = _side(path, node.orelse), _side(path, node.body)

    def run(scope: Scope) -> int:
        value = test(scope)
        truth = scope.machine.truth(value)
        choices = scope.machine.choices
        if truth is None:
            asks_root = isinstance(value, Unknown) and value.why == "parameter" and not scope.machine.stack
            if not asks_root:  # what a root is given nobody knows, which says nothing of those that call it
                choices.taken.update(sides)
            return fork(scope, body, other, text, f"not ({text})")
        choices.taken.add(sides[truth])
        choices.left.add(sides[not truth])
        return body(scope) if truth else other(scope)

    return run


def _side(path: str, body: Sequence[ast.stmt]) -> Side:
    return (path, body[0].lineno, body[-1].end_lineno or body[-1].lineno) if body else (path, 0, -1)
