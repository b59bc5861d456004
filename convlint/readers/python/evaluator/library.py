"""What the evaluator asks of whoever knows a framework: what its functions and classes do when they are called."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine
    from convlint.readers.python.evaluator.values import Class, Instance, Value
    from convlint.readers.python.source_file import SourceFile


class Call(Struct, frozen=True, kw_only=True):
    """A call of something that is not in the source. `args` and `keywords` are complete where `exact`."""

    node: ast.Call
    file: SourceFile
    args: list[Value]
    keywords: dict[str, Value]
    exact: bool = True  # no *args or **kwargs that are unknown


class Library(Protocol):
    """Frameworks' own functions and classes. None always means: nothing known of this one."""

    def call(self, machine: Machine, name: str, call: Call) -> Value | None:
        """What `name(...)` gives, for a full name such as torch.nn.Conv2d; of a class, an instance."""
        ...

    def method(self, machine: Machine, receiver: Value, name: str, call: Call) -> Value | None:
        """What `receiver.name(...)` gives, of an Instance with a meaning here or a Tensor."""
        ...

    def attribute(self, machine: Machine, receiver: Value, name: str) -> Value | None:
        """What `receiver.name` is, of an Instance with a meaning here or a Tensor: `conv.out_channels`, `x.shape`."""
        ...

    def call_instance(self, machine: Machine, instance: Instance, call: Call) -> Value | None:
        """What `instance(...)` gives: a layer applied to a tensor, a container, a module of the source."""
        ...

    def initialize(self, machine: Machine, instance: Instance, base: str, call: Call) -> bool:
        """`super().__init__(...)` reaches a framework's class `base`, as of a subclass of nn.Conv2d. Whether known."""
        ...

    def set_attribute(self, machine: Machine, instance: Instance, name: str, value: Value) -> None:
        """`instance.name = value` took place, as in a module's __init__."""
        ...

    def operator(self, machine: Machine, left: Value, right: Value, node: ast.AST) -> Value | None:
        """`left + right` and its like, where one of them is a Tensor."""
        ...

    def escapes(self, machine: Machine, value: Value) -> None:
        """A value went where nobody looks: into a call of something unknown, out of a function that has no caller."""
        ...

    def items(self, machine: Machine, receiver: Instance) -> list[Value] | None:
        """What a loop over `receiver` goes through, of a container such as nn.Sequential; in order."""
        ...

    def subclass_of(self, cls: Class) -> str | None:
        """The framework's class that the class of the source is a kind of, if any: `torch.nn.Module`."""
        ...
