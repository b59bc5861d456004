"""Layers of libraries that consist of several: a separable convolution, or one with its norm and activation."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from convlint.readers.python.evaluator.library import LibraryCall
from convlint.readers.python.evaluator.values import Const, Items, Name, Partial, Table, Unknown, Value, text_of
from convlint.readers.python.nn.kinds import SEPARABLE, WITH_NORM, Kind, Signature, canonical, kind_of
from convlint.readers.python.nn.layers import bound
from convlint.readers.python.nn.tensors import Arguments, integer

# What the two convolutions of a separable layer have, whatever its arguments are: bias and activation come behind both.
_DEPTHWISE: dict[str, Value] = {"use_bias": Const(False), "activation": Const(None)}
_POINTWISE: dict[str, Value] = {
    "kernel_size": Const(1), "stride": Const(1), "padding": Const(0), "dilation": Const(1),
}  # fmt: skip
# mmcv's names of norms, without their axes, and what `build_norm_layer` calls them
_NORMS = {"BN": "bn", "SyncBN": "bn", "MMSyncBN": "bn", "IN": "in", "GN": "gn", "LN": "ln"}
_BY_BATCH = ("bn", "in")


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
    signature, in_mmcv = WITH_NORM[full], full.startswith("mmcv.")
    given = bound(signature, call)
    activation = given.pop("activation", None)
    norm = _kind_of_norm(given.pop("norm", Const(None) if in_mmcv else Name("torch.nn.BatchNorm2d")))
    # Without that argument, a convolution has a bias if no norm follows.
    unsaid = "auto" if in_mmcv else None
    if _is_const(given.get("bias", Const(unsaid)), unsaid):
        given["bias"] = Unknown("parameter") if norm is None else Const(norm == "identity")
    if not in_mmcv:
        taps = given.setdefault("kernel_size", Const(3))
        if _is_const(given.get("padding", Const(None)), None):
            given["padding"] = _same(taps, given.get("dilation", Const(1)))
    layers = [CompositePart("conv" if in_mmcv else "0", signature=signature, arguments=given)]
    if norm not in (None, "identity"):
        layers.append(CompositePart("bn" if in_mmcv else "1", norm))
    if not _is_const(activation, None):
        layers.append(CompositePart("activate" if in_mmcv else str(len(layers))))
    return layers, norm is not None and "order" not in given  # another order may put the norm first


def _kind_of_norm(norm: Value) -> Kind | None:
    """Return the kind of a norm: identity if there is no norm; None if it is unknown."""
    if _is_const(norm, None):
        return "identity"
    if isinstance(norm, Partial):
        return _kind_of_norm(norm.function)
    if isinstance(norm, Name):
        kind = kind_of(canonical(norm.name))
        return kind if kind in ("norm", "other norm", "identity") else None
    word = _type_in(norm)
    return None if word is None else "norm" if _NORMS.get(word.rstrip("123d")) in _BY_BATCH else "other norm"


def _type_in(config: Value | None) -> str | None:
    """Return the `type` in a config of OpenMMLab; None if it is unknown."""
    return text_of(config.cell.items.get("type")) if isinstance(config, Table) else None


def convolution_of(call: LibraryCall) -> tuple[str, LibraryCall] | None:
    """Return what `build_conv_layer(config, ...)` calls; None for a kind that is no plain convolution.

    An unknown config counts as that of a Conv2d, the default: the channels do not depend on it. But the bias may.
    """
    config, rest = _with_rest(call)
    word = "Conv2d" if not isinstance(config, Table) else _type_in(config) or ""
    name = {"Conv": "Conv2d"}.get(word, word)
    if not _is_const(config, None):
        bias = config.cell.items.get("bias") if isinstance(config, Table) and config.complete else Unknown("config")
        rest = rest.with_args(rest.args, {**({} if bias is None else {"bias": bias}), **rest.keywords})
    return (f"torch.nn.{name}", rest) if name in ("Conv1d", "Conv2d", "Conv3d") else None


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


def _is_const(value: Value | None, constant: str | None) -> bool:
    return isinstance(value, Const) and value.value == constant


def _same(taps: Value, dilation: Value) -> Value:
    """Return the padding that keeps the size, for each axis."""
    if isinstance(taps, Items) and taps.complete:
        steps = dilation.items if isinstance(dilation, Items) else [dilation] * len(taps.items)
        return Items("tuple", [_same(*pair) for pair in zip(taps.items, steps, strict=False)])
    width, step = integer(taps), integer(dilation)
    return Unknown("parameter") if width is None or step is None else Const((width - 1) // 2 * step)
