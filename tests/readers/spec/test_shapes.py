"""Shapes carried on from layer to layer."""

from __future__ import annotations

import pytest
from read_specs import STEM, arrives, errors, network, only, spec

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
    ("op: pad, padding: [1, 2, 3, 4]", (64, 115, 119)),
    ("op: zero_pad, padding: 2", (64, 116, 116)),
    ("op: relu", (64, 112, 112)),
    ("op: BatchNorm2d", (64, 112, 112)),
    ("op: add, inputs: [a, a]", (64, 112, 112)),
    ("op: concat, inputs: [a, a, a]", (192, 112, 112)),
    ("op: reshape, C: 10, H: 3, W: 4", (10, 3, 4)),
    ("op: linear, C: 10", (10, None, None)),
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
        ("op: add, inputs: [a, small]", "c: its inputs differ in H: a has 112 and small has 7"),
        ("op: concat, inputs: [a, small]", "c: its inputs differ in H"),
        ("op: add, inputs: [a, wide]", "c: its inputs differ in C: a has 64 and wide has 65"),
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
