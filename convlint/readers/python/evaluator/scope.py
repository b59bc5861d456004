"""Where names are bound while a body runs: a module's, a class's, a function's, a comprehension's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from convlint.readers.python.evaluator.values import NONE, Value, birth

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine
    from convlint.readers.python.evaluator.paths import Loop, Meeting
    from convlint.readers.python.evaluator.values import Function
    from convlint.readers.python.source_file import SourceFile


class Scope:
    """The variables of a body that runs, or ran and is still seen by functions within it.

    `parent` is the scope around it as names are looked up, never a class's; `module` the outermost one. `value` is what
    a return statement gave, `yields` what a generator gave so far.
    """

    __slots__ = (
        "born", "file", "function", "leaving", "loops", "machine", "module", "of_class", "open_yields", "parent",
        "stars", "under", "value", "variables", "yields",
    )  # fmt: skip

    def __init__(self, machine: Machine, file: SourceFile, parent: Scope | None, function: Function | None) -> None:
        self.machine, self.file, self.parent, self.function = machine, file, parent, function
        self.module: Scope = self if parent is None else parent.module
        self.variables: dict[str, Value] = {}
        self.stars: list[str] = []  # modules that `from m import *` names, of a module's scope
        self.of_class = self.open_yields = False
        self.value: Value = NONE
        self.yields: list[Value] | None = None
        self.leaving: Meeting | None = None  # paths that left the function on a condition
        self.loops: list[Loop] = []
        self.under = 0  # undecided tests around the call
        self.born = birth() if parent is not None else 0
