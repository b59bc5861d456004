"""Small ONNX models for the tests, and an independent reading of the graphs that ship inside the onnx package."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from read_inputs import sound

from convlint.model.network import Network
from convlint.readers.onnx.reader import read

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
LIGHT_CONVOLUTIONS = {
    "bvlc_alexnet": 5, "densenet121": 121, "inception_v1": 57, "inception_v2": 69, "resnet50": 53,
    "shufflenet": 49, "squeezenet": 26, "vgg19": 16, "zfnet512": 5,
}  # fmt: skip


def value(name: str, shape: list[int | str] | None, kind: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def weight(name: str, shape: list[int], dtype: Any = np.float32) -> Any:
    return numpy_helper.from_array(np.zeros(shape, dtype), name)


def model(nodes: list[Any], inputs: list[Any], outputs: list[Any], tensors: list[Any] = (), **graph: Any) -> Any:
    functions = graph.pop("functions", [])
    domains = graph.pop("domains", [])
    opset = graph.pop("opset", 19)
    written = [value(entry, None) if isinstance(entry, str) else entry for entry in outputs]
    body = helper.make_graph(nodes, "g", inputs, written, list(tensors), **graph)
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(body, opset_imports=opsets, ir_version=9, functions=functions)


def save(folder: Path, proto: Any, name: str = "model.onnx") -> str:
    path = folder / name
    path.write_bytes(proto.SerializeToString())
    return str(path)


def field(number: int, length: int) -> bytes:
    """The start of a length-delimited protobuf field."""
    out = bytearray([number << 3 | 2])
    while length > 127:
        out.append(length & 127 | 128)
        length >>= 7
    return bytes([*out, length])


def save_with_zeros(path: Path, proto: Any, tensor: Any, size: int) -> None:
    """Writes the model with one more tensor, whose data are `size` zero bytes that take no room on disk."""
    graph = proto.graph.SerializeToString()
    proto.ClearField("graph")
    described = tensor.SerializeToString() + field(9, size)
    inner = field(5, len(described) + size) + described
    path.write_bytes(proto.SerializeToString() + field(7, len(graph) + len(inner) + size) + graph + inner)
    with path.open("r+b") as stream:
        stream.truncate(path.stat().st_size + size)


def expected_convolutions(path: Path, batch: int) -> list[dict[str, Any]]:
    """Every Conv of a light graph by hand: weights from the constants that fill them, maps from naive arithmetic."""
    graph = onnx.load(path).graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    shapes: dict[str, list[int]] = {name: list(array.shape) for name, array in constants.items()}
    for entry in graph.input:
        if entry.name not in constants:
            shapes[entry.name] = [batch, *(axis.dim_value for axis in entry.type.tensor_type.shape.dim[1:])]
    found = []
    for node in graph.node:
        attributes = {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}
        source = shapes[node.input[0]]
        if node.op_type == "ConstantOfShape":
            result = [int(size) for size in constants[node.input[0]]]
        elif node.op_type in ("Conv", "MaxPool", "AveragePool"):
            assert attributes.get("auto_pad", b"NOTSET") == b"NOTSET"
            assert not attributes.get("ceil_mode")
            filters = shapes[node.input[1]] if node.op_type == "Conv" else [source[1], 1, *attributes["kernel_shape"]]
            stride = attributes.get("strides", [1, 1])
            pads = attributes.get("pads", [0, 0, 0, 0])
            dilation = attributes.get("dilations", [1, 1])
            result = [source[0], filters[0]]
            for axis in (0, 1):
                extent = dilation[axis] * (filters[2 + axis] - 1) + 1
                result.append((source[2 + axis] + pads[axis] + pads[axis + 2] - extent) // stride[axis] + 1)
            if node.op_type == "Conv":
                groups = attributes.get("group", 1)
                assert source[1] == filters[1] * groups
                found.append(
                    {
                        "N": source[0], "C": source[1], "H": source[2], "W": source[3], "K": filters[0],
                        "P": result[2], "Q": result[3], "R": filters[2], "S": filters[3], "U": stride[0],
                        "V": stride[1], "PadH": pads[0], "PadW": pads[1], "PadH_end": pads[2], "PadW_end": pads[3],
                        "DilH": dilation[0], "DilW": dilation[1], "groups": groups, "bias": len(node.input) > 2,
                    }
                )  # fmt: skip
        elif node.op_type == "GlobalAveragePool":
            result = [*source[:2], 1, 1]
        elif node.op_type == "Concat":
            result = list(source)
            result[attributes["axis"]] = sum(shapes[name][attributes["axis"]] for name in node.input)
        elif node.op_type == "Transpose":
            result = [source[axis] for axis in attributes["perm"]]
        elif node.op_type == "Reshape":
            result = [int(size) for size in constants[node.input[1]]]
        elif node.op_type == "Unsqueeze":
            result = list(source)
            for axis in attributes["axes"]:
                result.insert(axis, 1)
        elif node.op_type in ("Gemm", "Softmax"):
            break  # the classifier: no convolution comes after it
        else:
            assert node.op_type in {"Relu", "BatchNormalization", "LRN", "Dropout", "Add", "Sum", "Mul"}, node.op_type
            result = source
        shapes[node.output[0]] = result
    return found


class Graph:
    """A graph written down node by node; every method returns the name of a tensor. `x` is its input, 2x3x8x6."""

    def __init__(self, shape: Any = (2, 3, 8, 6)) -> None:
        self.inputs = [value("x", list(shape))]
        self.nodes: list[Any] = []
        self.tensors: list[Any] = []

    def node(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """The name of the new node and of its first output; the others are `name_1` and so on."""
        name = f"{op}{len(self.nodes)}"
        written = [name, *(f"{name}_{number}" for number in range(1, outputs))]
        self.nodes.append(helper.make_node(op, list(inputs), written, name=name, **attributes))
        return name

    def constant(self, *sizes: int) -> str:
        self.tensors.append(weight(f"k{len(self.tensors)}", list(sizes)))
        return str(self.tensors[-1].name)

    def numbers(self, *values: int | float) -> str:
        dtype = np.int64 if all(isinstance(each, int) for each in values) else np.float32
        self.tensors.append(numpy_helper.from_array(np.array(values, dtype), f"k{len(self.tensors)}"))
        return str(self.tensors[-1].name)

    def conv(self, source: str, C: int, K: int, taps: int = 1, group: int = 1, **attributes: Any) -> str:
        return self.node(
            "Conv", source, self.constant(K, C // group, taps, taps), group=group, pads=[taps // 2] * 4, **attributes
        )

    def norm(self, source: str, C: int) -> str:
        return self.node("BatchNormalization", source, *[self.constant(C) for _ in range(4)])

    def read(self, folder: Path, *outputs: str, **more: Any) -> Network:
        proto = model(self.nodes, self.inputs, list(outputs), self.tensors, **more)
        return sound(read, save(folder, proto))
