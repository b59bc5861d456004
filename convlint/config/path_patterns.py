"""Patterns for paths in the config: `vendor`, `*.gen.yaml`, `models/**/old_*.yaml`, read from a folder."""

from __future__ import annotations

import os
from functools import lru_cache

from msgspec import Struct

from convlint.files.globs import path_expression


class PathPattern(Struct, frozen=True):
    """A pattern and the folder of the config that holds it.

    Without a slash it is matched against every part of a path, else against the path from the folder; what lies in
    a matching folder matches too. `*` and `?` stay within one part, `**` spans any number of them.
    """

    base: str  # absolute
    text: str

    def matches(self, path: str) -> bool:
        """Whether the file or folder at `path` matches."""
        wanted = _parts(self.text)
        below = _below(self.base, path, "" if os.path.isabs(path) else os.getcwd())
        return bool(wanted) and below is not None and path_expression(wanted, below=True).match(below) is not None


@lru_cache(maxsize=1024)
def _parts(text: str) -> tuple[str, ...]:
    text = text.replace(os.sep, "/")
    parts = tuple(part for part in text.split("/") if part not in ("", "."))
    if "/" in text.rstrip("/") or not parts:
        return parts
    return ("**", "*" if parts[0] == "**" else parts[0])


@lru_cache(maxsize=1024)
def _below(base: str, path: str, here: str) -> str | None:
    """The path from `base` as `/a/b`; None where it lies elsewhere. `here` is what a relative path starts from."""
    relative = os.path.relpath(os.path.join(here, path), base).replace(os.sep, "/")
    return None if relative == ".." or relative.startswith("../") else f"/{relative}"
