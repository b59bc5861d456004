"""How a quantity that cannot be worked out becomes UNKNOWN, and which names belong to which axis of a convolution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

from convlint.rulebook.unknown import UNKNOWN, UnknownValue

if TYPE_CHECKING:
    from convlint.engine.facts import LayerFacts

Quantity = Callable[["LayerFacts"], Any]


def or_unknown(compute: Quantity) -> Quantity:
    """The quantity, UNKNOWN where anything that it uses is."""

    @wraps(compute)
    def quantity(facts: LayerFacts) -> Any:
        try:
            return compute(facts)
        except UnknownValue:
            return UNKNOWN

    return quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """The names along one axis."""

    size: str
    out: str
    taps: str
    stride: str

    def values(self, facts: LayerFacts) -> tuple[Any, ...]:
        """(size, output size, taps, stride, dilation, padding before, padding after); any may be UNKNOWN."""
        size = self.size
        names = (size, self.out, self.taps, self.stride, f"Dil{size}", f"Pad{size}", f"Pad{size}_end")
        return tuple(facts[name] for name in names)


AXES = (
    Axis(size="D", out="Z", taps="T", stride="StrideD"),
    Axis(size="H", out="P", taps="R", stride="U"),
    Axis(size="W", out="Q", taps="S", stride="V"),
)
