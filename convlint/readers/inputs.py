"""What a word of the user's names: a file, standard input or a module. Decided here, once, and carried from then on."""

from __future__ import annotations

import os
import re
from typing import Literal

from msgspec import Struct

from convlint.model.equality import equal_without
from convlint.readers import find_format

_MODULE_REFERENCE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


@equal_without("text")
class Input(Struct, frozen=True, kw_only=True):
    """One thing to read. Only `module` runs code; nothing that lies on disk, whatever its name, ever becomes one."""

    kind: Literal["file", "stdin", "module"]
    name: str  # a path, "-", or package.module:name
    text: str | None = None  # of a file that was opened to tell what it is


def file_input(path: str) -> Input:
    """The file at `path`; also one that is called `-`."""
    return Input(kind="file", name=os.path.join(".", path) if path == "-" else path)


def decide(word: str, *, modules: bool = True) -> Input:
    """What `word`, as the user typed it, names.

    A module only where `modules` allows it, the word is written `package.module:name`, has no suffix that a reader
    knows, and nothing of that name exists, not even a broken link.
    """
    if word == "-":
        return Input(kind="stdin", name=word)
    if modules and _MODULE_REFERENCE.fullmatch(word) and find_format(word) is None and not _may_exist(word):
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
