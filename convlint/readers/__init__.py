"""From a path to a network: which reader knows which suffix, and how each is called.

A reader module offers `read(path, options) -> tuple[Network | None, tuple[InputError, ...]]`. It never prints
and never raises for bad input; it imports its heavy dependencies inside `read`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from convlint.model.network import Network
    from convlint.report import InputError

# suffix -> module in this package; loaded only when a path with that suffix is read
READERS: Mapping[str, str] = {
    ".yaml": "spec.reader",
    ".yml": "spec.reader",
    ".json": "spec.reader",
    ".onnx": "onnx.reader",
    ".pt2": "torch.program",
    ".keras": "keras.reader",
    ".safetensors": "safetensors.reader",
    ".safetensors.index.json": "safetensors.reader",
    ".pt": "pickle_refusal",
    ".pth": "pickle_refusal",
    ".bin": "pickle_refusal",
    ".ckpt": "pickle_refusal",
    ".pkl": "pickle_refusal",
}
SPEC_READER = "spec.reader"
MODULE_TIMEOUT_S = 120.0
MODULE_READER = "torch.module"  # for `package.module:name`, the only form that runs code
# They read in child processes, and offer load_parser() besides, for what is not to count towards a file's limits.
PARSERS_IN_C = frozenset({"onnx.reader"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What the command line says about reading."""

    batch: int | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)  # input name ("" = the first) -> "Nx3x224x224"
    module_timeout_s: float = MODULE_TIMEOUT_S  # for building and tracing one module, torch's own import not counted


class Reader(Protocol):
    """What each reader module offers."""

    def read(self, path: str, options: ReadOptions) -> tuple[Network | None, tuple[InputError, ...]]:
        """The network in `path`, or None, and everything that could not be read or resolved."""
        ...


def find_reader(path: str) -> str | None:
    """The name of the module in this package that reads the file at `path`, or None: the longest suffix wins."""
    name = path.lower()
    known = [suffix for suffix in READERS if name.endswith(suffix)]
    return READERS[max(known, key=len)] if known else None
