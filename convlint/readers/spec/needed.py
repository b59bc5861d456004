"""Which operations of a network its spec has to hold: what convolutions read, and what ties or fixes channels."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from convlint.model.channels import Axis, Channels
from convlint.model.operation import Operation

Use = Literal["left out", "passed through", "written"]
_ONE_INPUT = ("identity", "batchnorm", "resize")


def keeps_channels(operation: Operation, own: Axis | None, before: Sequence[Axis | None]) -> bool:
    """Whether it hands on the channels of what it reads, in the way of its kind; else it is opaque.

    `own` is the axis of its tensor, `before` those of what it reads.
    """
    kind = operation.kind
    known = [axis for axis in before if axis is not None]
    if kind in _ONE_INPUT:
        return len(before) == 1 and own == before[0]
    if not before or len(known) < len(before):
        return False
    if kind == "add":
        return own in known
    if kind == "concat":
        whole = own is not None and len(own) == sum(map(len, known))  # else it may be longer than what is kept of axes
        return whole and own == tuple([part for axis in known for part in axis])
    if kind in ("pixel_shuffle", "pixel_unshuffle") and len(known) == 1 and operation.factor > 0:
        by = Fraction(operation.factor) ** (-2 if kind == "pixel_shuffle" else 2)
        return own == tuple([(number, scale * by) for number, scale in known[0]])
    return False


def uses(operations: Sequence[Operation], channels: Channels) -> list[Use]:
    """What becomes of each operation.

    Needed is what a rule could see; of that, what lies among opaque operations alone is only passed through: channels
    that no layer reads or writes are of no interest, but what they were made of is.
    """
    axes, of_layers = channels.axes, [bool(group.layers) for group in channels.groups]
    matters = [any(of_layers[group] for group, _ in axis or ()) for axis in axes]
    needed = [False] * len(operations)
    written = [operation.kind in ("input", "conv") for operation in operations]
    for number in reversed(range(len(operations))):
        operation = operations[number]
        is_conv = operation.kind == "conv"
        inputs = operation.inputs[:1] if is_conv else operation.inputs
        kept = is_conv or keeps_channels(operation, axes[number], [axes[index] for index in inputs])
        touches = any(matters[index] for index in inputs)
        idle = kept and operation.groups == 1 and operation.kind in (*_ONE_INPUT, "concat")
        needed[number] |= is_conv or (operation.output and matters[number]) or (touches and not idle)
        written[number] |= matters[number] or touches
        for index in inputs if needed[number] else ():
            needed[index] = True
            written[index] |= kept and written[number]
    return [
        "left out" if not is_needed else "written" if is_written else "passed through"
        for is_needed, is_written in zip(needed, written, strict=True)
    ]
