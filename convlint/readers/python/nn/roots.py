"""Running the roots of a file: each function and class, strict and with defaults, and the networks that they give."""

from __future__ import annotations

from convlint.readers.python.evaluator.limits import STEPS_OF_MODULE, STEPS_OF_NOTHING
from convlint.readers.python.evaluator.machine import Exhausted, Machine
from convlint.readers.python.evaluator.memory import Recorded
from convlint.readers.python.evaluator.root_run import charge, reset
from convlint.readers.python.evaluator.values import Class, Const, Function, Instance, Items, Tensor, Value
from convlint.readers.python.nn.arguments import collect
from convlint.readers.python.nn.flow import SOMETHING, Flow, Reader, Shape
from convlint.readers.python.nn.frameworks import Frameworks
from convlint.readers.python.nn.gathering import Gathering
from convlint.readers.python.nn.modules import everything, is_module
from convlint.readers.python.nn.origins import forward_of
from convlint.readers.python.nn.recording import Constructed, Convolution, Escaped, Recording
from convlint.readers.python.source_file import SourceFile

_MOST_NETWORKS = 8  # that are run of those that one root gives


def run_twice(
    machine: Machine, library: Frameworks, root: Function | Class, gathering: Gathering, shape: Shape | None
) -> None:
    """Evaluate the root strictly; then with its parameters at their defaults, where that can tell more."""
    known = _run(machine, library, root, gathering, shape, defaults=False)
    if not known and _has_defaults(machine, root):
        _run(machine, library, root, gathering, shape, defaults=True)


def run_body(machine: Machine, library: Frameworks, path: str, gathering: Gathering, shape: Shape | None) -> None:
    """Add the networks that the module itself makes and keeps, as scripts do, and run them on an input."""
    scope = machine.run_module(path)
    if scope is None:
        return
    held = [value for value in scope.variables.values() if isinstance(value, Instance) and is_module(value)]
    layers = {id(each.extra): each.extra for value in held for _, each in everything(value)
              if isinstance(each.extra, Convolution)}  # fmt: skip
    if not layers:
        return
    library.recording = Recording()
    recorded = [Recorded(Constructed(layer), (), ()) for layer in layers.values()]
    machine.steps = STEPS_OF_MODULE
    parts = {id(child) for value in held for _, child in everything(value) if child is not value}
    for network in held[:_MOST_NETWORKS]:
        if id(network) not in parts and id(network) not in library.recording.called:
            library.recording.run += 1
            recorded += _forward(machine, scope.file, network, shape)
    kept: list[Value] = [*held]
    gathering.add(recorded, library.recording, kept, certainty="stated", path=path, root=path, whole=machine.steps >= 0)
    library.recording = Recording()


def _has_defaults(machine: Machine, root: Function | Class) -> bool:
    function: Value | None = root if isinstance(root, Function) else machine.classes.find(root, "__init__")[0]
    if not isinstance(function, Function):
        return isinstance(root, Class) and root.fields is not None
    args = function.node.args
    return bool(function.defaults or function.kw_defaults or args.kwarg or args.vararg)


def _run(
    machine: Machine, library: Frameworks, root: Function | Class, gathering: Gathering, shape: Shape | None, *,
    defaults: bool,
) -> bool:  # fmt: skip
    """Evaluate the root, run what it gives on an input, add all that was seen; whether nothing more could be."""
    library.recording = Recording()
    run = machine.run_root(root, defaults)
    recorded, whole = list(run.recorded), machine.steps >= 0
    if recorded:
        _hand_out(run.value)
        for network in _networks(run.value):
            if id(network) not in library.recording.called:
                library.recording.run += 1
                passed = _forward(machine, root.file, network, shape)
                recorded += passed
                whole = whole and machine.steps >= 0
        gathering.add(
            recorded, library.recording, [run.value, *run.besides], certainty="with defaults" if defaults else "stated",
            path=root.file.path, root=f"{root.file.path}:{root.name}", whole=whole,
        )  # fmt: skip
    library.recording = Recording()
    told = [each for each in recorded if isinstance(each.thing, (Constructed, Escaped))]
    return bool(told) and whole and all(_is_whole(each) for each in told)


def _is_whole(recorded: Recorded) -> bool:
    """Whether a convolution was surely constructed, everything of it is known, and it went nowhere unseen."""
    return isinstance(recorded.thing, Constructed) and not recorded.conditions and recorded.thing.layer.whole


def _networks(value: Value) -> list[Instance]:
    """The modules that a value is, or that it lists."""
    values = [value, *(value.items if isinstance(value, Items) else ())]
    return [each for each in values if isinstance(each, Instance) and is_module(each)][:_MOST_NETWORKS]


def _forward(machine: Machine, file: SourceFile, network: Instance, shape: Shape | None) -> list[Recorded]:
    """The network run on what it would be given."""
    inputs: list[Value] = [Tensor(Flow(shape if index == 0 else None, raw=True))
                           for index in range(_inputs(machine, network))]  # fmt: skip
    journal = machine.journals.begin()
    machine.recorded, machine.remembered = [], 0
    start, cut = machine.steps, False
    machine.floor = max(start - STEPS_OF_NOTHING, 0)
    try:
        value = machine.call(network, inputs, {}, machine.no_call(file.tree), file)
        _hand_out(value)
    except (Exhausted, RecursionError):
        cut = True
    charge(machine, file.path, start - machine.steps - machine.remembered)
    machine.steps, machine.floor = -1 if cut else machine.steps, 0
    reset(machine, journal)
    recorded, machine.recorded = machine.recorded, []
    return recorded


def _hand_out(value: Value) -> None:
    """The tensors that a root or a forward pass gives may be read by anything."""
    found: list[Flow] = []
    collect([value], found)
    for each in found:
        each.readers.append(Reader("returned", (), ()))


def _inputs(machine: Machine, network: Instance) -> int:
    """How many tensors its forward must be given."""
    forward = forward_of(machine, network)
    if not isinstance(forward, Function):
        return 1
    wanted = len(forward.node.args.posonlyargs) + len(forward.node.args.args) - 1 - len(forward.defaults)
    return max(wanted, 1)


def input_tensor(shape: tuple[int, ...] | None) -> Shape | None:
    """The shape of the network's input, the batch first where it is given."""
    if shape is None:
        return None
    sizes: Shape = tuple(Const(size) for size in shape)
    return sizes if len(shape) > 3 else (SOMETHING, *sizes)
