"""What all convolutions want and none says: one line in the defaults rather than one at each layer."""

from __future__ import annotations

from convlint.fixes.document import Document
from convlint.fixes.forms import Data, Unwritable
from convlint.fixes.holders import decide

_SHARED = ("N", "dtype", "layout")


def share(document: Document, unwritable: Unwritable) -> dict[str, Data]:
    """Takes what all convolutions would get anew from them, and returns it; N goes to the inputs that bring it."""
    convolutions = [holder for holder in document.holders if holder.layers]
    result: dict[str, Data] = {}
    for name in _SHARED:
        values = {holder.new.get(name) for holder in convolutions}
        value = values.pop() if len(values) == 1 else None
        if value is None or not (document.defaults is not None or document.can_get("defaults")):
            continue
        if not (name == "N" and _inputs_bring(int(str(value)), document, unwritable)):
            result[name] = value
        for holder in convolutions:
            del holder.new[name]
    return result


def _inputs_bring(N: int, document: Document, unwritable: Unwritable) -> bool:
    """Gives the inputs that state a batch the new one; whether all convolutions have theirs from them."""
    suffices = True
    for holder in document.holders:
        if not holder.layers and holder.takes_N and holder.stating("N"):
            holder.changes.setdefault("N", N)
            decide(holder, document.defaults, unwritable)
            suffices = suffices and holder.changes.get("N") == N
    return suffices and all(layer.N is not None for holder in document.holders for layer in holder.layers)
