"""Where in the user's files a convolution stands."""

from __future__ import annotations

import os
from pathlib import Path

SITE = "_convlint_site"  # attribute of a convolution module: (file, line) of its construction


def inside_torch() -> str:
    """The prefix of every file of torch's own. Imports torch."""
    import torch

    return str(Path(torch.__file__).parent) + os.sep


def relative(path: str) -> str:
    """The path as seen from the current directory, where it lies below it."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path
