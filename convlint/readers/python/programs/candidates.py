"""Which files of a project may begin a program that somebody wants to hear of, by their bytes and imports alone."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

from convlint.readers.python.programs.closure import Imports
from convlint.readers.python.programs.entries import may_be_entry
from convlint.readers.python.programs.relevance import may_set
from convlint.readers.python.source_file import is_quiet

MOST_OTHERS = 20  # programs that are read for a setting in a file that they import


def candidates(imports: Imports, wanted: Collection[str], entries: Sequence[str]) -> list[str]:
    """Those in the files that are `wanted`, or with a setting there; `entries`, where given, are all there are."""
    project = imports.project
    if entries:
        real = {os.path.normpath(os.path.abspath(each)) for each in entries}
        real |= {os.path.normpath(os.path.abspath(os.path.join(project.root, each))) for each in entries}
        return [path for path in project.paths if os.path.normpath(os.path.abspath(path)) in real]
    setting = {path for path in wanted if not is_quiet(path) and may_set(project.content(path) or b"")}
    found = []
    for path in project.paths:
        if is_quiet(path) or (path not in wanted and not setting):
            continue
        if not may_be_entry(project.content(path) or b""):
            continue
        if path in wanted or not setting.isdisjoint(imports.closure(path).files):
            found.append(path)
    others = [path for path in found if path not in wanted]
    return [path for path in found if path in wanted or path in others[:MOST_OTHERS]]
