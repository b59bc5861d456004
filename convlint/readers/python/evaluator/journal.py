"""What a path changes of objects that are older than it, so that another path can start from the same state."""

from __future__ import annotations

from typing import Any

from convlint.readers.python.evaluator.scope import Scope
from convlint.readers.python.evaluator.values import Class, Instance, Items, Table, birth

Changing = Items | Table | Instance | Class | Scope
Content = tuple[Any, ...]  # of one of these, a copy as deep as a change goes


def content(thing: Changing) -> Content:
    """What the object holds now."""
    if isinstance(thing, Items):
        return (thing.items[:], thing.complete, thing.why)
    if isinstance(thing, Table):
        return (thing.items.copy(), thing.complete, thing.why)
    if isinstance(thing, Instance):
        return (thing.attributes.copy(), thing.complete, thing.extra)
    if isinstance(thing, Class):
        return (thing.namespace.copy(),)
    return (thing.variables.copy(),)


def restore(thing: Changing, held: Content) -> None:
    """Give the object that content again."""
    if isinstance(thing, Items):
        thing.items, thing.complete, thing.why = held[0][:], held[1], held[2]
    elif isinstance(thing, Table):
        thing.items, thing.complete, thing.why = held[0].copy(), held[1], held[2]
    elif isinstance(thing, Instance):
        thing.attributes, thing.complete, thing.extra = held[0].copy(), held[1], held[2]
    elif isinstance(thing, Class):
        thing.namespace = held[0].copy()
    else:
        thing.variables = held[0].copy()


class Journal:
    """The contents that objects older than it had before they were first changed."""

    __slots__ = ("saved", "start")

    def __init__(self) -> None:
        self.start = birth()
        self.saved: dict[int, tuple[Changing, Content]] = {}

    def now(self) -> dict[int, tuple[Changing, Content]]:
        """The contents that they have now."""
        return {key: (thing, content(thing)) for key, (thing, _) in self.saved.items()}


class Trial:
    """A call whose result may be remembered, as long as it changes nothing that is older than itself."""

    __slots__ = ("pure", "start", "tallest")

    def __init__(self) -> None:
        self.start = birth()
        self.pure = True
        self.tallest = 0  # frames of Python at the most


class Journals:
    """Those that are open, in the order in which they were opened, and the calls that may be remembered."""

    def __init__(self) -> None:
        self.open: list[Journal] = []
        self.trials: list[Trial] = []
        self.world = 0  # another number for each state of what modules made; 0 as they left it
        self._worlds = 0

    def begin(self) -> Journal:
        """Open another."""
        journal = Journal()
        self.open.append(journal)
        return journal

    def end(self, journal: Journal) -> None:
        """Close it; what was changed stays."""
        self.open.remove(journal)

    def undo(self, journal: Journal) -> None:
        """Close it, and give everything in it its old content."""
        self.open.remove(journal)
        for thing, held in journal.saved.values():
            self.touch(thing)  # one that was opened later, and stays, has to know what it was
            restore(thing, held)

    def touch(self, thing: Changing) -> None:
        """`thing` is about to change."""
        born = thing.born
        if not born and not birth.stopped:
            self._worlds += 1
            self.world = self._worlds
        key = id(thing)
        held: Content | None = None
        for journal in reversed(self.open):
            if born > journal.start or key in journal.saved:
                break
            if held is None:
                held = content(thing)
            journal.saved[key] = (thing, held)
        for trial in reversed(self.trials):
            if born > trial.start:
                break
            trial.pure = False

    def spoil(self) -> None:
        """Nothing that is being evaluated now may be remembered: it depends on more than its arguments."""
        for trial in self.trials:
            trial.pure = False
