"""Convolutions of a model: from source by the evaluator, and from torch on the meta device."""

from collections import Counter
from typing import Any

from convlint.readers.python.evaluator.machine import Machine
from convlint.readers.python.evaluator.values import Const, Function, Instance
from convlint.readers.python.nn.frameworks import Frameworks
from convlint.readers.python.nn.layers import Convolution, argument, per_axis
from convlint.readers.python.nn.modules import everything
from convlint.readers.python.nn.tensors import integer
from convlint.readers.python.project import Project

Convs = Counter[tuple[Any, ...]]


def evaluated(machine: Machine, path: str, name: str) -> Convs | None:
    """What the function `name` of the file gives: (op, C, K, kernel, stride, groups, bias) of each convolution."""
    root = next((each for each in machine.roots(path) if each.name == name), None)
    if not isinstance(root, Function):
        return None
    value = machine.run_root(root, False).value
    if not isinstance(value, Instance) or machine.steps < 0:
        return None
    return Counter(_written(each.extra) for _, each in everything(value) if isinstance(each.extra, Convolution))


def machine_of(folder: str, path: str, text: str) -> Machine:
    """An evaluator of a file that lies in a folder of other sources, with the text given here."""
    machine = Machine(Project(folder, [path], {path: text.encode()}), Frameworks())
    machine.left_of_file[path] = machine.left_of_run  # as if each network that it calls for had a file of its own
    return machine


def _written(layer: Convolution) -> tuple[Any, ...]:
    dims = layer.signature.dims
    bias = argument(layer, layer.signature.bias)
    return (
        layer.signature.op, *(integer(argument(layer, name)) for name in ("in_channels", "out_channels")),
        *(tuple(integer(each) for each in per_axis(argument(layer, name), dims)) for name in ("kernel_size", "stride")),
        integer(argument(layer, "groups")), bool(bias.value) if isinstance(bias, Const) else None,
    )  # fmt: skip


def built(module: Any) -> Convs:
    """The same of a module of torch."""
    from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

    return Counter(
        (
            "conv_transpose" if isinstance(each, _ConvTransposeNd) else "conv", each.in_channels, each.out_channels,
            tuple(each.kernel_size), tuple(each.stride), each.groups, each.bias is not None,
        )
        for each in module.modules()
        if isinstance(each, _ConvNd)
    )  # fmt: skip
