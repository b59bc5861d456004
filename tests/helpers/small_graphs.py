"""Reads small PyTorch modules with both readers, and lists their groups of channels."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from convlint.model.channels import channels_of
from convlint.model.network import Network
from convlint.readers import ReadOptions
from convlint.readers.torch import program
from convlint.readers.torch.layers import network_of
from convlint.readers.torch.module import forward


def live(module: nn.Module, *shapes: tuple[int, ...], trains: bool = False) -> Network:
    """What the reader of live models makes of a module."""
    given = tuple(torch.empty(shape, device="meta") for shape in shapes)
    trace, early = forward(module.train(trains).to("meta"), (given, {}), ReadOptions())
    assert early == ()
    layers, edges, messages = network_of(trace.calls, trace.unknown, "x")
    assert messages == []
    operations = trace.operations.finished(trace.calls, layers)
    whole = trace.operations.whole
    return Network(path="x", layers=layers, edges=edges, operations=operations, whole=whole).with_used_heads()


def stored(folder: Path, module: nn.Module, *shapes: tuple[int, ...], decomposed: bool = False) -> Network:
    """What the reader of exported programs makes of it."""
    path = str(folder / "model.pt2")
    exported = torch.export.export(module.eval(), tuple(map(torch.zeros, shapes)))
    torch.export.save(exported.run_decompositions() if decomposed else exported, path)
    network, errors = program.read(path, ReadOptions())
    assert errors == ()
    assert network is not None
    return network


def groups(network: Network) -> list[Any]:
    """Each group with a layer: its width, writers, readers, depthwise ones, its divisor, and whether it is free."""
    names = [layer.name for layer in network.layers]
    return sorted(
        (
            group.width, sorted(names[index] for index in group.writers),
            sorted((names[reader.layer], str(reader.times)) for reader in group.readers),
            sorted(names[index] for index in group.depthwise), group.multiple_of, not group.fixed,
        )
        for group in channels_of(network).groups if group.layers
    )  # fmt: skip


def free(network: Network) -> dict[tuple[str, ...], list[str]]:
    """The writers of each group that can change, with its readers."""
    found = groups(network)
    return {tuple(writers): [name for name, _ in readers] for _, writers, readers, _, _, can in found if can}
