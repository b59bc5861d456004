"""Operators as expressions: what each gives where its operands are known, in part known, or not at all."""

from __future__ import annotations

import ast

from convlint.readers.python.evaluator import arithmetic, joining
from convlint.readers.python.evaluator.compiler import Compiler, Eval
from convlint.readers.python.evaluator.expressions import negative
from convlint.readers.python.evaluator.paths import GOES_ON, fork
from convlint.readers.python.evaluator.scope import Scope
from convlint.readers.python.evaluator.stated import stated_by
from convlint.readers.python.evaluator.values import NONE, Const, Items, Table, Unknown, Value, unknown


def binary(compiler: Compiler, node: ast.BinOp, name: str) -> Eval:
    """`left + right`."""
    left, right = compiler.expression(node.left, name), compiler.expression(node.right, name)
    kind = node.op.__class__
    return lambda scope: scope.machine.items.binary(kind, left(scope), right(scope), node)


def unary(compiler: Compiler, node: ast.UnaryOp, name: str) -> Eval:
    """`-value`, `not value`."""
    found = negative(compiler, node, name)
    if found is not None:
        return found
    operand, kind = compiler.expression(node.operand, name), node.op.__class__

    def run(scope: Scope) -> Value:
        value = operand(scope)
        if kind is ast.Not:
            truth = scope.machine.truth(value)
            return Const(not truth) if truth is not None else undecided(value)
        if isinstance(value, Const):
            try:
                return Const(arithmetic.unary(kind, value.value), value.stated)
            except arithmetic.NoResult:
                return unknown("call")
        return scope.machine.library.operator(scope.machine, value, NONE, node) or undecided(value)

    return run


def undecided(*values: Value) -> Unknown:
    """The unknown that an operation on these gives."""
    for value in values:
        if isinstance(value, Unknown) or (isinstance(value, (Items, Table)) and not value.complete):
            return unknown(value.why)
    return unknown("call")


def boolean(compiler: Compiler, node: ast.BoolOp, name: str) -> Eval:
    """`a and b`, `a or b`, cut short where that is known."""
    makes, until = [compiler.expression(value, name) for value in node.values], isinstance(node.op, ast.Or)

    def run(scope: Scope) -> Value:
        open_: Value | None = None
        for make in makes:
            value = make(scope)
            truth = scope.machine.truth(value)
            if truth is until:
                if open_ is None:
                    return value
                return Const(until) if value.__class__ is Const and value.value is until else undecided(open_)
            if truth is None and open_ is None:
                open_ = value
        return value if open_ is None else undecided(open_)

    return run


def compare(compiler: Compiler, node: ast.Compare, _: str) -> Eval:
    """`a < b <= c`, `in`, `is`."""
    first = compiler.expression(node.left)
    rest = [
        (kind.__class__, compiler.expression(value)) for kind, value in zip(node.ops, node.comparators, strict=True)
    ]

    def run(scope: Scope) -> Value:
        left, open_ = first(scope), None
        for kind, make in rest:
            right = make(scope)
            truth = scope.machine.items.compare(kind, left, right)
            if truth is False:
                return Const(False)
            if truth is None:
                open_ = undecided(left, right)
            left = right
        return Const(True) if open_ is None else open_

    return run


def choice(compiler: Compiler, node: ast.IfExp, name: str) -> Eval:
    """`a if test else b`: one of both, or both joined."""
    test = compiler.expression(node.test)
    sides = compiler.expression(node.body, name), compiler.expression(node.orelse, name)
    text = compiler.text(node.test)

    def run(scope: Scope) -> Value:
        truth = scope.machine.truth(test(scope))
        if truth is not None:
            return sides[not truth](scope)
        found: list[Value] = []

        def side(which: int, scope: Scope) -> int:
            found.append(sides[which](scope))
            return GOES_ON

        fork(scope, lambda at: side(0, at), lambda at: side(1, at), text, f"not ({text})")
        return joining.joined(found[0], found[1], scope.machine.lost)

    return run


def walrus(compiler: Compiler, node: ast.NamedExpr, _: str) -> Eval:
    """`(name := value)`."""
    make, store = compiler.expression(node.value, node.target.id), compiler.store(node.target)

    def run(scope: Scope) -> Value:
        value = make(scope)
        store(scope, value)
        return value

    return run


def joined_text(compiler: Compiler, node: ast.JoinedStr, _: str) -> Eval:
    """`f"{a}{b}"`."""
    parts = [compiler.expression(part) for part in node.values]

    def run(scope: Scope) -> Value:
        values = [part(scope) for part in parts]
        if not all(isinstance(value, Const) for value in values):
            return undecided(*values)
        text = "".join(str(value.value) for value in values if isinstance(value, Const))
        try:
            return Const(arithmetic.checked(text), stated_by(*values))
        except arithmetic.NoResult:
            return unknown("limit")

    return run


def formatted(compiler: Compiler, node: ast.FormattedValue, _: str) -> Eval:
    """`{value:spec}` within an f-string."""
    make = compiler.expression(node.value)
    spec = compiler.expression(node.format_spec) if node.format_spec is not None else None
    convert = {ord("r"): repr, ord("a"): ascii}.get(node.conversion)

    def run(scope: Scope) -> Value:
        value = make(scope)
        shape = spec(scope) if spec is not None else Const("")
        if not isinstance(value, Const) or not isinstance(shape, Const):
            return undecided(value, shape)
        text = str(shape.value)
        held = convert(value.value) if convert else value.value
        if not arithmetic.is_small_format(text):
            return unknown("limit")
        try:
            return Const(arithmetic.computed(format, held, text), value.stated)
        except arithmetic.NoResult:
            return unknown("call")

    return run


def awaited(compiler: Compiler, node: ast.Await | ast.Starred, name: str) -> Eval:
    """`await value`: the value."""
    return compiler.expression(node.value, name)


def yielded(compiler: Compiler, node: ast.Yield, _: str) -> Eval:
    """`yield value`."""
    make = compiler.expression(node.value) if node.value is not None else lambda _: NONE

    def run(scope: Scope) -> Value:
        value = make(scope)
        scope.machine.yields(scope, [value])
        return unknown("call")

    return run


def yielded_from(compiler: Compiler, node: ast.YieldFrom, _: str) -> Eval:
    """`yield from values`."""
    make = compiler.expression(node.value)

    def run(scope: Scope) -> Value:
        scope.machine.yields(scope, scope.machine.iterate(make(scope)))
        return unknown("call")

    return run
