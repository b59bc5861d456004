"""The tensors of an exported program: their sizes, which may be symbols that the user gives a value."""

from __future__ import annotations

import re

from convlint.errors import InputFault
from convlint.readers import ReadOptions
from convlint.readers.torch.arguments import LARGEST_NUMBER, expression
from convlint.readers.torch.symbolic_size import Sizes
from convlint.readers.untrusted.json_tree import Node
from convlint.readers.untrusted.limits import MOST_AXES, MOST_SIZE

_SYMBOL = re.compile(r"Symbol\('(\w+)'|(\w+)$")


class Tensors:
    """By name; `inputs` are those that the user of the program gives."""

    def __init__(self, values: Node, inputs: list[str]) -> None:
        if not values.is_object:
            raise values.must_be("an object")
        self._values, self.inputs = values, inputs
        self._symbols = Sizes()

    def at(self, name: str) -> Node:
        """What the program says of a tensor."""
        return self._values.at(name)

    def shape(self, name: str) -> tuple[int | None, ...]:
        """The sizes of a tensor that a convolution reads or writes."""
        sizes = self._sizes(name)
        for node, size in sizes:
            if size is not None and not 1 <= size <= MOST_SIZE:
                raise node.fault(f"must be a size of 1 to 2^31 - 1, not {size}")
        return tuple(size for _, size in sizes)

    def any_shape(self, name: str) -> tuple[int | None, ...]:
        """The sizes of any tensor; no axes where the program says nothing of it."""
        given = self._values.get(name, "sizes")
        return () if given is None else tuple([self._size(size) for size in given.elements(MOST_AXES)])

    def set_sizes(self, options: ReadOptions) -> None:
        """Gives symbolic sizes what `--batch` and `--input` say. Raises InputFault where a fixed size differs."""
        from convlint.readers.input_shapes import by_name, parse_shape

        named = by_name(options.inputs, self.inputs)
        for name, text in named.items():
            if name not in self.inputs:
                raise InputFault(f"the program has no input {name!r}; it has {', '.join(map(repr, self.inputs[:8]))}")
            self._match(name, parse_shape(text, options.batch).sizes)
        if options.batch is not None:
            for name in self.inputs:
                sizes = self._sizes(name)
                if name not in named and (len(sizes) > 1 or [size for _, size in sizes] == [None]):
                    self._match(name, (options.batch,))  # a vector of sizes has no batch

    def unresolved(self) -> str:
        """What the user can do about sizes that are not known."""
        for name in self.inputs:
            sizes = [size for _, size in self._sizes(name)]
            if None in sizes:
                shape = "x".join("?" if size is None else str(size) for size in sizes)
                return f"input {name!r} is {shape}; set it with --batch N or --input {name}=Nx3x224x224"
        return "some sizes depend on values that are known only when the program runs"

    def _sizes(self, name: str) -> list[tuple[Node, int | None]]:
        """The sizes of a tensor as they are written, and their values where these are known."""
        sizes = self._values.at(name).at("sizes").elements(MOST_AXES)
        return [(size, self._size(size)) for size in sizes]

    def _size(self, size: Node) -> int | None:
        fixed = size.get("as_int")
        if fixed is not None:
            return fixed.integer(0, LARGEST_NUMBER)
        text = expression(size)
        return None if text is None else self._symbols.of(text)

    def _match(self, name: str, wanted: tuple[int, ...]) -> None:
        sizes = self._values.at(name).at("sizes").elements(MOST_AXES)
        if len(wanted) not in (1, len(sizes)):
            raise InputFault(f"input {name!r} has {len(sizes)} axes, --input gives it {len(wanted)}")
        for axis, (size, want) in enumerate(zip(sizes, wanted, strict=False)):
            symbol = _SYMBOL.match(expression(size) or "")
            known = self._size(size)
            if known is None and symbol:
                self._symbols.set(symbol[1] or symbol[2], want)
            elif known is not None and known != want:
                raise InputFault(
                    f"the program was exported with axis {axis} of input {name!r} fixed at {known}, not {want}; "
                    "export it again with dynamic_shapes"
                )
