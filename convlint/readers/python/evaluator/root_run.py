"""One root run from a clean state, within its share of steps; what it changes is undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from convlint.readers.python.evaluator import uncalled
from convlint.readers.python.evaluator.exhausted import Exhausted
from convlint.readers.python.evaluator.limits import STEPS_OF_ANY_ROOT, STEPS_OF_NOTHING, STEPS_OF_ROOT
from convlint.readers.python.evaluator.scope import Scope
from convlint.readers.python.evaluator.values import Class, Function, Value, unknown

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine
    from convlint.readers.python.evaluator.memory import Recorded


class RootRun(Struct, frozen=True):
    """What evaluating a root gave, and functions in it that nobody is seen to call."""

    value: Value
    recorded: list[Recorded]
    besides: list[Value]


def run(machine: Machine, root: Function | Class, defaults: bool) -> RootRun:
    """Call it with parameters that nobody knows, or at their defaults."""
    path = root.file.path
    left = machine.left_of_file.get(path, machine.steps_of_file)
    if left <= 0:
        machine.steps = -1
        return RootRun(unknown("limit"), [], [])
    machine.steps = start = min(STEPS_OF_ROOT, left, machine.left_of_run)
    machine.floor = max(start - STEPS_OF_NOTHING, 0)
    machine.root = f"{path}:{root.name}"
    machine.recorded, machine.height, machine.remembered = [], 0, 0
    journal = machine.journals.begin()
    frames: list[Scope] = []
    besides: list[Value] = []
    try:
        value = uncalled.called(machine, root, defaults, frames)
        machine.library.escapes(machine, value)
    except (Exhausted, RecursionError):
        value = unknown("limit")
    try:
        for each in uncalled.handed_out(machine, frames, defaults):
            besides.append(each)
    except (Exhausted, RecursionError):
        machine.steps = -1
    reset(machine, journal)
    machine.floor = 0
    charge(machine, path, max(start - machine.steps - machine.remembered, STEPS_OF_ANY_ROOT))
    recorded, machine.recorded = machine.recorded, []
    machine.root = ""
    return RootRun(value, recorded, besides)


def charge(machine: Machine, path: str, taken: int) -> None:
    """The file and the whole run have so many steps less."""
    machine.left_of_file[path] = machine.left_of_file.get(path, machine.steps_of_file) - taken
    machine.left_of_run -= taken


def reset(machine: Machine, journal: object) -> None:
    """Undo what was changed since the journal began, and forget where the evaluation stood."""
    journals = machine.journals.open
    while journals:
        last = journals[-1]
        machine.journals.undo(last)
        if last is journal:
            break
    machine.journals.trials.clear()
    machine.journals.world = 0
    machine.conditions.clear()
    machine.stack.clear()
    machine.active.clear()
    machine.height = machine.again = 0
