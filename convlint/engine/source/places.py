"""Where findings on source point: at the literal that is to blame, at the construction, at a program's statement."""

from __future__ import annotations

import math
from collections.abc import Sequence

from convlint.facts.programs import in_order, setting_of
from convlint.facts.source_layers import Width, is_inside
from convlint.model.location import Location
from convlint.model.source import Program, SourceLayer, Stated

_FACTOR = 7  # up to it, a whole number is more often a factor, a divisor or an index than a width
_VECTOR = 8  # what widths are best a multiple of, as 16 bits want it
_NONE = 9


def of_width(width: Width) -> Location:
    """The literal that makes the number what it is, as far as one can tell; else the construction.

    That is the number itself; then a fraction that widths are multiplied with; then a width that is misaligned itself.
    Where all widths are aligned, a number above them may have something small added to it, and one below them is a part
    of one. Literals at the caller's come before the construction's.
    """
    stated = [each for each in width.literals if not each.quiet]
    best = min((_blame(each, width, stated) for each in stated), default=None)
    return of_layer((), width.record) if best is None or best[0] == _NONE else best[-1].place


class _Place:
    """A location that breaks no tie: what comes before it in a key is compared."""

    __slots__ = ("place",)

    def __init__(self, place: Location) -> None:
        self.place = place

    def __lt__(self, other: object) -> bool:
        return False


def _blame(
    literal: Stated, width: Width, stated: Sequence[Stated]
) -> tuple[int, bool, float, str, int, int, _Place]:  # fmt: skip
    """The lowest is to blame."""
    at = literal.at
    rank, size = _rank(literal.value, width.value or 0, max(filter(None, map(_whole, stated)), default=0))
    return rank, is_inside(at, width.record), size, at.path, at.line or 0, at.column or 0, _Place(at)


def _rank(value: object, number: int, largest: int) -> tuple[int, float]:
    """How much speaks for a value: the lowest most; and what tells values of one rank apart."""
    if isinstance(value, float) and value > 0 and not value.is_integer():
        return (3 if math.frexp(value)[0] == 0.5 else 1), -value  # a half may be of what is misaligned before
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        return _NONE, 0
    if value == number:
        return 0, 0
    if value > _FACTOR:
        return 2 if value % _VECTOR else 5, -value
    added = number > largest and _power(value) == _power(number)
    return 4 if added else 6, value


def _whole(literal: Stated) -> int | None:
    value = literal.value
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _power(value: int) -> int:
    """The highest power of two that divides it."""
    return value & -value


def of_layer(places: Sequence[str], record: SourceLayer) -> Location:
    """What a construction says for the first of `places` that it says anything for; else the construction."""
    return record.layer.locate(*places)


def of_program(places: Sequence[str], program: Program) -> tuple[Location, ...]:
    """The statements that a rule is about; the program, where there are none."""
    for name in places:
        found = _places(name, program)
        if found:
            return found
    return (program.at,)


def _places(name: str, program: Program) -> tuple[Location, ...]:
    if name.startswith("runtime."):
        setting = name.removeprefix("runtime.")
        own = [each for each in program.settings if setting_of(each.name) == setting]
        told = [each for each in own if each.value is not None and _agrees(each.value, getattr(program, setting, None))]
        return tuple(each.at for each in (told or own)[-1:])
    if name == "program.conflict":
        pair = in_order(program)
        return () if pair is None else (pair[1].at,)
    if name == "program.evidence":
        return tuple(at for _, at in program.evidence[:1])
    if name == "program.autotune_disabled":
        return tuple(each.at for each in program.autotune_disabled[:1])
    if name in ("program.backward_in_autocast", "program.autocast_around_loss"):
        several: tuple[Location, ...] = getattr(program, name.removeprefix("program."))
        return several
    return ()


def _agrees(value: bool | int | str, wanted: bool | None) -> bool:
    """Whether a statement is the one by which the setting is what it is; a text, such as "ieee", may be."""
    return wanted is None or isinstance(value, str) or bool(value) == wanted
