"""Constructor calls in Python source, and where the values of their arguments come from."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from convlint.fixes.python.source import PythonSource
from convlint.model.errors import InputFault
from convlint.readers.python.evaluator import names_of
from convlint.readers.python.evaluator.names_of import Body
from convlint.readers.python.nn.kinds import canonical
from convlint.readers.python.source_file import dotted
from convlint.readers.python.walking import Nodes

_CONV = (
    "in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "bias", "padding_mode",
    "device", "dtype",
)  # fmt: skip
_TRANSPOSED = (
    "in_channels", "out_channels", "kernel_size", "stride", "padding", "output_padding", "groups", "bias", "dilation",
    "padding_mode", "device", "dtype",
)  # fmt: skip
_DIMS = ("1d", "2d", "3d")
CONVOLUTIONS: Mapping[str, tuple[str, ...]] = {
    **{f"Conv{n}": _CONV for n in _DIMS},
    **{f"ConvTranspose{n}": _TRANSPOSED for n in _DIMS},
    **{f"LazyConv{n}": _CONV[1:] for n in _DIMS},
    **{f"LazyConvTranspose{n}": _TRANSPOSED[1:] for n in _DIMS},
}
# what states the channels of others: their parameters up to it; those of none take it from what arrives
NORMS: Mapping[str, tuple[str, ...]] = {
    **{f"{kind}Norm{n}": ("num_features",) for kind in ("Batch", "Instance") for n in _DIMS},
    **{f"Lazy{kind}Norm{n}": () for kind in ("Batch", "Instance") for n in _DIMS},
    "SyncBatchNorm": ("num_features",),
    "GroupNorm": ("num_groups", "num_channels"),
    "LayerNorm": ("normalized_shape",),
    "PReLU": ("num_parameters",),
}
LINEAR: Mapping[str, tuple[str, ...]] = {
    "Linear": ("in_features", "out_features"),
    "LazyLinear": ("out_features",),
}
# of parameters that need not be given
DEFAULTS: Mapping[str, int | bool] = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "bias": True}
_AFTER_NN = frozenset(
    ("", "modules.", "modules.conv.", "modules.batchnorm.", "modules.instancenorm.", "modules.linear.")
)


# of other frameworks, by the module that their layers are in; all have it behind their first five parameters
_BIAS: Mapping[str, str] = {
    "paddle.nn": "bias_attr", "keras.layers": "use_bias", "tensorflow.keras.layers": "use_bias",
    "mxnet.gluon.nn": "use_bias", "flax.linen": "use_bias", "flax.nnx": "use_bias", "equinox.nn": "use_bias",
    "tensorflow.layers": "use_bias",
}  # fmt: skip
_OF_KERAS = ("keras", "tensorflow")
_CONVOLVING = ("Conv", "SeparableConv", "DepthwiseConv", "conv", "separable_conv")
_BEFORE_BIAS = 5


class BiasParameter(NamedTuple):
    """The parameter's name, and the names of all parameters in order as far as they matter."""

    name: str
    parameters: tuple[str, ...]


class Argument(NamedTuple):
    """What a call gives for a parameter; `value` is None where it gives nothing, or where `unclear` says why not."""

    value: ast.expr | None = None
    unclear: str = ""


class ImportedNames:
    """The names of a module that mean one import wherever they stand in it."""

    def __init__(self, nodes: Nodes) -> None:
        """`nodes` are those of the module."""
        self._target: dict[str, str | None] = {}
        self._stars: set[str] = set()  # modules all of whose names are imported
        for name, target in _bindings(nodes):
            if name == "*":
                self._stars.add((target or "").removesuffix(".*"))
            elif self._target.setdefault(name, target) != target:
                self._target[name] = None

    def full_name(self, call: ast.Call) -> str | None:
        """What a call is of, such as torch.nn.Conv2d, where that is imported for sure."""
        first, dot, rest = dotted(call.func).partition(".")
        if not first:
            return None
        target = self._beside_stars(first) if self._stars and not dot else self._target.get(first)
        return None if target is None else f"{target}{dot}{rest}"

    def _beside_stars(self, name: str) -> str | None:
        """What a name is where stars may bind it: known of Keras alone, whose layers are all in one of its modules."""
        if any(module.partition(".")[0] not in _OF_KERAS for module in self._stars):
            return None
        meant: set[str | None] = {f"{module}.{name}" for module in self._stars if module in _BIAS}
        if name in self._target:
            meant.add(self._target[name])
        return next(iter(meant)) if len(meant) == 1 else None

    def torch_class(self, call: ast.Call) -> str | None:
        """`Conv2d` where a call is of torch.nn.Conv2d for sure."""
        full = self.full_name(call) or ""
        inside, _, kind = full.removeprefix("torch.nn.").rpartition(".")
        known = full.startswith("torch.nn.") and (f"{inside}." if inside else "") in _AFTER_NN
        return kind if known and any(kind in table for table in (CONVOLUTIONS, NORMS, LINEAR)) else None

    def bias_of(self, call: ast.Call) -> BiasParameter | None:
        """How a framework's convolution that a call constructs is told whether it has a bias; None where unknown."""
        kind = self.torch_class(call)
        if kind is not None and kind in CONVOLUTIONS:
            return BiasParameter("bias", CONVOLUTIONS[kind])
        module, _, name = canonical(self.full_name(call) or "").rpartition(".")
        parameter = _BIAS.get(module)
        if parameter is None or not name.startswith(_CONVOLVING) or len(call.args) > _BEFORE_BIAS:
            return None
        return BiasParameter(parameter, ())


def argument(call: ast.Call, name: str, parameters: tuple[str, ...] = ()) -> Argument:
    """What a call gives for the parameter `name`; `parameters` are those of its class in order, as far as known."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return Argument(keyword.value)
    position = parameters.index(name) if name in parameters else len(call.args)
    starred = next((n for n, node in enumerate(call.args) if isinstance(node, ast.Starred)), len(call.args))
    if position < starred:
        return Argument(call.args[position])
    if starred < len(call.args):
        return Argument(unclear="may come with its *arguments")
    if any(keyword.arg is None for keyword in call.keywords):
        return Argument(unclear="may come with its **arguments")
    return Argument()


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_MAY_NAME = (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)


def _bindings(nodes: Nodes) -> Iterator[tuple[str, str | None]]:
    """Each name that is bound anywhere, with what it imports; None where that is no import."""
    for statement in nodes[ast.Import]:
        for alias in statement.names:
            top = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (top, top)
    for statement in nodes[ast.ImportFrom]:
        for alias in statement.names:
            yield alias.asname or alias.name, f"{'.' * statement.level}{statement.module or ''}.{alias.name}"
    bound = {node.id for node in nodes[ast.Name] if type(node.ctx) is not ast.Load}
    bound.update(node.arg for node in nodes[ast.arg])
    bound.update(node.name for kind in _DEFINITIONS for node in nodes[kind])
    bound.update(node.name for kind in _MAY_NAME for node in nodes[kind] if node.name is not None)
    bound.update(node.rest for node in nodes[ast.MatchMapping] if node.rest is not None)
    for name in bound:
        yield name, None


Read = Callable[[str], bytes | None]  # the content of a file; None where it cannot be read
Opened = tuple[PythonSource, ImportedNames]


def opened(read: Read, path: str) -> Opened | str:
    """The file at `path` with what it imports, or why there is none."""
    raw = read(path)
    if raw is None:
        return "the file cannot be read"
    try:
        source = PythonSource(raw)
    except InputFault as fault:
        return fault.message
    return source, ImportedNames(source.nodes)


_MOST_TEXT = 40
_Scope = ast.Module | ast.ClassDef | Body
_OWN_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def origin(source: PythonSource, value: ast.expr, path: str) -> str:
    """Such as "`width` at net.py:12", for an expression of a module that is shown as `path`."""
    if isinstance(value, ast.Constant):
        return _quoted(source, value)
    scopes = _scopes_around(source, value)
    if isinstance(value, ast.Name):
        return _of_name(source, value.id, scopes, path)
    if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name):
        return _of_attribute(source, value, scopes, path)
    return f"the expression {_quoted(source, value)}"


def _of_name(source: PythonSource, name: str, scopes: list[_Scope], path: str) -> str:
    for scope in scopes:
        if isinstance(scope, ast.ClassDef) and scope is not scopes[0]:
            continue  # methods do not see what their class binds
        if isinstance(scope, Body) and (parameter := _parameter(scope, name)) is not None:
            return f"`{name}`, a parameter {_of_function(scope, scopes)}{_default(source, scope, name)} at " + (
                f"{path}:{parameter.lineno}"
            )
        bound = [(node, given) for node, given in _bound(scope) if isinstance(node, ast.Name) and node.id == name]
        if len(bound) == 1:
            return _bound_once(f"`{name}`", *bound[0], path)
        if bound:
            return f"`{name}`, which several lines set, the first of them {path}:{bound[0][0].lineno}"
    return f"`{name}`, which this file does not set"


def _of_attribute(source: PythonSource, value: ast.Attribute, scopes: list[_Scope], path: str) -> str:
    text = _quoted(source, value)
    holder = next((scope for scope in scopes if isinstance(scope, ast.ClassDef)), None)
    if holder is None or not isinstance(value.value, ast.Name) or value.value.id != "self":
        return f"the attribute {text}"
    bound: list[tuple[ast.expr, ast.expr | None]] = []
    for node in ast.walk(holder):
        for target, given in _targets(node):
            own = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
            if own and isinstance(target, ast.Attribute) and target.attr == value.attr:
                bound.append((target, given))
    bound += [(node, given) for node, given in _bound(holder) if isinstance(node, ast.Name) and node.id == value.attr]
    return _bound_once(text, *bound[0], path) if len(bound) == 1 else f"the attribute {text}"


def _bound_once(text: str, node: ast.expr, given: ast.expr | None, path: str) -> str:
    return f"{text}{'' if given is not None else ', which changes,'} at {path}:{node.lineno}"


def _scopes_around(source: PythonSource, value: ast.expr) -> list[_Scope]:
    """The functions and classes that an expression stands in, from the innermost to the module."""
    scopes: list[_Scope] = [source.tree]
    pending: list[ast.AST] = list(ast.iter_child_nodes(source.tree))
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.stmt, ast.expr)) and not _encloses(node, value):
            continue
        if isinstance(node, _OWN_SCOPE):
            scopes.append(node)
        pending = list(ast.iter_child_nodes(node)) if isinstance(node, (ast.stmt, ast.expr)) else [
            *pending, *ast.iter_child_nodes(node)
        ]  # fmt: skip
    return scopes[::-1]


def _encloses(node: ast.stmt | ast.expr, value: ast.expr) -> bool:
    end, last = (node.end_lineno, node.end_col_offset), (value.end_lineno, value.end_col_offset)
    begun = (node.lineno, node.col_offset) <= (value.lineno, value.col_offset)
    return begun and None not in end and end >= last


def _parameter(function: Body, name: str) -> ast.arg | None:
    return next((parameter for parameter in names_of.parameters(function) if parameter.arg == name), None)


def _default(source: PythonSource, function: Body, name: str) -> str:
    default = dict(names_of.defaults(function.args)).get(name)
    return "" if default is None else f" ({_quoted(source, default)} where it is not given)"


def _of_function(function: Body, scopes: list[_Scope]) -> str:
    if isinstance(function, ast.Lambda):
        return "of a lambda"
    outer = scopes[scopes.index(function) + 1]
    return f"of `{outer.name}.{function.name}`" if isinstance(outer, ast.ClassDef) else f"of `{function.name}`"


def _bound(scope: _Scope) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """What a scope binds itself, with the value, in order; None where a loop or the like gives it."""
    pending: list[ast.AST] = list(reversed(list(ast.iter_child_nodes(scope))))
    while pending:
        node = pending.pop()
        yield from _targets(node)
        if not isinstance(node, _OWN_SCOPE):
            pending += reversed(list(ast.iter_child_nodes(node)))


def _targets(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _unpacked(target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            yield target, value
        case ast.AugAssign(target=target):
            yield target, None
        case ast.For(target=target) | ast.AsyncFor(target=target) | ast.comprehension(target=target):
            yield from _unpacked(target, None)
        case ast.withitem(optional_vars=ast.expr() as target):
            yield from _unpacked(target, None)
        case _:
            pass


def _unpacked(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target, value
        return
    values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
    alike = len(values) == len(target.elts)
    for number, element in enumerate(target.elts):
        yield from _unpacked(element, values[number] if alike else None)


def _quoted(source: PythonSource, value: ast.expr) -> str:
    start, end = source.extent(value)
    text = " ".join(source.text[start:end][: 2 * _MOST_TEXT].split())
    return f"`{text}`" if len(text) <= _MOST_TEXT and end - start <= 2 * _MOST_TEXT else f"`{text[:_MOST_TEXT]}...`"
