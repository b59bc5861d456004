"""What all roots together say of each convolution that any of them constructs."""

from __future__ import annotations

from convlint.model.source import Certainty
from convlint.readers.python.evaluator.memory import Recorded
from convlint.readers.python.evaluator.values import Value
from convlint.readers.python.nn.flow import Flow
from convlint.readers.python.nn.following import SILENT, Following, Opinion, joined, neighbours
from convlint.readers.python.nn.lines import lines
from convlint.readers.python.nn.recording import Constructed, Convolution, Escaped, Recording
from convlint.readers.python.nn.tree import Tree

_SIZES_KEPT = 8  # tensors that a convolution read, for their sizes


class Seen:
    """A convolution, and what is known of it. `context` is how many convolutions ran in the root that told the rest."""

    __slots__ = ("calls", "certainty", "condition", "context", "head", "layer", "opinions", "points", "reads",
                 "reads_input", "replaced", "resized", "root")  # fmt: skip

    def __init__(self, layer: Convolution, certainty: Certainty, condition: str, root: str) -> None:
        self.layer, self.certainty, self.condition, self.root = layer, certainty, condition, root
        self.context = -1
        self.head: bool | None = None
        self.reads_input: bool | None = None
        self.points: list[bool | None] = []
        self.calls: int | None = None
        self.replaced = True  # until a root keeps it
        self.resized = False
        self.opinions: list[Opinion] = []
        self.reads: list[Flow] = []

    @property
    def norm_follows(self) -> Opinion:
        """What all roots say about a norm behind it."""
        return joined(self.opinions)

    @property
    def rank(self) -> tuple[bool, bool]:
        """How good it is: stated before with defaults, certain before on a condition."""
        return self.certainty != "stated", bool(self.condition)


class Gathering:
    """Everything that was seen, by the identity of the convolution and the file of the root.

    Not by the identity alone: that of an equal call is shared by the roots of all files that one process reads.
    """

    def __init__(self) -> None:
        self.seen: dict[tuple[int, str], Seen] = {}

    def add(
        self, recorded: list[Recorded], recording: Recording, result: list[Value], *, certainty: Certainty,
        path: str, root: str, whole: bool,
    ) -> None:  # fmt: skip
        """What evaluating a root has recorded, what ran in its forward passes, and what it gave."""
        layers: dict[int, tuple[Convolution, str]] = {}
        superseded: set[int] = set()
        escaped: set[int] = set()
        for each in recorded:
            thing = each.thing
            if isinstance(thing, Escaped):
                escaped.add(id(thing.layer))
            elif isinstance(thing, Constructed):
                if thing.before is not None:
                    superseded.add(id(thing.before))
                condition = " and ".join(dict.fromkeys(each.conditions))
                known = layers.get(id(thing.layer))
                if known is None or (known[1] and not condition):
                    layers[id(thing.layer)] = thing.layer, condition
        tree = Tree(result)
        near = {**lines(recorded, tree.layers), **neighbours(tree.owners)}
        following = Following(recording, near, escaped, whole=whole)
        judges = bool(tree.owners) and tree.whole and whole
        for layer, condition in layers.values():
            ran = bool(recording.uses_of(layer))
            held = id(layer) in tree.layers
            if id(layer) in superseded and not ran and not held:
                continue
            seen = self._seen(layer, path, certainty, condition, root)
            kept = ran or held or not judges or bool(condition) or id(layer) in escaped
            seen.replaced = seen.replaced and not kept
            context = len(recording.uses) if ran and whole else 0 if ran else -1
            self._take(seen, following, recording, layer, context=context)

    def _seen(self, layer: Convolution, path: str, certainty: Certainty, condition: str, root: str) -> Seen:
        seen = self.seen.get((id(layer), path))
        if seen is None:
            seen = self.seen[id(layer), path] = Seen(layer, certainty, condition, root)
        elif (certainty != "stated", bool(condition)) < seen.rank:
            seen.certainty, seen.condition, seen.root = certainty, condition, root
        return seen

    def _take(
        self, seen: Seen, following: Following, recording: Recording, layer: Convolution, *, context: int
    ) -> None:
        opinion = following.norm_follows(layer)
        if opinion is not SILENT:
            seen.opinions.append(opinion)
        if context < 0:
            return
        seen.points.append(following.on_points(layer))
        seen.resized = seen.resized or id(layer) in recording.resized
        if len(seen.reads) < _SIZES_KEPT:
            seen.reads += [use.reads for use in recording.uses_of(layer)[:_SIZES_KEPT]]
        if context > seen.context:  # the larger network knows better which of its layers is the first or last
            seen.context = context
            seen.head, seen.reads_input = following.head(layer), following.reads_input(layer)
            seen.calls = following.calls(layer)
