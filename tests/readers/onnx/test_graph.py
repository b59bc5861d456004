"""The operations of small ONNX graphs, and which channels are therefore one number."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from named_groups import members, named, written
from onnx import TensorProto, helper, numpy_helper
from onnx_graphs import LIGHT, Graph, model, save, value, weight

from convlint.estimate.memory import parameters
from convlint.model.channels import THE_INPUT, channels_of
from convlint.readers import ReadOptions
from convlint.readers.onnx.reader import read
from convlint.readers.spec.reader import read_spec
from convlint.readers.spec.writing import spec_text

pytestmark = [pytest.mark.slow, pytest.mark.contract]


def test_names_inputs_and_sizes(tmp_path: Path) -> None:
    graph = Graph()
    graph.inputs.append(value("noise", [2, 5]))
    graph.read(tmp_path, graph.conv("x", 3, 12, 3, strides=[2, 2]))
    network = graph.read(tmp_path, "Conv0")
    image, noise, conv = network.operations
    assert (image.kind, image.name, image.C, image.H, image.W) == ("input", "x", 3, 8, 6)
    assert (noise.kind, noise.name, noise.C, noise.H, noise.W) == ("input", "noise", 5, 1, 1)
    assert (conv.kind, conv.name, conv.inputs, conv.layer) == ("conv", "Conv0", (0,), 0)
    assert (conv.C, conv.H, conv.W, conv.output) == (12, 4, 3, True)


@pytest.mark.parametrize(("shape", "sizes"), [((2, 3, 9), (1, 1, 9, 1)), ((2, 3, 4, 8, 6), (4, 8, 6, 3))])
def test_maps_of_one_and_three_dimensions(tmp_path: Path, shape: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    graph = Graph(shape)
    graph.node("Conv", "x", graph.constant(12, 3, *[1] * (len(shape) - 2)))
    network = graph.read(tmp_path, graph.node("Relu", "Conv0"))
    assert [(each.D, each.H, each.W, each.dims) for each in network.operations] == [sizes] * 3


def test_a_group_normalisation_divides(tmp_path: Path) -> None:
    graph = Graph()
    normed = graph.node(
        "GroupNormalization", graph.conv("x", 3, 12), graph.constant(4), graph.constant(4), num_groups=4
    )
    known = [value(normed, [2, 12, 8, 6])]  # onnx infers nothing here
    network = graph.read(tmp_path, graph.conv(normed, 12, 5), value_info=known)
    assert (named(network, normed).kind, named(network, normed).groups) == ("identity", 4)
    assert written(network, "Conv0").multiple_of == 4


def test_a_group_normalisation_that_an_exporter_took_apart(tmp_path: Path) -> None:
    """torch.onnx writes GroupNorm as InstanceNormalization over one row for each group, between two reshapes."""
    graph = Graph()
    rows = graph.node("Reshape", graph.conv("x", 3, 12), graph.numbers(0, 4, -1))
    normed = graph.node("InstanceNormalization", rows, graph.constant(4), graph.constant(4))
    back = graph.node("Reshape", normed, graph.numbers(2, 12, 8, 6))
    own = graph.node("InstanceNormalization", back, graph.constant(12), graph.constant(12))
    network = graph.read(tmp_path, graph.conv(own, 12, 5))
    works = [work for name in (normed, own) if (work := named(network, name).work) is not None]
    assert [(work.kind, work.op) for work in works] == [
        ("group norm", "group_norm"), ("group norm", "InstanceNormalization")
    ]  # fmt: skip
    group = written(network, "Conv0")
    assert (group.fixed, group.multiple_of) == ((), 4)


def test_two_group_normalisations_with_the_same_rows_and_one_that_is_not_undone(tmp_path: Path) -> None:
    """An exporter writes the sizes of equal reshapes once."""
    graph = Graph()
    sizes, ends = graph.numbers(0, 4, -1), graph.numbers(2, 12, 8, 6)
    y = "x"
    for C, K in ((3, 12), (12, 12)):
        rows = graph.node("Reshape", graph.conv(y, C, K), sizes)
        normed = graph.node("InstanceNormalization", rows, graph.constant(4), graph.constant(4))
        y = graph.node("Reshape", normed, ends)
    rows = graph.node("Reshape", graph.conv(y, 12, 12), sizes)
    normed = graph.node("InstanceNormalization", rows, graph.constant(4), graph.constant(4))
    turned = graph.node("Reshape", normed, graph.numbers(2, 12, 6, 8))
    network = graph.read(tmp_path, graph.conv(turned, 12, 5))
    names = [layer.name for layer in network.layers]
    assert [bool(written(network, name).fixed) for name in names] == [False, False, True, True]


def test_a_residual_block(tmp_path: Path) -> None:
    graph = Graph()
    stem = graph.node("Relu", graph.norm(graph.conv("x", 3, 12), 12))
    inner = graph.node("Relu", graph.norm(graph.conv(stem, 12, 20), 20))
    out = graph.norm(graph.conv(inner, 20, 12), 12)
    total = graph.node("Add", out, stem)
    last = graph.conv(graph.node("Relu", total), 12, 7)
    network = graph.read(tmp_path, last)
    assert named(network, total).kind == "add"
    assert members(network, "Conv0") == ({"Conv0", "Conv6"}, {"Conv3": "1", last: "1"})
    assert members(network, "Conv3") == ({"Conv3"}, {"Conv6": "1"})
    assert written(network, "Conv0").fixed == written(network, "Conv3").fixed == ()
    assert written(network, last).fixed != ()
    assert [group.only_input for group in channels_of(network).groups].count(True) == 1


def test_concatenations(tmp_path: Path) -> None:
    graph = Graph()
    a, b = graph.conv("x", 3, 12), graph.conv("x", 3, 20)
    joined = graph.node("Concat", a, b, a, axis=-3)
    last = graph.conv(joined, 44, 7)
    network = graph.read(tmp_path, last)
    assert (named(network, joined).kind, named(network, joined).C) == ("concat", 44)
    assert members(network, a) == ({a}, {last: "2"})
    assert members(network, b) == ({b}, {last: "1"})


def test_a_depthwise_block(tmp_path: Path) -> None:
    graph = Graph()
    wide = graph.node("Clip", graph.norm(graph.conv("x", 3, 12), 12))
    deep = graph.conv(wide, 12, 12, 3, group=12)
    last = graph.conv(graph.norm(deep, 12), 12, 7)
    network = graph.read(tmp_path, last)
    assert members(network, "Conv0") == ({"Conv0"}, {deep: "1", last: "1"})
    assert written(network, "Conv0").depthwise == (1,)


def test_a_squeeze_and_excite_block(tmp_path: Path) -> None:
    graph = Graph()
    a = graph.conv("x", 3, 12)
    pooled = graph.node("ReduceMean", a, graph.numbers(2, 3))
    small = graph.conv(pooled, 12, 4)
    gate = graph.conv(graph.node("Relu", small), 4, 12)
    scaled = graph.node("Mul", a, graph.node("Sigmoid", gate))
    last = graph.conv(scaled, 12, 7)
    network = graph.read(tmp_path, last)
    assert members(network, a) == ({a, gate}, {small: "1", last: "1"})
    assert members(network, small) == ({small}, {gate: "1"})
    assert written(network, a).fixed == written(network, small).fixed == ()


def test_a_squeeze_that_takes_the_axes_of_one_element_away_and_brings_them_back(tmp_path: Path) -> None:
    graph = Graph()
    a = graph.conv("x", 3, 12)
    vector = graph.node("Squeeze", graph.node("GlobalAveragePool", a), graph.numbers(2, 3))
    small = graph.conv(graph.node("Reshape", vector, graph.numbers(-1, 12, 1, 1)), 12, 4)
    network = graph.read(tmp_path, small)
    assert members(network, a) == ({a}, {small: "1"})
    assert written(network, a).fixed == ()


def test_a_u_net(tmp_path: Path) -> None:
    graph = Graph()
    skip = graph.node("Relu", graph.conv("x", 3, 12, 3))
    low = graph.conv(graph.node("MaxPool", skip, kernel_shape=[2, 2], strides=[2, 2]), 12, 20, 3)
    wide = graph.node("ConvTranspose", low, graph.constant(20, 16, 2, 2), strides=[2, 2])
    up = graph.node("Resize", low, "", graph.numbers(1.0, 1.0, 2.0, 2.0), mode="nearest")
    joined = graph.node("Concat", skip, wide, up, axis=1)
    last = graph.conv(joined, 48, 2)
    network = graph.read(tmp_path, last)
    assert members(network, "Conv0") == ({"Conv0"}, {low: "1", last: "1"})
    assert members(network, low) == ({low}, {wide: "1", last: "1"})
    assert members(network, wide) == ({wide}, {last: "1"})
    assert all(written(network, name).fixed == () for name in ("Conv0", low, wide))


def test_a_grouped_convolution(tmp_path: Path) -> None:
    graph = Graph()
    a = graph.conv("x", 3, 12)
    b = graph.conv(a, 12, 18, group=6)
    network = graph.read(tmp_path, graph.conv(b, 18, 7))
    assert written(network, a).multiple_of == 6
    assert written(network, b).multiple_of == 6


def test_a_feature_map_that_is_handed_out_stays_as_it_is(tmp_path: Path) -> None:
    graph = Graph()
    a = graph.conv("x", 3, 12)
    low = graph.node("Relu", a)
    network = graph.read(tmp_path, graph.conv(low, 12, 7), low)
    assert [each.output for each in network.operations] == [False, False, True, True]
    assert written(network, a).fixed == ("the network hands it out",)


def test_what_is_opaque_fixes_what_it_reads_and_makes(tmp_path: Path) -> None:
    graph = Graph()
    a = graph.conv("x", 3, 12)
    shuffled = graph.node("Reshape", a, graph.numbers(2, 48, 2, 6))
    back = graph.node("Reshape", graph.node("Transpose", shuffled, perm=[0, 2, 1, 3]), graph.numbers(2, 12, 8, 6))
    network = graph.read(tmp_path, graph.conv(back, 12, 7))
    assert written(network, a).fixed == (f"Reshape {shuffled} depends on it",)
    channels = channels_of(network)
    (group,) = [channels.groups[number] for number, _ in channels.read[1]]
    assert group.fixed == (f"Reshape {back} makes it",)


def test_a_shuffle_of_channels_keeps_them(tmp_path: Path) -> None:
    graph = Graph()
    a, b = (graph.conv("x", 3, 6) for _ in range(2))
    parted = graph.node("Reshape", graph.node("Concat", a, b, axis=1), graph.numbers(2, 2, 6, 8, 6))
    moved = graph.node("Transpose", parted, perm=[0, 2, 1, 3, 4])
    mixed = graph.node("Reshape", graph.node("Relu", moved), graph.numbers(2, 12, 8, 6))
    network = graph.read(tmp_path, graph.conv(mixed, 12, 7))
    assert written(network, a) == written(network, b)
    assert written(network, a).fixed == ()
    (shuffle,) = [each for each in network.operations if each.kind == "channel_shuffle"]
    assert (shuffle.factor, shuffle.where) == (2, f"Reshape {mixed}")


def test_a_shuffle_does_the_copy_that_its_transpose_makes(tmp_path: Path) -> None:
    graph = Graph()
    moved = graph.node("Transpose", graph.node("Reshape", graph.conv("x", 3, 12), graph.numbers(2, 3, 4, 8, 6)),
                       perm=[0, 2, 1, 3, 4])  # fmt: skip
    mixed = graph.node("Reshape", moved, graph.numbers(2, 12, 8, 6))
    network = graph.read(tmp_path, graph.conv(mixed, 12, 7))
    works = {each.name: each.work for each in network.operations if each.kind != "conv"}
    assert works[moved] is None
    assert works[mixed] is not None
    assert (works[mixed].kind, works[mixed].reads, works[mixed].writes) == ("copy", (1152,), 1152)


@pytest.mark.parametrize("spoilt", ["sum", "norm", "parts", "order"])
def test_what_else_reads_parted_channels_fixes_them(tmp_path: Path, spoilt: str) -> None:
    graph = Graph()
    a = graph.conv("x", 3, 12)
    end = graph.node("Reshape", a, graph.numbers(2, 2, 6, 8, 6))
    if spoilt == "sum":
        end = graph.node("Add", end, end)
    elif spoilt == "norm":
        end = graph.node("InstanceNormalization", end, graph.constant(2), graph.constant(2))
    elif spoilt == "parts":
        end = graph.node("ReduceSum", end, graph.numbers(1), keepdims=0)
    else:
        end = graph.node("Transpose", end, perm=[0, 2, 1, 4, 3])
    back = graph.node("Reshape", end, graph.numbers(2, -1, 8, 6))
    network = graph.read(tmp_path, graph.conv(back, 6 if spoilt == "parts" else 12, 7))
    assert [str(reason).split(" ", 1)[1] for reason in written(network, a).fixed] == [f"{end} depends on it"]


@pytest.mark.parametrize("pooled", [True, False])
def test_a_linear_layer_reads_a_flattened_map_of_any_width(tmp_path: Path, pooled: bool) -> None:
    graph = Graph()
    a = graph.conv("x", 3, 12)
    flat = graph.node("Flatten", graph.node("GlobalAveragePool", a) if pooled else a)
    pixels = 1 if pooled else 8 * 6
    network = graph.read(tmp_path, graph.node("Gemm", flat, graph.constant(12 * pixels, 10)))
    found = written(network, a)
    assert found.fixed == ()
    assert found.linear == (len(network.operations) - 1,)
    assert network.operations[-1].where.startswith("Gemm ")


def test_linear_layers_with_the_same_weights_stay_as_they_are(tmp_path: Path) -> None:
    graph = Graph()
    a, b = graph.conv("x", 3, 12), graph.conv("x", 3, 12)
    weights = graph.constant(12, 10)
    first, other = (graph.node("MatMul", graph.node("Flatten", graph.node("GlobalAveragePool", of)), weights)
                    for of in (a, b))  # fmt: skip
    network = graph.read(tmp_path, graph.node("Add", first, other))
    assert written(network, a).fixed == (f"MatMul {first} depends on it",)
    assert written(network, b).fixed == (f"MatMul {other} depends on it",)


def test_a_linear_layer_that_reads_pixels_too_stays_as_it_is(tmp_path: Path) -> None:
    graph = Graph()
    a = graph.conv("x", 3, 12)
    weights = graph.constant(12, 10)
    first = graph.node("MatMul", graph.node("Flatten", graph.node("GlobalAveragePool", a)), weights)
    pixels = graph.node("MatMul", graph.node("Reshape", graph.node("Transpose", a, perm=[0, 2, 3, 1]),
                                             graph.numbers(2, 48, 12)), weights)  # fmt: skip
    network = graph.read(tmp_path, graph.node("MatMul", first, graph.constant(10, 4)), pixels)
    assert not [group for group in channels_of(network).groups if not group.fixed]


@pytest.mark.parametrize(("C", "computed", "fixed"), [(12, True, False), (8, True, True), (8, False, False)])
def test_a_mean_over_all_pixels_makes_a_vector_where_its_axes_or_sizes_tell(
    tmp_path: Path, C: int, computed: bool, fixed: bool
) -> None:
    """Sizes do not say which axis is gone where another is as long."""
    graph = Graph()
    a, axes = graph.conv("x", 3, C), graph.numbers(2, 3)
    mean = graph.node("ReduceMean", a, graph.node("Abs", axes) if computed else axes, keepdims=0)
    network = graph.read(tmp_path, graph.node("MatMul", mean, graph.constant(C, 10)), value_info=[value(mean, [2, C])])
    assert bool(written(network, a).fixed) is fixed


def test_each_output_has_its_own_operation(tmp_path: Path) -> None:
    graph = Graph()
    a = graph.conv("x", 3, 12)
    graph.nodes.append(helper.make_node("Split", [a, graph.numbers(5, 7)], ["p", "q"], axis=1, name="split"))
    network = graph.read(tmp_path, graph.conv("q", 7, 2))
    assert [(each.kind, each.C) for each in network.operations[2:4]] == [("reshape", 5), ("reshape", 7)]
    assert network.operations[4].inputs == (3,)
    assert written(network, a).fixed == ("Split split depends on it",)


@pytest.mark.parametrize("way", ["Div", "Sub", "other", "stated"])
def test_halves_that_are_cut_by_the_width_itself_follow_it(tmp_path: Path, way: str) -> None:
    """torch.onnx writes chunk as slices up to half of the width that it measures."""
    graph = Graph((2, 3, 128, 96))
    a = graph.conv("x", 3, 12)
    measured = graph.node("Shape", graph.conv("x", 3, 12) if way == "other" else a)
    width = graph.node("Gather", measured, graph.numbers(1))
    step = graph.node("Sub" if way == "Sub" else "Div", width, graph.numbers(6 if way == "Sub" else 2))
    middle = graph.numbers(6) if way == "stated" else graph.node("Mul", step, graph.numbers(1))
    end, axis = graph.node("Mul", step, graph.numbers(2)), graph.numbers(1)
    halves = [graph.node("Slice", a, graph.numbers(0), middle, axis), graph.node("Slice", a, middle, end, axis)]
    known = [value(half, [2, 6, 128, 96]) for half in halves]
    network = graph.read(tmp_path, graph.conv(graph.node("Mul", *halves), 6, 5), value_info=known)
    found = written(network, a)
    assert bool(found.fixed) == (way != "Div")
    if way == "Div":
        assert (found.multiple_of, [reader.times * 2 for reader in found.readers]) == (2, [1])
        assert network.whole
        again, _ = read_spec(spec_text(network), "x.yaml")
        assert again is not None
        assert again.whole
        assert [group.fixed for group in channels_of(again).groups if 0 in group.writers] == [()]


def test_quantized_maps_pass_through(tmp_path: Path) -> None:
    graph = Graph()

    def requantized(source: str) -> str:
        scale = graph.constant()
        return graph.node("DequantizeLinear", graph.node("QuantizeLinear", source, scale), scale)

    a = graph.conv(requantized("x"), 3, 12)
    b = graph.conv(requantized(a), 12, 12)
    total = graph.node("Add", requantized(b), requantized(a))
    last = graph.conv(total, 12, 7)
    network = graph.read(tmp_path, last)
    assert members(network, a) == ({a, b}, {b: "1", last: "1"})
    assert written(network, a).fixed == ()
    assert [group.only_input for group in channels_of(network).groups].count(True) == 1


def test_dynamically_quantized_convolutions(tmp_path: Path) -> None:
    graph = Graph()
    a = graph.conv("x", 3, 12)
    graph.nodes.append(helper.make_node("DynamicQuantizeLinear", [a], ["q", "scale", "zero"], name="quantize"))
    graph.tensors.append(weight("w", [7, 12, 1, 1], np.uint8))
    whole = graph.node("Cast", graph.node("ConvInteger", "q", "w", "zero"), to=TensorProto.FLOAT)
    b = graph.node("Mul", whole, graph.node("Mul", "scale", graph.constant()))
    last = graph.conv(b, 7, 5)
    network = graph.read(tmp_path, last)
    assert named(network, b).kind == "identity"
    assert members(network, a) == ({a}, {"ConvInteger2": "1"})
    assert members(network, "ConvInteger2") == ({"ConvInteger2"}, {last: "1"})
    assert written(network, a).fixed == written(network, "ConvInteger2").fixed == ()


def test_channels_that_are_last(tmp_path: Path) -> None:
    graph = Graph((2, 8, 6, 3))
    scaled = graph.node("Mul", graph.node("Cast", "x", to=1), graph.constant(3))
    first = graph.conv(graph.node("Transpose", scaled, perm=[0, 3, 1, 2]), 3, 12)
    other = graph.conv(first, 12, 20)
    last = [graph.node("Transpose", name, perm=[0, 2, 3, 1]) for name in (first, other)]
    joined = graph.node("Concat", graph.node("Add", last[0], graph.constant(12)), last[1], axis=3)
    end = graph.conv(graph.node("Transpose", joined, perm=[0, 3, 1, 2]), 32, 7)
    network = graph.read(tmp_path, end)
    image = network.operations[0]
    assert (image.C, image.H, image.W) == (3, 8, 6)
    assert (named(network, joined).kind, named(network, joined).C, named(network, joined).H) == ("concat", 32, 8)
    assert members(network, first) == ({first}, {other: "1", end: "1"})
    assert members(network, other) == ({other}, {end: "1"})
    (start,) = [group for group in channels_of(network).groups if group.inputs]
    assert start.fixed == (THE_INPUT,)
    assert [reader.layer for reader in start.readers] == [0]


def test_one_channel_is_spread(tmp_path: Path) -> None:
    graph = Graph()
    a = graph.conv("x", 3, 12)
    gate = graph.node("Sigmoid", graph.conv("x", 3, 1))
    network = graph.read(tmp_path, graph.conv(graph.node("Mul", gate, a), 12, 7))
    assert written(network, a).fixed == ()
    assert "spreads it" in written(network, "Conv1").fixed[0]


def test_reading_a_shape_changes_nothing(tmp_path: Path) -> None:
    graph = Graph()
    a = graph.conv("x", 3, 12)
    low = graph.conv(a, 12, 20, strides=[2, 2])
    wanted = graph.node("Slice", graph.node("Shape", a), graph.numbers(2), graph.numbers(4))
    kept = graph.node("Slice", graph.node("Shape", low), graph.numbers(0), graph.numbers(2))
    up = graph.node("Resize", low, "", "", graph.node("Concat", kept, wanted, axis=0), mode="nearest")
    last = graph.conv(graph.node("Concat", up, a, axis=1), 32, 7)
    network = graph.read(tmp_path, last)
    assert [each.kind for each in network.operations] == ["input", "conv", "conv", "resize", "concat", "conv"]
    assert written(network, a).fixed == written(network, low).fixed == ()


def test_convolutions_with_the_same_weights_have_one_width(tmp_path: Path) -> None:
    graph = Graph()
    a, b = graph.conv("x", 3, 12), graph.conv("x", 3, 12, strides=[2, 2])
    shared = graph.constant(20, 12, 1, 1)
    c, d = (graph.node("Conv", name, shared) for name in (a, b))
    network = graph.read(tmp_path, graph.conv(c, 20, 7), graph.conv(d, 20, 7))
    assert members(network, a) == ({a, b}, {c: "1", d: "1"})
    assert members(network, c)[0] == {c, d}
    assert written(network, a).fixed == written(network, c).fixed == ()


def test_weights_that_several_nodes_read_are_parameters_once(tmp_path: Path) -> None:
    graph = Graph()
    shared = graph.constant(12, 12, 1, 1)
    c = graph.node("Conv", graph.node("Conv", graph.conv("x", 3, 12), shared), shared)
    network = graph.read(tmp_path, graph.conv(c, 12, 12))
    assert parameters(network.layers) == 12 * 3 + 12 * 12 + 12 * 12
    assert len({each.node for each in network.layers}) == 3


def test_convolutions_that_turn_the_same_weights_stay_as_they_are(tmp_path: Path) -> None:
    graph = Graph()
    a, b = graph.conv("x", 3, 12), graph.conv("x", 3, 12, strides=[2, 2])
    shared = graph.constant(20, 12, 1, 1)
    c, d = (graph.node("Conv", name, graph.node("Cast", shared, to=1)) for name in (a, b))
    network = graph.read(tmp_path, c, d)
    for name, reader in ((a, c), (b, d)):
        assert written(network, name).fixed == (f"{reader}, which shares its weights, depends on it",)
        assert f"{reader}, which shares its weights, depends on it" in written(network, reader).fixed


def test_convolutions_with_computed_weights_stay_as_they_are(tmp_path: Path) -> None:
    graph = Graph()
    a = graph.conv("x", 3, 12)
    kernel = graph.conv("x", 3, 12)
    matched = graph.node("Conv", a, graph.node("Reshape", kernel, graph.numbers(16, 12, 3, 2)))
    network = graph.read(tmp_path, graph.conv(matched, 16, 7))
    why = f"Conv {matched}, whose weights are computed, depends on it"
    assert written(network, a).fixed == written(network, matched).fixed == (why,)
    assert written(network, kernel).fixed != ()


def test_bodies_of_branches_and_loops(tmp_path: Path) -> None:
    graph = Graph()
    a = graph.conv("x", 3, 12)
    graph.tensors += [weight("w1", [12, 12, 1, 1]), weight("w2", [12, 12, 1, 1]), weight("w3", [12, 12, 1, 1])]
    sides = [
        helper.make_graph(
            [helper.make_node("Conv", [a, side], [f"{side}_out"], name=side)], side, [], [value(f"{side}_out", None)]
        )
        for side in ("w1", "w2")
    ]
    graph.tensors.append(numpy_helper.from_array(np.array(True), "yes"))
    chosen = graph.node("If", "yes", then_branch=sides[0], else_branch=sides[1])
    turn = helper.make_graph(
        [
            helper.make_node("Conv", ["state", "w3"], ["next"], name="inside"),
            helper.make_node("Identity", ["go_on"], ["go_on_out"]),
        ],
        "body",
        [value("i", [], 7), value("go_on", [], 9), value("state", [2, 12, 8, 6])],
        [value("go_on_out", [], 9), value("next", [2, 12, 8, 6])],
    )
    end = graph.node("Loop", graph.numbers(3), "yes", chosen, body=turn)
    network = graph.read(tmp_path, end)
    assert sorted(each.layer for each in network.operations if each.layer is not None) == [0, 1, 2, 3]
    assert members(network, a) == ({a}, {"w1": "1", "w2": "1"})
    for side in ("w1", "w2"):
        assert written(network, side).fixed == (f"If {chosen} depends on it",)
    state = named(network, "state")
    assert (state.kind, state.C, network.operations[state.inputs[0]].name) == ("reshape", 12, chosen)
    assert f"Loop {end} depends on it" in written(network, "inside").fixed
    (inside,) = [each for each in network.operations if each.name == "inside"]
    assert network.operations[inside.inputs[0]] is state


def test_unknown_operators_and_shapes_that_disagree_are_opaque(tmp_path: Path) -> None:
    graph = Graph()
    a = graph.conv("x", 3, 12)
    b = graph.node("Reshape", graph.conv("x", 3, 12), graph.numbers(5, 5))
    graph.nodes.append(helper.make_node("Relu", [a], ["own"], name="own", domain="mine"))
    total = graph.node("Add", a, b)
    proto = model(graph.nodes, graph.inputs, ["own", total], graph.tensors, domains=["mine"])
    network, _ = read(save(tmp_path, proto), ReadOptions())
    assert network is not None
    assert [named(network, name).kind for name in ("own", b, total)] == ["reshape"] * 3
    assert named(network, "own").where == "mine.Relu own"
    assert named(network, total).C is None


def test_known_networks() -> None:
    network, _ = read(str(LIGHT / "light_resnet50.onnx"), ReadOptions(batch=8))
    assert network is not None
    groups = [group for group in channels_of(network).groups if group.writers]
    assert [group.width for group in groups if len(group.writers) > 1] == [256, 512, 1024, 2048]
    assert [len(group.writers) for group in groups if len(group.writers) > 1] == [4, 5, 7, 4]
    assert [group.width for group in groups if group.fixed] == [2048]
    dense, _ = read(str(LIGHT / "light_densenet121.onnx"), ReadOptions(batch=8))
    assert not any(each.kind == "reshape" for each in dense.operations)
    assert sum(bool(group.fixed) for group in channels_of(dense).groups if group.writers) == 1


def test_each_node_says_what_it_reads_writes_and_multiplies(tmp_path: Path) -> None:
    graph = Graph()
    y = graph.node("Relu", graph.norm(graph.conv("x", 3, 8, 3), 8))
    pooled = graph.node("Flatten", graph.node("GlobalAveragePool", graph.node("MaxPool", y, kernel_shape=[2, 2])))
    out = graph.node("Gemm", pooled, graph.constant(8, 5))
    network = graph.read(tmp_path, out)
    assert network.whole
    full, half = 2 * 8 * 8 * 6, 2 * 8 * 7 * 5
    works = [(one.work.kind, one.work.reads, one.work.writes, one.work.weights, one.work.product)
             for one in network.operations if one.work is not None]  # fmt: skip
    assert works == [
        ("batch norm", (full,), full, 16, ()), ("activation", (full,), full, 0, ()), ("max pool", (full,), half, 0, ()),
        ("pool", (half,), 16, 0, ()), ("linear", (16,), 10, 40, (1, 2, 5, 8)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("left", "width", "expected"),
    [("x", 6, ("product", 0, (8, 6, 6, 6))), ("weights", 5, ("linear", 36, (8, 6, 5, 6)))],
)
def test_a_product_has_its_batch_whatever_stands_at_the_left(
    tmp_path: Path, left: str, width: int, expected: tuple[str, int, tuple[int, ...]]
) -> None:
    graph = Graph((2, 4, 6, width))
    operand = graph.constant(6, 6) if left == "weights" else left
    network = graph.read(tmp_path, graph.conv(graph.node("MatMul", operand, "x"), 4, 4))
    (work,) = [one.work for one in network.operations if one.work is not None]
    assert (work.kind, work.weights, work.product) == expected


@pytest.mark.parametrize(
    ("node", "in_32_bits"),
    [
        (lambda graph, y: graph.node("Softmax", y), True),
        (lambda graph, y: graph.node("Resize", y, "", graph.numbers(1.0, 1.0, 2.0, 2.0)), True),
        (lambda graph, y: graph.node("LayerNormalization", y, graph.constant(6)), True),
        (lambda graph, y: layer_norm(graph, y), True),
        (lambda graph, y: graph.node("Mul", y, graph.constant(1, 4, 1, 1)), True),
        (lambda graph, y: graph.node("InstanceNormalization", y, graph.constant(4), graph.constant(4)), False),
        (lambda graph, y: graph.node("Mul", y, graph.numbers(2.0)), False),
        (lambda graph, y: graph.node("Add", y, graph.constant(1, 4, 1, 1)), False),
        (lambda graph, y: graph.node("Relu", y), False),
    ],
    ids=["softmax", "resize", "layer norm", "parts of one", "scale", "instance norm", "number", "shift", "relu"],
)
def test_autocast_runs_in_32_bits_what_it_would_in_pytorch(
    tmp_path: Path, node: Callable[[Graph, str], str], in_32_bits: bool
) -> None:
    graph = Graph((2, 3, 8, 6))
    network = graph.read(tmp_path, graph.conv(node(graph, graph.conv("x", 3, 4)), 4, 8))
    assert [one.work.in_32_bits for one in network.operations if one.work is not None] == [in_32_bits]


@pytest.mark.parametrize(
    ("sizes", "settings", "maps", "expected"),
    [
        ((2, 3, 8, 6), {}, 3, ("attention", (6, 8, 8, 6))),
        ((2, 8, 18), {"q_num_heads": 3, "kv_num_heads": 3}, 3, ("attention", (6, 8, 8, 6))),
        ((2, 3, 8, 6), {}, 2, ("unknown", ())),  # of values that are stored
    ],
)
def test_attention_has_its_heads_queries_keys_and_width(
    tmp_path: Path, sizes: tuple[int, ...], settings: dict[str, int], maps: int, expected: tuple[str, tuple[int, ...]]
) -> None:
    graph = Graph()
    source = graph.conv("x", 3, 3)
    read = [graph.node("Reshape", source, graph.numbers(*sizes)) for _ in range(maps)]
    y = graph.node("Attention", *read, *[graph.constant(*sizes) for _ in range(3 - maps)], **settings)
    y = graph.node("Reshape", y, graph.numbers(2, 3, 8, 6))
    network = graph.read(tmp_path, graph.conv(y, 3, 4), opset=23)
    (work,) = [one.work for one in network.operations if one.work is not None]
    assert (work.kind, work.product) == expected


@pytest.mark.parametrize(
    ("bias", "twice", "works"),
    [
        ((5,), False, [("linear", (1, 64, 5, 6), 35), ("activation", (), 0)]),
        ((1, 1, 5), False, [("linear", (1, 64, 5, 6), 35), ("activation", (), 0)]),
        ((8, 5), False, [("linear", (1, 64, 5, 6), 30), ("add", (), 0), ("activation", (), 0)]),  # each row its own
        ((5,), True, [("linear", (1, 64, 5, 6), 30), ("add", (), 0), ("activation", (), 0), ("add", (), 0)]),
    ],
)
def test_a_row_that_is_added_to_a_product_is_its_bias(
    tmp_path: Path, bias: tuple[int, ...], twice: bool, works: list[tuple[str, tuple[int, ...], int]]
) -> None:
    graph = Graph()
    product = graph.node("MatMul", graph.conv("x", 3, 4), graph.constant(6, 5))
    y = graph.node("Relu", graph.node("Add", graph.constant(*bias), product))
    if twice:
        y = graph.node("Add", y, product)
    network = graph.read(tmp_path, graph.conv(y, 4, 8))
    found = [one.work for one in network.operations if one.work is not None]
    assert [(work.kind, work.product, work.weights) for work in found] == works


def test_a_product_of_numbers_has_no_price(tmp_path: Path) -> None:
    graph = Graph((2, 3, 8, 6))
    y = graph.conv("x", 3, 4)
    dot = graph.node("MatMul", *[graph.node("ReduceMean", y, axes=[0, 2, 3], keepdims=0)] * 2)
    network = graph.read(tmp_path, graph.node("Mul", y, dot))
    kinds = [one.work.kind for one in network.operations if one.work is not None]
    assert kinds[-2:] == ["unknown", "multiply"]


def erf_gelu(graph: Graph, y: str) -> str:
    erf = graph.node("Erf", graph.node("Div", y, graph.numbers(1.4142)))
    product = graph.node("Mul", y, graph.node("Add", erf, graph.numbers(1.0)))
    return graph.node("Mul", product, graph.numbers(0.5))


def half_first(graph: Graph, y: str) -> str:
    half = graph.node("Mul", y, graph.numbers(0.5))
    erf = graph.node("Erf", graph.node("Mul", y, graph.numbers(0.7071)))
    return graph.node("Mul", half, graph.node("Add", erf, graph.numbers(1.0)))


def tanh_gelu(graph: Graph, y: str) -> str:
    cube = graph.node("Mul", graph.node("Mul", graph.node("Mul", y, y), y), graph.numbers(0.044715))
    tanh = graph.node("Tanh", graph.node("Mul", graph.node("Add", y, cube), graph.numbers(0.7979)))
    half = graph.node("Mul", y, graph.numbers(0.5))
    return graph.node("Mul", half, graph.node("Add", tanh, graph.numbers(1.0)))


def silu(graph: Graph, y: str) -> str:
    return graph.node("Mul", y, graph.node("Sigmoid", y))


def quick_gelu(graph: Graph, y: str) -> str:
    return graph.node("Mul", y, graph.node("Sigmoid", graph.node("Mul", y, graph.numbers(1.702))))


def layer_norm(graph: Graph, y: str, axis: int = -1, *, shifted: bool = True) -> str:
    off = graph.node("Sub", y, graph.node("ReduceMean", y, axes=[axis]))
    variance = graph.node("ReduceMean", graph.node("Pow", off, graph.numbers(2.0)), axes=[axis])
    deviation = graph.node("Sqrt", graph.node("Add", variance, graph.numbers(1e-5)))
    scaled = graph.node("Mul", graph.node("Div", off, deviation), graph.constant(6))
    return graph.node("Add", scaled, graph.constant(6)) if shifted else scaled


@pytest.mark.parametrize(
    ("composite", "kind", "weights"),
    [
        (erf_gelu, "activation", 0), (half_first, "activation", 0), (tanh_gelu, "activation", 0),
        (silu, "activation", 0), (quick_gelu, "activation", 0), (layer_norm, "layer norm", 12),
    ],
)  # fmt: skip
def test_what_an_exporter_takes_apart_is_one_kernel(
    tmp_path: Path, composite: Callable[[Graph, str], str], kind: str, weights: int
) -> None:
    graph = Graph()
    y = composite(graph, graph.conv("x", 3, 4))
    network = graph.read(tmp_path, graph.conv(graph.node("Mul", y, graph.numbers(2.0)), 4, 8))
    works = [one.work for one in network.operations if one.work is not None]
    assert [(work.kind, sum(work.reads), work.writes, work.weights) for work in works] == [
        (kind, 384, 384, weights), ("activation", 384, 384, 0)
    ]  # fmt: skip
    chain = network.operations[1:]  # each reads only the one before: no gradients of a tensor have to be summed up
    assert [one.inputs for one in chain] == [(number,) for number in range(len(chain))]


@pytest.mark.parametrize(
    ("nodes", "kernels"),
    [
        (lambda graph, y: graph.node("Mul", y, graph.node("Sigmoid", graph.conv(y, 4, 4))), ["Sigmoid", "Mul"]),
        (lambda graph, y: graph.node("Add", silu(graph, y), "Sigmoid2"), ["Sigmoid", "Mul", "Add"]),
        (lambda graph, y: layer_norm(graph, y, axis=1),
         ["ReduceMean", "Sub", "Pow", "ReduceMean", "Add", "Sqrt", "Div", "Mul", "Add"]),
        (lambda graph, y: graph.node("Mul", y, graph.node("Tanh", graph.node("Softplus", y))),
         ["Softplus", "Tanh", "Mul"]),
        (lambda graph, y: graph.node("Mul", y, graph.node("Sigmoid", graph.node("ReduceMean", y, axes=[-1]))),
         ["ReduceMean", "Sigmoid", "Mul"]),
        (lambda graph, y: graph.node("Add", layer_norm(graph, y, shifted=False), y), ["layer_norm", "Mul", "Add"]),
    ],
    ids=["a gate", "read again", "means of channels", "mish", "a gate of means", "what a norm is added to"],
)  # fmt: skip
def test_other_nodes_stay_kernels_of_their_own(
    tmp_path: Path, nodes: Callable[[Graph, str], str], kernels: list[str]
) -> None:
    graph = Graph()
    y = graph.node("Relu", graph.conv("x", 3, 4))
    network = graph.read(tmp_path, nodes(graph, y))
    assert [one.work.op for one in network.operations if one.work is not None] == ["Relu", *kernels]


def test_without_all_sizes_no_step_is_known(tmp_path: Path) -> None:
    graph = Graph(("n", 3, 8, 6))
    y = graph.node("Relu", graph.conv("x", 3, 8))
    proto = model(graph.nodes, graph.inputs, [y], graph.tensors)
    network, _ = read(save(tmp_path, proto), ReadOptions())
    assert not network.whole
    network, _ = read(save(tmp_path, proto), ReadOptions(batch=4))
    assert network.whole
