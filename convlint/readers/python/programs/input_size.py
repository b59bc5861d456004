"""Whether every image that a program trains on has one size, and what shows it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

from convlint.model.location import Location
from convlint.readers.python.programs.batches import Batches
from convlint.readers.python.programs.datasets import DataSets
from convlint.readers.python.programs.growth import Growth
from convlint.readers.python.programs.segments import Segment, parts
from convlint.readers.python.programs.unit import Unit, statements

Evidence = tuple[tuple[str, Location], ...]

# What may vary the size behind the data set, or besides it: nothing is shown where these stand.
_DOUBT = re.compile(
    rb"multi_?scale|random_?resize(?!d)|GroupedBatchSampler|ResizeShortestEdge|RandomShortestSize|ScaleJitter|"
    rb"progressive_resiz|grow_size|random_size|sizes?\s*=\s*random|img_?scales|variable_size|keep_ratio|"
    rb"interpolate\([^)\n]*rand|bucket",
    re.IGNORECASE,
)
_COLLATES = re.compile(rb"collate_fn(?<!\wcollate_fn)\b")  # what begins with its text is looked for fastest


class InputSizes:
    """What the segments of programs show of the size of their images, each segment looked through once."""

    def __init__(self) -> None:
        self._data, self._batches, self._growth = DataSets(), Batches(), Growth()
        self._lists: dict[int, Evidence] = {}

    def of(self, reached: Sequence[Segment], followed: Callable[[], Sequence[Segment]]) -> tuple[bool | None, Evidence]:
        """True, False or None for unknown; and the data sets and transforms that show it.

        Anything in `reached` may speak against it; only what is in `followed`, which are fewer, shows it.
        """
        size, _ = self._judged(reached)
        again, evidence = self._judged(followed()) if size is not None else (None, ())
        return (size, evidence) if again == size else (None, ())

    def _judged(self, reached: Sequence[Segment]) -> tuple[bool | None, Evidence]:
        varied = next(filter(None, map(self._collated, reached)), ())
        found = self._data.of(reached)
        if varied:  # of this program's data only if there are no others
            return (None, ()) if any(each.size == "fixed" for each in found) else (False, varied)
        varying = [each for each in found if each.size == "varying"]
        if varying and len(varying) == len(found):
            return False, tuple(each.settled for each in varying if each.settled is not None)
        if not found or any(each.size != "fixed" for each in found) or any(each.has(_DOUBT) for each in reached):
            return None, ()
        if self._batches.rescaled(reached) or self._growth.grows(reached):
            return None, ()
        if any(each.has(_COLLATES) for each in reached) and not all(each.settled for each in found):
            return None, ()
        evidence: dict[tuple[str, Location], None] = {}
        for each in found:
            evidence[each.name, each.at] = None
            if each.settled is not None:
                evidence[each.settled] = None
        return True, tuple(evidence)

    def _collated(self, segment: Segment) -> Evidence:
        """A collate_fn that makes lists, handed to a loader: images of a batch are not even of one size."""
        if not segment.has(_COLLATES):
            return ()
        if id(segment) not in self._lists:
            unit = segment.unit
            calls = [each for each in parts(segment) if isinstance(each, ast.Call)]
            self._lists[id(segment)] = next(
                (
                    (("collate_fn makes lists", unit.file.locate(call)),)
                    for call in calls
                    for keyword in call.keywords
                    if unit is not None and keyword.arg == "collate_fn" and _lists(keyword.value, unit)
                ),
                (),
            )
        return self._lists[id(segment)]


def _lists(value: ast.expr, unit: Unit) -> bool:
    """Whether a function is `return tuple(zip(*batch))`."""
    if isinstance(value, ast.Lambda):
        return _zips(value.body)
    named = unit.named(value)
    if not isinstance(named.node, ast.FunctionDef):
        return False
    returns = [each.value for each in statements(named.node.body) if isinstance(each, ast.Return)]
    return len(returns) == 1 and len(named.node.body) <= 2 and returns[0] is not None and _zips(returns[0])


def _zips(node: ast.expr) -> bool:
    return ast.unparse(node).replace(" ", "").startswith(("tuple(zip(*", "list(zip(*"))
