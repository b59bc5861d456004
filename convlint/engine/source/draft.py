"""A finding on source while it is put together: what it says, of which layers, and on which targets."""

from __future__ import annotations

from msgspec import Struct

from convlint.engine.hits import Flaw
from convlint.model.location import Location


class Member(Struct, frozen=True, order=True):
    """A layer or program of which a finding speaks: its name, the file, and of a width the letter and the number."""

    name: str
    path: str
    side: str = ""
    value: int = 0
    map: str = ""  # such as ", at 56x56", where that is known


class Draft(Struct, frozen=True, kw_only=True):
    """What a rule says at one place. `is_program`: of programs, which are no layers."""

    flaw: Flaw
    at: Location
    members: tuple[Member, ...]
    is_program: bool = False

    @property
    def says(self) -> tuple[str, Location, str, str, tuple[Member, ...]]:
        """What makes two of them one: on several targets, or of several programs."""
        members = () if self.is_program else self.members
        return self.flaw.rule.info.code, self.at, self.flaw.message, self.flaw.describe, members
