"""What ONNX operators do to channels."""

from pathlib import Path
from typing import Any

import pytest
from named_groups import members, named, written
from onnx import TensorProto
from onnx_graphs import Graph, value

from convlint.model.channels import channels_of

pytestmark = [pytest.mark.slow, pytest.mark.contract]

# (operator, attributes, its constants, the operation, C, H, W) behind a map of 12x8x6
NODES: list[tuple[str, dict[str, Any], list[Any], str, int | None, int | None, int | None]] = [
    ("Relu", {}, [], "identity", 12, 8, 6),
    ("Cast", {"to": TensorProto.FLOAT}, [], "identity", 12, 8, 6),
    ("Dropout", {}, [], "identity", 12, 8, 6),
    ("Softmax", {"axis": 1}, [], "identity", 12, 8, 6),
    ("LayerNormalization", {"axis": 1}, [(12, 8, 6)], "identity", 12, 8, 6),
    ("LpNormalization", {"axis": 1}, [], "identity", 12, 8, 6),
    ("Clip", {}, [(), ()], "identity", 12, 8, 6),
    ("PRelu", {}, [(12, 1, 1)], "identity", 12, 8, 6),
    ("Add", {}, [(1, 12, 1, 1)], "identity", 12, 8, 6),
    ("Mul", {}, [()], "identity", 12, 8, 6),
    ("Sub", {}, [(1, 2, 12, 8, 6)], "reshape", 2, 8, 6),
    ("Add", {}, [(16, 1, 8, 6)], "reshape", None, None, None),
    ("BatchNormalization", {}, [(12,)] * 4, "batchnorm", 12, 8, 6),
    ("InstanceNormalization", {}, [(12,)] * 2, "batchnorm", 12, 8, 6),
    ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}, [], "resize", 12, 4, 3),
    ("AveragePool", {"kernel_shape": [3, 3]}, [], "resize", 12, 6, 4),
    ("GlobalAveragePool", {}, [], "resize", 12, 1, 1),
    ("ReduceMean", {}, [[2, 3]], "resize", 12, 1, 1),
    ("ReduceMean", {}, [[1]], "channel_pool", 1, 8, 6),
    ("ReduceMean", {}, [[1, 2, 3]], "reshape", 1, 1, 1),
    ("ReduceMean", {"keepdims": 0}, [[2, 3]], "resize", 12, 1, 1),
    ("ReduceMean", {"keepdims": 0}, [[1, 3]], "reshape", 8, 1, 1),
    ("ReduceMax", {"keepdims": 0}, [[1]], "channel_pool", None, None, None),
    ("ReduceMax", {"keepdims": 0}, [[2]], "resize", 12, 1, 6),
    ("ReduceMax", {"keepdims": 0}, [[0]], "reshape", 8, 1, 6),
    ("Reshape", {}, [[2, 12, 48]], "resize", 12, 1, 48),
    ("Reshape", {}, [[2, 12, 6, 8]], "resize", 12, 6, 8),
    ("Resize", {"mode": "nearest"}, ["", [1.0, 1.0, 2.0, 2.0]], "resize", 12, 16, 12),
    ("Resize", {"mode": "nearest"}, ["", [1.0, 2.0, 1.0, 1.0]], "reshape", 24, 8, 6),
    ("Pad", {}, [[0, 0, 1, 1, 0, 0, 1, 1]], "resize", 12, 10, 8),
    ("Pad", {}, [[0, 0, 0, 0, 0, 0, 0, 0]], "identity", 12, 8, 6),
    ("Pad", {}, [[0, 2, 0, 0, 0, 2, 0, 0]], "reshape", 16, 8, 6),
    ("Expand", {}, [[2, 12, 8, 6]], "identity", 12, 8, 6),
    ("DepthToSpace", {"blocksize": 2, "mode": "CRD"}, [], "pixel_shuffle", 3, 16, 12),
    ("DepthToSpace", {"blocksize": 2}, [], "pixel_shuffle", 3, 16, 12),
    ("SpaceToDepth", {"blocksize": 2}, [], "pixel_unshuffle", 48, 4, 3),
    ("Transpose", {"perm": [0, 2, 3, 1]}, [], "identity", 12, 8, 6),
    ("Transpose", {"perm": [0, 3, 2, 1]}, [], "identity", 12, 6, 8),
    ("Transpose", {"perm": [0, 2, 1, 3]}, [], "identity", 12, 8, 6),
    ("Transpose", {"perm": [1, 0, 2, 3]}, [], "reshape", 2, 8, 6),
    ("Transpose", {}, [], "reshape", 8, 12, 2),
    ("Flatten", {}, [], "view", 576, 1, 1),
    ("Reshape", {}, [[2, 4, 3, 8, 6]], "identity", 12, 8, 6),
    ("Reshape", {}, [[2, 4, 3, 48]], "resize", 12, 1, 48),
    ("Reshape", {}, [[2, 8, 12, 6]], "reshape", 8, 12, 6),
    ("Slice", {}, [[0], [6], [1]], "reshape", 6, 8, 6),
    ("Slice", {}, [[0], [12], [1]], "reshape", 12, 8, 6),
    ("Slice", {}, [[0], [6], [2]], "resize", 12, 6, 6),
    ("Gather", {"axis": 1}, [[0, 2, 4]], "reshape", 3, 8, 6),
    ("MatMul", {}, [(6, 10)], "reshape", 12, 8, 10),
    ("Concat", {"axis": 1}, [(2, 4, 8, 6)], "reshape", 16, 8, 6),
    ("GridSample", {}, [(2, 8, 6, 2)], "reshape", 12, 8, 6),
]


@pytest.mark.parametrize(("op", "attributes", "constants", "kind", "C", "H", "W"), NODES)
def test_operators(
    tmp_path: Path, op: str, attributes: dict[str, Any], constants: list[Any], kind: str,
    C: int | None, H: int | None, W: int | None,
) -> None:  # fmt: skip
    graph = Graph()
    given = graph.conv("x", 3, 12)
    names = [
        each if isinstance(each, str) else graph.numbers(*each) if isinstance(each, list) else graph.constant(*each)
        for each in constants
    ]
    if op == "Add" and kind == "reshape":  # one channel that a constant spreads over others
        given = graph.conv(given, 12, 1)
        names, C, H, W = [graph.constant(1, 12, 1, 1)], 12, 8, 6
    name = graph.node(op, given, *names, **attributes)
    network = graph.read(tmp_path, name)
    operation = network.operations[-1]
    assert (operation.kind, operation.name) == (kind, name)
    assert (operation.C, operation.H, operation.W) == (C, H, W)
    assert operation.inputs == (len(network.operations) - 2,)
    assert operation.output
    assert operation.where == (f"{op} {name}" if kind in ("channel_pool", "reshape", "view") else "")
    assert operation.factor == (2 if "pixel" in kind else 1)


def test_shuffles_of_several_runs_of_channels(tmp_path: Path) -> None:
    kinds = {}
    for mode in ("CRD", "DCR"):
        graph = Graph()
        joined = graph.node("Relu", graph.node("Concat", graph.conv("x", 3, 12), graph.conv("x", 3, 8), axis=1))
        again = graph.conv(joined, 20, 40, group=2)
        whole = graph.conv(joined, 20, 40)
        names = [graph.node("DepthToSpace", name, blocksize=2, mode=mode) for name in (joined, again, whole)]
        network = graph.read(tmp_path, *names, graph.node("SpaceToDepth", joined, blocksize=2))
        kinds[mode] = [named(network, name).kind for name in names]
        assert network.operations[-1].kind == "reshape"
    assert kinds == {
        "CRD": ["pixel_shuffle"] * 3,
        "DCR": ["reshape", "reshape", "pixel_shuffle"],
    }


@pytest.mark.parametrize(
    ("axis", "sizes", "free"), [(1, (6, 6), True), (-3, (4, 4, 4), True), (1, (4, 8), False), (2, (4, 4), True)]
)
def test_equal_parts_of_the_channels_follow_them(tmp_path: Path, axis: int, sizes: tuple[int, ...], free: bool) -> None:
    graph = Graph()
    first = graph.node("Split", graph.conv("x", 3, 12), graph.numbers(*sizes), axis=axis, outputs=len(sizes))
    parts = [first, *(f"{first}_{number}" for number in range(1, len(sizes)))]
    read = [graph.conv(part, C if axis != 2 else 12, 5) for part, C in zip(parts, sizes, strict=True)]
    groups = channels_of(graph.read(tmp_path, *read)).groups
    (stem,) = [group for group in groups if 0 in group.writers]
    assert bool(stem.fixed) != free
    if free:
        count = 1 if axis == 2 else len(sizes)  # parts of the rows have all channels
        assert stem.multiple_of == count
        assert [reader.times * count for reader in stem.readers] == [1] * len(sizes)


def test_what_acts_on_other_axes_than_it_should_is_opaque(tmp_path: Path) -> None:
    graph = Graph()
    a = graph.node("Transpose", graph.conv("x", 3, 12), perm=[0, 2, 3, 1])
    pooled = graph.node("MaxPool", a, kernel_shape=[1, 1])
    b = graph.conv("x", 3, 6)
    moved = graph.node("Transpose", b, perm=[0, 2, 3, 1])
    conv = graph.conv(moved, 8, 7, strides=[1, 2])
    mixed = graph.node("Add", moved, graph.node("Resize", b, "", graph.numbers(1.0, 4 / 3, 0.75, 1.0)))
    network = graph.read(tmp_path, pooled, conv, mixed)
    assert [named(network, name).kind for name in (pooled, mixed)] == ["reshape"] * 2
    assert f"Conv {conv}, which takes another axis for channels, depends on it" in written(network, b).fixed


@pytest.mark.parametrize(("axis", "width", "kind"), [(2, 12, "add"), (0, 12, "add"), (2, 8, "reshape")])
def test_a_concatenation_along_another_axis_joins_equal_channels(
    tmp_path: Path, axis: int, width: int, kind: str
) -> None:
    graph = Graph()
    a, b = graph.conv("x", 3, 12), graph.conv("x", 3, width)
    if width != 12:
        b = graph.node("Transpose", graph.node("Transpose", b, perm=[0, 2, 1, 3]), perm=[0, 1, 2, 3])
        a = graph.node("Resize", a, "", graph.numbers(1.0, 8 / 12, 1.0, 1.0), mode="nearest")
    joined = graph.node("Concat", a, b, axis=axis)
    network = graph.read(tmp_path, graph.node("Relu", joined))
    assert named(network, joined).kind == kind


def test_tensors_of_different_rank_are_opaque(tmp_path: Path) -> None:
    graph = Graph()
    graph.inputs.append(value("v", [6]))
    a = graph.conv("x", 3, 6)
    total = graph.node("Add", a, "v")
    network = graph.read(tmp_path, graph.conv(total, 6, 7))
    assert named(network, total).kind == "reshape"


@pytest.mark.parametrize(
    ("left", "op", "attributes", "constants"),
    [(1, "Concat", {"axis": 0}, []), (0, "Reshape", {}, [(1, 1)]),
     (0, "Reshape", {}, [(1, 1, 1)]), (0, "Unsqueeze", {}, [(0, 1, 2)]), (1, "Squeeze", {}, [(0,)])],
)  # fmt: skip
def test_what_has_no_axis_of_channels_is_opaque(
    tmp_path: Path, left: int, op: str, attributes: dict[str, Any], constants: list[tuple[int, ...]]
) -> None:
    graph = Graph()
    few = graph.node("ReduceMax", graph.conv("x", 3, 12), graph.numbers(*range(left, 4)), keepdims=0)
    maps = [few, few] if op == "Concat" else [few]
    name = graph.node(op, *maps, *[graph.numbers(*each) for each in constants], **attributes)
    assert named(graph.read(tmp_path, name), name).kind == "reshape"


def attention(graph: Graph, a: str, **attributes: Any) -> str:
    """Efficient channel attention: a convolution along the channels of a mean over space."""
    vector = graph.node("Squeeze", graph.node("GlobalAveragePool", a), graph.numbers(2, 3))
    row = graph.node("Unsqueeze", vector, graph.numbers(1))
    return graph.node("Conv", row, graph.constant(1, 1, 3), **attributes)


def test_channels_go_past_a_convolution_along_them(tmp_path: Path) -> None:
    graph = Graph()
    a = graph.conv("x", 3, 12)
    gate = graph.node("Sigmoid", attention(graph, a, pads=[1, 1]))
    gate = graph.node("Unsqueeze", graph.node("Transpose", gate, perm=[0, 2, 1]), graph.numbers(3))
    last = graph.conv(graph.node("Mul", a, gate), 12, 7)
    network = graph.read(tmp_path, last)
    assert members(network, a) == ({a}, {last: "1"})
    assert written(network, a).fixed == ()
    (along,) = [layer for layer in network.layers if layer.C == 1]
    assert "takes another axis for channels" in str(written(network, along.name).fixed)


@pytest.mark.parametrize("attributes", [{}, {"pads": [1, 1], "strides": [2]}])
def test_a_convolution_along_the_channels_that_keeps_no_size_is_opaque(
    tmp_path: Path, attributes: dict[str, Any]
) -> None:
    graph = Graph()
    a = graph.conv("x", 3, 12)
    along = attention(graph, a, **attributes)
    network = graph.read(tmp_path, along)
    assert written(network, a).fixed == (f"Conv {along}, which takes another axis for channels, depends on it",)


def test_a_sum_over_an_axis_of_their_own_keeps_channels(tmp_path: Path) -> None:
    graph = Graph()  # selective kernels
    convs = [graph.conv("x", 3, 12, taps) for taps in (1, 3)]
    joined = graph.node("Concat", *[graph.node("Unsqueeze", each, graph.numbers(1)) for each in convs], axis=1)
    total = graph.node("ReduceSum", joined, graph.numbers(1), keepdims=0)
    last = graph.conv(total, 12, 7)
    network = graph.read(tmp_path, last)
    assert members(network, convs[0]) == (set(convs), {last: "1"})
    assert written(network, convs[0]).fixed == ()


@pytest.mark.parametrize("kept", [0, 1])
@pytest.mark.parametrize(("axes", "kind"), [((2, 3), "resize"), ((-1,), "resize"), ((1,), "channel_pool")])
@pytest.mark.parametrize("constant", [False, True])
def test_a_reduction_says_its_axes_where_all_are_as_long(
    tmp_path: Path, kept: int, axes: tuple[int, ...], kind: str, constant: bool
) -> None:
    graph = Graph((2, 3, 12, 12))
    a = graph.conv("x", 3, 12)
    along = graph.numbers(*axes)
    if constant:
        along = graph.node("Constant", value=graph.tensors.pop())
    reduced = graph.node("ReduceMean", a, along, keepdims=kept)
    network = graph.read(tmp_path, graph.node("Relu", reduced), graph.conv(a, 12, 7))
    assert named(network, reduced).kind == kind
    assert (written(network, a).fixed == ()) == (kind == "channel_pool")


def test_a_sum_over_channels_or_over_an_axis_as_long_is_opaque(tmp_path: Path) -> None:
    graph = Graph((2, 3, 12, 6))
    a = graph.conv("x", 3, 12)
    total = graph.node("ReduceSum", a, graph.node("Abs", graph.numbers(2)), keepdims=0)
    network = graph.read(tmp_path, graph.node("Relu", total))
    assert f"ReduceSum {total} depends on it" in written(network, a).fixed


def test_what_nobody_follows_is_not_followed_to_another_axis(tmp_path: Path) -> None:
    graph = Graph()
    a = graph.conv("x", 3, 12)
    mixed = graph.node("Gather", a, graph.numbers(*range(12)), axis=1)
    turned = graph.node("Transpose", mixed, perm=[0, 2, 1, 3])
    wide = graph.node("Relu", graph.conv(turned, 8, 20))
    last = graph.conv(wide, 20, 7)
    network = graph.read(tmp_path, last)
    assert named(network, turned).kind == "reshape"
    assert members(network, network.layers[1].name) == ({network.layers[1].name}, {last: "1"})


def test_a_mean_over_channels_on_the_last_axis_divides_them(tmp_path: Path) -> None:
    graph = Graph()  # the response norm of ConvNeXt V2
    a = graph.conv("x", 3, 12)
    turned = graph.node("Transpose", a, perm=[0, 2, 3, 1])
    mean = graph.node("Add", graph.node("ReduceMean", turned, graph.numbers(-1)), graph.constant())
    back = graph.node("Transpose", graph.node("Div", turned, mean), perm=[0, 3, 1, 2])
    last = graph.conv(back, 12, 7)
    network = graph.read(tmp_path, last)
    assert members(network, a) == ({a}, {last: "1"})
    assert written(network, a).fixed == ()


def test_a_norm_of_another_axis_keeps_channels(tmp_path: Path) -> None:
    graph = Graph()
    a = graph.conv("x", 3, 12)
    normed = graph.norm(graph.node("Transpose", a, perm=[0, 2, 1, 3]), 8)
    last = graph.conv(graph.node("Transpose", normed, perm=[0, 2, 1, 3]), 12, 7)
    network = graph.read(tmp_path, last)
    assert named(network, normed).kind == "identity"
    assert members(network, a) == ({a}, {last: "1"})
