"""What a quantity is that rules may ask for: its name, meaning, how it is computed, and when it is unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from msgspec import Struct

from convlint.model.errors import ConvlintError

if TYPE_CHECKING:
    from convlint.facts.layer import LayerFacts


class UnknownValue(ConvlintError):  # a signal, not a failure
    """An expression used a value that is not known."""


class _UnknownQuantity:
    """A value that nobody gave. Whatever is done with it raises UnknownValue; what belongs to it is unknown too."""

    __slots__ = ()

    def _raise(self, *_: object) -> NoReturn:
        raise UnknownValue

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = _raise
    __truediv__ = __rtruediv__ = __mod__ = __rmod__ = __neg__ = __abs__ = __bool__ = __index__ = __float__ = _raise
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __contains__ = __iter__ = _raise
    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> _UnknownQuantity:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Any = _UnknownQuantity()


Type = Literal["number", "text", "truth", "version"]
Needs = tuple[str, ...] | Callable[["LayerFacts"], tuple[str, ...]]


class Quantity(Struct, frozen=True):
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
