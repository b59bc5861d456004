"""Quantized ONNX graphs, as ONNX Runtime's quantizer and its optimizer write them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import sampled
from command_line import convlint
from onnx import TensorProto, helper
from onnx_graphs import model, save, value, weight

from convlint.model.network import Network
from convlint.readers import ReadOptions
from convlint.readers.onnx.reader import read

pytestmark = pytest.mark.slow
MS = {"domain": "com.microsoft"}
Q = ("s", "z")
TENSORS = [
    weight("s", []), weight("z", [], np.uint8), weight("zw", [], np.int8), weight("w0", [16, 4, 3, 3], np.int8),
    weight("w1", [24, 16, 1, 1], np.int8), weight("w2", [40, 1, 3, 3], np.int8), weight("w3", [10, 40], np.int8),
]  # fmt: skip


def conv(data: str, weights: str, out: str, **attributes: Any) -> Any:
    """A QLinearConv."""
    return helper.make_node("QLinearConv", [data, *Q, weights, "s", "zw", *Q], [out], name=out, **attributes)


def network(folder: Path, nodes: list[Any], shape: list[int | str], **options: Any) -> Network:
    proto = model(nodes, [value("x", shape)], [value("y", None, TensorProto.UINT8)], TENSORS)
    found, errors = read(save(folder, proto), ReadOptions(**options))
    assert errors == ()
    assert found is not None
    return found


def test_contrib_operators_carry_shapes(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", *Q], ["xq"], **MS),
        conv("xq", "w0", "a", pads=[1] * 4, strides=[2, 2]),
        helper.make_node("QLinearLeakyRelu", ["a", *Q, *Q], ["b"], **MS, alpha=0.1),
        helper.make_node("QLinearAdd", ["a", *Q, "b", *Q, *Q], ["c"], **MS),
        helper.make_node("QLinearSigmoid", ["c", *Q, *Q], ["c2"], **MS),
        helper.make_node("QLinearMul", ["c", *Q, "c2", *Q, *Q], ["d"], **MS),
        conv("d", "w1", "e"),
        helper.make_node("QLinearConcat", [*Q, "d", *Q, "e", *Q], ["f"], **MS, axis=1),
        helper.make_node("QLinearAveragePool", ["f", *Q, *Q], ["g"], **MS, kernel_shape=[2, 2], strides=[2, 2]),
        conv("g", "w2", "h", pads=[1] * 4, group=40),
        helper.make_node("QLinearGlobalAveragePool", ["h", *Q, *Q], ["i"], **MS),
        helper.make_node("Flatten", ["i"], ["j"]),
        helper.make_node("QGemm", ["j", *Q, "w3", "s", "zw", "", *Q], ["y"], **MS, transB=1),
    ]
    found = network(tmp_path, nodes, ["N", 4, 32, 32], batch=8)
    assert [(one.name, one.N, one.C, one.H, one.K, one.P, one.groups, one.dtype) for one in found.layers] == [
        ("a", 8, 4, 32, 16, 16, 1, "int8"), ("e", 8, 16, 16, 24, 16, 1, "int8"), ("h", 8, 40, 8, 40, 8, 40, "int8"),
    ]  # fmt: skip
    assert [(edge.producers, edge.consumer) for edge in found.edges] == [((0,), 1), ((0, 1), 2)]
    assert [one.head for one in found.layers] == [False, False, False]  # a Gemm with weights follows


def test_channels_last_operators_of_optimized_graphs(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", *Q], ["xq"]),
        conv("xq", "w0", "a", pads=[1] * 4, channels_last=1, **MS),
        helper.make_node("NhwcMaxPool", ["a"], ["b"], **MS, kernel_shape=[2, 2], strides=[2, 2]),
        conv("b", "w1", "c", channels_last=1, **MS),
        helper.make_node("QLinearGlobalAveragePool", ["c", *Q, *Q], ["y"], **MS, channels_last=1),
    ]
    found = network(tmp_path, nodes, [2, 28, 20, 4])
    assert [(one.name, one.N, one.C, one.H, one.W, one.K, one.P, one.Q) for one in found.layers] == [
        ("a", 2, 4, 28, 20, 16, 28, 20), ("c", 2, 16, 14, 10, 24, 14, 10),
    ]  # fmt: skip
    assert [(edge.producers, edge.consumer) for edge in found.edges] == [((0,), 1)]


def test_a_mean_over_axes(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", *Q], ["xq"]),
        helper.make_node("QLinearReduceMean", ["xq", *Q, *Q], ["m"], **MS, axes=[2], keepdims=1),
        conv("m", "w0", "y", pads=[1] * 4),
    ]
    (layer,) = network(tmp_path, nodes, [2, 4, 9, 20]).layers
    assert (layer.H, layer.W) == (1, 20)


def test_in_bodies_too(tmp_path: Path) -> None:
    body = helper.make_graph(
        [
            helper.make_node("QLinearAdd", ["xq", *Q, "xq", *Q, *Q], ["in"], **MS),
            conv("in", "w0", "out", pads=[1] * 4),
        ], "then", [], [value("out", None, TensorProto.UINT8)],
    )  # fmt: skip
    other = helper.make_graph([helper.make_node("Identity", ["xq"], ["same"])], "else", [], [value("same", None, 2)])
    nodes = [
        helper.make_node("QuantizeLinear", ["x", *Q], ["xq"]),
        helper.make_node("If", ["flag"], ["y"], then_branch=body, else_branch=other),
    ]
    proto = model(
        nodes, [value("x", [2, 4, 8, 8]), value("flag", [], TensorProto.BOOL)], [value("y", None, 2)], TENSORS
    )
    found, _ = read(save(tmp_path, proto), ReadOptions())
    assert found is not None
    assert [(layer.H, layer.dtype) for layer in found.layers] == [(8, "int8")]


def test_weights_that_are_quantized_in_the_graph(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", *Q], ["xq"]), helper.make_node("DequantizeLinear", ["xq", *Q], ["xd"]),
        helper.make_node("QuantizeLinear", ["wf", "s", "zw"], ["wq"], **MS),
        helper.make_node("DequantizeLinear", ["wq", "s", "zw"], ["wd"], **MS),
        helper.make_node("Conv", ["xd", "wd"], ["y"]),
    ]  # fmt: skip
    proto = model(nodes, [value("x", [2, 4, 8, 8])], ["y"], [*TENSORS, weight("wf", [8, 4, 1, 1])])
    found, errors = read(save(tmp_path, proto), ReadOptions())
    assert errors == ()
    assert found is not None
    assert found.layers[0].dtype == "int8"


@pytest.mark.parametrize("count", sampled(range(3), 3))
def test_operators_without_their_inputs_are_errors_of_the_file(tmp_path: Path, count: int) -> None:
    names = ["QLinearAdd", "QLinearConcat", "QLinearReduceMean", "NhwcMaxPool", "QLinearWhere", "QLinearConv"]
    for name, last in itertools.product(names, (0, 1)):
        node = helper.make_node(name, ["x", "s", "z"][:count], ["y"], **MS, channels_last=last, axes=[7])
        path = save(tmp_path, model([node], [value("x", [2, 4, 8, 8])], ["y"], TENSORS))
        assert "Traceback" not in convlint("check", path, "--isolated").err


@pytest.mark.parametrize(
    ("runtime", "words"),
    [
        ("framework=tensorrt", "TensorRT's ONNX parser has neither QLinearConv nor ConvInteger"),
        ("framework=onnxruntime,tensorrt=10.3", "ONNX Runtime's CUDA and TensorRT providers have neither QLinearConv"),
        ("framework=onnxruntime", "ONNX Runtime's CUDA provider has no int8 convolutions"),
    ],
)
def test_what_will_run_them_decides(tmp_path: Path, runtime: str, words: str) -> None:
    quantize = helper.make_node("QuantizeLinear", ["x", *Q], ["xq"])
    inner = [helper.make_node("DequantizeLinear", ["xq", *Q], ["xd"]),
             helper.make_node("DequantizeLinear", ["w0", "s", "zw"], ["wd"]),
             helper.make_node("Conv", ["xd", "wd"], ["y"])]  # fmt: skip
    said = []
    for name, nodes in (("qdq", inner), ("qoperator", [conv("xq", "w0", "y")])):
        proto = model([quantize, *nodes], [value("x", [2, 4, 8, 8])], ["y"], TENSORS)
        path = save(tmp_path, proto, f"{name}.onnx")
        settings = [part for each in runtime.split(",") for part in ("--runtime", each)]
        out = convlint("check", path, "--isolated", "--gpu", "t4", "--select", "CL802", "-o", "concise", *settings).out
        said.append(words in out)
    assert said == [runtime == "framework=onnxruntime", True]
