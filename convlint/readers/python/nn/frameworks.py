"""What frameworks do, as the evaluator asks for it: the Library of convolutions."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator.library import Call
from convlint.readers.python.evaluator.values import (
    Class,
    Const,
    Instance,
    Items,
    Name,
    Plain,
    Table,
    Tensor,
    Unknown,
    Value,
)
from convlint.readers.python.nn import convolutions, functions, keras, layers, modules, operations, reshaping
from convlint.readers.python.nn.arguments import Arguments
from convlint.readers.python.nn.escaping import computed, escape
from convlint.readers.python.nn.flow import Flow, Reader
from convlint.readers.python.nn.kinds import CONTAINERS, CONVOLUTIONS, canonical, kind_of
from convlint.readers.python.nn.layers import Layer
from convlint.readers.python.nn.module_methods import module_method
from convlint.readers.python.nn.origins import base_of, construction, forward_of, signature_of
from convlint.readers.python.nn.recording import Constructed, Convolution, Held, Place, Recording
from convlint.readers.python.nn.transparent import transparent

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine


class Frameworks:
    """The evaluator's library. `recording` is that of the root that runs now."""

    def __init__(self) -> None:
        self.recording = Recording()
        self._kinds: dict[int, tuple[Class, str | None]] = {}

    def call(self, machine: Machine, name: str, call: Call) -> Value | None:
        """What a framework's function or class gives."""
        full = canonical(name)
        if full in CONVOLUTIONS or kind_of(full) is not None:
            instance = Instance(Name(full))
            self._become(machine, instance, full, call)
            return instance
        found = transparent(self, machine, full, call)
        if found is not None:
            return found
        return functions.function(full, Arguments(call.args, call.keywords), tuple(machine.conditions))

    def initialize(self, machine: Machine, instance: Instance, base: str, call: Call) -> bool:
        """A class of the source calls the constructor of the framework's class that it is a kind of."""
        full = canonical(base)
        if full not in CONVOLUTIONS and kind_of(full) is None:
            return False
        if full in CONVOLUTIONS and machine.journals.trials:
            machine.journals.trials[-1].pure = False  # an equal call elsewhere makes another layer
        self._become(machine, instance, full, call)
        return True

    def _become(self, machine: Machine, instance: Instance, full: str, call: Call) -> None:
        machine.touch(instance)
        signature = signature_of(full, call)
        if signature is not None:
            place: Place | None = Place(call.file, call.node)
            made_by = ""
            if isinstance(instance.cls, Class):
                place, made_by = construction(machine), instance.cls.name
            layer = Convolution(
                signature, convolutions.bound(signature, call), place or Place(call.file, call.node), made_by
            )
            instance.extra = layer
            if place is not None:  # else the class itself is evaluated, which nobody constructs here
                machine.record(Constructed(layer))
            return
        kind = kind_of(full)
        assert kind is not None
        own = Arguments(list(call.args), dict(call.keywords))
        if full.startswith("keras."):
            kind = keras.kind_of_norm(own) if kind == "norm" else kind
            if full == "keras.Model":
                keras.handed_out(call, tuple(machine.conditions))
        instance.extra = Layer(kind, full, own)
        if full == "keras.Sequential":
            held = own.get(0, "layers")
            modules.extend(
                machine, instance, held if held is not None and call.exact else Items("list", [], complete=call.exact)
            )
            return
        if kind in CONTAINERS:
            args = call.args or list(call.keywords.values())
            modules.fill(machine, instance, args, call.exact)

    def _meaning(self, machine: Machine, instance: Instance) -> Layer | Convolution | None:
        """What an instance is; one whose constructor never reached the framework's is what its class says."""
        if instance.extra is None and isinstance(instance.cls, Class):
            base = self.subclass_of(instance.cls)
            kind = None if base is None else kind_of(base)
            if base is not None and kind is not None:
                machine.touch(instance)
                instance.extra = Layer(kind, base)
        extra = instance.extra
        return extra if isinstance(extra, (Layer, Convolution)) else None

    def subclass_of(self, cls: Class) -> str | None:
        """The framework's class that a class of the source is a kind of, by its canonical name."""
        known = self._kinds.get(id(cls))
        if known is None:
            known = self._kinds[id(cls)] = cls, base_of(cls, 0)
        return known[1]

    def set_attribute(self, machine: Machine, instance: Instance, name: str, value: Value) -> None:
        """`instance.name = value` took place."""
        if isinstance(value, Instance) and isinstance(value.extra, Convolution):
            machine.record(Held(value.extra))
        meaning = self._meaning(machine, instance)
        if isinstance(meaning, Convolution):
            name = meaning.signature.parameter(name)
        if isinstance(meaning, Convolution) and name in meaning.signature.parameters:
            machine.touch(instance)
            instance.extra = changed = meaning.changed(name, value if not machine.conditions else Unknown("branch"))
            machine.record(Constructed(changed, meaning))

    def call_instance(self, machine: Machine, instance: Instance, call: Call) -> Value | None:
        """A layer, a container or a module of the source is applied."""
        meaning = self._meaning(machine, instance)
        if meaning is None:
            return None
        machine.journals.spoil()
        self.recording.called[id(instance)] = instance
        given = Arguments(call.args, call.keywords)
        if isinstance(instance.cls, Class):
            forward = forward_of(machine, instance)
            if forward is not None:
                return self._forward(machine, instance, meaning, forward, call)
        return self.apply(machine, instance, meaning, given, call)

    def _forward(
        self, machine: Machine, instance: Instance, meaning: Layer | Convolution, forward: Value, call: Call
    ) -> Value:
        """A module of the source runs its own forward; what a kind of convolution computes by itself is one."""
        if not isinstance(meaning, Convolution):
            return machine.call(forward, call.args, call.keywords, call.node, call.file)
        machine.found()
        before = len(self.recording.uses_of(meaning))
        self.recording.resized.add(id(meaning))
        found = machine.call(forward, call.args, call.keywords, call.node, call.file)
        if len(self.recording.uses_of(meaning)) > before:
            return found
        read = operations.flow_of(call.args[0] if call.args else None)
        return Tensor(convolutions.convolve(self.recording, instance, meaning, read, tuple(machine.conditions)))

    def apply(
        self, machine: Machine, instance: Instance, meaning: Layer | Convolution, given: Arguments, call: Call
    ) -> Value:
        """What the framework's own forward does."""
        conditions = tuple(machine.conditions)
        first = given.args[0] if given.args else next(iter(given.keywords.values()), None)
        if isinstance(meaning, Convolution):
            machine.found()
            read = operations.flow_of(first)
            if read.shape is None and read.raw:
                read = keras.stated_input(meaning.arguments.get("input_shape"), meaning.signature.dims) or read
            return Tensor(convolutions.convolve(self.recording, instance, meaning, read, conditions))
        if meaning.kind in ("sequential", "wrapper"):
            if not instance.complete:
                self.escapes(machine, Items("list", list(given.args)))
                return Unknown("call")
            value: Value = first or Tensor(Flow())
            args = keras.begun(instance, given.args)
            for child in modules.children(instance).values():
                value = machine.call(child, args or [value], {}, call.node, call.file)
                args = []
            return value
        if meaning.kind in ("module", "list", "dict"):
            self.escapes(machine, Items("list", list(given.args)))
            return Unknown("call")
        return layers.applied(meaning, given, conditions)

    def method(self, machine: Machine, receiver: Value, name: str, call: Call) -> Value | None:
        """A method of a tensor or a module."""
        given = Arguments(call.args, call.keywords)
        if isinstance(receiver, Tensor):
            conditions = tuple(machine.conditions)
            if name == "__getitem__" and not receiver.data.last:
                return reshaping.sliced(receiver.data, given.args[0], conditions)
            if name == "__setitem__":
                receiver.data.readers.append(Reader("unknown", (), conditions))
                return Const(None)
            return functions.method(receiver, name, given, conditions)
        if not isinstance(receiver, Instance):
            return None
        meaning = self._meaning(machine, receiver)
        if meaning is None:
            return None
        if name in ("forward", "__call__"):
            return self.apply(machine, receiver, meaning, given, call)
        return module_method(machine, receiver, name, call)

    def attribute(self, machine: Machine, receiver: Value, name: str) -> Value | None:
        """An attribute that the source did not set."""
        if isinstance(receiver, Tensor):
            return functions.attribute(receiver, name)
        if not isinstance(receiver, Instance):
            return None
        meaning = self._meaning(machine, receiver)
        if isinstance(meaning, Convolution):
            return convolutions.attribute(meaning, name)
        if meaning is None:
            return None
        if name == "training":
            return Const(True)
        if name in ("_modules", "_sub_layers"):
            modules.rearranged(machine, receiver)  # as it may be by what gets them
            held: dict[Plain, Value] = {}
            held.update(modules.children(receiver).items())
            return Table(held, complete=receiver.complete)
        return layers.attribute(meaning, name)

    def operator(self, machine: Machine, left: Value, right: Value, node: ast.AST) -> Value | None:
        """Arithmetic with a tensor."""
        if isinstance(left, Instance) and modules.is_container(left) and isinstance(node, ast.AugAssign):
            modules.extend(machine, left, right)
            return left
        if not isinstance(left, Tensor) and not isinstance(right, Tensor):
            return None
        conditions = tuple(machine.conditions)
        operator = getattr(node, "op", None)
        given = Arguments([left, right], {})
        if isinstance(operator, ast.MatMult):
            return operations.opaque(given, conditions)
        return keras.with_last(given, computed(operator, left, given, conditions))

    def escapes(self, machine: Machine, value: Value) -> None:
        """A value went where nobody looks."""
        escape(machine, value, 0)

    def items(self, machine: Machine, receiver: Instance) -> list[Value] | None:  # noqa: ARG002
        """What a loop over a container goes through."""
        if not modules.is_container(receiver) or not receiver.complete:
            return None
        held = modules.children(receiver)
        if receiver.extra.kind == "dict":
            return [Const(name) for name in held]
        return list(held.values())
