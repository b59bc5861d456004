"""What generators give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from convlint.readers.python.evaluator.exhausted import Exhausted
from convlint.readers.python.evaluator.limits import ROUNDS
from convlint.readers.python.evaluator.scope import Scope
from convlint.readers.python.evaluator.values import Value

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine


def yields(machine: Machine, scope: Scope, values: list[Value] | None) -> None:
    """The generator whose body runs gives these; None: nobody knows how many."""
    at: Scope | None = scope
    while at is not None and at.yields is None:
        at = at.parent
    if at is None or at.yields is None:
        return
    if values is None or len(at.yields) >= ROUNDS or len(machine.conditions) > at.under:
        at.open_yields = True
    at.yields += (values or [])[:ROUNDS]
    if len(at.yields) > ROUNDS:
        raise Exhausted
