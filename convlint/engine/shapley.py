"""What each of several fixes earns of what they save together: Shapley's shares."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import NamedTuple

from convlint.engine.timing import SAME


class Stake(NamedTuple):
    """What one fix earns, in us: its share, and with which others it earns that; and what it changes alone."""

    change_us: float | None = None  # negative: faster
    advised: bool = False  # it is one of the fastest subset
    lost_us: float = 0.0
    pays_with: tuple[str, ...] = ()

    @property
    def alone_us(self) -> float:
        """What it earns alone."""
        return max(0.0, -(self.change_us or 0.0))


def shares(count: int, now_us: float, time_of: Callable[[int], float]) -> list[tuple[float, frozenset[int]]]:
    """Of so many players: the share of each, and the fewest others that it earns it with, if alone it earns not half.

    `time_of` takes a set of players, as bits. The value of a set is what the best of its subsets saves; a share is the
    mean of what a player adds to the value, over all orders in which they could join. Shares are never negative and add
    up to the value of all.
    """
    times = [now_us] * (1 << count)
    for members in range(1, 1 << count):
        without = (times[members & ~(1 << i)] for i in range(count) if members >> i & 1)
        times[members] = min(time_of(members), *without)
    found = []
    orders = [factorial(size) * factorial(count - size - 1) for size in range(count)]  # by the size of a set
    for i in range(count):
        others = sorted((members for members in range(1 << count) if not members >> i & 1), key=int.bit_count)
        adds = {members: times[members] - times[members | 1 << i] for members in others}
        share = sum([adds[members] * orders[members.bit_count()] for members in others]) / factorial(count)
        enough = 0
        if adds[0] < share / 2:
            enough = next(members for members in others if adds[members] >= share * (1 - SAME))
        found.append((share, frozenset(j for j in range(count) if enough >> j & 1)))
    return found
