"""From the arguments of a command to its inputs: the files in folders and of globs that a reader knows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice

from msgspec.structs import replace

from convlint.files.patterns import pattern
from convlint.model.errors import InputFault, UsageError, shown
from convlint.model.report import InputError
from convlint.readers import Format, find_format, known_suffixes
from convlint.readers.inputs import Input, decide, file_input, source_input
from convlint.readers.spec.fields import Look, look

SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages", "venv", "build", "dist"})
MOST_FILES = 100_000  # of one argument; a home folder that is named by mistake must not be listed for minutes
MOST_DEPTH = 200  # of folders inside each other
MOST_HELD = 1 << 23  # characters of specs that are kept once they are recognised, so that no file is read twice
_SHARD = pattern(r"-\d{5}-of-\d{5}\.safetensors$")
_IN_PYTHON = "`convlint check package.module:Net --input 64x3x224x224`"
MAGIC = pattern(r"[*?\[]")
HOLDS_NOTHING, MATCHES_NOTHING = "holds nothing that convlint reads", "matches nothing that convlint reads"
_EMPTY = "an empty word names no input; the current folder is ."  # as of a variable that nobody has set
_NOTHING_WANTED = "holds nothing to check: all of it is excluded, or no spec"


def discover(
    arguments: Iterable[str],
    *,
    modules: bool = True,
    specs_only: bool = False,
    source: bool = True,
    wanted: Callable[[str], bool] = lambda _: True,
) -> tuple[tuple[Input, ...], tuple[InputError, ...]]:
    """The inputs that `arguments` stand for, in a fixed order, and an error for each that stands for none.

    A file, `-` and, unless `modules` is false, `package.module:name` stand for themselves. A folder stands for the
    `wanted` files below it that a reader knows, a glob (also with `**`) for those that it matches. Folders that are
    hidden or hold other people's code are not entered, nor are links to folders, which could form a circle.

    YAML and JSON files serve many purposes: in folders, and with `specs_only` also where they are named, only specs are
    inputs, and take their text along. Python files and notebooks are inputs unless `source` is false; then they are
    passed over in folders, and with `specs_only` everywhere.
    """
    discovered: dict[Input, None] = {}
    errors: list[InputError] = []
    memo = _Memo()
    for argument in arguments:
        if not argument:
            errors.append(InputError(path="", message=_EMPTY))
            continue
        closed: list[InputError] = []
        listed = None if argument == "-" else _listed(argument, source, closed)
        if listed is None:
            named_input = decide(argument, modules=modules)  # if it cannot be read, its reader reports that
            if is_source(named_input):
                if source:
                    discovered[source_input(named_input.name, named=True)] = None
                elif not specs_only:
                    discovered[named_input] = None
                continue
            discovered.update(dict.fromkeys(_specs(named_input, memo) if specs_only else [named_input]))
            continue
        inside, problem = listed
        try:
            files = dict(islice(_candidates(inside, wanted, memo), MOST_FILES + 1))
        except InputFault as fault:
            errors.append(InputError(path=argument, message=fault.message))
            continue
        closed = [error for error in closed if wanted(error.path) and wanted(os.path.join(error.path, "a.yaml"))]
        errors += closed
        candidates = [files[path] for path in without_shards(sorted(files))]
        inputs = [source for source in candidates if source is not None]
        if len(files) > MOST_FILES:
            message = f"holds more than {MOST_FILES:,} files; name a smaller part"
        elif not files and closed:
            continue
        elif not files:
            message = nothing_in(argument, problem, source=source)
        elif not inputs:
            message = _NOTHING_WANTED
        else:
            discovered.update(dict.fromkeys(inputs))
            continue
        errors.append(InputError(path=argument, message=message))
    return tuple(discovered), tuple(errors)


def _listed(argument: str, source: bool, closed: list[InputError]) -> tuple[Iterator[str], str] | None:
    """The files that a folder or a glob stands for, and what is wrong if there are none; None for anything else.

    Folders that cannot be read are added to `closed` while the files are walked.
    """
    there = exists(argument)
    if there == "folder":
        return files_below(argument, source, closed), HOLDS_NOTHING
    if there is None and MAGIC.search(argument):  # a file may well be called net[1].yaml
        return files_matching(argument, source, closed), MATCHES_NOTHING
    return None


def nothing_in(argument: str, problem: str, *, source: bool) -> str:
    """The message for a folder or glob without any file that a reader knows."""
    if os.path.exists(os.path.join(argument, "saved_model.pb")):  # a SavedModel is a folder
        from convlint.readers.refusals import SAVED_MODEL

        return SAVED_MODEL
    suffixes = ", ".join(sorted(known_suffixes(refused=False, source=source, named=False)))
    return (
        f"{problem} ({suffixes}). A model in Python: {_IN_PYTHON}, "
        "or under [[tool.convlint.models]] in pyproject.toml; `convlint export` makes it a spec"
    )


class _Memo:
    """Keeps the texts that were read to recognise specs, up to MOST_HELD characters; other files are read again."""

    def __init__(self) -> None:
        self._remaining = MOST_HELD

    def input(self, path: str, seen: Look) -> Input:
        """The file as an input, with its text if there is room."""
        if seen.text is None or len(seen.text) > self._remaining:
            return file_input(path)
        self._remaining -= len(seen.text)
        return replace(file_input(path), text=seen.text)


def _specs(named_input: Input, memo: _Memo) -> Iterator[Input]:
    """The input that is named, unless it is YAML or JSON but no spec."""
    if named_input.kind != "file" or not is_shared(find_format(named_input.name)):
        yield named_input
        return
    seen = look(named_input.name, named=True)
    if seen.verdict == "spec":
        yield memo.input(named_input.name, seen)


def is_source(source: Input) -> bool:
    """Whether an input is Python source, by its name."""
    known = find_format(source.name) if source.kind == "file" else None
    return known is not None and known.source


def _candidates(paths: Iterable[str], wanted: Callable[[str], bool], memo: _Memo) -> Iterator[tuple[str, Input | None]]:
    """Yields each path that is not foreign, with its input; None instead if the file is not wanted or no spec."""
    for path in paths:
        source = file_input(path)
        is_wanted = wanted(source.name)
        if is_source(source):
            source = source_input(source.name, named=False)
        if not is_shared(find_format(path)):
            yield path, source if is_wanted else None
            continue
        seen = look(path, whole=is_wanted)
        if seen.verdict != "foreign":
            yield path, memo.input(path, seen) if is_wanted and seen.verdict == "spec" else None


def is_shared(known: Format | None) -> bool:
    """Whether only the content of a file tells that it is of this format."""
    return known is not None and known.shared


def exists(path: str) -> str | None:
    """Whether a path is a folder ("folder"), anything else ("file"), or does not exist (None)."""
    if os.path.isdir(path):
        return "folder"
    return "file" if os.path.lexists(path) else None


def files_below(folder: str, source: bool, closed: list[InputError]) -> Iterator[str]:
    """The files below a folder that a reader knows by name; each folder is sorted. Raises InputFault.

    Folders that cannot be read are added to `closed`.
    """
    from pathlib import Path  # slow to import, and not needed for named files

    depth = folder.rstrip(os.sep).count(os.sep)

    def keep(error: OSError) -> None:
        closed.append(InputError(path=str(error.filename), message=f"cannot be read: {error.strerror}"))

    for here, folders, files in os.walk(folder, onerror=keep, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in SKIPPED_FOLDERS)
        if folders and here.count(os.sep) - depth >= MOST_DEPTH:
            raise InputFault(f"holds folders that nest deeper than {MOST_DEPTH} levels")
        for name in sorted(files):
            path = str(Path(here) / name)
            if not name.startswith(".") and _is_input(path, source):
                yield path


def files_matching(pattern: str, source: bool, closed: list[InputError]) -> Iterator[str]:
    """The files that match a glob, without following links to folders, as `glob` would. Raises UsageError."""
    from pathlib import Path

    from convlint.files.globs import path_expression, refusal  # named files need no patterns

    parts = Path(pattern).parts
    fixed = next(index for index, part in enumerate(parts) if MAGIC.search(part))
    reason = refusal("/".join(parts[fixed:]))
    if reason is not None:
        raise UsageError(f"{shown(pattern)!r}: {reason}")
    root = Path(*parts[:fixed])
    expression = path_expression(parts[fixed:], below=False)
    for path in files_below(str(root), source, closed):
        if expression.match(f"/{Path(path).relative_to(root).as_posix()}"):
            yield path


def _is_input(path: str, source: bool) -> bool:
    """Whether a file in a folder is read; files of refused formats are skipped, since the user has not named them."""
    known = find_format(path)
    if known is None or known.refused or known.named or (known.source and not source):
        return False
    return os.path.isfile(path)


def without_shards(files: list[str]) -> list[str]:
    """The files without the parts of a sharded checkpoint whose index is among them, since the index names them."""
    folders = {os.path.dirname(path) for path in files if path.endswith(".safetensors.index.json")}
    return [path for path in files if not (_SHARD.search(path) and os.path.dirname(path) in folders)]


def streamed(
    argument: str, *, modules: bool = True, wanted: Callable[[str], bool] = lambda _: True
) -> Iterator[Input | InputError]:
    """The inputs that an argument stands for, one by one while folders are being walked; an error where it has none.

    Like `discover`, except for Python source, which is skipped in folders, and is an input like any other where it is
    named.
    """
    if not argument:
        yield InputError(path="", message=_EMPTY)
        return
    closed: list[InputError] = []
    listed = _listed(argument, False, closed)
    if listed is None:
        yield decide(argument, modules=modules)
        return
    inside, problem = listed
    any_file = any_wanted = False
    try:
        for _, paths in groupby(inside, os.path.dirname):
            for path in without_shards(list(paths)):  # an index lies in the folder of its shards
                kind = look(path).verdict if is_shared(find_format(path)) else "spec"
                any_file = any_file or kind != "foreign"
                if kind == "spec" and wanted(path):
                    any_wanted = True
                    yield file_input(path)
    except InputFault as fault:
        yield InputError(path=argument, message=fault.message)
        return
    yield from closed
    if not any_file and not closed:
        yield InputError(path=argument, message=nothing_in(argument, problem, source=False))
    elif any_file and not any_wanted:
        yield InputError(path=argument, message=_NOTHING_WANTED)
