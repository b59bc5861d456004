"""itertools."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from convlint.readers.python.evaluator.library import Call
from convlint.readers.python.evaluator.limits import LONGEST
from convlint.readers.python.evaluator.standard_sequences import all_items, open_iterator
from convlint.readers.python.evaluator.values import Const, Items, Value

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

Known = Callable[["Machine", Call], "Value | None"]


def _chain(machine: Machine, call: Call) -> Value | None:
    several = all_items(machine, call)
    return (
        Items("iterator", [item for items in several for item in items]) if several is not None else open_iterator(call)
    )


def _chained(machine: Machine, call: Call) -> Value | None:
    outer = machine.iterate(call.args[0]) if call.args else None
    if outer is None:
        return open_iterator(call)
    return _chain(machine, Call(node=call.node, file=call.file, args=outer, keywords={}))


def _repeat(_: Machine, call: Call) -> Value | None:
    times = call.args[1] if len(call.args) > 1 else call.keywords.get("times")
    if isinstance(times, Const) and isinstance(times.value, int) and times.value <= LONGEST:
        return Items("iterator", [call.args[0]] * max(times.value, 0))
    return Items("iterator", call.args[:1], complete=False, why="limit")


def _combined(function: Callable[..., object]) -> Known:
    def run(machine: Machine, call: Call) -> Value | None:
        several = all_items(machine, call)
        if several is None or call.keywords:
            return open_iterator(call)
        size = 1
        for items in several:
            size *= max(len(items), 1)
        if size > LONGEST:
            return Items("iterator", [], complete=False, why="limit")
        return Items("iterator", [Items("tuple", list(row)) for row in function(*several)])  # type: ignore[attr-defined]

    return run


def _pairwise(machine: Machine, call: Call) -> Value | None:
    items = machine.iterate(call.args[0]) if call.args else None
    if items is None:
        return open_iterator(call)
    return Items("iterator", [Items("tuple", [left, right]) for left, right in itertools.pairwise(items)])


def _accumulate(machine: Machine, call: Call) -> Value | None:
    items = machine.iterate(call.args[0]) if call.args else None
    if items is None:
        return open_iterator(call)
    found: list[Value] = []
    for item in items:
        if not found:
            found.append(item)
        elif len(call.args) > 1:
            found.append(machine.call(call.args[1], [found[-1], item], {}, call.node, call.file))
        else:
            found.append(machine.items.binary(ast.Add, found[-1], item, call.node))
    return Items("iterator", found)


def _islice(machine: Machine, call: Call) -> Value | None:
    ends: list[Any] = [value.value for value in call.args[1:] if isinstance(value, Const)]
    items = machine.iterate(call.args[0]) if call.args else None
    if items is None or len(ends) + 1 != len(call.args) or not all(end is None or isinstance(end, int) for end in ends):
        return open_iterator(call)
    return Items("iterator", items[slice(*ends)] if ends and 0 not in ends[2:] else [])


ITERATORS: dict[str, Known] = {
    "itertools.chain": _chain, "itertools.chain.from_iterable": _chained, "itertools.repeat": _repeat,
    "itertools.product": _combined(itertools.product), "itertools.pairwise": _pairwise,
    "itertools.accumulate": _accumulate, "itertools.islice": _islice,
}  # fmt: skip
