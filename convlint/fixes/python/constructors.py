"""The classes of torch whose arguments state sizes: which of them a call constructs, and what it gives for each."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

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
    "PReLU": ("num_parameters",),
}
# of parameters that need not be given
DEFAULTS: Mapping[str, int | bool] = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "bias": True}
_AFTER_NN = frozenset(("", "modules.", "modules.conv.", "modules.batchnorm.", "modules.instancenorm."))


# of other frameworks, by the module that their layers are in; all have it behind their first five parameters
_BIAS: Mapping[str, str] = {
    "paddle.nn": "bias_attr", "keras.layers": "use_bias", "tensorflow.keras.layers": "use_bias",
    "mxnet.gluon.nn": "use_bias", "flax.linen": "use_bias",
}  # fmt: skip
_CONVOLVING = ("Conv", "SeparableConv", "DepthwiseConv")
_BEFORE_BIAS = 5


class BiasParameter(NamedTuple):
    """The parameter's name, and the names of all parameters in order as far as they matter."""

    name: str
    parameters: tuple[str, ...]


class Argument(NamedTuple):
    """What a call gives for a parameter; `value` is None where it gives nothing, or where `unclear` says why not."""

    value: ast.expr | None = None
    unclear: str = ""


class Imports:
    """The names of a module that mean one import wherever they stand in it."""

    def __init__(self, nodes: Nodes) -> None:
        """`nodes` are those of the module."""
        self._target: dict[str, str | None] = {}
        self._star = False
        for name, target in _bindings(nodes):
            if name == "*":
                self._star = True
            elif self._target.setdefault(name, target) != target:
                self._target[name] = None

    def full_name(self, call: ast.Call) -> str | None:
        """What a call is of, such as torch.nn.Conv2d, where that is imported for sure."""
        names, function = [], call.func
        while isinstance(function, ast.Attribute):
            names.append(function.attr)
            function = function.value
        if not isinstance(function, ast.Name) or (self._star and not names):
            return None
        target = self._target.get(function.id)
        return None if target is None else ".".join((target, *reversed(names)))

    def torch_class(self, call: ast.Call) -> str | None:
        """`Conv2d` where a call is of torch.nn.Conv2d for sure."""
        dotted = self.full_name(call) or ""
        inside, _, kind = dotted.removeprefix("torch.nn.").rpartition(".")
        known = dotted.startswith("torch.nn.") and (f"{inside}." if inside else "") in _AFTER_NN
        return kind if known and (kind in CONVOLUTIONS or kind in NORMS) else None

    def bias_of(self, call: ast.Call) -> BiasParameter | None:
        """How a framework's convolution that a call constructs is told whether it has a bias; None where unknown."""
        kind = self.torch_class(call)
        if kind is not None and kind in CONVOLUTIONS:
            return BiasParameter("bias", CONVOLUTIONS[kind])
        module, _, name = (self.full_name(call) or "").rpartition(".")
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
    starred = next((n for n, each in enumerate(call.args) if isinstance(each, ast.Starred)), len(call.args))
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
