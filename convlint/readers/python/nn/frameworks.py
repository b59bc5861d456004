"""The evaluator's library for deep-learning frameworks: it records convolutions and follows tensors."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from convlint.model.location import Location
from convlint.readers.python.evaluator.library import Library, LibraryCall
from convlint.readers.python.evaluator.limits import ROUNDS
from convlint.readers.python.evaluator.values import (
    NONE,
    Class,
    Const,
    Function,
    Instance,
    Items,
    Name,
    Table,
    Tensor,
    Unknown,
    Value,
    text_of,
)
from convlint.readers.python.nn import keras, layers, modules, tensors
from convlint.readers.python.nn.composites import convolution_of, norm_of, parts_of
from convlint.readers.python.nn.kinds import (
    APPLYING,
    BUILD_CONVOLUTIONS,
    BUILDERS,
    COMPOSITES,
    CONTAINERS,
    CONVOLUTIONS,
    FUNCTIONAL,
    OF_AXES,
    Signature,
    canonical,
    kind_of,
    words,
)
from convlint.readers.python.nn.layers import ConstructionSite, Convolution, FrameworkLayer, Record, Recording
from convlint.readers.python.nn.modules import base_of, construction, forward_of, is_layer, module_method
from convlint.readers.python.nn.options import CommandLineOptions
from convlint.readers.python.nn.tensors import UP_TO_CALLERS, Arguments, TensorPath, TensorReader, flow_of

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

_DEEPEST = 5  # nested lists
_NORMS = frozenset(("norm", "first-axis norm"))  # kinds that may cancel a bias
_OF_SCOPES = ("stride", "padding", "activation", "biases_initializer")
_BUILT = "built"  # the attribute in which Keras remembers it


_FUNCTIONS = {
    **dict.fromkeys(("torch", "paddle"), tensors.function),
    **dict.fromkeys(("keras", "tensorflow", "tf_slim", "jax", "flax", "haiku"), keras.function),
}
_OF_LISTS = frozenset(("keras.Sequential", "flax.linen.Sequential", "haiku.Sequential"))
# Functions that return the module or function they were given
_GIVES_BACK = words("""
    torch.compile torch.jit.script torch.jit.trace torch.jit.freeze torch.nn.utils.weight_norm
    torch.nn.utils.spectral_norm torch.nn.utils.remove_weight_norm torch.nn.utils.remove_spectral_norm
    torch.nn.utils.parametrizations.weight_norm torch.nn.utils.parametrizations.spectral_norm
    torch.nn.SyncBatchNorm.convert_sync_batchnorm paddle.nn.SyncBatchNorm.convert_sync_batchnorm torch.jit.unused
    torch.jit.ignore paddle.nn.utils.spectral_norm paddle.nn.utils.weight_norm torch.jit.export
    torch.jit.script_if_tracing torch.no_grad torch.quantization.prepare_qat
""")
# The modules that have layers, and those above them
_MODULES = {name[:at] for name in CONVOLUTIONS for at, character in enumerate(name) if character == "."}
_INITIALIZES = ("torch.nn.init.", "paddle.nn.initializer.")
_CHECKPOINTS = ("torch.utils.checkpoint.checkpoint", "paddle.distributed.fleet.utils.recompute")
# Keywords of checkpointing itself, which are not passed on
_OF_CHECKPOINTS = frozenset(("use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug"))


def transparent(library: Frameworks, machine: Machine, full: str, call: LibraryCall) -> Value | None:
    """Return the result of a function that returns its layer or calls it; None for any other function."""
    if full.startswith(_INITIALIZES):
        return Const(None)
    first = call.args[0] if call.args else None
    if full in _GIVES_BACK:
        return first or Unknown("call")
    if first is None:
        return None
    if full.startswith(_CHECKPOINTS):
        if full.endswith("checkpoint_sequential"):
            inner = LibraryCall(call.node, call.file, call.args[2:3], {})
            return library.call_instance(machine, first, inner) if isinstance(first, Instance) else None
        keywords = {name: value for name, value in call.keywords.items() if name not in _OF_CHECKPOINTS}
        return machine.call(first, list(call.args[1:]), keywords, call.node, call.file)
    if full in ("torch.as_tensor", "torch.tensor") and isinstance(first, Tensor):
        return first
    if full == "torch.autograd.Variable":
        return first if isinstance(first, Tensor) else Tensor(TensorPath(raw=True))
    if full in ("torch.nn.Parameter", "torch.nn.parameter.Parameter"):
        tensor = flow_of(first)
        return Tensor(TensorPath(tensor.shape, certain=tensor.certain))
    return None


class Frameworks(Library):
    """The library of frameworks. `recording` belongs to the current root, `of_modules` has those of modules' bodies."""

    of_unknown = modules.LOADS

    def __init__(self, options: CommandLineOptions | None = None) -> None:
        self.recording, self._options = Recording(), options
        self.of_modules: dict[str, Recording] = {}
        self.loads_of_any: dict[Location, None] = {}  # calls that load published weights into whichever is configured
        self._base = cache(base_of)
        self._order_in_code = cache(keras.order_in_code)

    def option(self, holder: str, name: str, path: str) -> Value | None:
        """Return the default of an option of the command line."""
        return self._options.value(holder, name, path) if self._options is not None else None

    def options(self, holder: str, path: str) -> dict[str, Value]:
        """Return the defaults of all options of the command line that are numbers."""
        return self._options.values(holder, path) if self._options is not None else {}

    def begin_module(self) -> Recording:
        """Begin a recording of its own."""
        outer, self.recording = self.recording, Recording()
        return outer

    def end_module(self, path: str, outer: object) -> None:
        """Keep the module's recording, and go on with the other one."""
        assert isinstance(outer, Recording)
        self.of_modules[path], self.recording = self.recording, outer

    def has(self, name: str) -> bool:
        """Whether a framework has a layer of this name, or a function that is followed."""
        full = canonical(name)
        return is_layer(full) or full in FUNCTIONAL or full in BUILDERS or full in _MODULES or keras.has_function(full)

    def canonical(self, name: str) -> str:
        """Return the name without the internal modules of a framework."""
        return canonical(name)

    def is_one_of_kinds(self, name: str) -> bool:
        """Whether it is a convolution or a norm, beside which most often one of other dimensions or devices stands."""
        full = canonical(name)
        return full in CONVOLUTIONS or kind_of(full) == "norm"

    def kinds(self, module: str, pattern: re.Pattern[str]) -> list[str]:
        """Return the convolutions of a module whose names the pattern matches."""
        full = canonical(f"{module}.Conv2d").removesuffix("Conv2d")
        return [name for name in CONVOLUTIONS if name.startswith(full) and pattern.fullmatch(name[len(full) :])]

    def call(self, machine: Machine, name: str, call: LibraryCall) -> Value | None:
        """Return the result of a framework's function or class."""
        base = name.removesuffix(".__init__")
        if base != name and call.args and isinstance(made := call.args[0], Instance):  # `nn.Conv2d.__init__(self, ...)`
            is_known = self.initialize(machine, made, base, call.with_args(call.args[1:], call.keywords))
            return NONE if is_known else None
        full = canonical(name)
        if is_layer(full):
            instance = Instance(machine.heap, Name(full))
            self._become(machine, instance, full, call)
            if full in APPLYING:
                read = Arguments.of(call).get(0, "inputs") or Unknown("call")
                return self.call_instance(machine, instance, call.with_args([read], {}))
            return instance
        result = transparent(self, machine, full, call)
        if result is not None:
            return result
        if full in BUILD_CONVOLUTIONS and (built := convolution_of(full, call)) is not None:
            return self.call(machine, *built)
        if full == "mmcv.build_norm_layer":
            norm_name, kind = norm_of(call)
            norm = Instance(machine.heap, Name(full))
            machine.heap.edit(norm).extra = None if kind is None else FrameworkLayer(kind, full)
            return Items("tuple", [norm_name, norm if kind is not None else Unknown("config")])
        if full == "tf_slim.repeat" and len(call.args) > 2:
            return _repeated(machine, call)
        if full in FUNCTIONAL:
            if not self.recording.inside:
                return layers.convolved(machine, self.recording, full, call)
            return tensors.wrote(TensorPath(), [flow_of(call.args[0] if call.args else None)], (), "conv")
        if full in ("keras.Input", "keras.layers.Input"):
            return keras.input_of(Arguments.of(call), keras.usual_order(call.file))
        if full.endswith(("imagenet_utils._obtain_input_shape", "imagenet_utils.obtain_input_shape")):
            return keras.shape_obtained(Arguments.of(call))
        if full in keras.ASKS_ORDER:
            return self._order_in_code(call.file, machine.project)
        function = _FUNCTIONS.get(full.partition(".")[0])
        return None if function is None else function(full, Arguments.of(call), machine.around())

    def initialize(self, machine: Machine, instance: Instance, base: str, call: LibraryCall) -> bool:
        """Handle the call of a framework's constructor by a subclass in the source."""
        full = canonical(base)
        if not is_layer(full):
            return False
        # An equal call makes another layer.
        machine.memory.unique = machine.memory.unique or full in CONVOLUTIONS or full in COMPOSITES
        self._become(machine, instance, full, call)
        return True

    def _become(self, machine: Machine, instance: Instance, full: str, call: LibraryCall) -> None:
        cell, own = machine.heap.edit(instance), Arguments.of(call)
        signature = CONVOLUTIONS.get(full)
        if signature is not None:
            if full in OF_AXES:
                signature = _with_axes(full, signature, own)
            given = layers.bound(signature, call)
            if signature.framework == "tensorflow":  # what slim's `arg_scope` may set elsewhere
                given = {**dict.fromkeys(_OF_SCOPES, Unknown("config")), **given}
            # JAX pads the spread input by these numbers, where the others cut them off from the output.
            is_spread = (signature.framework, signature.op) == ("flax", "conv_transpose")
            if is_spread and "padding" in given and not text_of(given["padding"]):
                given["padding"] = Unknown("call")
            cell.extra = self._constructed(machine, instance, signature, given, call)
            return
        kind = kind_of(full)
        assert kind is not None
        if kind == "norm" and full.startswith("keras."):
            kind = keras.kind_of_norm(own)
        if kind == "norm" and full in APPLYING:
            kind = keras.kind_of_function(full, own)
        if kind == "norm" and (_takes_averages(call.node) or _may_be_frozen(own) or _has_other_axis(full, own)):
            kind = "other norm"
        if kind == "keras":
            own = Arguments(own.args, {"data_format": keras.usual_order(call.file), **own.keywords})
        if full == "keras.Model":
            keras.handed_out(call, machine.around())
        cell.extra = FrameworkLayer(kind, full, own, machine.by_defaults())
        # Only the framework's own containers run their children in order.
        cell.ordered = isinstance(instance.cls, Name) and kind in CONTAINERS
        if full in _OF_LISTS:
            self.recording.lines.append(instance)
            value = own.get(0, "layers") if call.exact else None
            modules.extend(machine, instance, value or Items("list", [], complete=call.exact))
        elif full in COMPOSITES:
            parts, cell.complete = parts_of(full, call)
            for part in parts:
                value = Instance(machine.heap, Name(full))
                machine.heap.edit(value).extra = (
                    FrameworkLayer(part.kind, full)
                    if part.signature is None
                    else self._constructed(machine, instance, part.signature, part.arguments, call)
                )
                modules.put(machine, instance, part.name, value)
        elif kind == "wrapper":
            cell.complete = call.exact
            modules.put(machine, instance, "module", own.get(0, "module", "layer", "layers") or Unknown("call"))
        elif kind in CONTAINERS:
            modules.fill(machine, instance, call.args or list(call.keywords.values()), call.exact)

    def _constructed(
        self, machine: Machine, instance: Instance, signature: Signature, arguments: Mapping[str, Value],
        call: LibraryCall,
    ) -> Convolution:  # fmt: skip
        """Record that a call constructs a convolution with these arguments."""
        here, made_by = ConstructionSite(call.file, call.node), ""
        place: ConstructionSite | None = here
        if isinstance(instance.cls, Class):
            place, made_by = construction(machine), instance.cls.name
        order = {"data_format": keras.usual_order(call.file)} if signature.framework == "keras" else {}
        layer = Convolution(signature, {**order, **arguments}, place or here, made_by, machine.by_defaults())
        if place is not None:  # else the class itself is evaluated, which nobody constructs here
            machine.record(Record("constructed", layer))
        return layer

    def _meaning(self, machine: Machine, instance: Instance) -> FrameworkLayer | Convolution | None:
        """Return the description of an instance; one whose constructor skipped the framework's gets it by its class."""
        meaning = modules.meaning_of(instance)
        if meaning is None and instance.extra is None and isinstance(instance.cls, Class):
            base = self.subclass_of(instance.cls)
            kind = None if base is None else kind_of(base)
            if base is not None and kind is not None:
                meaning = machine.heap.edit(instance).extra = FrameworkLayer(kind, base)
        return meaning

    def subclass_of(self, cls: Class) -> str | None:
        """Return the framework's class from which a class derives, by its canonical name."""
        return self._base(cls)

    def set_attribute(self, machine: Machine, instance: Instance | Tensor, name: str, value: Value) -> None:
        """Handle `instance.name = value`."""
        if isinstance(instance, Tensor):
            if name == "data":
                tensors.reshaped_in_place(instance.data, value)
            return
        if isinstance(layer := modules.meaning_of(value), Convolution):
            machine.record(Record("held", layer))
        meaning = self._meaning(machine, instance)
        if name == "trainable" and isinstance(meaning, FrameworkLayer) and keras.is_frozen(value):
            if meaning.kind in _NORMS:
                machine.heap.edit(instance).extra = FrameworkLayer("other norm", meaning.name, meaning.arguments)
            return
        name = meaning.signature.parameter(name) if isinstance(meaning, Convolution) else ""
        if isinstance(meaning, Convolution) and name in meaning.signature.parameters:
            changed = meaning.changed(name, tensors.settled(value) if not machine.conditions else Unknown("branch"))
            machine.heap.edit(instance).extra = changed
            machine.record(Record("constructed", changed, meaning))

    def call_instance(self, machine: Machine, instance: Instance, call: LibraryCall) -> Value | None:
        """Apply a layer, a container or a module that the source defines."""
        meaning = self._meaning(machine, instance)
        if meaning is None:
            return None
        # What reads a tensor is kept outside of the evaluator's memory.
        machine.memory.spoil()
        self.recording.called[id(instance)] = instance
        forward = forward_of(machine, instance) if isinstance(instance.cls, Class) else None
        if forward is None:
            return self.apply(machine, instance, meaning, Arguments.of(call), call)
        if not isinstance(meaning, Convolution):
            self._build(machine, instance, meaning, call)
            return machine.call(forward, call.args, call.keywords, call.node, call.file)
        # The `forward` of a subclass of a convolution counts as the convolution.
        machine.allow_more_steps()
        # `super().forward(x)` has recorded the run itself.
        before = len(self.recording.uses.get(meaning, []))
        self.recording.resized.add(meaning)
        self.recording.inside += 1  # what it computes by a function is this layer, and no other
        try:
            result = machine.call(forward, call.args, call.keywords, call.node, call.file)
        finally:
            self.recording.inside -= 1
        if len(self.recording.uses.get(meaning, [])) > before:
            return result
        read = flow_of(call.args[0] if call.args else None)
        return Tensor(layers.convolve(self.recording, instance, meaning, read, machine.around()))

    def _build(self, machine: Machine, instance: Instance, meaning: FrameworkLayer, call: LibraryCall) -> None:
        """Run the `build` of a layer of Keras, which calls that with the shape of its first input."""
        build = machine.calls.method_of(instance, "build") if meaning.name.startswith("keras.") else None
        if build is not None and _BUILT not in instance.attributes:
            machine.heap.put(instance, _BUILT, Const(True))
            machine.call(build, [Unknown("call")], {}, call.node, call.file)

    def apply(
        self,
        machine: Machine,
        instance: Instance,
        meaning: FrameworkLayer | Convolution,
        given: Arguments,
        call: LibraryCall,
    ) -> Value:
        """Apply the framework's own `forward`."""
        conditions = machine.around()
        first = given.first
        if isinstance(meaning, Convolution):
            machine.allow_more_steps()
            read = flow_of(first)
            # A first layer of Keras states the size of its input.
            if meaning.signature.framework == "keras" and read.raw:
                order, stated = layers.order_of(meaning), meaning.arguments.get("input_shape")
                if read.shape is None:
                    read = keras.stated_input(stated, meaning.signature.dims, order) or read
                read = keras.read_as(order, read) or read
            return Tensor(layers.convolve(self.recording, instance, meaning, read, conditions, machine.by_defaults()))
        if meaning.kind in ("sequential", "wrapper"):
            # mmcv's forward may be told to leave out the norm.
            may_skip = meaning.name.startswith("mmcv.") and len(given.args) + len(given.keywords) > 1
            if may_skip or not instance.complete:
                lost = modules.children(instance).values() if may_skip else ()
                self.escapes(machine, Items("list", [*given.args, *lost]))
                return Unknown("call")
            value: Value = first or Tensor(TensorPath())
            if meaning.name.endswith(".TimeDistributed"):
                return self._step_by_step(machine, instance, flow_of(value), call)
            args = keras.begun(instance, given.args)
            for child in modules.children(instance).values():
                value = machine.call(child, args or [value], {}, call.node, call.file)
                args = []
            return value
        if meaning.kind in ("module", "list", "dict"):
            self.escapes(machine, Items("list", list(given.args)))
            return Unknown("call")
        if meaning.name == "keras.layers.Lambda":
            function, more = meaning.arguments.get(0, "function"), meaning.arguments.keywords.get("arguments")
            if isinstance(function, Function) and (more is None or isinstance(more, Table)):
                others = more.items if isinstance(more, Table) else {}
                return machine.call(function, list(given.args), {**given.keywords, **others}, call.node, call.file)
        if meaning.name.startswith("keras."):
            given = keras.entered(meaning.arguments, given)
        if meaning.kind == "norm" and _takes_averages(call.node, meaning.name.startswith("haiku.")):
            meaning = FrameworkLayer("other norm", meaning.name, meaning.arguments)
        result = layers.applied(meaning, given, conditions)
        if meaning.kind in _NORMS and (meaning.defaults or machine.decided) and isinstance(first, Tensor):
            readers, defaults = first.data.readers, meaning.defaults | machine.by_defaults()
            if readers and readers[-1].kind == "norm":
                readers[-1] = replace(readers[-1], defaults=defaults)
        return result

    @staticmethod
    def _step_by_step(machine: Machine, instance: Instance, read: TensorPath, call: LibraryCall) -> Value:
        """Apply a layer of Keras to each step of time."""
        layer = instance.attributes.get("module", Unknown("call"))
        if not read.last:  # the channels are behind time, where nothing looks for them: the whole stays unknown
            step = keras.of_shape(read, keras.each_step(read))
            return keras.of_shape(flow_of(machine.call(layer, [step], {}, call.node, call.file)), None)
        shape, read.shape = read.shape, keras.each_step(read)
        value = machine.call(layer, [Tensor(read)], {}, call.node, call.file)
        read.shape = shape
        written = flow_of(value)
        if not written.last:
            return keras.of_shape(written, None)
        if written is not read:
            written.shape = keras.all_steps(written, read)
        return value

    def method(self, machine: Machine, receiver: Value, name: str, call: LibraryCall) -> Value | None:
        """Return the result of a method of a tensor or module."""
        given = Arguments.of(call)
        if isinstance(receiver, Tensor):
            conditions = machine.around()
            if name == "__getitem__" and not receiver.data.last:
                return tensors.sliced(receiver.data, given.args[0], conditions)
            if name == "__setitem__":
                receiver.data.readers.append(TensorReader("unknown", (), conditions))
                return Const(None)
            return tensors.method(receiver, name, given, conditions)
        if not isinstance(receiver, Instance):
            if name in self.of_unknown and modules.loaded(machine, receiver, name, call):
                self.loads_of_any[call.file.locate(call.node)] = None
            return None
        meaning = self._meaning(machine, receiver)
        if meaning is None:
            return None
        if name in ("forward", "__call__", "call"):
            return self.apply(machine, receiver, meaning, given, call)
        if name in modules.LOADS and modules.loaded(machine, receiver, name, call):
            self.loads_of_any[call.file.locate(call.node)] = None
        return module_method(machine, receiver, name, call)

    def attribute(self, machine: Machine, receiver: Value, name: str) -> Value | None:
        """Return an attribute of a tensor or module that the source did not set."""
        if isinstance(receiver, Tensor):
            return tensors.attribute(receiver, name)
        if not isinstance(receiver, Instance):
            return None
        meaning = self._meaning(machine, receiver)
        if isinstance(meaning, Convolution):
            return layers.convolution_attribute(meaning, name)
        if meaning is None:
            return None
        # A network is in training until code says otherwise, and what trains is what convlint is asked about.
        if name == "training":
            return Const(True)
        if name in ("_modules", "_sub_layers"):
            modules.rearranged(machine, receiver)  # as it may be by what gets them
            return Table(machine.heap, modules.children(receiver), complete=receiver.complete)
        return layers.attribute(meaning, name)

    def operator(self, machine: Machine, left: Value, right: Value, node: ast.AST) -> Value | None:
        """Return the result of arithmetic with a tensor, or of adding to a container."""
        if isinstance(left, Instance) and modules.is_container(left) and isinstance(node, ast.AugAssign):
            modules.extend(machine, left, right)
            return left
        if not isinstance(left, Tensor) and not isinstance(right, Tensor):
            return None
        conditions, operator = machine.around(), getattr(node, "op", None)
        given = Arguments([left, right], {})
        if isinstance(operator, ast.MatMult):
            return tensors.opaque(given, conditions)
        if isinstance(operator, (ast.USub, ast.UAdd, ast.Invert)):
            result: Value = tensors.run(tensors.pointwise, Arguments([left], {}), conditions)
        else:
            result = tensors.combined(given, conditions, added=isinstance(operator, (ast.Add, ast.Sub)))
        return keras.with_last(given, result)

    def escapes(self, machine: Machine, value: Value, why: str = "call", depth: int = 0) -> None:
        """Handle a value that is no longer followed: a tensor gets an unknown reader, a convolution an unknown user."""
        if isinstance(value, Tensor):
            kind = why if why in UP_TO_CALLERS else "unknown"
            value.data.readers.append(TensorReader(kind, (), machine.around()))
        elif isinstance(layer := modules.meaning_of(value), Convolution):
            machine.record(Record("escaped", layer))
        elif isinstance(value, (Items, Table)) and depth < _DEEPEST:
            for item in value.items if isinstance(value, Items) else value.items.values():
                self.escapes(machine, item, why, depth + 1)

    def items(self, machine: Machine, receiver: Instance) -> list[Value] | None:  # noqa: ARG002
        """Return the items of a loop over a container."""
        if not modules.is_container(receiver) or not receiver.complete:
            return None
        children = modules.children(receiver)
        return [Const(name) for name in children] if receiver.extra.kind == "dict" else list(children.values())


def _repeated(machine: Machine, call: LibraryCall) -> Value | None:
    """Return the result of a layer or function of slim, applied again and again to what it returns."""
    value, times, layer, *others = call.args
    rounds = tensors.integer(times)
    if rounds is None or not 0 < rounds <= ROUNDS:
        return None
    keywords = {**call.keywords, "scope": Unknown("call")}  # which slim numbers
    for _ in range(rounds):
        value = machine.call(layer, [value, *others], keywords, call.node, call.file)
    return value


def _takes_averages(call: ast.Call, takes_training: bool = False) -> bool:
    """Whether it tells a norm of Flax or Haiku to be frozen, in so many words: `not train` says nothing.

    With `takes_training` the second argument says whether the norm is in training.
    """
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if takes_training and len(call.args) > 1:
        given["is_training"] = call.args[1]
    averages, training = given.get("use_running_average"), given.get("is_training")
    return (isinstance(averages, ast.Constant) and averages.value is True) or (
        takes_training and isinstance(training, ast.Constant) and training.value is False
    )


def _may_be_frozen(own: Arguments) -> bool:
    """Whether a norm of Paddle or MXNet may be told to use the averages in training too."""
    averages = own.keywords.get("use_global_stats")
    return averages is not None and not (isinstance(averages, Const) and not averages.value)


def _has_other_axis(full: str, own: Arguments) -> bool:
    """Whether a norm of Flax goes over another axis than the channels, which are last."""
    axis = own.keywords.get("axis") if full.startswith("flax.") else None
    return isinstance(axis, Const) and axis.value not in (-1, 3, 4)


def _with_axes(full: str, signature: Signature, own: Arguments) -> Signature:
    """Return the signature for the number of axes that the arguments state; `signature` if they state none."""
    if signature.framework == "equinox":
        count = tensors.integer(own.get(0, "num_spatial_dims"))
    else:
        taps = own.get(signature.parameters.index("kernel_size"), "kernel_size")
        count = len(taps.items) if isinstance(taps, Items) and taps.complete else None
    return OF_AXES[full][count - 1] if count in (1, 2, 3) else signature
