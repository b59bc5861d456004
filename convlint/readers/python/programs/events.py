"""A setting that is set on the way through a program."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from convlint.model.location import Location
from convlint.readers.python.programs.conditions import Conditions
from convlint.readers.python.programs.constants import Literal


class Event(Struct, frozen=True):
    """A setting is set: to `value`, in a tuple as None is one too, or to what nobody knows."""

    name: str
    value: tuple[Literal] | None
    at: Location
    conditions: Conditions = ()
    imported: bool = False  # by the import of a file, which takes place once

    def under(self, around: Conditions) -> Event:
        """The same, with what holds around it."""
        return Event(self.name, self.value, self.at, (*around, *self.conditions), self.imported) if around else self


def once(events: Iterable[Event]) -> tuple[Event, ...]:
    """The events, those of imports where they come first."""
    seen: set[tuple[str, Location]] = set()
    found = []
    for each in events:
        if not each.imported or (each.name, each.at) not in seen:
            found.append(each)
        seen.add((each.name, each.at))
    return tuple(found)
