"""What operations on tensors do to channels and extents, and which tensors they read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from convlint.model.geometry import output_size
from convlint.readers.python.evaluator.stated import stated_by
from convlint.readers.python.evaluator.values import Const, Items, Tensor, Value
from convlint.readers.python.nn.arguments import Arguments, axes, collect, is_true, numbers
from convlint.readers.python.nn.flow import SOMETHING, Flow, Reader, Shape, Space, integer, unknown_sizes

Conditions = tuple[str, ...]
Operation = Callable[[Arguments, Conditions], Value]


def flow_of(value: Value | None) -> Flow:
    """The tensor that a value is; of any other, a tensor of which nothing is known."""
    return value.data if isinstance(value, Tensor) else Flow()


def wrote(out: Flow, reads: Sequence[Flow], conditions: Conditions, kind: str = "other") -> Tensor:
    """`out` is computed from `reads` by something of that kind."""
    for each in reads:
        each.readers.append(Reader(kind, (out,), conditions))
    return Tensor(out)


def pointwise(given: Arguments, conditions: Conditions, kind: str = "other") -> Value:
    """Every number by itself."""
    read = flow_of(given.get(0, "input", "x"))
    return wrote(Flow(read.shape, space=read.space, raw=read.raw), [read], conditions, kind)


def normalized(given: Arguments, conditions: Conditions) -> Value:
    """A batch or instance norm, which takes the mean of each channel away."""
    return pointwise(given, conditions, "norm")


def opaque(given: Arguments, conditions: Conditions) -> Value:
    """Something that may do anything."""
    return wrote(Flow(), given.tensors(), conditions, "opaque")


def combined(given: Arguments, conditions: Conditions, *, added: bool = True) -> Value:
    """Two tensors, or one and a number."""
    pair = [value.data for value in given.args[:2] if isinstance(value, Tensor)]
    pair += [value.data for value in list(given.keywords.values())[:2] if isinstance(value, Tensor)]
    if len(pair) < 2:
        partner = [value for value in given.args[:2] if not isinstance(value, (Tensor, Const))]
        only = pair[0] if pair else Flow()
        space = only.space if not partner else Space(only.space.points if added else None)
        return wrote(Flow(only.shape, space=space, raw=only.raw), pair, conditions)
    left, right = pair[:2]
    out = Flow(_spread(left.shape, right.shape), space=_met(left.space, right.space, added=added),
               raw=left.raw and right.raw)  # fmt: skip
    return wrote(out, [left, right], conditions)


def multiplied(given: Arguments, conditions: Conditions) -> Value:
    """A product: one side is often a gate for each channel, of 1x1."""
    return combined(given, conditions, added=False)


def _met(left: Space, right: Space, *, added: bool) -> Space:
    """The extent of a sum or product."""
    if left is right:
        return left
    if left.points and right.points:
        return left
    if left.points:
        return right
    if right.points:
        return left
    if added:
        left.same_as(right)
        return left
    known = left.points is False or right.points is False
    return Space(False if known else None)


def _spread(left: Shape | None, right: Shape | None) -> Shape | None:
    if left is None or right is None:
        known = left or right
        return None if known is None else (known[0], _wider(known[1], SOMETHING), *unknown_sizes(len(known) - 2)) \
            if len(known) > 1 else None  # fmt: skip
    if len(left) != len(right):
        longer = max((left, right), key=len)
        return unknown_sizes(len(longer))
    return tuple(_wider(one, other) for one, other in zip(left, right, strict=True))


def _wider(one: Value, other: Value) -> Value:
    left, right = integer(one), integer(other)
    if left is None or right is None:
        known = one if left is not None else other
        return known if (integer(known) or 0) > 1 else SOMETHING
    return one if left >= right else other


def concatenated(given: Arguments, conditions: Conditions) -> Value:
    """Tensors side by side, mostly of channels."""
    first = given.get(0, "tensors", "x")
    reads: list[Flow] = []
    collect([first] if first is not None else [], reads)
    axis = axes(given.get(1, "dim", "axis") or Const(0))
    out = Flow()
    if axis in ((1,), (-3,)) and reads:
        whole = isinstance(first, Items) and first.complete and len(first.items) == len(reads)
        known = [integer(each.channels) for each in reads]
        total = sum(each for each in known if each is not None)
        summed: Value = SOMETHING
        if whole and None not in known:
            summed = Const(total, stated_by(*(each.channels for each in reads)))
        shaped = next((each.shape for each in reads if each.shape is not None and len(each.shape) > 1), None)
        space = reads[0].space
        for each in reads[1:]:
            space.same_as(each.space)
        out = Flow(None if shaped is None else (shaped[0], summed, *shaped[2:]), space=space,
                   raw=all(each.raw for each in reads))  # fmt: skip
    return wrote(out, reads, conditions)


def pooled(given: Arguments, conditions: Conditions) -> Value:
    """A pool with a window."""
    read = flow_of(given.get(0, "input", "x"))
    read.space.says(False)
    sizes = read.sizes
    count = len(sizes) if sizes is not None else 2
    taps = numbers(given.get(1, "kernel_size"), count)
    stride = given.get(2, "stride")
    none = stride is None or (isinstance(stride, Const) and stride.value is None)
    steps = taps if none else numbers(stride, count)
    pads = numbers(given.get(3, "padding") or Const(0), count)
    exact = is_true(given.keywords.get("ceil_mode") or (given.args[5] if len(given.args) > 5 else None)) is False
    small = all(each is not None and each <= 3 for each in taps)
    shape = None
    if sizes is not None and read.shape is not None:
        found = [_window(size, taps[axis], steps[axis], pads[axis], exact=exact) for axis, size in enumerate(sizes)]
        shape = (*read.shape[:2], *found)
    return wrote(Flow(shape, space=Space(False if small else None), raw=read.raw), [read], conditions, "pool")


def _window(size: Value, taps: int | None, step: int | None, pad: int | None, *, exact: bool) -> Value:
    known = integer(size)
    if known is None or taps is None or not step or pad is None or not exact:
        return SOMETHING
    found = output_size(known, stride=step, pad=2 * pad, dilation=1, taps=taps)
    return Const(found) if found > 0 else SOMETHING


def adaptively_pooled(given: Arguments, conditions: Conditions) -> Value:
    """A pool to a size that is given."""
    read = flow_of(given.get(0, "input", "x"))
    read.space.says(False)
    goal = given.get(1, "output_size")
    count = len(read.sizes) if read.sizes is not None else 2
    sizes = numbers(goal, count)
    points = True if all(size == 1 for size in sizes) else False if all((size or 0) > 1 for size in sizes) else None
    shape = None
    if read.shape is not None and len(read.shape) > 1:
        shape = (*read.shape[:2], *(SOMETHING if size is None else Const(size) for size in sizes))
    return wrote(Flow(shape, space=Space(points)), [read], conditions, "pool")


def reduced(given: Arguments, conditions: Conditions) -> Value:
    """A mean or sum over axes: over those of the map, one number for each channel."""
    read = flow_of(given.get(0, "input", "x"))
    over = axes(given.get(1, "dim", "axis"))
    kept = is_true(given.get(2, "keepdim", "keepdims"))
    spatial = over is not None and len(over) > 1 and all(axis in (2, 3, 4, -1, -2, -3) for axis in over)
    if not spatial:
        return wrote(Flow(), [read], conditions, "pool")
    read.space.says(False)
    head: Shape = read.shape[:2] if read.shape is not None and len(read.shape) > 2 else (SOMETHING, SOMETHING)
    ones: Shape = tuple(Const(1) for _ in over or ()) if kept else ()
    return wrote(Flow((*head, *ones), space=Space(True)), [read], conditions, "pool")


def resized(given: Arguments, conditions: Conditions) -> Value:
    """Interpolation to a size or by a factor."""
    read = flow_of(given.get(0, "input", "x"))
    shape = None
    if read.shape is not None and len(read.shape) > 2:
        count = len(read.shape) - 2
        goal, factor = given.get(1, "size"), given.get(2, "scale_factor")
        wanted, times = numbers(goal, count), numbers(factor, count)
        found = [
            Const(size) if size is not None else _times(read.shape[2 + axis], times[axis])
            for axis, size in enumerate(wanted)
        ]
        shape = (*read.shape[:2], *found)
    return wrote(Flow(shape, space=Space(False), raw=read.raw), [read], conditions)


def _times(size: Value, factor: int | None) -> Value:
    known = integer(size)
    return SOMETHING if known is None or factor is None else Const(known * factor)
