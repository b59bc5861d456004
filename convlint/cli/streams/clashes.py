"""Refuses, before anything is written, what would destroy a file: outputs on inputs, on each other, on models."""

from __future__ import annotations

import os
import stat
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from convlint.cli.streams.files import open_stream, unwritable
from convlint.errors import UsageError
from convlint.files.private_folder import checkout_of, is_below
from convlint.readers import known_suffixes
from convlint.readers.inputs import Input
from convlint.rulebook.folders import rule_files

if TYPE_CHECKING:
    from convlint.linting.plan import Planner

# What no report and no spec is written over, also where this run does not read it.
_OTHER_MODELS = (".onnx.data", ".onnx_data", ".npz", ".npy", ".gguf")
_MODELS = (
    *(suffix for suffix in known_suffixes(source=False) if not suffix.endswith((".yaml", ".yml", ".json"))),
    *_OTHER_MODELS,
)
_SOURCES = (".py", ".ipynb", ".toml")
_INDEX, _SHARD = ".safetensors.index.json", ".safetensors"

Identity = tuple[object, ...]


class Use(Struct, frozen=True, kw_only=True):
    """A file and what it is to this run, in the words of a message: "an input", "the baseline"."""

    role: str
    path: str


def inputs(sources: Iterable[Input]) -> list[Use]:
    """The files behind the inputs, with the parts of checkpoints that come in several files."""
    uses = []
    for source in sources:
        if source.kind == "module":
            uses += [Use(role="an input", path=file) for file in _module_files(source.name)]
        elif source.kind == "source":
            uses += [Use(role="an input", path=member) for member in source.members]
        elif source.kind == "file":
            uses.append(Use(role="an input", path=source.name))
            if source.name.lower().endswith(_INDEX):
                uses += [Use(role="part of an input", path=part) for part in _shards(source.name)]
    return uses


def in_force(planner: Planner) -> Iterator[Use]:
    """What decides on the plans made so far: configs with those they extend, calibrations and rules."""
    for path in (*planner.configs.files(), *planner.calibrations()):
        yield Use(role="a config in force", path=path)
    for folder in planner.rule_folders():
        for path in rule_files(folder):
            yield Use(role="a rule", path=path)


def _shards(index: str) -> list[str]:
    folder = os.path.dirname(index)
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder or ".") if name.lower().endswith(_SHARD)]
    except OSError:
        return []


def _module_files(reference: str) -> list[str]:
    stem = reference.partition(":")[0].replace(".", os.sep)
    return [f"{stem}.py", os.path.join(stem, "__init__.py")]


def refuse_clashes(outputs: Sequence[Use], sources: Iterable[Use] = ()) -> None:
    """Raises UsageError where an output is one of `sources`, another output, or cannot be written at all.

    Files are told apart by what they are, not by how they are spelled. Devices and pipes may be shared.
    """
    if not outputs:
        return
    for output in outputs:
        _refuse_unwritable(output.path)
    read: dict[Identity, Use] = {}
    for source in sources:
        identity = identify(source.path)
        if identity is not None:
            read.setdefault(identity, source)
    written = _standard_output()
    for output in outputs:
        identity = identify(output.path)
        if identity is None:
            continue
        if identity in read:
            raise written_over(output, read[identity])
        if identity in written:
            other = written[identity]
            raise UsageError(
                f"{other.role} and {output.role} write to the same file: {other.path} and {output.path}; "
                "give each a file of its own"
            )
        written[identity] = output


def written_over(output: Use, source: Use) -> UsageError:
    """What to raise where an output is a file that is read."""
    same = "" if source.path == output.path else f" ({source.path})"
    return UsageError(f"{output.path} is {source.role}{same}; write {output.role} to another file")


def _standard_output() -> dict[Identity, Use]:
    """Where the shell sends it, if that is a file."""
    with suppress(OSError):
        status = os.fstat(1)
        if stat.S_ISREG(status.st_mode):
            return {(status.st_dev, status.st_ino): Use(role="standard output", path="the shell's > or >>")}
    return {}


def identify(path: str) -> Identity | None:
    """What is equal for two paths of one file, links and spellings aside, also where the file does not exist yet.

    None for what may be shared: devices and pipes, and paths such as /dev/stdout.
    """
    if open_stream(path) is not None or "\0" in path:
        return None
    try:
        real = os.path.realpath(path)
        status = os.stat(real)
    except UnicodeError:  # a lone surrogate names no file
        return None
    except OSError:
        folder, name = os.path.split(real)
        if sys.platform in ("win32", "darwin"):  # file systems that commonly take no notice of case
            name = unicodedata.normalize("NFC", name).casefold()
        try:
            parent = os.stat(folder)
        except OSError:
            return real, name
        return parent.st_dev, parent.st_ino, name
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return None
    return status.st_dev, status.st_ino


def refuse_way_out(path: str) -> None:
    """Raises UsageError where links lead from the checkout, or the current folder, to a file that is not in it."""
    real, there = os.path.realpath(path), os.path.abspath(path)
    top = checkout_of(os.path.dirname(there)) or (os.getcwd() if is_below(there, os.getcwd()) else None)
    if top is not None and not is_below(real, os.path.realpath(top)):
        raise UsageError(f"{path} leads out of {top}, to {real}; name that file itself")


def _refuse_unwritable(path: str) -> None:
    """Raises UsageError for what is no file to write a report to."""
    if open_stream(path) is not None:
        return
    status = None
    try:
        real = os.path.realpath(path)
        status = os.stat(real)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from error
    refuse_way_out(path)
    folder = os.path.dirname(real)
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise UsageError(f"{path} is a folder, not a file to write")
    if not os.path.isdir(folder):
        shown = os.path.dirname(path) or folder
        raise UsageError(f"{path} cannot be written: there is no folder {shown}")
    if not os.access(real if status is not None else folder, os.W_OK):
        raise UsageError(f"{path} cannot be written: permission denied")
    if status is not None and stat.S_ISREG(status.st_mode):
        for name in (path.lower(), real.lower()):
            if name.endswith(_MODELS):
                raise UsageError(f"{path} is a model, by its name; write to another file")
            if name.endswith(_SOURCES):
                raise UsageError(f"{path} is source code or a config, by its name; write to another file")
