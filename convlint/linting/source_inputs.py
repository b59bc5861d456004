"""The Python files among the inputs put together: those of one repository under one config are read as one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache

from convlint.linting.plan import Planner
from convlint.readers.inputs import Input


def grouped(inputs: Iterable[Input], planner: Planner) -> list[Input]:
    """The inputs in their order, each group of Python files where its first one stood."""
    members: dict[tuple[int, str], dict[str, bool]] = {}  # config and repository -> path -> whether it was named
    found: list[Input | tuple[int, str]] = []
    for source in inputs:
        if source.kind != "source":
            found.append(source)
            continue
        key = id(planner.configs.of(source.name)), _root(os.path.dirname(source.name))
        if key not in members:
            members[key] = {}
            found.append(key)
        several = members[key]
        several[source.name] = several.get(source.name, False) or bool(source.named)
    return [each if isinstance(each, Input) else _group(each[1], members[each]) for each in found]


def _group(root: str, members: dict[str, bool]) -> Input:
    paths = tuple(sorted(members))
    return Input(
        kind="source",
        name=paths[0] if len(paths) == 1 else root,
        members=paths,
        named=frozenset(path for path, named in members.items() if named),
        root=root,
    )


@cache
def _root(folder: str) -> str:
    from convlint.readers.python.project import root_of

    return root_of(folder or ".")
