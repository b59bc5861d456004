"""Layers that run again with the same weights."""

from __future__ import annotations

import pytest
from read_specs import errors, network, spec

from convlint.estimate.memory import parameters
from convlint.model.channel_walk import channels_of

TWO_INPUTS = (
    "name: x, op: input, C: 3, H: 64, W: 64",
    "name: a, K: 60, kernel_size: 3, padding: 1",
    "name: y, op: input, C: 3, H: 64, W: 64",
    "name: b, K: 60, kernel_size: 3, padding: 1",
    "name: shared, input: a, K: 30, kernel_size: 3, padding: 1",
)


def test_it_reads_and_writes_the_same_channels() -> None:
    found = network(spec(*TWO_INPUTS, "name: once_more, op: again, weights: shared, input: b", "K: 8, kernel_size: 1"))
    assert [operation.layer for operation in found.operations] == [None, 0, None, 1, 2, 2, 3]
    assert found.operations[5].inputs == (3,)
    groups = {group.writers: [reader.layer for reader in group.readers] for group in channels_of(found).groups}
    assert (groups[0, 1], groups[2,]) == ([2], [3])
    assert found.edges[-1].producers == (2,)
    assert (found.layers[3].C, found.layers[3].H) == (30, 64)


def test_its_edge_has_the_producers_of_all_runs() -> None:
    found = network(spec(*TWO_INPUTS, "op: again, weights: shared, input: b", "op: again, weights: shared, input: a"))
    assert [(edge.consumer, edge.producers) for edge in found.edges] == [(0, ()), (1, ()), (2, (0, 1))]
    assert [layer.head for layer in found.layers] == [False, False, True]


def test_a_layer_that_reads_itself_does_not_produce_what_it_reads() -> None:
    found = network(spec("name: a, C: 8, H: 8, W: 8, K: 8, kernel_size: 1", "name: b, K: 8, kernel_size: 1",
                         "name: c, op: again, weights: b"))  # fmt: skip
    assert [edge.producers for edge in found.edges] == [(0,)]


def test_each_run_is_a_call_unless_calls_are_stated() -> None:
    again = "op: again, weights: shared, input: b"
    assert [network(spec(*TWO_INPUTS, *[again] * count)).layers[2].calls for count in range(3)] == [1, 2, 3]
    stated = [*TWO_INPUTS[:-1], f"{TWO_INPUTS[-1]}, calls: 7"]
    assert network(spec(*stated, again)).layers[2].calls == 7


@pytest.mark.parametrize(("first", "second", "norm"), [
    ("batchnorm", "batchnorm", True), ("batchnorm", "relu", False), ("relu", "batchnorm", False),
    ("batchnorm", None, False), (None, None, None),
])  # fmt: skip
def test_it_is_normalised_where_every_run_is(first: str | None, second: str | None, norm: bool | None) -> None:
    items = [*TWO_INPUTS]
    items += [] if first is None else [f"op: {first}, input: shared"]
    items += ["name: more, op: again, weights: shared, input: b"]
    items += [] if second is None else [f"op: {second}, input: more"]
    assert network(spec(*items)).layers[2].norm_follows is norm


def test_many_runs_keep_the_edge_short_and_no_producer_becomes_a_head() -> None:
    items = ["name: x, op: input, C: 8, H: 8, W: 8"]
    items += [f"name: c{number}, input: x, K: 8, kernel_size: 1" for number in range(200)]
    items += ["name: shared, input: c0, K: 8, kernel_size: 1"]
    items += [f"op: again, weights: shared, input: c{number}" for number in range(1, 200)]
    found = network(spec(*items))
    assert len(found.edges[-1].producers) == 64
    assert [layer.name for layer in found.layers if layer.head] == ["shared"]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("name: m, op: again, input: b", "m: op: again needs weights: the name of a convolution before it"),
        ("op: again, weights: x, input: b", "weights: no convolution before this one is named 'x'"),
        ("op: again, weights: nothing, input: b", "weights: no convolution before this one is named 'nothing'"),
        ("op: again, weights: [a], input: b", "weights: must be text, not a list"),
        ("name: m, op: again, weights: shared, inputs: [a, b]",
         "m: a convolution reads one tensor; join its inputs with op: concat or add"),
        ("name: m, op: again, weights: shared, input: y", "m: C=3 arrives, but shared reads C=60"),
        ("name: m, op: again, weights: a, input: b", "m: C=60 arrives, but a reads C=3"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(item: str, message: str) -> None:
    (error,) = errors(spec(*TWO_INPUTS, item))
    assert error.message == message
    assert error.line is not None


def test_shared_weights_are_counted_once_and_tie_channels() -> None:
    small = "name: small, input: b, K: 30, kernel_size: 3, padding: 1"
    apart, tied = (network(spec(*TWO_INPUTS, small + more)) for more in ("", ", weights: shared"))
    assert [operation.weights for operation in tied.operations] == [None] * 5 + [2]
    assert {group.writers for group in channels_of(tied).groups} == {(), (0, 1), (2, 3)}
    counted = parameters(apart.layers), parameters(tied.layers)
    assert None not in counted
    assert (counted[0] or 0) - (counted[1] or 0) == 60 * 30 * 9
    assert [operation.weights for operation in network(
        spec(*TWO_INPUTS, f"{small}, weights: shared", small.replace("small", "third") + ", weights: small")
    ).operations][-1] == 2  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("K: 31, kernel_size: 3, weights: shared", "m: K=31, but shared, whose weights it has, has K=30"),
        (
            "K: 30, kernel_size: 3, groups: 2, weights: shared",
            "m: groups=2, but shared, whose weights it has, has groups=1",
        ),
        ("K: 30, kernel_size: 3, weights: m", "weights: no convolution before this one is named 'm'"),
    ],
)
def test_weights_that_cannot_be_the_same_are_errors(fields: str, message: str) -> None:
    (error,) = errors(spec(*TWO_INPUTS, f"name: m, input: b, {fields}"))
    assert error.message == message


def test_it_is_no_default() -> None:
    (error,) = errors(spec(*TWO_INPUTS, defaults="{ weights: a }"))
    assert error.message == "weights cannot be a default"
