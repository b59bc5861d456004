"""Read the convolutions that Python files construct, by evaluating each root on unknown and then default arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from operator import itemgetter

from msgspec.structs import replace

from convlint.files.repository import is_quiet
from convlint.model.grouping import grouped
from convlint.model.location import Location
from convlint.model.source import BiasUse, Certainty, SourceLayer, SourceReading, Unread
from convlint.readers.python.evaluator.limits import (
    STEPS_OF_FILE,
    STEPS_OF_MODULE,
    STEPS_OF_NOTHING_OF_MANY,
    steps_of_file,
)
from convlint.readers.python.evaluator.machine import Exhausted, Machine
from convlint.readers.python.evaluator.memory import Recorded
from convlint.readers.python.evaluator.paths import Untaken
from convlint.readers.python.evaluator.values import (
    Cell,
    Class,
    Const,
    Function,
    Instance,
    Items,
    Tensor,
    Unknown,
    Value,
    without_presets,
)
from convlint.readers.python.imports import ProjectImports
from convlint.readers.python.nn.frameworks import Frameworks
from convlint.readers.python.nn.frozen_norms import FrozenNorms
from convlint.readers.python.nn.kinds import FRAMEWORK_WORDS
from convlint.readers.python.nn.layers import Convolution, Record, Recording, argument
from convlint.readers.python.nn.merging import Gathering, Root, Seen, known_places, merged, start, tells
from convlint.readers.python.nn.modules import LOADS, entries_of, everything, forward_of, is_line, is_module
from convlint.readers.python.nn.options import CommandLineOptions
from convlint.readers.python.nn.relevance import Relevance, building, names_convolution
from convlint.readers.python.nn.sites import ConstructionSites, names
from convlint.readers.python.nn.tensors import SOMETHING, Shape, TensorPath, TensorReader, collect
from convlint.readers.python.source_file import SourceFile

_MOST_NETWORKS = 8  # networks run of those in one result
_MOST_ENTRIES = 8  # methods run of a network without a forward pass
# Text of files that load weights, and of those that test something
_LOADS = re.compile(rf"\.(?:{'|'.join(sorted(LOADS))})\(".encode())
_TESTS = re.compile(rb"\bdef test_|\bclass Test|\bpytest\b|\bunittest\b")


def run_twice(
    machine: Machine, library: Frameworks, root: Function | Class, gathering: Gathering, shape: Shape | None
) -> None:
    """Evaluate a root with unknown parameters; then with their defaults, if that can tell more."""
    whole = _run(machine, library, root, gathering, shape, "stated")
    if not whole and (machine.counted or _has_defaults(machine, root)):
        _run(machine, library, root, gathering, shape, "with defaults")
    gathering.settle()


def run_body(machine: Machine, library: Frameworks, path: str, gathering: Gathering, shape: Shape | None) -> None:
    """Add the networks in a module's variables, as scripts create them, and run them on an input."""
    scope = machine.run_module(path)
    if scope is None:
        return
    modules = [value for value in scope.variables.values() if isinstance(value, Instance) and is_module(value)]
    run = library.of_modules[path]
    lines = [line for line in run.lines if id(line) not in run.called]  # also those that a variable held before
    modules += _sequentials([*scope.variables.values(), *lines], modules)
    below = [child for value in modules for _, child in everything(value) if child is not value]
    layers = {id(module.extra): module.extra for module in (*modules, *below) if isinstance(module.extra, Convolution)}
    loaded = [record for record in machine.modules.recorded[path] if record.thing.what == "loaded"]
    layers = layers or {id(record.thing.layer): record.thing.layer for record in loaded}  # of some wrapper of a network
    # Those that no variable holds: of a functional network, or in branches
    loose = [record for record in machine.modules.recorded[path] if id(record.thing.layer) not in layers]
    if loose:
        gathering.add(loose, run, (), Root(path, path, "stated", path not in machine.modules.unfinished))
    if layers:
        library.recording = Recording()
        machine.steps = STEPS_OF_MODULE
        # A part of another network is no network of its own: its input is not the image.
        parts = {id(child) for child in below}
        networks = [value for value in modules if id(value) not in parts]
        networks.sort(key=lambda network: not _convolves(network))
        recorded = [*loaded, *(Recorded(Record("constructed", layer), (), ()) for layer in layers.values())]
        recorded += _all_forwards(machine, library, scope.file, networks[:_MOST_NETWORKS], shape)
        gathering.add(recorded, library.recording, modules, Root(path, path, "stated", machine.steps >= 0))
        library.recording = Recording()


def _has_defaults(machine: Machine, root: Function | Class) -> bool:
    if isinstance(root, Function):
        return _takes_defaults(root)
    init = machine.calls.find(root, "__init__")[0]
    given = _takes_defaults(init) if isinstance(init, Function) else root.fields is not None
    return given or any(map(_takes_defaults, machine.methods(root)))


def _takes_defaults(function: Function) -> bool:
    args = function.node.args
    return bool(function.defaults or function.kw_defaults or args.kwarg or args.vararg)


def _run(
    machine: Machine, library: Frameworks, root: Function | Class, gathering: Gathering, shape: Shape | None,
    certainty: Certainty,
) -> bool:  # fmt: skip
    """Evaluate a root, run its result on an input, and add what was seen; return whether everything is known."""
    library.recording, followed = Recording(), True
    run = machine.run_root(root, certainty == "with defaults")
    networks, recorded, whole = _networks(run.value), run.recorded, run.whole
    networks += _sequentials([run.value, *run.variables], networks)
    if recorded or networks:
        _hand_out([run.value])
        lines = range(root.node.lineno, (root.node.end_lineno or root.node.lineno) + 1)
        recorded = [*recorded, *_all_forwards(machine, library, root.file, networks, shape)]
        whole = whole and machine.steps >= 0
        path = root.file.path
        ran = Root(path, f"{path}:{root.name}", certainty, whole, lines)
        followed = gathering.add(recorded, library.recording, [run.value, *run.besides], ran)
    library.recording = Recording()
    # Every convolution was constructed unconditionally, with known arguments, and did not escape or get out of sight.
    log = [record for record in recorded if record.thing.what in ("constructed", "escaped")]
    machine.counted = machine.counted and bool(log)
    known = all(event.thing.what == "constructed" and not event.conditions and event.thing.layer.whole for event in log)
    return bool(log) and whole and known and followed


def _networks(value: Value) -> list[Instance]:
    """Return the modules that a value is or contains."""
    values = [value, *(value.items if isinstance(value, Items) else ())]
    return [module for module in values if isinstance(module, Instance) and is_module(module)][:_MOST_NETWORKS]


def _sequentials(values: Iterable[Value], others: Iterable[Instance]) -> list[Instance]:
    """Return Keras's Sequentials among values and in attributes of plain objects, but no parts of those or of `others`.

    Only a run shows which channels their layers read, and most code passes them to `fit` instead of returning them.
    """
    by_id: dict[int, Instance] = {}
    for value in values:
        plain = isinstance(value, Instance) and isinstance(value.cls, Class) and not is_module(value)
        for inner in value.attributes.values() if plain and isinstance(value, Instance) else (value,):
            if isinstance(inner, Instance) and is_line(inner) and inner.extra.name == "keras.Sequential":
                by_id[id(inner)] = inner
    if not by_id:
        return []
    # The input of a part is not the image.
    parts = {id(part) for owner in (*by_id.values(), *others) for _, part in everything(owner) if part is not owner}
    known = parts.union(map(id, others))
    owners = [owner for owner in by_id.values() if id(owner) not in known and _convolves(owner)]
    return owners[:_MOST_NETWORKS]


def _convolves(network: Instance) -> bool:
    return any(isinstance(part.extra, Convolution) for _, part in everything(network))


def _all_forwards(
    machine: Machine, library: Frameworks, file: SourceFile, networks: Iterable[Instance], shape: Shape | None
) -> list[Recorded]:
    """Run the networks that have not run yet on an input each; return the records."""
    records: list[Recorded] = []
    whole = True
    for network in networks:
        if id(network) not in library.recording.called:
            for entry in entries_of(machine, network)[:_MOST_ENTRIES] or (None,):
                library.recording.run += 1
                records += run_forward(machine, file, network, shape, entry)
                # Who calls the methods of a network decides what it is.
                whole = whole and machine.steps >= 0 and entry is None
    machine.steps = machine.steps if whole else -1
    return records


def run_forward(
    machine: Machine, file: SourceFile, network: Instance, shape: Shape | None, entry: Function | None = None
) -> list[Recorded]:
    """Run a network, or an `entry` of it, on an input; return the records.

    `machine.steps` are negative if it did not end.
    """
    forward, count = entry or forward_of(machine, network), 1
    if isinstance(forward, Function):
        args = forward.node.args
        # The first argument is taken for the image; others get a tensor of unknown shape.
        count = max(len(args.posonlyargs) + len(args.args) - 1 - len(forward.defaults), 1)
    inputs: list[Value] = [Tensor(TensorPath(None if index else shape, raw=True)) for index in range(count)]
    before = machine.heap.begin()
    machine.recorded, machine.remembered = [], 0
    start, cut = machine.steps, False
    machine.floor, machine.recorded_at = max(start - machine.least_steps, 0), start
    try:
        result = machine.call(entry or network, inputs, {}, machine.no_call(file.tree), file)
        _hand_out([result], "caller" if entry is not None else "returned")
        for _, earlier, now in machine.heap.changed_since(before):  # attributes, lists and dicts that are older
            known = set(map(id, _contents(earlier)))
            _hand_out((value for value in _contents(now) if id(value) not in known), "kept")
    except (Exhausted, RecursionError):
        cut = True
    machine.charge(file.path, start - machine.steps - machine.remembered)
    machine.steps, machine.floor = -1 if cut else machine.steps, 0
    # What the forward pass changed must not be seen by the next network's.
    machine.reset(before)
    recorded, machine.recorded = machine.recorded, []
    return recorded


def _contents(cell: Cell) -> Iterable[Value]:
    return cell.items if isinstance(cell, Items) else cell.items.values()


def _hand_out(values: Iterable[Value], kind: str = "returned") -> None:
    """Mark the tensors in the result of a root or a forward pass as returned, or others as read by that kind."""
    for tensor in collect(values):
        tensor.readers.append(TensorReader(kind, (), ()))


def read_layers(
    imports: ProjectImports, paths: Sequence[str], *, input_shape: tuple[int, ...] | None = None
) -> SourceReading:
    """Read every convolution that the files construct; `input_shape` is the network's, with or without batch.

    The result has the layers, the places that could not be read, and the branches, but nothing of the files.
    """
    project = imports.project
    given = [path for path in dict.fromkeys(paths) if not is_quiet(path)]
    library, gathering = Frameworks(CommandLineOptions(imports)), Gathering(from_image=input_shape is not None)
    machine = Machine(project, library)
    machine.methods = lambda cls: building(cls) if library.subclass_of(cls) is None else ()
    machine.steps_of_file = steps_of_file(sum(map(names_convolution, map(project.content, project.given))))
    if machine.steps_of_file < STEPS_OF_FILE:
        machine.least_steps = STEPS_OF_NOTHING_OF_MANY
    relevance = Relevance(imports)
    shape: Shape | None = None if input_shape is None else tuple(map(Const, input_shape))
    if shape is not None and len(shape) <= 3:
        shape = (SOMETHING, *shape)  # of any batch
    names_framework = cache(lambda path: any(word in (project.content(path) or b"") for word in FRAMEWORK_WORDS))
    # A script may leave the framework to the files that it imports.
    uses = [path for path in given if names_framework(path) or any(map(names_framework, imports.near(path)))]
    read = list(filter(relevance.may_construct_in, uses))
    for path in read:
        machine.memory.forget()
        run_body(machine, library, path, gathering, shape)
        for root in machine.roots(path):
            if relevance.may_construct(root):
                run_twice(machine, library, root, gathering, shape)
    loads = [
        BiasUse(at=at, within=imports.programs_with(at.path), loads=True)
        for at in library.loads_of_any if not is_quiet(at.path)
    ]  # fmt: skip
    reading = replace(_report(machine, imports, given, read, gathering.seen.values()), bias_uses=tuple(loads))
    # Run last, so that they decide nothing else, and only if there is a bias that they could keep.
    if any(layer.layer.bias and layer.layer.norm_follows for layer in reading.layers):
        scripts = [path for path in dict.fromkeys(paths) if is_quiet(path) and _loads(project.content(path) or b"")]
        reading = replace(reading, loaded=_loaded_by(machine, library, scripts))
    return reading


def _loads(content: bytes) -> bool:
    """Whether a file that is called like a test may be a script that loads weights, as `test_image.py` often is."""
    return bool(_LOADS.search(content)) and not _TESTS.search(content)


def _loaded_by(machine: Machine, library: Frameworks, scripts: Iterable[str]) -> dict[Location, Location]:
    """Return where scripts load published weights, by the construction of the layers that get them."""
    gathering = Gathering(from_image=False)
    for path in scripts:
        machine.memory.forget()
        run_body(machine, library, path, gathering, None)
        for root in machine.roots(path):
            run_twice(machine, library, root, gathering, None)
    seen = gathering.seen.values()
    return {entry.layer.place.locate(): entry.loaded_at for entry in seen if entry.loaded_at is not None}


def _report(
    machine: Machine, imports: ProjectImports, given: list[str], read: list[str], seen: Iterable[Seen]
) -> SourceReading:
    choices = machine.choices
    at = grouped([(start(entry.layer.place.locate()), entry) for entry in seen if not entry.layer.place.file.is_quiet])
    own = set(given)
    reported = own.union(imports.project.given)
    layers: list[SourceLayer] = []
    names_in, frozen, sites = cache(names), FrozenNorms(machine, imports), ConstructionSites(machine)
    for (path, *_), group in sorted(at.items(), key=itemgetter(0)):
        file, node = group[0].layer.place
        new = merged(group, names_in(file).get(id(node), ""))
        # Asked only where it matters: the answer takes a search of the repository.
        if any(layer.layer.norm_follows or layer.silent for layer in new) and frozen.in_file(path):
            # A frozen norm does not cancel a bias.
            new = [replace(layer, layer=replace(layer.layer, norm_follows=None), silent=False) for layer in new]
        layers += [
            layer
            for layer in new
            if path in reported
            or any(literal.at.path in reported for group in layer.stated.values() for literal in group)
        ]
    known = known_places(layers)
    stated = known_places(layer for layer in layers if layer.certainty == "stated")
    # The places by names, and those that the evaluation found besides: also in files that another process reads, which
    # may have no root that leads there.
    places = {start(where): where for path in read for where in sites.of(path)}
    places |= {
        key: group[0].layer.place.locate()
        for key, group in at.items()
        if key[0] in own or (key[0] in reported and not is_quiet(key[0]))
    }
    untaken = Untaken(choices.left, choices.taken)
    unread: list[Unread] = []
    by_defaults: list[Unread] = []
    for key, where in sorted(places.items(), key=itemgetter(0)):
        if key not in stated:
            why = _why(at.get(key, []))
            is_left = untaken.holds(where.path, where.line or 0)
            place = Unread(at=where, why="untaken" if is_left else why, otherwise=why)
            (by_defaults if key in known else unread).append(place)
    overridden, kept = machine.calls.defaults()
    return SourceReading(
        layers=tuple(layers), constructions=len(places), known=len(places) - len(unread), unread=tuple(unread),
        by_defaults=tuple(by_defaults),
        left=frozenset(choices.left), refused=frozenset(choices.refused), taken=frozenset(choices.taken),
        overridden=overridden, kept=kept,
    )  # fmt: skip


def _why(seen: list[Seen]) -> str:
    """Return the reason that tells most why C or K is unknown; `caller` if no evaluation reached the construction."""
    values = (argument(entry.layer, name) for entry in seen for name in ("in_channels", "out_channels", "groups"))
    reasons = (value.why for value in without_presets(values) if isinstance(value, Unknown))
    return max(reasons, key=tells, default="call" if seen else "caller")
