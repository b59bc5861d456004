"""Patterns for paths in the config: `vendor`, `*.gen.yaml`, `models/**/old_*.yaml`, read from a folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A pattern and the folder of the config that holds it.

    Without a slash it is matched against every part of a path, else against the path from the folder; what lies in
    a matching folder matches too. `*` and `?` stay within one part, `**` spans any number of them.
    """

    base: str  # absolute
    text: str

    def matches(self, path: str) -> bool:
        """Whether the file or folder at `path` matches."""
        absolute = os.path.abspath(path)
        parts = os.path.relpath(absolute, self.base).replace(os.sep, "/").split("/")
        wanted = [part for part in self.text.replace(os.sep, "/").split("/") if part not in ("", ".")]
        if not wanted or parts[0] == "..":
            return False
        if "/" not in self.text.rstrip("/"):
            return any(fnmatchcase(part, wanted[0]) for part in parts)
        return _matches(parts, wanted)


def _matches(parts: list[str], wanted: list[str]) -> bool:
    """Whether `wanted` matches `parts` or the folders that they begin with; no pattern takes long."""
    reached = {0}  # how many of `wanted` the parts so far may have used up
    for part in [*parts, ""]:
        for index in sorted(reached):
            while index < len(wanted) and wanted[index] == "**":
                index += 1
                reached.add(index)
        if len(wanted) in reached:
            return True
        reached = {
            index if wanted[index] == "**" else index + 1
            for index in reached
            if wanted[index] == "**" or (part and fnmatchcase(part, wanted[index]))
        }
    return False
