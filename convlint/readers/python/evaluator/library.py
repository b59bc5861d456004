"""What the evaluator asks of whoever knows a framework: what its functions and classes do when they are called."""

# ruff: noqa: ARG002 - whoever knows more overrides these

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine
    from convlint.readers.python.evaluator.values import Class, Instance, Tensor, Value
    from convlint.readers.python.source_file import SourceFile


class LibraryCall(Struct, frozen=True):
    """A call of something that is not in the source. `args` and `keywords` are complete where `exact`."""

    node: ast.Call
    file: SourceFile
    args: list[Value]
    keywords: dict[str, Value]
    exact: bool = True  # no *args or **kwargs that are unknown

    def with_args(self, args: list[Value], keywords: dict[str, Value]) -> LibraryCall:
        """Return the same call with other arguments."""
        return LibraryCall(self.node, self.file, args, keywords, self.exact)


class Library:
    """Frameworks' own functions and classes. None always means: nothing known of this one."""

    def call(self, machine: Machine, name: str, call: LibraryCall) -> Value | None:
        """What `name(...)` gives, for a full name such as torch.nn.Conv2d; of a class, an instance."""
        return None

    def method(self, machine: Machine, receiver: Value, name: str, call: LibraryCall) -> Value | None:
        """What `receiver.name(...)` gives, of an Instance with a meaning here or a Tensor."""
        return None

    def attribute(self, machine: Machine, receiver: Value, name: str) -> Value | None:
        """What `receiver.name` is, of an Instance with a meaning here or a Tensor: `conv.out_channels`, `x.shape`."""
        return None

    def call_instance(self, machine: Machine, instance: Instance, call: LibraryCall) -> Value | None:
        """What `instance(...)` gives: a layer applied to a tensor, a container, a module of the source."""
        return None

    def initialize(self, machine: Machine, instance: Instance, base: str, call: LibraryCall) -> bool:
        """`super().__init__(...)` reaches a framework's class `base`, as of a subclass of nn.Conv2d. Whether known."""
        return False

    def set_attribute(self, machine: Machine, instance: Instance | Tensor, name: str, value: Value) -> None:
        """`instance.name = value` took place, as in a module's __init__; or `tensor.data = value`."""

    def set_outside(
        self, machine: Machine, name: str, key: Value, value: Value, node: ast.AST, file: SourceFile
    ) -> None:
        """`name.key = value` or `name[key] = value` took place, for a full name such as torch.backends.cudnn."""

    def imported(self, machine: Machine, node: ast.Import | ast.ImportFrom, file: SourceFile) -> None:
        """An import was run: it has bound its names, and no module was run for that."""

    def operator(self, machine: Machine, left: Value, right: Value, node: ast.AST) -> Value | None:
        """`left + right` and its like, where one of them is a Tensor."""
        return None

    def escapes(self, machine: Machine, value: Value) -> None:
        """A value went where nobody looks: into a call of something unknown, out of a function that has no caller."""

    def items(self, machine: Machine, receiver: Instance) -> list[Value] | None:
        """What a loop over `receiver` goes through, of a container such as nn.Sequential; in order."""
        return None

    def subclass_of(self, cls: Class) -> str | None:
        """The framework's class that the class of the source is a kind of, if any: `torch.nn.Module`."""
        return None
