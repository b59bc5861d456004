"""Layers of libraries that consist of several: a separable convolution, or one with its norm and activation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from convlint.readers.python.evaluator.library import LibraryCall
from convlint.readers.python.evaluator.values import Const, Items, Name, Partial, Table, Unknown, Value, text_of
from convlint.readers.python.nn.kinds import SEPARABLE, WITH_NORM, Kind, Signature, canonical, kind_of
from convlint.readers.python.nn.layers import bound
from convlint.readers.python.nn.tensors import Arguments, integer, numbers

# What the two convolutions of a separable layer have, whatever its arguments are: bias and activation come behind both.
_DEPTHWISE: dict[str, Value] = {"use_bias": Const(False), "activation": Const(None)}
_POINTWISE: dict[str, Value] = {
    "kernel_size": Const(1), "stride": Const(1), "padding": Const(0), "dilation": Const(1),
}  # fmt: skip
# Names of norms without their axes, and what mmcv's `build_norm_layer` calls them; MONAI's are in lower case here.
_NORMS = {
    "BN": "bn", "SyncBN": "bn", "MMSyncBN": "bn", "IN": "in", "GN": "gn", "LN": "ln",
    "batch": "bn", "syncbatch": "bn", "instance": "in", "instance_nvfuser": "in",
}  # fmt: skip
_BY_BATCH = ("bn", "in")
# What each library's convolution with a norm has unless told
_UNSAID: dict[str, dict[str, Value]] = {
    "mmcv": {"norm": Const(None), "bias": Const("auto")},
    "torchvision": {"norm": Name("torch.nn.BatchNorm2d"), "bias": Const(None), "kernel_size": Const(3)},
    "timm": {"norm": Name("torch.nn.BatchNorm2d"), "bias": Const(False), "kernel_size": Const(1)},
    "monai": {"norm": Const("instance"), "kernel_size": Const(3)},
}
_BY_NORM = {"mmcv": "auto", "torchvision": None}  # such a bias is there if no norm follows
# The padding that keeps the size, by filter, stride and dilation
_PADDINGS: dict[str, Callable[[int, int, int], int]] = {
    "torchvision": lambda taps, _, spread: (taps - 1) // 2 * spread,
    "timm": lambda taps, step, spread: (step - 1 + spread * (taps - 1)) // 2,
    "monai": lambda taps, _, spread: spread * (taps - 1) // 2,
}
_CHANGING = {"aa_layer": "stride", "conv_kwargs": "groups"}  # arguments of timm that may change others
# Names of the convolution, and of the norm, activation and dropout by their letters; else their numbers
_NAMES = {
    "mmcv": {"C": "conv", "N": "bn", "A": "activate"}, "timm": {"C": "conv", "N": "bn"}, "torchvision": {},
    "monai": {"C": "conv", "N": "adn.N", "A": "adn.A", "D": "adn.D"},
}  # fmt: skip


class CompositePart(NamedTuple):
    """One of the layers that a composite runs in turn: a convolution by its signature, else a layer of some kind."""

    name: str
    kind: Kind = "pointwise"
    signature: Signature | None = None
    arguments: Mapping[str, Value] = MappingProxyType({})


def parts_of(full: str, call: LibraryCall) -> tuple[list[CompositePart], bool]:
    """Return the layers that a call of this composite constructs, in order, and whether these are all."""
    if full in SEPARABLE:
        parts = zip(SEPARABLE[full], (_DEPTHWISE, _POINTWISE), strict=True)
        return [
            CompositePart(conv.part, signature=conv, arguments={**bound(conv, call), **fixed}) for conv, fixed in parts
        ], True
    library = full.partition(".")[0]
    given = {**_UNSAID[library], **bound(WITH_NORM[full], call)}
    activation, norm = given.pop("activation", None), _kind_of_norm(given.pop("norm"))
    if not _is_const(has := given.get("apply_norm", Const(True)), True):
        norm = "identity" if _is_const(has, False) else None
    if library in _BY_NORM and _is_const(given["bias"], _BY_NORM[library]):
        given["bias"] = Unknown("parameter") if norm is None else Const(norm == "identity")
    given |= {other: Unknown("parameter") for name, other in _CHANGING.items() if _has(given, name)}
    signature = _with_axes(WITH_NORM[full], given)
    if library in _PADDINGS:
        _pad(_PADDINGS[library], signature.dims, given)
    order, names = _order_of(library, given), _NAMES[library]
    layers = [CompositePart(names.get("C", "0"), signature=signature, arguments=given)]
    for letter in order or "":
        kind: Kind | None = norm if letter == "N" else "pointwise"
        absent = _is_const(activation, None) if letter == "A" else letter == "D" and not _has(given, "dropout")
        if kind is not None and kind != "identity" and not absent:
            layers.append(CompositePart(names.get(letter, str(len(layers))), kind))
    return layers, norm is not None and order is not None


def _order_of(library: str, given: Mapping[str, Value]) -> str | None:
    """Return the letters of what may follow the convolution, in order; None if that is unknown."""
    if library == "timm":  # whose activation is part of the norm
        return "N"
    if library != "monai":
        return None if "order" in given else "NA"  # another order may put the norm first
    if not _is_const(alone := given.get("conv_only", Const(False)), False):
        return "" if _is_const(alone, True) else None
    order = text_of(given.get("adn_ordering", Const("NDA")))
    return None if order is None else order.upper()


def _with_axes(signature: Signature, given: Mapping[str, Value]) -> Signature:
    """Return the signature for the number of axes, and for the direction, that the arguments state."""
    count = integer(given.get("spatial_dims")) or {"Conv1d": 1, "Conv3d": 3}.get(_type_in(given.get("conv_cfg")) or "")
    transposed = _is_const(given.get("is_transposed"), True)
    return signature._replace(
        op="conv_transpose" if transposed else signature.op, dims=count if count in (1, 2, 3) else signature.dims
    )


def _pad(padding: Callable[[int, int, int], int], dims: int, given: dict[str, Value]) -> None:
    """Set the padding that a library takes where it gets no number, and MONAI's of a transposed output."""
    taps, steps, spread = (numbers(given.get(name, Const(1)), dims) for name in ("kernel_size", "stride", "dilation"))
    if not _has(given, "padding") or _is_const(given["padding"], ""):
        given["padding"] = _each(padding, taps, steps, spread)
    if not _has(given, "output_padding"):
        given["output_padding"] = _each(lambda step: step - 1, steps)


def _each(computed: Callable[..., int], *known: list[int | None]) -> Items:
    """Compute a number for each axis from those of it; unknown if one of these is."""
    rows = zip(*known, strict=True)
    return Items("tuple", [Unknown("parameter") if None in row else Const(computed(*row)) for row in rows])


def _kind_of_norm(norm: Value) -> Kind | None:
    """Return the kind of a norm: identity if there is no norm; None if it is unknown."""
    if _is_const(norm, None):
        return "identity"
    if isinstance(norm, Partial):
        return _kind_of_norm(norm.function)
    if isinstance(norm, Name) and not norm.name.startswith("monai."):
        kind = kind_of(canonical(norm.name))
        return kind if kind in ("norm", "other norm", "identity") else None
    word = norm.name.rpartition(".")[2].lower() if isinstance(norm, Name) else _type_in(norm)
    return None if word is None else "norm" if _NORMS.get(word.rstrip("123d")) in _BY_BATCH else "other norm"


def _type_in(config: Value | None) -> str | None:
    """Return the `type` in a config of OpenMMLab, or the name of a norm of MONAI; None if it is unknown."""
    if isinstance(config, Table):
        return text_of(config.cell.items.get("type"))
    name = text_of(config.items[0] if isinstance(config, Items) and config.items else config)
    return None if name is None else name.lower()


def convolution_of(full: str, call: LibraryCall) -> tuple[str, LibraryCall] | None:
    """Return what `build_conv_layer(config, ...)` or timm's function calls; None for what is no plain convolution.

    An unknown config counts as that of a Conv2d, the default: the channels do not depend on it. But the bias may.
    """
    if full == "timm.create_conv2d":
        return _convolution_of_timm(call)
    config, rest = _with_rest(call)
    word = "Conv2d" if not isinstance(config, Table) else _type_in(config) or ""
    name = {"Conv": "Conv2d"}.get(word, word)
    if not _is_const(config, None):
        bias = config.cell.items.get("bias") if isinstance(config, Table) and config.complete else Unknown("config")
        rest = rest.with_args(rest.args, {**({} if bias is None else {"bias": bias}), **rest.keywords})
    return (f"torch.nn.{name}", rest) if name in ("Conv1d", "Conv2d", "Conv3d") else None


def _convolution_of_timm(call: LibraryCall) -> tuple[str, LibraryCall] | None:
    signature = WITH_NORM["timm.ConvNormAct"]
    given = {"bias": Const(False), **bound(signature, call)}
    taps, depthwise = given.get("kernel_size"), call.keywords.get("depthwise", Const(False))
    if "num_experts" in call.keywords or (isinstance(taps, Items) and taps.kind == "list"):
        return None  # one for each size of filter, or a mixture
    if not _is_const(depthwise, False):
        given["groups"] = given.get("in_channels", depthwise) if _is_const(depthwise, True) else Unknown("parameter")
    _pad(_PADDINGS["timm"], signature.dims, given)
    del given["output_padding"]
    return "torch.nn.Conv2d", call.with_args([], given)


def norm_of(call: LibraryCall) -> tuple[Value, Kind | None]:
    """Return the name and the kind of the norm that `build_norm_layer(config, channels, postfix)` makes."""
    config, rest = _with_rest(call)
    given = Arguments.of(rest)
    word = _NORMS.get((_type_in(config) or "").rstrip("123d"))
    postfix = given.get(1, "postfix") or Const("")
    end = postfix.value if isinstance(postfix, Const) and isinstance(postfix.value, (int, str)) else None
    kind: Kind | None = None if word is None else "norm" if word in _BY_BATCH else "other norm"
    return Unknown("config") if word is None or end is None else Const(f"{word}{end}"), kind


def _with_rest(call: LibraryCall) -> tuple[Value | None, LibraryCall]:
    """Return the config of a builder, and its call without that."""
    keywords = {name: value for name, value in call.keywords.items() if name != "cfg"}
    config = call.args[0] if call.args else call.keywords.get("cfg")
    return config, call.with_args(call.args[1:], keywords)


def _has(given: Mapping[str, Value], name: str) -> bool:
    return not _is_const(given.get(name, Const(None)), None)


def _is_const(value: Value | None, constant: str | bool | None) -> bool:
    return isinstance(value, Const) and value.value == constant
