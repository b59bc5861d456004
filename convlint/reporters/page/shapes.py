"""The shapes that a small drawing is made of: boxes, lines and words, in units of its own."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

Line = tuple[tuple[float, float], ...]  # from corner to corner


class Box(Struct, frozen=True, kw_only=True):
    """A filled rectangle; its `kind` is its CSS class."""

    kind: str
    x: float
    y: float
    width: float
    height: float


class Label(Struct, frozen=True, kw_only=True):
    """Words that begin at a point; `upright` ones are read from bottom to top."""

    text: str
    x: float
    y: float
    upright: bool = False


class Panel(Struct, frozen=True, kw_only=True):
    """A part of a drawing: `edges` are sides of tiles and slots, `cuts` stand where something is left out."""

    boxes: tuple[Box, ...]
    labels: tuple[Label, ...] = ()
    edges: tuple[Line, ...] = ()
    cuts: tuple[Line, ...] = ()
    bottom: float = 0.0
    right: float = 0.0

    def moved(self, x: float, y: float) -> Panel:
        """The same at another place."""
        return Panel(
            boxes=tuple(replace(box, x=box.x + x, y=box.y + y) for box in self.boxes),
            labels=tuple(replace(label, x=label.x + x, y=label.y + y) for label in self.labels),
            edges=_moved(self.edges, x, y),
            cuts=_moved(self.cuts, x, y),
            bottom=self.bottom + y,
            right=self.right + x,
        )


def _moved(lines: tuple[Line, ...], x: float, y: float) -> tuple[Line, ...]:
    return tuple(tuple((px + x, py + y) for px, py in line) for line in lines)


def zigzag(x: float, y: float, length: float, *, upright: bool) -> Line:
    """A broken edge of about `length`: the mark of something left out beyond it."""
    teeth = max(2, round(length / 6))
    along = [(length * tooth / teeth, 2.5 if tooth % 2 else -2.5) for tooth in range(teeth + 1)]
    return tuple((x + across, y + way) if upright else (x + way, y + across) for way, across in along)


def path(lines: Iterable[Line]) -> str:
    """The lines as the data of one SVG path."""
    return "".join("M" + "L".join(f"{number(x)} {number(y)}" for x, y in line) for line in lines)


def number(value: float) -> str:
    """A coordinate, as short as a hundredth of a unit allows."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
