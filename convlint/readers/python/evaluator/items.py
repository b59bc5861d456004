"""Items of lists, tuples, dicts and texts: read, set, cut and deleted."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator import comparing, operating
from convlint.readers.python.evaluator.comprehensions import put as put_key
from convlint.readers.python.evaluator.limits import LONGEST
from convlint.readers.python.evaluator.stated import union
from convlint.readers.python.evaluator.values import (
    Class,
    Const,
    Instance,
    Items,
    Module,
    Name,
    Table,
    Unknown,
    Value,
    unknown,
)
from convlint.readers.python.source_file import SourceFile

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine


class ItemAccess:
    """What subscripts and operators do to values."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def binary(self, kind: type[ast.AST], left: Value, right: Value, node: ast.AST) -> Value:
        """`left + right` and its like."""
        return operating.binary(self.machine, kind, left, right, node)

    def compare(self, kind: type[ast.AST], left: Value, right: Value) -> bool | None:
        """`left < right` and its like; None where nobody knows."""
        return comparing.compare(self.machine, kind, left, right)

    def get(self, receiver: Value, key: Value, node: ast.Subscript, file: SourceFile) -> Value:
        """`receiver[key]`."""
        match receiver:
            case Unknown():
                return receiver
            case Items():
                return self._item(receiver, key)
            case Table():
                return self.held(receiver, key, node, file)
            case Const(value=str() as text) if isinstance(key, Const) and isinstance(key.value, int):
                known = -len(text) <= key.value < len(text)
                return Const(text[key.value], receiver.stated) if known else unknown("call")
            case Name():
                return receiver if receiver.name.startswith(("typing", "builtins", "collections")) else unknown("call")
            case Module() if isinstance(key, Const) and isinstance(key.value, str):  # globals()["name"]
                return self.machine.modules.member(receiver.path, key.value)
            case Class():
                if self.machine.classes.is_enum(receiver):
                    name = key.value if isinstance(key, Const) else None
                    return receiver.namespace.get(name, unknown("call")) if isinstance(name, str) else unknown("call")
                return receiver  # a generic one with its parameters
            case Instance():
                return self._of_instance(receiver, key, node, file)
        return self._asked(receiver, [key], node, file)

    def _item(self, receiver: Items, key: Value) -> Value:
        if not isinstance(key, Const):
            return unknown(key.why) if isinstance(key, Unknown) else unknown("call")
        if not receiver.complete:
            return unknown(receiver.why)
        if not isinstance(key.value, int) or not -len(receiver.items) <= key.value < len(receiver.items):
            return unknown("call")
        return receiver.items[key.value]

    def held(self, receiver: Table, key: Value, node: ast.AST, file: SourceFile) -> Value:
        """What a dict holds at the key."""
        if not isinstance(key, Const):
            return unknown(key.why) if isinstance(key, Unknown) else unknown("call")
        found = receiver.items.get(key.value)
        if found is not None:
            return found
        if receiver.default is not None and receiver.complete:
            value = self.machine.call(receiver.default, [], {}, self.machine.no_call(node), file)
            self.machine.journals.touch(receiver)
            receiver.items[key.value] = value
            return value
        return unknown("call" if receiver.complete else receiver.why)

    def _of_instance(self, receiver: Instance, key: Value, node: ast.Subscript, file: SourceFile) -> Value:
        method = self.machine.classes.method_of(receiver, "__getitem__")
        if method is not None:
            return self.machine.call(method, [key], {}, self.machine.no_call(node), file)
        found = self._asked(receiver, [key], node, file)
        if not isinstance(found, Unknown):
            return found
        items = self.machine.parts(receiver)
        return self._item(Items("list", items), key) if items is not None else found

    def _asked(
        self, receiver: Value, args: list[Value], node: ast.Subscript, file: SourceFile,
    ) -> Value:  # fmt: skip
        call = self.machine.library_call(self.machine.no_call(node), file, args)
        found = self.machine.library.method(self.machine, receiver, "__getitem__", call)
        return found or unknown("call")

    def cut(self, receiver: Value, low: Value | None, high: Value | None, step: Value | None) -> Value:
        """`receiver[low:high:step]`."""
        ends: list[int | None] = []
        for end in (low, high, step):
            value = end.value if isinstance(end, Const) else None
            if end is not None and not (isinstance(end, Const) and (value is None or isinstance(value, int))):
                open_ = unknown(end.why if isinstance(end, Unknown) else "call")
                return Items(receiver.kind, [], complete=False, why=open_.why) if isinstance(receiver, Items) else open_
            ends.append(value if isinstance(value, int) else None)
        if ends[2] == 0:
            return unknown("call")
        if isinstance(receiver, Items):
            if not receiver.complete:
                return Items(receiver.kind, list(receiver.items), complete=False, why=receiver.why)
            kind = "list" if receiver.kind in ("range", "iterator") else receiver.kind
            return Items(kind, receiver.items[slice(*ends)])
        if isinstance(receiver, Const) and isinstance(receiver.value, str):
            return Const(receiver.value[slice(*ends)], receiver.stated)
        return unknown(receiver.why) if isinstance(receiver, Unknown) else unknown("call")

    def put(self, receiver: Value, key: Value, value: Value, node: ast.AST, file: SourceFile) -> None:
        """`receiver[key] = value`."""
        if isinstance(receiver, Items):
            self.machine.journals.touch(receiver)
            at = key.value if isinstance(key, Const) else None
            if isinstance(at, int) and receiver.complete and -len(receiver.items) <= at < len(receiver.items):
                receiver.items[at] = value
            else:
                receiver.complete = False
        elif isinstance(receiver, Table):
            self.machine.journals.touch(receiver)
            put_key(receiver, key, value)
        elif isinstance(receiver, Instance):
            method = self.machine.classes.method_of(receiver, "__setitem__")
            if method is not None:
                self.machine.call(method, [key, value], {}, self.machine.no_call(node), file)
                return
            call = self.machine.library_call(self.machine.no_call(node), file, [key, value])
            self.machine.library.method(self.machine, receiver, "__setitem__", call)
        else:
            self.machine.lost(value)

    def delete(self, receiver: Value, key: Value, node: ast.AST, file: SourceFile) -> None:
        """`del receiver[key]`."""
        if isinstance(receiver, (Items, Table)):
            self.machine.journals.touch(receiver)
            at = key.value if isinstance(key, Const) else None
            if isinstance(receiver, Table) and isinstance(key, Const):
                receiver.items.pop(at, None)
            elif isinstance(receiver, Items) and receiver.complete and isinstance(at, int) \
                    and -len(receiver.items) <= at < len(receiver.items):  # fmt: skip
                del receiver.items[at]
            else:
                receiver.complete = False
        elif isinstance(receiver, Instance):
            call = self.machine.library_call(self.machine.no_call(node), file, [key])
            self.machine.library.method(self.machine, receiver, "__delitem__", call)

    def extend(self, held: Items, value: Value) -> None:
        """`held += value`."""
        self.machine.journals.touch(held)
        items = self.machine.iterate(value)
        if items is None or not held.complete or len(held.items) + len(items) > LONGEST:
            held.complete = False
            held.why = value.why if isinstance(value, Unknown) else held.why
        held.items += (items or [])[:LONGEST]

    def as_table(self, value: Value) -> Table | None:
        """The dict that `**value` or `dict(value)` goes through."""
        if isinstance(value, Table):
            return value
        pairs = self.machine.iterate(value) if isinstance(value, Items) else None
        if pairs is None:
            return None
        found = Table({})
        for pair in pairs:
            both = self.machine.iterate(pair)
            if both is None or len(both) != 2:
                return None
            put_key(found, both[0], both[1])
        return found

    def as_set(self, items: list[Value]) -> Items:
        """A set of these."""
        found: list[Value] = []
        at: dict[tuple[type, object], int] = {}
        for item in items:
            if isinstance(item, Const):
                key = item.value.__class__, item.value
                if key in at:
                    held = found[at[key]]
                    if isinstance(held, Const):
                        found[at[key]] = Const(held.value, union(held.stated, item.stated))
                    continue
                at[key] = len(found)
            found.append(item)
        return Items("set", found, complete=not any(isinstance(item, Unknown) for item in items))
