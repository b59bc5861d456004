"""Builders for the parts of hostile ONNX graphs: values, nodes, bodies, functions and raw fields."""

from itertools import pairwise
from typing import Any

IMAGE = ("x", [1, 3, 8, 8])


def value(name: str, shape: Any = None, kind: int = 1) -> Any:
    from onnx import helper

    return helper.make_tensor_value_info(name, kind, shape)


def ints(name: str, *numbers: int) -> Any:
    import numpy as np
    from onnx import numpy_helper

    return numpy_helper.from_array(np.array(numbers, np.int64), name)


def weight(name: str = "w", shape: tuple[int, ...] = (4, 3, 3, 3)) -> Any:
    import numpy as np
    from onnx import numpy_helper

    return numpy_helper.from_array(np.zeros(shape, np.float32), name)


def node(op: str, inputs: Any, outputs: Any, **attributes: Any) -> Any:
    from onnx import helper

    return helper.make_node(op, list(inputs), list(outputs), **attributes)


def model(nodes: Any, tensors: Any = (), *, inputs: Any = None, functions: Any = (), opset: int = 19) -> Any:
    """A model of these nodes after one convolution from `x` to `c`; the domain `f` is that of its functions."""
    from onnx import helper

    first = [node("Conv", ["x", "w"], ["c"], name="stem")]
    given = [value(*IMAGE)] if inputs is None else inputs
    graph = helper.make_graph([*first, *nodes], "g", given, [value("c")], [weight(), *tensors])
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("f", 1)], functions=list(functions),
        ir_version=9,
    )  # fmt: skip


def body(nodes: Any, name: str = "body", inputs: Any = (), outputs: Any = ()) -> Any:
    from onnx import helper

    return helper.make_graph(list(nodes), name, list(inputs), list(outputs))


def function(name: str, nodes: Any, inputs: Any = ("a",), outputs: Any = ("z",)) -> Any:
    from onnx import helper

    opsets = [helper.make_opsetid("", 19), helper.make_opsetid("f", 1)]
    return helper.make_function("f", name, list(inputs), list(outputs), list(nodes), opsets)


def chain(op: str, start: str, count: int, **attributes: Any) -> list[Any]:
    """`count` nodes, each of which takes the output of the one before twice."""
    names = [start, *(f"{op.lower()}{i}" for i in range(count))]
    return [node(op, [a, a], [b], **attributes) for a, b in pairwise(names)]


def wrapped(number: int, content: bytes) -> bytes:
    """A length-delimited protobuf field; by hand, since the library refuses to build what is nested deep."""
    size, length = len(content), bytearray()
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + content
