"""Kinds of convolutions, and what a layer lacks."""

from __future__ import annotations

import pytest
from read_specs import STEM, errors, network, only, sizes, spec


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


@pytest.mark.parametrize("op", ["depthwise", "depthwise_conv", "DepthwiseConv2D", "dwconv"])
def test_depthwise(op: str) -> None:
    _, second = network(spec(f"{STEM}", f"op: {op}, kernel_size: 3, padding: 1")).layers
    assert sizes(second, "C K groups depthwise") == [64, 64, 64, True]
    multiplied = only(spec(f"op: {op}, C: 32, H: 8, W: 8, K: 64, kernel_size: 3"))
    assert sizes(multiplied, "C K groups depthwise") == [32, 64, 32, True]


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
