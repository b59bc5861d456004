"""The operations of a network, noted as tensors pass by: in a live trace by id, in an exported program by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from convlint.model.layer import ConvLayer
from convlint.model.operation import Operation, OperationKind
from convlint.readers.torch.kinds import OPAQUE, Shape, Step, kind_of, plain
from convlint.readers.torch.layers import Call, layers_of_calls
from convlint.readers.torch.places import Place, shown
from convlint.readers.untrusted.limits import MOST_READS, MOST_SIZE

MOST_NOTED = 100_000  # operations of one network: beyond, nothing is said of them
# what they read tells them a dtype and a device, and no more
_MAKERS = frozenset(f"aten::new_{what}" for what in ("empty", "zeros", "ones", "full", "tensor", "empty_strided"))

Tensor = tuple[Hashable, Shape]  # what a tensor is known by, and its sizes


class Operations:
    """Grows with a forward pass. Tensors that are not known are constants: parameters, buffers, what they make."""

    def __init__(self) -> None:
        self._noted: list[Operation] = []
        self._shapes: list[Shape] = []
        self._number_of: dict[Hashable, int] = {}
        self._aside: dict[Hashable, tuple[int, Shape, str]] = {}  # read, shape, where: of what nobody may ever read
        self._given: Counter[str] = Counter()  # names
        self._reads = 0
        self._outputs: set[int] | None = None

    def input(self, tensor: Tensor, name: str = "input") -> None:
        """A tensor that the network is given."""
        self._number_of[tensor[0]] = self._add("input", name, tensor[1], ())

    def convolution(
        self, position: int, call: Call, reads: Sequence[Hashable], written: Hashable, where: Callable[[], str]
    ) -> None:
        """The call at `position`, which reads its data, its weights and its bias, if any.

        Where the weights are computed from activations, or the tensors have no batch axis, it is opaque on both sides.
        """
        dims = len(call.weight) - 2
        numbers = [self._number(key) for key in reads]
        known = tuple(number for number in numbers if number is not None)
        plain = len(call.arrives) == dims + 2 and all(number is None for number in numbers[1:])
        text = "" if plain else _at("convolution", where())
        if not plain and known:
            arrives = (None, call.arrives[-dims - 1], *call.arrives[-dims:])
            known = (self._add("reshape", "convolution_input", arrives, known, where=text),)
        leaves = (None, *call.output) if len(call.output) == dims + 1 else call.output
        number = self._add("conv", "", leaves, known, layer=position)
        if not plain:
            number = self._add("reshape", "convolution_output", call.output, (number,), where=text)
        self._number_of[written] = number

    def note(
        self,
        name: str,
        reads: Iterable[Hashable],
        written: Sequence[Tensor],
        argument: Callable[[str], Any],
        where: Callable[[], str],
        *,
        in_place: bool = False,
        base: Tensor | None = None,
        constants: Iterable[Shape] = (),
        built: Callable[[], Place | None] = lambda: None,
    ) -> None:
        """An operator that is no convolution, by its name in the schema; its arguments that are tensors, its results.

        `in_place`: the result is its first argument, changed; that is a view of `base`, if there is one, which changes
        with it. `where` gives the user's line. `constants` are the shapes of what it reads that is not known, `built`
        gives the place that constructs the module which runs it.
        """
        keys = list(reads)
        numbers = [number for key in keys if (number := self._number(key)) is not None]
        if not numbers or not written or name in _MAKERS:
            return
        inputs = tuple(dict.fromkeys(numbers))
        if base is not None:
            self._written_into(name, written[0], inputs, base, where)
            return
        key, shape = written[0]
        if not in_place and self._number_of.get(key) in inputs:  # handed on as it is
            return
        shapes = [self._shapes[number] for number in numbers]
        found = kind_of(name, Step(shapes, len(inputs), len(keys), shape, argument))
        short = plain(name)
        told = found.kind in _TOLD or found.groups > 1 or len(written) > 1
        text = _at(short, where()) if told else ""
        first = self._number_of[key] = self._add(
            found.kind, short, shape, tuple(numbers) if found.kind == "concat" else inputs,
            factor=found.factor, groups=found.groups, where=text, constants=constants, built=built,
        )  # fmt: skip
        for key, shape in written[1:]:
            if found != OPAQUE:
                self._aside[key] = inputs[0], shape, text
            else:
                self._number_of[key] = self._add(
                    "reshape", short, shape, inputs if len(inputs) == 1 else (first,), where=text
                )

    def knows(self, key: Hashable) -> bool:
        """Whether a tensor is one that some operation made; all others are constants."""
        return key in self._number_of or key in self._aside

    def alias(self, key: Hashable, other: Hashable) -> None:
        """The tensor `key` is `other` from now on, where that is known."""
        number = self._number(other)
        if number is not None:
            self._number_of[key] = number

    def outputs(self, keys: Iterable[Hashable] | None) -> None:
        """The tensors that the network hands out; None where nobody knows."""
        if keys is not None:
            self._outputs = {number for key in keys if (number := self._number(key)) is not None}

    def finished(self, calls: Sequence[Call], layers: Sequence[ConvLayer]) -> tuple[Operation, ...]:
        """All of them, with the layers that `network_of` makes of the calls.

        None where they are too many, and where it is not known which of their tensors leave the network.
        """
        if self._outputs is None or len(self._noted) >= MOST_NOTED or self._reads > MOST_READS:
            return ()
        layer_of = layers_of_calls(calls)
        first: dict[Hashable, int] = {}
        result = []
        for number, operation in enumerate(self._noted):
            if operation.layer is not None:
                layer = layer_of[operation.layer]
                weights = first.setdefault(calls[operation.layer].identity, layer)
                shared = weights if weights != layer else None
                operation = replace(operation, layer=layer, weights=shared, name=layers[layer].name)
            if number in self._outputs:
                operation = replace(operation, output=True)
            result.append(operation)
        return tuple(result)

    def _written_into(
        self, name: str, view: Tensor, inputs: tuple[int, ...], base: Tensor, where: Callable[[], str]
    ) -> None:
        """Nobody knows which of the channels of `base` a view of it looks at."""
        short, whole = plain(name), self._number(base[0])
        text = _at(f"{short} into a part of it", where())
        into = inputs if whole is None else tuple(dict.fromkeys((*inputs, whole)))
        number = self._number_of[view[0]] = self._add("reshape", short, view[1], into, where=text)
        self._number_of[base[0]] = self._add("reshape", short, base[1], (number,), where=text)

    def _number(self, key: Hashable) -> int | None:
        if key in self._aside:
            read, shape, where = self._aside.pop(key)
            self._number_of[key] = self._add("reshape", "", shape, (read,), where=where)
        return self._number_of.get(key)

    def _add(
        self, kind: OperationKind, name: str, shape: Shape, inputs: tuple[int, ...], *,
        layer: int | None = None, factor: int = 1, groups: int = 1, where: str = "",
        constants: Iterable[Shape] = (), built: Callable[[], Place | None] = lambda: None,
    ) -> int:  # fmt: skip
        """Its number. Names are told apart as torch.export does it: `relu`, `relu_1`."""
        number = len(self._noted)
        if number >= MOST_NOTED:
            return number - 1
        self._reads += len(inputs)
        count = self._given[name]
        self._given[name] = count + 1
        C: int | None = None
        dims, D, H, W = 2, None, None, None
        if 3 <= len(shape) <= 5:
            dims = len(shape) - 2
            C, *_ = shape[1:]
            D, H, W = (1, 1, 1, *shape[2:])[-3:]
        self._shapes.append(shape)
        sized = C is not None and any(C in constant for constant in constants)
        norm = kind == "batchnorm" or name == "group_norm"  # says how many even where it has no weights
        place = built() if sized or norm else None
        self._noted.append(
            Operation(
                kind=kind, name=f"{name}_{count}" if count else name, inputs=inputs, layer=layer,
                C=_size(C), D=_size(D), H=_size(H), W=_size(W), dims=dims,
                factor=factor, groups=groups, where=where,
                sized=sized or place is not None, path="" if place is None else shown(place.file),
                span=None if place is None else place[1:],
            )
        )  # fmt: skip
        return number


_TOLD = frozenset(("reshape", "add", "concat"))  # kinds of which people may be told where they are


def _at(operator: str, line: str) -> str:
    return f"{operator} at {line}" if line else operator


def _size(size: int | None) -> int | None:
    return size if size is not None and 0 < size <= MOST_SIZE else None
