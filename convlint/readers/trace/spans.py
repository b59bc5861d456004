"""Spans of time as columns, since a trace has millions, and what encloses what."""

from __future__ import annotations

from array import array
from bisect import bisect_right


class Spans:
    """Spans of many events as columns: when each begins and ends, and a number."""

    def __init__(self) -> None:
        self.begin, self.end, self.what = array("d"), array("d"), array("q")

    def add(self, begin: float, end: float, what: int) -> None:
        """Appends a span."""
        self.begin.append(begin)
        self.end.append(end)
        self.what.append(what)

    def is_outer(self, begin: float, end: float) -> bool:
        """Whether the last span does not enclose it."""
        return not self.begin or begin < self.begin[-1] or self.end[-1] < end

    def add_outer(self, begin: float, end: float, what: int) -> None:
        """Appends a span unless the last one encloses it; removes those that it encloses."""
        if not self.is_outer(begin, end):
            return
        while self.begin and begin <= self.begin[-1] and self.end[-1] <= end:
            for column in (self.begin, self.end, self.what):
                column.pop()
        self.add(begin, end, what)

    def ordered(self) -> list[int]:
        """Their indices by time, enclosing spans first."""
        return sorted(range(len(self.begin)), key=lambda index: (self.begin[index], -self.end[index]))


class Enclosing:
    """Finds the span that encloses a given one. Spans of one thread are nested or disjoint."""

    def __init__(self, spans: Spans) -> None:
        self.spans = spans
        self._order = spans.ordered()
        self._begins = [spans.begin[index] for index in self._order]

    def of(self, begin: float, end: float) -> int | None:
        """The index of the latest span that begins before it and ends after it."""
        place = bisect_right(self._begins, begin) - 1
        for back in range(place, max(-1, place - 3), -1):
            index = self._order[back]
            if self.spans.end[index] >= end:
                return index
        return None
