"""Classes of the source that are kinds of a framework's, and where an object of one is constructed."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator.library import Call
from convlint.readers.python.evaluator.values import Class, Instance, Items, Name, Value
from convlint.readers.python.nn.arguments import Arguments
from convlint.readers.python.nn.kinds import CONVOLUTIONS, canonical, kind_of
from convlint.readers.python.nn.layers import Layer
from convlint.readers.python.nn.other_names import FLAX, FLAX_NAME
from convlint.readers.python.nn.recording import Convolution, Place
from convlint.readers.python.nn.signatures import Signature

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine


def base_of(cls: Class, depth: int = 0) -> str | None:
    """The framework's class that a class of the source is a kind of, by its canonical name."""
    for base in cls.bases if depth < 20 else ():
        if isinstance(base, Name):
            full = canonical(base.name)
            if full in CONVOLUTIONS or kind_of(full) is not None:
                return full
        elif isinstance(base, Class):
            found = base_of(base, depth + 1)
            if found is not None:
                return found
    return None


def construction(machine: Machine) -> Place | None:
    """Where the object whose constructor runs is constructed: behind the calls of inherited constructors."""
    for site in reversed(machine.stack):
        function = site.node.func
        if not (isinstance(function, ast.Attribute) and function.attr == "__init__"):
            return Place(site.file, site.node)
    return None


def forward_of(machine: Machine, instance: Instance) -> Value | None:
    """The method of a class of the source that its framework runs when an object is called."""
    extra = instance.extra
    if isinstance(extra, Layer):
        name = extra.name
    else:
        name = f"{extra.signature.framework}." if isinstance(extra, Convolution) else ""
    return machine.classes.method_of(instance, "call" if name.startswith("keras.") else "forward")


def signature_of(full: str, call: Call) -> Signature | None:
    """What a convolution is constructed with; Flax's has as many axes as its kernel."""
    if full == FLAX_NAME:
        taps = Arguments(call.args, call.keywords).get(1, "kernel_size")
        count = len(taps.items) if isinstance(taps, Items) and taps.complete else 2
        return FLAX[count - 1] if 1 <= count <= 3 else FLAX[1]
    return CONVOLUTIONS.get(full)
