"""The interface by which the evaluator asks what code outside the source does, such as a framework's layers."""

# ruff: noqa: ARG002 - subclasses use the arguments

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine
    from convlint.readers.python.evaluator.values import Class, Instance, Tensor, Value
    from convlint.readers.python.source_file import SourceFile


class LibraryCall(Struct, frozen=True):
    """A call and its evaluated arguments. `args` and `keywords` are complete if `exact`."""

    node: ast.Call
    file: SourceFile
    args: list[Value]
    keywords: dict[str, Value]
    exact: bool = True  # no *args or **kwargs that are unknown
    others: frozenset[str] | None = None  # if it is not `exact`: the names that may be given too; None for any

    @property
    def values(self) -> list[Value]:
        """All arguments, positional and named."""
        return [*self.args, *self.keywords.values()]

    def with_args(self, args: list[Value], keywords: dict[str, Value]) -> LibraryCall:
        """Return the same call with other arguments."""
        return LibraryCall(self.node, self.file, args, keywords, self.exact, self.others)


class Library:
    """Meaning of functions and classes outside the source. A result of None always means that nothing is known."""

    of_unknown: frozenset[str] = frozenset()  # methods that it handles for an unknown receiver, too

    def begin_module(self) -> object:
        """Begin the records of a module that is imported now; return the previous ones for `end_module`."""
        return None

    def end_module(self, path: str, outer: object) -> None:
        """Keep the records of the module at `path`, and go on with the previous ones, `outer`."""

    def has(self, name: str) -> bool:
        """Whether it knows a class or function by this full name, which `from torch.nn import *` may bind."""
        return False

    def canonical(self, name: str) -> str:
        """Return the one name of what has several, as `tensorflow.keras.layers` and `keras.layers` are one module."""
        return name

    def is_one_of_kinds(self, name: str) -> bool:
        """Whether a call of one of several such classes, of which none is certain, is run with each of them."""
        return False

    def kinds(self, module: str, pattern: re.Pattern[str]) -> list[str]:
        """Return the full names of such classes in a module whose own names the pattern matches."""
        return []

    def call(self, machine: Machine, name: str, call: LibraryCall) -> Value | None:
        """Return the result of `name(...)` for a full name such as `torch.nn.Conv2d`; for a class, an instance."""
        return None

    def method(self, machine: Machine, receiver: Value, name: str, call: LibraryCall) -> Value | None:
        """Return the result of `receiver.name(...)`, for a Tensor or an Instance of a known class.

        For a name in `of_unknown`, the receiver may be unknown, too.
        """
        return None

    def attribute(self, machine: Machine, receiver: Value, name: str) -> Value | None:
        """Return `receiver.name` for a Tensor or an Instance of a known class: `conv.out_channels`, `x.shape`."""
        return None

    def call_instance(self, machine: Machine, instance: Instance, call: LibraryCall) -> Value | None:
        """Return the result of `instance(...)`: of a layer, a container, or a module that the source defines."""
        return None

    def option(self, holder: str, name: str, path: str) -> Value | None:
        """Return `holder.name` in the file at `path`, where that is an option of the command line."""
        return None

    def options(self, holder: str, path: str) -> dict[str, Value]:
        """Return all known `holder.name` in the file at `path` that are options of the command line."""
        return {}

    def initialize(self, machine: Machine, instance: Instance, base: str, call: LibraryCall) -> bool:
        """Handle `super().__init__(...)` of a framework's class `base`; return whether the class is known."""
        return False

    def set_attribute(self, machine: Machine, instance: Instance | Tensor, name: str, value: Value) -> None:
        """Handle `instance.name = value`, as in a module's `__init__`, or `tensor.data = value`."""

    def set_outside(
        self, machine: Machine, name: str, key: Value, value: Value, node: ast.AST, file: SourceFile
    ) -> None:
        """Handle `name.key = value` or `name[key] = value`, for a full name such as `torch.backends.cudnn`."""

    def imported(self, machine: Machine, node: ast.Import | ast.ImportFrom, file: SourceFile) -> None:
        """Handle an import statement, which has bound its names without running a module."""

    def operator(self, machine: Machine, left: Value, right: Value, node: ast.AST) -> Value | None:
        """Return the result of a binary or unary operator, where an operand is a Tensor or an Instance."""
        return None

    def escapes(self, machine: Machine, value: Value, why: str = "call") -> None:
        """Handle a value that leaves the evaluation: an argument of an unknown call, a result that has no caller.

        `why` is the reason for which the code that gets it is unknown.
        """

    def items(self, machine: Machine, receiver: Instance) -> list[Value] | None:
        """Return the items of a loop over a container such as `nn.Sequential`, in order."""
        return None

    def subclass_of(self, cls: Class) -> str | None:
        """Return the framework's class that a class of the source derives from: `torch.nn.Module`."""
        return None
