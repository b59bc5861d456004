"""When circles of objects are looked for in a process that audits model after model, and has no end in sight."""

from __future__ import annotations

import gc

_SELDOM = 5_000_000, 50, 100  # by itself, the interpreter looks for them all the time: a fifth of a run
_MODELS = 50  # after which they are looked for, so that memory stays flat


def look_seldom() -> None:
    """From now on this process looks for circles only when it is told to."""
    gc.set_threshold(*_SELDOM)


def look_after(number: int) -> None:
    """Looks for circles after every so many models; `number` is how many there were."""
    if number % _MODELS == 0:
        gc.collect()
