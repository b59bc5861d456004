"""functools, collections, dataclasses, operator: functions about functions, and records."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator.library import Call
from convlint.readers.python.evaluator.values import (
    Class,
    Const,
    Function,
    Instance,
    Items,
    Name,
    Partial,
    Table,
    Value,
    unknown,
)

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

Known = Callable[["Machine", Call], "Value | None"]


def _partial(_: Machine, call: Call) -> Value | None:
    if not call.args or not call.exact:
        return None
    return Partial(call.args[0], list(call.args[1:]), dict(call.keywords))


def _reduce(machine: Machine, call: Call) -> Value | None:
    items = machine.iterate(call.args[1]) if len(call.args) >= 2 else None
    if items is None:
        return None
    rest = [*call.args[2:3], *items]
    if not rest:
        return None
    found = rest[0]
    for item in rest[1:]:
        found = machine.call(call.args[0], [found, item], {}, call.node, call.file)
    return found


def _wrapping(_: Machine, __: Call) -> Value | None:
    """functools.wraps(f): a decorator that leaves a function what it is."""
    return Name("convlint.same")


def _same(_: Machine, call: Call) -> Value | None:
    """functools.lru_cache(f), torch.jit.script(f): f."""
    if len(call.args) == 1 and isinstance(call.args[0], (Function, Class, Partial, Instance)):
        return call.args[0]
    return Name("convlint.same")


def _named_tuple(machine: Machine, call: Call) -> Value | None:
    if len(call.args) < 2 or not isinstance(call.args[0], Const):
        return None
    names: list[str] = []
    fields = call.args[1]
    if isinstance(fields, Const) and isinstance(fields.value, str):
        names = fields.value.replace(",", " ").split()
    else:
        for item in machine.iterate(fields) or []:
            held = item.items[0] if isinstance(item, Items) and item.items else item
            if not isinstance(held, Const) or not isinstance(held.value, str):
                return None
            names.append(held.value)
    defaults = machine.iterate(call.keywords["defaults"]) if "defaults" in call.keywords else []
    if not names or defaults is None or len(defaults) > len(names):
        return None
    return machine.classes.named_tuple(str(call.args[0].value), names, defaults, call.file)


def _field(_: Machine, call: Call) -> Value | None:
    return Partial(Name("convlint.field"), [], dict(call.keywords))


def _as_dict(_: Machine, call: Call) -> Value | None:
    value = call.args[0] if call.args else None
    return Table.of(value.attributes, complete=value.complete) if isinstance(value, Instance) else None


def _replaced(machine: Machine, call: Call) -> Value | None:
    if not call.args or not isinstance(call.args[0], Instance) or not call.exact:
        return None
    found = machine.copied(call.args[0], deep=False)
    if isinstance(found, Instance):
        found.attributes.update(call.keywords)
    return found


def _operated(kind: type[ast.AST]) -> Known:
    def run(machine: Machine, call: Call) -> Value | None:
        return machine.items.binary(kind, call.args[0], call.args[1], call.node) if len(call.args) == 2 else None

    return run


def _item(machine: Machine, call: Call) -> Value | None:
    if len(call.args) != 2:
        return None
    at = ast.copy_location(ast.Subscript(call.node, call.node, ast.Load()), call.node)
    return machine.items.get(call.args[0], call.args[1], at, call.file)


def _item_getter(_: Machine, call: Call) -> Value | None:
    return Partial(Name("convlint.itemgetter"), list(call.args), {}) if len(call.args) == 1 else None


def _got(machine: Machine, call: Call) -> Value | None:
    return _item(machine, Call(node=call.node, file=call.file, args=call.args[::-1], keywords={}))


def _module(machine: Machine, call: Call) -> Value | None:
    name = call.args[0] if call.args else unknown("call")
    if isinstance(name, Const) and isinstance(name.value, str) and not name.value.startswith("."):
        return machine.modules.imported(name.value, call.file, whole=True)
    return None


LIBRARY: dict[str, Known] = {
    "functools.partial": _partial, "functools.reduce": _reduce, "functools.wraps": _wrapping,
    "functools.lru_cache": _same, "functools.cache": _same, "torch.jit.script": _same,
    "torch.jit.script_if_tracing": _same,
    "torch.jit.ignore": _same, "torch.jit.export": _same, "torch.jit.unused": _same, "torch.compile": _same,
    "torch.no_grad": lambda _, call: _same(_, call) if call.args else None, "convlint.same": _same,
    "collections.namedtuple": _named_tuple, "dataclasses.field": _field, "attr.ib": _field,
    "dataclasses.asdict": _as_dict,
    "dataclasses.replace": _replaced, "operator.add": _operated(ast.Add), "operator.mul": _operated(ast.Mult),
    "operator.sub": _operated(ast.Sub), "operator.floordiv": _operated(ast.FloorDiv), "operator.getitem": _item,
    "operator.itemgetter": _item_getter, "convlint.itemgetter": _got, "importlib.import_module": _module,
}  # fmt: skip
