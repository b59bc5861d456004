"""Tensors of a forward pass: their shapes, who reads them, and whether they are maps or single points."""

from __future__ import annotations

from typing import NamedTuple

from convlint.readers.python.evaluator.values import Const, Unknown, Value

Shape = tuple[Value, ...]  # the batch first, then channels
SOMETHING = Unknown("call")


class Space:
    """The extent of maps that surely are of one size; `points` whether it is 1x1, as far as anything tells."""

    __slots__ = ("_parent", "_points", "_torn")

    def __init__(self, points: bool | None = None) -> None:
        self._parent: Space | None = None
        self._points, self._torn = points, False

    def _root(self) -> Space:
        here = self
        while here._parent is not None:
            if here._parent._parent is not None:
                here._parent = here._parent._parent
            here = here._parent
        return here

    @property
    def points(self) -> bool | None:
        """True for 1x1, False for a map, None where nothing tells or two things contradict each other."""
        root = self._root()
        return None if root._torn else root._points

    def says(self, points: bool) -> None:
        """Something shows that it is 1x1, or that it is a map."""
        root = self._root()
        if root._points is None:
            root._points = points
        elif root._points != points:
            root._torn = True

    def same_as(self, other: Space) -> None:
        """Both are of one size."""
        mine, its = self._root(), other._root()
        if mine is its:
            return
        its._parent = mine
        mine._torn = mine._torn or its._torn
        if its._points is not None:
            mine.says(its._points)


class Reader(NamedTuple):
    """Something that reads a tensor: `norm`, `conv`, `returned`, `unknown` or whatever else, and what it writes."""

    kind: str
    into: tuple[Flow, ...]
    conditions: tuple[str, ...]


class Flow:
    """What a tensor is, as far as known.

    `shape` is None where not even the number of axes is known. `raw`: computed from the network's input without a layer
    that has weights. `last`: the framework itself has the channels last, which shapes here never have.
    """

    __slots__ = ("last", "raw", "readers", "shape", "space")

    def __init__(self, shape: Shape | None = None, *, space: Space | None = None, raw: bool = False) -> None:
        self.shape, self.raw, self.last = shape, raw, False
        self.space = space or Space()
        self.readers: list[Reader] = []

    @property
    def channels(self) -> Value:
        """The number of its channels."""
        return self.shape[1] if self.shape is not None and len(self.shape) > 1 else SOMETHING

    @property
    def sizes(self) -> Shape | None:
        """Its spatial extents."""
        return self.shape[2:] if self.shape is not None and len(self.shape) > 2 else None

    def with_channels(self, channels: Value) -> Shape | None:
        """Its shape with another number of channels."""
        return None if self.shape is None else (self.shape[0], channels, *self.shape[2:])


def integer(value: Value | None) -> int | None:
    """The whole number that it is, if it is one."""
    if value.__class__ is Const and value.value.__class__ is int:
        return value.value
    return None


def unknown_sizes(count: int) -> Shape:
    """As many extents of which nothing is known."""
    return (SOMETHING,) * count
