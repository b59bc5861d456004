"""Runs the body of a module, whatever else runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from convlint.readers.python.evaluator.compiler import Compiler
from convlint.readers.python.evaluator.exhausted import Exhausted
from convlint.readers.python.evaluator.limits import DEEPEST, STEPS_OF_MODULE
from convlint.readers.python.evaluator.scope import Scope
from convlint.readers.python.evaluator.syntax import TABLES
from convlint.readers.python.evaluator.values import birth

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine


def run(machine: Machine, scope: Scope) -> bool:
    """Run a module's body as if nothing else ran; whether it came to its end."""
    kept = (
        machine.journals.open,
        machine.journals.trials,
        machine.conditions,
        machine.stack,
        machine.steps,
        machine.floor,
        machine.recorded,
        machine.root,
    )
    machine.journals.open, machine.journals.trials, machine.conditions, machine.stack = [], [], [], []
    machine.steps, machine.floor = min(STEPS_OF_MODULE, machine.left_of_run), 0
    machine.recorded, machine.root = [], ""
    start = machine.steps
    height, machine.height = machine.height, machine.height + 12
    stopped, birth.stopped = birth.stopped, True
    whole = machine.height <= DEEPEST
    try:
        compiler = Compiler(scope.file, TABLES)
        run = compiler.block(scope.file.tree.body)
        machine.height += 2 * compiler.deepest
        if machine.height <= DEEPEST:
            run(scope)
        else:
            whole = False
    except (Exhausted, RecursionError):
        whole = False
    machine.left_of_run -= start - max(machine.steps, 0)
    machine.height, birth.stopped = height, stopped
    (machine.journals.open, machine.journals.trials, machine.conditions, machine.stack, machine.steps,
     machine.floor, machine.recorded, machine.root) = kept  # fmt: skip
    return whole
