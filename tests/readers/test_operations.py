"""Collecting operations: their numbers, the sizes of convolutions, what is set apart."""

import pytest

from convlint.model.channels import channels_of
from convlint.model.layer import ConvLayer
from convlint.model.network import Network
from convlint.readers.bounded_json import MOST_TEXT
from convlint.readers.operations import Effect, Operations, Shape, reshaped

LAYERS = (
    ConvLayer(name="a", C=3, K=60, H=8, W=6, P=4, Q=3),
    ConvLayer(name="b", C=60, K=20, H=4, W=3, P=4, Q=3),
    ConvLayer(name="c", C=20, K=8, H=4, W=3, P=4, Q=3),
)


def chain(*apart: int) -> Network:
    """a, a norm, b, c; the calls are numbered from behind."""
    found = Operations()
    a = found.convolution(2, found.add(Effect("input"), "x", (), (1, 3, 8, 6)))
    norm = found.add(Effect("batchnorm"), "norm", [a], (1, 60, 4, 3))
    for call in apart:
        found.set_apart(call, "b, which is apart,")
    found.hand_out(found.convolution(0, found.convolution(1, norm)))
    return Network(path="", layers=LAYERS, operations=found.finished(LAYERS, (2, 1, 0)))


def test_convolutions_have_the_sizes_of_their_layers() -> None:
    network = chain()
    assert [(each.kind, each.name, each.inputs, each.layer) for each in network.operations] == [
        ("input", "x", (), None), ("conv", "a", (0,), 0), ("batchnorm", "norm", (1,), None),
        ("conv", "b", (2,), 1), ("conv", "c", (3,), 2),
    ]  # fmt: skip
    assert [(each.C, each.D, each.H, each.W) for each in network.operations] == [
        (3, 1, 8, 6), (60, 1, 4, 3), (60, 1, 4, 3), (20, 1, 4, 3), (8, 1, 4, 3),
    ]  # fmt: skip
    assert [each.output for each in network.operations] == [False] * 4 + [True]


def test_what_is_set_apart_stands_between_opaque_operations() -> None:
    network = chain(1)
    assert [(each.kind, each.inputs) for each in network.operations[3:]] == [
        ("reshape", (2,)), ("conv", (3,)), ("reshape", (4,)), ("conv", (5,)),
    ]  # fmt: skip
    assert [(each.C, each.H) for each in network.operations[3:6]] == [(60, 4), (20, 4), (20, 4)]
    channels = channels_of(network)
    assert [channels.groups[channels.written[layer]].fixed[0] for layer in (0, 1)] == [
        "b, which is apart, depends on it"
    ] * 2


def test_the_last_of_what_is_set_apart_is_handed_out() -> None:
    assert [each.output for each in chain(0).operations] == [False] * 6 + [True]


def test_a_convolution_of_nothing_known_reads_what_may_be_anything() -> None:
    found = Operations()
    found.convolution(0, None)
    network = Network(path="", layers=LAYERS, operations=found.finished(LAYERS, (0,)))
    assert [each.kind for each in network.operations] == ["reshape", "conv"]
    (group, _) = channels_of(network).groups
    assert (group.width, group.fixed) == (3, ("the input of a makes it",))


def test_names_are_cut() -> None:
    found = Operations()
    found.opaque("x" * 9999, "y" * 9999, ())
    (operation,) = found.finished((), ())
    assert (len(operation.name), len(operation.where)) == (MOST_TEXT, MOST_TEXT)


@pytest.mark.parametrize(
    ("shape", "axis", "expected"),
    [
        ((8, 12, 7, 5), 1, (12, 1, 7, 5, 2)),
        ((8, 7, 5, 12), 3, (12, 1, 7, 5, 2)),
        ((8, 12, 4, 7, 5), 1, (12, 4, 7, 5, 3)),
        ((8, 12, 5), 1, (12, 1, 1, 5, 1)),
        ((8, 12), 1, (12, 1, 1, 1, 2)),
        ((None, None, None, 5), 1, (None, 1, None, 5, 2)),
        ((8,), 1, (None, None, None, None, 2)),
        ((8, 1, 2, 3, 4, 5), 1, (None, None, None, None, 2)),
        (None, 1, (None, None, None, None, 2)),
    ],
)
def test_sizes_of_tensors(shape: Shape | None, axis: int, expected: tuple[int | None, ...]) -> None:
    found = Operations()
    found.add(Effect("input", axis), "x", (), shape)
    (each,) = found.finished((), ())
    assert (each.C, each.D, each.H, each.W, each.dims) == expected


@pytest.mark.parametrize(
    ("before", "after", "axis", "expected"),
    [
        ((8, 12), (8, 12, 1, 1), 1, 1),
        ((8, 12), (8, 1, 1, 12), 1, 3),
        ((8, 12, 1, 1), (8, 12), 1, 1),
        ((None, 12, 1, 1), (None, 12), 1, 1),
        ((8, 12, 1, 2), (8, 24), 1, None),  # the channels are not alone
        ((8, 12, 4, 4), (8, 12, 16), 1, 1),
        ((8, 4, 4, 12), (8, 16, 12), 3, 2),
        ((8, 4, 12, 4), (8, 4, 48), 2, None),
        ((8, 12, None), (8, 12, 2, 4), 1, None),
        ((8, 12), (8, 3, 4), 1, None),
        ((8, 12), (8, 1, 12, 1), 1, 2),
        ((8, 5, 12, 1, 4), (8, 1, 5, 12, 4), 2, 3),
        ((8, 12, 4), (1, 8, 12, 4), 1, 2),
        ((1, 12, 4), (12, 4), 1, None),  # in front
        ((None, None, 4), (None, None, 4, 1), 2, None),  # which may have changed places
        ((8, 5, 12), (8, 5, 1, 4, 3), 2, None),
        ((8, None, 12), (8, None, 12, 1), 2, None),
        ((8, 1), (8, 1, 1, 1), 1, None),  # which of them has the channel?
        ((8, 1, 4, 4), (8, 1, 16), 1, 1),
        ((8, 1, 1, 4), (8, 1, 4), 1, None),
        ((8, 1, 1, 4), (8, 1, 1, 4), 2, 2),
        ((8, 4, 1, 4), (8, 4, 4, 1), 2, None),  # one channel is no different from a place
        ((8, None), (8, None, 1, 1), 1, None),
        ((8, 12), (12, 8), 1, None),
        ((8, 12), (), 1, None),
        ((8,), (8, 12), 1, None),
    ],
)
def test_where_a_reshape_leaves_channels(before: Shape, after: Shape, axis: int, expected: int | None) -> None:
    assert reshaped(before, after, axis) == expected
