"""The ONNX reader against hand counts, the reference evaluator, and files made to hurt."""

import itertools
import random
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from cases import sampled
from command_line import convlint
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnx_graphs import (
    LIGHT,
    LIGHT_CONVOLUTIONS,
    expected_convolutions,
    field,
    model,
    save,
    save_with_zeros,
    value,
    weight,
)
from read_inputs import only_message, sound

from convlint.model.layer import ConvLayer
from convlint.model.network import Network
from convlint.readers import ReadOptions, find_format
from convlint.readers.onnx.reader import read

pytestmark = [pytest.mark.slow, pytest.mark.contract]
MS = {"domain": "com.microsoft"}
Q = ("s", "z")
TENSORS = [
    weight("s", []), weight("z", [], np.uint8), weight("zw", [], np.int8), weight("w0", [16, 4, 3, 3], np.int8),
    weight("w1", [24, 16, 1, 1], np.int8), weight("w2", [40, 1, 3, 3], np.int8), weight("w3", [10, 40], np.int8),
]  # fmt: skip


one, message = partial(sound, read), partial(only_message, read)


def conv(data: str, weights: str, out: str, **attributes: Any) -> Any:
    """A QLinearConv."""
    return helper.make_node("QLinearConv", [data, *Q, weights, "s", "zw", *Q], [out], name=out, **attributes)


def network(folder: Path, nodes: list[Any], shape: list[int | str], **options: Any) -> Network:
    proto = model(nodes, [value("x", shape)], [value("y", None, TensorProto.UINT8)], TENSORS)
    return one(save(folder, proto), **options)


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
    assert [(layer.H, layer.dtype) for layer in found.layers] == [(8, "int8")]


def test_weights_that_are_quantized_in_the_graph(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", *Q], ["xq"]), helper.make_node("DequantizeLinear", ["xq", *Q], ["xd"]),
        helper.make_node("QuantizeLinear", ["wf", "s", "zw"], ["wq"], **MS),
        helper.make_node("DequantizeLinear", ["wq", "s", "zw"], ["wd"], **MS),
        helper.make_node("Conv", ["xd", "wd"], ["y"]),
    ]  # fmt: skip
    proto = model(nodes, [value("x", [2, 4, 8, 8])], ["y"], [*TENSORS, weight("wf", [8, 4, 1, 1])])
    assert one(save(tmp_path, proto)).layers[0].dtype == "int8"


@pytest.mark.parametrize(
    ("between", "dtype"),
    [("Transpose", "int8"), ("Identity", "int8"), ("MaxPool", "int8"), ("Relu", "fp32"), ("Pad", "fp32")],
)
def test_a_dequantization_moves_behind_what_commutes_with_it(tmp_path: Path, between: str, dtype: str) -> None:
    options: dict[str, Any] = {"Transpose": {"perm": [0, 1, 3, 2]}, "MaxPool": {"kernel_shape": [2, 2]}}.get(
        between, {}
    )
    more = ["pads"] if between == "Pad" else []
    nodes = [
        helper.make_node("QuantizeLinear", ["x", *Q], ["xq"]), helper.make_node("DequantizeLinear", ["xq", *Q], ["xd"]),
        helper.make_node(between, ["xd", *more], ["xt"], **options),
        helper.make_node("DequantizeLinear", ["w0", "s", "zw"], ["wd"]), helper.make_node("Conv", ["xt", "wd"], ["y"]),
    ]  # fmt: skip
    tensors = [*TENSORS, weight("pads", [8], np.int64)]
    (layer,) = one(save(tmp_path, model(nodes, [value("x", [2, 4, 8, 8])], ["y"], tensors))).layers
    assert layer.dtype == dtype


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


def numbers(layer: ConvLayer, names: Any) -> dict[str, Any]:
    return {name: getattr(layer, name) for name in names}


@pytest.mark.parametrize(("name", "count"), LIGHT_CONVOLUTIONS.items())
def test_every_convolution_of_the_light_graphs(name: str, count: int) -> None:
    batch = 1 if name == "shufflenet" else 256
    path = LIGHT / f"light_{name}.onnx"
    expected = expected_convolutions(path, batch)
    network = one(str(path), batch=batch)
    assert [numbers(layer, expected[0]) for layer in network.layers] == expected
    assert len(network.layers) == count
    assert network.mode == "inference"
    assert {layer.dtype for layer in network.layers} == {"fp32"}
    assert {layer.layout for layer in network.layers} == {"auto"}
    assert [layer.first for layer in network.layers] == [True] + [False] * (count - 1)
    assert len(network.edges) == count - 1
    for edge in network.edges:
        layer = network.layers[edge.consumer]
        assert (edge.C, edge.H, edge.W) == (layer.C, layer.H, layer.W)


def test_a_fixed_batch_is_an_error_not_an_invention() -> None:
    network, errors = read(str(LIGHT / "light_shufflenet.onnx"), ReadOptions(batch=256))
    assert len(errors) == 1
    assert "Reshape" in errors[0].message
    assert "element counts differ" in errors[0].message
    assert "--batch" in errors[0].message
    assert len(network.layers) == 49
    assert all(layer.N == 256 or (layer.N is None and layer.H is None and layer.P is None) for layer in network.layers)


def test_norms_and_heads_of_resnet() -> None:
    network = one(str(LIGHT / "light_resnet50.onnx"))
    assert all(layer.norm_follows for layer in network.layers)
    assert not any(layer.head for layer in network.layers), "a linear classifier follows"
    squeeze = one(str(LIGHT / "light_squeezenet.onnx"))
    assert [layer.K for layer in squeeze.layers if layer.head] == [1000]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_output_sizes_agree_with_the_reference_evaluator(data: st.DataObject, tmp_path_factory: Any) -> None:
    rank = data.draw(st.integers(1, 3))
    transposed = data.draw(st.booleans())
    each = lambda low, high: data.draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank))  # noqa: E731
    size, taps, stride = each(5, 8), each(1, 3), each(1, 3)
    attributes: dict[str, Any] = {"strides": stride, "dilations": each(1, 2) if not transposed else [1] * rank}
    padding = data.draw(st.sampled_from(["pads", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    if padding == "pads":
        attributes["pads"] = [min(pad, tap - 1) for pad, tap in zip(each(0, 2) + each(0, 2), taps * 2, strict=True)]
    elif not transposed:
        attributes["auto_pad"] = padding
    if transposed:
        attributes["output_padding"] = [min(pad, step - 1) for pad, step in zip(each(0, 2), stride, strict=True)]
    shape = [4, 2, *taps] if not transposed else [2, 4, *taps]
    op = "ConvTranspose" if transposed else "Conv"
    proto = model(
        [helper.make_node(op, ["x", "w"], ["y"], name="conv", **attributes)],
        [value("x", [2, 2, *size])], ["y"], [weight("w", shape)],
    )  # fmt: skip
    output = ReferenceEvaluator(proto).run(None, {"x": np.zeros([2, 2, *size], np.float32)})[0]
    (layer,) = one(save(tmp_path_factory.mktemp("m"), proto)).layers
    sizes = [layer.Z, layer.P, layer.Q][3 - rank :]
    assert [layer.N, layer.K, *sizes] == list(output.shape)
    assert layer.dims == rank


@pytest.mark.parametrize(("auto", "begin", "end"), [("SAME_UPPER", 0, 1), ("SAME_LOWER", 1, 0)])
def test_the_odd_element_of_same_padding(tmp_path: Path, auto: str, begin: int, end: int) -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], auto_pad=auto, strides=[2, 2])
    (layer,) = one(save(tmp_path, model([node], [value("x", [1, 3, 8, 8])], ["y"], [weight("w", [8, 3, 3, 3])]))).layers
    assert (layer.PadH, layer.PadH_end, layer.P) == (begin, end, 4)


@pytest.mark.parametrize(
    ("target", "auto", "begin", "end", "extra"),
    [([16], "NOTSET", 1, 0, 0), ([16], "SAME_UPPER", 0, 1, 0), ([19], "NOTSET", 0, 0, 2)],
)
def test_transposed_output_shape(
    tmp_path: Path, target: list[int], auto: str, begin: int, end: int, extra: int
) -> None:
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2], output_shape=target, auto_pad=auto)
    (layer,) = one(save(tmp_path, model([node], [value("x", [1, 3, 8])], ["y"], [weight("w", [3, 8, 3])]))).layers
    assert (layer.op, layer.C, layer.K, layer.H, layer.P, layer.Q) == ("conv_transpose", 3, 8, 1, 1, target[0])
    assert (layer.PadW, layer.PadW_end, layer.OutPadW) == (begin, end, extra)


def test_quantized_convolutions(tmp_path: Path) -> None:
    scale, zero = weight("s", []), weight("z", [], np.uint8)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        helper.make_node("DequantizeLinear", ["wq", "s", "zw"], ["wd"]),
        helper.make_node("Conv", ["xd", "wd", "b"], ["a"], name="qdq", pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["a", "wd8"], ["c"], name="weights_only"),
        helper.make_node("DequantizeLinear", ["wq8", "s", "zw"], ["wd8"]),
        helper.make_node("QuantizeLinear", ["c", "s", "z"], ["cq"]),
        helper.make_node("QLinearConv", ["cq", "s", "z", "wq8", "s", "zw", "s", "z"], ["d"], name="qlinear"),
        helper.make_node("ConvInteger", ["d", "wq8"], ["e"], name="integer"),
        helper.make_node("Cast", ["e"], ["y"], to=TensorProto.FLOAT),
    ]
    nodes.insert(4, nodes.pop(5))
    tensors = [
        scale, zero, weight("zw", [], np.int8), weight("wq", [8, 4, 3, 3], np.int8), weight("b", [8]),
        weight("wq8", [8, 8, 1, 1], np.int8),
    ]  # fmt: skip
    network = one(save(tmp_path, model(nodes, [value("x", [1, 4, 8, 8])], ["y"], tensors)))
    assert [(layer.name, layer.dtype, layer.K, layer.bias) for layer in network.layers] == [
        ("qdq", "int8", 8, True), ("weights_only", "fp32", 8, False), ("qlinear", "int8", 8, False),
        ("integer", "int8", 8, None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "dtype", "expected"),
    [(TensorProto.FLOAT16, np.float16, "fp16"), (TensorProto.DOUBLE, np.float64, "fp64")],
)
def test_dtypes(tmp_path: Path, kind: int, dtype: Any, expected: str) -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    proto = model(
        [node], [value("x", [1, 3, 8, 8], kind)], [value("y", None, kind)], [weight("w", [8, 3, 3, 3], dtype)]
    )
    assert one(save(tmp_path, proto)).layers[0].dtype == expected


def conv_node(source: str, target: str, name: str = "", weights: str = "w") -> Any:
    return helper.make_node("Conv", [source, weights], [target], name=name, pads=[1, 1, 1, 1])


def test_bodies_of_if_loop_and_scan(tmp_path: Path) -> None:
    then = helper.make_graph([conv_node("x", "t", "in_then")], "then", [], [value("t", None)])
    other = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["r"]), conv_node("r", "e", "in_else")], "else", [], [value("e", None)]
    )
    loop = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), conv_node("carried", "next", "in_loop", "w8")], "loop",
        [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("carried", [2, 8, 8, 8])],
        [value("on", [], TensorProto.BOOL), value("next", None)],
    )  # fmt: skip
    scan = helper.make_graph(
        [conv_node("item", "out", "in_scan", "w8")], "scan", [value("item", None)], [value("out", None)]
    )
    nodes = [
        helper.make_node("If", ["flag"], ["a"], then_branch=then, else_branch=other),
        helper.make_node("Loop", ["trips", "", "a"], ["b"], body=loop),
        helper.make_node("Unsqueeze", ["a", "axis"], ["c"]),
        helper.make_node("Concat", ["c", "c", "c"], ["d"], axis=0),
        helper.make_node("Scan", ["d"], ["y"], body=scan, num_scan_inputs=1),
    ]
    tensors = [
        weight("w", [8, 3, 3, 3]), weight("w8", [8, 8, 3, 3]),
        helper.make_tensor("trips", TensorProto.INT64, [], [5]),
        helper.make_tensor("axis", TensorProto.INT64, [1], [0]),
    ]  # fmt: skip
    inputs = [value("x", [2, 3, 8, 8]), value("flag", [], TensorProto.BOOL)]
    layers = one(save(tmp_path, model(nodes, inputs, ["y"], tensors))).layers
    seen = [(layer.name, layer.calls, layer.first, layer.head, layer.N, layer.C, layer.P) for layer in layers]
    assert sorted(seen) == [
        ("in_else", 1, True, False, 2, 3, 8),
        ("in_loop", 5, False, True, 2, 8, 8),
        ("in_scan", 3, False, True, 2, 8, 8),
        ("in_then", 1, True, False, 2, 3, 8),
    ]


def test_local_functions(tmp_path: Path) -> None:
    block = helper.make_function(
        "mine", "Block", ["i", "f"], ["o"],
        [helper.make_node("Conv", ["i", "f"], ["c"], name="c", pads=[1, 1, 1, 1]),
         helper.make_node("Relu", ["c"], ["o"])],
        [helper.make_opsetid("", 19)],
    )  # fmt: skip
    nodes = [
        helper.make_node("Block", ["x", "w"], ["a"], domain="mine"),
        helper.make_node("Block", ["a", "w8"], ["y"], domain="mine"),
    ]
    tensors = [weight("w", [8, 3, 3, 3]), weight("w8", [8, 8, 3, 3])]
    proto = model(nodes, [value("x", [2, 3, 8, 8])], ["y"], tensors, functions=[block], domains=["mine"])
    layers = one(save(tmp_path, proto)).layers
    assert [(layer.C, layer.K, layer.P, layer.first) for layer in layers] == [(3, 8, 8, True), (8, 8, 8, False)]
    assert len({layer.name for layer in layers}) == 2


def test_symbolic_sizes(tmp_path: Path) -> None:
    path = save(
        tmp_path,
        model([conv_node("x", "y", "c")], [value("x", ["n", 3, "h", "w"])], ["y"], [weight("w", [8, 3, 3, 3])]),
    )
    assert "input 'x' is nx3xhxw" in message(path)
    assert "set it with --input x=8x3x224x224" in message(path)  # a batch alone is not enough
    assert "set it with --input x=4x3x224x224" in message(path, batch=4)
    for given_inputs in ({"x": "Nx3x32x48"}, {"": "4x3x32x48"}):
        (layer,) = one(path, batch=4, inputs=given_inputs).layers
        assert (layer.N, layer.C, layer.H, layer.W, layer.P, layer.Q) == (4, 3, 32, 48, 32, 48)
    assert "no input 'z'" in message(path, inputs={"z": "1x3x8x8"})
    assert "4 axes" in message(path, inputs={"x": "1x3x8"})
    assert "not a size" in message(path, inputs={"x": "1x3xbigx8"})
    assert "9 channels" in message(path, inputs={"x": "1x9x8x8"})


def _chunk(source: str, half: int, *, raw: bool = False) -> list[Any]:
    """Half of a tensor's channels, as torch.onnx exports `torch.chunk(source, 2, dim=1)[half]`."""
    name = f"{source}.{half}"
    numbers = {"at": 1, "more": 1, "two": 2, "from": half, "to": half + 1}
    constants = [
        helper.make_node("Constant", [], [f"{name} {key}"], value=helper.make_tensor(
            key, TensorProto.INT64, [1], np.int64(number).tobytes() if raw else [number], raw=raw))
        for key, number in numbers.items()
    ]  # fmt: skip
    steps = [
        ("Shape", [source], "shape"), ("Gather", [f"{name} shape", f"{name} at"], "C"),
        ("Add", [f"{name} C", f"{name} more"], "rounded"), ("Div", [f"{name} rounded", f"{name} two"], "half"),
        ("Mul", [f"{name} half", f"{name} from"], "first"), ("Mul", [f"{name} half", f"{name} to"], "last"),
    ]  # fmt: skip
    nodes = [helper.make_node(op, inputs, [f"{name} {out}"]) for op, inputs, out in steps]
    ends = [source, f"{name} first", f"{name} last", f"{name} at"]
    return [*constants, *nodes, helper.make_node("Slice", ends, [name])]


@pytest.mark.parametrize("raw", [False, True])
def test_slices_up_to_a_part_of_a_size(tmp_path: Path, *, raw: bool) -> None:
    """One behind the other, of which the second is known only once the first is."""
    nodes = [
        conv_node("x", "a", "first"), *_chunk("a", 1, raw=raw), conv_node("a.1", "b", "second", "w4"),
        *_chunk("b", 0, raw=raw), conv_node("b.0", "y", "third", "w4"),
    ]  # fmt: skip
    tensors = [weight("w", [8, 3, 3, 3]), weight("w4", [8, 4, 3, 3])]
    layers = one(save(tmp_path, model(nodes, [value("x", [2, 3, 8, 8])], ["y"], tensors))).layers
    assert [(layer.C, layer.H, layer.P) for layer in layers] == [(3, 8, 8), (4, 8, 8), (4, 8, 8)]


def test_a_reshape_to_the_shape_of_another_tensor(tmp_path: Path) -> None:
    """As torch.onnx exports group norms; behind the last, no other shape is known in part."""
    nodes = [
        conv_node("x", "a", "first"), *integers(groups=[0, 4, -1]), helper.make_node("Reshape", ["a", "groups"], ["b"]),
        helper.make_node("Shape", ["a"], ["sizes"]), helper.make_node("Reshape", ["b", "sizes"], ["c"]),
        conv_node("c", "y", "second", "w8"),
    ]  # fmt: skip
    tensors = [weight("w", [8, 3, 3, 3]), weight("w8", [8, 8, 3, 3])]
    proto = model(nodes, [value("x", [2, 3, 8, 8])], ["y"], tensors)
    proto.opset_import[0].version = 11  # onnx takes sizes from a Shape from opset 13 on
    layers = one(save(tmp_path, proto)).layers
    assert [(layer.C, layer.H, layer.P) for layer in layers] == [(3, 8, 8), (8, 8, 8)]


def integers(**values: Any) -> list[Any]:
    """Constants of int64 by their names."""
    return [
        helper.make_node("Constant", [], [name], value=helper.make_tensor(
            name, TensorProto.INT64, np.shape(of), np.ravel(of).astype(np.int64).tolist()))
        for name, of in values.items()
    ]  # fmt: skip


def padded(*ends: int, order: list[int] | None = None) -> list[Any]:
    """Pads of the last axes as torch.onnx exports them: filled up with zeros, turned around, begins before ends."""
    fill = helper.make_node(
        "ConstantOfShape", ["rest"], ["zeros"], value=helper.make_tensor("", TensorProto.INT64, [1], [0])
    )
    steps = [
        ("Concat", ["ends", "zeros"], "pairs", {"axis": 0}), ("Reshape", ["pairs", "two columns"], "rows", {}),
        ("Slice", ["rows", "last", "least", "zero", "last"], "turned", {}),
        ("Transpose", ["turned"], "columns", {} if order is None else {"perm": order}),
        ("Reshape", ["columns", "last"], "flat", {}), ("Cast", ["flat"], "pads", {"to": TensorProto.INT64}),
        ("Pad", ["x", "pads"], "wider", {}),
    ]  # fmt: skip
    nodes = [helper.make_node(op, inputs, [out], **more) for op, inputs, out, more in steps]
    constants = integers(ends=ends, rest=[8 - len(ends)], last=[-1], zero=[0], least=[-(2**63) + 1])
    return [*constants, *integers(**{"two columns": [-1, 2]}), fill, *nodes]


@pytest.mark.parametrize("order", [None, [1, 0]])
@pytest.mark.parametrize("ends", [(0, 1, 0, 1), (3, 2), (1, 2, 3, 4, 0, 0, 0, 0)])
def test_paddings_that_constants_compute(tmp_path: Path, ends: tuple[int, ...], order: list[int] | None) -> None:
    nodes = [*padded(*ends, order=order), conv_node("wider", "y", "c")]
    proto = model(nodes, [value("x", [2, 3, 8, 8])], ["y"], [weight("w", [8, 3, 3, 3])])
    (layer,) = one(save(tmp_path, proto)).layers
    assert (8 + sum(ends[2:4]), 8 + sum(ends[:2])) == (layer.H, layer.W)


@pytest.mark.parametrize(
    ("data", "starts", "ends", "axes", "steps"),
    [
        ([1, 2, 3, 4], [1], [4], [0], [2]),
        ([1, 2, 3, 4], [-1], [0], [-1], [-2]),
        ([0, 1, 2], [-9], [2], [0], [1]),
        ([[1, 2], [3, 4]], [1], [9], [1], [1]),
        ([[1, 2], [3, 4]], [1, 0], [-9, 2], [0, 1], [-1, 1]),
        ([[0, 1, 2], [2, 1, 0]], [-1, 0], [-9, 1], [1, 0], [-1, 1]),
    ],
)
def test_slices_of_numbers_are_those_of_the_reference(
    tmp_path: Path, data: Any, starts: list[int], ends: list[int], axes: list[int], steps: list[int]
) -> None:
    parts = ["data", "starts", "ends", "axes", "steps"]
    make = [
        *integers(data=data, starts=starts, ends=ends, axes=axes, steps=steps, last=[-1], two=[2], ones=[1, 1]),
        helper.make_node("Slice", parts, ["part"]), helper.make_node("Reshape", ["part", "last"], ["flat"]),
        helper.make_node("Concat", ["flat", "ones"], ["many"], axis=0),
        *integers(zero=[0]), helper.make_node("Slice", ["many", "zero", "two"], ["sizes"]),
    ]  # fmt: skip
    sizes = ReferenceEvaluator(model(make, [], [value("sizes", None, TensorProto.INT64)], [])).run(None, {})[0].tolist()
    nodes = [
        *make, *integers(none=[0, 0]), helper.make_node("Concat", ["none", "sizes", "none", "none"], ["pads"], axis=0),
        helper.make_node("Pad", ["x", "pads"], ["wider"]), conv_node("wider", "y", "c"),
    ]  # fmt: skip
    proto = model(nodes, [value("x", [2, 3, 8, 8])], ["y"], [weight("w", [8, 3, 3, 3])])
    (layer,) = one(save(tmp_path, proto)).layers
    assert (8 + sizes[0], 8 + sizes[1]) == (layer.H, layer.W)


def test_a_step_of_too_many_unknown_sizes_is_noted(tmp_path: Path) -> None:
    nodes = [
        conv_node("x", "a", "first"), helper.make_node("Reshape", ["a", "sizes"], ["b"]),
        helper.make_node("Transpose", ["b"], ["c"], perm=[1, 0]), helper.make_node("Relu", ["c"], ["y"]),
    ]  # fmt: skip
    inputs = [value("x", [2, 3, 8, 8]), value("sizes", [2], TensorProto.INT64)]
    found = one(save(tmp_path, model(nodes, inputs, ["y"], [weight("w", [8, 3, 3, 3])])))
    assert not found.whole
    assert found.notes == ("step unknown: 2 of 2 operations have unknown sizes (Transpose, Relu)",)


def test_an_axis_that_a_remainder_numbers_is_split(tmp_path: Path) -> None:
    """As torch.onnx exports `unflatten(-1, (2, 4))`: the sizes before the axis, the two of it, those behind it."""
    steps = [
        ("Mod", ["last", "rank"], "axis"), ("Add", ["axis", "one"], "after"), ("Shape", ["a"], "shape"),
        ("Reshape", ["axis", "one_"], "axis_"), ("Reshape", ["after", "one_"], "after_"),
        ("Slice", ["shape", "zero", "axis_"], "before"), ("Slice", ["shape", "after_", "end"], "behind"),
    ]  # fmt: skip
    nodes = [
        conv_node("x", "a", "first"), *integers(last=3, rank=4, one=1, split=[2, 4]),
        *integers(one_=[1], zero=[0], end=[2**63 - 1]),
        *(helper.make_node(op, inputs, [out]) for op, inputs, out in steps),
        helper.make_node("Concat", ["before", "split", "behind"], ["sizes"], axis=0),
        helper.make_node("Reshape", ["a", "sizes"], ["b"]),
        helper.make_node("Transpose", ["b"], ["c"], perm=[0, 1, 3, 2, 4]), helper.make_node("Relu", ["c"], ["y"]),
    ]  # fmt: skip
    found = one(save(tmp_path, model(nodes, [value("x", [2, 3, 8, 8])], ["y"], [weight("w", [8, 3, 3, 3])])))
    assert found.whole
    assert found.notes == ()
    assert [operation.work.writes for operation in found.operations if operation.work is not None] == [1024, 1024]


@pytest.mark.parametrize(("start", "end"), [(1, 2), (None, -2), (-9, 2)])
def test_sizes_of_some_axes(tmp_path: Path, start: int | None, end: int | None) -> None:
    """As torch.onnx exports a view from opset 15 on; onnx takes the sizes, but not the last through Reshape."""
    some = {name: of for name, of in (("start", start), ("end", end)) if of is not None}
    nodes = [
        conv_node("x", "a", "first"), helper.make_node("Shape", ["a"], ["few"], **some),
        *integers(last=[-1], two=[2], map=[8, 8]), helper.make_node("Gather", ["few", "last"], ["C"]),
        helper.make_node("Div", ["C", "two"], ["part"]), helper.make_node("Reshape", ["part", "last"], ["half"]),
        helper.make_node("Concat", ["last", "half", "map"], ["sizes"], axis=0),
        helper.make_node("Reshape", ["a", "sizes"], ["b"]), conv_node("b", "y", "second", "w4"),
    ]  # fmt: skip
    proto = model(nodes, [value("x", [2, 3, 8, 8])], ["y"], [weight("w", [8, 3, 3, 3]), weight("w4", [8, 4, 3, 3])])
    proto.opset_import[0].version = 18
    layers = one(save(tmp_path, proto)).layers
    assert [(layer.N, layer.C) for layer in layers] == [(2, 3), (4, 4)]


@pytest.mark.parametrize(
    "node",
    [
        helper.make_node("Shape", [], ["n"]),
        helper.make_node("Slice", ["table"], ["n"]),
        helper.make_node("Slice", ["table", "one", "one", "one", "none"], ["n"]),
        helper.make_node("Mod", ["one", "none"], ["n"]),
        helper.make_node("Transpose", ["table"], ["n"], perm=[0, 9]),
        helper.make_node("ConstantOfShape", ["table"], ["n"]),
        helper.make_node("ConstantOfShape", ["huge"], ["n"], value=helper.make_tensor("", TensorProto.INT64, [1], [2])),
        helper.make_node("ConstantOfShape", ["less"], ["n"], value=helper.make_tensor("", TensorProto.INT64, [1], [2])),
        helper.make_node("Shape", ["x"], []),
        helper.make_node("Add", ["odd", "odd"], ["n"]),
        helper.make_node("Gather", ["table", "one"], ["n"]),
    ],
)
def test_sizes_that_cannot_be_computed(tmp_path: Path, node: Any) -> None:
    """Nodes without what they need, numbers that are cut off, and a row of a table: nothing is made up of these."""
    odd = TensorProto(name="odd", data_type=TensorProto.INT64, dims=[2], raw_data=b"123")
    one_, table = (helper.make_tensor(name, TensorProto.INT64, dims, range(1, 1 + int(np.prod(dims))))
                   for name, dims in (("one", []), ("table", [2, 2])))  # fmt: skip
    more = [helper.make_tensor(name, TensorProto.INT64, [1], [of])
            for name, of in (("none", 0), ("huge", 2**16), ("less", -3))]  # fmt: skip
    nodes = [node, helper.make_node("Slice", ["x", "n", "n", "one"], ["y0"]), conv_node("x", "y", "c")]
    proto = model(nodes, [value("x", [2, 3, 8, 8])], ["y"], [weight("w", [8, 3, 3, 3]), odd, one_, table, *more])
    read(save(tmp_path, proto), ReadOptions())


def test_norm_follows_only_where_nothing_else_reads(tmp_path: Path) -> None:
    bn = ["s", "s", "s", "s"]
    nodes = [
        conv_node("x", "a", "normed"), helper.make_node("BatchNormalization", ["a", *bn], ["b"]),
        conv_node("b", "c", "shared", "w8"), helper.make_node("BatchNormalization", ["c", *bn], ["d"]),
        helper.make_node("Add", ["c", "d"], ["e"]), conv_node("e", "y", "last", "w8"),
    ]  # fmt: skip
    tensors = [weight("w", [8, 3, 3, 3]), weight("w8", [8, 8, 3, 3]), weight("s", [8])]
    network = one(save(tmp_path, model(nodes, [value("x", [2, 3, 8, 8])], ["y"], tensors)))
    assert [layer.norm_follows for layer in network.layers] == [True, False, False]
    assert [(edge.consumer, edge.producers) for edge in network.edges] == [(1, (0,)), (2, (1,))]


def test_operators_that_are_not_known_are_reported(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("FusedConv", ["x", "w"], ["a"], domain="com.microsoft", name="f"),
        conv_node("a", "y", "c", "w8"),
    ]
    tensors = [weight("w", [8, 3, 3, 3]), weight("w8", [8, 8, 3, 3])]
    path = save(tmp_path, model(nodes, [value("x", [2, 3, 8, 8])], ["y"], tensors))
    network, errors = read(path, ReadOptions())
    assert [(layer.C, layer.H) for layer in network.layers] == [(8, None)]
    assert any("com.microsoft.FusedConv looks like a convolution" in error.message for error in errors)
    assert any("shape inference stops at com.microsoft.FusedConv 'f'" in error.message for error in errors)


def test_shapes_that_disagree(tmp_path: Path) -> None:
    tensors = [weight("w", [8, 3, 3, 3])]
    channels = model([conv_node("x", "y", "c")], [value("x", [2, 4, 8, 8])], ["y"], tensors)
    assert "4 channels" in message(save(tmp_path, channels))
    declared = model(
        [conv_node("x", "a", "c"), helper.make_node("Relu", ["a"], ["y"])], [value("x", [2, 3, 8, 8])], ["y"], tensors,
        value_info=[value("a", [2, 8, 7, 7])],
    )  # fmt: skip
    assert "Conv 'c'" in message(save(tmp_path, declared))
    kernel = model(
        [helper.make_node("Conv", ["x", "w"], ["y"], name="c", kernel_shape=[5, 5])], [value("x", [2, 3, 8, 8])],
        ["y"], tensors,
    )  # fmt: skip
    assert message(save(tmp_path, kernel))


def test_a_cycle_is_named(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Add", ["x", "b"], ["a"], name="loop"),
        conv_node("a", "c"),
        helper.make_node("Relu", ["c"], ["b"]),
    ]
    assert message(save(tmp_path, model(nodes, [value("x", [2, 3, 8, 8])], ["b"], [weight("w", [3, 3, 3, 3])])))


def test_functions_without_end(tmp_path: Path) -> None:
    def function(name: str, calls: list[str]) -> Any:
        chain = [f"v{i}" for i in range(len(calls) + 1)]
        nodes = [helper.make_node(op, [a], [b], domain="m") for op, a, b in zip(calls, chain, chain[1:], strict=False)]
        return helper.make_function("m", name, ["v0"], [chain[-1]], nodes, [helper.make_opsetid("m", 1)])

    def with_functions(functions: list[Any]) -> str:
        node = helper.make_node("F0", ["x"], ["y"], domain="m")
        return save(tmp_path, model([node], [value("x", [1])], ["y"], functions=functions, domains=["m"]))

    assert "calls itself" in message(with_functions([function("F0", ["F1"]), function("F1", ["F0"])]))
    doubling = [function(f"F{i}", [f"F{i + 1}"] * 2) for i in range(40)]
    started = time.monotonic()
    assert "more than 100,000 nodes" in message(with_functions([*doubling, function("F40", ["Relu"])]))
    assert time.monotonic() - started < 5


def with_weights_at(folder: Path, location: str) -> str:
    tensor = weight("w", [8, 3, 3, 3])
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    return save(folder, model([conv_node("x", "y")], [value("x", [2, 3, 8, 8])], ["y"], [tensor]))


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/passwd", "a/../../b", "..\\up.bin", "C:\\w.bin"])
def test_external_data_outside_the_folder_is_refused(tmp_path: Path, location: str) -> None:
    assert "outside the model's folder" in message(with_weights_at(tmp_path, location))


def test_weights_outside_the_file_are_not_needed(tmp_path: Path) -> None:
    assert one(with_weights_at(tmp_path, "not-there.bin")).layers[0].K == 8


@pytest.mark.parametrize("cut", [0, 1, 10, 1000, 40000, 79000])
def test_truncated_files(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "cut.onnx"
    path.write_bytes((LIGHT / "light_resnet50.onnx").read_bytes()[:cut])
    assert "not an ONNX model" in message(str(path))


def test_random_bytes_give_errors_and_nothing_else(tmp_path: Path) -> None:
    generator = random.Random(1)
    sound = (LIGHT / "light_squeezenet.onnx").read_bytes()
    path = tmp_path / "random.onnx"
    for _ in range(60):
        path.write_bytes(generator.randbytes(generator.randrange(1, 400)))
        assert read(str(path), ReadOptions())[1]
    for _ in range(150):  # one damaged byte: an error or a network, never an exception
        broken = bytearray(sound)
        broken[generator.randrange(len(broken))] = generator.randrange(256)
        path.write_bytes(broken)
        network, errors = read(str(path), ReadOptions())
        assert network is not None or len(errors) == 1


def damage(graph: Any, generator: random.Random) -> None:
    """Changes one thing in a graph that the format allows and no exporter writes."""
    node = generator.choice(graph.node)
    kind = generator.randrange(8)
    odd = generator.choice([0, -1, 7, 2**31, 2**62, -(2**63)])
    if kind == 0 and node.attribute:
        attribute = generator.choice(node.attribute)
        attribute.ints[:] = [odd] * generator.randrange(5)
    elif kind == 1 and node.attribute:
        generator.choice(node.attribute).type = generator.randrange(14)
    elif kind == 2:
        node.input[:] = [
            generator.choice(["", "nowhere", *graph.node[-1].output]) for _ in range(generator.randrange(4))
        ]
    elif kind == 3:
        node.output[:] = list(node.output)[: generator.randrange(2)]
    elif kind == 4:
        node.op_type = generator.choice(
            ["Conv", "ConvTranspose", "QLinearConv", "If", "Loop", "Scan", "Reshape", "Foo"]
        )
    elif kind == 5:
        generator.choice(graph.initializer).dims[:] = [abs(odd) % 2**40, 3, odd, 3][: generator.randrange(5)]
    elif kind == 6:
        generator.choice(graph.initializer).data_type = generator.choice([0, 1, 2, 7, 10, 17])
    else:
        node.domain = generator.choice(["com.microsoft", "x"])


def test_damaged_graphs_give_errors_and_nothing_else(tmp_path: Path) -> None:
    generator = random.Random(5)
    for _ in range(300):
        proto = onnx.load(LIGHT / "light_squeezenet.onnx")
        for _ in range(generator.randrange(1, 5)):
            damage(proto.graph, generator)
        network, errors = read(save(tmp_path, proto), ReadOptions(batch=generator.choice([None, 4])))
        assert network is not None or len(errors) == 1


def test_a_convolution_without_inputs(tmp_path: Path) -> None:
    nodes = [helper.make_node("Conv", [], ["a"], name="c"), helper.make_node("Relu", ["x"], ["y"])]
    assert message(save(tmp_path, model(nodes, [value("x", [2, 3, 8, 8])], ["y"])))


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    assert "No such file" in message(str(tmp_path / "none.onnx"))
    assert "not a regular file" in message(str(tmp_path))


def in_little_memory(path: str, megabytes: int) -> str:
    """Reads `path` in another process; its output, after checking peak memory."""
    code = (
        "from convlint.readers import ReadOptions\nfrom convlint.readers.onnx.reader import read\n"
        f"network, errors = read({path!r}, ReadOptions())\n"
        "print(len(network.layers) if network else 0, [e.message for e in errors], "
        "int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) // 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    used = int(done.stdout.split()[-1])
    assert used < megabytes, f"{used} MB"
    return done.stdout


def test_a_million_nodes(tmp_path: Path) -> None:
    unit = model([helper.make_node("Relu", ["x"], ["y"])], [], []).SerializeToString()
    proto = onnx.ModelProto()
    proto.ParseFromString(unit)
    node = proto.graph.node[0].SerializeToString()
    body = (field(1, len(node)) + node) * 1_000_000  # GraphProto.node
    path = tmp_path / "million.onnx"
    path.write_bytes(field(7, len(body)) + body)
    assert "more than 100,000 nodes" in in_little_memory(str(path), 500)


def test_large_weights_inside_the_file_are_not_loaded(tmp_path: Path) -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4096, 4096, 3, 3])
    path = tmp_path / "large.onnx"
    save_with_zeros(
        path, model([conv_node("x", "y")], [value("x", [2, 4096, 8, 8])], ["y"]), tensor, 4 * 4096 * 4096 * 9
    )
    assert path.stat().st_size > 600_000_000
    assert in_little_memory(str(path), 300).startswith("1 []")


def test_the_registry_knows_onnx() -> None:
    assert getattr(find_format("a/b/Model.ONNX"), "module", None) == "onnx.reader"


def test_two_local_functions_of_one_name(tmp_path: Path) -> None:
    relu = helper.make_node("Relu", ["a"], ["b"])
    body = helper.make_function("local", "Block", ["a"], ["b"], [relu], [helper.make_opsetid("", 19)])
    proto = model([helper.make_node("Block", ["x"], ["y"], domain="local")], [value("x", [1, 3])], ["y"],
                  functions=[body, body], domains=["local"])  # fmt: skip
    network, errors = read(save(tmp_path, proto), ReadOptions())
    assert network is None
    assert "local functions cannot be inlined" in errors[0].message


def test_the_process_that_only_reads_does_without_numpy(tmp_path: Path) -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="c")
    path = save(tmp_path, model([node], [value("x", [1, 8, 9, 9])], ["y"], [weight("w", [8, 8, 3, 3])]))
    code = (
        "import sys; from convlint.readers import ReadOptions; from convlint.readers.onnx.reader import READER\n"
        f"READER.load_parser(); network, errors = READER.read({path!r}, ReadOptions())\n"
        "assert network.layers and not errors and 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("first", "others"), [("N", []), (1, []), (1, [["boxes", 4], ["seq"]])])
def test_a_batch_is_that_of_the_image_and_of_no_other_input(
    tmp_path: Path, first: int | str, others: list[list[int | str]]
) -> None:
    """Weights and a mean to subtract, which are inputs too, keep their sizes."""
    nodes = [helper.make_node("Sub", ["x", "mean"], ["z"]), helper.make_node("Conv", ["z", "w"], ["y"])]
    inputs = [value("x", [first, 3, 64, 64]), value("mean", [3, 1, 1]), value("w", [32, 3, 3, 3])]
    inputs += [value(f"other{number}", shape) for number, shape in enumerate(others)]
    proto = model(nodes, inputs, [value("y", None)], [])
    (layer,) = one(save(tmp_path, proto), batch=8).layers
    assert (layer.N, layer.C, layer.K) == (8, 3, 32)
