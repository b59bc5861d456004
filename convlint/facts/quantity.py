"""A quantity that rules read: type, meaning, function, what it needs; and how its value is looked up when asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import Struct

from convlint.facts.unknown import UNKNOWN, UnknownValue

if TYPE_CHECKING:
    from convlint.facts.layer import LayerFacts

Type = Literal["number", "text", "truth", "version"]
Needs = tuple[str, ...] | Callable[["LayerFacts"], tuple[str, ...]]


class Quantity(NamedTuple):
    """One row of a table of quantities.

    `of` is called with what the table is about: a layer's facts, a GPU, a runtime, a pass. Where a value that it uses
    is unknown, so is the quantity. `needs` says what a user has to give so that it is known, in the vocabulary's
    names; nothing means the quantity itself.
    """

    type: Type
    meaning: str
    of: Callable[[Any], Any]
    needs: Needs = ()
    gpu: bool = False  # its value depends on the target
    own: bool = False  # layers of equal fields differ in it: it says which of them this is
    framework: str | None = None  # a setting that this one alone has: who runs another is not asked for it


Table = Mapping[str, Quantity]
number, text, truth, version = (partial(Quantity, kind) for kind in ("number", "text", "truth", "version"))


class View:
    """A table's quantities of one subject, each worked out when a rule first reads it as an attribute."""

    def __init__(self, table: Table, subject: Any) -> None:
        self._table, self._subject = table, subject

    def __getattr__(self, name: str) -> Any:
        quantity = None if name.startswith("_") else self._table.get(name)
        if quantity is None:
            raise AttributeError(name)
        try:
            value = quantity.of(self._subject)
        except UnknownValue:
            value = UNKNOWN
        self.__dict__[name] = value
        return value


def known(value: Any) -> Any:
    """None, which stands for unknown in the model, as the value that no rule can use."""
    return UNKNOWN if value is None else value


class Axis(Struct, frozen=True, kw_only=True):
    """The names along one axis."""

    size: str
    out: str
    taps: str
    stride: str
    word: str

    def values(self, facts: LayerFacts) -> tuple[Any, ...]:
        """(size, output size, taps, stride, dilation, padding before, padding after); any may be UNKNOWN."""
        size = self.size
        names = (size, self.out, self.taps, self.stride, f"Dil{size}", f"Pad{size}", f"Pad{size}_end")
        return tuple(facts[name] for name in names)


AXES = (
    Axis(size="D", out="Z", taps="T", stride="StrideD", word="depth"),
    Axis(size="H", out="P", taps="R", stride="U", word="height"),
    Axis(size="W", out="Q", taps="S", stride="V", word="width"),
)
