"""The registry of readers: which file names each knows, where it runs, and what it has to offer.

A reader is one module, which ends with `READER = Reader(read=...)`, and one line in `FORMATS`. It never prints and
never raises for bad input, and imports its heavy dependencies inside `read`. It is loaded only when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct, field

if TYPE_CHECKING:
    from convlint.model.network import Network
    from convlint.model.report import InputError

MODULE_TIMEOUT_S = 120.0
# what to name where a time needs sizes that Python source does not state
INSTEAD_OF_SOURCE = (
    "name a spec or a model file, package.module:Net --input 64x3x224x224, "
    "or by --model one that [[tool.convlint.models]] has"
)


class ReadOptions(Struct, frozen=True, kw_only=True):
    """What the command line says about reading."""

    batch: int | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)  # input name ("" = the first) -> "Nx3x224x224"
    module_timeout_s: float = MODULE_TIMEOUT_S  # for building and tracing one module, torch's own import not counted
    reference: str | None = None  # of a module whose name is another
    channels_last: bool = False  # the module is put into this memory format
    autocast: str | None = None  # the dtype in which a module's convolutions run, as under torch.autocast
    roots: tuple[str, ...] = ()  # folders that modules are imported from, beside the current one
    trains: bool | None = None  # follow the module's forward pass in train mode; None: nobody says, and it is eval mode
    # Python that is not yet on disk: real path -> what it is imported as, each byte as the character of its number
    sources: Mapping[str, str] = field(default_factory=dict)
    again: bool = False  # what the module's code prints has been heard already


class ReadFunction(Protocol):
    """How an input is read."""

    def __call__(self, path: str, options: ReadOptions, /) -> tuple[Network | None, tuple[InputError, ...]]:
        """The network in `path`, or None, and everything that could not be read or resolved."""
        ...


class ReadText(Protocol):
    """How the text of a file is read that discovery has opened already."""

    def __call__(self, text: str, path: str, options: ReadOptions, /) -> tuple[Network | None, tuple[InputError, ...]]:
        """The same for the text of `path`."""
        ...


class Reader(Struct, frozen=True, kw_only=True):
    """What a reader module offers."""

    read: ReadFunction
    read_text: ReadText | None = None  # a shared format's alone
    load_parser: Callable[[], None] = lambda: None  # imports what is not to count towards the limits of one file


class Format(Struct, frozen=True, kw_only=True):
    """A line of the registry.

    Parsers written in C run in a `parser` child, code of the user's in a `modules` child, all else in this process.
    A `shared` format's files serve many ends, so that their content tells which are meant. What is `refused` gets its
    reason where it is named, and is passed over in folders. Where it `takes_inputs`, `--input` gives them their shapes.
    What is `source` says something only together with the files that it imports: `check` alone reads it.
    """

    module: str  # in this package
    suffixes: tuple[str, ...] = ()
    runs: Literal["here", "parser", "modules"] = "here"
    shared: bool = False
    refused: bool = False
    takes_inputs: bool = False
    source: bool = False

    def reader(self) -> Reader:
        """What its module offers; loads that module."""
        found = import_module(f"{__name__}.{self.module}").READER
        if not isinstance(found, Reader):
            raise TypeError(f"{self.module}.READER is no Reader")
        return found


SPEC = Format(module="spec.reader", suffixes=(".yaml", ".yml", ".json"), shared=True)
MODULE = Format(
    module="torch.module", runs="modules", takes_inputs=True
)  # for `package.module:name`, the only form that runs code
PYTHON = Format(module="python.reader", suffixes=(".py", ".ipynb"), source=True)
FORMATS: tuple[Format, ...] = (
    SPEC,
    Format(module="onnx.reader", suffixes=(".onnx",), runs="parser", takes_inputs=True),
    Format(module="torch.program", suffixes=(".pt2",), takes_inputs=True),
    Format(module="keras.reader", suffixes=(".keras",), takes_inputs=True),
    Format(module="safetensors", suffixes=(".safetensors", ".safetensors.index.json")),
    Format(
        module="refusals",
        refused=True,
        suffixes=(
            ".pt",
            ".pth",
            ".bin",
            ".ckpt",
            ".pkl",
            ".h5",
            ".hdf5",
            ".pb",
            ".tflite",
            ".engine",
            ".plan",
        ),
    ),
    PYTHON,
    MODULE,
)
_BY_SUFFIX = {suffix: known for known in FORMATS for suffix in known.suffixes}


def known_suffixes(*, refused: bool = True, source: bool = True) -> tuple[str, ...]:
    """The suffixes of all formats, in their order; without those of the refused ones, and of source, if so asked."""
    return tuple(
        suffix
        for suffix, known in _BY_SUFFIX.items()
        if (refused or not known.refused) and (source or not known.source)
    )


def find_format(path: str) -> Format | None:
    """The format of the file at `path`, by its name, or None: the longest suffix wins."""
    name = path.lower()
    known = [suffix for suffix in _BY_SUFFIX if name.endswith(suffix)]
    return _BY_SUFFIX[max(known, key=len)] if known else None


def format_of(module: str) -> Format:
    """The format of a reader's module. Raises KeyError for one that is not registered."""
    return {known.module: known for known in FORMATS}[module]
