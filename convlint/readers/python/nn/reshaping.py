"""Operations that give the same numbers in another shape, or a part of them."""

from __future__ import annotations

from convlint.readers.python.evaluator.values import Const, Items, Tensor, Value
from convlint.readers.python.nn.arguments import Arguments, axes, numbers
from convlint.readers.python.nn.flow import SOMETHING, Flow, Reader, Space, integer, unknown_sizes
from convlint.readers.python.nn.operations import Conditions, flow_of, wrote

MOST_PARTS = 64


def viewed(given: Arguments, conditions: Conditions) -> Value:
    """A view of a shape that is given."""
    read = flow_of(given.get(0, "input", "x"))
    sizes = given.rest(1, "shape", "size")
    if sizes is None or not sizes:
        return wrote(Flow(raw=read.raw), [read], conditions, "view")
    known = [SOMETHING if integer(size) in (None, -1) else size for size in sizes]
    points = len(sizes) > 2 and all(integer(size) == 1 for size in sizes[2:])
    out = Flow(tuple(known), space=Space(True if points else None), raw=read.raw)
    return wrote(out, [read], conditions, "view")


def flattened(given: Arguments, conditions: Conditions) -> Value:
    """Axes made one, mostly all but the first."""
    read = flow_of(given.get(0, "input", "x"))
    start = integer(given.get(1, "start_dim", "start_axis") or Const(0))
    stop = integer(given.get(2, "end_dim", "stop_axis") or Const(-1))
    shape = None
    if start == 1 and stop == -1 and read.shape is not None:
        counts = [integer(size) for size in read.shape[1:]]
        total: int | None = 1
        for count in counts:
            total = None if total is None or count is None else total * count
        shape = (read.shape[0], SOMETHING if total is None else Const(total))
    return wrote(Flow(shape), [read], conditions, "view")


def permuted(given: Arguments, conditions: Conditions) -> Value:
    """Axes in another order."""
    read = flow_of(given.get(0, "input", "x"))
    order = given.rest(1, "dims", "perm")
    shape = None
    if order is not None and read.shape is not None:
        found = [integer(axis) for axis in order]
        if len(found) == len(read.shape) and all(axis is not None and -len(found) <= axis < len(found)
                                                 for axis in found):  # fmt: skip
            shape = tuple(read.shape[axis] for axis in found if axis is not None)
    return wrote(Flow(shape, raw=read.raw), [read], conditions, "view")


def reordered(given: Arguments, conditions: Conditions) -> Value:
    """The same axes, something moved along them: roll, flip, expand."""
    read = flow_of(given.get(0, "input", "x"))
    return wrote(Flow(None if read.shape is None else unknown_sizes(len(read.shape)), raw=read.raw), [read], conditions)


def chunked(given: Arguments, conditions: Conditions) -> Value:
    """As many equal parts as are wanted, mostly of the channels."""
    read = flow_of(given.get(0, "input", "x"))
    count = integer(given.get(1, "chunks"))
    axis = axes(given.get(2, "dim", "axis") or Const(0))
    if count is None or not 0 < count <= MOST_PARTS:
        read.readers.append(Reader("opaque", (), conditions))
        return SOMETHING
    parts = [_part(read, axis, _divided(read.channels, count)) for _ in range(count)]
    read.readers.append(Reader("split", tuple(parts), conditions))
    return Items("tuple", [Tensor(part) for part in parts])


def split(given: Arguments, conditions: Conditions) -> Value:
    """Parts of the sizes that are given."""
    read = flow_of(given.get(0, "input", "x"))
    sizes = given.get(1, "split_size_or_sections", "num_or_sections", "split_size")
    axis = axes(given.get(2, "dim", "axis") or Const(0))
    widths: list[Value] | None = None
    if isinstance(sizes, Items) and sizes.complete:
        widths = list(sizes.items)
    else:
        each, whole = integer(sizes), integer(read.channels)
        if each and whole and axis == (1,):
            count = -(-whole // each)
            widths = [Const(min(each, whole - each * index)) for index in range(count)]
    if widths is None or len(widths) > MOST_PARTS:
        read.readers.append(Reader("opaque", (), conditions))
        return SOMETHING
    parts = [_part(read, axis, width) for width in widths]
    read.readers.append(Reader("split", tuple(parts), conditions))
    return Items("tuple", [Tensor(part) for part in parts])


def _divided(channels: Value, count: int) -> Value:
    known = integer(channels)
    if known is None or known % count or not isinstance(channels, Const):
        return SOMETHING
    return Const(known // count, channels.stated)


def _part(read: Flow, axis: tuple[int, ...] | None, width: Value) -> Flow:
    if axis == (1,):
        return Flow(read.with_channels(width), space=read.space, raw=read.raw)
    return Flow(None if read.shape is None else unknown_sizes(len(read.shape)), raw=read.raw)


def padded(given: Arguments, conditions: Conditions) -> Value:
    """A border around the map."""
    read = flow_of(given.get(0, "input", "x"))
    shape = None
    if read.shape is not None and len(read.shape) > 2:
        count = len(read.shape) - 2
        border = given.get(1, "pad", "padding")
        widths = numbers(border, 2 * count)
        shape = (*read.shape[:2], *(
            _grown(read.shape[2 + axis], widths[2 * (count - 1 - axis)], widths[2 * (count - 1 - axis) + 1])
            for axis in range(count)
        ))  # fmt: skip
    return wrote(Flow(shape, space=Space(read.space.points), raw=read.raw), [read], conditions, "pad")


def _grown(size: Value, before: int | None, after: int | None) -> Value:
    known = integer(size)
    return SOMETHING if known is None or before is None or after is None else Const(known + before + after)


def shuffled(given: Arguments, conditions: Conditions) -> Value:
    """Channels to places: r² fewer of them, r times as wide."""
    read = flow_of(given.get(0, "input", "x"))
    factor = integer(given.get(1, "upscale_factor"))
    channels, shape = integer(read.channels), None
    if factor and channels is not None and isinstance(read.channels, Const) and channels % (factor * factor) == 0:
        known = [integer(size) for size in read.sizes or ()]
        sizes = [SOMETHING if size is None else Const(size * factor) for size in known]
        assert read.shape is not None
        shape = (read.shape[0], Const(channels // (factor * factor), read.channels.stated), *sizes)
    return wrote(Flow(shape, space=Space(False), raw=read.raw), [read], conditions)


def unshuffled(given: Arguments, conditions: Conditions) -> Value:
    """Places to channels."""
    read = flow_of(given.get(0, "input", "x"))
    factor = integer(given.get(1, "downscale_factor"))
    channels, shape = integer(read.channels), None
    if factor and channels is not None and isinstance(read.channels, Const):
        known = [integer(size) for size in read.sizes or ()]
        sizes = [SOMETHING if size is None or size % factor else Const(size // factor) for size in known]
        assert read.shape is not None
        shape = (read.shape[0], Const(channels * factor * factor, read.channels.stated), *sizes)
    return wrote(Flow(shape, space=Space(False), raw=read.raw), [read], conditions)


def unsqueezed(given: Arguments, conditions: Conditions) -> Value:
    """An axis of one more."""
    read = flow_of(given.get(0, "input", "x"))
    axis = integer(given.get(1, "dim", "axis"))
    shape = None
    if read.shape is not None and axis is not None and -len(read.shape) - 1 <= axis <= len(read.shape):
        at = axis if axis >= 0 else len(read.shape) + 1 + axis
        shape = (*read.shape[:at], Const(1), *read.shape[at:])
    points = read.space.points if read.space.points else None
    return wrote(Flow(shape, space=Space(points), raw=read.raw), [read], conditions, "view")


def sliced(read: Flow, index: Value, conditions: Conditions) -> Tensor:
    """`x[index]`: a slice of the channels behind a whole batch is followed, all else is not."""
    parts = index.items if isinstance(index, Items) and index.kind == "tuple" else [index]
    shape = None
    space = None
    if all(isinstance(part, Items) and part.kind == "slice" for part in parts) and read.shape is not None:
        sizes = [_cut(part, read.shape[axis]) for axis, part in enumerate(parts[: len(read.shape)])]
        shape = (*sizes, *read.shape[len(sizes) :])
        space = read.space if len(sizes) < 3 else None
    return wrote(Flow(shape, space=space, raw=read.raw), [read], conditions, "split")


def _cut(part: Value, size: Value) -> Value:
    bounds = part.items if isinstance(part, Items) else []
    if all(isinstance(bound, Const) and bound.value is None for bound in bounds):
        return size
    known = integer(size)
    ends = bounds_of(part) if isinstance(part, Items) else None
    if known is None or ends is None:
        return SOMETHING
    return Const(len(range(known)[slice(*ends)]))


def bounds_of(part: Items) -> list[int | None] | None:
    """The ends of a slice; None where one is not known."""
    found: list[int | None] = []
    for bound in part.items:
        if not isinstance(bound, Const) or not (bound.value is None or isinstance(bound.value, int)):
            return None
        found.append(bound.value)
    return found if found and found[-1] != 0 else None
