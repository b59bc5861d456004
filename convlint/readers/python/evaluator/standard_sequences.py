"""Functions that make lists, dicts and iterators, or go through them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator.comprehensions import put
from convlint.readers.python.evaluator.library import Call
from convlint.readers.python.evaluator.limits import LONGEST
from convlint.readers.python.evaluator.list_methods import taken
from convlint.readers.python.evaluator.ordering import ordered
from convlint.readers.python.evaluator.stated import union
from convlint.readers.python.evaluator.values import (
    NOTHING_STATED,
    Const,
    Instance,
    Items,
    Table,
    Unknown,
    Value,
    unknown,
)

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

Known = Callable[["Machine", Call], "Value | None"]


def _why(value: Value) -> str:
    return value.why if isinstance(value, (Unknown, Items, Table)) else "call"


def _len(machine: Machine, call: Call) -> Value | None:
    if len(call.args) != 1:
        return None
    value = call.args[0]
    if isinstance(value, Const):
        return Const(len(value.value), value.stated) if isinstance(value.value, (str, bytes)) else None
    if isinstance(value, Instance):
        method = machine.classes.method_of(value, "__len__")
        if method is not None:
            return machine.call(method, [], {}, call.node, call.file)
    items = machine.iterate(value)
    return Const(len(items)) if items is not None else None


def _range(_: Machine, call: Call) -> Value | None:
    held = [value for value in call.args if isinstance(value, Const) and isinstance(value.value, int)]
    if len(held) != len(call.args) or not 1 <= len(held) <= 3 or not call.exact:
        return None
    numbers = [int(value.value) for value in held]  # type: ignore[arg-type]
    if len(numbers) == 3 and numbers[2] == 0:
        return None
    over = range(*numbers)
    try:
        if len(over) > LONGEST:
            return Items("range", [], complete=False, why="limit")
    except OverflowError:
        return Items("range", [], complete=False, why="limit")
    stated = NOTHING_STATED
    for value in held:
        stated = union(stated, value.stated)
    return Items("range", [Const(number, stated) for number in over])


def _made(kind: str) -> Known:
    def run(machine: Machine, call: Call) -> Value | None:
        if not call.args:
            return Items(kind, [])
        value = call.args[0]
        items = machine.iterate(value)
        if items is None:
            held = list(value.items) if isinstance(value, Items) else []
            return Items(kind, held, complete=False, why=_why(value))
        if len(items) > LONGEST:
            return None
        if isinstance(value, Items) and value.kind == "iterator":
            machine.touch(value)
            value.items = []
        return machine.items.as_set(items) if kind == "set" else Items(kind, items)

    return run


def _dict(machine: Machine, call: Call) -> Value | None:
    found = Table({})
    if call.args:
        value = call.args[0]
        more = machine.items.as_table(value)
        if more is None:
            found.complete, found.why = False, _why(value)
        else:
            found.items, found.complete, found.why = dict(more.items), more.complete, more.why
    found.items.update(call.keywords)
    if not call.exact:
        found.complete, found.why = False, "caller"
    return found


def _default_dict(machine: Machine, call: Call) -> Value | None:
    found = _dict(machine, Call(node=call.node, file=call.file, args=call.args[1:], keywords=call.keywords))
    if isinstance(found, Table) and call.args:
        found.default = call.args[0]
    return found


def _from_keys(machine: Machine, call: Call) -> Value | None:
    keys = machine.iterate(call.args[0]) if call.args else None
    if keys is None:
        return None
    found = Table({})
    for key in keys:
        put(found, key, call.args[1] if len(call.args) > 1 else Const(None))
    return found


def all_items(machine: Machine, call: Call) -> list[list[Value]] | None:
    """The items of all arguments; None where those of one are not known."""
    found: list[list[Value]] = []
    for value in call.args:
        items = machine.iterate(value)
        if items is None:
            return None
        found.append(items)
    return found if call.exact else None


def open_iterator(call: Call) -> Items:
    """An iterator over what nobody knows."""
    return Items(
        "iterator", [], complete=False, why=next((_why(arg) for arg in call.args if _why(arg) != "call"), "call")
    )


def _enumerate(machine: Machine, call: Call) -> Value | None:
    items = machine.iterate(call.args[0]) if call.args else None
    start = call.args[1] if len(call.args) > 1 else call.keywords.get("start", Const(0))
    if items is None or not isinstance(start, Const) or not isinstance(start.value, int):
        return open_iterator(call)
    first = start.value
    return Items("iterator", [Items("tuple", [Const(first + at), item]) for at, item in enumerate(items)])


def _zip(machine: Machine, call: Call) -> Value | None:
    several = all_items(machine, call)
    if several is None:
        return open_iterator(call)
    return Items("iterator", [Items("tuple", list(each)) for each in zip(*several, strict=False)])


def _map(machine: Machine, call: Call) -> Value | None:
    if len(call.args) < 2:
        return None
    rest = Call(node=call.node, file=call.file, args=call.args[1:], keywords={}, exact=call.exact)
    several = all_items(machine, rest)
    if several is None:
        return open_iterator(rest)
    rows = itertools.islice(zip(*several, strict=False), LONGEST)
    return Items("iterator", [machine.call(call.args[0], list(each), {}, call.node, call.file) for each in rows])


def _filter(machine: Machine, call: Call) -> Value | None:
    items = machine.iterate(call.args[1]) if len(call.args) == 2 else None
    if items is None:
        return open_iterator(call)
    plain = isinstance(call.args[0], Const)
    truths = [machine.truth(item if plain else machine.call(call.args[0], [item], {}, call.node, call.file))
              for item in items]  # fmt: skip
    kept = [item for item, truth in zip(items, truths, strict=True) if truth is not False]
    return Items("iterator", kept, complete=None not in truths)


def _sorted(machine: Machine, call: Call) -> Value | None:
    items = machine.iterate(call.args[0]) if call.args else None
    found = ordered(machine, items, call) if items is not None else None
    if found is None:
        return Items("list", items or [], complete=False, why=_why(call.args[0]) if call.args else "call")
    return Items("list", found)


def _reversed(machine: Machine, call: Call) -> Value | None:
    items = machine.iterate(call.args[0]) if call.args else None
    return Items("iterator", items[::-1]) if items is not None else open_iterator(call)


def _iter(machine: Machine, call: Call) -> Value | None:
    items = machine.iterate(call.args[0]) if len(call.args) == 1 else None
    if items is None:
        return open_iterator(call)
    value = call.args[0]
    return value if isinstance(value, Items) and value.kind == "iterator" else Items("iterator", items)


def _next(machine: Machine, call: Call) -> Value | None:
    value = call.args[0] if call.args else unknown("call")
    if isinstance(value, Items):
        if value.complete and not value.items and len(call.args) > 1:
            return call.args[1]
        return taken(machine, value)
    if isinstance(value, Instance):
        method = machine.classes.method_of(value, "__next__")
        return machine.call(method, [], {}, call.node, call.file) if method is not None else None
    return None


SEQUENCES: dict[str, Known] = {
    "builtins.len": _len, "builtins.range": _range, "builtins.list": _made("list"), "builtins.tuple": _made("tuple"),
    "builtins.set": _made("set"), "builtins.frozenset": _made("set"), "builtins.dict": _dict,
    "builtins.dict.fromkeys": _from_keys, "builtins.enumerate": _enumerate, "builtins.zip": _zip, "builtins.map": _map,
    "builtins.filter": _filter, "builtins.sorted": _sorted, "builtins.reversed": _reversed, "builtins.iter": _iter,
    "builtins.next": _next, "collections.OrderedDict": _dict, "typing.OrderedDict": _dict,
    "collections.defaultdict": _default_dict, "collections.deque": _made("list"), "torch.Size": _made("tuple"),
}  # fmt: skip
