"""Find the networks of a repository: PyTorch modules with convolutions that no other module of it constructs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter

from msgspec import Struct
from msgspec.structs import replace

from convlint.files.repository import is_quiet
from convlint.model.grouping import grouped
from convlint.model.source import UnreadFile
from convlint.readers.python.evaluator.limits import steps_of_file
from convlint.readers.python.evaluator.machine import Machine
from convlint.readers.python.evaluator.names_of import within
from convlint.readers.python.evaluator.values import Class, Const, Function, Instance, Items, Value, stated_by
from convlint.readers.python.imports import ProjectImports
from convlint.readers.python.nn.frameworks import Frameworks
from convlint.readers.python.nn.kinds import FRAMEWORK_WORDS
from convlint.readers.python.nn.layers import Convolution, Recording, argument
from convlint.readers.python.nn.modules import everything, forward_of, is_module
from convlint.readers.python.nn.reading import run_forward
from convlint.readers.python.nn.relevance import Part, Relevance, names_convolution
from convlint.readers.python.nn.tensors import integer
from convlint.readers.python.project import Project
from convlint.readers.python.source_file import SourceFile, last_name, unparsed

_MOST_PARTS = 2_000  # parts of the repository looked at for one module
_MOST_GIVEN = 200  # characters of arguments that are taken from a call
_SIZES = range(16, 8193)  # of an image, where a parameter or a tensor states it
_SIZE_NAMES = re.compile(
    r"(?:img|image|input|in|crop)_?(?:size|res|resolution|shape|hw)|(?:img|image)_?dim|resolution", re.IGNORECASE
)
# Functions that do more than construct what they return
_PROGRAMS = re.compile(r"(?:main|run|train|test|eval|validate|fit|load|demo|export|convert|save)(?:ing)?(?:_|$)")
_WEIGHTS = re.compile(r"pretrain|weight|checkpoint|ckpt", re.IGNORECASE)  # in names of parameters
_MOST_OF_IMAGES = 4  # channels
_MOST_CHOICES = 4  # values of a parameter that are tried
_TENSORS = frozenset(("randn", "rand", "zeros", "ones", "empty"))


class FoundNetwork(Struct, frozen=True, kw_only=True):
    """A class, or a function that returns one of its objects, at the top level of a file.

    `needs` are the parameters that have no default and that no code gives; `arguments` are those that it is called
    with, as source text. `others` are functions that return objects of the same class and need no arguments, `makers`
    the paths and names of all that do so, itself and the class included.
    """

    path: str
    name: str
    line: int
    needs: tuple[str, ...] = ()
    arguments: str = ""
    inputs: tuple[str, ...] = ()  # parameters of its forward method without a default
    channels: int | None = None  # C of the convolution that reads the input, or
    further_in: bool = False  # of one somewhere behind it
    dims: int = 2
    sizes: tuple[int, ...] = ()  # of the input, along `dims` axes, where the code states them
    sized_by: str = ""  # the code that states them
    others: tuple[str, ...] = ()
    makers: tuple[tuple[str, str], ...] = ()


class NetworksRead(Struct, frozen=True, kw_only=True):
    """The networks by file and line, and the files that could not be read."""

    networks: tuple[FoundNetwork, ...]
    unread: Mapping[str, UnreadFile]


class _Maker(Struct, frozen=True, kw_only=True):
    """A class or function and what a call of it makes: an object of the class `cls`, or of a framework's container."""

    network: FoundNetwork
    cls: Class | None
    is_class: bool
    is_choice: bool = False  # of several networks that it makes, by the values of its parameters
    is_undecided: bool = False  # its parts are among those that its code refers to

    @property
    def part(self) -> Part:
        return self.network.path, self.network.name

    @property
    def makes(self) -> Part:
        """What tells its network from others: the class, or a function that returns a container."""
        return self.part if self.cls is None else (self.cls.file.path, self.cls.name)

    @property
    def rank(self) -> tuple[int, bool, bool, bool, bool]:
        """The lowest is preferred: it needs fewest arguments, and stands where its class does."""
        apart = self.network.path != self.makes[0]
        return len(self.network.needs), self.is_choice, not self.is_class, apart, self.network.name.startswith("get_")


def find_networks(paths: Sequence[str], root: str) -> NetworksRead:
    """Read the files, of the repository at `root`, and return their networks. Never raises for what is in a file."""
    project = Project(root, paths)
    imports = ProjectImports(project)
    library = Frameworks()
    machine = Machine(project, library)
    machine.steps_of_file = steps_of_file(sum(map(names_convolution, map(project.content, project.given))))
    relevance = Relevance(imports)
    makers: list[_Maker] = []
    best: dict[Part, _Maker] = {}  # of each network
    bases: dict[Part, set[Part]] = {}  # the modules of the source -> the classes that they derive from
    inner: set[Part] = set()  # classes whose objects are parts of other modules
    read = [path for path in dict.fromkeys(paths) if not is_quiet(path)]
    for path in read:
        if not any(word in (project.content(path) or b"") for word in FRAMEWORK_WORDS):
            continue
        machine.memory.forget()
        for callee in machine.roots(path):
            if isinstance(callee, Class) and (library.subclass_of(callee) or "").startswith("torch."):
                bases[path, callee.name] = set(_bases(callee))
            elif isinstance(callee, Class) or _PROGRAMS.match(callee.name):
                continue
            if callee.name.isidentifier() and not callee.name.startswith("_") and relevance.may_construct(callee):
                maker = _maker_of(machine, library, callee, "", inner, best)
                if maker is None and isinstance(callee, Function):
                    tries = (_maker_of(machine, library, *choice, inner, best) for choice in _choices(callee))
                    maker = next(filter(None, tries), None)
                makers += [maker] if maker is not None else []
    calls, handed = _uses(project, read, makers, relevance)
    makers = _without_choices(makers, calls)
    undecided = {maker.makes for maker in makers if maker.is_undecided and maker.makes in bases}
    likely = set().union(*(_referred(part, bases, relevance) for part in undecided)) - undecided
    networks = _chosen(makers, bases, inner, likely, relevance)
    networks = [_as_called(network, calls) for network in networks]
    networks = [network for network in networks if not network.needs or network.name not in handed]
    return NetworksRead(networks=tuple(networks), unread=dict(project.unread))


def _bases(cls: Class, depth: int = 0) -> Iterator[Part]:
    for base in cls.bases if depth < 20 else ():
        if isinstance(base, Class):
            yield base.file.path, base.name
            yield from _bases(base, depth + 1)


def _maker_of(
    machine: Machine, library: Frameworks, root: Function | Class, chosen: str, inner: set[Part],
    best: dict[Part, _Maker],
) -> _Maker | None:  # fmt: skip
    """Call a class or function with the defaults of its parameters; None if that makes no network of PyTorch.

    `chosen` are the defaults that `_choices` gave it, as source text. Adds the classes of the network's parts to
    `inner`, and what it returns to `best` if it is better than that.
    """
    library.recording = Recording()
    run = machine.run_root(root, defaults=True)
    value = run.value
    if not isinstance(value, Instance) or not is_module(value) or isinstance(value.extra, Convolution):
        return None
    cls = value.cls if isinstance(value.cls, Class) else None
    own = None if cls is None else (cls.file.path, cls.name)
    below = [child for _, child in everything(value) if child is not value]
    parts = {(child.cls.file.path, child.cls.name) for child in below if isinstance(child.cls, Class)}
    inner |= parts - {own}
    layers = [child.extra for child in below if isinstance(child.extra, Convolution)]
    # Where a parameter decides which parts it has, nobody knows these, but what was constructed on the way.
    is_undecided = not layers
    if is_undecided:
        layers = [record.thing.layer for record in run.recorded if record.thing.what == "constructed"]
    layers = [layer for layer in layers if layer.signature.framework == "pytorch"]
    if not layers:
        return None
    function = machine.calls.find(root, "__init__")[0] if isinstance(root, Class) else root
    network = FoundNetwork(
        path=root.file.path, name=root.name, line=root.node.lineno, needs=_required(function), arguments=chosen
    )
    is_class = isinstance(root, Class)
    maker = _Maker(network=network, cls=cls, is_class=is_class, is_choice=bool(chosen), is_undecided=is_undecided)
    previous = best.get(maker.makes)
    if previous is not None and previous.rank <= maker.rank and previous.is_choice <= maker.is_choice:
        return maker  # of which the name alone is of interest
    inputs = _required(forward_of(machine, value))
    run_forward(machine, root.file, value, None)
    built = machine.calls.find(cls, "__init__")[0] if cls is not None else None
    first, reads_input = _first(library.recording, layers)
    width, dims = argument(first, "in_channels"), first.signature.dims
    channels = integer(width)
    # Another one may lie in front of it, where what reads the input could not be followed; less so if users choose it.
    stated = stated_by(
        *(default for _, default in (*_parameters(function), *_parameters(built)) if default is not None)
    )
    chosen_by_users = any(literal in stated and literal.value == channels for literal in stated_by(width))
    further_in = not (reads_input or chosen_by_users or (channels is not None and channels <= _MOST_OF_IMAGES))
    sizes, sized_by = next(_stated([function, built], dims), None) or _drawn(root.file, channels, dims)
    loads = dict(_parameters(function)).get("pretrained")  # weights, which convlint never loads
    unweighted = "pretrained=False" if isinstance(loads, Const) and loads.value is True else ""
    network = replace(
        network,
        arguments=", ".join(filter(None, (chosen, unweighted))),
        inputs=inputs,
        channels=channels,
        further_in=further_in,
        dims=dims,
        sizes=sizes,
        sized_by=sized_by,
    )
    best[maker.makes] = replace(maker, network=network)
    return best[maker.makes]


def _choices(root: Function) -> Iterator[tuple[Function, str]]:
    """Yield copies of a function whose required parameters have defaults, each with these as source text.

    The defaults are values with which its code compares the parameters: 18 of `if depth == 18` and of
    `assert depth in [18, 34]`. Nothing where a parameter is compared with none, or asks for weights.
    """
    node = root.node
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    names = [parameter.arg for parameter in positional[: len(positional) - len(root.defaults)]]
    if not isinstance(node, ast.FunctionDef) or not names or len(root.kw_defaults) < len(args.kwonlyargs):
        return
    constants: dict[str, list[tuple[int, int, int | str]]] = {name: [] for name in names}  # with line and column
    for inner in within(node.body):
        match inner:
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Eq()], comparators=[ast.Constant() as value]):
                values = [value]
            case ast.Compare(left=ast.Name(id=name), ops=[ast.In()], comparators=[ast.List(elts) | ast.Tuple(elts)]):
                values = [value for value in elts if isinstance(value, ast.Constant)]
            case _:
                continue
        for value in values:
            constant = value.value
            if name in constants and isinstance(constant, int | str) and not isinstance(constant, bool):
                constants[name].append((value.lineno, value.col_offset, constant))
    if any(_WEIGHTS.search(name) or not values for name, values in constants.items()):
        return
    in_order = [[constant for *_, constant in sorted(values, key=itemgetter(0, 1))] for values in constants.values()]
    for number in range(min(max(map(len, in_order)), _MOST_CHOICES)):
        chosen = [values[min(number, len(values) - 1)] for values in in_order]
        text = ", ".join(map(repr, chosen))
        if len(text) <= _MOST_GIVEN and text.isprintable():
            yield replace(root, defaults=[*map(Const, chosen), *root.defaults]), text


def _without_choices(makers: Sequence[_Maker], calls: Calls) -> list[_Maker]:
    """Return the makers without those choices whose network the code itself makes with all arguments."""
    settled = {maker.makes for maker in makers if not maker.is_choice and not _as_called(maker.network, calls).needs}
    return [maker for maker in makers if not maker.is_choice or maker.makes not in settled]


def _parameters(function: Value | None) -> list[tuple[str, Value | None]]:
    """Return the parameters of a function, or of a method without the object, each with its default or None."""
    if not isinstance(function, Function):
        return []
    args = function.node.args
    names = [parameter.arg for parameter in (*args.posonlyargs, *args.args)]
    values = [*[None] * (len(names) - len(function.defaults)), *function.defaults]
    first = 0 if function.owner is None or function.kind == "static" else 1  # without the object
    by_name = [(parameter.arg, function.kw_defaults.get(parameter.arg)) for parameter in args.kwonlyargs]
    return [*zip(names, values, strict=True)][first:] + by_name


def _required(function: Value | None) -> tuple[str, ...]:
    """Return the parameters that have no default."""
    return tuple(name for name, default in _parameters(function) if default is None)


def _first(recording: Recording, layers: Sequence[Convolution]) -> tuple[Convolution, bool]:
    """Return the convolution that reads the input, and True; the first, and False, where that was not followed."""
    runs = [(layer, use) for layer, uses in recording.uses.items() for use in uses]
    raw = next((layer for layer, use in runs if use.reads.raw), None)
    return (raw, True) if raw is not None else (next((layer for layer, _ in runs), layers[0]), False)


def _stated(functions: Iterable[Value | None], dims: int) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield the sizes of images that defaults of parameters state, each with its code."""
    for name, value in (parameter for function in functions for parameter in _parameters(function)):
        if not _SIZE_NAMES.fullmatch(name):
            continue
        numbers = [integer(item) for item in value.items] if isinstance(value, Items) else [integer(value)] * dims
        if len(numbers) == dims + 1:  # with the channels in front or at the end
            numbers = numbers[:dims] if numbers[0] in _SIZES else numbers[1:]
        sizes = tuple(size for size in numbers if size is not None and size in _SIZES)
        if len(numbers) == len(sizes) == dims:
            yield sizes, f"the default of {name}"


def _drawn(file: SourceFile, channels: int | None, dims: int) -> tuple[tuple[int, ...], str]:
    """Return the sizes of a tensor such as `torch.randn(1, 3, 256, 256)` that the file tries its networks on."""
    for call in file.nodes[ast.Call]:
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in _TENSORS:
            continue
        args = call.args[0].elts if len(call.args) == 1 and isinstance(call.args[0], ast.Tuple) else call.args
        numbers = [node.value for node in args if isinstance(node, ast.Constant) and node.value.__class__ is int]
        sizes = tuple(size for size in numbers[2:] if isinstance(size, int) and size in _SIZES)
        if len(args) == len(numbers) == len(sizes) + 2 == dims + 2 and channels in (None, numbers[1]):
            return sizes, f"the tensor in line {call.lineno}"
    return (), ""


def _chosen(
    makers: Sequence[_Maker], bases: Mapping[Part, set[Part]], inner: set[Part], likely: set[Part], relevance: Relevance
) -> list[FoundNetwork]:
    """Return one maker for each network, the one that needs fewest arguments, without parts of other networks.

    Those that are `likely` parts are kept where a function makes them.
    """
    referred = set().union(*(_referred(part, bases, relevance) for part in bases))
    derived = set().union(*bases.values())
    functions = {part for maker in makers for part in relevance.referred(maker.part)}
    networks: list[FoundNetwork] = []
    for makes, group in grouped([(maker.makes, maker) for maker in makers]).items():
        best = min(group, key=lambda maker: maker.rank)  # the first of equals
        if (
            makes in inner
            or (makes in likely and best.is_class)
            or (best.cls is None and (best.network.needs or makes in functions | referred))
        ):
            continue
        # What does not know its widths by itself is more often a block, or the base of networks, than a network.
        if (best.network.needs or best.network.channels is None) and (makes in referred or makes in derived):
            continue
        others = (maker for maker in group if maker is not best and not (maker.is_class or maker.is_choice))
        free = [maker.network.name for maker in others if not maker.network.needs]
        all_makers = dict.fromkeys((makes, *(maker.part for maker in group)))
        networks.append(replace(best.network, others=tuple(free), makers=tuple(all_makers)))
    return sorted(networks, key=lambda network: (network.path, network.line))


def _referred(module: Part, bases: Mapping[Part, set[Part]], relevance: Relevance) -> set[Part]:
    """Return the parts that the code of a module refers to, directly or by functions, without its bases."""
    seen = {module: None}
    waiting = [module]
    for part in waiting:  # which grows meanwhile
        if part != module and part in bases:
            continue
        following = [other for other in relevance.referred(part) if other not in seen and other not in bases[module]]
        seen.update(dict.fromkeys(following))
        waiting += following
        if len(waiting) > _MOST_PARTS:
            break
    return set(seen) - {module}


Calls = Mapping[str, Sequence[tuple[ast.Call, frozenset[str]]]]  # by name, each with the files that may define it


def _uses(
    project: Project, paths: Iterable[str], makers: Sequence[_Maker], relevance: Relevance
) -> tuple[Calls, set[str]]:
    """Return by name the calls, with literals, of makers that need arguments, and which of these are passed to makers.

    A class that is passed to a network, as in `ResNet(BasicBlock, [2, 2])`, is a block of it.
    """
    names = {maker.network.name for maker in makers if maker.network.needs}
    all_names = {maker.network.name for maker in makers}
    calls: dict[str, list[tuple[ast.Call, frozenset[str]]]] = {}
    handed: set[str] = set()
    for path in paths if names else ():
        content = project.content(path) or b""
        if not any(name.encode() in content for name in names) or (file := project.file(path)) is None:
            continue
        for call in file.nodes[ast.Call]:
            name = last_name(call.func)
            values = (*call.args, *(keyword.value for keyword in call.keywords))
            if name in all_names:
                handed.update(names.intersection(map(last_name, values)) - {name})
            if name in names and values and all(map(_is_literal, values)) and all(item.arg for item in call.keywords):
                calls.setdefault(name, []).append((call, relevance.defining(path, name)))
    return calls, handed


def _is_literal(node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.Tuple):
        return all(map(_is_literal, node.elts))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float | str | None)


def _as_called(network: FoundNetwork, calls: Calls) -> FoundNetwork:
    """Return the network with the arguments of the first call that gives all that it needs.

    Calls of something with the same name in another file do not count.
    """
    own = [call for call, files in calls.get(network.name, ()) if not files or network.path in files]
    for call in own:
        given = {*network.needs[: len(call.args)], *(keyword.arg for keyword in call.keywords)}
        text = ", ".join((*map(unparsed, call.args), *map(unparsed, call.keywords)))
        if given.issuperset(network.needs) and len(text) <= _MOST_GIVEN and text.isprintable():
            return replace(network, needs=(), arguments=text)
    return network
