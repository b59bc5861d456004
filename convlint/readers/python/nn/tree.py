"""Which modules hang together at the end: what a root has built, as far as it can be reached from its result."""

from __future__ import annotations

from collections.abc import Iterable

from convlint.readers.python.evaluator.values import Instance, Items, Partial, Table, Unknown, Value
from convlint.readers.python.nn.recording import Convolution

MOST = 50_000


class Tree:
    """All modules that can be reached from some values; not `whole` where something unknown may hold more."""

    def __init__(self, values: Iterable[Value]) -> None:
        self.owners: list[Instance] = []
        self.layers: set[int] = set()  # the identities of convolutions
        self.whole = True
        seen: set[int] = set()
        waiting = list(values)
        while waiting:
            value = waiting.pop()
            if isinstance(value, Unknown):
                self.whole = self.whole and value.why not in ("branch", "limit", "call")
                continue
            if id(value) in seen or len(seen) > MOST:
                continue
            seen.add(id(value))
            if isinstance(value, Instance):
                self._take(value)
                waiting += value.attributes.values()
            elif isinstance(value, Items):
                self.whole = self.whole and value.complete
                waiting += value.items
            elif isinstance(value, Table):
                self.whole = self.whole and value.complete
                waiting += value.items.values()
            elif isinstance(value, Partial):
                waiting += (value.function, *value.args, *value.keywords.values())

    def _take(self, value: Instance) -> None:
        self.whole = self.whole and value.complete
        if isinstance(value.extra, Convolution):
            self.layers.add(id(value.extra))
        else:
            self.owners.append(value)
