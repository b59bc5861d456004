"""Where layers are in the user's code, and where tensors change their layout in memory."""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any, Literal, NamedTuple

SITE = "_convlint_site"  # attribute of a module with sizes of its own: the `UserLines` of its construction
_INSTALLED = frozenset(("site-packages", "dist-packages"))
_OURS = str(Path(__file__).parents[2]) + os.sep

# Set by `remember_folders`, once for each process that reads a model.
_base: list[Path] = []
_roots: list[Path] = []
_importable: list[str] = []


class CodeSpan(NamedTuple):
    """A span of code; lines and columns count from 1, the end column is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


class UserLines(NamedTuple):
    """The innermost code on the stack that is not torch's, and the innermost of the user's project, if any is."""

    innermost: CodeSpan
    own: CodeSpan | None


def remember_folders(roots: Sequence[str]) -> list[str]:
    """The folders to import modules from: those of `roots` that exist, or else the current folder and its `src`.

    Remembers them: files below them or the current folder are the project, except installed ones. Also remembers the
    current folder, from which paths are shown, because the user's code may change it.
    """
    here = Path.cwd()
    folders = [Path(root).absolute() for root in roots or (here, here / "src")]
    folders = [folder for folder in folders if folder.is_dir()]
    _base[:] = [here]
    _roots[:] = dict.fromkeys([*folders, here])
    _importable[:] = [_from_here(folder) for folder in folders]
    is_of_project.cache_clear()
    _name_of.cache_clear()
    return list(map(str, folders))


def importable() -> list[str]:
    """The folders that modules are imported from, relative to the current one, for messages."""
    return _importable


@cache
def is_of_project(file: str) -> bool:
    """Whether a source file is the user's own."""
    path = Path(file)
    if not path.is_absolute() or file.startswith((_OURS, inside_torch())):
        return False
    installed = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    for root in _roots:  # a virtual environment often lies inside the project
        environments = [home for home in (Path(sys.prefix), Path(sys.base_prefix)) if root in home.parents]
        if path.is_relative_to(root) and not any(path.is_relative_to(home) for home in (*installed, *environments)):
            return not _INSTALLED.intersection(path.relative_to(root).parts)
    return False


@cache
def inside_torch() -> str:
    """The prefix of the paths of torch's own files. Imports torch."""
    import torch

    return str(Path(torch.__file__).parent) + os.sep


def frames(frame: FrameType | None) -> Iterator[FrameType]:
    """The frame, and those that called it."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def sites(frame: FrameType | None) -> UserLines | None:
    """The user's lines from `frame` outwards; None where all frames are torch's and convlint's."""
    innermost, own = _outside_torch(frame)
    if innermost is None:
        return None
    return UserLines(_place(innermost), None if own is None else _place(own))


def _outside_torch(frame: FrameType | None) -> tuple[FrameType | None, FrameType | None]:
    """The innermost frame that is neither torch's nor convlint's, and the innermost one of the project."""
    innermost = None
    ours = (inside_torch(), _OURS)
    for caller in frames(frame):
        file = caller.f_code.co_filename
        if not file.startswith(ours):
            innermost = innermost or caller
            if is_of_project(file):
                return innermost, caller
    return innermost, None


def _place(frame: FrameType) -> CodeSpan:
    """The expression that a frame executes, such as a call with its arguments; the whole line where unknown."""
    file, line = frame.f_code.co_filename, frame.f_lineno or frame.f_code.co_firstlineno
    positions = next(islice(frame.f_code.co_positions(), max(frame.f_lasti, 0) // 2, None), None)
    _, end_line, start, end = positions or (None, None, None, None)
    # The positions of generated code may lead beyond the file.
    known = end_line is not None and line <= end_line <= len(linecache.getlines(file))
    if known and end_line is not None and start is not None and end is not None:
        return CodeSpan(file, line, _column(file, line, start), end_line, _column(file, end_line, end))
    text = linecache.getline(file, line).rstrip()
    first = len(text) - len(text.lstrip()) + 1
    return CodeSpan(file, line, first, line, max(len(text), first) + 1)


def _column(file: str, line: int, offset: int) -> int:
    """The column, counted in characters from 1, of an offset in bytes of UTF-8, which is what Python records."""
    text = linecache.getline(file, line)
    return offset + 1 if text.isascii() else len(text.encode()[:offset].decode("utf-8", "replace")) + 1


def shown(file: str) -> str:
    """A file's path for messages: relative for files of the project and below the current folder, else absolute."""
    path = Path(file)
    if _base and path.is_relative_to(_base[0]) and not _INSTALLED.intersection(path.parts):
        return str(path.relative_to(_base[0]))
    if path.is_absolute() and is_of_project(file):
        return _from_here(path)
    return file


def _from_here(path: Path) -> str:
    try:
        return os.path.relpath(path, _base[0])
    except ValueError:  # another drive
        return str(path)


def imported_as(file: str) -> str:
    """A library's file, relative to the folder that it is imported from: `torchvision/models/resnet.py`."""
    path = Path(file)
    homes = [Path(entry) for entry in sys.path if entry and path.is_relative_to(entry)]
    return str(path.relative_to(max(homes, key=lambda home: len(home.parts)))) if homes else file


def line_of(place: CodeSpan) -> str:
    """A line for messages: `models/net.py:12` of the project, `timm/layers/conv.py:30` of a library."""
    return f"{_name_of(place.file)}:{place.line}"


def line_at(frame: FrameType | None) -> str:
    """The innermost line of the project on the stack, or else of a library; empty where all frames are torch's."""
    innermost, own = _outside_torch(frame)
    shown_frame = own or innermost
    return "" if shown_frame is None else f"{_name_of(shown_frame.f_code.co_filename)}:{shown_frame.f_lineno}"


@cache  # asked for every operation of a trace
def _name_of(file: str) -> str:
    return shown(file) if is_of_project(file) else imported_as(file)


def suggests_channels_last(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether PyTorch takes a tensor for channels_last, or channels_last_3d, by its strides.

    True also for a slice or a chunk of such a tensor, which has gaps; false for a tensor that is the same in both
    layouts. As c10/core/MemoryFormat.h, is_channels_last_strides_2d and _3d: cuDNN's convolutions run in the layout
    that the input or the weights suggest (ATen/native/ConvUtils.h, cudnn_conv_suggest_memory_format).
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
    """The layout of an image or a volume in memory; None where both layouts are the same, and for other tensors."""
    sizes = tensor.shape
    if len(sizes) not in (4, 5) or sizes[1] == 1 or all(size == 1 for size in sizes[2:]):
        return None
    return "NHWC" if suggests_channels_last(sizes, tensor.stride()) else "NCHW"


class LayoutChange(NamedTuple):
    """The operation that writes a tensor in another layout than that of the convolution before it, and its place."""

    what: str
    place: CodeSpan
    inherent: bool = False  # the operator writes NCHW whatever it reads, so that the user's line is not the cause


class LayoutChanges:
    """Which tensors are in another layout than the convolution, or the input, that they come from, and what changed it.

    The first change counts, until the layout is that of the source again. The result of a product or a convolution has
    no past. A view is no change, because it copies nothing; a later copy of the view is (as in a channel shuffle).
    """

    def __init__(self) -> None:
        # A tensor's id -> the tensor, which keeps the id from being reused; the layout of its source; what changed it.
        self._known: dict[int, tuple[Any, str, LayoutChange | None]] = {}

    def start(self, tensor: Any) -> None:
        """Notes an input of the network, or the output of a convolution."""
        layout = layout_of(tensor)
        if layout is not None:
            self._known[id(tensor)] = tensor, layout, None

    def of(self, tensor: Any) -> LayoutChange | None:
        """The operation that changed the layout of a tensor, if any did."""
        known = self._known.get(id(tensor))
        return None if known is None else known[2]

    def note(self, read: Iterable[Any], written: Iterable[Any], change: Callable[[], LayoutChange | None]) -> None:
        """Notes an operation that reads and writes tensors; `change` describes it, and is called only if needed."""
        read = list(read)
        source = next((self._known[id(tensor)] for tensor in read if id(tensor) in self._known), None)
        if source is None:
            return
        _, home, earlier = source
        for tensor in written:
            if any(tensor is other for other in read):  # changed in place
                continue
            layout, cause = layout_of(tensor), earlier
            if layout == home:
                cause = None
            elif layout is not None and cause is None and not (is_view(read, [tensor]) or _like(source[0], tensor)):
                cause = change()
            self._known[id(tensor)] = tensor, home, cause


def _like(source: Any, tensor: Any) -> bool:
    """Whether a tensor is laid out as its source, whose layout a view such as `permute` has changed, if anything."""
    return bool(source.shape == tensor.shape and source.stride() == tensor.stride())


def is_view(read: Iterable[Any], written: Iterable[Any]) -> bool:
    """Whether all of the written tensors lie in the memory of tensors that were read."""
    storages = {tensor.untyped_storage()._cdata for tensor in read}
    return all(tensor.untyped_storage()._cdata in storages for tensor in written)
