"""Which of the swept values an axis names."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise


def ticks(values: Sequence[int], most: int) -> tuple[int, ...]:
    """At most `most` of the values, which ascend: all, or multiples of a power of 2, or every n-th and the last.

    Sizes are looked at for the powers of 2 that divide them; a tick on a value that was not swept would say nothing.
    """
    if len(values) <= most:
        return tuple(values)
    step = 2
    while len(multiples := [value for value in values if value % step == 0]) > most:
        step *= 2
    spread = {later - earlier for earlier, later in pairwise(multiples)}
    if len(multiples) >= 3 and len(spread) == 1:
        return tuple(multiples)
    every = -(-(len(values) - 1) // (most - 1))
    found = list(values[::every])
    if found[-1] != values[-1]:
        if len(values) - 1 - values.index(found[-1]) < every / 2:
            found.pop()
        found.append(values[-1])
    return tuple(found)
