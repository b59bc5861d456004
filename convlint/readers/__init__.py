"""The registry of readers: which file names each reads, and in which process it runs.

A reader is one module, which ends with `READER = Reader(read=...)`, and one line in `FORMATS`. It is imported when an
input first needs it. It never prints, never raises for bad input, and imports heavy dependencies inside `read`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

if TYPE_CHECKING:
    from convlint.model.network import Network
    from convlint.model.report import InputError

MODULE_TIMEOUT_S = 120.0
# For messages: what to name instead of Python source, which does not state the sizes that a time needs.
INSTEAD_OF_SOURCE = (
    "name a spec or a model file, package.module:Net --input 64x3x224x224, "
    "or by --model one that [[tool.convlint.models]] has"
)


class ReadOptions(Struct, frozen=True, kw_only=True):
    """The options of the command line that readers get."""

    batch: int | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)  # input name ("" = the first) -> "Nx3x224x224"
    module_timeout_s: float = MODULE_TIMEOUT_S  # for building and tracing one module, the import of torch not counted
    reference: str | None = None  # package.module:name of a module that has another name in the config
    channels_last: bool = False  # the module is put into this memory format
    autocast: str | None = None  # the dtype in which a module's convolutions run, as under torch.autocast
    roots: tuple[str, ...] = ()  # folders that modules are imported from, beside the current one
    trains: bool | None = None  # whether the forward pass is followed in train mode; None: not stated, so eval mode
    # Edited Python that is not on disk: real path -> content, each byte as the character of its number.
    sources: Mapping[str, str] = field(default_factory=dict)
    again: bool = False  # the module has been read before: what its code prints is dropped


# The network of an input, or None, and everything that could not be read or resolved.
Outcome = tuple["Network | None", tuple["InputError", ...]]
ReadFunction = Callable[[str, ReadOptions], Outcome]  # of the input at a path


class Reader(Struct, frozen=True, kw_only=True):
    """What a reader module offers; `read_text` is for a file of a shared format, which discovery has opened already."""

    read: ReadFunction
    read_text: Callable[[str, str, ReadOptions], Outcome] | None = None
    load_parser: Callable[[], None] = lambda: None  # imports libraries, before the limits for one file begin


class Format(Struct, frozen=True, kw_only=True):
    """A line of the registry.

    `runs`: parsers written in C run in a `parser` child, the user's code in a `modules` child, all else in this
    process. `shared`: files of this suffix serve other purposes too, so their content decides. `refused`: a file that
    is named gets an error, one in a folder is passed over. `takes_inputs`: `--input` gives shapes to its inputs.
    `source`: Python, which is read together with the files that it imports, and by `check` alone. `named`: folders and
    globs do not include it. `cpu_s`: seconds of processor time that reading one in this process may take; the largest
    sound spec takes 1 to 2.
    """

    module: str  # in this package
    suffixes: tuple[str, ...] = ()
    runs: Literal["here", "parser", "modules"] = "here"
    shared: bool = False
    refused: bool = False
    takes_inputs: bool = False
    source: bool = False
    named: bool = False
    cpu_s: float = 10.0

    def reader(self) -> Reader:
        """The reader; imports its module."""
        reader = import_module(f"{__name__}.{self.module}").READER
        if not isinstance(reader, Reader):
            raise TypeError(f"{self.module}.READER is no Reader")
        return reader


SPEC = Format(module="spec.reader", suffixes=(".yaml", ".yml", ".json"), shared=True)
# for `package.module:name`, the only form that runs code
MODULE = Format(module="torch.module", runs="modules", takes_inputs=True)
# Any .json may be a trace as well: its content decides.
TRACE = Format(module="trace.reader", suffixes=(".json.gz", ".trace.json"), named=True, cpu_s=300.0)
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
        suffixes=(".pt", ".pth", ".bin", ".ckpt", ".pkl", ".h5", ".hdf5", ".pb", ".tflite", ".engine", ".plan"),
    ),
    PYTHON,
    TRACE,
    MODULE,
)
_BY_SUFFIX = {suffix: known for known in FORMATS for suffix in known.suffixes}


def known_suffixes(*, refused: bool = True, source: bool = True, named: bool = True) -> tuple[str, ...]:
    """The suffixes of all formats, in the order of the registry; each argument states whether to list such formats."""
    return tuple(
        suffix
        for suffix, known in _BY_SUFFIX.items()
        if (refused or not known.refused) and (source or not known.source) and (named or not known.named)
    )


def find_format(path: str) -> Format | None:
    """The format of the file at `path`, by its name, or None: the longest suffix wins."""
    name = path.lower()
    known = [suffix for suffix in _BY_SUFFIX if name.endswith(suffix)]
    return _BY_SUFFIX[max(known, key=len)] if known else None


def format_of(module: str) -> Format:
    """The format of a reader's module. Raises KeyError for one that is not registered."""
    return {known.module: known for known in FORMATS}[module]
