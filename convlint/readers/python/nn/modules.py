"""Modules and their children: containers, changes to them, and the framework's classes behind those of the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator.library import LibraryCall
from convlint.readers.python.evaluator.values import (
    Class,
    Const,
    Function,
    Instance,
    Items,
    Name,
    Partial,
    Table,
    Unknown,
    Value,
    text_of,
)
from convlint.readers.python.nn.kinds import CONTAINERS, CONVOLUTIONS, canonical, kind_of, words
from convlint.readers.python.nn.layers import ConstructionSite, Convolution, FrameworkLayer, Record
from convlint.readers.python.nn.tensors import bounds_of, integer
from convlint.readers.python.source_file import unparsed

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

MOST_CHILDREN = 4000
MOST_MODULES = 50_000
DEEPEST = 40  # modules within modules
_SEQUENTIAL = "torch.nn.Sequential"


def is_container(value: Value) -> bool:
    """Whether the value is a container such as a Sequential, or of a subclass of one."""
    return isinstance(value, Instance) and isinstance(value.extra, FrameworkLayer) and value.extra.kind in CONTAINERS


def put(machine: Machine, owner: Instance, name: str, value: Value) -> None:
    """Add a child to a container under a name."""
    if isinstance(layer := meaning_of(value), Convolution):
        machine.record(Record("held", layer))
    if is_line(owner):
        # Replacing a child changes what follows the one before it.
        if name in owner.attributes:
            rearranged(machine, owner)
        last, meaning = meaning_of(next(reversed(owner.attributes.values()), None)), meaning_of(value)
        if name not in owner.attributes and isinstance(last, Convolution) and isinstance(meaning, FrameworkLayer):
            machine.record(Record("lined", last, norm=meaning.kind == "norm", defaults=meaning.defaults))
    machine.heap.put(owner, name, value)


def is_line(owner: Instance) -> bool:
    """Whether it is a framework's own Sequential, which runs its children in order."""
    return isinstance(owner.cls, Name) and isinstance(owner.extra, FrameworkLayer) and owner.extra.kind == "sequential"


def meaning_of(value: Value | None) -> FrameworkLayer | Convolution | None:
    """Return the description of an object as a layer; None for anything else."""
    if value.__class__ is not Instance:  # nearly all values
        return None
    extra = value.heap.read(value).extra
    return extra if isinstance(extra, (FrameworkLayer, Convolution)) else None


def rearranged(machine: Machine, owner: Instance) -> None:
    """Record that the order of a container has changed: what follows its convolutions is unknown."""
    for value in owner.attributes.values():
        if isinstance(layer := meaning_of(value), Convolution):
            machine.record(Record("lined", layer))


def fill(machine: Machine, owner: Instance, args: Iterable[Value], exact: bool) -> None:
    """Add the constructor's arguments to a container: modules, or a list or dict of them."""
    given = list(args)
    if not exact:
        machine.heap.edit(owner).complete = False
    # `nn.Sequential(OrderedDict(...))` names its children.
    if owner.extra.kind in ("list", "dict") or (len(given) == 1 and isinstance(given[0], Table)):
        extend(machine, owner, given[0] if given else Items("list", []))
        return
    for value in given[:MOST_CHILDREN]:
        match value:
            case Items(kind="tuple" | "list", items=[Const(value=str(name)), child]):  # paddle's ('name', layer)
                put(machine, owner, name, child)
            case _:
                put(machine, owner, _next(owner), value)


def extend(machine: Machine, owner: Instance, more: Value) -> None:
    """Add the modules of a list, a dict or another container."""
    pairs: Iterable[tuple[str, Value]] = ()
    complete = isinstance(more, Const)
    if isinstance(more, Table):
        pairs, complete = ((str(key), value) for key, value in more.items.items()), more.complete
    elif isinstance(more, Items):
        pairs, complete = (("", value) for value in more.items), more.complete
    elif isinstance(more, Instance) and is_container(more):
        is_dict = owner.extra.kind == "dict"
        pairs, complete = ((name if is_dict else "", child) for name, child in children(more).items()), more.complete
    for name, value in [*pairs][:MOST_CHILDREN]:
        put(machine, owner, name or _next(owner), value)
    if not complete:
        machine.heap.edit(owner).complete = False


def _next(owner: Instance) -> str:
    number = len(children(owner))
    while str(number) in owner.attributes:
        number += 1
    return str(number)


def children(owner: Instance) -> dict[str, Value]:
    """Return the child modules in order; for a container, unknown ones too."""
    # Subclasses have plain attributes too, which are no children.
    own = isinstance(owner.cls, Name)
    return {
        name: value
        for name, value in owner.attributes.items()
        if is_module(value) or (value.__class__ is Unknown and (own or name.isdigit()))
    }


def is_module(value: Value) -> bool:
    """Whether the value is a layer, a container or any other module."""
    return meaning_of(value) is not None


def part(machine: Machine, owner: Instance, index: Value) -> Value | None:
    """Return `owner[index]` of a container: a module, or for a slice a container."""
    if isinstance(index, Const) and isinstance(index.value, str):
        return owner.attributes.get(index.value)
    if not owner.complete:
        return None
    modules = list(children(owner).values())
    if isinstance(index, Const) and isinstance(index.value, int):
        return modules[index.value] if -len(modules) <= index.value < len(modules) else None
    if isinstance(index, Items) and index.kind == "slice":
        ends = bounds_of(index)
        return container_of(machine, modules[slice(*ends)], owner.extra) if ends else None
    return None


def edit(machine: Machine, owner: Instance, name: str, args: list[Value]) -> Value:
    """Remove or insert children of a container: `del`, pop, insert, clear."""
    cell, modules = machine.heap.edit(owner), children(owner)
    rearranged(machine, owner)
    key = args[0] if args else Const(-1)
    gone: Value = Const(None) if name != "pop" else Unknown("call")
    at, values = key.value if isinstance(key, Const) else None, list(modules.values())
    ends = bounds_of(key) if isinstance(key, Items) and key.kind == "slice" and name == "__delitem__" else None
    if isinstance(at, int) and owner.extra.kind != "dict" and -len(modules) <= at <= len(modules):
        ends = [at, None if at == -1 else at + 1, None]
    if name == "clear":
        modules = {}
    elif isinstance(at, str) and at in modules:
        gone = modules.pop(at)
    elif ends:
        where = slice(*ends)
        gone = next(iter(values[where]), gone)
        new = [args[1] if len(args) > 1 else Unknown("call"), *values[where]]
        values[where] = new if name == "insert" else []
        modules = {str(index): value for index, value in enumerate(values)}  # which frameworks number anew
    else:
        cell.complete = False
        return Unknown("call")
    others = {key: value for key, value in owner.attributes.items() if not is_module(value) and key not in modules}
    cell.items = {**others, **modules}
    return gone if name == "pop" else Const(None)


def container_of(machine: Machine, modules: list[Value], like: FrameworkLayer | None = None) -> Instance:
    """Return a new container of these modules, of the same kind as another."""
    layer = like or FrameworkLayer("sequential", _SEQUENTIAL)
    owner = Instance(machine.heap, Name(layer.name), layer)
    owner.first.ordered = layer.kind in CONTAINERS
    for value in modules:
        put(machine, owner, _next(owner), value)
    return owner


def everything(owner: Instance) -> list[tuple[str, Instance]]:
    """Return the module and all its descendants with their names, each once."""
    modules: dict[int, tuple[str, Instance]] = {id(owner): ("", owner)}
    _below(owner, "", modules, 0)
    return list(modules.values())


def _below(owner: Instance, prefix: str, modules: dict[int, tuple[str, Instance]], depth: int) -> None:
    for name, value in children(owner).items():
        if isinstance(value, Instance) and id(value) not in modules and len(modules) < MOST_MODULES:
            modules[id(value)] = (prefix + name, value)
            if depth < DEEPEST:
                _below(value, f"{prefix}{name}.", modules, depth + 1)


# Methods that return the module itself
_GIVES_ITSELF = words("""
    to cuda cpu eval train half float double bfloat16 type requires_grad_ share_memory to_empty apply ipu xpu
""")
_UNKNOWN = words("""
    parameters named_parameters buffers named_buffers state_dict extra_repr __repr__ _get_name
""")
# Methods that change no layer and return nothing
_NOTHING = words("""
    load_state_dict zero_grad register_forward_hook register_forward_pre_hook compile register_full_backward_hook
    reset_parameters init_weights _init_weights load_from_state_dict set_state_dict set_dict add_parameter
    clear_gradients
""")
LOADS = frozenset(("load_state_dict", "set_state_dict", "set_dict", "load_weights"))
# Text of functions that load weights which others have published, and of calls of such functions
PUBLISHED = re.compile(r"pretrain|urls?\b|from_hub|hf_hub|\bget_file\b|\.get_state_dict", re.IGNORECASE)
# Text of files that make weights themselves
_MAKES = re.compile(
    rb"\.backward\(|\.fit\w*\(|\.step\(|\.minimize\(|GradientTape|Trainer\(|\b(?:torch|paddle)\.save\(|save_weights\("
)
_FILES_OF_WEIGHTS = re.compile(rb"[\"'/]([\w.-]+\.(?:pth|pt|ckpt|pdparams|h5|hdf5|safetensors)(?:\.tar)?)[\"']")
# Text of what has a state, too, and no layers
_NO_NETWORK = re.compile(r"optim|sched|scaler|\bopt\b", re.IGNORECASE)
_ADDS = frozenset(("add_module", "register_module", "add_sublayer"))
_PARTS = frozenset(("children", "named_children", "modules", "named_modules", "sublayers", "named_sublayers"))
# Text of files whose loops over modules change convolutions; other loops only set weights, and are not unrolled
_CHANGES = re.compile(rb"\.(?:stride|dilation|padding|groups|in_channels|out_channels)\s*=[^=]")


def module_method(machine: Machine, receiver: Instance, name: str, call: LibraryCall) -> Value | None:
    """Return the result of a module's method; None if it is unknown."""
    args = call.args
    if name == "apply" and args and _CHANGES.search(call.file.content):
        for _, module in everything(receiver):
            machine.call(args[0], [module], {}, call.node, call.file)
        return receiver
    if name in _GIVES_ITSELF:
        return receiver
    if name in _NOTHING:
        if name == "register_forward_hook" and isinstance(receiver.extra, Convolution):
            machine.record(Record("escaped", receiver.extra))  # the hook gets its output
        return Const(None)
    if name in ("register_buffer", "register_parameter"):
        by_name = dict(zip(("name", "value"), args, strict=False)) | call.keywords
        text, value = text_of(by_name.get("name")), by_name.get("value", by_name.get("tensor", by_name.get("param")))
        if text is not None and value is not None and not isinstance(receiver.extra, Convolution):
            machine.set_attribute(receiver, text, value)
        return Const(None)
    if name in _UNKNOWN:
        return Unknown("call")
    if name in _ADDS:
        given = [*args, *call.keywords.values()]
        return _set(machine, receiver, given[0], given[1]) if len(given) == 2 else Const(None)
    if name in _PARTS:
        direct = name.endswith("children")
        # Unrolling `modules()` of a large network for each root takes longer than all else.
        if not direct and not _CHANGES.search(call.file.content):
            return Unknown("call")
        by_name = children(receiver) if direct else dict(everything(receiver))
        return _view(machine, by_name, "items" if name.startswith("named") else "values", complete=receiver.complete)
    return _container_method(machine, receiver, name, call) if is_container(receiver) else None


def loaded(machine: Machine, receiver: Value, name: str, call: LibraryCall) -> bool:
    """Record that a call loads weights into the layers of a network; into all, if it is not known which it has.

    Return whether they are published weights of a network that settings choose, which may be any.
    """
    modules = everything(receiver) if isinstance(receiver, Instance) else []
    own = [module.extra for _, module in modules if isinstance(module.extra, Convolution)]
    layers = [*own]
    # A functional network of Keras has no children.
    if name == "load_weights" or not ModuleTree([receiver]).whole:
        if _of_no_network(call):
            return False
        machine.memory.spoil()
        layers += [record.thing.layer for record in machine.recorded if record.thing.what == "constructed"]
    if layers:
        at, published = call.file.locate(call.node), _loads_published(machine, call)
        for layer in layers:
            machine.record(Record("loaded", layer, at=at, published=published))
    # A network without a convolution of its own, and with something that settings choose, has those of that.
    parts = [] if own or not isinstance(receiver, Instance) else [*receiver.attributes.values()]
    chosen = any(isinstance(part, Unknown) and part.why == "config" for part in (receiver, *parts))
    return chosen and not _of_no_network(call) and _loads_published(machine, call)


def _of_no_network(call: LibraryCall) -> bool:
    function = call.node.func
    return isinstance(function, ast.Attribute) and bool(_NO_NETWORK.search(unparsed(function.value)))


def _loads_published(machine: Machine, call: LibraryCall) -> bool:
    """Whether a call loads weights that are no user's own.

    It belongs to a constructor, to a function of such words, or to a file that names its weights, makes none and has
    them from no other file. A script that goes on with a checkpoint made that itself.
    """
    if any(count and getattr(node, "name", "") == "__init__" for node, count in machine.active.items()):
        return True
    line = call.node.lineno
    around = [node for node in call.file.nodes[ast.FunctionDef] if node.lineno <= line <= (node.end_lineno or 0)]
    if around and PUBLISHED.search(unparsed(max(around, key=lambda node: node.lineno))):
        return True
    content = call.file.content
    return not _MAKES.search(content) and any(
        not any(machine.project.where(re.compile(rb"save\w*\(.*" + re.escape(name)).search))
        for name in set(_FILES_OF_WEIGHTS.findall(content))
    )


def _container_method(machine: Machine, receiver: Instance, name: str, call: LibraryCall) -> Value | None:
    args = call.args
    match name, args:
        case "__len__", _:
            return Const(len(children(receiver))) if receiver.complete else Unknown("call")
        case "__getitem__", [key, *_]:
            return part(machine, receiver, key)
        case "add", [_, *_] if receiver.extra.name.startswith(("keras.", "mxnet.")):
            extend(machine, receiver, Items("list", list(args), complete=call.exact))
            return Const(None)
        case "append", [value, *_]:
            extend(machine, receiver, Items("list", [value]))
            return receiver
        case "extend" | "update", [value, *_]:
            extend(machine, receiver, value)
            return receiver
        case "__setitem__", [key, value]:
            at, names = integer(key), list(children(receiver))
            if at is not None:
                key = Const(names[at]) if -len(names) <= at < len(names) else Unknown("call")
            _set(machine, receiver, key, value)
            return Const(None)
        case "keys" | "values" | "items", _ if receiver.complete:
            return _view(machine, children(receiver), name)
        case "insert" | "pop" | "__delitem__" | "clear", _ if receiver.complete:
            return edit(machine, receiver, name, args)
    return None


def _set(machine: Machine, receiver: Instance, key: Value, value: Value) -> Value:
    """Add a child under a name; under an unknown name, the children become incomplete."""
    text = text_of(key)
    if text is not None:
        put(machine, receiver, text, value)
    else:
        machine.heap.edit(receiver).complete = False
    return value


def _view(machine: Machine, modules: Mapping[str, Value], what: str, *, complete: bool = True) -> Value:
    """Return the children's names, the children, or pairs of both."""
    names: list[Value] = [Const(name) for name in modules]
    values = [*modules.values()] if what == "values" else names
    if what == "items":
        values = [Items("tuple", [*pair]) for pair in zip(names, modules.values(), strict=True)]
    return machine.sequence("list", values, complete=complete)


_MOST_REACHED = 50_000


class ModuleTree:
    """All modules reachable from some values; it is not `whole` if an unknown value may hold more."""

    def __init__(self, values: Iterable[Value]) -> None:
        self.owners: list[Instance] = []
        self.layers: set[int] = set()  # the identities of convolutions
        self.whole = True
        seen: set[int] = set()
        waiting = list(values)
        while waiting:
            value = waiting.pop()
            if isinstance(value, Unknown):
                self.whole = self.whole and value.why not in ("branch", "limit", "call")
            if value.__class__ is Const or isinstance(value, Unknown) or id(value) in seen or len(seen) > _MOST_REACHED:
                continue
            seen.add(id(value))
            if isinstance(value, (Items, Table, Instance)):
                self.whole = self.whole and value.complete
            if isinstance(value, Instance):
                if isinstance(value.extra, Convolution):
                    self.layers.add(id(value.extra))
                else:
                    self.owners.append(value)
                waiting += value.attributes.values()
            elif isinstance(value, Items):
                waiting += value.items
            elif isinstance(value, Table):
                waiting += value.items.values()
            elif isinstance(value, Partial):
                waiting += (value.function, *value.args, *value.keywords.values())


def base_of(cls: Class, depth: int = 0) -> str | None:
    """Return the framework's class from which a class derives, by its canonical name."""
    for base in cls.bases if depth < 20 else ():
        name = base_of(base, depth + 1) if isinstance(base, Class) else None
        if isinstance(base, Name) and is_layer(full := canonical(base.name)):
            name = full
        if name is not None:
            return name
    return None


def is_layer(full: str) -> bool:
    """Whether a canonical name belongs to a framework's layer or module."""
    return full in CONVOLUTIONS or kind_of(full) is not None


def construction(machine: Machine) -> ConstructionSite | None:
    """Return the call that constructs the object whose constructor runs, skipping calls of inherited constructors."""
    for site in reversed(machine.stack):
        function = site.node.func
        if not (isinstance(function, ast.Attribute) and function.attr == "__init__"):
            return ConstructionSite(site.file, site.node)
    return None


def entries_of(machine: Machine, instance: Instance) -> list[Function]:
    """Return the methods by which code may run a network whose class has no `forward`: those with parameters."""
    if not isinstance(instance.cls, Class) or forward_of(machine, instance) is not None:
        return []
    own = (method for method in instance.cls.namespace.values() if isinstance(method, Function) and not method.kind)
    return [method.to(instance) for method in own if not method.name.startswith("_") and len(method.node.args.args) > 1]


_FORWARD = {"keras": "call", **dict.fromkeys(("flax", "haiku", "equinox"), "__call__")}


def forward_of(machine: Machine, instance: Instance) -> Value | None:
    """Return the method that the framework runs when an object of a source class is called."""
    meaning = meaning_of(instance)
    framework = meaning.name.split(".")[0] if isinstance(meaning, FrameworkLayer) else ""
    if isinstance(meaning, Convolution):
        framework = meaning.signature.framework
        if (own := machine.calls.method_of(instance, "__call__")) is not None:
            return own
    return machine.calls.method_of(instance, _FORWARD.get(framework, "forward"))
