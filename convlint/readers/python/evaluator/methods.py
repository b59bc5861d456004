"""Methods of texts, lists and dicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from convlint.readers.python.evaluator import list_methods, table_methods, text_methods
from convlint.readers.python.evaluator.library import Call
from convlint.readers.python.evaluator.values import Const, Items, Table, Value

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine


def call(machine: Machine, receiver: Items | Table | Const, name: str, call: Call) -> Value | None:
    """What `receiver.name(...)` gives; None: nothing known."""
    if isinstance(receiver, Items):
        return list_methods.call(machine, receiver, name, call)
    if isinstance(receiver, Table):
        return table_methods.call(machine, receiver, name, call)
    return text_methods.call(machine, receiver, name, call)
