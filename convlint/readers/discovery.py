"""Which files of a folder are inputs, and which reader takes each."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from convlint.errors import InputFault, UsageError, shown
from convlint.files.globs import path_expression, refusal
from convlint.model.report import InputError
from convlint.readers import Format, find_format, known_suffixes
from convlint.readers.inputs import Input, decide, file_input, source_input
from convlint.readers.spec.sniff import Look, look

if TYPE_CHECKING:
    pass


# Keras 3 itself loads no SavedModel; both forms are documented by tf2onnx


_T = TypeVar("_T")
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages", "venv", "build", "dist"})
MOST_FILES = 100_000
MOST_DEPTH = 200  # of folders inside each other
MOST_HELD = 1 << 23  # characters of text, of all files together, that are kept from telling specs to reading them
_SHARD = re.compile(r"-\d{5}-of-\d{5}\.safetensors$")
_IN_PYTHON = "`convlint check package.module:Net --input 64x3x224x224`"
MAGIC = re.compile(r"[*?\[]")
HOLDS_NOTHING, MATCHES_NOTHING = "holds nothing that convlint reads", "matches nothing that convlint reads"


def discover(
    arguments: Iterable[str],
    *,
    modules: bool = True,
    specs_only: bool = False,
    source: bool = True,
    wanted: Callable[[str], bool] = lambda _: True,
) -> tuple[tuple[Input, ...], tuple[InputError, ...]]:
    """The inputs that `arguments` mean, in a fixed order, and an error for each that means nothing.

    A file, `-` or, unless `modules` is false, `package.module:name` stands for itself. A folder stands for every file
    below it that a reader knows, a glob (`**` included) for what it matches, of both only what is `wanted`. Folders
    whose name starts with a dot, and those that hold other people's code, are not entered; neither are links to
    folders, so no loop has no end. YAML and JSON serve many ends: in folders, and with `specs_only` also where they
    are named, only specs are meant, and the text that told so goes with the input. Python files and notebooks are
    inputs unless `source` is false; then they are passed over in folders, and with `specs_only` everywhere.
    """
    found: dict[Input, None] = {}
    errors: list[InputError] = []
    held = _Held()
    for argument in arguments:
        there = None if argument == "-" else exists(argument)
        if there == "folder":
            inside = files_below(argument, source)
            what = HOLDS_NOTHING
        elif there is None and MAGIC.search(argument):
            inside = files_matching(argument, source)
            what = MATCHES_NOTHING
        else:
            named = decide(argument, modules=modules)  # where it cannot be read, its reader says why
            if is_source(named):
                if source:
                    found[source_input(named.name, named=True)] = None
                elif not specs_only:
                    found[named] = None
                continue
            found.update(dict.fromkeys(_specs(named, held) if specs_only else [named]))
            continue
        try:
            files = dict(_first(_candidates(inside, wanted, held), MOST_FILES + 1))
        except InputFault as fault:
            errors.append(InputError(path=argument, message=fault.message))
            continue
        meant = [files[path] for path in without_shards(sorted(files))]
        inputs = [source for source in meant if source is not None]
        message = None
        if len(files) > MOST_FILES:
            message = f"holds more than {MOST_FILES:,} files; name a smaller part"
        elif not files:
            message = nothing_in(argument, what, source=source)
        elif not inputs:
            message = "holds nothing to check: all of it is excluded, or no spec"
        if message is None:
            found.update(dict.fromkeys(inputs))
        else:
            errors.append(InputError(path=argument, message=message))
    return tuple(found), tuple(errors)


def nothing_in(argument: str, what: str, *, source: bool) -> str:
    """Why the folder or glob stands for no input, where it holds none of any format."""
    if os.path.exists(os.path.join(argument, "saved_model.pb")):
        from convlint.readers.refusals import SAVED_MODEL

        return SAVED_MODEL
    suffixes = ", ".join(sorted(known_suffixes(refused=False, source=source)))
    return (
        f"{what} ({suffixes}). A model in Python: {_IN_PYTHON}, "
        "or under [[tool.convlint.models]] in pyproject.toml; `convlint export` makes it a spec"
    )


class _Held:
    """The texts that go with inputs, bounded: what is beyond is read again when its turn comes."""

    def __init__(self) -> None:
        self._left = MOST_HELD

    def input(self, path: str, seen: Look) -> Input:
        """The file, with its text while there is room."""
        if seen.text is None or len(seen.text) > self._left:
            return file_input(path)
        self._left -= len(seen.text)
        return replace(file_input(path), text=seen.text)


def _specs(named: Input, held: _Held) -> Iterator[Input]:
    """What is named, unless it is YAML or JSON that is meant for something else."""
    if named.kind != "file" or not is_shared(find_format(named.name)):
        yield named
        return
    seen = look(named.name, named=True)
    if seen.verdict == "spec":
        yield held.input(named.name, seen)


def is_source(source: Input) -> bool:
    """Whether it is Python, by its name."""
    known = find_format(source.name) if source.kind == "file" else None
    return known is not None and known.source


def _candidates(paths: Iterable[str], wanted: Callable[[str], bool], held: _Held) -> Iterator[tuple[str, Input | None]]:
    """Each path that may be an input, and the input if it is one."""
    for path in paths:
        source = file_input(path)
        welcome = wanted(source.name)
        if is_source(source):
            source = source_input(source.name, named=False)
        if not is_shared(find_format(path)):
            yield path, source if welcome else None
            continue
        seen = look(path, whole=welcome)
        if seen.verdict != "foreign":
            yield path, held.input(path, seen) if welcome and seen.verdict == "spec" else None


def is_shared(known: Format | None) -> bool:
    """Whether only the content of such a file tells what it is meant for."""
    return known is not None and known.shared


def exists(path: str) -> str | None:
    """A folder, a file of whatever kind, or None."""
    try:
        if Path(path).is_dir():
            return "folder"
        return "file" if os.path.lexists(path) else None
    except (OSError, ValueError):  # a NUL in the path, a name too long, a link to itself
        return None


def files_below(folder: str, source: bool) -> Iterator[str]:
    """The files in a folder whose names a reader knows, in the alphabetical order of a walk. Raises InputFault."""
    depth = folder.rstrip(os.sep).count(os.sep)
    for here, folders, files in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if not _is_skipped(name))
        if folders and here.count(os.sep) - depth >= MOST_DEPTH:
            raise InputFault(f"holds folders that nest deeper than {MOST_DEPTH} levels")
        for name in sorted(files):
            path = str(Path(here) / name)
            if not name.startswith(".") and _is_input(path, source):
                yield path


def files_matching(pattern: str, source: bool) -> Iterator[str]:
    """Files below the pattern's fixed part that it matches; unlike `glob`, links to folders are not followed."""
    parts = Path(pattern).parts
    fixed = next(index for index, part in enumerate(parts) if MAGIC.search(part))
    reason = refusal("/".join(parts[fixed:]))
    if reason is not None:
        raise UsageError(f"{shown(pattern)!r}: {reason}")
    root = Path(*parts[:fixed])
    wanted = path_expression(parts[fixed:], below=False)
    for path in files_below(str(root), source):
        if wanted.match(f"/{Path(path).relative_to(root).as_posix()}"):
            yield path


def _is_skipped(folder: str) -> bool:
    return (folder.startswith(".") and folder not in {".", ".."}) or folder in SKIPPED_FOLDERS


def _is_input(path: str, source: bool) -> bool:
    """Whether a reader knows the file; the reason for a refusal is told where a file is named, not in a folder."""
    known = find_format(path)
    return known is not None and not known.refused and (source or not known.source) and _is_file(path)


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except OSError:
        return False


def without_shards(files: list[str]) -> list[str]:
    """Leaves out the parts of a sharded checkpoint whose index is among the files: the index covers them."""
    folders = {Path(path).parent for path in files if path.endswith(".safetensors.index.json")}
    return [path for path in files if not (_SHARD.search(path) and Path(path).parent in folders)]


def _first(items: Iterator[_T], most: int) -> list[_T]:
    return [item for item, _ in zip(items, range(most), strict=False)]


def streamed(
    argument: str, *, modules: bool = True, wanted: Callable[[str], bool] = lambda _: True
) -> Iterator[Input | InputError]:
    """What a word of the user's means: itself, or the specs and models of a folder or glob, in the order of a walk.

    An error where it means nothing. As in `discover`, but for Python source, which is passed over in folders, and an
    input like any other where it is named.
    """
    there = exists(argument)
    if there == "folder":
        inside, what = files_below(argument, False), HOLDS_NOTHING
    elif there is None and MAGIC.search(argument):
        inside, what = files_matching(argument, False), MATCHES_NOTHING
    else:
        yield decide(argument, modules=modules)
        return
    any_file = any_wanted = False
    try:
        for _, several in groupby(inside, os.path.dirname):
            for path in without_shards(list(several)):
                kind = _kind(path)
                any_file = any_file or kind != "foreign"
                if kind == "model" and wanted(path):
                    any_wanted = True
                    yield file_input(path)
    except InputFault as fault:
        yield InputError(path=argument, message=fault.message)
        return
    if not any_file:
        yield InputError(path=argument, message=nothing_in(argument, what, source=False))
    elif not any_wanted:
        yield InputError(path=argument, message="holds nothing to check: all of it is excluded, or no spec")


def _kind(path: str) -> str:
    """A model or spec; a file that speaks of layers and is none; or foreign."""
    if not is_shared(find_format(path)):
        return "model"
    verdict = look(path).verdict
    return "model" if verdict == "spec" else verdict
