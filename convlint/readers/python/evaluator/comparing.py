"""Comparisons and truth of values; None stands for what nobody knows."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator import arithmetic, joining
from convlint.readers.python.evaluator.values import (
    Class,
    Const,
    Function,
    Instance,
    Items,
    Module,
    Name,
    Partial,
    Table,
    Tensor,
    Unknown,
    Value,
)
from convlint.readers.python.project import FRAMEWORKS

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

_SETTINGS = frozenset({"version", "backends", "cuda", "__version__", "environ", "config", "flags"})
_KNOWN = FRAMEWORKS | {"builtins", "functools", "math", "collections", "operator"}


def is_something(name: Name) -> bool:
    """Whether the name is one of a function, class or module, so that it is true and not None."""
    parts = name.name.split(".")
    if not _SETTINGS.isdisjoint(parts):
        return False
    last = parts[-1]
    return parts[0] in _KNOWN or (last[:1].isupper() and not last.isupper())


def truth(machine: Machine, value: Value) -> bool | None:
    """Whether it is true."""
    match value:
        case Const():
            return bool(value.value)
        case Unknown() | Tensor():
            return None
        case Items():
            return bool(value.items) if value.complete else None
        case Table():
            return bool(value.items) if value.items or value.complete else None
        case Name():
            return True if is_something(value) else None
        case Instance():
            return _truth_of_instance(machine, value)
    return True


def _truth_of_instance(machine: Machine, value: Instance) -> bool | None:
    if any(machine.classes.method_of(value, name) is not None for name in ("__bool__", "__len__")):
        return None
    parts = machine.parts(value)
    if parts is not None:
        return bool(parts)
    if isinstance(value.cls, Name):
        return True if is_something(value.cls) else None
    return True


def compare(machine: Machine, kind: type[ast.AST], left: Value, right: Value) -> bool | None:
    """`left < right`, `left in right`, `left is right`."""
    if kind is ast.NotIn or kind is ast.In:
        found = _contains(machine, right, left)
        return found if found is None or kind is ast.In else not found
    if kind is ast.Is or kind is ast.IsNot:
        found = _identical(left, right)
        return found if found is None or kind is ast.Is else not found
    if kind is ast.Eq or kind is ast.NotEq:
        found = equal(left, right)
        return found if found is None or kind is ast.Eq else not found
    return _ordered(kind, left, right)


def _identical(left: Value, right: Value) -> bool | None:
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return None
    if isinstance(left, Const) and isinstance(right, Const):
        if left.value is None or right.value is None or isinstance(left.value, bool) or isinstance(right.value, bool):
            return left.value is right.value
        return equal(left, right)
    if isinstance(left, Const) or isinstance(right, Const):
        other = right if isinstance(left, Const) else left
        return None if isinstance(other, Name) and not is_something(other) else False
    if isinstance(left, (Items, Table, Instance, Tensor)) or isinstance(right, (Items, Table, Instance, Tensor)):
        return left is right
    return equal(left, right)


def equal(left: Value, right: Value, depth: int = 0) -> bool | None:
    """Whether both are equal."""
    if isinstance(left, (Unknown, Tensor)) or isinstance(right, (Unknown, Tensor)) or depth > joining.DEEPEST:
        return None
    if isinstance(left, Const) and isinstance(right, Const):
        return left.value == right.value
    if left is right or joining.same(left, right):
        return True
    match left, right:
        case Items(), Items():
            return _equal_items(left, right, depth)
        case Table(), Table():
            return None if left.items or right.items else (left.complete and right.complete) or None
        case Name(), Name():
            return None if left.name.split(".")[-1] == right.name.split(".")[-1] else False
        case (Instance(), _) | (_, Instance()) | (Partial(), _) | (_, Partial()):
            return _equal_instances(left, right)
        case (Class() | Function() | Module(), _) | (_, Class() | Function() | Module()):
            return False
        case (Name(), _) | (_, Name()):
            return None
    return False


def _equal_instances(left: Value, right: Value) -> bool | None:
    """Members of an enumeration are equal where they are one."""
    if isinstance(left, Instance) and isinstance(right, Instance) and left.cls is right.cls:
        names = left.attributes.get("name"), right.attributes.get("name")
        if all(isinstance(name, Const) for name in names) and isinstance(left.cls, Class) and left.cls.fields is None:
            return False if left.attributes.get("value") is not None else None
    if (isinstance(left, Const) and left.value is None) or (isinstance(right, Const) and right.value is None):
        return False
    return None


def _equal_items(left: Items, right: Items, depth: int) -> bool | None:
    if left.kind != right.kind and {left.kind, right.kind} <= {"list", "tuple", "set"}:
        return False
    if not left.complete or not right.complete or left.kind == "set":
        return None
    if len(left.items) != len(right.items):
        return False
    found = [equal(one, other, depth + 1) for one, other in zip(left.items, right.items, strict=True)]
    if False in found:
        return False
    return None if None in found else True


def _contains(machine: Machine, whole: Value, part: Value) -> bool | None:
    if isinstance(part, Unknown):
        return False if isinstance(whole, (Items, Table)) and whole.complete and not whole.items else None
    match whole:
        case Items():
            found = [equal(item, part) for item in whole.items]
            if not whole.complete:
                return None
            return True if True in found else None if None in found else False
        case Table() if isinstance(part, Const):
            return True if part.value in whole.items else False if whole.complete else None
        case Const(value=str() as text) if isinstance(part, Const) and isinstance(part.value, str):
            return part.value in text
        case Class() if machine.classes.is_enum(whole):
            return None
    return None


def _ordered(kind: type[ast.AST], left: Value, right: Value) -> bool | None:
    if isinstance(left, Items) and isinstance(right, Items):
        mine = [item.value for item in left.items if isinstance(item, Const)]
        theirs = [item.value for item in right.items if isinstance(item, Const)]
        whole = left.complete and right.complete and left.kind == right.kind != "set"
        if not whole or len(mine) != len(left.items) or len(theirs) != len(right.items):
            return None
        try:
            return bool(arithmetic.order(kind, mine, theirs))
        except arithmetic.NoResult:
            return None
    if isinstance(left, Const) and isinstance(right, Const):
        try:
            return arithmetic.comparison(kind, left.value, right.value)
        except arithmetic.NoResult:
            return None
    return None
