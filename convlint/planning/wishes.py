"""What the user wants of a plan: what stays as it is, what may be added, and how fast is fast enough."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Lot = Literal["dtype", "layout", "batch", "channels"]  # what can be kept as it is
LOTS: tuple[Lot, ...] = ("dtype", "layout", "batch", "channels")


class Wishes(Struct, frozen=True, kw_only=True):
    """`max_parameters` and `max_flops` are shares of today's, 0.05 for 5 % more; None: as many as it takes.

    `keeps_results`: only what leaves the network's results as they are. `target_us` is a time for one step at today's
    batch: no more is changed than that needs.
    """

    keeps_results: bool = False
    fixed: frozenset[Lot] = frozenset()
    max_parameters: float | None = None
    max_flops: float | None = None
    target_us: float | None = None
