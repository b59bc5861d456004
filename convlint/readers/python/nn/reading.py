"""The convolutions that Python files construct, read and not run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from convlint.model.source import SourceLayer, Unread
from convlint.readers.python.evaluator.choosing import Choices, Side, Untaken
from convlint.readers.python.evaluator.limits import steps_of_file
from convlint.readers.python.evaluator.machine import Machine
from convlint.readers.python.evaluator.values import Class, Unknown
from convlint.readers.python.nn.convolutions import argument
from convlint.readers.python.nn.frameworks import Frameworks
from convlint.readers.python.nn.frozen_norms import FrozenNorms
from convlint.readers.python.nn.gathering import Gathering, Seen
from convlint.readers.python.nn.kinds import FRAMEWORK_WORDS
from convlint.readers.python.nn.merging import merged
from convlint.readers.python.nn.naming import names
from convlint.readers.python.nn.plain_classes import PlainClasses
from convlint.readers.python.nn.relevance import Relevance, names_convolution
from convlint.readers.python.nn.roots import input_tensor, run_body, run_twice
from convlint.readers.python.nn.sites import Sites
from convlint.readers.python.programs.closure import Imports
from convlint.readers.python.project import Project
from convlint.readers.python.source_file import is_quiet

Key = tuple[str, int, int]  # path, line and column of a construction


class LayersRead(NamedTuple):
    """What was read. `known` counts the constructions of which C and K are known at least once."""

    layers: tuple[SourceLayer, ...]
    constructions: int
    known: int
    unread: tuple[Unread, ...]
    left: frozenset[Side] = frozenset()  # sides of conditions that some run left out
    taken: frozenset[Side] = frozenset()  # and those that some took, or may take


def read_layers(imports: Imports, paths: Sequence[str], *, input_shape: tuple[int, ...] | None = None) -> LayersRead:
    """Every convolution that the files construct; `input_shape` is that of a network's input, with or without batch."""
    project = imports.project
    given = [path for path in dict.fromkeys(paths) if not is_quiet(path)]
    library, gathering = Frameworks(), Gathering()
    machine = Machine(project, library)
    machine.steps_of_file = steps_of_file(sum(map(names_convolution, map(project.content, project.given))))
    relevance = Relevance(imports)
    shape = input_tensor(input_shape)
    sites = Sites(project)
    plain = PlainClasses(sites)
    for path in given:
        content = project.content(path)
        if content is None or not any(word in content for word in FRAMEWORK_WORDS):
            continue
        before = len(gathering.seen)
        run_body(machine, library, path, gathering, shape)
        later: list[Class] = []
        for root in machine.roots(path):
            if not relevance.may_construct(root):
                continue
            if isinstance(root, Class) and plain.holds(root):
                later.append(root)
            else:
                run_twice(machine, library, root, gathering, shape)
        told = plain.told(later, islice(gathering.seen.values(), before, None)) if later else set[int]()
        for root in later:
            if id(root) not in told:
                run_twice(machine, library, root, gathering, shape)
    return _report(imports, given, gathering.seen.values(), machine.choices, sites)


def _report(
    imports: Imports, given: list[str], seen: Iterable[Seen], choices: Choices, sites: Sites
) -> LayersRead:  # fmt: skip
    project = imports.project
    at: dict[Key, list[Seen]] = {}
    wanted = set(given)
    for each in seen:
        file, node = each.layer.place
        if not file.is_quiet:
            at.setdefault((file.path, node.lineno, node.col_offset), []).append(each)
    reported = wanted.union(project.given)
    layers: list[SourceLayer] = []
    named: dict[str, dict[int, str]] = {}
    frozen = FrozenNorms(imports)
    for (path, *_), group in sorted(at.items()):
        file, node = group[0].layer.place
        if path not in named:
            named[path] = names(file)
        found = merged(group, named[path].get(id(node), ""))
        if any(layer.layer.norm_follows or layer.silent for layer in found) and frozen.in_file(path):
            found = [_before_frozen(layer) for layer in found]
        layers += [layer for layer in found if path in reported or _states(layer, reported)]
    places = _places(project, given, at, sites)
    known = {_key(layer) for layer in layers if layer.layer.C is not None and layer.layer.K is not None}
    return LayersRead(
        tuple(layers), len(places), sum(1 for place in places if _start(place, project, places[place]) in known),
        tuple(_unread(project, places, known, at, Untaken(choices.left, choices.taken))),
        frozenset(choices.left), frozenset(choices.taken),
    )  # fmt: skip


def _before_frozen(layer: SourceLayer) -> SourceLayer:
    """The layer, of whose norm nobody knows what it subtracts."""
    return replace(layer, layer=replace(layer.layer, norm_follows=None), silent=False)


def _states(layer: SourceLayer, paths: set[str]) -> bool:
    return any(stated.at.path in paths for group in layer.stated.values() for stated in group)


def _places(project: Project, given: list[str], at: dict[Key, list[Seen]], sites: Sites) -> dict[Key, ast.Call]:
    """The places of construction in the files: by names, and those that the evaluation found besides."""
    found: dict[Key, ast.Call] = {}
    for path in given:
        content = project.content(path)
        if content is None or not any(word in content for word in FRAMEWORK_WORDS):
            continue
        found.update(((path, call.lineno, call.col_offset), call) for call in sites.of(path))
    wanted = set(given)
    found.update((key, group[0].layer.place.node) for key, group in at.items() if key[0] in wanted)
    return dict(sorted(found.items(), key=lambda each: each[0]))


def _key(layer: SourceLayer) -> tuple[str, int | None, int | None]:
    where = layer.layer.locate()
    return where.path, where.line, where.column


def _start(key: Key, project: Project, node: ast.Call) -> tuple[str, int | None, int | None]:
    file = project.file(key[0])
    assert file is not None
    where = file.locate(node)
    return where.path, where.line, where.column


def _unread(
    project: Project, places: dict[Key, ast.Call], known: set[tuple[str, int | None, int | None]],
    at: dict[Key, list[Seen]], untaken: Untaken,
) -> Iterable[Unread]:  # fmt: skip
    for key, node in places.items():
        file = project.file(key[0])
        if file is not None and _start(key, project, node) not in known:
            why = _why(at.get(key, []))
            yield Unread(at=file.locate(node), why="untaken" if untaken.holds(key[0], key[1]) else why, otherwise=why)


def _why(seen: list[Seen]) -> str:
    """Why C or K is unknown: as the last of them says; of what no root ever reached, that nobody calls it."""
    for each in reversed(seen):
        for name in ("in_channels", "out_channels", "groups"):
            value = argument(each.layer, name)
            if isinstance(value, Unknown):
                return value.why
    return "call" if seen else "caller"
