"""A network: equal to another whatever lines they were written on, and open about what is not known."""

from typing import Any, get_args

import pytest
from msgspec.structs import replace

from convlint.model.layer import ConvLayer
from convlint.model.network import Edge, Network, Operation, OperationKind, gradients, unique_name
from convlint.model.runtime import Runtime
from convlint.readers.spec.shapes import CARRIERS, conv_op, normalised


def test_every_kind_is_a_word_of_the_spec() -> None:
    for kind in get_args(OperationKind):
        assert conv_op(kind) is not None or normalised(kind)[0] in CARRIERS, kind


def test_an_operation_knows_no_sizes_unless_told() -> None:
    assert Operation(kind="identity", inputs=(0,)).C is None


EDGE = Edge(consumer=1, producers=(0,), source="a", C=64, H=28, W=28)


def network(**parts: Any) -> Network:
    layers = (ConvLayer(name="a"), ConvLayer(name="b"))
    return Network(**{"path": "net.yaml", "layers": layers, "edges": (EDGE,)} | parts)


@pytest.mark.parametrize(
    ("parts", "same"),
    [
        ({"spans": {"mode": (1, 1, 1, 5)}}, True),
        ({"path": "other.yaml"}, False),
        ({"edges": ()}, False),
        ({"runtime": Runtime(tf32=False)}, False),
        ({"mode": "inference"}, False),
        ({"targets": ("a100",)}, False),
    ],
)
def test_what_makes_two_networks_one(parts: dict[str, Any], same: bool) -> None:
    assert (network(**parts) == network()) is same


def test_nothing_is_made_up() -> None:
    bare = Network(path="a", layers=())
    assert (bare.edges, bare.mode, bare.targets, bare.source_lines) == ((), None, (), None)
    assert bare.runtime == Runtime()


def test_maps_are_flat_unless_said_otherwise() -> None:
    assert EDGE.D == 1
    assert Edge(consumer=0, producers=(), source="a", C=None, H=None, W=None, D=8).D == 8


@pytest.mark.parametrize(
    ("names", "unique"),
    [
        (("a", "a", "b", "a"), ["a", "a#2", "b", "a#3"]),
        (("a#2", "a", "a"), ["a#2", "a", "a#3"]),
        (("a", "a", "a#2", "a"), ["a", "a#2", "a#2#2", "a#3"]),
    ],
)
def test_no_name_is_given_twice(names: tuple[str, ...], unique: list[str]) -> None:
    taken: dict[str, int] = {}
    assert [unique_name(name, taken) for name in names] == unique


def chain(**of: dict[str, bool]) -> tuple[Operation, ...]:
    """An image and three convolutions, with what is different of them, by name."""
    convolutions = [
        Operation(kind="conv", inputs=(index,), layer=index, name=name, **of.get(name, {}))  # type: ignore[arg-type]
        for index, name in enumerate("abc")
    ]
    return Operation(kind="input"), *convolutions


FROZEN, DETACHED = {"frozen": True}, {"frozen": True, "detached": True}


@pytest.mark.parametrize(
    ("of", "trained", "handed_on"),
    [
        ({"a": FROZEN, "b": FROZEN}, "c", ""),  # a backbone
        ({"b": FROZEN}, "ac", "bc"),  # what stands before a frozen layer learns by its dgrad
        ({"b": FROZEN, "c": FROZEN}, "a", "bc"),
        ({"b": DETACHED}, "c", ""),  # no gradient comes to a
        ({"a": FROZEN, "b": FROZEN, "c": FROZEN}, "abc", "bc"),  # nobody trains that, and nothing is known
    ],
)
def test_gradients_that_nobody_computes(of: dict[str, Any], trained: str, handed_on: str) -> None:
    before = tuple(ConvLayer(name=name, first=name == "a") for name in "abc")
    layers = Network(path="", layers=before, operations=chain(**of)).with_frozen_layers().layers
    assert "".join(layer.name for layer in layers if not layer.frozen) == trained
    assert "".join(layer.name for layer in layers if not (layer.first or layer.no_dgrad)) == handed_on


def test_where_nothing_learns_operations_are_priced_as_layers_are() -> None:
    frozen = chain(a=FROZEN, b=DETACHED, c=FROZEN)
    network = Network(path="", layers=(ConvLayer(name=""),) * 3, operations=frozen).with_frozen_layers()
    assert gradients(network.operations) == [False, True, True, True]


def test_a_convolution_of_unknown_input_stands_behind_all_before_it() -> None:
    unfed = [Operation(kind="conv", layer=index, frozen=index != 1) for index in range(3)]
    assert gradients(unfed) == [False, True, True]
    layers = Network(path="", layers=(ConvLayer(name=""),) * 3, operations=tuple(unfed)).with_frozen_layers().layers
    assert [(layer.frozen, layer.no_dgrad) for layer in layers] == [(True, True), (False, True), (True, False)]


def test_a_gradient_comes_through_any_reader() -> None:
    image, own, *_ = chain()
    stop, on = Operation(kind="identity", inputs=(1,), detached=True), Operation(kind="identity", inputs=(1,))
    assert gradients((image, own, stop)) == [False, False, False]
    assert gradients((image, own, stop, on)) == [False, True, False, True]
    assert gradients((image, replace(own, output=True), stop)) == [False, True, False]


def test_what_leads_to_no_result_is_no_head() -> None:
    """Of a WaveNet's last block the residual is added and dropped; b is called once more, for the result."""
    image, a, b, c = chain(b={"output": True})
    dropped = Operation(kind="add", inputs=(1, 3))
    layers = tuple(ConvLayer(name=name, head=name != "a") for name in "abc")
    network = Network(path="", layers=layers, operations=(image, a, b, c, dropped, replace(b, output=False)))
    assert [layer.head for layer in network.with_used_heads().layers] == [False, True, False]
    unknown = replace(network, operations=(image, a, replace(b, output=False), c))
    assert unknown.with_used_heads().layers == layers
    assert replace(network, operations=()).with_used_heads().layers == layers
