"""What a word of the user's names: a file, standard input or a module. Decided here, once, and carried from then on.

The Python files of a repository are one input, since they are read together.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from convlint.model.equality import equal_without
from convlint.model.layer import Mode
from convlint.model.location import Span
from convlint.readers import find_format
from convlint.readers.references import looks_like_reference


class Model(Struct, frozen=True, kw_only=True):
    """A model as the config names it: how it is built and called, and what is said of how it runs.

    `inputs` are as `--input` gives them; `settings` are of the runtime, with their places in the file `path`.
    """

    reference: str
    path: str
    inputs: Mapping[str, str] = {}
    channels_last: bool = False
    autocast: str | None = None
    mode: Mode | None = None
    trains: bool | None = None  # followed in train mode; None: as its mode says
    targets: tuple[str, ...] = ()
    settings: Mapping[str, Any] = {}
    spans: Mapping[str, Span] = {}  # of the settings, of `model`, `inputs`, `target` and `mode`
    folder: str = "."  # of the config: modules are imported from there


@equal_without("text", "raw", "model")
class Input(Struct, frozen=True, kw_only=True):
    """One thing to read. Only `module` runs code; nothing that lies on disk, whatever its name, ever becomes one."""

    kind: Literal["file", "stdin", "module", "source"]
    name: str  # a path, "-", or package.module:name; of source, that of its only file or the folder of its repository
    text: str | None = None  # of a file that was opened to tell what it is
    copy: str = ""  # where a copy of the file lies that is read in its place
    raw: bytes | None = None  # of standard input that is to be edited: it can be read once
    model: Model | None = None  # of a module that the config names; `name` is its name there
    members: tuple[str, ...] = ()  # the paths of source, and
    named: frozenset[str] = frozenset()  # those of them that were named: what is wrong with these is an error
    root: str = ""  # the folder that source imports from
    part: tuple[str, ...] = ()  # of `members`, those that one of several processes reads


def file_input(path: str) -> Input:
    """The file at `path`; also one that is called `-`."""
    return Input(kind="file", name=os.path.join(".", path) if path == "-" else path)


def source_input(path: str, *, named: bool) -> Input:
    """The Python file or notebook at `path`, alone."""
    return Input(kind="source", name=path, members=(path,), named=frozenset({path} if named else ()))


def decide(word: str, *, modules: bool = True) -> Input:
    """What `word`, as the user typed it, names.

    A module only where `modules` allows it, the word is written `package.module:name`, called or not, has no suffix
    that a reader knows, and nothing of that name exists, not even a broken link.
    """
    if word == "-":
        return Input(kind="stdin", name=word)
    if modules and looks_like_reference(word) and find_format(word) is None and not _may_exist(word):
        return Input(kind="module", name=word)
    return file_input(word)


def _may_exist(path: str) -> bool:
    """False only where the file system says that there is no such entry: any other answer is no licence to run code."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return True
