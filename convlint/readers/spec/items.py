"""The items of a spec as they are written, one after the other, each with the shape that its reader will see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from convlint.readers.spec.graph import MAX_INPUTS, MAX_OPERATIONS
from convlint.readers.spec.item_shape import shape_after
from convlint.readers.spec.naming import Names
from convlint.readers.spec.shapes import Shape
from convlint.readers.untrusted.limits import MOST_READS

_NO_FIELDS: Mapping[str, Any] = {}
_NOTHING = "input of unknown size"


class CannotWire(Exception):
    """Why a spec cannot hold the wiring of a network."""


class Item(NamedTuple):
    """An item of the spec; `layer` is the convolution that it is, `where` says for people what a reshape is."""

    mapping: dict[str, Any]
    layer: int | None = None
    where: str = ""


class Items:
    """Grows with each item; `read` are the names that others read."""

    def __init__(self, names: Names, batch: int | None) -> None:
        self.names, self.batch = names, batch
        self.written: list[Item] = []
        self.read: set[str] = set()
        self._reads = 0
        self._nothing: dict[int, Shape] = {}  # by dimensions

    def put(
        self, name: str, op: str, inputs: Sequence[Shape], fields: Mapping[str, Any] = _NO_FIELDS, where: str = ""
    ) -> Shape:
        """An item that is no convolution, and what it hands on. Raises InputFault where that is nothing."""
        item: dict[str, Any] = {"name": name or op, "op": op}
        shape = shape_after({**item, **fields}, inputs, self.batch)
        item["name"] = self.names.give(name, op)
        sources = [each.source for each in inputs]
        if len(sources) > 1:
            item["inputs"] = sources
        elif sources and not (self.written and self.written[-1].mapping["name"] == sources[0]):
            item["input"] = sources[0]
        self._add(Item({**item, **fields}, where=where), sources)
        return replace(shape, source=item["name"])

    def conv(self, layer: int, entry: Mapping[str, Any], source: Shape | None) -> dict[str, Any]:
        """The item of a convolution, which says what it reads even where that stands just before it."""
        item = {"name": entry["name"], **({} if source is None else {"input": source.source}), **entry}
        self._add(Item(item, layer), [] if source is None else [source.source])
        return item

    def nothing(self, dims: int) -> Shape:
        """An input of which nothing is known."""
        if dims not in self._nothing:
            self._nothing[dims] = self.put(_NOTHING, "input", (), {} if dims == 2 else {"dims": dims})
        return self._nothing[dims]

    def sink(self, title: str, sources: Sequence[str], op: str = "identity") -> None:
        """Items that read these tensors: then these are read, and their channels stay as they are."""
        for start in range(0, len(sources), MAX_INPUTS):
            self.put(title, op, [Shape(source=name) for name in sources[start : start + MAX_INPUTS]])

    def _add(self, item: Item, sources: Sequence[str]) -> None:
        self.written.append(item)
        self.read.update(sources)
        self._reads += len(sources)
        if len(sources) > MAX_INPUTS:
            raise CannotWire(f"an operation reads more than {MAX_INPUTS} tensors")
        if len(self.written) > MAX_OPERATIONS or self._reads > MOST_READS:
            raise CannotWire("there are more operations than a spec may have")
