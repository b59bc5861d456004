"""What stands behind a convolution in Sequentials that cannot be reached from what a root gives."""

from __future__ import annotations

from collections.abc import Iterable

from convlint.readers.python.evaluator.memory import Recorded
from convlint.readers.python.nn.convolutions import activated
from convlint.readers.python.nn.following import Neighbours
from convlint.readers.python.nn.recording import Constructed, Held, Lined


def lines(recorded: Iterable[Recorded], reached: set[int]) -> Neighbours:
    """Whether a norm stands behind convolutions that are not `reached`, by what was recorded as they were lined up.

    Nothing of those that more than one thing holds, and none of a line that is made on another condition than they are.
    """
    found: Neighbours = {}
    made: dict[int, set[tuple[str, ...]]] = {}
    holders: dict[int, set[int]] = {}
    for each in recorded:
        thing = each.thing
        if isinstance(thing, Constructed):
            made.setdefault(id(thing.layer), set()).add(each.conditions)
        elif isinstance(thing, Held):
            holders.setdefault(id(thing.layer), set()).add(id(thing))
        elif isinstance(thing, Lined) and id(thing.layer) not in reached and activated(thing.layer) is False:
            known = each.conditions in made.get(id(thing.layer), ())
            found.setdefault(id(thing.layer), []).append(thing.norm if known else None)
    return {layer: opinions for layer, opinions in found.items() if len(holders.get(layer, ())) == 1}
