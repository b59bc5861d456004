"""Functions of numbers: int, round, max, math.*."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from convlint.readers.python.evaluator import arithmetic
from convlint.readers.python.evaluator.library import Call
from convlint.readers.python.evaluator.ordering import extreme, keys_of
from convlint.readers.python.evaluator.stated import stated_by
from convlint.readers.python.evaluator.values import Const, Items, Value

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

LONGEST_NUMBER = 1000  # digits
Known = Callable[["Machine", Call], "Value | None"]


def plain(function: Callable[..., Any]) -> Known:
    """A function of plain values that gives one."""

    def run(_: Machine, call: Call) -> Value | None:
        values = [*call.args, *call.keywords.values()]
        raw = [value.value for value in call.args if isinstance(value, Const)]
        named = {key: value.value for key, value in call.keywords.items() if isinstance(value, Const)}
        if not call.exact or len(raw) + len(named) != len(values):
            return None
        if any(isinstance(each, str) and len(each) > LONGEST_NUMBER for each in raw):
            return None
        if function is round and any(isinstance(each, int) and abs(each) > LONGEST_NUMBER for each in raw[1:]):
            return None  # it computes that power of ten
        try:
            return Const(arithmetic.computed(function, *raw, **named), stated_by(*values))
        except arithmetic.NoResult:
            return None

    return run


def _truth(machine: Machine, call: Call) -> Value | None:
    truth = machine.truth(call.args[0]) if len(call.args) == 1 else False
    return Const(truth) if truth is not None else None


def _sum(machine: Machine, call: Call) -> Value | None:
    items = machine.iterate(call.args[0]) if call.args else None
    if items is None:
        return None
    start = call.args[1] if len(call.args) > 1 else call.keywords.get("start", Const(0))
    for item in items:
        start = machine.items.binary(ast.Add, start, item, call.node)
    return start


def _extreme(*, largest: bool) -> Known:
    def run(machine: Machine, call: Call) -> Value | None:
        items = machine.iterate(call.args[0]) if len(call.args) == 1 else call.args
        if items is None or not call.exact:
            return None
        if not items:
            return call.keywords.get("default")
        found = extreme(machine, items, call, largest=largest)
        if isinstance(found, Const) and keys_of(machine, items, call) is items:
            return Const(found.value, stated_by(found, *(item for item in items if item is not found)))
        return found

    return run


def _divmod(machine: Machine, call: Call) -> Value | None:
    if len(call.args) != 2:
        return None
    return Items(
        "tuple", [machine.items.binary(kind, call.args[0], call.args[1], call.node) for kind in (ast.FloorDiv, ast.Mod)]
    )


def _pow(machine: Machine, call: Call) -> Value | None:
    return machine.items.binary(ast.Pow, call.args[0], call.args[1], call.node) if len(call.args) == 2 else None


def _logic(*, every: bool) -> Known:
    def run(machine: Machine, call: Call) -> Value | None:
        items = machine.iterate(call.args[0]) if len(call.args) == 1 else None
        if items is None:
            return None
        truths = [machine.truth(item) for item in items]
        if every:
            return Const(False) if False in truths else None if None in truths else Const(True)
        return Const(True) if True in truths else None if None in truths else Const(False)

    return run


_OF_MATH = (
    "ceil", "floor", "sqrt", "log", "log2", "log10", "exp", "gcd", "fabs", "trunc", "isclose", "sin", "cos", "tan",
    "isqrt", "hypot", "degrees", "radians", "copysign", "fmod",
)  # fmt: skip

NUMBERS: dict[str, Known] = {
    **{f"builtins.{each.__name__}": plain(each)
       for each in (int, float, str, round, abs, ord, chr, hex, bin, repr)},
    **{f"math.{name}": plain(getattr(math, name)) for name in _OF_MATH},
    **{f"{module}.{name}": plain(getattr(math, name))
       for module in ("numpy", "np") for name in ("ceil", "floor", "sqrt", "log2", "log", "exp")},
    "math.pow": _pow,
    "math.prod": lambda machine, call: _product(machine, call),
    "builtins.pow": _pow,
    "builtins.bool": _truth,
    "builtins.sum": _sum,
    "builtins.max": _extreme(largest=True),
    "builtins.min": _extreme(largest=False),
    "builtins.divmod": _divmod,
    "builtins.all": _logic(every=True),
    "builtins.any": _logic(every=False),
}  # fmt: skip


def _product(machine: Machine, call: Call) -> Value | None:
    items = machine.iterate(call.args[0]) if call.args else None
    if items is None:
        return None
    found: Value = Const(1)
    for item in items:
        found = machine.items.binary(ast.Mult, found, item, call.node)
    return found
