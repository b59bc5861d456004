"""Layers of a network: their arguments, their effect on a tensor, and the runs of convolutions."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct

from convlint.model.layer import output_size, transposed_output_size
from convlint.model.location import Location
from convlint.model.source import StatedLiteral
from convlint.readers.python.evaluator.library import LibraryCall
from convlint.readers.python.evaluator.values import Const, Instance, Items, Tensor, Unknown, Value, union
from convlint.readers.python.nn import keras, tensors
from convlint.readers.python.nn.kinds import FUNCTIONAL, Form, Kind, Signature
from convlint.readers.python.nn.tensors import (
    SOMETHING,
    Arguments,
    Conditions,
    Shape,
    Space,
    TensorPath,
    TensorReader,
    flow_of,
    integer,
    settled,
    sized,
    unknown_sizes,
)
from convlint.readers.python.source_file import SourceFile

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine


class FrameworkLayer(Struct, frozen=True, eq=False):
    """Description of an instance of a framework's class: its kind, and the arguments of its construction."""

    kind: Kind
    name: str  # in full
    arguments: Arguments = Arguments((), {})
    defaults: frozenset[StatedLiteral] = frozenset()  # of parameters, which decided tests around its construction

    def either(self, other: object) -> FrameworkLayer | None:
        """Return what is true of either of two layers; None if they differ in kind."""
        if not isinstance(other, FrameworkLayer) or other.kind != self.kind or self.kind not in ("norm", "pointwise"):
            return None
        return FrameworkLayer(self.kind, self.name, defaults=self.defaults & other.defaults)


# Kinds that keep the shape, with the kind of reader that each is for the tensor
# Frameworks besides Keras whose layers have the channels last unless told
_LAST = frozenset(("flax", "haiku", "tensorflow"))
_NUMBER_BY_NUMBER: dict[Kind, str] = {
    "pointwise": "other", "other norm": "other", "norm": "norm", "first-axis norm": "norm",
}  # fmt: skip
_BY_ARGUMENTS: dict[Kind, tensors.Operation] = {
    "pool": tensors.pooled,
    "adaptive pool": tensors.adaptively_pooled,
    "upsample": tensors.resized,
    "pixel shuffle": tensors.shuffled,
    "pixel unshuffle": tensors.unshuffled,
    "pad": tensors.padded,
}
_ATTRIBUTES = {
    "num_features": 0, "in_features": 0, "out_features": 1, "num_groups": 0, "normalized_shape": 0, "num_channels": 1,
    "kernel_size": 0, "p": 0, "num_embeddings": 0, "embedding_dim": 1, "output_size": 0,
}  # fmt: skip


def applied(layer: FrameworkLayer, given: Arguments, conditions: Conditions) -> Value:
    """Return the output of the layer."""
    first, own = given.first, layer.arguments
    tensor = first if isinstance(first, Tensor) else Tensor(TensorPath())
    if layer.kind == "identity":
        return tensor
    if layer.kind == "keras":
        return keras.applied(layer.name, own, given, conditions)
    if layer.kind == "flatten":
        start, stop = own.get(0, "start_dim", "start_axis"), own.get(1, "end_dim", "stop_axis")
        axes = Arguments([first or tensor, start or Const(1), stop or Const(-1)], {})
        return tensors.run(tensors.flattened, axes, conditions)
    if layer.kind in _NUMBER_BY_NUMBER:
        kind = _NUMBER_BY_NUMBER[layer.kind]
        # Where the channels are first, the last axis is that of columns; where they are last, the first that of rows.
        beside = tensor.data.last == (layer.kind == "first-axis norm")
        if layer.name.startswith("keras.") and (keras.is_frozen(given.get(1, "training")) or beside):
            kind = "other"
        return keras.with_last(given, tensors.run(tensors.pointwise, Arguments([tensor], {}), conditions, kind))
    if layer.kind == "loss":
        return tensors.compared(given, conditions)
    if layer.kind in _BY_ARGUMENTS:
        return tensors.run(_BY_ARGUMENTS[layer.kind], Arguments([tensor, *own.args], own.keywords), conditions)
    return tensors.opaque(given, conditions)


def attribute(layer: FrameworkLayer, name: str) -> Value | None:
    """Return an attribute that is an argument of the construction; None for others."""
    if name in _ATTRIBUTES:
        return layer.arguments.get(_ATTRIBUTES[name], name)
    if name == "bias" and layer.kind in ("opaque", "norm", "other norm", "first-axis norm"):
        return Tensor(TensorPath())
    if name in ("weight", "running_mean", "running_var"):
        return Tensor(TensorPath((layer.arguments.args[0],) if layer.arguments.args else None))
    return None


class ConstructionSite(NamedTuple):
    """The call that constructs a convolution, and its file."""

    file: SourceFile
    node: ast.Call

    def locate(self) -> Location:
        """Return its location for a report."""
        return self.file.locate(self.node)


class Convolution(Struct, eq=False):
    """A constructed convolution. It is never changed, as copies of its instance share it.

    `arguments` are by the names of the signature's parameters. `made_by` is the name of a subclass in the source of
    which it is an instance, and '' for the framework's own class.
    """

    signature: Signature
    arguments: dict[str, Value]
    place: ConstructionSite
    made_by: str = ""
    defaults: frozenset[StatedLiteral] = frozenset()  # of parameters, which decided tests around its construction
    _weight: TensorPath | None = None

    @property
    def whole(self) -> bool:
        """Whether all given arguments are known."""
        return all(value.__class__ is not Unknown for value in self.arguments.values())

    @property
    def weight(self) -> TensorPath:
        """Its weight, shared by all copies: if one reshapes it, the shape is unknown for all."""
        if self._weight is None:
            self._weight = TensorPath(_weight_shape(self), certain=self.signature.framework in ("pytorch", "paddle"))
        return self._weight

    def changed(self, name: str, value: Value) -> Convolution:
        """Return the same convolution with another argument."""
        return Convolution(self.signature, {**self.arguments, name: value}, self.place, self.made_by, self.defaults)


class Record(NamedTuple):
    """An event in the life of a convolution.

    It was `constructed`, perhaps from `before` by setting an attribute; `held` by an attribute or a container; `lined`
    up in a Sequential in front of something, a `norm` or not; `loaded` with weights by the call `at`; or it
    `escaped` to code that is not followed.
    """

    what: Literal["constructed", "held", "lined", "loaded", "escaped"]
    layer: Convolution
    before: Convolution | None = None
    norm: bool | None = None  # None where nobody knows
    defaults: frozenset[StatedLiteral] = frozenset()  # of parameters, but for which the norm might not be there
    at: Location | None = None
    published: bool = False  # whether the weights are known for ones that others made


class ConvRun(NamedTuple):
    """One application of a convolution; `run` is the number of the forward pass and the identity of the instance."""

    run: tuple[int, int]
    reads: TensorPath
    writes: TensorPath
    conditions: Conditions
    defaults: frozenset[StatedLiteral] = frozenset()  # of parameters, which decided tests around it


class Recording:
    """The events of the forward passes of one root."""

    def __init__(self) -> None:
        self.run = 0
        self.inside = 0  # depth of running forwards of subclasses of convolutions
        self.uses: dict[Convolution, list[ConvRun]] = {}
        self.resized: set[Convolution] = set()  # those with a forward of their own, which may pad as it likes
        self.called: dict[int, Instance] = {}  # modules that were applied; kept alive, so that identities stay unique
        self.lines: list[Instance] = []  # Sequentials of Keras, which a script may call `model` one after the other


_ABSENT: dict[str, Value] = {
    "stride": Const(1), "dilation": Const(1), "groups": Const(1), "output_padding": Const(0),
    "bias": Const(True), "bias_attr": Const(None), "use_bias": Const(True), "with_bias": Const(True),
    "depth_multiplier": Const(1),
}  # fmt: skip
_NONE_IS_ABSENT = frozenset(("stride", "dilation", "output_padding"))


def bound(signature: Signature, call: LibraryCall) -> dict[str, Value]:
    """Bind the arguments of a call to parameters; those that unknown arguments may contain are unknown."""
    keywords = {signature.parameter(name): value for name, value in call.keywords.items()}
    arguments = {name: settled(value) for name, value in zip(signature.parameters, call.args, strict=False)}
    arguments |= {name: settled(value) for name, value in keywords.items() if name in signature.parameters}
    older = len(call.args) > signature.positional or not signature.foreign.isdisjoint(call.keywords)
    # Positions mean something else in that version; only the first argument is the same in all.
    if older:
        arguments = {name: value for name, value in arguments.items() if name == "out_channels"}
    names = signature.parameters if older or not call.exact else ()
    others = None if older or call.others is None else {signature.parameter(name) for name in call.others}
    unsure = {name: Unknown("parameter") for name in names if others is None or name in others}
    return {**unsure, **arguments} if unsure else arguments


def argument(layer: Convolution, name: str) -> Value:
    """Return an argument, or the framework's default."""
    value = layer.arguments.get(name)
    if value is None and name == "padding":
        return Const(layer.signature.padding)
    if value is None or (name in _NONE_IS_ABSENT and value.__class__ is Const and value.value is None):
        return _ABSENT.get(name, SOMETHING)
    return value


def activated(layer: Convolution) -> bool | None:
    """Whether the layer applies an activation itself; None if unknown."""
    value = layer.arguments.get("activation")
    if value is None or "activation" not in layer.signature.parameters:
        return False
    if isinstance(value, Const):
        return value.value not in (None, "linear")
    return None if isinstance(value, Unknown) else True


def channels_of(layer: Convolution, read: TensorPath) -> Value:
    """Return the channels that a layer without `in_channels` reads; unknown if its axes may be others."""
    if layer.signature.framework not in ("keras", *_LAST):
        return SOMETHING if "data_format" in layer.arguments else read.channels
    seen = keras.read_as(order_of(layer), read)
    return SOMETHING if seen is None else seen.channels


def order_of(layer: Convolution) -> str:
    """Return the order of axes of a layer of Keras; empty if that is not known."""
    return keras.order_of(layer.arguments.get("data_format"))


def widths_of(layer: Convolution, read: TensorPath | None) -> tuple[Value, Value, Value]:
    """Return C, K and the number of groups; a layer without `in_channels` learns C from what it reads first."""
    C = argument(layer, "in_channels")
    if read is not None and "in_channels" not in layer.signature.parameters:
        C = channels_of(layer, read)
    if not layer.signature.depthwise:
        return C, argument(layer, "out_channels"), argument(layer, "groups")
    width, times = integer(C), argument(layer, "depth_multiplier")
    multiplier = integer(times)
    if width is None or multiplier is None or not isinstance(C, Const) or not isinstance(times, Const):
        return C, SOMETHING, SOMETHING
    return C, Const(width * multiplier, union(C.stated, times.stated)), C


def per_axis(value: Value, dims: int) -> tuple[Value, ...]:
    """Expand an argument to one value for each spatial axis."""
    if value.__class__ is Items:
        items = value.items if value.complete else []
        if len(items) == 1:
            return tuple(items * dims)
        return tuple(items) if len(items) == dims else unknown_sizes(dims)
    return (value,) * dims


def numbers_of(layer: Convolution, name: str) -> list[int | None]:
    """Return an argument as integers for each spatial axis; None for unknown ones."""
    return [integer(value) for value in per_axis(argument(layer, name), layer.signature.dims)]


def named_padding(layer: Convolution) -> str:
    """Return the padding's name, such as `same` or `valid`; '' if it is given in numbers."""
    padding = argument(layer, "padding")
    return padding.value.lower() if isinstance(padding, Const) and isinstance(padding.value, str) else ""


def convolution_attribute(layer: Convolution, name: str) -> Value | None:
    """Return an attribute of a convolution; None if it has none by that name."""
    plain = name.removeprefix("_")
    if plain in ("in_channels", "out_channels", "groups"):
        return argument(layer, plain)
    if name in ("kernel_size", "stride", "dilation", "padding", "output_padding"):
        value = argument(layer, name)
        is_name = value.__class__ is Const and value.value.__class__ is str
        return value if is_name else Items("tuple", list(per_axis(value, layer.signature.dims)))
    if name == "padding_mode":
        return layer.arguments.get(name, Const("zeros"))
    if name == "weight":
        return Tensor(layer.weight)
    if name == "bias":
        value = argument(layer, layer.signature.bias)
        if value.__class__ is Const:
            return Const(None) if value.value is False else Tensor(TensorPath((argument(layer, "out_channels"),)))
        return Unknown("parameter")
    return None


def _weight_shape(layer: Convolution) -> Shape:
    C, K = argument(layer, "in_channels"), argument(layer, "out_channels")
    groups = integer(argument(layer, "groups"))
    first, second = (K, C) if layer.signature.op == "conv" else (C, K)
    inner = integer(second)
    if groups is None or inner is None:
        second = SOMETHING
    elif groups > 1:
        second = Const(inner // groups)
    return (first, second, *per_axis(argument(layer, "kernel_size"), layer.signature.dims))


def convolve(
    recording: Recording, instance: Instance | Convolution, layer: Convolution, tensor: TensorPath,
    conditions: Conditions, defaults: frozenset[StatedLiteral] = frozenset(),
) -> TensorPath:  # fmt: skip
    """Apply a convolution to a tensor, record the run, and return the output."""
    dims = layer.signature.dims
    stated, C = integer(tensor.channels), integer(argument(layer, "in_channels"))
    # A raw tensor is the network's input only if its channels are those of the layer; else it is another argument.
    trusted = stated == C if tensor.raw else stated is None or C is None or stated == C
    if "in_channels" not in layer.signature.parameters:
        trusted = channels_of(layer, tensor) is not SOMETHING
    taps, steps = numbers_of(layer, "kernel_size"), numbers_of(layer, "stride")
    sizes = tensor.sizes if trusted and layer not in recording.resized else None
    batch = tensor.shape[0] if trusted and tensor.shape is not None else SOMETHING
    known = sizes is not None and len(sizes) == dims and any(size is not SOMETHING for size in sizes)
    written = _sizes(layer, sizes) if sizes is not None and known else unknown_sizes(dims)
    # A filter larger than 1x1 is evidence that the map is larger than 1x1, which matters to squeeze layers.
    spread = any(tap is not None and tap > 1 for tap in taps)
    if spread:
        tensor.space.says(False)
    if all(tap == 1 for tap in taps):
        space = tensor.space if all(step == 1 for step in steps) else Space(tensor.space.points)
    else:  # a filter as large as the map itself has no padding
        padding = argument(layer, "padding")
        none = padding.__class__ is Const and padding.value == 0
        keeps = spread and (not none or max(tap or 0 for tap in taps) <= 3)
        space = Space(False if keeps else None)
    framework, order = layer.signature.framework, order_of(layer)
    last = order != "channels_first" if framework == "keras" else order == "channels_last" and framework in _LAST
    width = widths_of(layer, tensor)[1] if layer.signature.depthwise else argument(layer, "out_channels")
    out = TensorPath((batch, width, *written), space=space, last=last)
    use = ConvRun((recording.run, id(instance)), tensor, out, conditions, defaults)
    recording.uses.setdefault(layer, []).append(use)
    tensor.readers.append(TensorReader("conv", (out,), conditions))
    # A Keras layer with an activation is two operations: only the second output is read by others.
    within = activated(layer)
    if within is False:
        return out
    after = TensorPath(out.shape, space=out.space, last=last)
    out.readers.append(TensorReader("other" if within else "unknown", (after,), conditions))
    return after


def _sizes(layer: Convolution, sizes: Shape) -> Shape:
    """Return the spatial extents of the output."""
    transposed, mode = layer.signature.op == "conv_transpose", named_padding(layer)
    known, steps = [integer(size) for size in sizes], [step or None for step in numbers_of(layer, "stride")]
    if mode == "same":
        return sized(lambda size, step: size * step if transposed else -(-size // step), known, steps)

    def size_of(size: int, taps: int, stride: int, pad: int, dilation: int, extra: int) -> int:
        if transposed:
            return transposed_output_size(
                size, stride=stride, pad=2 * pad, dilation=dilation, taps=taps, output_padding=extra
            )
        return output_size(size, stride=stride, pad=2 * pad, dilation=dilation, taps=taps)

    pads = [0] * layer.signature.dims if mode == "valid" else numbers_of(layer, "padding")
    return sized(size_of, known, numbers_of(layer, "kernel_size"), steps, pads, numbers_of(layer, "dilation"),
                 numbers_of(layer, "output_padding"))  # fmt: skip


def convolved(machine: Machine, recording: Recording, name: str, call: LibraryCall) -> Value:
    """Return the output of a convolving function, which is recorded as a convolution constructed here."""
    form = FUNCTIONAL[name]
    layer = Convolution(form.signature, _arguments(form, call), ConstructionSite(call.file, call.node))
    machine.memory.spoil()  # an equal call elsewhere is another layer
    machine.record(Record("constructed", layer))
    given, conditions = Arguments.of(call), machine.around()
    if form.signature.framework in ("pytorch", "paddle"):
        return Tensor(convolve(recording, layer, layer, flow_of(given.get(0, "input", "x", "lhs")), conditions))
    written = tensors.opaque(given, conditions)
    use = ConvRun((recording.run, id(layer)), TensorPath(), flow_of(written), conditions)
    recording.uses.setdefault(layer, []).append(use)
    return written


def _arguments(form: Form, call: LibraryCall) -> dict[str, Value]:
    given, open_ = Arguments.of(call), Unknown("weight")
    if not call.exact:
        return dict.fromkeys(form.signature.parameters, open_)
    values = {name: value for at, name in enumerate(form.parameters) if (value := given.get(2 + at, name)) is not None}
    bias = values.get("bias", Const(None) if form.parameters else open_)
    if not form.parameters:
        values = dict.fromkeys(("stride", "padding", "dilation", "output_padding"), open_)
    values["bias"] = Const(False) if isinstance(bias, Const) and bias.value is None else open_
    C, K, taps = _of_weight(form, given.get(1, *form.weight), values.get("groups", Const(1)))
    return {**values, "in_channels": C, "out_channels": K, "kernel_size": taps}


def _of_weight(form: Form, weight: Value | None, groups: Value) -> tuple[Value, Value, Value]:
    """Return C, K and the sizes of the filter, from the shape of a weight."""
    open_ = Unknown("weight")
    shape = weight.data.shape if isinstance(weight, Tensor) and weight.data.certain else None
    if shape is None or form.order is None or len(shape) != form.signature.dims + 2:
        return open_, open_, open_
    first, second, *rest = shape
    if isinstance(second, Const) and isinstance(groups, Const) and (times := integer(groups)) is not None:
        size = integer(second)
        inner: Value = open_ if size is None else Const(size * times, union(second.stated, groups.stated))
    else:
        inner = next((value for value in (second, groups) if isinstance(value, Unknown)), open_)
    return (first, inner, Items("tuple", rest)) if form.order == "in first" else (inner, first, Items("tuple", rest))
