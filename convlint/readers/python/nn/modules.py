"""Modules that hold others: what they hold, how that changes, and what a container does to a tensor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator.values import Const, Instance, Items, Name, Table, Unknown, Value
from convlint.readers.python.nn.kinds import CONTAINERS
from convlint.readers.python.nn.layers import Layer
from convlint.readers.python.nn.recording import Convolution, Held, Lined
from convlint.readers.python.nn.reshaping import bounds_of

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

MOST_CHILDREN = 4000
MOST_MODULES = 50_000
DEEPEST = 40  # modules within modules
_SEQUENTIAL = "torch.nn.Sequential"


def is_container(value: Value) -> bool:
    """Whether it is a Sequential or its like, or of a class of the source that is one."""
    return isinstance(value, Instance) and isinstance(value.extra, Layer) and value.extra.kind in CONTAINERS


def put(machine: Machine, owner: Instance, name: str, value: Value) -> None:
    """A module becomes a child of another, by a name."""
    machine.touch(owner)
    if isinstance(value, Instance) and isinstance(value.extra, Convolution):
        machine.record(Held(value.extra))
    if is_line(owner):
        if name in owner.attributes:
            rearranged(machine, owner)
        else:
            last = next(reversed(owner.attributes.values()), None)
            _lined(machine, last, value)
    owner.attributes[name] = value


def is_line(owner: Instance) -> bool:
    """Whether it is a framework's own Sequential, which runs what it holds one after the other."""
    return isinstance(owner.cls, Name) and isinstance(owner.extra, Layer) and owner.extra.kind == "sequential"


def _lined(machine: Machine, value: Value | None, after: Value) -> None:
    layer = value.extra if isinstance(value, Instance) else None
    meaning = after.extra if isinstance(after, Instance) else None
    if isinstance(layer, Convolution) and isinstance(meaning, Layer):
        machine.record(Lined(layer, meaning.kind == "norm"))


def rearranged(machine: Machine, owner: Instance) -> None:
    """What stands behind what is another matter now."""
    for value in owner.attributes.values():
        if isinstance(value, Instance) and isinstance(value.extra, Convolution):
            machine.record(Lined(value.extra, None))


def fill(machine: Machine, owner: Instance, args: Iterable[Value], exact: bool) -> None:
    """What a container is constructed with: modules, or a list or dict of them."""
    given = list(args)
    kind = owner.extra.kind
    if not exact:
        owner.complete = False
    if kind in ("list", "dict") or (len(given) == 1 and isinstance(given[0], Table)):
        extend(machine, owner, given[0] if given else Items("list", []))
        return
    for value in given[:MOST_CHILDREN]:
        named = value.items if isinstance(value, Items) and value.kind in ("tuple", "list") else []
        text = named[0].value if len(named) == 2 and isinstance(named[0], Const) else None
        if isinstance(text, str):  # paddle's Sequential(('name', layer), ...)
            put(machine, owner, text, named[1])
        else:
            put(machine, owner, "module" if kind == "wrapper" else _next(owner), value)


def extend(machine: Machine, owner: Instance, more: Value) -> None:
    """The modules of a list or dict are added."""
    if isinstance(more, Table):
        for key, value in list(more.items.items())[:MOST_CHILDREN]:
            put(machine, owner, str(key), value)
        complete = more.complete
    elif isinstance(more, Items):
        for value in more.items[:MOST_CHILDREN]:
            put(machine, owner, _next(owner), value)
        complete = more.complete
    elif isinstance(more, Instance) and is_container(more):
        for name, value in children(more).items():
            put(machine, owner, name if owner.extra.kind == "dict" else _next(owner), value)
        complete = more.complete
    else:
        complete = isinstance(more, Const)
    if not complete:
        machine.touch(owner)
        owner.complete = False


def _next(owner: Instance) -> str:
    number = len(children(owner))
    while str(number) in owner.attributes:
        number += 1
    return str(number)


def children(owner: Instance) -> dict[str, Value]:
    """The modules that it holds, in order; of a container, those that nobody knows too."""
    own = isinstance(owner.cls, Name)
    return {
        name: value
        for name, value in owner.attributes.items()
        if is_module(value) or (value.__class__ is Unknown and (own or name.isdigit()))
    }


def is_module(value: Value) -> bool:
    """Whether it is a layer, a container or an object of a class of the source that is a module."""
    return isinstance(value, Instance) and isinstance(value.extra, (Layer, Convolution))


def part(machine: Machine, owner: Instance, index: Value) -> Value | None:
    """`owner[index]` of a container: a module, or for a slice another container."""
    if isinstance(index, Const) and isinstance(index.value, str):
        return owner.attributes.get(index.value)
    if not owner.complete:
        return None
    held = list(children(owner).values())
    if isinstance(index, Const) and isinstance(index.value, int):
        return held[index.value] if -len(held) <= index.value < len(held) else None
    if isinstance(index, Items) and index.kind == "slice":
        ends = bounds_of(index)
        return made(machine, held[slice(*ends)], owner.extra) if ends else None
    return None


def edit(machine: Machine, owner: Instance, name: str, args: list[Value]) -> Value:
    """A container loses or gets a module at a place: `del`, pop, insert, clear."""
    machine.touch(owner)
    rearranged(machine, owner)
    held = children(owner)
    key = args[0] if args else Const(-1)
    at = key.value if isinstance(key, Const) else None
    gone: Value = Const(None)
    if name == "clear":
        held = {}
    elif isinstance(at, str) and at in held:
        gone = held.pop(at)
    elif isinstance(at, int) and owner.extra.kind != "dict" and -len(held) <= at <= len(held):
        values = list(held.values())
        if name == "insert":
            values.insert(at, args[1] if len(args) > 1 else Unknown("call"))
        elif -len(values) <= at < len(values):
            gone = values.pop(at)
        held = {str(index): value for index, value in enumerate(values)}  # which frameworks number anew
    elif name == "__delitem__" and isinstance(key, Items) and key.kind == "slice" and (ends := bounds_of(key)):
        values = list(held.values())
        del values[slice(*ends)]
        held = {str(index): value for index, value in enumerate(values)}
    else:
        owner.complete = False
        return Unknown("call")
    others = {key: value for key, value in owner.attributes.items() if not is_module(value) and key not in held}
    owner.attributes = {**others, **held}
    return gone if name == "pop" else Const(None)


def made(machine: Machine, held: list[Value], like: Layer | None = None) -> Instance:
    """A new container of these modules, of the same kind as another."""
    layer = like or Layer("sequential", _SEQUENTIAL)
    owner = Instance(Name(layer.name), layer)
    for value in held:
        put(machine, owner, _next(owner), value)
    return owner


def everything(owner: Instance, depth: int = 0) -> list[tuple[str, Instance]]:
    """The module and all those below it, with their names, each once."""
    found: dict[int, tuple[str, Instance]] = {id(owner): ("", owner)}
    _below(owner, "", found, depth)
    return list(found.values())


def _below(owner: Instance, prefix: str, found: dict[int, tuple[str, Instance]], depth: int) -> None:
    for name, value in children(owner).items():
        if isinstance(value, Instance) and id(value) not in found and len(found) < MOST_MODULES:
            found[id(value)] = (prefix + name, value)
            if depth < DEEPEST:
                _below(value, f"{prefix}{name}.", found, depth + 1)
