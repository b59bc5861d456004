"""From PyTorch's calls, traced or exported, to layers, edges and operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from convlint.model.grouping import grouped
from convlint.model.layer import ConvLayer, Dtype, Layout, same_padding, with_output
from convlint.model.location import Span
from convlint.model.network import Edge, Operation, Work, unique_name
from convlint.readers.bounded_json import MOST_READS, MOST_SIZE
from convlint.readers.operations import (
    NAMED,
    ChannelPlace,
    ConvOutput,
    Effect,
    Shape,
    ValueOrigin,
    axis_fields,
    channels_second,
    elements,
    is_first,
    past_convolution,
    with_shared_weights,
    with_whole_shuffles,
)
from convlint.readers.torch.kinds import (
    NORM,
    OPAQUE,
    PARTING,
    PARTS,
    VIEWED,
    OperatorCall,
    effect_of,
    plain,
    runs_nothing,
    work_of,
)
from convlint.readers.torch.places import CodeSpan, LayoutChange, UserLines, line_of, shown

DTYPES = {
    "torch.float64": Dtype.fp64, "torch.float32": Dtype.fp32, "torch.float16": Dtype.fp16,
    "torch.bfloat16": Dtype.bf16, "torch.float8_e4m3fn": Dtype.fp8, "torch.float8_e5m2": Dtype.fp8,
    "torch.float8_e4m3fnuz": Dtype.fp8, "torch.float8_e5m2fnuz": Dtype.fp8,
    "torch.int8": Dtype.int8, "torch.uint8": Dtype.int8, "torch.qint8": Dtype.int8, "torch.quint8": Dtype.int8,
}  # fmt: skip


class ConvCall(Struct, kw_only=True):
    """A call of a convolution operator; sizes are None where they are symbolic.

    `owner`: the qualified name of the module that calls it; `modular`: that module is itself a convolution.
    `copies`: it runs in another layout than its input arrives in; `copied`: its input is copied into another layout,
    by it or before it (None: unknown), and `changed` is the operation that does so.
    `identity`: equal for calls that share their weights. `place`: the code to point at. `frozen`, `detached`: see
    Operation.
    """

    arrives: Shape
    weight: tuple[int, ...]
    output: Shape
    bias: bool
    stride: Any
    padding: Any
    dilation: Any
    transposed: bool
    output_padding: Any
    groups: int
    dtype: Dtype | None
    nhwc: bool
    copies: bool = False
    copied: bool | None = None
    changed: LayoutChange | None = None
    owner: str | None
    modular: bool
    identity: Hashable
    place: UserLines | None
    source: ValueOrigin | None
    written: ConvOutput
    frozen: bool = False
    detached: bool = False


def network_of(
    calls: Sequence[ConvCall], unknown: Iterable[str], path: str, *, entry: bool = False
) -> tuple[tuple[ConvLayer, ...], tuple[Edge, ...], list[str]]:
    """The layers and edges of a forward pass, and messages on what could not be understood.

    `entry`: an entry of the config names the model; a layer that no line of the project builds is located there.
    """
    messages = [f"{name} looks like a convolution, but is not one that convlint knows" for name in unknown]
    layer_of = layers_of_calls(calls)
    names: dict[str, int] = {}
    layers: list[ConvLayer] = []
    read: dict[int, tuple[tuple[int, ...], tuple[bool | None, str, bool]]] = {}  # producers, and how they are copied
    for index, same in grouped(zip(layer_of, calls, strict=True)).items():
        layer, wrong = _layer(same, names, path, entry=entry)
        layers.append(layer)
        if wrong is not None:
            messages.append(wrong)
        before = dict.fromkeys(
            layer_of[position] for call in same if call.source is not None for position in call.source.producers
        )
        before.pop(index, None)  # a layer that reads its own output is called in a loop
        if before:
            read[index] = tuple(before), _copied(same)
    edges = [
        Edge(
            consumer=index, producers=producers, source=layers[producers[-1]].name,
            C=layers[index].C, H=layers[index].H, W=layers[index].W, D=layers[index].D,
            copied=copied, changed_at=changed_at, inherent=inherent,
        )
        for index, (producers, (copied, changed_at, inherent)) in read.items()
    ]  # fmt: skip
    return tuple(layers), tuple(edges), messages


def unbatched(calls: Sequence[ConvCall], axes: Iterable[int]) -> str:
    """The sizes of the first image that a convolution gets without a batch; empty where none does.

    `axes` are the numbers of axes of the network's inputs: an image with another number was made inside it.
    """
    ranks = set(axes)
    for call in calls:
        if len(call.arrives) < len(call.weight) and len(call.arrives) in ranks and None not in call.arrives:
            return "x".join(map(str, call.arrives))
    return ""


def layers_of_calls(calls: Sequence[ConvCall]) -> list[int]:
    """The index of each call's layer; layers are numbered in the order of their first calls."""
    numbers: dict[Any, int] = {}
    return [numbers.setdefault(_identity(call), len(numbers)) for call in calls]


def _copied(calls: Sequence[ConvCall]) -> tuple[bool | None, str, bool]:
    """Whether a call reads a tensor that is copied into another layout, by what, and whether that is inherent."""
    known = [call for call in calls if call.copied is not None]
    change = next((call.changed for call in known if call.copied and call.changed is not None), None)
    at = "" if change is None else f"{change.what} at {line_of(change.place)}"
    return (any(call.copied for call in known) if known else None), at, change is not None and change.inherent


def _identity(call: ConvCall) -> Any:
    """A key that two calls share if they are one layer: the same weights (or line, where these are computed), sizes."""
    return (
        call.identity, call.arrives, call.weight, str(call.stride), str(call.padding), str(call.dilation), call.groups,
        call.dtype, call.nhwc, call.copies,
    )  # fmt: skip


def _layer(calls: list[ConvCall], names: dict[str, int], path: str, *, entry: bool) -> tuple[ConvLayer, str | None]:
    """The layer of these calls, and what is wrong with it, if anything."""
    call = calls[0]
    dims = len(call.weight) - 2
    name = call.owner or ""
    if not call.modular:  # called through torch.nn.functional, in a module that may call several
        name += f"{'.' if name else ''}conv{'_transpose' if call.transposed else ''}{dims}d"
    name = unique_name(name, names)
    arrives = call.arrives if len(call.arrives) == dims + 2 else (1, *call.arrives)  # an input without batch axis
    output = call.output if len(call.output) == dims + 2 else (1, *call.output)
    sizes, taps, dilations = arrives[2:], call.weight[2:], _per_axis(call.dilation, dims)
    pads = [_padding(call.padding, i, dims, sizes[i], dilations[i], taps[i]) for i in range(dims)]
    begin, end = zip(*pads, strict=True)
    fields = axis_fields(
        sizes, taps, _per_axis(call.stride, dims), begin, end, dilations, _per_axis(call.output_padding, dims)
    )
    C, K = (call.weight[0], call.weight[1] * call.groups) if call.transposed else (arrives[1], call.weight[0])
    # In memory, tensors of one channel, or of maps of 1x1, are the same in both layouts.
    either = (C == 1 and K == 1) or all(size == 1 for size in (*arrives[2:], *output[2:]))
    layout: Layout = "NHWC" if call.nhwc else "auto" if either else "NCHW"
    where, spans, library = _place(call, path, entry=entry)
    layer = with_output(
        ConvLayer(
            name=name, path=where, spans=spans, library=library, node=call.owner or None,
            op="conv_transpose" if call.transposed else "conv", dims=dims, N=arrives[0], C=C, K=K,
            groups=call.groups, dtype=call.dtype, layout=layout, bias=call.bias,
            calls=len(calls), copies_input=call.copies,
            first=all(is_first(same.source) for same in calls), head=all(same.written.head for same in calls),
            norm_follows=all(same.written.readers == [NORM] for same in calls), **fields,
        )
    )  # fmt: skip
    for size, computed in zip(output[2:], (layer.Z, layer.P, layer.Q)[3 - dims :], strict=True):
        if size is not None and computed is not None and size != computed:
            return layer, f"layer {name!r}: torch gives an output of {output[2:]}, the formula {computed}"
    return layer, None


def _per_axis(value: Any, dims: int) -> list[int]:
    """A number for each axis, from a number or a sequence of one or `dims` of them, as torch takes them."""
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return [int(entry) for entry in (values * dims if len(values) == 1 else values)]


def _padding(padding: Any, axis: int, dims: int, size: int | None, dilation: int, taps: int) -> tuple[int, int]:
    if padding == "valid":
        return 0, 0
    if padding == "same":  # torch allows it with stride 1 only, and puts the odd element at the end
        return same_padding(size, stride=1, dilation=dilation, taps=taps) or (0, 0)
    pad = _per_axis(padding, dims)[axis]
    return pad, pad


def _place(call: ConvCall, path: str, *, entry: bool) -> tuple[str, dict[str, Span], str]:
    """Path and spans of the layer, and the line of the library behind the user's own, if there is one."""
    if call.place is None:
        return path, {}, ""
    innermost, own = call.place
    if own is None:  # built by a library alone: the entry of the config, if any, is what the user can change
        return (path, {}, line_of(innermost)) if entry else (shown(innermost.file), {"layer": innermost[1:]}, "")
    return shown(own.file), {"layer": own[1:]}, "" if own.file == innermost.file else line_of(innermost)


MOST_NOTED = 100_000  # operations of one network; if there are more, none is returned
# operators that take nothing but a dtype and a device from the tensor that they read
_MAKERS = frozenset(f"aten::new_{what}" for what in ("empty", "zeros", "ones", "full", "tensor", "empty_strided"))

Tensor = tuple[Hashable, Shape]  # a key that tells tensors apart, and the sizes


class TracedOperations:
    """The operations of a forward pass. A tensor that none of them made is a constant, such as a parameter.

    `trains`: the pass is one of training.
    """

    def __init__(self, *, trains: bool) -> None:
        self._trains = trains
        self.whole = True  # the work of each is known
        self._noted: list[Operation] = []
        self._shapes: list[Shape] = []
        self._axes: list[ChannelPlace] = []  # where each tensor has its channels
        # Tensors that opaque operations made: their channels are assumed to be on axis 1 but may be on any, so they are
        # not followed to another one.
        self._made_up: set[int] = set()
        self._number_of: dict[Hashable, int] = {}
        # Second and further results, such as the indices of a pool: (input, shape, line). Most are never read, so each
        # becomes an operation when it first is.
        self._aside: dict[Hashable, tuple[int, Shape, str]] = {}
        self._uses_of_name: Counter[str] = Counter()
        self._multiplied: dict[Hashable, list[int]] = {}  # a constant -> what multiplies with it, or is opaque
        self._reads = 0
        self._outputs: set[int] | None = None

    def input(self, tensor: Tensor, name: str = "input") -> None:
        """Adds an input of the network."""
        self._number_of[tensor[0]] = self._add(Effect("input"), name, tensor[1], ())

    def convolution(
        self, position: int, call: ConvCall, reads: Sequence[Hashable], written: Hashable, where: Callable[[], str]
    ) -> None:
        """Adds the call at `position`; `reads` are its data, its weights and its bias, if any.

        Where the weights are computed from activations, or the tensors have no batch axis, an opaque operation stands
        before and behind it; where it reads along another axis as channels, before it alone. Channels along an axis of
        space whose size the convolution keeps go past it, as in efficient channel attention.
        """
        dims = len(call.weight) - 2
        numbers = [self._number(key) for key in reads]
        sources = known = tuple(number for number in numbers if number is not None)
        plain = len(call.arrives) == dims + 2 and all(number is None for number in numbers[1:])
        turned = any(self._axes[number] != 1 for number in known)
        place = self._axes[known[0]] if turned and plain and not self._made_up.issuperset(known) else 1
        past = past_convolution(place, call.arrives, call.output, _per_axis(call.stride, dims))
        text = _at("convolution", where()) if turned or not plain else ""
        if known and text:
            arrives = (None, call.arrives[-dims - 1], *call.arrives[-dims:])
            before = Effect("channel_pool") if past else OPAQUE
            known = (self._add(before, "convolution_input", arrives, known, where=text),)
        leaves = (None, *call.output) if len(call.output) == dims + 1 else call.output
        number = self._add(
            Effect("conv"), "", leaves, known, layer=position, frozen=call.frozen, detached=call.detached
        )
        if not plain or past:
            written_shape = (None, 1) if past else call.output  # no wider than what goes past
            number = self._add(OPAQUE, "convolution_output", written_shape, (number,), where=text)
        if past:
            number = self._add(
                Effect("resize", past), "convolution_output", call.output, (*sources, number), where=text
            )
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
        built: Callable[[], CodeSpan | None] = lambda: None,
        base_of: Callable[[Any], Hashable] = lambda key: key,
        view: bool = False,
        learned: int = 0,
        detached: bool = False,
    ) -> None:
        """Adds an operator that is no convolution: its name in the schema, the tensors that it reads and writes.

        `view`: it hands on what it reads, and runs no kernel. `in_place`: the result is the first argument, changed;
        where that is a view of `base`, the base changes with it.
        `where` returns the user's line. `constants` are the shapes of constants among its arguments, `learned` counts
        their elements that learn; `built` returns the place that constructs the module which runs it. Both functions
        are called only where that is needed, since they walk the stack. `base_of` gives the tensor that one is a view
        of, such as the weights behind their transpose.
        """
        keys = list(reads)
        found = [self._number(key) for key in keys]
        numbers = [number for number in found if number is not None]
        if not numbers or not written or name in _MAKERS:
            return
        inputs = tuple(dict.fromkeys(numbers))
        fixed = tuple(constants)
        work = None
        if not view:
            shapes = [self._shapes[number] for number in inputs]
            work = work_of(name, shapes, [shape for _, shape in written], fixed, argument, trains=self._trains)
            self.whole = self.whole and (work is not None or runs_nothing(name, argument))
            if work is not None and not work.weights and learned:  # a scale or an offset for each channel
                work = replace(work, weights=learned)
        if base is not None:
            self._written_into(name, written[0], inputs, base, where, work)
            return
        key, shape = written[0]
        if not in_place and self._number_of.get(key) in inputs:  # handed on as it is
            return
        shapes = [self._shapes[number] for number in numbers]
        at = found.index(numbers[0])
        axes = [self._axes[number] for number in numbers]
        effect = effect_of(name, OperatorCall(shapes, len(inputs), len(keys), at, shape, argument, axes))
        if effect.axis != 1 and self._made_up.issuperset(inputs):
            effect = OPAQUE
        short = plain(name)
        states = short in VIEWED and effect.kind == "resize"  # such a view may state the channels
        located = effect.kind in _LOCATED or states or effect.groups > 1 or len(written) > 1
        text = _at("slice" if short == "alias" else short, where()) if located else ""
        repeats = effect.kind == "concat" and len(numbers) > len(inputs)
        if repeats and work is not None:
            elements = dict(zip(inputs, work.reads, strict=True))
            work = replace(work, reads=tuple([elements[number] for number in numbers]))
        parts = [self._part_of(short, inputs, shape) if view else None for _, shape in written]
        first = self._number_of[key] = self._add(
            effect, short, shape, tuple(numbers) if effect.kind == "concat" else inputs,
            where=text, constants=fixed, built=built, work=work, part=parts[0], detached=detached,
            frozen=work is not None and work.weights > 0 and not learned,
        )  # fmt: skip
        for key, number in zip(keys, found, strict=True) if effect.kind in ("linear", "reshape") else ():
            if number is None:
                self._multiplied.setdefault(base_of(key), []).append(first)
        for (key, shape), part in zip(written[1:], parts[1:], strict=True):
            if short in PARTING and effect != OPAQUE:
                self._number_of[key] = self._add(effect, short, shape, inputs, where=text, part=part)
            elif effect != OPAQUE:
                self._aside[key] = inputs[0], shape, text
            else:
                sources = inputs if len(inputs) == 1 else (first,)
                self._number_of[key] = self._add(OPAQUE, short, shape, sources, where=text, part=part)

    def _part_of(self, name: str, inputs: Sequence[int], shape: Shape) -> Work | None:
        """What a view of that name takes of the tensor that it reads; None if that is all, or has unknown sizes."""
        whole = self._shapes[inputs[0]]
        if name not in PARTS or len(inputs) > 1 or None in (*whole, *shape) or elements(shape) >= elements(whole):
            return None
        return Work(kind="copy", op=name, reads=(elements(whole),), writes=elements(shape))

    def knows(self, key: Hashable) -> bool:
        """Whether some operation made this tensor; all others are constants."""
        return key in self._number_of or key in self._aside

    def alias(self, key: Hashable, other: Hashable) -> None:
        """Makes `key` stand for the tensor `other` from now on, if that is known."""
        number = self._number(other)
        if number is not None:
            self._number_of[key] = number

    def outputs(self, keys: Iterable[Hashable] | None) -> None:
        """Sets the tensors that leave the network; None: unknown."""
        if keys is not None:
            self._outputs = {number for key in keys if (number := self._number(key)) is not None}

    def finished(self, calls: Sequence[ConvCall], layers: Sequence[ConvLayer]) -> tuple[Operation, ...]:
        """All operations; `layers` are those that `network_of` makes of the calls.

        Empty where there are too many, and where it is not known which tensors leave the network.
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
        return tuple(with_whole_shuffles(with_shared_weights(result, self._multiplied.values())))

    def _written_into(
        self, name: str, view: Tensor, inputs: tuple[int, ...], base: Tensor, where: Callable[[], str],
        work: Work | None,
    ) -> None:  # fmt: skip
        """Adds a write into a view of `base`; opaque, because the view may have any of the channels of `base`."""
        short, base_number = plain(name), self._number(base[0])
        text = _at(f"{short} into a part of it", where())
        into = inputs if base_number is None else tuple(dict.fromkeys((*inputs, base_number)))
        if work is not None:
            work = replace(work, reads=work.reads + (0,) * (len(into) - len(inputs)))
        number = self._number_of[view[0]] = self._add(OPAQUE, short, view[1], into, where=text, work=work)
        self._number_of[base[0]] = self._add(OPAQUE, short, base[1], (number,), where=text)

    def _number(self, key: Hashable) -> int | None:
        """The number of the operation that made a tensor; None for a constant."""
        if key in self._aside:
            read, shape, where = self._aside.pop(key)
            self._number_of[key] = self._add(OPAQUE, "", shape, (read,), where=where)
        return self._number_of.get(key)

    def _add(
        self, effect: Effect, name: str, shape: Shape, inputs: tuple[int, ...], *, layer: int | None = None,
        where: str = "", constants: Iterable[Shape] = (), built: Callable[[], CodeSpan | None] = lambda: None,
        work: Work | None = None, part: Work | None = None, frozen: bool = False, detached: bool = False,
    ) -> int:  # fmt: skip
        """Adds an operation; returns its number. Names are numbered as torch.export does it: `relu`, `relu_1`."""
        number = len(self._noted)
        if number >= MOST_NOTED:
            return number - 1
        self._reads += len(inputs)
        count = self._uses_of_name[name]
        self._uses_of_name[name] = count + 1
        C: int | None = None
        dims, D, H, W = 2, None, None, None
        sizes = channels_second(shape, effect.axis) if effect.axis else ()
        if 2 <= len(sizes) <= 5:
            _, C, *space = sizes
            dims = len(space) or 2
            D, H, W = (1, 1, 1, *space)[-3:]
        self._shapes.append(shape)
        self._axes.append(effect.axis)
        keeps = effect.kind not in ("input", "conv", "linear")
        if effect.kind == "reshape" or (keeps and self._made_up.issuperset(inputs)):
            self._made_up.add(number)
        sized = C is not None and any(C in constant for constant in constants)
        # made for so many channels, with weights or without
        norm = effect.kind in ("batchnorm", "linear") or name in ("group_norm", "layer_norm")
        place = built() if sized or norm else None
        self._noted.append(
            Operation(
                kind=effect.kind, name=f"{name}_{count}" if count else name, inputs=inputs, layer=layer,
                C=_size(C), D=_size(D), H=_size(H), W=_size(W), dims=dims,
                factor=effect.factor, groups=effect.groups, where=where,
                sized=sized or place is not None, path="" if place is None else shown(place.file),
                span=None if place is None else place[1:], work=work, part=part, frozen=frozen, detached=detached,
            )
        )  # fmt: skip
        return number


_LOCATED = NAMED | {"reshape", "add", "concat"}  # kinds that messages name, with their line


def _at(operator: str, line: str) -> str:
    return f"{operator} at {line}" if line else operator


def _size(size: int | None) -> int | None:
    return size if size is not None and 0 < size <= MOST_SIZE else None
