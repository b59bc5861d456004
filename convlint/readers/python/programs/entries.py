"""Which files are programs: a guard, or a statement of the module that trains, and a loop in what it reaches."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from convlint.readers.python.programs.segments import Segment
from convlint.readers.python.programs.unit import Unit, statements
from convlint.readers.python.source_file import is_guard
from convlint.readers.python.walking import every

_BACKWARD = re.compile(rb"\.(?:backward|manual_backward|scaled_backward)\s*\(|\bbackward\s*\(")
_STEP = re.compile(rb"\.step\s*\(|\bscaler\s*\(")
_FIT = re.compile(rb"\.(?:fit|fit_generator|fit_one_cycle|fine_tune|train_on_batch)\s*\(")
_TAPE = re.compile(rb"\.(?:apply_gradients|minimize)\s*\(|\bminimize\s*\(")
_TRAINER = re.compile(rb"\b(?:\w*Trainer|Runner|Engine)\b")
_RUN = re.compile(rb"\.(?:fit|train|run)\s*\(")
_TRAINS = {"backward", "fit", "fit_generator", "train_on_batch", "apply_gradients", "minimize"}


def may_be_entry(content: bytes) -> bool:
    """Whether a file can be one, by its bytes."""
    return b"__main__" in content or b".backward(" in content or b".fit(" in content


def beginning(unit: Unit) -> ast.stmt | None:
    """The statement that a program begins with: its guard, or the first one of the module that trains."""
    first: ast.stmt | None = None
    for node in unit.file.tree.body:
        if is_guard(node):
            return node
    loops = {name for name, node in unit.functions.items() if _holds_loop(node)}
    for node in statements(unit.file.tree.body):
        if isinstance(node, ast.Expr | ast.Assign) and _trains(node.value, loops):
            first = node
            break
    return first


def has_loop(reached: Iterable[Segment], trainer: bool) -> bool:
    """Whether what a program reaches trains anything; `trainer`: it imports a library that has a loop of its own."""
    backward = step = False
    for segment in reached:
        backward = backward or segment.has(_BACKWARD)
        step = step or segment.has(_STEP)
        if (backward and step) or segment.has(_TAPE):
            return True
        if trainer and (segment.has(_FIT) or (segment.has(_TRAINER) and segment.has(_RUN))):
            return True
    return False


def _holds_loop(function: ast.AST) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "backward" for node in every(function))


def _trains(node: ast.expr, loops: set[str]) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id in loops
    return isinstance(node.func, ast.Attribute) and node.func.attr in _TRAINS
