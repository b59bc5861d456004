"""How fast this machine is just now, for bounds on processor time that hold on a slow or a busy one as well."""

from __future__ import annotations

import time

# What `_work` takes on the machine for which the bounds were chosen, with nothing beside it.
_USUAL_S = 0.025


def slowness() -> float:
    """How many times as long as usual Python takes here and now; never below 1.

    Processor time is no fixed measure: two threads that share a core, or a busy memory bus, double it.
    """
    return max(1.0, min(_work() for _ in range(2)) / _USUAL_S)


def _work() -> float:
    """Processor seconds of small objects made and looked up, as a parser does."""
    begin = time.process_time()
    kept: dict[str, tuple[int, str]] = {}
    for number in range(100_000):
        name = str(number)
        kept[name] = (number, name)
        if len(kept) > 5_000:
            kept.clear()
    return time.process_time() - begin
