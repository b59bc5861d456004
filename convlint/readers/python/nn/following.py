"""What the forward pass says about a convolution: what reads its output, whether it is first or last, on what maps."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from enum import Enum
from typing import Literal

from convlint.readers.python.evaluator.values import Instance, Name, Value
from convlint.readers.python.nn.convolutions import activated
from convlint.readers.python.nn.flow import Flow, Reader
from convlint.readers.python.nn.layers import Layer
from convlint.readers.python.nn.modules import children
from convlint.readers.python.nn.recording import Convolution, Recording, Use


class Silent(Enum):
    """Nothing is known because nothing was seen; it contradicts nothing."""

    SILENT = "silent"


SILENT = Silent.SILENT
Opinion = bool | None | Literal[Silent.SILENT]
Neighbours = dict[int, list[Opinion]]  # by the identity of the convolution
_LEARNED = frozenset(("conv", "opaque", "unknown"))


class Following:
    """The facts of one root. `neighbours` has what stands after a convolution in each Sequential that holds it."""

    def __init__(self, recording: Recording, neighbours: Neighbours, escaped: set[int], *, whole: bool) -> None:
        self._recording, self._neighbours, self._escaped, self._whole = recording, neighbours, escaped, whole
        self._ends: dict[int, bool] = {}  # whether a tensor is handed out with no layer behind it

    def norm_follows(self, layer: Convolution) -> Opinion:
        """Whether a norm reads what it writes, and nothing else does, in every run."""
        if id(layer) in self._escaped:
            return None
        uses = self._recording.uses_of(layer)
        if not uses:
            return joined(self._neighbours.get(id(layer), []))
        found = joined([_read_by_norm(use) for use in uses])
        return SILENT if found is True and not self._whole else found

    def head(self, layer: Convolution) -> bool | None:
        """Whether what it writes is handed out without another layer on the way; None where nobody saw."""
        uses = self._recording.uses_of(layer)
        if not uses:
            return None
        ends = all(self._is_end(use.writes) for use in uses)
        return ends if ends or self._whole else None

    def reads_input(self, layer: Convolution) -> bool | None:
        """Whether every run of it reads the network's input; None where it never ran."""
        uses = self._recording.uses_of(layer)
        return all(use.reads.raw for use in uses) if uses else None

    def on_points(self, layer: Convolution) -> bool | None:
        """Whether the maps that it reads are 1x1: in all runs, in none, or nobody knows."""
        points = [use.reads.space.points for use in self._recording.uses_of(layer)]
        if points and all(points):
            return True
        return False if False in points else None

    def calls(self, layer: Convolution) -> int | None:
        """How often a forward pass runs it."""
        runs = [use.run for use in self._recording.uses_of(layer)]
        return max(map(runs.count, set(runs))) if runs else None

    def _is_end(self, flow: Flow) -> bool:
        known = self._ends
        waiting = [flow]
        while waiting:
            here = waiting[-1]
            if id(here) in known:
                waiting.pop()
                continue
            missing = [each for reader in here.readers for each in reader.into if id(each) not in known]
            if missing and not any(reader.kind in _LEARNED for reader in here.readers):
                waiting += missing
                continue
            waiting.pop()
            known[id(here)] = _ends(here.readers, known)
        return known[id(flow)]


def _ends(readers: list[Reader], known: dict[int, bool]) -> bool:
    if not readers or any(reader.kind in _LEARNED for reader in readers):
        return False
    return all(
        reader.kind == "returned" or any(known.get(id(each), False) for each in reader.into) for reader in readers
    )


def _read_by_norm(use: Use) -> bool | None:
    readers = use.writes.readers
    if not readers or any(reader.kind == "unknown" for reader in readers):
        return None
    if len(readers) == 1 and readers[0].kind == "norm":
        return True if readers[0].conditions == use.conditions else None
    return False


def joined(opinions: Iterable[Opinion]) -> Opinion:
    """What all of them together say."""
    found = {opinion for opinion in opinions if opinion is not SILENT}
    if not found:
        return SILENT
    return False if False in found else None if None in found else True


def neighbours(owners: Iterable[Instance]) -> Neighbours:
    """Of convolutions in a Sequential, whether a norm comes directly after them; nothing of those that stand in two."""
    found: Neighbours = {}
    holders: dict[int, int] = {}
    for owner in owners:
        for value in owner.attributes.values():
            if isinstance(value, Instance):
                holders[id(value)] = holders.get(id(value), 0) + 1
    for owner in owners:
        extra = owner.extra
        if not isinstance(extra, Layer) or extra.kind != "sequential" or not isinstance(owner.cls, Name):
            continue
        held = list(children(owner).values())
        for value, after in itertools.zip_longest(held, held[1:]):
            layer = value.extra if isinstance(value, Instance) else None
            if isinstance(layer, Convolution):
                opinion = _after(value, after, holders, whole=owner.complete)
                within = activated(layer)  # then the norm comes behind that
                found.setdefault(id(layer), []).append(
                    opinion if within is False or opinion is SILENT else False if within else None
                )
    return found


def _after(value: Value, after: Value | None, holders: dict[int, int], *, whole: bool) -> Opinion:
    meaning = after.extra if isinstance(after, Instance) else None
    if not isinstance(meaning, Layer) or not whole or holders.get(id(value)) != 1:
        return SILENT
    return meaning.kind == "norm"
