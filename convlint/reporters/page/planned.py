"""A plan as the page shows it: its steps, and how the time falls from one to the next."""

from __future__ import annotations

from msgspec import Struct

BAR = 1000  # units of a bar's drawing: the time before all steps


class PlanStep(Struct, frozen=True, kw_only=True):
    """A step, or all; texts are plain, `width` is the time afterwards, where BAR is that before all."""

    change: str
    before: str
    after: str
    saved: str
    grade: str
    parameters: str
    flops: str
    width: float


class PlanView(Struct, frozen=True, kw_only=True):
    """The plan of one network on one GPU; without steps there is nothing to change, or `says` why not."""

    title: str
    says: str
    steps: tuple[PlanStep, ...]
    whole: PlanStep | None = None  # all steps, where there are some
