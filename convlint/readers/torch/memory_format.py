"""Which layout a tensor suggests to PyTorch's convolutions, by its strides alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

from convlint.readers.torch.places import Place


def suggests_channels_last(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether strides make a tensor channels_last, or channels_last_3d, to PyTorch: also where it has gaps.

    What a slice or a chunk of a tensor in channels_last looks like counts; a tensor that both layouts lay out alike
    does not (c10/core/MemoryFormat.h, is_channels_last_strides_2d and _3d: cuDNN's convolutions run in the layout that
    the input or the weights suggest, ATen/native/ConvUtils.h, cudnn_conv_suggest_memory_format).
    """
    if len(sizes) not in (4, 5) or strides[1] == 0:
        return False
    least = 0
    for axis in (1, *range(len(sizes) - 1, 1, -1), 0):
        if sizes[axis] == 0 or strides[axis] < least:
            return False
        if axis == 0 and least == strides[1]:  # N x C x 1 x 1, which is channels_last as well as not
            return False
        least = strides[axis] * max(1, sizes[axis])
    return True


def layout_of(tensor: Any) -> Literal["NCHW", "NHWC"] | None:
    """The layout of an image or a volume in memory; None where both lay it out alike, and for other tensors."""
    sizes = tensor.shape
    if len(sizes) not in (4, 5) or sizes[1] == 1 or all(size == 1 for size in sizes[2:]):
        return None
    return "NHWC" if suggests_channels_last(sizes, tensor.stride()) else "NCHW"


class Change(NamedTuple):
    """The operation that leaves a tensor in another layout than the convolution before it: what it is, and where."""

    what: str
    place: Place
    inherent: bool = False  # the operator itself writes NCHW, whatever it reads: no line of the user's is to blame


class Changes:
    """Which tensors lie in another layout than the convolution, or the input, that they come from, and what changed it.

    The first change counts, until the layout is that of the source again. A tensor that is computed anew from all of
    another (by a product, or another convolution) has no past here. A view copies nothing, but what is later written
    through it may (channel shuffles).
    """

    def __init__(self) -> None:
        # a tensor's id -> itself, so that the id stays its own; its source's layout; what changed it
        self._known: dict[int, tuple[Any, str, Change | None]] = {}

    def start(self, tensor: Any) -> None:
        """An input of the network, or what a convolution writes."""
        layout = layout_of(tensor)
        if layout is not None:
            self._known[id(tensor)] = tensor, layout, None

    def of(self, tensor: Any) -> Change | None:
        """What changed the layout of a tensor."""
        known = self._known.get(id(tensor))
        return None if known is None else known[2]

    def note(self, read: Iterable[Any], written: Iterable[Any], change: Callable[[], Change | None]) -> None:
        """An operation that reads and writes tensors; `change` describes it, and is asked where that matters."""
        read = list(read)
        source = next((self._known[id(tensor)] for tensor in read if id(tensor) in self._known), None)
        if source is None:
            return
        _, home, earlier = source
        for tensor in written:
            if any(tensor is each for each in read):
                continue
            layout, found = layout_of(tensor), earlier
            if layout == home:
                found = None
            elif layout is not None and found is None and not _is_view(tensor, read):
                found = change()
            self._known[id(tensor)] = tensor, home, found


def _is_view(tensor: Any, read: Iterable[Any]) -> bool:
    storage = tensor.untyped_storage()._cdata
    return any(each.untyped_storage()._cdata == storage for each in read)
