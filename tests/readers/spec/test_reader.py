"""The YAML spec by its contract: sizes, shapes carried on, roles, places, and every error of a file."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convlint.errors import InputFault
from convlint.model.layer import ConvLayer
from convlint.model.network import Edge, Network
from convlint.model.runtime import Runtime
from convlint.model.version import Version
from convlint.readers import ReadOptions
from convlint.readers.spec.fields import ALIASES
from convlint.readers.spec.reader import read, read_spec
from convlint.readers.spec.runtime import SETTINGS
from convlint.report import InputError

STEM = "C: 3, H: 224, W: 224, K: 64, kernel_size: 7, stride: 2, padding: 3"


def spec(*layers: str, **top: str) -> str:
    head = "".join(f"{key}: {value}\n" for key, value in {"version": "1", **top}.items())
    return f"{head}layers:\n" + "".join(f"  - {{ {layer} }}\n" for layer in layers)


def network(text: str) -> Network:
    found, errors = read_spec(text, "net.yaml")
    assert errors == ()
    assert found is not None
    return found


def only(text: str) -> ConvLayer:
    (layer,) = network(text).layers
    return layer


def errors(text: str) -> tuple[InputError, ...]:
    return read_spec(text, "net.yaml")[1]


def sizes(layer: ConvLayer, names: str) -> list[Any]:
    return [getattr(layer, name) for name in names.split()]


def arrives(edge: Edge) -> tuple[int | None, ...]:
    return edge.C, edge.H, edge.W


# --- fields and their aliases


@pytest.mark.parametrize(("name", "alias"), [(name, alias) for name, aliases in ALIASES.items() for alias in aliases])
def test_every_alias(name: str, alias: str) -> None:
    values = {
        "N": "8", "C": "6", "D": "4", "H": "20", "W": "30", "K": "12", "kernel_size": "5", "stride": "2",
        "padding": "2", "dilation": "3", "groups": "2", "dtype": "bf16", "layout": "channels_last", "bias": "true",
        "op": "conv_transpose", "calls": "4",
    }  # fmt: skip
    if name == "input":
        text = spec(f"name: a, {STEM}", f"{STEM}", "K: 8, kernel_size: 1, {}: a")
        by_name, by_alias = network(text.replace("{}", name)), network(text.replace("{}", alias))
        assert by_alias.edges == by_name.edges
        assert by_alias.edges[-1].producers == (0,)
        return
    plain = {key: value for key, value in values.items() if key not in ("op", "D") or key == name}

    def written(key: str) -> ConvLayer:
        return only(spec(", ".join(f"{key if k == name else k}: {v}" for k, v in plain.items())))

    assert written(alias) == written(name)
    without = {key: value for key, value in plain.items() if key not in (name, "K", "kernel_size")}
    base = only(spec(", ".join(f"{k}: {v}" for k, v in {"K": "10", "kernel_size": "3", **without}.items())))
    assert written(alias) != base


def test_all_sizes() -> None:
    layer = only(
        spec("N: 2, C: 4, H: 30, W: 40, K: 8, R: 3, S: 5, U: 2, V: 3, PadH: 1, PadW: 2, DilH: 2, DilW: 1, groups: 4")
    )
    assert sizes(layer, "N C H W K R S U V PadH PadW DilH DilW groups P Q") == [
        2, 4, 30, 40, 8, 3, 5, 2, 3, 1, 2, 2, 1, 4, 14, 14,
    ]  # fmt: skip
    assert (layer.dims, layer.op, layer.layout, layer.dtype) == (2, "conv", "auto", None)


@pytest.mark.parametrize(
    ("padding", "sides"),
    [
        ("0", (0, 0, 0, 0)),
        ("2", (2, 2, 2, 2)),
        ("[2]", (2, 2, 2, 2)),
        ("[1, 2]", (1, 1, 2, 2)),
        ("[1, 2, 3, 4]", (1, 2, 3, 4)),
        ("[[1, 2], [3, 4]]", (1, 2, 3, 4)),
        ("{ top: 1, bottom: 2, left: 3 }", (1, 2, 3, 0)),
        ("valid", (0, 0, 0, 0)),
        ("VALID", (0, 0, 0, 0)),
        ("same", (2, 2, 3, 3)),
        ("'same'", (2, 2, 3, 3)),
    ],
)
def test_padding(padding: str, sides: tuple[int, int, int, int]) -> None:
    layer = only(spec(f"C: 4, H: 30, W: 40, K: 8, kernel_size: [5, 7], padding: {padding}"))
    assert (layer.PadH, layer.PadH_end, layer.PadW, layer.PadW_end) == sides


@pytest.mark.parametrize(
    ("layer", "sides", "out"),
    [
        # TensorFlow puts the odd element at the end
        ("H: 224, W: 224, kernel_size: 3, stride: 2", (0, 1, 0, 1), (112, 112)),
        ("H: 225, W: 224, kernel_size: 3, stride: 2", (1, 1, 0, 1), (113, 112)),
        ("H: 20, W: 20, kernel_size: 4", (1, 2, 1, 2), (20, 20)),
        ("H: 20, W: 20, kernel_size: 3, dilation: 4", (4, 4, 4, 4), (20, 20)),
        ("H: 20, W: 20, kernel_size: 1, stride: 4", (0, 0, 0, 0), (5, 5)),
        ("W: 20, kernel_size: 3, stride: 2", (None, None, 0, 1), (None, 10)),
        ("op: conv_transpose, H: 7, W: 7, kernel_size: 4, stride: 2", (1, 1, 1, 1), (14, 14)),
        ("op: conv_transpose, H: 7, W: 7, kernel_size: 2, stride: 3", (0, 0, 0, 0), (21, 21)),
    ],
)
def test_same_padding(layer: str, sides: tuple[int | None, ...], out: tuple[int | None, int]) -> None:
    made = only(spec(f"C: 8, K: 8, padding: same, {layer}"))
    assert (made.PadH, made.PadH_end, made.PadW, made.PadW_end) == sides
    assert out == (made.P, made.Q)


@pytest.mark.parametrize(
    ("spelling", "dtype"),
    [("fp16", "fp16"), ("float16", "fp16"), ("torch.float16", "fp16"), ("half", "fp16"), ("bfloat16", "bf16"),
     ("tf.float32", "fp32"), ("TF32", "tf32"), ("double", "fp64"), ("torch.float8_e4m3fn", "fp8"), ("qint8", "int8")],
)  # fmt: skip
def test_dtypes(spelling: str, dtype: str) -> None:
    assert only(spec(f"{STEM}, dtype: {spelling}")).dtype == dtype


@pytest.mark.parametrize(
    ("spelling", "layout"),
    [("NCHW", "NCHW"), ("nhwc", "NHWC"), ("channels_last", "NHWC"), ("torch.channels_last", "NHWC"),
     ("channels_first", "NCHW"), ("NDHWC", "NHWC"), ("auto", "auto")],
)  # fmt: skip
def test_layouts(spelling: str, layout: str) -> None:
    assert only(spec(f"{STEM}, layout: {spelling}")).layout == layout


# --- kinds of convolutions


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


# --- shapes carried on

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


# --- defaults


def test_defaults_fill_what_a_layer_leaves_out() -> None:
    text = spec(
        "C: 4, H: 8, W: 8, K: 8", "K: 16, R: 1, N: 2", defaults="{ N: 256, kernel_size: 3, padding: 1, dtype: fp16 }"
    )
    first, second = network(text).layers
    assert sizes(first, "N R S PadH PadW dtype") == [256, 3, 3, 1, 1, "fp16"]
    assert sizes(second, "N R S PadH PadW") == [2, 1, 3, 1, 1]


@pytest.mark.parametrize(
    ("default", "layer", "sides"),
    [
        ("1", "PadH: 0", (0, 0, 1, 1)),
        ("1", "padding: 0", (0, 0, 0, 0)),
        ("1", "padding: same", (2, 2, 2, 2)),
        ("same", "padding: 1", (1, 1, 1, 1)),
        ("same", "PadW: 1", (0, 0, 1, 1)),
        ("same", "bias: true", (2, 2, 2, 2)),
    ],
)
def test_default_padding(default: str, layer: str, sides: tuple[int, ...]) -> None:
    made = only(spec(f"C: 4, H: 8, W: 8, K: 8, kernel_size: 5, {layer}", defaults=f"{{ padding: {default} }}"))
    assert (made.PadH, made.PadH_end, made.PadW, made.PadW_end) == sides


def test_defaults_of_other_dimensions() -> None:
    volumes = network(spec("C: 4, H: 8, W: 8, D: 8, K: 8", defaults="{ kernel_size: [3, 1, 1], stride: [1, 2, 2] }"))
    assert sizes(volumes.layers[0], "dims T R StrideD U") == [3, 3, 1, 1, 2]
    sound = network(spec("C: 4, W: 100, K: 8", "K: 8", defaults="{ dims: 1, kernel_size: 5 }"))
    assert [layer.dims for layer in sound.layers] == [1, 1]
    assert sound.layers[1].Q == 92


def test_defaults_count_as_written() -> None:
    found = network(spec("K: 8, kernel_size: 1", "K: 8, kernel_size: 1", defaults="{ C: 64, H: 56, W: 56 }"))
    assert found.edges == ()


def test_a_default_is_located_where_it_stands() -> None:
    layer = only("version: 1\ndefaults:\n  dtype: fp16\nlayers:\n  - {C: 4, H: 8, W: 8, K: 8, kernel_size: 1}\n")
    assert layer.spans["dtype"] == (3, 10, 3, 14)


def test_errors_of_defaults_are_told_once() -> None:
    found = errors(spec(STEM, STEM, "op: conv1d, C: 3, W: 9, K: 1, kernel_size: 1", defaults="{ N: 0, nane: x }"))
    assert [error.message.split(":")[0] for error in found] == [
        "N",
        "unknown key 'nane' in defaults; did you mean 'name'?",
    ]
    assert [error.message for error in errors(spec(defaults="{ name: x }", layers="[]").replace("layers:\n", ""))] == [
        "name cannot be a default"
    ]


# --- roles


def test_roles_in_a_connected_network() -> None:
    found = network(
        spec(
            "name: image, op: input, N: 8, C: 12, H: 32, W: 32",
            "name: a, K: 16, kernel_size: 3",
            "name: bn, op: batchnorm",
            "name: b, K: 16, kernel_size: 1, bias: true",
            "name: act, op: relu",
            "name: bn2, op: batchnorm",
            "name: c, K: 19, kernel_size: 1",
        )
    )
    assert [(layer.name, layer.first, layer.head, layer.norm_follows, layer.N) for layer in found.layers] == [
        ("a", True, False, True, 8),
        ("b", False, False, False, 8),
        ("c", False, True, None, 8),
    ]


def test_a_normalisation_beside_another_reader() -> None:
    found = network(spec(f"name: a, {STEM}", "name: n, op: bn", "op: add, inputs: [a, n]", "K: 8, kernel_size: 1"))
    assert found.layers[0].norm_follows is False


def test_roles_of_layers_that_stand_alone() -> None:
    rgb, wide = network(spec(STEM, "C: 64, H: 8, W: 8, K: 8, kernel_size: 1")).layers
    assert (rgb.first, rgb.head, wide.first, wide.head) == (True, False, False, False)
    fed, _ = network(spec("C: 64, H: 8, W: 8, K: 8, kernel_size: 1", "K: 8, kernel_size: 1")).layers
    assert fed.first


def test_stated_roles_win() -> None:
    first, last = network(spec(f"{STEM}, first: false", "K: 8, kernel_size: 1, head: false, first: true")).layers
    assert (first.first, last.head, last.first) == (False, False, True)


# --- top level


def test_targets_mode_and_runtime() -> None:
    found = network(
        spec(STEM, target="[a100, t4, a100]", mode="inference",
             runtime='{ framework: torch, framework_version: 2.1.0+cu118, cuda: "11.2", cudnn: 8902, benchmark: yes,'
                     " fixed_input_size: true, deterministic: false, tf32: 0, xla_gpu_autotune_level: 4,"
                     " cudnn_conv_algo_search: heuristic }")
    )  # fmt: skip
    assert found.targets == ("a100", "t4")
    assert found.mode == "inference"
    assert found.runtime == Runtime(
        framework="pytorch", framework_version=Version("2.1"), cuda=Version("11.2"), cudnn=Version("8.9.2"),
        cudnn_benchmark=True, fixed_input_size=True, deterministic=False, tf32=False, xla_gpu_autotune_level=4,
        cudnn_conv_algo_search="HEURISTIC",
    )  # fmt: skip
    assert found.runtime.spans["cudnn"][0] == 4


def test_what_is_not_given_is_unknown() -> None:
    found = network(spec(STEM))
    assert (found.targets, found.mode, found.runtime) == ((), None, Runtime())
    assert [name for name in SETTINGS if getattr(found.runtime, name) is not None] == ["tf32"]


def test_room_for_anchors() -> None:
    text = "version: 1\nx-base: &b {C: 4, H: 8, W: 8, dtype: fp16}\nlayers: [{<<: *b, K: 8, kernel_size: 3, H: 9}]\n"
    layer = only(text)
    assert sizes(layer, "C H W dtype") == [4, 9, 8, "fp16"]
    assert layer.spans["C"][:2] == (2, 16)


def test_json_is_accepted() -> None:
    data = {
        "version": 1,
        "target": ["t4"],
        "layers": [{"name": "é", "C": 3, "H": 9, "W": 9, "K": 8, "kernel_size": [3, 3], "bias": False}],
    }
    for text in (json.dumps(data), json.dumps(data, indent=1), json.dumps(data, ensure_ascii=False)):
        layer = only(text)
        assert sizes(layer, "name C P K bias") == ["é", 3, 7, 8, False]


def test_a_batch_from_the_command_line() -> None:
    found, _ = read_spec(spec(STEM, "K: 8, kernel_size: 1", defaults="{ N: 256 }"), "net.yaml", ReadOptions(batch=16))
    assert found is not None
    assert [layer.N for layer in found.layers] == [16, 16]


def test_standard_input_has_a_name(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("convlint.readers.spec.reader.read_text", lambda path: spec(STEM))
    found, _ = read("-", ReadOptions())
    assert found is not None
    assert found.path == found.layers[0].path == "<stdin>"


# --- places

PLACED = """\
version: 1
runtime:
  cudnn: "8.1"
layers:
  - name: stem
    in_channels: 3
    H: 224
    W: 224
    K: 64
    kernel_size: [7, 7]
    stride: 2
    padding: same
  - { name: b, op: conv_transpose, K: 128, R: 3, S: 3,
      padding: [1, 1, 0, 0], dtype: fp16, layout: NHWC, groups: 2, bias: true }
"""


@pytest.mark.parametrize(
    ("layer", "names", "span"),
    [
        (0, "layer", (5, 5, 13, 3)), (0, "name", (5, 11, 5, 15)), (0, "C", (6, 18, 6, 19)), (0, "H", (7, 8, 7, 11)),
        (0, "R S T", (10, 18, 10, 24)), (0, "U V", (11, 13, 11, 14)), (0, "same", (12, 14, 12, 18)),
        (1, "layer", (13, 5, 14, 80)), (1, "op", (13, 20, 13, 34)), (1, "R", (13, 47, 13, 48)),
        (1, "PadH PadH_end PadW", (14, 16, 14, 28)), (1, "dtype", (14, 37, 14, 41)), (1, "layout", (14, 51, 14, 55)),
        (1, "groups", (14, 65, 14, 66)), (1, "bias", (14, 74, 14, 78)),
    ],
)  # fmt: skip
def test_every_value_is_located(layer: int, names: str, span: tuple[int, int, int, int]) -> None:
    found = network(PLACED)
    for name in names.split():
        assert found.layers[layer].spans[name] == span
    assert found.source_lines == tuple(PLACED.split("\n"))


def test_source_lines_are_those_that_places_count() -> None:
    text = "version: 1\r# a\u2028# b\x85layers: [{C: 4, H: 8, W: 8, K: 8, kernel_size: 1}]\r\n"
    found = network(text)
    line, column, *_ = found.layers[0].spans["K"]
    assert found.source_lines is not None
    assert found.source_lines[line - 1][column - 1 :].startswith("8, kernel_size")


# --- errors


@pytest.mark.parametrize(
    ("layer", "column", "message"),
    [
        ("C: 0", 8, "C: must be at least 1, not 0"),
        ("C: -3", 8, "C: must be a whole number of at least 1, not -3"),
        ("C: 1.5", 8, "C: must be a whole number of at least 1, not 1.5; write it in plain digits"),
        ("C: 1e3", 8, "C: must be a whole number of at least 1, not 1e3; write it in plain digits"),
        ("C: +3", 8, "C: must be a whole number of at least 1, not +3; write it in plain digits"),
        ("C: 1_000", 8, "not 1_000; write it in plain digits"),
        ("C: 017", 8, "YAML 1.1 reads 017 as octal; write 17 without the leading zero"),
        ("C: 1:30", 8, "YAML 1.1 reads 1:30 in base 60"),
        ("C: no", 8, "YAML reads no as a boolean"),
        ("C: true", 8, "YAML reads true as a boolean"),
        ("C: '64'", 8, "not quoted text; write 64 without quotes"),
        ("C: x", 8, "not 'x'"),
        ("C: [64]", 8, "not a list"),
        ("C: {a: 1}", 8, "not a mapping"),
        ("C: ", 8, "not nothing"),
        ("C: " + "9" * 5000, 8, "99999999999999999999… (5000 characters) is larger than 2^31"),
        ("C: " + "0" * 5000, 8, "as octal"),
        ("C: 2147483649", 8, "C: 2147483649 is larger than 2^31"),
        ("C: ٣", 8, "not '٣'"),
        ("stride: [1, 2, 3, 4]", 13, "stride: must be one number or 2, not 4"),
        ("stride: 0", 13, "stride: must be at least 1, not 0"),
        ("padding: -1", 14, "padding: must be a whole number of at least 0, not -1"),
        ("padding: sane", 14, "padding: 'sane' is not one of same, valid; did you mean 'same'?"),
        ("padding: [1, 2, 3]", 14, "padding: must be one number, 2, or 4 sides, not 3"),
        ("padding: [[1, 2]]", 14, "padding: must be 2 pairs of (begin, end)"),
        ("padding: {topp: 1}", 15, "padding: unknown side 'topp'; did you mean 'top'?"),
        ("PadH: 1, padding: same", 11, "PadH is given, but line 3, column 23 says padding: same"),
        (
            "dtype: fp18",
            12,
            "dtype: 'fp18' is not one of fp64, fp32, tf32, fp16, bf16, fp8, int8; did you mean",
        ),
        ("dtype: 16", 12, "dtype: '16' is not one of"),
        ("layout: NCWH", 13, "layout: 'NCWH' is not one of NCHW, NHWC, auto; did you mean"),
        ("layout: NHCW", 13, "layout: 'NHCW' is not one of NCHW, NHWC, auto; did you mean"),
        ("bias: maybe", 11, "bias: must be true or false, not maybe"),
        ("name: no", 11, 'name: YAML reads no as a boolean; write "no"'),
        ("name: ''", 11, "name: must be 1 to 500 characters long"),
        ("in_chanels: 3", 5, "unknown key 'in_chanels' in a layer; did you mean 'in_channels'?"),
        ("op: convv", 9, "op: unknown operation 'convv'; did you mean 'conv'?"),
        ("op: [conv]", 9, "op: must be text, not a list"),
        ("op: conv, type: pool", 21, "type says again what op says"),
        ("input: nowhere", 12, "input: no layer before this one is named 'nowhere'"),
        ("input: a, from: a", 21, "from says again what input says"),
        ("inputs: []", 13, "inputs: names no layer"),
        ("inputs: [a, a]", 4, "layer2: a convolution reads one tensor"),
        ("dims: 4", 11, "dims: must be 1, 2 or 3, not 4"),
        ("op: conv1d, C: 3, H: 5, W: 9", 26, "layer2: a 1-D convolution has no H; its length is W"),
        ("op: conv, kernel_size: 3, R: 5", 34, "R says R = 5, but line 3, column 28 says R = 3"),
    ],
)
def test_an_error_says_where_and_what_would_be_right(layer: str, column: int, message: str) -> None:
    keys = [part.split(":")[0].strip() for part in layer.split(", ")]
    rest = "" if "kernel_size" in keys else ", kernel_size: 1"
    text = f"version: 1\nlayers: [{{name: a, {STEM}}},\n   {{{layer}, K: 8{rest}}}]\n"
    (error,) = errors(text)
    assert message in error.message
    assert (error.path, error.line, error.column) == ("net.yaml", 3, column)


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


def test_all_errors_of_a_file_are_told() -> None:
    text = """\
version: 2
mode: trainig
target: [a100, ~]
colour: red
runtime: { cudnn: new, benchmark: 3, framwork: x }
defaults: { dtype: fp17 }
layers:
  - { name: a, C: 0, H: x, W: 8, K: 8, kernel_size: 3 }
  - 5
  - { name: a, C: 4, H: 8, W: 8, K: 8, kernel_size: 3, bogus: 1 }
  - { input: b, K: -1, kernel_size: 3 }
"""
    assert sorted((error.line, error.column) for error in errors(text)) == [
        (1, 10), (2, 7), (3, 16), (4, 1), (5, 19), (5, 35), (5, 38), (6, 20), (8, 19), (8, 25), (9, 5), (10, 13),
        (10, 56), (11, 14), (11, 20),
    ]  # fmt: skip


def test_an_error_is_told_once_however_many_layers_follow() -> None:
    (error,) = errors(
        spec("name: a, C: x, H: 8, W: 8, K: 8, kernel_size: 1", "name: b, input: a, K: 8, kernel_size: 3",
             "name: c, op: add, inputs: [a, b]", "name: d, op: pool, kernel_size: 2", "K: 4, kernel_size: 1")
    )  # fmt: skip
    assert error.message.startswith("C: ")


def test_errors_are_bounded() -> None:
    found = errors(spec(*["C: x"] * 2000))
    assert len(found) == 101
    assert found[-1].message == "more than 100 errors; not read further"


def test_names_are_unique() -> None:
    (error,) = errors(spec(f"name: a, {STEM}", f"name: b, {STEM}", f"name: a, {STEM}"))
    assert (error.message, error.line, error.column) == ("name 'a' was given on line 3 already", 5, 13)


def test_unnamed_layers_never_clash() -> None:
    found = network(spec(STEM, f"name: layer1, {STEM}", f"name: layer4, {STEM}", STEM))
    assert [layer.name for layer in found.layers] == ["layer1_", "layer1", "layer4", "layer4_"]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("layers: []", 1, "version is missing; write version: 1"),
        ("version: 1", 1, "layers is missing: nothing to check"),
        ("version: 1\nlayers: {}", 2, "layers must be a list, not a mapping"),
        ("version: 1\nlayers:", 2, "layers must be a list, not nothing"),
        ("version: 1\nlayers: [3]", 2, "layer 1 must be a mapping, not a value"),
        ("version: 1\nlayers: []\nruntime: fast", 3, "runtime must be a mapping, not a value"),
        ("version: 1\nlayers: []\ndefaults: []", 3, "defaults must be a mapping, not a list"),
        ("version: 1\nlayers: []\nlayer: []", 3, "unknown key 'layer'; did you mean 'layers'?"),
        ("version: 1\nlayers: []\ntarget: a100\ngpu: t4", 4, "gpu says again what line 3 says"),
        ("version:\nlayers: []", 1, "version must be 1, not nothing"),
        ("version: 1\nlayers: []\nx: &x {colour: 1}\n<<: *x", 3, "unknown key 'x'"),
    ],
)
def test_the_top_level(text: str, line: int, message: str) -> None:
    found = errors(text)
    assert message in found[0].message
    assert found[0].line == line


@pytest.mark.parametrize("text", ["- a", "hello", "3", "[]"])
def test_no_spec_at_all(text: str) -> None:
    with pytest.raises(InputFault, match="a spec is a mapping"):
        read_spec(text, "net.yaml")


WORDS = [
    "C", "H", "W", "K", "N", "kernel_size", "stride", "padding", "groups", "op", "input", "inputs", "name", "dtype",
    "dims", "size", "scale", "R", "D", "T", "dilation", "output_padding", "P", "layout", "first", "bogus",
]  # fmt: skip
VALUES = [
    "0", "1", "3", "7", "64", "-1", "x", "a", "b", "[3, 3]", "[1, 2, 3]", "[1]", "[]", "{}", "same", "conv1d", "conv3d",
    "pool", "add", "concat", "conv_transpose", "depthwise", "upsample", "input", "2147483648", "~", "true", "1.5",
    "[a, b]", "fp16", "NHWC", "bn", "global_pool", "pixel_shuffle", "[[1, 2], [3, 4]]", "{top: 1}",
]  # fmt: skip
layers = st.dictionaries(st.sampled_from(WORDS), st.sampled_from(VALUES), max_size=7)


@settings(max_examples=300)
@given(entries=st.lists(layers, max_size=6), defaults=layers)
def test_any_mix_of_keys_and_values_is_read_or_refused(entries: list[dict[str, str]], defaults: dict[str, str]) -> None:
    def flow(mapping: dict[str, str]) -> str:
        return ", ".join(f"{key}: {value}" for key, value in mapping.items())

    found, problems = read_spec(spec(*map(flow, entries), defaults=f"{{ {flow(defaults)} }}"), "net.yaml")
    assert all(problem.line is not None and problem.message for problem in problems)
    for layer in found.layers if found else ():
        values = sizes(layer, "N C D H W K Z P Q T R S")
        assert all(value is None or value <= 2**31 for value in values)


def test_a_spec_names_at_most_as_many_gpus_as_anyone_could_want() -> None:
    text = "version: 1\ntarget: [" + ", ".join(f"gpu{n}" for n in range(101)) + "]\nlayers: []\n"
    _, errors = read_spec(text, "many.yaml")
    assert [error.message for error in errors][:1] == ["target: more than 100 GPUs"]
