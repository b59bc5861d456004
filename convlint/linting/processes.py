"""A process for each thread that asks for one: it serves that thread until it dies, and is replaced then."""

from __future__ import annotations

from threading import local

from convlint.linting.one_input import say
from convlint.readers.children.child import Child, ChildDied


class Processes:
    """Children that all run the same work; whatever their code prints is passed on."""

    def __init__(self, work: str) -> None:
        """`work` is module:function, which serves a channel."""
        self._work = work
        self._mine = local()
        self._all: list[Child] = []
        self.ended = False  # nobody waits for answers any more

    def ask(self, request: bytes) -> bytes:
        """The answer of this thread's process. Raises ChildDied; the next request goes to another one then."""
        child: Child | None = getattr(self._mine, "child", None)
        try:
            if child is None:
                child = self._mine.child = Child(self._work, on_output=say)
                self._all.append(child)
            return child.ask(request)
        except ChildDied:
            self._mine.child = None
            raise

    def finish(self) -> None:
        """All is done: what their modules printed last is still to come."""
        for child in self._all:
            child.finish()

    def end(self) -> None:
        """Whatever they are at."""
        self.ended = True
        for child in self._all:
            child.close()
