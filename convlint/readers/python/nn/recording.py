"""The convolutions that the evaluation of one root constructs, and every run of each in a forward pass."""

from __future__ import annotations

import ast
from typing import NamedTuple

from convlint.readers.python.evaluator.values import Instance, Unknown, Value
from convlint.readers.python.nn.flow import Flow
from convlint.readers.python.nn.signatures import Signature
from convlint.readers.python.source_file import SourceFile


class Place(NamedTuple):
    """Where a convolution is constructed: the call, in its file."""

    file: SourceFile
    node: ast.Call


class Convolution:
    """A convolution that was constructed; never changed, as copies of its instance share it.

    `arguments` are by the framework's names of its parameters. `made_by` is the class of the source that it is an
    instance of, '' where that is the framework's own.
    """

    __slots__ = ("arguments", "made_by", "place", "signature")

    def __init__(self, signature: Signature, arguments: dict[str, Value], place: Place, made_by: str = "") -> None:
        self.signature, self.arguments, self.place, self.made_by = signature, arguments, place, made_by

    @property
    def whole(self) -> bool:
        """Whether everything of it is known."""
        return all(value.__class__ is not Unknown for value in self.arguments.values())

    def changed(self, name: str, value: Value) -> Convolution:
        """The same with another argument."""
        return Convolution(self.signature, {**self.arguments, name: value}, self.place, self.made_by)


class Constructed(NamedTuple):
    """A record: the convolution was constructed, or an attribute of `before` was set and made this of it."""

    layer: Convolution
    before: Convolution | None = None


class Escaped(NamedTuple):
    """A record: the convolution itself went where nobody looks."""

    layer: Convolution


class Held(NamedTuple):
    """A record: the convolution became an attribute of something, or a part of a container."""

    layer: Convolution


class Lined(NamedTuple):
    """A record: what a Sequential got directly behind the convolution: a norm, or None where nobody knows."""

    layer: Convolution
    norm: bool | None


class Use(NamedTuple):
    """A run of a convolution; `run` numbers the forward pass that it is a part of, and the instance in it."""

    run: tuple[int, int]
    reads: Flow
    writes: Flow
    conditions: tuple[str, ...]


class Recording:
    """What happens in the forward passes of one root."""

    def __init__(self) -> None:
        self.run = 0
        self.uses: dict[int, list[Use]] = {}  # by the identity of the convolution
        self.resized: set[int] = set()  # convolutions with a forward of their own, which may pad as it likes
        self.called: dict[int, Instance] = {}  # modules that were applied; kept, so that an identity stays its own

    def uses_of(self, layer: Convolution) -> list[Use]:
        """Its runs."""
        return self.uses.get(id(layer), [])
