"""Syntax made into closures: each node once, so that running it again costs no look at the tree."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from convlint.readers.python.evaluator import names_of
from convlint.readers.python.evaluator.limits import DEEPEST_CODE
from convlint.readers.python.evaluator.paths import GOES_ON, RETURNS, Run
from convlint.readers.python.evaluator.scope import Scope
from convlint.readers.python.evaluator.values import Value, unknown
from convlint.readers.python.source_file import SourceFile

Eval = Callable[[Scope], Value]
Store = Callable[[Scope, Value], None]
Expression = Callable[["Compiler", Any, str], Eval]
Statement = Callable[["Compiler", Any], Run | None]
LONGEST_CONDITION = 80  # characters of a test that a report shows


class Tables:
    """What makes a closure of each kind of node."""

    def __init__(
        self, expressions: Mapping[type[ast.AST], Expression], statements: Mapping[type[ast.AST], Statement],
        store: Callable[[Compiler, ast.expr], Store],
    ) -> None:  # fmt: skip
        self.expressions, self.statements, self.store = expressions, statements, store


class Compiler:
    """Makes closures of one body of a file; `own` are the names that are this body's variables, if it is a function."""

    def __init__(self, file: SourceFile, tables: Tables, own: frozenset[str] | None = None) -> None:
        self.file, self.tables, self.own = file, tables, own
        self.depth = self.deepest = 0

    def expression(self, node: ast.expr, name: str = "") -> Eval:
        """What computes the expression; literals in it are bound to `name`."""
        make = self.tables.expressions.get(node.__class__)
        if make is None or self.depth >= DEEPEST_CODE:
            why = unknown("call" if make is None else "limit")
            return lambda _: why
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        found = make(self, node, name)
        self.depth -= 1
        return found

    def store(self, node: ast.expr) -> Store:
        """What binds a value to a target of an assignment."""
        if self.depth >= DEEPEST_CODE:
            return lambda _, __: None
        self.depth += 1
        found = self.tables.store(self, node)
        self.depth -= 1
        return found

    def statement(self, node: ast.stmt) -> Run | None:
        """What runs the statement; None where it does nothing."""
        make = self.tables.statements.get(node.__class__)
        if make is None or self.depth >= DEEPEST_CODE:
            return None
        self.depth += 2
        self.deepest = max(self.deepest, self.depth)
        found = make(self, node)
        self.depth -= 2
        return found

    def block(self, nodes: Sequence[ast.stmt]) -> Run:
        """What runs statements one after the other, and says how they end."""
        runs = [run for run in map(self.statement, nodes) if run is not None]
        if not runs:
            return nothing

        def run_block(scope: Scope) -> int:
            machine = scope.machine
            for run in runs:
                machine.step()
                how = run(scope)
                if how:
                    return how
            return GOES_ON

        return run_block

    def text(self, node: ast.expr) -> str:
        """What the source says at the node, on one line, cut where it is long."""
        lines = self.file.content_lines[node.lineno - 1 : node.end_lineno]
        if not lines:
            return ""
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        text = " ".join(b" ".join(lines).decode("utf-8", "replace").split())
        return text if len(text) <= LONGEST_CONDITION else text[: LONGEST_CONDITION - 3] + "..."


class Code:
    """A function made ready to run, once for all its calls."""

    __slots__ = ("generator", "height", "keyword_only", "kwarg", "names", "positional",
                 "run", "vararg")  # fmt: skip

    def __init__(self, node: names_of.Body, file: SourceFile, tables: Tables) -> None:
        arguments = node.args
        self.positional = [arg.arg for arg in (*arguments.posonlyargs, *arguments.args)]
        self.keyword_only = [arg.arg for arg in arguments.kwonlyargs]
        self.vararg = arguments.vararg.arg if arguments.vararg else ""
        self.kwarg = arguments.kwarg.arg if arguments.kwarg else ""
        self.names = frozenset((*(arg.arg for arg in arguments.args), *self.keyword_only))
        body: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else list(node.body)
        names = names_of.Names(body)
        own = {arg.arg for arg in names_of.parameters(node)} | (names.bound - names.declared)
        compiler = Compiler(file, tables, frozenset(own))
        if isinstance(node, ast.Lambda):
            self.run = returning(compiler.expression(node.body))
            self.generator = False
        else:
            self.run = compiler.block(node.body)
            self.generator = names.yields
        self.height = 2 * compiler.deepest + 8


def nothing(_: Scope) -> int:
    """A statement without effect."""
    return GOES_ON


def returning(value: Eval) -> Run:
    """A lambda's body."""

    def run(scope: Scope) -> int:
        scope.value = value(scope)
        return RETURNS

    return run
