"""Where code uses a bias in a way that fails for a convolution without one: `conv.bias.data.zero_()`.

In doubt it does. Of a class's own `self.bias` nothing is said: layers of the framework itself are no instances of it.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property

from convlint.readers.python.nn.attributes_made import attributes_made, last_name, norms_in_doubt
from convlint.readers.python.nn.bias_guards import Facts, Guards, cannot_fail, class_named, names_in, without
from convlint.readers.python.nn.bias_words import (
    asks_for_word,
    is_word,
    may_use_in,
    names_constants,
    takes_word,
    unpacks_parameters,
    without_words,
)
from convlint.readers.python.source_file import SourceFile
from convlint.readers.python.walking import every

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
        return tuple(node for node in every(file.tree) if isinstance(node, ast.expr) and _is_bias(node))
    return tuple(sorted(set(uses.found), key=lambda node: (node.lineno, node.col_offset)))


def _is_bias(node: ast.AST) -> bool:
    return _holder(node) is not None or is_word(node)


def _holder(node: ast.AST) -> ast.expr | None:
    """What has the bias that code takes: of `m.bias` and `getattr(m, "bias")` m."""
    match node:
        case ast.Attribute(value=holder, attr="bias", ctx=ast.Load()):
            return holder
        case ast.Call(func=ast.Name(id="getattr"), args=[holder, ast.Constant(value="bias")]):
            return holder
        case _:
            return None


class _Uses:
    """Goes through code with the keys of the biases that are known to be there, or to be no convolution's."""

    def __init__(self, file: SourceFile) -> None:
        self.found: list[ast.expr] = []
        self._lines = [number for number, line in enumerate(file.content_lines, 1) if may_use_in(line)]
        self._tree = file.tree
        self._self_is_own, self._in_class = False, False

    def block(self, statements: _Block, there: Facts) -> None:
        """Statements one after the other: what ends the block where a bias is None speaks for those behind it."""
        for statement in statements:
            if self._says_bias(statement):
                self._statement(statement, there)
            if isinstance(statement, ast.If) and _leaves(statement.body):
                there |= self._guards.where_false(statement.test)
            elif isinstance(statement, ast.Assert):
                there |= self._guards.where_true(statement.test)
            if there:
                there = without(there, names_in(statement, stored=True))
            there |= class_named(statement)

    def _says_bias(self, statement: ast.stmt) -> bool:
        start = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])
        first = bisect_left(self._lines, start)
        return first < len(self._lines) and self._lines[first] <= (statement.end_lineno or statement.lineno)

    @cached_property
    def _guards(self) -> Guards:
        return Guards(names_in(self._tree, stored=True))

    @cached_property
    def _in_doubt(self) -> frozenset[str]:
        return norms_in_doubt(self._tree)

    @cached_property
    def _others(self) -> frozenset[str]:
        return attributes_made(self._tree).others

    def _statement(self, statement: ast.stmt, there: Facts) -> None:
        if there and not isinstance(statement, ast.If):  # what a loop sets at its end holds at its beginning
            there = without(there, names_in(statement, stored=True))
        if (unpacked := unpacks_parameters(statement)) is not None:
            self.found.append(unpacked)
        match statement:
            case ast.If(test=test, body=body, orelse=orelse) | ast.While(test=test, body=body, orelse=orelse):
                self._expression(test, there, tested=True)
                if isinstance(statement, ast.If) and _raises(body) and self._guards.where_false(test):
                    self._all_of(test, there)
                self.block(body, there | self._guards.where_true(test))
                self.block(orelse, there | self._guards.where_false(test))
            case ast.Assert(test=test):
                self._expression(test, there, tested=True)
                if self._guards.where_true(test):
                    self._all_of(test, there)
            case ast.ClassDef():
                self._inside(statement)
            case ast.FunctionDef() | ast.AsyncFunctionDef():  # it may run when all is otherwise
                self._inside(statement)
            case _ if names_constants(statement):
                pass
            case _:
                self._parts(statement, there)

    def _inside(self, scope: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """What a class or a function holds; one with a `self` of its own inside of a method may get any layer there."""
        before = self._self_is_own, self._in_class
        is_class = isinstance(scope, ast.ClassDef)
        keeps = self._self_is_own and (self._in_class or "self" not in _parameters(scope))
        self._self_is_own, self._in_class = is_class or keeps, is_class
        self._parts(scope, frozenset())
        self._self_is_own, self._in_class = before

    def _all_of(self, test: ast.expr, there: Facts) -> None:
        """Of a test that ends the run where a bias is None, each bias that it asks for."""
        self.found += [node for node in every(test) if isinstance(node, ast.expr) and self._would_fail(node, there)]

    def _parts(self, node: ast.AST, there: Facts) -> None:
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                self.block(value, there)
            else:
                for each in value if isinstance(value, list) else [value]:
                    if isinstance(each, ast.expr):
                        self._expression(each, there, tested=False)
                    elif isinstance(each, ast.AST):
                        self._parts(each, there)

    def _expression(self, node: ast.expr, there: Facts, *, tested: bool) -> None:
        """`tested`: whether None would do here, as it does in a test."""
        match node:
            case ast.Constant():
                if is_word(node):
                    self.found.append(node)
            case ast.Attribute(value=value):
                if not tested and self._would_fail(node, there):
                    self.found.append(node)
                self._expression(value, there, tested=False)
            case ast.BoolOp(op=op, values=values):
                for number, value in enumerate(values):
                    self._expression(value, there, tested=tested or number + 1 < len(values))
                    says = self._guards.where_true if isinstance(op, ast.And) else self._guards.where_false
                    there |= says(value)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._expression(operand, there, tested=True)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._expression(test, there, tested=True)
                self._expression(body, there | self._guards.where_true(test), tested=tested)
                self._expression(orelse, there | self._guards.where_false(test), tested=tested)
            case ast.Compare(left=left, comparators=others):
                for each in without_words(node) if asks_for_word(node) else (left, *others):
                    self._expression(each, there, tested=_with_none(node))
            case ast.Call(args=[_, _]) if (holder := _holder(node)) is not None:
                if not tested and self._would_fail(node, there):
                    self.found.append(node)
                self._expression(holder, there, tested=False)
            case ast.Call(func=function, args=arguments, keywords=keywords):
                arguments = [each for each in arguments if not (is_word(each) and takes_word(node))]
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
            case ast.Lambda():
                self._parts(node, without(there, _parameters(node)))
            case _:
                self._parts(node, there)

    def _loops(self, loops: Iterable[ast.comprehension], there: Facts) -> Facts:
        for loop in loops:
            self._expression(loop.iter, there, tested=False)
            there = without(there, names_in(loop.target))
            for test in loop.ifs:
                self._expression(test, there, tested=True)
                there |= self._guards.where_true(test)
        return there

    def _would_fail(self, node: ast.AST, there: Facts) -> bool:
        holder = _holder(node)
        if holder is None:
            return False
        own = self._is_own(holder) or (
            isinstance(holder, ast.Attribute) and self._is_own(holder.value) and holder.attr in self._others
        )
        return not own and not self._is_norm(holder) and not cannot_fail(holder, there)

    def _is_own(self, holder: ast.expr) -> bool:
        return self._self_is_own and is_self(holder)

    def _is_norm(self, holder: ast.expr) -> bool:
        """Whether what has a bias has the name of a norm, `bn1`, `branch.bn`, and nothing else gets that name."""
        name = last_name(holder)
        return bool(_NORM.search(name)) and name not in self._in_doubt


def _with_none(node: ast.Compare) -> bool:
    return len(node.ops) == 1 and isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value is None


def _parameters(node: ast.AST) -> frozenset[str]:
    arguments = getattr(node, "args", None)
    return frozenset(each.arg for each in every(arguments) if isinstance(each, ast.arg)) if arguments else frozenset()


def _leaves(body: _Block) -> bool:
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Continue, ast.Break, ast.Raise))


def _raises(body: _Block) -> bool:
    return bool(body) and isinstance(body[-1], ast.Raise)


def is_self(node: ast.expr) -> bool:
    """Whether this is the object whose method the code is in."""
    return isinstance(node, ast.Name) and node.id == "self"
