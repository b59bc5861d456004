"""A spec's items as operations, and the groups of channels that follow."""

from __future__ import annotations

import pytest

from convlint.model.channel_walk import channels_of
from convlint.model.network import Network
from convlint.readers.spec.reader import read_spec

HEAD = "version: 1\ndefaults: {N: 32, dtype: fp16}\nlayers:\n"


def network_of(*items: str, errors: int = 0) -> Network:
    network, found = read_spec(HEAD + "".join(f"  - {{{item}}}\n" for item in items), "x.yaml")
    assert network is not None
    assert len(found) == errors, found
    return network


def groups(network: Network) -> list[tuple[int, list[str], list[str], bool]]:
    """Width, names of writers and readers, and whether it is fixed, of each group."""
    names = [layer.name for layer in network.layers]
    return [
        (group.width, [names[i] for i in group.writers], [names[reader.layer] for reader in group.readers],
         bool(group.fixed))
        for group in channels_of(network).groups
    ]  # fmt: skip


IMAGE = "name: image, op: input, C: 3, H: 64, W: 64"
A = "name: a, K: 60, kernel_size: 3, padding: 1"


@pytest.mark.parametrize(
    "between",
    [
        "op: relu", "op: batchnorm", "op: layernorm", "op: dropout", "op: pool, kernel_size: 2", "op: globalpool",
        "op: upsample, scale: 2", "op: pad, padding: 1", "op: add", "op: concat", "op: downsample, scale: 2",
        "op: groupnorm, groups: 20",
    ],
)  # fmt: skip
def test_what_hands_channels_on(between: str) -> None:
    network = network_of(IMAGE, A, between, "name: b, K: 21, kernel_size: 1")
    assert groups(network)[1] == (60, ["a"], ["b"], False)


@pytest.mark.parametrize(
    "between", ["op: reshape, C: 60, H: 64, W: 64", "op: split, C: 30, H: 64, W: 64", "op: linear", "op: groupnorm"]
)
def test_what_fixes_channels(between: str) -> None:
    network = network_of(IMAGE, A, between, "name: b, K: 21, kernel_size: 1, C: 60, H: 64, W: 64, input: layer3"
                         if "C:" not in between else "name: b, K: 21, kernel_size: 1")  # fmt: skip
    assert groups(network)[1] == (60, ["a"], [], True)
    assert between.split()[1].rstrip(",") in channels_of(network).groups[1].fixed[0]


def test_residuals_concatenations_and_shuffles() -> None:
    network = network_of(
        IMAGE, A, "name: b, K: 60, kernel_size: 3, padding: 1", "name: sum, op: add, inputs: [a, b]",
        "name: cat, op: concat, inputs: [sum, a]", "name: up, op: pixel_shuffle, scale: 2",
        "name: c, K: 8, kernel_size: 1",
    )  # fmt: skip
    found = channels_of(network)
    assert groups(network)[1] == (60, ["a", "b"], ["b", "c"], False)
    assert found.groups[1].multiple_of == 4
    assert found.changes(network.layers, {1: 64}) == {0: {"K": 64}, 1: {"K": 64, "C": 64}, 2: {"C": 32}}


def test_there_is_one_operation_for_each_item_in_order() -> None:
    network = network_of(IMAGE, A, "op: nonsense", "name: b, K: 8, kernel_size: 1", errors=1)
    assert [operation.kind for operation in network.operations] == ["input", "conv", "reshape", "conv"]
    assert [operation.layer for operation in network.operations] == [None, 0, None, 1]
    assert [operation.inputs for operation in network.operations] == [(), (0,), (), (2,)]


def test_what_nothing_reads_is_an_output_unless_nothing_is_wired_to_it() -> None:
    alone = "name: {}, C: 60, H: 8, W: 8, K: 124, kernel_size: 1"
    network = network_of(alone.format("x"), alone.format("y"))
    assert [operation.output for operation in network.operations] == [False, False]
    assert groups(network) == [
        (60, [], ["x"], False), (124, ["x"], [], False), (60, [], ["y"], False), (124, ["y"], [], False),
    ]  # fmt: skip
    network = network_of(IMAGE, A, "op: globalpool")
    assert [operation.output for operation in network.operations] == [False, False, True]


def test_names_given_twice_and_broken_items_do_not_confuse_the_wiring() -> None:
    network = network_of(IMAGE, A, A, "name: b, K: 8, kernel_size: 1", "3", errors=2)
    assert len(network.operations) == 5
    assert network.operations[3].inputs == (1,)
