"""Where in the user's files a convolution stands."""

from __future__ import annotations

import os
from pathlib import Path

SITE = "_convlint_site"  # attribute of a convolution module: (file, line) of its construction


_base: list[Path] = []


def remember_folder() -> Path:
    """The current folder, which paths are shown from: the code that is to run may change it."""
    _base[:] = [Path.cwd()]
    return _base[0]


def inside_torch() -> str:
    """The prefix of every file of torch's own. Imports torch."""
    import torch

    return str(Path(torch.__file__).parent) + os.sep


def relative(path: str) -> str:
    """The path as seen from the folder that was current before any foreign code ran, where it lies below it."""
    try:
        return str(Path(path).relative_to(_base[0]))
    except ValueError:
        return path
