"""Inputs as the command line and the config name them: files, standard input, modules, source; their shapes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from convlint.files.patterns import pattern
from convlint.model.errors import InputFault, suggestion
from convlint.model.layer import Dtype, DtypeSource, Mode, equal_without
from convlint.model.location import Span
from convlint.model.network import Network
from convlint.readers import ReadOptions, find_format

LARGEST_SIZE = 2**31  # elements along one axis; more is a typing mistake
LARGEST_RANK = 8

# The dtypes that an input may have -> torch's name of them.
DTYPES = {
    "fp64": "float64", "float64": "float64", "double": "float64",
    "fp32": "float32", "float32": "float32", "float": "float32",
    "fp16": "float16", "float16": "float16", "half": "float16",
    "bf16": "bfloat16", "bfloat16": "bfloat16",
    "int8": "int8", "uint8": "uint8", "int16": "int16",
    "int32": "int32", "int": "int32",
    "int64": "int64", "long": "int64",
    "bool": "bool",
}  # fmt: skip

_CHANNELS_LAST = ("channels_last", "channels_last_3d")
_ALSO_CHANNELS_LAST = ("nhwc", "ndhwc", "nwc", "nlc", "channelslast", "channels-last")  # other names, for suggestions
_SIZES = pattern(r"[0-9NxX×*\s]+")
_BETWEEN = pattern(r"\s*[xX×*]\s*")
_SHAPES = pattern(r"\s*[0-9N]+(\s*[xX×*]\s*[0-9N]+)*\s*(:\s*[\w.-]+\s*)*(,.*)?", re.DOTALL)
_LIST = pattern(r"[(\[]?[ \t]*((?:[0-9Nn]+[ \t]*,[ \t]*){2,7}[0-9Nn]+)[ \t]*,?[ \t]*[)\]]?((?::[\w.:-]+)?)")
APART = ",\n"  # joins shapes of several `--input`; the line feed tells it from a comma that the user wrote


class InputShape(Struct, frozen=True, kw_only=True):
    """The shape of one input, in elements, and its dtype as torch names it (None: not given)."""

    sizes: tuple[int, ...]
    dtype: str | None = None
    channels_last: bool = False


def parse_shape(text: str, batch: int | None = None) -> InputShape:
    """Reads `256x3x224x224[:dtype][:channels_last]`; a size `N` takes the value of `--batch`. Raises InputFault."""
    sizes_text, *words = (word.strip() for word in text.split(":"))
    channels_last = any(word in _CHANNELS_LAST for word in words)
    words = [word for word in words if word not in _CHANNELS_LAST]
    if len(words) > 1:
        raise InputFault(f"input {text[:60]!r}: write it like 256x3x224x224:fp16:channels_last")
    dtype_text = words[0] if words else ""
    dtype = _dtype(dtype_text) if dtype_text else None
    if dtype_text and dtype is None:
        known = ", ".join(sorted(set(DTYPES.values())))
        word = dtype_text.lower()
        near = "channels_last" if word in _ALSO_CHANNELS_LAST else ""
        hint = f"; did you mean {near!r}?" if near else suggestion(word, (*DTYPES, *_CHANNELS_LAST))
        raise InputFault(f"input {text!r}: unknown dtype {dtype_text!r}{hint or f'; known are {known}'}")
    parts = _BETWEEN.split(sizes_text.strip())
    if len(parts) > LARGEST_RANK:
        raise InputFault(f"input {text[:60]!r}: more than {LARGEST_RANK} sizes")
    images = len(parts) >= 3  # the first of fewer sizes need not be a batch
    if images and batch is not None and parts[0].isdigit() and int(parts[0]) != batch:
        raise InputFault(f"input {text[:60]!r} has a batch of {parts[0]}, --batch says {batch}; write N for it")
    return InputShape(sizes=tuple(_size(part, text, batch) for part in parts), dtype=dtype, channels_last=channels_last)


def parse_shapes(text: str, batch: int | None = None) -> tuple[InputShape, ...]:
    """Reads several shapes separated by commas. Raises InputFault."""
    refuse_lists(text)
    return tuple(parse_shape(part, batch) for part in text.split(","))


def named_inputs(values: Iterable[str] | None) -> dict[str, str]:
    """The text of each `--input`, by name: `x=1x3x8x8` under "x", unnamed ones together and in order under ""."""
    inputs: dict[str, str] = {}
    for value in values or ():
        name, separator, shape = value.rpartition("=")
        key = name if separator else ""
        inputs[key] = f"{inputs[key]}{APART}{shape}" if key in inputs and not separator else shape
    return inputs


def how_to_set(name: str, sizes: Sequence[int | None]) -> str:
    """How the sizes of an input that are None can be given, for a message; no sizes at all: its rank is unknown too."""
    known = any(sizes[1:])
    other = ["224" if known or axis > 1 else "3" for axis in range(1, len(sizes) or 4)]
    shown = [str(size or word) for size, word in zip(sizes or (None,) * 4, ["8", *other], strict=True)]
    enough = bool(sizes) and sizes[0] is None and None not in sizes[1:]
    return f"set it with {'--batch N or ' if enough else ''}--input {name}={'x'.join(shown)}"


def looks_like_shapes(text: str) -> bool:
    """Whether an `--input` is meant as sizes, and not as a function that makes inputs."""
    return _SHAPES.fullmatch(text) is not None


def refuse_lists(text: str) -> None:
    """Raises InputFault where the sizes of one shape are written with commas, which separate inputs.

    Equal numbers without brackets pass: they may be several inputs of one size each.
    """
    match = _LIST.fullmatch(text.strip())
    sizes = re.split(r"\s*,\s*", match[1]) if match is not None else []
    if match is not None and (len(set(sizes)) > 1 or text.strip()[0] in "(["):
        words = (_CHANNELS_LAST[0] if word.lower() in _ALSO_CHANNELS_LAST else word for word in match[2].split(":"))
        meant = "x".join(sizes) + ":".join(words)
        raise InputFault(f"input {text[:60]!r}: commas stand between inputs; did you mean {meant}?")


def by_name(inputs: Mapping[str, str], names: Sequence[str], whose: str) -> dict[str, str]:
    """The text of `--input` for each input that has one; unnamed texts go to the inputs in order.

    `whose` names what has the inputs, such as "the model". Raises InputFault for too many, and for an unknown name.
    """
    unnamed = [shape.strip() for shape in inputs[""].split(",")] if "" in inputs else []
    if len(unnamed) > len(names):
        raise InputFault(f"{len(unnamed)} input shapes are given; there are inputs {', '.join(map(repr, names[:8]))}")
    unknown = next((name for name in inputs if name and name not in names), None)
    if unknown is not None:
        raise InputFault(f"{whose} has no input {unknown!r}; it has {', '.join(map(repr, names[:8]))}")
    return {**dict(zip(names, unnamed, strict=False)), **{name: text for name, text in inputs.items() if name}}


def _size(part: str, text: str, batch: int | None) -> int:
    if part in {"N", "n"}:
        if batch is None:
            raise InputFault(f"input {text!r}: N stands for the batch size, which --batch sets")
        return batch
    if not re.fullmatch(r"[0-9]{1,10}", part) or not 1 <= int(part) <= LARGEST_SIZE:
        raise InputFault(f"input {text[:60]!r}: {part[:20]!r} is not a size; write it like 256x3x224x224")
    return int(part)


def words_of(text: str) -> list[str]:
    """The dtypes and layouts in an `--input`; none for one that names a function."""
    words = []
    for part in text.split(","):
        sizes, *more = part.split(":")
        if _SIZES.fullmatch(sizes):
            words += more
    return words


def states_fp32(text: str) -> bool:
    """Whether an `--input` states the dtype fp32."""
    return any(_dtype(word) == "float32" for word in words_of(text))


def _dtype(word: str) -> str | None:
    return DTYPES.get(word.strip().lower().removeprefix("torch."))


def of_model(network: Network, options: ReadOptions, source: DtypeSource) -> Network:
    """The network with the source of its dtypes: autocast, or another engine, may run fp32 layers in another dtype.

    Any other dtype is deliberate, since fp32 is what models have by default; so is fp32 where an `--input` states it.
    """
    stored = source == "storage"
    if any(map(states_fp32, options.inputs.values())):
        return replace(network, stored=stored)
    layers = tuple(
        replace(layer, dtype_source=source) if layer.dtype == Dtype.fp32 else layer for layer in network.layers
    )
    return replace(network, layers=layers, stored=stored)


MOST_TEXT = 2_000  # characters of a reference
_LOOKS = pattern(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*(\(.*\)[\w.]*)?", re.DOTALL)


def looks_like_reference(text: str) -> bool:
    """Whether a word on the command line is written like a reference; its arguments may still be wrong."""
    return len(text) <= MOST_TEXT and _LOOKS.fullmatch(text) is not None


class Model(Struct, frozen=True, kw_only=True):
    """A model that the config names: how it is built and called, and how it runs.

    `inputs` are texts as `--input` takes them; `settings` are those of the runtime; `path` is the config.
    """

    reference: str
    path: str
    inputs: Mapping[str, str] = {}
    channels_last: bool = False
    autocast: str | None = None
    mode: Mode | None = None
    trains: bool | None = None  # whether it is followed in train mode; None: as `mode` says
    targets: tuple[str, ...] = ()
    settings: Mapping[str, Any] = {}
    spans: Mapping[str, Span] = {}  # in `path`: of the settings, of `model`, `inputs`, `target` and `mode`
    folder: str = "."  # of the config, from which modules are imported


@equal_without("text", "raw", "model")
class Input(Struct, frozen=True, kw_only=True):
    """One thing to read. Only a `module` runs code; nothing that lies on disk ever becomes one, whatever its name."""

    kind: Literal["file", "stdin", "module", "source"]
    name: str  # a path, "-", or package.module:name; for source, its only file or the folder of its repository
    text: str | None = None  # the content of a file that was opened to tell what it is
    copy: str = ""  # the path of a copy of the file, which is read instead
    raw: bytes | None = None  # the content of standard input that is to be edited, as it can be read only once
    model: Model | None = None  # the model of the config, where `name` is its name there
    members: tuple[str, ...] = ()  # the files of source
    named: frozenset[str] = frozenset()  # those of `members` that the user named: their faults are errors
    root: str = ""  # the folder that source imports from
    part: tuple[str, ...] = ()  # those of `members` that this one of several processes reads


def file_input(path: str) -> Input:
    """The file at `path`; `-` is a file of this name."""
    return Input(kind="file", name=os.path.join(".", path) if path == "-" else path)


def source_input(path: str, *, named: bool) -> Input:
    """The Python file or notebook at `path`, alone."""
    return Input(kind="source", name=path, members=(path,), named=frozenset({path} if named else ()))


def decide(word: str, *, modules: bool = True) -> Input:
    """The input that `word`, as the user typed it, names.

    A module only if `modules` allows it, the word is written `package.module:name`, called or not, has no suffix that a
    reader knows, and nothing of that name exists: a file in a downloaded repository must not make code run.
    """
    if word == "-":
        return Input(kind="stdin", name=word)
    if modules and looks_like_reference(word) and find_format(word) is None and not _may_exist(word):
        return Input(kind="module", name=word)
    return file_input(word)


def _may_exist(path: str) -> bool:
    """False only where the file system states that nothing has this name; any other answer must not make code run."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return True
