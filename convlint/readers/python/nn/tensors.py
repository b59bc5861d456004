"""Tensors of a forward pass: their shapes as far as known, their readers, and the operations on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import prod
from operator import mul
from typing import Any

from msgspec import Struct

from convlint.model.layer import output_size
from convlint.model.source import StatedLiteral
from convlint.readers.python.evaluator.library import LibraryCall
from convlint.readers.python.evaluator.values import (
    Const,
    Instance,
    Items,
    List,
    Partial,
    Table,
    Tensor,
    Unknown,
    Value,
    stated_by,
    text_of,
)
from convlint.readers.python.nn.kinds import words

Shape = tuple[Value, ...]  # the batch first, then channels
SOMETHING = Unknown("call")


class Space:
    """The common extent of maps that must be of one size: a union-find set. `points` is whether that is 1x1."""

    __slots__ = ("_parent", "_points", "_torn")

    def __init__(self, points: bool | None = None) -> None:
        self._parent: Space | None = None
        self._points, self._torn = points, False

    def root(self) -> Space:
        """Return the representative of all maps of this size, with path halving."""
        here = self
        while here._parent is not None:
            if here._parent._parent is not None:
                here._parent = here._parent._parent
            here = here._parent
        return here

    @property
    def points(self) -> bool | None:
        """True for 1x1, False for a larger map, None without evidence or with contradicting evidence."""
        root = self.root()
        return None if root._torn else root._points

    def says(self, points: bool) -> None:
        """Add evidence that the extent is 1x1, or that it is larger."""
        root = self.root()
        if root._points is None:
            root._points = points
        elif root._points != points:
            root._torn = True

    def same_as(self, other: Space) -> None:
        """Merge with another extent, as both must be of one size."""
        mine, its = self.root(), other.root()
        if mine is its:
            return
        its._parent = mine
        mine._torn = mine._torn or its._torn
        if its._points is not None:
            mine.says(its._points)


UP_TO_CALLERS = frozenset(("parameter", "caller"))  # code that a root gets as its parameter, or in its **kwargs


class TensorReader(Struct, frozen=True):
    """A reader of a tensor, and its outputs: `norm`, `conv`, `opaque`, `returned`, `kept`, `unknown` or `other`.

    `kept` is an attribute that has it in the end, which anybody may read. One that is UP_TO_CALLERS is unknown too, but
    each caller shows what it is. A norm may be there for the sake of `defaults` alone: those of parameters that decided
    tests around its construction or its call.
    """

    kind: str
    into: tuple[TensorPath, ...]
    conditions: tuple[str, ...]
    defaults: frozenset[StatedLiteral] = frozenset()


class TensorPath:
    """A tensor: its shape as far as known, its extent, and its readers.

    `shape` is None if not even the number of axes is known. `raw`: computed from the network's input without a layer
    with weights. `last`: the framework has the channels last, although shapes here have them second. `certain`:
    created with exactly this shape, as a parameter is.
    """

    __slots__ = ("certain", "last", "raw", "readers", "shape", "space")

    def __init__(
        self, shape: Shape | None = None, *, space: Space | None = None, raw: bool = False, certain: bool = False,
        last: bool = False,
    ) -> None:  # fmt: skip
        self.shape, self.raw, self.certain, self.last = shape, raw, certain, last
        self.space = space or Space()
        self.readers: list[TensorReader] = []

    @property
    def channels(self) -> Value:
        """The number of its channels."""
        return self.shape[1] if self.shape is not None and len(self.shape) > 1 else SOMETHING

    @property
    def sizes(self) -> Shape | None:
        """Its spatial extents."""
        return self.shape[2:] if self.shape is not None and len(self.shape) > 2 else None

    def known(self) -> tuple[tuple[bool, ...], Shape]:
        """Return all that a call can find out which only inspects the tensor, for memory's keys."""
        return (self.shape is None, self.raw, self.last, self.certain), self.shape or ()

    def state(self) -> tuple[object, ...]:
        """Return a value that differs after anything was done to the tensor."""
        return len(self.readers), self.shape, self.certain, self.space.root(), self.space.points

    def copied(self, done: dict[int, Any]) -> TensorPath:
        """Return the tensor that an equal call would create: its later readers and its extent are its own."""
        space = self.space.root()
        copy = TensorPath(self.shape, space=done.setdefault(id(space), Space(space.points)), raw=self.raw)
        copy.last, copy.certain, copy.readers = self.last, self.certain, self.readers[:]
        return copy

    def with_channels(self, channels: Value) -> Shape | None:
        """Return the shape with another number of channels."""
        return None if self.shape is None else (self.shape[0], channels, *self.shape[2:])

    def with_sizes(self, sizes: Sequence[Value]) -> Shape | None:
        """Return the shape with other spatial extents."""
        return None if self.sizes is None or self.shape is None else (*self.shape[:2], *sizes)


def reshaped_in_place(flow: TensorPath, value: Value | None = None) -> None:
    """Give a tensor the shape of `value`; the new shape is unknown unless it equals the old one.

    The change is not undone when a path ends, so that only what holds on every path is kept.
    """
    other = value.data if isinstance(value, Tensor) else None
    equal = False
    if other is not None and other.certain and other.shape is not None and flow.shape is not None:
        known = [integer(size) for size in flow.shape]
        equal = None not in known and known == [integer(size) for size in other.shape]
    if not equal and other is not flow:
        flow.shape, flow.certain = None, False


def integer(value: Value | None) -> int | None:
    """Return the value as an integer; None if it is none."""
    if value.__class__ is Const and value.value.__class__ is int:
        return value.value
    return None


def sized(computed: Callable[..., int], *known: Iterable[int | None]) -> Shape:
    """Compute a size for each axis from the numbers of it; unknown if one of these is, or if the result is no size."""
    rows = [None if None in row else computed(*row) for row in zip(*known, strict=False)]
    return tuple(SOMETHING if size is None or size <= 0 else Const(size) for size in rows)


def unknown_sizes(count: int) -> Shape:
    """Return `count` unknown extents."""
    return (SOMETHING,) * count


_DEEPEST = 4  # lists within lists


class Arguments(Struct, frozen=True):
    """The arguments of a call; for a method, the object comes first."""

    args: Sequence[Value]
    keywords: Mapping[str, Value]

    @classmethod
    def of(cls, call: LibraryCall) -> Arguments:
        """Return the arguments of a call as they are now, since lists among them may change later."""
        args, keywords = call.args, call.keywords
        return cls([settled(value) if value.__class__ is List else value for value in args] if args else [],
                   {name: settled(value) if value.__class__ is List else value for name, value in keywords.items()}
                   if keywords else {})  # fmt: skip

    @property
    def first(self) -> Value | None:
        """The first argument, by whatever name it is given; None if there is none."""
        return next(iter((*self.args, *self.keywords.values())), None)

    def get(self, index: int, *names: str) -> Value | None:
        """Return the argument at a position or by one of the names; None if it was not given."""
        if index < len(self.args):
            return self.args[index]
        return next((self.keywords[name] for name in names if name in self.keywords), None)

    def rest(self, index: int, *names: str) -> list[Value] | None:
        """Return sizes or axes given one by one or as a list; None if they may be incomplete."""
        first = self.get(index, *names)
        if isinstance(first, Items):
            return list(first.items) if first.complete else None
        if first is not None and index >= len(self.args):
            return [first]
        return list(self.args[index:])

    def tensors(self) -> list[TensorPath]:
        """Return all tensors among the arguments, those in lists included."""
        return collect((*self.args, *self.keywords.values()))


def settled(value: Value, depth: int = 0) -> Value:
    """Return an immutable copy of a list as it is now; any other value unchanged."""
    if not isinstance(value, List) or depth > _DEEPEST:
        return value
    items = [settled(item, depth + 1) for item in value.items]
    return Items(value.kind, items, complete=value.complete, why=value.why)


def collect(values: Iterable[Value], depth: int = 0) -> list[TensorPath]:
    """Return the tensors among `values`, and in lists, dicts and objects among them that are no modules."""
    tensors: list[TensorPath] = []
    for value in values:
        if value.__class__ is Tensor:
            tensors.append(value.data)
        elif value.__class__ is not Const and depth < _DEEPEST:  # most are constants
            tensors += collect(_contents(value), depth + 1)
    return tensors


def _contents(value: Value) -> Iterable[Value]:
    match value:
        case Items():
            return value.items
        case Table():
            return value.items.values()  # type: ignore[no-any-return]
        case Instance() if value.extra is None:  # as of a dataclass
            return value.attributes.values()
        case Partial():
            return (*value.args, *value.keywords.values())
    return ()


def axes(value: Value | None) -> tuple[int, ...] | None:
    """Return one axis or several as integers; None if one is unknown."""
    if isinstance(value, Items):
        integers = [integer(item) for item in value.items]
        known = tuple(axis for axis in integers if axis is not None)
        return known if value.complete and len(known) == len(integers) else None
    number = integer(value)
    return None if number is None else (number,)


def is_true(value: Value | None) -> bool | None:
    """Return the truth of an optional argument, False if absent; None if unknown."""
    return False if value is None else bool(value.value) if isinstance(value, Const) else None


def is_none(value: Value | None) -> bool:
    """Whether an argument is absent, or None."""
    return value is None or (isinstance(value, Const) and value.value is None)


def numbers(value: Value | None, count: int) -> list[int | None]:
    """Expand one integer, or a list of them, to `count` integers; None for unknown ones."""
    if isinstance(value, Items):
        integers = [integer(item) for item in value.items]
        return integers if value.complete and len(integers) == count else [None] * count
    return [integer(value)] * count


Conditions = tuple[str, ...]


def flow_of(value: Value | None) -> TensorPath:
    """Return the tensor of a value; for any other value, an unknown tensor."""
    return value.data if isinstance(value, Tensor) else TensorPath()


def wrote(out: TensorPath, reads: Sequence[TensorPath], conditions: Conditions, kind: str = "other") -> Tensor:
    """Record that `out` is computed from `reads` by a reader of that kind, and return it as a value."""
    for read in reads:
        read.readers.append(TensorReader(kind, (out,), conditions))
    return Tensor(out)


def bounds_of(part: Items) -> list[int | None] | None:
    """Return the bounds of a slice; None if one is unknown."""
    bounds: list[int | None] = []
    for bound in part.items:
        if not isinstance(bound, Const) or not (bound.value is None or isinstance(bound.value, int)):
            return None
        bounds.append(bound.value)
    return bounds if bounds and bounds[-1] != 0 else None


# Takes the tensor that is read, and the arguments of the call, this tensor first; returns the output
Operation = Callable[[TensorPath, Arguments], TensorPath]
_MOST_PARTS = 64  # a split into more is opaque


def run(operation: Operation, given: Arguments, conditions: Conditions, kind: str = "other") -> Tensor:
    """Apply an operation on one tensor."""
    read = flow_of(given.get(0, "input", "x"))
    return wrote(operation(read, given), [read], conditions, kind)


def pointwise(read: TensorPath, _: Arguments) -> TensorPath:
    """Apply an elementwise operation, which keeps shape and extent."""
    return TensorPath(read.shape, space=read.space, raw=read.raw, certain=read.certain)


def pooled(read: TensorPath, given: Arguments) -> TensorPath:
    """Pool with a window."""
    read.space.says(False)
    sizes = read.sizes
    count = len(sizes) if sizes is not None else 2
    taps, stride = numbers(given.get(1, "kernel_size"), count), given.get(2, "stride")
    steps = [step or None for step in (taps if is_none(stride) else numbers(stride, count))]
    pads = numbers(given.get(3, "padding") or Const(0), count)
    extents = unknown_sizes(count)
    if is_true(given.get(5, "ceil_mode")) is False:
        extents = sized(
            lambda size, tap, step, pad: output_size(size, stride=step, pad=2 * pad, dilation=1, taps=tap),
            map(integer, sizes or ()), taps, steps, pads,
        )  # fmt: skip
    # A pool with a larger window may cover the whole map.
    small = all(tap is not None and tap <= 3 for tap in taps)
    return TensorPath(read.with_sizes(extents), space=Space(False if small else None), raw=read.raw)


def adaptively_pooled(read: TensorPath, given: Arguments) -> TensorPath:
    """Pool to a given size."""
    read.space.says(False)
    sizes = numbers(given.get(1, "output_size"), len(read.sizes) if read.sizes is not None else 2)
    points = True if all(size == 1 for size in sizes) else False if all((size or 0) > 1 for size in sizes) else None
    shape = None
    if read.shape is not None and len(read.shape) > 1:
        shape = (*read.shape[:2], *sized(int, sizes))
    return TensorPath(shape, space=Space(points))


def _reduced(read: TensorPath, given: Arguments) -> TensorPath:
    """Take the mean or sum over axes; over all spatial ones, it leaves one number for each channel."""
    over = axes(given.get(1, "dim", "axis"))
    _evidence_of(read, over)
    # One axis alone is mostly that of the channels, as in attention.
    if over is None or len(over) < 2 or not set(over) <= {2, 3, 4, -1, -2, -3}:
        return TensorPath()
    read.space.says(False)
    head: Shape = read.shape[:2] if read.shape is not None and len(read.shape) > 2 else (SOMETHING, SOMETHING)
    ones = (Const(1),) * len(over) if is_true(given.get(2, "keepdim", "keepdims")) else ()
    return TensorPath((*head, *ones), space=Space(True))


def _evidence_of(read: TensorPath, over: tuple[int, ...] | None) -> None:
    """Take it that an axis of the map that somebody reduces is longer than 1."""
    rank = len(read.shape or ())
    if over is not None and len(over) == 1 and rank > 2 and over[0] + (rank if over[0] < 0 else 0) > 1:
        read.space.says(False)


def resized(read: TensorPath, given: Arguments) -> TensorPath:
    """Interpolate to a size or by a factor."""
    sizes = read.sizes or ()
    goals, times = (numbers(given.get(at, name), len(sizes)) for at, name in ((1, "size"), (2, "scale_factor")))
    scaled = sized(mul, map(integer, sizes), times)
    extents = [Const(goal) if goal is not None else size for goal, size in zip(goals, scaled, strict=True)]
    return TensorPath(read.with_sizes(extents), space=Space(False), raw=read.raw)


def _viewed(read: TensorPath, given: Arguments) -> TensorPath:
    """View with a given shape."""
    sizes = given.rest(1, "shape", "size")
    if not sizes:
        return TensorPath(raw=read.raw)
    # `view(n, c, 1, 1)` in front of a squeeze layer is evidence of 1x1.
    points = len(sizes) > 2 and all(integer(size) == 1 for size in sizes[2:])
    known = tuple(SOMETHING if integer(size) in (None, -1) else size for size in sizes)
    return TensorPath(known, space=Space(True if points else None), raw=read.raw)


def flattened(read: TensorPath, given: Arguments) -> TensorPath:
    """Flatten axes into one, mostly all but the batch."""
    start = integer(given.get(1, "start_dim", "start_axis") or Const(0))
    stop = integer(given.get(2, "end_dim", "stop_axis") or Const(-1))
    # Only the usual flatten is followed, which ends in a linear layer.
    if start != 1 or stop != -1 or read.shape is None:
        return TensorPath()
    counts = [integer(size) for size in read.shape[1:]]
    known = [count for count in counts if count is not None]
    return TensorPath((read.shape[0], Const(prod(known)) if len(known) == len(counts) else SOMETHING))


def _permuted(read: TensorPath, given: Arguments) -> TensorPath:
    """Permute the axes."""
    order, rank = [integer(axis) for axis in given.rest(1, "dims", "perm") or ()], len(read.shape or ())
    known = [axis for axis in order if axis is not None and -rank <= axis < rank]
    complete = read.shape is not None and len(order) == len(known) == rank
    return TensorPath(tuple(read.shape[axis] for axis in known) if complete and read.shape else None, raw=read.raw)


def _reordered(read: TensorPath, _: Arguments) -> TensorPath:
    """Move or repeat values along the axes: roll, flip, expand."""
    return TensorPath(None if read.shape is None else unknown_sizes(len(read.shape)), raw=read.raw)


def padded(read: TensorPath, given: Arguments) -> TensorPath:
    """Pad the borders of the map."""
    sizes = read.sizes or ()
    border = numbers(given.get(1, "pad", "padding"), 2 * len(sizes))  # the last axis first
    extents = sized(lambda *lengths: sum(lengths), map(integer, sizes), border[-2::-2], border[::-2])
    return TensorPath(read.with_sizes(extents), space=Space(read.space.points), raw=read.raw)


def shuffled(read: TensorPath, given: Arguments, *, up: bool = True) -> TensorPath:
    """Shuffle pixels: r² times fewer channels, each axis r times as long; or the inverse."""
    factor, channels = integer(given.get(1, "upscale_factor", "downscale_factor")), integer(read.channels)
    if not factor or channels is None or not isinstance(read.channels, Const) or (up and channels % (factor * factor)):
        return TensorPath(space=Space(False), raw=read.raw)
    wide = Const(channels // (factor * factor) if up else channels * factor * factor, read.channels.stated)
    sizes = sized(lambda size: size * factor if up else 0 if size % factor else size // factor,
                  map(integer, read.sizes or ()))  # fmt: skip
    return TensorPath((read.shape[0] if read.shape else SOMETHING, wide, *sizes), space=Space(False), raw=read.raw)


unshuffled = partial(shuffled, up=False)


def _unsqueezed(read: TensorPath, given: Arguments) -> TensorPath:
    """Insert an axis of size one."""
    axis, shape = integer(given.get(1, "dim", "axis")), None
    if read.shape is not None and axis is not None and -len(read.shape) - 1 <= axis <= len(read.shape):
        at = axis if axis >= 0 else len(read.shape) + 1 + axis
        shape = (*read.shape[:at], Const(1), *read.shape[at:])
    return TensorPath(shape, space=Space(read.space.points or None), raw=read.raw)


def opaque(given: Arguments, conditions: Conditions) -> Value:
    """Record an operation that may do anything with its arguments."""
    return wrote(TensorPath(), given.tensors(), conditions, "opaque")


def compared(given: Arguments, conditions: Conditions) -> Value:
    """Record a loss, by which its arguments leave the network."""
    return wrote(TensorPath(), given.tensors(), conditions, "returned")


def combined(given: Arguments, conditions: Conditions, *, added: bool = True) -> Value:
    """Arithmetic on two tensors, or on one and a number."""
    pair = [value.data for value in (*given.args[:2], *list(given.keywords.values())[:2]) if isinstance(value, Tensor)]
    if len(pair) > 1:
        left, right = pair[:2]
        shape, space = _spread(left.shape, right.shape), _met(left.space, right.space, added=added)
        return wrote(TensorPath(shape, space=space, raw=left.raw and right.raw), [left, right], conditions)
    alone = all(isinstance(value, (Tensor, Const)) for value in given.args[:2])
    only = pair[0] if pair else TensorPath()
    space = only.space if alone else Space(only.space.points if added else None)
    # What is unknown may be a map, over which a gate of 1x1 is broadcast.
    shape = only.shape if alone or only.shape is None else tuple(_wider(size, SOMETHING) for size in only.shape)
    return wrote(TensorPath(shape, space=space, raw=only.raw, certain=only.certain and alone), pair, conditions)


def _met(left: Space, right: Space, *, added: bool) -> Space:
    """Return the extent of a sum or product."""
    # A map of 1x1 is broadcast, as in squeeze-and-excitation.
    if left is right or right.points:
        return left
    if left.points:
        return right
    if added:
        left.same_as(right)
        return left
    return Space(False if left.points is False or right.points is False else None)  # a product may be with a gate


def _spread(left: Shape | None, right: Shape | None) -> Shape | None:
    """Return the shape of a sum, by the rules of broadcasting."""
    if left is None or right is None:
        # The other operand may have been broadcast: sizes of one may be larger in the result.
        known = left or right or ()
        return (known[0], _wider(known[1], SOMETHING), *unknown_sizes(len(known) - 2)) if len(known) > 1 else None
    if len(left) != len(right):
        return unknown_sizes(max(len(left), len(right)))
    return tuple(map(_wider, left, right))


def _wider(size: Value, other: Value) -> Value:
    left, right = integer(size), integer(other)
    if left is None or right is None:
        known = size if left is not None else other
        return known if (integer(known) or 0) > 1 else SOMETHING
    return size if left >= right else other


def concatenated(given: Arguments, conditions: Conditions) -> Value:
    """Concatenate tensors, mostly along the channels."""
    first, out = given.get(0, "tensors", "x"), TensorPath()
    reads = collect([first] if first is not None else [])
    if axes(given.get(1, "dim", "axis") or Const(0)) in ((1,), (-3,)) and reads:
        # Unless each item is a tensor, the sum lacks channels.
        complete = isinstance(first, Items) and first.complete and len(first.items) == len(reads)
        known = [size for read in reads if (size := integer(read.channels)) is not None]
        summed: Value = SOMETHING
        if complete and len(known) == len(reads):
            summed = Const(sum(known), stated_by(*(read.channels for read in reads)))
        shaped = next((read for read in reads if read.shape is not None and len(read.shape) > 1), TensorPath())
        for read in reads[1:]:
            reads[0].space.same_as(read.space)
        out = TensorPath(shaped.with_channels(summed), space=reads[0].space, raw=all(read.raw for read in reads))
    return wrote(out, reads, conditions)


def chunked(given: Arguments, conditions: Conditions) -> Value:
    """Split into a number of equal parts, mostly of the channels."""
    read = flow_of(given.get(0, "input", "x"))
    count, channels = integer(given.get(1, "chunks")) or 0, read.channels
    width: Value = SOMETHING
    if isinstance(channels, Const) and count and (known := integer(channels)) is not None and known % count == 0:
        width = Const(known // count, channels.stated)
    return _parts(read, given, [width] * count if 0 < count <= _MOST_PARTS else None, conditions)


def split(given: Arguments, conditions: Conditions) -> Value:
    """Split into parts of given sizes."""
    read = flow_of(given.get(0, "input", "x"))
    sizes = given.get(1, "split_size_or_sections", "num_or_sections", "split_size")
    width, total = integer(sizes), integer(read.channels)
    if isinstance(sizes, Items) and sizes.complete:
        return _parts(read, given, sizes.items, conditions)
    if not width or not total or axes(given.get(2, "dim", "axis")) != (1,):
        return _parts(read, given, None, conditions)
    return _parts(read, given, [Const(min(width, total - at)) for at in range(0, total, width)], conditions)


def _parts(read: TensorPath, given: Arguments, widths: Sequence[Value] | None, conditions: Conditions) -> Value:
    """Return parts of these widths, of the channels if that is the call's axis; opaque if their number is unknown."""
    if widths is None or len(widths) > _MOST_PARTS:
        read.readers.append(TensorReader("opaque", (), conditions))
        return SOMETHING
    if axes(given.get(2, "dim", "axis")) == (1,):
        parts = [TensorPath(read.with_channels(width), space=read.space, raw=read.raw) for width in widths]
    else:
        parts = [_reordered(read, given) for _ in widths]
    read.readers.append(TensorReader("other", tuple(parts), conditions))
    return Items("tuple", [Tensor(part) for part in parts])


def sliced(read: TensorPath, index: Value, conditions: Conditions) -> Tensor:
    """Return `x[index]`: slices are followed, any other index gives an unknown shape."""
    parts = index.items if isinstance(index, Items) and index.kind == "tuple" else [index]
    slices = [part for part in parts if isinstance(part, Items) and part.kind == "slice"]
    if len(slices) < len(parts) or read.shape is None:
        return wrote(TensorPath(raw=read.raw), [read], conditions)
    sizes = list(map(_cut, slices, read.shape))
    space = read.space if len(sizes) < 3 else None
    return wrote(TensorPath((*sizes, *read.shape[len(sizes) :]), space=space, raw=read.raw), [read], conditions)


def _cut(part: Items, size: Value) -> Value:
    if all(map(is_none, part.items)):
        return size
    known, ends = integer(size), bounds_of(part)
    return SOMETHING if known is None or ends is None else Const(len(range(known)[slice(*ends)]))


_ON_ONE: dict[str, Operation] = {
    short: operation
    for operation, names in (
        (pointwise, """
            relu relu_ relu6 leaky_relu leaky_relu_ prelu rrelu elu elu_ selu celu gelu silu silu_ swish mish hardswish
            hardsigmoid hardtanh softplus softsign softshrink hardshrink tanhshrink threshold sigmoid sigmoid_
            logsigmoid tanh tanh_ softmax log_softmax gumbel_softmax dropout dropout1d dropout2d dropout3d alpha_dropout
            feature_dropout feature_alpha_dropout abs exp log sqrt rsqrt square pow neg sign clamp clamp_ clip clip_
            round floor ceil sin cos erf reciprocal group_norm layer_norm local_response_norm normalize rms_norm log1p
            expm1 nan_to_num masked_fill masked_fill_ mul_ scale instance_norm
        """),
        (pooled, "max_pool#d avg_pool#d lp_pool1d lp_pool2d"),
        (adaptively_pooled, "adaptive_avg_pool#d adaptive_max_pool#d"),
        (_reduced, "mean sum amax amin nanmean"), (_viewed, "view reshape view_as reshape_as"),
        (resized, "interpolate upsample upsample_bilinear upsample_nearest"), (flattened, "flatten"),
        (_permuted, "permute"), (padded, "pad"), (shuffled, "pixel_shuffle"), (unshuffled, "pixel_unshuffle"),
        (_unsqueezed, "unsqueeze"),
        (_reordered, "roll flip expand expand_as repeat repeat_interleave rot90 flipud fliplr broadcast_to tile"),
    )
    for short in words(names)
}  # fmt: skip
_ON_SEVERAL: dict[str, Callable[[Arguments, Conditions], Value]] = {
    **dict.fromkeys(
        ["add", "add_", "sub", "sub_", "subtract", "maximum", "minimum", "lerp", "addcmul", "max_", "where_"], combined
    ),
    **dict.fromkeys(words("mul multiply div divide true_divide atan2"), partial(combined, added=False)),
    **dict.fromkeys(("cat", "concat", "concatenate"), concatenated),
    "chunk": chunked,
    "split": split,
    **dict.fromkeys(
        words("""
            cross_entropy binary_cross_entropy binary_cross_entropy_with_logits nll_loss mse_loss l1_loss kl_div
            smooth_l1_loss huber_loss poisson_nll_loss gaussian_nll_loss backward
        """),
        compared,
    ),
}
# Methods that keep the numbers: a norm behind them cancels a bias in front of them.
_SAME = words("""
    contiguous to cuda cpu float half double bfloat16 type type_as requires_grad_ detach_ detach clone data cast
    pin_memory to_sparse to_dense stop_gradient astype numpy_ checkpoint_name identity
""")
_CREATED = words("randn rand zeros ones empty full")
_LIKE = words("zeros_like ones_like rand_like randn_like empty_like full_like new_zeros new_ones")
_QUESTIONS = words("""
    is_contiguous is_floating_point element_size numel nelement get_device storage stride data_ptr item tolist
""")
# Methods after which a tensor may have another shape: docs.pytorch.org/docs/stable/tensors.html, and Paddle's
# www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/Tensor__upper_en.html
_RESHAPING = words("""
    resize_ resize_as_ set_ t_ transpose_ swapaxes_ swapdims_ squeeze_ unsqueeze_ as_strided_ sparse_resize_
    sparse_resize_and_clear_ resize_as_sparse_ reshape_ flatten_ module_load
""")
# True, as costs are asked for networks that run on a GPU.
_WITH_A_GPU = frozenset({"torch.cuda.is_available", "paddle.is_compiled_with_cuda"})
_FUNCTIONS = ("torch", "torch.nn.functional", "torch.Tensor", "torch.functional", "paddle", "paddle.nn.functional")


def _by_name(short: str, given: Arguments, conditions: Conditions) -> Value | None:
    """Return the result of the operation with that name; None if there is none."""
    if short in _ON_ONE:
        return run(_ON_ONE[short], given, conditions, "norm" if short == "instance_norm" else "other")
    if short in _ON_SEVERAL:
        return _ON_SEVERAL[short](given, conditions)
    if short in ("max", "min"):
        _evidence_of(flow_of(given.get(0, "input", "x")), axes(given.get(1, "dim", "axis")))
        return opaque(given, conditions)
    if short in _LIKE:
        return Tensor(TensorPath(flow_of(given.get(0, "input", "x")).shape, raw=True))
    if short in _CREATED:
        sizes = given.rest(0, "size", "shape")
        return Tensor(TensorPath(tuple(sizes), raw=True, certain=True) if sizes else TensorPath(raw=True))
    return None


def function(name: str, given: Arguments, conditions: Conditions) -> Value | None:
    """Return the result of a framework's function by its full name; None if it reads no known tensor."""
    if name in _WITH_A_GPU:
        return Const(True)
    if name == "torch.__version__.startswith" and (text_of(given.get(0, "prefix")) or "").startswith("0"):
        return Const(False)  # HRNet and its descendants ask; no GPU that is rented today runs PyTorch 0.4
    prefix, _, short = name.rpartition(".")
    reads = bool(given.tensors())
    if prefix in _FUNCTIONS and (reads or short in _CREATED or prefix.endswith("functional")):
        result = _by_name(short, given, conditions)
        if result is not None:
            return result
    return opaque(given, conditions) if reads else None


def method(tensor: Tensor, name: str, given: Arguments, conditions: Conditions) -> Value | None:
    """Return the result of a method of a tensor."""
    if name in _SAME:
        return tensor
    if name in ("size", "dim", "ndimension"):
        return _size(tensor.data, name, given)
    if name in _QUESTIONS:
        return SOMETHING
    if name in _RESHAPING:
        reshaped_in_place(tensor.data)
    arguments = Arguments([tensor, *given.args], given.keywords)
    # The operations below name axes by PyTorch's order.
    if name == "get_shape":
        return attribute(tensor, "shape")
    if tensor.data.last:
        return SOMETHING if name == "set_shape" else opaque(arguments, conditions)
    return _by_name(name, arguments, conditions) or opaque(arguments, conditions)


def _size(flow: TensorPath, name: str, given: Arguments) -> Value:
    if flow.shape is None:
        return SOMETHING
    if name != "size":
        return Const(len(flow.shape))
    axis = given.get(0, "dim")
    number = integer(axis)
    if axis is None:
        return Items("tuple", list(flow.shape))
    return flow.shape[number] if number is not None and -len(flow.shape) <= number < len(flow.shape) else SOMETHING


def attribute(tensor: Tensor, name: str) -> Value | None:
    """Return an attribute of a tensor; None if it is unknown."""
    flow: TensorPath = tensor.data
    if name == "shape":
        shape = flow.shape
        if shape is not None and flow.last and len(shape) > 2:
            shape = (shape[0], *shape[2:], shape[1])
        return Items("tuple", list(shape)) if shape is not None else SOMETHING
    if name in ("ndim", "rank"):
        return Const(len(flow.shape)) if flow.shape is not None else SOMETHING
    if name in ("data", "real"):
        return tensor
    known = ("device", "dtype", "is_cuda", "requires_grad", "grad", "layout", "names", "grad_fn")
    return Unknown("call") if name in known else None
