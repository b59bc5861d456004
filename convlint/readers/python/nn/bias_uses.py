"""Where code uses a bias in a way that fails for a convolution without one: `conv.bias.data.zero_()`.

In doubt it does. Of a class's own `self.bias` nothing is said: layers of the framework itself are no instances of it.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property

from convlint.model.source import BiasUse
from convlint.readers.python.nn.attributes_made import Made, attributes_made, last_name
from convlint.readers.python.nn.bias_guards import KINDS, key_of, where_false, where_true
from convlint.readers.python.project import Project
from convlint.readers.python.source_file import SourceFile

# of functions that take no bias as well: of frameworks, and what classes of theirs call
_TAKE_NONE = re.compile(r"_?conv(_transpose)?[123]d(_transpose)?|_conv_forward|linear|isinstance|bool")
_NORM = re.compile(r"(^|_)(bn|(batch|layer|group)?norm)[0-9]*d?$", re.IGNORECASE)
_Block = Sequence[ast.stmt]


def bias_uses(file: SourceFile) -> tuple[ast.expr, ...]:
    """The expressions that would fail where the bias is None, in their order."""
    uses = _Uses(file)
    try:
        uses.block(file.tree.body, frozenset())
    except RecursionError:
        return tuple(node for node in ast.walk(file.tree) if _is_bias(node) and isinstance(node, ast.expr))
    return tuple(sorted(set(uses.found), key=lambda node: (node.lineno, node.col_offset)))


def first_uses(project: Project) -> tuple[BiasUse, ...]:
    """Those of the repository, the first of each attribute in each file; of the files to report on first."""
    found: dict[tuple[str, str], BiasUse] = {}
    for path in project.holding(b".bias"):
        file = project.file(path)
        uses = () if file is None else bias_uses(file)
        if file is None or not uses:
            continue
        made = attributes_made(file.tree)
        for node in uses:
            name = _made_here(node, made)
            found.setdefault((path, name), BiasUse(at=file.locate(node), attribute=name))
    return tuple(found.values())


def _made_here(use: ast.expr, made: Made) -> str:
    """The name of what has the bias, where the file itself constructs whatever that is; else empty."""
    match use:
        case ast.Attribute(value=ast.Attribute(value=holder, attr=name)) if _is_self(holder) and name in made.here:
            return name
        case ast.Attribute(value=ast.Name(id=name)) if name in made.variables:
            return name
        case _:
            return ""


def _is_bias(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "bias" and isinstance(node.ctx, ast.Load)


class _Uses:
    """Goes through code with the keys of the biases that are known to be there, or to be no convolution's."""

    def __init__(self, file: SourceFile) -> None:
        self.found: list[ast.expr] = []
        self._lines = [number for number, line in enumerate(file.content_lines, 1) if b".bias" in line]
        self._tree = file.tree
        self._classes = 0

    def block(self, statements: _Block, there: frozenset[str]) -> None:
        """Statements one after the other: what ends the block where a bias is None speaks for those behind it."""
        for statement in statements:
            if self._says_bias(statement):
                self._statement(statement, there)
            if isinstance(statement, ast.If) and _leaves(statement.body):
                there |= where_false(statement.test)
            elif isinstance(statement, ast.Assert):
                there |= where_true(statement.test)

    def _says_bias(self, statement: ast.stmt) -> bool:
        start = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])
        first = bisect_left(self._lines, start)
        return first < len(self._lines) and self._lines[first] <= (statement.end_lineno or statement.lineno)

    @cached_property
    def _others(self) -> frozenset[str]:
        return attributes_made(self._tree).others

    def _statement(self, statement: ast.stmt, there: frozenset[str]) -> None:
        match statement:
            case ast.If(test=test, body=body, orelse=orelse) | ast.While(test=test, body=body, orelse=orelse):
                self._expression(test, there, tested=True)
                if isinstance(statement, ast.If) and _raises(body) and where_false(test):
                    self._all_of(test, there)
                self.block(body, there | where_true(test))
                self.block(orelse, there | where_false(test))
            case ast.Assert(test=test):
                self._expression(test, there, tested=True)
                if where_true(test):
                    self._all_of(test, there)
            case ast.ClassDef():
                self._classes += 1
                self._parts(statement, frozenset())
                self._classes -= 1
            case ast.FunctionDef() | ast.AsyncFunctionDef():  # it may run when all is otherwise
                self._parts(statement, frozenset())
            case _:
                self._parts(statement, there)

    def _all_of(self, test: ast.expr, there: frozenset[str]) -> None:
        """Of a test that ends the run where a bias is None, each bias that it asks for."""
        self.found += [node for node in ast.walk(test) if isinstance(node, ast.expr) and self._would_fail(node, there)]

    def _parts(self, node: ast.AST, there: frozenset[str]) -> None:
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                self.block(value, there)
            else:
                for each in value if isinstance(value, list) else [value]:
                    if isinstance(each, ast.expr):
                        self._expression(each, there, tested=False)
                    elif isinstance(each, ast.AST):
                        self._parts(each, there)

    def _expression(self, node: ast.expr, there: frozenset[str], *, tested: bool) -> None:
        """`tested`: whether None would do here, as it does in a test."""
        match node:
            case ast.Attribute(value=value):
                if not tested and self._would_fail(node, there):
                    self.found.append(node)
                self._expression(value, there, tested=False)
            case ast.BoolOp(op=op, values=values):
                for number, value in enumerate(values):
                    self._expression(value, there, tested=tested or number + 1 < len(values))
                    there |= where_true(value) if isinstance(op, ast.And) else where_false(value)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._expression(operand, there, tested=True)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._expression(test, there, tested=True)
                self._expression(body, there | where_true(test), tested=tested)
                self._expression(orelse, there | where_false(test), tested=tested)
            case ast.Compare(left=left, comparators=others):
                for each in (left, *others):
                    self._expression(each, there, tested=_with_none(node))
            case ast.Call(func=function, args=arguments, keywords=keywords):
                takes = bool(_TAKE_NONE.fullmatch(last_name(function)))
                self._expression(function, there, tested=False)
                for each in (*arguments, *(keyword.value for keyword in keywords)):
                    self._expression(each, there, tested=takes)
            case ast.ListComp(generators=loops) | ast.SetComp(generators=loops) | ast.GeneratorExp(generators=loops):
                self._expression(node.elt, self._loops(loops, there), tested=False)
            case ast.DictComp(key=key, value=value, generators=loops):
                inside = self._loops(loops, there)
                self._expression(key, inside, tested=False)
                self._expression(value, inside, tested=False)
            case _:
                self._parts(node, there)

    def _loops(self, loops: Iterable[ast.comprehension], there: frozenset[str]) -> frozenset[str]:
        for loop in loops:
            self._expression(loop.iter, there, tested=False)
            for test in loop.ifs:
                self._expression(test, there, tested=True)
                there |= where_true(test)
        return there

    def _would_fail(self, node: ast.AST, there: frozenset[str]) -> bool:
        if not _is_bias(node) or not isinstance(node, ast.Attribute):
            return False
        own = self._is_own(node.value) or (
            isinstance(node.value, ast.Attribute) and self._is_own(node.value.value) and node.value.attr in self._others
        )
        return not own and not _says_norm(node.value) and KINDS not in there and key_of(node.value) not in there

    def _is_own(self, holder: ast.expr) -> bool:
        return self._classes > 0 and _is_self(holder)


def _with_none(node: ast.Compare) -> bool:
    return len(node.ops) == 1 and isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value is None


def _says_norm(holder: ast.expr) -> bool:
    """Whether what has a bias has the name of a norm: `bn1`, `branch.bn`, `layer_norm`."""
    return bool(_NORM.search(last_name(holder)))


def _leaves(body: _Block) -> bool:
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Continue, ast.Break, ast.Raise))


def _raises(body: _Block) -> bool:
    return bool(body) and isinstance(body[-1], ast.Raise)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
