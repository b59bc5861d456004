"""What each of several fixes earns of what they save together: Shapley's shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import NamedTuple

SAME = 1e-9  # times that differ by less, relative to each other, are equal


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


def shares(codes: Sequence[str], now_us: float, time_of: Callable[[int], float | None]) -> list[Stake]:
    """The stakes of fixes by these rules, all of them advised; `time_of` takes a set of them, as bits.

    The value of a set is what the best of its subsets saves; a share is the mean of what a fix adds to the value, over
    all orders in which they could be taken. Shares are never negative and add up to the value of all.
    """
    count = len(codes)
    alone = [time_of(1 << i) for i in range(count)]
    times = [now_us] * (1 << count)
    for members in range(1, 1 << count):
        own = time_of(members)
        without = (times[members & ~(1 << i)] for i in range(count) if members >> i & 1)
        times[members] = min(now_us if own is None else own, *without)
    stakes = []
    orders = [factorial(size) * factorial(count - size - 1) for size in range(count)]  # by the size of a set
    for i in range(count):
        others = [members for members in range(1 << count) if not members >> i & 1]
        adds = {members: times[members] - times[members | 1 << i] for members in others}
        share = sum([adds[members] * orders[members.bit_count()] for members in others]) / factorial(count)
        pays_with: tuple[str, ...] = ()
        if adds[0] < share / 2:
            enough = [members for members in others if adds[members] >= share * (1 - SAME)]
            named = [tuple(codes[j] for j in range(count) if members >> j & 1) for members in enough]
            pays_with = min(named, key=lambda names: (len(names), names))
        change = alone[i]
        stakes.append(Stake(None if change is None else change - now_us, True, share, pays_with))
    return stakes
