"""Shapes that operations hand on, kinds of convolutions, and what a layer lacks."""

import pytest
from read_specs import STEM, arrives, errors, network, only, sizes, spec

CARRIED = [
    ("op: pool, kernel_size: 3, stride: 2, padding: 1", (64, 56, 56)),
    ("op: maxpool, kernel_size: 2", (64, 56, 56)),
    ("op: avg_pool, kernel_size: [2, 4]", (64, 56, 28)),
    ("op: pool, kernel_size: 3, stride: 2, padding: same", (64, 56, 56)),
    ("op: pool, kernel_size: 3, stride: 1, dilation: 2", (64, 108, 108)),
    ("op: MaxPool2d, R: 2, S: 2, stride: 1", (64, 111, 111)),
    ("op: global_avg_pool", (64, 1, 1)),
    ("op: adaptive_avg_pool, size: 7", (64, 7, 7)),
    ("op: adaptive_avg_pool, size: [7, 5]", (64, 7, 5)),
    ("op: upsample, scale: 2", (64, 224, 224)),
    ("op: upsample, scale: [2, 3]", (64, 224, 336)),
    ("op: interpolate, size: [30, 40]", (64, 30, 40)),
    ("op: resize, size: unknown", (64, None, None)),
    ("op: resize, size: [unknown, 40]", (64, None, 40)),
    ("op: resize, size: [unknown]", (64, None, None)),
    ("op: downsample, scale: 2", (64, 56, 56)),
    ("op: pixel_shuffle, scale: 2", (16, 224, 224)),
    ("op: pixel_unshuffle, scale: 4", (1024, 28, 28)),
    ("op: channel_pool", (1, 112, 112)),
    ("op: channel_shuffle, groups: 4", (64, 112, 112)),
    ("op: channel_split", (32, 112, 112)),
    ("op: channel_split, groups: 4, C: 16", (16, 112, 112)),
    ("op: glu", (32, 112, 112)),
    ("op: pad, padding: [1, 2, 3, 4]", (64, 115, 119)),
    ("op: zero_pad, padding: 2", (64, 116, 116)),
    ("op: relu", (64, 112, 112)),
    ("op: BatchNorm2d", (64, 112, 112)),
    ("op: add, inputs: [a, a]", (64, 112, 112)),
    ("op: concat, inputs: [a, a, a]", (192, 112, 112)),
    ("op: reshape, C: 10, H: 3, W: 4", (10, 3, 4)),
    ("op: linear, C: 10", (10, 112, 112)),
    ("op: linear, K: 10", (10, 112, 112)),
    ("op: linear, C: 10, H: 1, W: 1", (10, 1, 1)),
    ("op: reshape, C: 10, K: 4, H: 3, W: 4", (10, 3, 4)),
    ("op: split, C: 32", (32, 112, 112)),
    ("op: chunk, C: 32", (32, 112, 112)),
    ("op: slice, C: 32", (32, 112, 112)),
    ("op: slice, C: 64, H: 100, W: 100", (64, 100, 100)),
    ("op: dense, C: 64, filters: 10", (10, 112, 112)),
]


@pytest.mark.parametrize(("carrier", "shape"), CARRIED)
def test_shapes_carried_on(carrier: str, shape: tuple[int | None, ...]) -> None:
    found = network(spec(f"name: a, {STEM}", f"{carrier}, name: between", "name: b, K: 8, kernel_size: 1"))
    (edge,) = found.edges
    assert arrives(edge) == shape
    assert (edge.consumer, edge.producers, edge.source) == (1, (0,), "between")
    assert shape == (found.layers[1].C, found.layers[1].H, found.layers[1].W)


def test_carriers_in_three_dimensions() -> None:
    text = "C: 4, D: 16, H: 32, W: 32, K: 8, kernel_size: 1"
    for carrier, shape in [
        ("op: avgpool, kernel_size: [2, 4, 4]", (8, 8, 8)),
        ("op: upsample, scale: [1, 2, 2]", (16, 64, 64)),
        ("op: adaptive_avg_pool, size: [1, 7, 7]", (1, 7, 7)),
        ("op: resize, size: [8, unknown, 7]", (8, None, 7)),
        ("op: pad, padding: [1, 0, 2]", (18, 32, 36)),
    ]:
        last = network(spec(f"op: conv3d, {text}", carrier, "K: 8, kernel_size: 1")).layers[1]
        assert shape == (last.D, last.H, last.W)


def test_concat_and_add_of_several() -> None:
    text = spec(
        f"name: a, {STEM}", "name: b, K: 32, kernel_size: 1", "name: c, input: a, K: 96, kernel_size: 1",
        "name: cat, op: concat, inputs: [a, b, c]", "name: d, K: 8, kernel_size: 1",
    )  # fmt: skip
    found = network(text)
    assert arrives(found.edges[-1]) == (192, 112, 112)
    assert found.edges[-1].producers == (0, 1, 2)


@pytest.mark.parametrize(
    ("inputs", "carrier", "shape"),
    [
        ("C: 8, H: 4, W: 4|C: 8, H: 1, W: 1", "mul", (8, 4, 4)),
        ("C: 8, H: 1, W: 1|C: 8, H: 4, W: 4", "mul", (8, 4, 4)),
        ("C: 1, H: 4, W: 4|C: 8, H: 4, W: 4", "mul", (8, 4, 4)),
        ("C: 8|C: 8, H: 1, W: 1", "mul", (8, None, None)),
        ("C: 8, H: 1, W: 1|C: 8", "mul", (8, None, None)),
        ("C: 8|C: 8, H: 4, W: 4", "add", (8, 4, 4)),
        ("C: 8, H: 4, W: 4|H: 4, W: 4", "concat", (None, 4, 4)),
    ],
)
def test_broadcasting_and_unknown_sizes(inputs: str, carrier: str, shape: tuple[int | None, ...]) -> None:
    one, other = inputs.split("|")
    found = network(
        spec(
            f"name: x, op: input, {one}",
            f"name: y, op: input, {other}",
            f"op: {carrier}, inputs: [x, y]",
            "K: 1, kernel_size: 1",
        )
    )
    assert arrives(found.edges[0]) == shape


def test_what_stands_alone_and_what_is_connected() -> None:
    found = network(
        spec(
            f"name: a, {STEM}",
            "C: 64, H: 56, W: 56, K: 8, kernel_size: 1",  # all three: alone
            "C: 8, K: 16, kernel_size: 1",  # H and W come from before
            "input: a, C: 64, H: 112, W: 112, K: 8, kernel_size: 1",  # named
        )
    )
    assert [(edge.consumer, edge.producers) for edge in found.edges] == [(2, (1,)), (3, (0,))]
    assert found.layers[2].H == 56


def test_a_declared_size_is_kept_beside_what_arrives() -> None:
    found = network(spec(f"{STEM}", "C: 128, K: 64, kernel_size: 1"))
    assert (found.layers[1].C, found.edges[0].C) == (128, 64)
    layer = only(spec(f"{STEM}, P: 100, Q: 112"))
    assert (layer.declared_P, layer.P, layer.declared_Q) == (100, 112, 112)


def test_a_layer_without_output_hands_on_unknown_sizes() -> None:
    found = network(spec("C: 3, H: 2, W: 9, K: 8, kernel_size: 3", "K: 8, kernel_size: 1"))
    assert arrives(found.edges[0]) == (8, None, 7)


@pytest.mark.parametrize(
    "carrier", ["relu, C: 64, H: 112", "pool, kernel_size: 2, H: 112", "pool, kernel_size: 2, H: 56", "pool, size: 56"]
)
def test_what_a_carrier_declares_is_what_it_reads_or_hands_on(carrier: str) -> None:
    assert not errors(spec(STEM, f"op: {carrier}", "K: 8, kernel_size: 1"))


def test_long_residual_streams_keep_the_latest_producers() -> None:
    layers = [f"name: c0, {STEM}", "name: s0, op: identity"]
    for i in range(1, 101):
        layers += [
            f"name: c{i}, input: s{i - 1}, K: 64, kernel_size: 1",
            f"name: s{i}, op: add, inputs: [c{i}, s{i - 1}]",
        ]
    found = network(spec(*layers, "name: last, K: 10, kernel_size: 1"))
    assert found.edges[-1].producers == tuple(range(37, 101))
    assert [layer.name for layer in found.layers if layer.head] == ["last"]


@pytest.mark.parametrize(
    ("carrier", "message"),
    [
        ("op: pool", "c: a pool needs kernel_size"),
        ("op: pool, kernel_size: 113", "c: the window of 113 is larger than H = 112"),
        ("op: upsample", "c: needs scale or size"),
        ("op: upsample, scale: 1.5", "scale: must be a whole number"),
        ("op: upsample, size: [1, 2, 3, 4]", "size: must be one number or 2"),
        ("op: upsample, scale: 2147483648", "c: H would be 240518168576, larger than 2^31"),
        ("op: pixel_shuffle, scale: 3", "c: C = 64 cannot be divided by 9"),
        ("op: channel_split, groups: 3", "c: C = 64 cannot be divided by 3"),
        ("op: glu, scale: 2", "scale: of upsample,"),
        ("op: channel_split, C: 31", "C = 31, but c reads 64 and hands on 32"),
        ("op: channel_pool, C: 2", "C = 2, but c reads 64 and hands on 1"),
        ("op: add, inputs: [a, small]", "c: its inputs differ in H: a has 112 and small has 7"),
        ("op: concat, inputs: [a, small]", "c: its inputs differ in H"),
        ("op: add, inputs: [a, wide]", "c: its inputs differ in C: a has 64 and wide has 65"),
        # what an op does not take is no size that was thought of
        ("op: pad, size: 114", "size: of pool, global_pool, upsample and crop alone"),
        ("op: relu, size: 7", "size: of pool,"),
        ("K: 8, kernel_size: 1, size: 7", "size: of pool,"),
        ("op: maxpool, kernel_size: 2, scale: 2", "scale: of upsample, downsample, pixel_shuffle and pixel_unshuffle"),
        ("op: upsample, scale: 2, size: 224", "size says again what scale says"),
        ("op: batchnorm, C: 65", "C = 65, but c reads 64"),
        ("op: pad, H: 114", "H = 114, but c reads 112"),
        ("op: pad, padding: 1, W: 116", "W = 116, but c reads 112 and hands on 114"),
        ("op: concat, inputs: [a, a], C: 129", "C = 129, but c reads 64 and hands on 128"),
    ],
)
def test_shapes_that_do_not_fit(carrier: str, message: str) -> None:
    text = spec(
        f"name: a, {STEM}", "name: small, op: input, C: 64, H: 7, W: 7", "name: wide, op: input, C: 65, H: 112, W: 112",
        f"name: c, {carrier}" + ("" if "inputs" in carrier else ", input: a"), "name: after, K: 8, kernel_size: 1",
    )  # fmt: skip
    (error,) = errors(text)
    assert error.message.startswith(message)
    assert error.line == 6


def test_one_dimension() -> None:
    """The operation's name, `dims`, or a filter of one size say so; and the layers after it are 1-D too."""
    for layer in ("op: Conv1d, kernel_size: 5", "dims: 1, kernel_size: 5", "kernel_size: [5]"):
        first, second = network(spec(f"C: 8, W: 100, K: 16, padding: 2, {layer}", "K: 4, kernel_size: 3")).layers
        assert sizes(first, "dims H R P W S Q PadH PadW") == [1, 1, 1, 1, 100, 5, 100, 0, 2]
        assert sizes(second, "dims C H R W P Q") == [1, 16, 1, 1, 100, 1, 98]


def test_three_dimensions() -> None:
    first, pool, last = (
        "C: 4, D: 16, H: 112, W: 112, K: 64, kernel_size: 3, padding: 1",
        "op: maxpool3d, kernel_size: 2",
        "K: 8, kernel_size: 3, stride: [1, 2, 2], padding: 1",
    )
    a, b = network(spec(first, pool, last)).layers
    assert sizes(a, "dims D T Z PadD StrideD") == [3, 16, 3, 16, 1, 1]
    assert sizes(b, "dims C D H W Z P Q StrideD U V") == [3, 64, 8, 56, 56, 8, 28, 28, 1, 2, 2]


def test_depth_that_nobody_gave_is_unknown() -> None:
    layer = only(spec("op: conv3d, C: 4, H: 16, W: 16, K: 8, kernel_size: 3"))
    assert (layer.D, layer.Z, layer.P) == (None, None, 14)


@pytest.mark.parametrize(
    "op", ["conv_transpose", "ConvTranspose2d", "deconv", "Conv2DTranspose", "nn.ConvTranspose2d", "transposed_conv"]
)
def test_transposed(op: str) -> None:
    layer = only(
        spec(f"op: {op}, C: 512, H: 7, W: 7, K: 256, kernel_size: 3, stride: 2, padding: 1, output_padding: 1")
    )
    assert sizes(layer, "op P Q OutPadH") == ["conv_transpose", 14, 14, 1]
    flag = only(spec("transposed: true, C: 512, H: 7, W: 7, K: 256, kernel_size: 4, stride: 2, padding: 1"))
    assert (flag.op, flag.P) == ("conv_transpose", 14)


@pytest.mark.parametrize(
    ("sizes", "most"), [("stride: 2, output_padding: 2", 2), ("dilation: 3, output_padding: [0, 3]", 3)]
)
def test_output_padding_that_no_framework_takes(sizes: str, most: int) -> None:
    (error,) = errors(spec(f"name: up, op: conv_transpose, C: 8, H: 7, W: 7, K: 8, kernel_size: 3, {sizes}"))
    assert error.message == f"up: output_padding {most} must be less than the stride or the dilation, {most}"


def test_output_padding_of_a_plain_convolution() -> None:
    """Who forgets `op: conv_transpose` is not told times of another layer."""
    layer = "name: up, C: 8, H: 7, W: 7, K: 8, kernel_size: 3, stride: 2, output_padding: "
    assert only(spec(layer + "0")).P == 3
    (error,) = errors(spec(layer + "1"))
    assert error.message == "up: output_padding is of transposed convolutions: op: conv_transpose"


@pytest.mark.parametrize("op", ["depthwise", "depthwise_conv", "DepthwiseConv2D", "dwconv"])
def test_depthwise(op: str) -> None:
    _, second = network(spec(f"{STEM}", f"op: {op}, kernel_size: 3, padding: 1")).layers
    assert sizes(second, "C K groups depthwise") == [64, 64, 64, True]
    multiplied = only(spec(f"op: {op}, C: 32, H: 8, W: 8, K: 64, kernel_size: 3"))
    assert sizes(multiplied, "C K groups depthwise") == [32, 64, 32, True]


def test_depthwise_that_states_its_groups_has_as_many_outputs() -> None:
    layer = only(spec("op: depthwise, C: 32, H: 8, W: 8, kernel_size: 3, groups: 32"))
    assert sizes(layer, "C K groups") == [32, 32, 32]


def test_depthwise_with_other_groups() -> None:
    (error,) = errors(spec("op: depthwise, C: 32, H: 8, W: 8, kernel_size: 3, groups: 16, K: 32"))
    assert error.message == "groups = 16, but a depthwise convolution has C = 32"
    assert (error.line, error.column) == (3, 65)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ("C: 8, H: 8, W: 8, kernel_size: 3", "layer1: a convolution needs K (out_channels)"),
        ("C: 8, H: 8, W: 8, K: 8", "layer1: a convolution needs R and S (kernel_size)"),
        ("C: 8, H: 8, W: 8", "layer1: a convolution needs K (out_channels) and R and S (kernel_size)"),
        ("op: depthwise, H: 8, W: 8, kernel_size: 3", "layer1: a depthwise convolution needs C (in_channels)"),
        ("op: pool, kernel_size: 2", "layer1: reads no layer; give input:"),
        (
            "op: conv_transpose, C: 8, H: 2147483648, W: 8, K: 8, kernel_size: 3, stride: 2",
            "layer1: the output's P would be 4294967297",
        ),
    ],
)
def test_what_a_layer_lacks(layer: str, message: str) -> None:
    (error,) = errors(spec(layer))
    assert error.message.startswith(message)
    assert (error.line, error.column) == (3, 5)


@pytest.mark.parametrize("name", ["N", "C", "H", "W", "K"])
def test_sizes_go_up_to_2_to_the_31(name: str) -> None:
    sizes = {"N": 1, "C": 1, "H": 3, "W": 3, "K": 1, "kernel_size": 3}
    text = spec(", ".join(f"{key}: {value}" for key, value in {**sizes, name: 2**31}.items()))
    assert getattr(only(text), name) == 2**31
    (error,) = errors(text.replace(str(2**31), str(2**31 + 1)))
    assert error.message == f"{name}: 2147483649 is larger than 2^31"


def test_r_and_kernel_size_that_disagree_name_both_lines() -> None:
    text = "version: 1\nlayers:\n  - C: 3\n    H: 9\n    W: 9\n    K: 8\n    R: 7\n    S: 3\n    kernel_size: 3\n"
    (error,) = errors(text)
    assert error.message == "kernel_size says R = 3, but line 7, column 8 says R = 7"
    assert (error.line, error.column) == (9, 18)
    assert errors(text.replace("R: 7", "R: 3")) == ()
