"""Whether a file has convolutions whose algorithm is worth a thought, found in its text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

_OF_LIBRARIES = re.compile(
    rb"\bconv(?:_transpose)?[123]d\s*\(|\btorchvision\.models\b|\bfrom torchvision import [^\n]*\bmodels\b|"
    rb"\btimm\.create_model\b|\bsegmentation_models_pytorch\b|\bConv2D\b"
)
_CONSTRUCTED = re.compile(rb"\b(?:Lazy)?Conv(?:Transpose)?[123]d\s*\(")
_PARENTHESES = re.compile(rb"[()]")
_LONGEST = 1_000  # bytes of a call
_KERNEL = re.compile(rb"\bkernel_size\s*=\s*([^,()]+|\([^()]*\))\s*[,)]")
_STRIDE = re.compile(rb"\bstride\s*=\s*([^,()]+|\([^()]*\))\s*[,)]")


class Convolutions:
    """Which files of a project have some, each looked through once; `content` gives the bytes of a file."""

    def __init__(self, content: Callable[[str], bytes | None]) -> None:
        self._content = content
        self._found: dict[str, bool] = {}

    def among(self, files: Iterable[str]) -> bool:
        """Whether any of the files has."""
        return any(map(self._has, files))

    def _has(self, path: str) -> bool:
        if path not in self._found:
            self._found[path] = convolves(self._content(path) or b"")
        return self._found[path]


def convolves(content: bytes) -> bool:
    """Whether it has any but those that cut an image into patches: one matrix product in front of the rest."""
    if _OF_LIBRARIES.search(content):
        return True
    return any(not _cuts_patches(_arguments(content, match.end())) for match in _CONSTRUCTED.finditer(content))


def _arguments(content: bytes, start: int) -> bytes:
    """What stands between a parenthesis and the one that closes it, that one included."""
    depth = 1
    for match in _PARENTHESES.finditer(content, start, start + _LONGEST):
        depth += 1 if match[0] == b"(" else -1
        if not depth:
            return content[start : match.end()]
    return b""


def _cuts_patches(arguments: bytes) -> bool:
    kernel, stride = _KERNEL.search(arguments), _STRIDE.search(arguments)
    return kernel is not None and stride is not None and kernel[1].strip() == stride[1].strip() != b"1"
