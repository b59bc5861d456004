"""What all roots together say of each convolution: what reads its output, whether it is first or last, on what maps."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from enum import Enum
from typing import Literal

from convlint.model.source import Certainty
from convlint.readers.python.evaluator.memory import Recorded
from convlint.readers.python.evaluator.values import Instance, Value
from convlint.readers.python.nn.layers import Convolution, ConvRun, FrameworkLayer, Record, Recording, activated
from convlint.readers.python.nn.modules import ModuleTree, children, is_line, meaning_of
from convlint.readers.python.nn.tensors import TensorPath


class Silent(Enum):
    """Nothing is known because nothing was seen; it contradicts nothing."""

    SILENT = "silent"


SILENT = Silent.SILENT
Opinion = bool | None | Literal[Silent.SILENT]
Neighbours = dict[int, list[Opinion]]  # by the identity of the convolution: what stands behind it in each Sequential
_LEARNED = frozenset(("conv", "opaque", "unknown"))  # readers that have weights, or may have
_SIZES_KEPT = 8  # tensors that a convolution read, for their sizes


def joined(opinions: Iterable[Opinion]) -> Opinion:
    """What all of them together say."""
    found = {opinion for opinion in opinions if opinion is not SILENT}
    if not found:
        return SILENT
    return False if False in found else None if None in found else True


def _read_by_norm(use: ConvRun) -> bool | None:
    """Whether a norm reads what it writes, and nothing else does."""
    readers = use.writes.readers
    if not readers or any(reader.kind == "unknown" for reader in readers):
        return None
    if len(readers) == 1 and readers[0].kind == "norm":
        return True if readers[0].conditions == use.conditions else None
    return False


def _ends(flow: TensorPath, known: dict[int, bool]) -> bool:
    """Whether a tensor is handed out with no layer behind it; `known` are those that were looked at."""
    waiting = [flow]
    while waiting:
        here = waiting[-1]
        learned = any(reader.kind in _LEARNED for reader in here.readers)
        missing = [each for reader in here.readers for each in reader.into if id(each) not in known]
        if id(here) not in known and missing and not learned:
            waiting += missing
            continue
        waiting.pop()
        known.setdefault(id(here), bool(here.readers) and not learned and all(
            reader.kind == "returned" or any(known.get(id(each), False) for each in reader.into)
            for reader in here.readers
        ))  # fmt: skip
    return known[id(flow)]


def _in_lines(owners: Iterable[Instance]) -> Neighbours:
    """Of convolutions in a Sequential, whether a norm comes directly after them; nothing of those that stand in two."""
    found: Neighbours = {}
    holders: dict[int, int] = {}
    for part in (part for owner in owners for part in owner.attributes.values()):
        holders[id(part)] = holders.get(id(part), 0) + 1
    for owner in filter(is_line, owners):
        held = list(children(owner).values())
        for value, after in itertools.zip_longest(held, held[1:]):
            layer, behind = meaning_of(value), meaning_of(after)
            if isinstance(layer, Convolution):
                opinion: Opinion = SILENT
                if isinstance(behind, FrameworkLayer) and owner.complete and holders.get(id(value)) == 1:
                    within = activated(layer)  # then the norm comes behind that
                    opinion = behind.kind == "norm" if within is False else False if within else None
                found.setdefault(id(layer), []).append(opinion)
    return found


def _as_recorded(recorded: Iterable[Recorded], reached: set[int]) -> Neighbours:
    """Whether a norm stands behind convolutions that are not `reached`, by what was recorded as they were lined up.

    Nothing of those that more than one thing holds, and none of a line that is made on another condition than they are.
    """
    found: Neighbours = {}
    made: dict[int, set[tuple[str, ...]]] = {}
    holders: dict[int, set[int]] = {}
    for each in recorded:
        thing: Record = each.thing
        layer = id(thing.layer)
        if thing.what == "constructed":
            made.setdefault(layer, set()).add(each.conditions)
        elif thing.what == "held":
            holders.setdefault(layer, set()).add(id(thing))
        elif thing.what == "lined" and layer not in reached and activated(thing.layer) is False:
            known = each.conditions in made.get(layer, ())
            found.setdefault(layer, []).append(thing.norm if known else None)
    return {layer: opinions for layer, opinions in found.items() if len(holders.get(layer, ())) == 1}


class Seen:
    """A convolution, and what is known of it. `context` is how many convolutions ran in the root that told the rest."""

    __slots__ = ("calls", "certainty", "condition", "context", "head", "layer", "opinions", "points", "reads",
                 "reads_input", "replaced", "resized", "root")  # fmt: skip

    def __init__(self, layer: Convolution, certainty: Certainty, condition: str, root: str) -> None:
        self.layer, self.certainty, self.condition, self.root = layer, certainty, condition, root
        self.context = -1
        self.head: bool | None = None  # whether what it writes is handed out without another layer on the way
        self.reads_input: bool | None = None  # whether every run of it reads the network's input
        self.points: list[bool | None] = []  # whether the maps that it reads are 1x1, in each root
        self.calls: int | None = None  # how often a forward pass runs it
        self.replaced = True  # until a root keeps it
        self.resized = False
        self.opinions: list[Opinion] = []
        self.reads: list[TensorPath] = []

    @property
    def norm_follows(self) -> Opinion:
        """What all roots say about a norm behind it."""
        return joined(self.opinions)

    def ran(self, uses: list[ConvRun], *, whole: bool, ends: dict[int, bool], context: int, resized: bool) -> None:
        """It was run, in one root that was evaluated to its end if `whole`."""
        points = [use.reads.space.points for use in uses]
        self.points.append(True if all(points) else False if False in points else None)
        self.resized = self.resized or resized
        if len(self.reads) < _SIZES_KEPT:
            self.reads += [use.reads for use in uses[:_SIZES_KEPT]]
        if context > self.context:  # the larger network knows better which of its layers is the first or last
            self.context = context
            last = all(_ends(use.writes, ends) for use in uses)
            self.head = last if last or whole else None
            self.reads_input = all(use.reads.raw for use in uses)
            runs = [use.run for use in uses]
            self.calls = max(map(runs.count, set(runs)))


class Gathering:
    """Everything that was seen, by the identity of the convolution and the file of the root.

    Not by the identity alone: that of an equal call is shared by the roots of all files that one process reads.
    """

    def __init__(self) -> None:
        self.seen: dict[tuple[int, str], Seen] = {}

    def add(
        self, recorded: Iterable[Recorded], recording: Recording, result: Iterable[Value], *, certainty: Certainty,
        path: str, root: str, whole: bool,
    ) -> None:  # fmt: skip
        """What evaluating a root has recorded, what ran in its forward passes, and what it gave."""
        layers: dict[int, tuple[Convolution, str]] = {}
        superseded = {id(each.thing.before) for each in recorded if each.thing.what == "constructed"}
        escaped = {id(each.thing.layer) for each in recorded if each.thing.what == "escaped"}
        for each in recorded:
            if each.thing.what == "constructed":
                layer, condition = each.thing.layer, " and ".join(dict.fromkeys(each.conditions))
                if id(layer) not in layers or not condition:
                    layers[id(layer)] = layer, condition
        tree = ModuleTree(result)
        near = {**_as_recorded(recorded, tree.layers), **_in_lines(tree.owners)}
        judges = bool(tree.owners) and tree.whole and whole
        ends: dict[int, bool] = {}
        for layer, condition in layers.values():
            uses, held = recording.uses_of(layer), id(layer) in tree.layers
            if id(layer) in superseded and not uses and not held:
                continue
            seen = self.seen.setdefault((id(layer), path), Seen(layer, certainty, condition, root))
            if (certainty != "stated", bool(condition)) < (seen.certainty != "stated", bool(seen.condition)):
                seen.certainty, seen.condition, seen.root = certainty, condition, root
            kept = uses or held or not judges or condition or id(layer) in escaped
            seen.replaced = seen.replaced and not kept
            opinion = joined(map(_read_by_norm, uses)) if uses else joined(near.get(id(layer), ()))
            if id(layer) in escaped:
                opinion = None
            elif uses and opinion is True and not whole:
                opinion = SILENT
            if opinion is not SILENT:
                seen.opinions.append(opinion)
            if uses:
                context = len(recording.uses) if whole else 0
                seen.ran(uses, whole=whole, ends=ends, context=context, resized=layer in recording.resized)
