"""Names for the items of a spec that is written: each one that a spec can hold, and given once."""

from __future__ import annotations

import re

LONGEST_NAME = 480  # characters; the spec's own limit is 500
_HALF = re.compile("[\ud800-\udfff]")  # half a character: no file holds one


class Names:
    """Grows with the names that are given."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}  # so that a name which many items share is not counted up for each of them

    def give(self, name: str, otherwise: str) -> str:
        """The name, or `otherwise` where it is empty, with a number where it was given before."""
        stem = _HALF.sub("\ufffd", name[:LONGEST_NAME]) if name.strip() else otherwise
        result, count = stem, self._counts.get(stem, 1)
        while result in self._taken:
            count += 1
            result = f"{stem}#{count}"
        self._counts[stem] = count
        self._taken.add(result)
        return result
