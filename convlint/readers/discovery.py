"""From the paths on the command line to the files to read: folders and globs, sorted, each file once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from convlint.errors import InputFault, UsageError, shown
from convlint.files.globs import path_expression, refusal
from convlint.readers import READERS, SPEC_READER, find_reader
from convlint.readers.inputs import Input, decide, file_input
from convlint.report import InputError

SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages", "venv", "build", "dist"})
MOST_FILES = 100_000
MOST_DEPTH = 200  # of folders inside each other
_REFUSED = "pickle_refusal"  # named explicitly they get their reason; in a folder they are none of our business
_SPEC_HEAD = 1 << 16  # bytes looked at to tell a spec from any other YAML or JSON file
_LAYERS_KEY = re.compile(rb"""(?m)^[ \t]*+[{,]?[ \t]*+["']?layers["']?[ \t]*+:|["']layers["']\s*+:""")
_SHARD = re.compile(r"-\d{5}-of-\d{5}\.safetensors$")
_MAGIC = re.compile(r"[*?\[]")


def discover(arguments: Iterable[str], *, modules: bool = True) -> tuple[tuple[Input, ...], tuple[InputError, ...]]:
    """The inputs that `arguments` mean, in a fixed order, and an error for each that means nothing.

    A file, `-` or, unless `modules` is false, `package.module:name` stands for itself. A folder stands for every file
    below it that a reader knows, a glob (`**` included) for what it matches. Folders whose name starts with a dot, and
    those that hold other people's code, are not entered; neither are links to folders, so no loop has no end.
    """
    found: dict[Input, None] = {}
    errors: list[InputError] = []
    for argument in arguments:
        there = None if argument == "-" else _exists(argument)
        if there == "folder":
            inside = _below(argument)
            what = "holds nothing that convlint reads"
        elif there is None and _MAGIC.search(argument):
            inside = _matching(argument)
            what = "matches nothing that convlint reads"
        else:
            found[decide(argument, modules=modules)] = None  # where it cannot be read, its reader says why
            continue
        try:
            files = _first(inside, MOST_FILES + 1)
        except InputFault as fault:
            errors.append(InputError(path=argument, message=fault.message))
            continue
        if len(files) > MOST_FILES:
            errors.append(
                InputError(path=argument, message=f"holds more than {MOST_FILES:,} files; name a smaller part")
            )
        elif not files:
            errors.append(InputError(path=argument, message=f"{what} ({', '.join(_suffixes())})"))
        else:
            found.update(dict.fromkeys(map(file_input, sorted(_without_shards(files)))))
    return tuple(found), tuple(errors)


def _exists(path: str) -> str | None:
    try:
        if Path(path).is_dir():
            return "folder"
        return "file" if os.path.lexists(path) else None
    except (OSError, ValueError):  # a NUL in the path, a name too long, a link to itself
        return None


def _below(folder: str) -> Iterator[str]:
    depth = folder.rstrip(os.sep).count(os.sep)
    for here, folders, files in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if not _is_skipped(name))
        if folders and here.count(os.sep) - depth >= MOST_DEPTH:
            raise InputFault(f"holds folders that nest deeper than {MOST_DEPTH} levels")
        for name in sorted(files):
            path = str(Path(here) / name)
            if not name.startswith(".") and _is_input(path):
                yield path


def _matching(pattern: str) -> Iterator[str]:
    """Files below the pattern's fixed part that it matches; unlike `glob`, links to folders are not followed."""
    parts = Path(pattern).parts
    fixed = next(index for index, part in enumerate(parts) if _MAGIC.search(part))
    reason = refusal("/".join(parts[fixed:]))
    if reason is not None:
        raise UsageError(f"{shown(pattern)!r}: {reason}")
    root = Path(*parts[:fixed])
    wanted = path_expression(parts[fixed:], below=False)
    for path in _below(str(root)):
        if wanted.match(f"/{Path(path).relative_to(root).as_posix()}"):
            yield path


def _is_skipped(folder: str) -> bool:
    return (folder.startswith(".") and folder not in {".", ".."}) or folder in SKIPPED_FOLDERS


def _is_input(path: str) -> bool:
    """Whether a reader knows the file. YAML and JSON serve many ends: only files with a `layers` key are specs."""
    reader = find_reader(path)
    if reader is None or reader == _REFUSED or not _is_file(path):
        return False
    if reader != SPEC_READER:
        return True
    try:
        with open(path, "rb") as stream:
            return _LAYERS_KEY.search(stream.read(_SPEC_HEAD)) is not None
    except OSError:
        return True  # unreadable: to be reported, not passed over


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except OSError:
        return False


def _without_shards(files: list[str]) -> list[str]:
    """Leaves out the parts of a sharded checkpoint whose index is among the files: the index covers them."""
    folders = {Path(path).parent for path in files if path.endswith(".safetensors.index.json")}
    return [path for path in files if not (_SHARD.search(path) and Path(path).parent in folders)]


def _first(paths: Iterator[str], most: int) -> list[str]:
    return [path for path, _ in zip(paths, range(most), strict=False)]


def _suffixes() -> list[str]:
    return sorted(suffix for suffix, reader in READERS.items() if reader != _REFUSED)
