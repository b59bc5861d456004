"""Binary operators on values of every kind."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator import arithmetic
from convlint.readers.python.evaluator.limits import LONGEST
from convlint.readers.python.evaluator.stated import stated_by, union
from convlint.readers.python.evaluator.values import Const, Instance, Items, Table, Tensor, Unknown, Value, unknown

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine


def binary(machine: Machine, kind: type[ast.AST], left: Value, right: Value, node: ast.AST) -> Value:
    """`left + right` and its like."""
    if left.__class__ is Const and right.__class__ is Const:
        return _plain(kind, left, right)
    if isinstance(left, (Tensor, Instance)) or isinstance(right, (Tensor, Instance)):
        found = machine.library.operator(machine, left, right, node)
        if found is not None:
            return found
    elif kind is ast.Mod and isinstance(left, Const) and isinstance(left.value, str):
        return _formatted(left, right)
    elif isinstance(left, Items) or isinstance(right, Items):
        return _sequences(machine, kind, left, right)
    elif isinstance(left, Table) and isinstance(right, Table) and kind is ast.BitOr:
        return Table({**left.items, **right.items}, complete=left.complete and right.complete, why=left.why)
    for value in (left, right):
        if isinstance(value, Unknown):
            return unknown(value.why)
    return unknown("call")


def _plain(kind: type[ast.AST], left: Const, right: Const) -> Value:
    try:
        return Const(arithmetic.binary(kind, left.value, right.value), union(left.stated, right.stated))
    except arithmetic.NoResult:
        return unknown("limit")


def _formatted(left: Const, right: Value) -> Value:
    values = right.items if isinstance(right, Items) and right.kind == "tuple" else [right]
    if not all(isinstance(value, Const) for value in values):
        return unknown(next((value.why for value in values if isinstance(value, Unknown)), "call"))
    held = tuple(value.value for value in values if isinstance(value, Const))
    try:
        return Const(arithmetic.binary(ast.Mod, left.value, held), stated_by(left, *values))
    except arithmetic.NoResult:
        return unknown("limit")


def _sequences(machine: Machine, kind: type[ast.AST], left: Value, right: Value) -> Value:
    if kind is ast.Mult:
        items, times = (left, right) if isinstance(left, Items) else (right, left)
        return _repeated(items, times)
    if isinstance(left, Items) and isinstance(right, Items):
        whole, why = left.complete and right.complete, right.why if left.complete else left.why
        if kind is ast.Add and len(left.items) + len(right.items) <= LONGEST:
            return Items(left.kind, [*left.items, *right.items], complete=whole, why=why)
        if kind in (ast.Sub, ast.BitAnd, ast.BitXor, ast.BitOr) and whole:
            return _sets(machine, kind, left, right)
        return unknown("limit")
    known, other = (left, right) if isinstance(left, Items) else (right, left)
    if isinstance(known, Items) and isinstance(other, Unknown) and kind is ast.Add:
        return Items(known.kind, list(known.items), complete=False, why=other.why)
    return unknown(other.why if isinstance(other, Unknown) else "call")


def _repeated(items: Value, times: Value) -> Value:
    if not isinstance(items, Items):
        return unknown("call")
    if isinstance(times, Const) and isinstance(times.value, int):
        if len(items.items) * times.value <= LONGEST:
            found = [_with(item, times) for item in items.items * max(times.value, 0)]
            return Items(items.kind, found, complete=items.complete, why=items.why)
        return Items(items.kind, list(items.items), complete=False, why="limit")
    why = times.why if isinstance(times, Unknown) else "call"
    return Items(items.kind, list(items.items), complete=False, why=why)


def _with(item: Value, _: Const) -> Value:
    return item


def _sets(machine: Machine, kind: type[ast.AST], left: Items, right: Items) -> Value:
    if not all(isinstance(item, Const) for item in (*left.items, *right.items)):
        return unknown("call")
    mine = {item.value for item in left.items if isinstance(item, Const)}
    theirs = {item.value for item in right.items if isinstance(item, Const)}
    if kind is ast.BitOr:
        return machine.items.as_set([*left.items, *right.items])
    keep = {ast.Sub: mine - theirs, ast.BitAnd: mine & theirs, ast.BitXor: mine ^ theirs}[kind]  # type: ignore[index]
    kept = [item for item in (*left.items, *right.items) if isinstance(item, Const) and item.value in keep]
    return machine.items.as_set(list(kept))
