"""Hostile ONNX graphs: they crash the parser, make it grow without end, or contradict themselves."""

from collections.abc import Callable, Iterator
from typing import Any

from .onnx_parts import IMAGE, body, chain, function, ints, model, node, value, weight, wrapped

Build = Callable[[], Any]

# what each operator reads: "n" the size, "one", "lo", "hi" and "st" small numbers
FILLED = {
    "ConstantOfShape": "n", "Expand": "one n", "Tile": "one n", "Range": "lo hi st", "Reshape": "one n",
    "OneHot": "one hi n", "Pad": "one n", "Slice": "one n n",
}  # fmt: skip


def split(outputs: int, sizes: tuple[int, ...] = (), opset: int = 19, **attributes: Any) -> Any:
    names = [f"s{i}" for i in range(outputs)]
    return model([node("Split", ["c", *(["n"] if sizes else [])], names, axis=1, **attributes)],
                 [ints("n", *sizes)] if sizes else [], opset=opset)  # fmt: skip


def doubling(op: str, count: int) -> Any:
    """A shape that is doubled again and again; constant propagation holds all of it."""
    return model([node("Shape", ["x"], ["s"]), *chain(op, "s", count, **({"axis": 0} if op == "Concat" else {}))])


def growing(count: int) -> Any:
    """A shape to which the first one is added again and again."""
    steps = (node("Concat", [f"s{i}", "s0"], [f"s{i + 1}"], axis=0) for i in range(count))
    return model([node("Shape", ["x"], ["s0"]), *steps])


def filled(op: str, *numbers: int, then: str = "") -> Any:
    """A tensor of that size made out of nothing, and something that asks for its values."""
    more = [node(then, ["c", "big"], ["r"])] if then else []
    read = FILLED[op].split()
    made = [node(op, read, ["big"])]
    scalars = [ints("one", 1), ints("n", *numbers)]
    for name, number in (("lo", 0), ("hi", numbers[0]), ("st", 1)):
        tensor = ints(name, number)
        del tensor.dims[:]
        scalars.append(tensor)
    return model([*made, *more], scalars)


def nested(depth: int, *, listed: bool) -> bytes:
    """Bodies inside bodies: the branches of If, or a list of graphs in one attribute."""
    inner = wrapped(1, node("Conv", ["c", "w"], ["d"]).SerializeToString())
    output = wrapped(12, value("d").SerializeToString())
    other = node("If", ["flag"], ["d"], else_branch=body([], "e", [], [value("c")])).SerializeToString()
    for _ in range(depth):
        graph = inner + wrapped(2, b"b") + output
        attribute = (
            wrapped(1, b"then_branch")
            + wrapped(11 if listed else 6, graph)
            + bytes([20 << 3 & 127 | 128, 1, 10 if listed else 5])
        )
        inner = wrapped(1, other + wrapped(5, attribute))
    flag = [value(*IMAGE), value("flag", [], 9)]
    return bytes(model([], inputs=flag).SerializeToString()) + wrapped(7, inner)


def calling(depth: int, times: int, *, hidden: str = "") -> Any:
    """Functions that call each other `times` times over, `depth` deep; hidden in `graphs` or `g` of an attribute."""
    functions = []
    for level in range(depth):
        inner = [node(f"F{level + 1}" if level + 1 < depth else "Relu", ["a"], [f"t{i}"],
                      domain="f" if level + 1 < depth else "") for i in range(times)]  # fmt: skip
        if hidden:
            holder = node("Thing", ["a"], ["z"], domain="x")
            attribute = holder.attribute.add(name="h", type=10 if hidden == "graphs" else 5)
            (attribute.graphs.add() if hidden == "graphs" else attribute.g).CopyFrom(body(inner))
            functions.append(function(f"F{level}", [holder]))
        else:
            functions.append(function(f"F{level}", [*inner, node("Identity", ["t0"], ["z"])]))
    return model([node("F0", ["c"], ["y"], domain="f")], functions=functions)


def cyclic(*, hidden: bool) -> Any:
    call = node("B", ["a"], ["z"], domain="f")
    if hidden:
        holder = node("Thing", ["a"], ["z"], domain="x")
        holder.attribute.add(name="h", type=10).graphs.append(body([call]))
        call = holder
    functions = [function("A", [call]), function("B", [node("A", ["a"], ["z"], domain="f")])]
    return model([node("A", ["c"], ["y"], domain="f")], functions=functions)


def outside(location: str, inside: str) -> Any:
    """Weights kept in another file: of an initializer, of a constant, of one in a body."""
    tensor = weight("far")
    tensor.ClearField("raw_data")
    tensor.data_location = 1
    tensor.external_data.add(key="location", value=location)
    tensor.external_data.add(key="offset", value="-1")
    tensor.external_data.add(key="length", value=str(2**63))
    if inside == "initializer":
        return model([node("Conv", ["x", "far"], ["d"])], [tensor])
    constant = node("Constant", [], ["far"], value=tensor)
    if inside == "constant":
        return model([constant, node("Conv", ["x", "far"], ["d"])])
    branch = body([constant], "b", [], [value("far")])
    return model([node("If", ["flag"], ["d"], then_branch=branch, else_branch=branch)],
                 inputs=[value(*IMAGE), value("flag", [], 9)])  # fmt: skip


def loop(trips: int) -> Any:
    inner = body([node("Conv", ["s", "w"], ["o"]), node("Identity", ["go"], ["on"])], "loop",
                 [value("i", [], 7), value("go", [], 9), value("s", [1, 3, 8, 8])],
                 [value("on", [], 9), value("o")])  # fmt: skip
    return model([node("Loop", ["trips", "", "x"], ["last"], body=inner)], [ints("trips", trips)])


def convolution(**attributes: Any) -> Any:
    return model([node("Conv", ["x", "w"], ["d"], **attributes)])


def resized(*scales: float) -> Any:
    import numpy as np
    from onnx import numpy_helper

    scale = numpy_helper.from_array(np.array(scales, np.float32), "k")
    return model([node("Resize", ["x", "", "k"], ["big"]), node("Conv", ["big", "w"], ["d"])], [scale])


def wrong_types() -> Any:
    made = convolution(kernel_shape=[3, 3])
    for attribute, kind in zip(made.graph.node[1].attribute, (1, 3, 4), strict=False):
        attribute.type = kind
    return made


def changed(change: Callable[[Any], object]) -> Any:
    made = model([])
    change(made)
    return made


def sparse(*dims: int) -> Any:
    made = model([])
    tensor = made.graph.sparse_initializer.add(dims=dims)
    tensor.values.CopyFrom(weight("sp", (1,)))
    tensor.indices.CopyFrom(ints("at", 2**62))
    return made


def bytes_for_names() -> bytes:
    return bytes(model([node("Relu", ["c"], ["QQQQ"], name="QQQQ")]).SerializeToString()).replace(
        b"QQQQ", b"\xff\xfe\xc0\x80"
    )


def cases() -> Iterator[tuple[str, Build]]:
    """The name and the maker of every graph; what is made is a model or its bytes."""
    yield "split_declares_fewer", lambda: split(1, num_outputs=4)
    yield "split_declares_none", lambda: split(0, num_outputs=4)
    yield "split_declares_more", lambda: split(9, num_outputs=2)
    yield "split_of_more_sizes", lambda: split(1, (1, 1, 1, 1))
    yield "split_old_attribute", lambda: split(1, opset=11, split=[1, 1, 1, 1])
    yield "split_zero_parts", lambda: split(2, num_outputs=0)
    yield "split_huge_parts", lambda: split(1, num_outputs=2**62)
    for op in ("Concat", "Add", "Mul"):
        yield f"{op.lower()}_doubling_30", lambda op=op: doubling(op, 30)
    yield "concat_doubling_60", lambda: doubling("Concat", 60)
    shape, many = node("Shape", ["x"], ["s"]), 60_000
    large = [*chain("Concat", "s", 10, axis=0), node("Concat", ["concat9"] * many, ["t"], axis=0)]
    yield "concat_60000_times", lambda: model([shape, node("Concat", ["s"] * many, ["t"], axis=0)])
    yield "concat_60000_tensors", lambda: model([node("Concat", ["c"] * many, ["t"], axis=1)])
    yield "concat_60000_of_a_large", lambda: model([shape, *large])
    yield "concat_grows_60000_times", lambda: growing(many)
    for op in FILLED:
        yield f"{op.lower()}_huge", lambda op=op: filled(op, 2**31)
        yield f"{op.lower()}_overflow", lambda op=op: filled(op, 2**62, 2**62, then="Reshape")
        yield f"{op.lower()}_negative", lambda op=op: filled(op, -(2**63), -5, then="Expand")
    for depth in (20, 500, 5000):
        yield f"bodies_nested_{depth}", lambda depth=depth: nested(depth, listed=False)
        yield f"bodies_listed_{depth}", lambda depth=depth: nested(depth, listed=True)
    for hidden in ("", "graphs", "g"):
        yield f"functions_fan_out_{hidden or 'plain'}", lambda hidden=hidden: calling(12, 12, hidden=hidden)
        yield f"functions_deep_{hidden or 'plain'}", lambda hidden=hidden: calling(2000, 1, hidden=hidden)
    yield "functions_cyclic", lambda: cyclic(hidden=False)
    yield "functions_cyclic_hidden", lambda: cyclic(hidden=True)
    for where in ("initializer", "constant", "body"):
        for name, location in (("parent", "../a_first.yaml"), ("absolute", "/etc/passwd"), ("beside", "z_last.yaml")):
            yield f"outside_{name}_{where}", lambda where=where, location=location: outside(location, where)
    yield "loop_forever", lambda: loop(2**62)
    yield "loop_negative", lambda: loop(-1)
    yield "resize_huge", lambda: resized(1, 1, 1e30, 1e30)
    yield "resize_nan", lambda: resized(1, 1, float("nan"), float("-inf"))
    for name, number in (("huge", 2**62), ("negative", -(2**62)), ("zero", 0)):
        for key in ("strides", "dilations", "pads", "kernel_shape"):
            count = 4 if key == "pads" else 2
            yield f"{key}_{name}", lambda key=key, number=number, count=count: convolution(**{key: [number] * count})
        yield f"group_{name}", lambda number=number: convolution(group=number)
        yield f"dims_{name}", lambda number=number: model([], inputs=[value("x", [1, 3, number, number])])
    yield "auto_pad_strange", lambda: convolution(auto_pad="::error::x")
    yield "many_axes", lambda: model([], inputs=[value("x", [1] * 100_000)])
    yield "wrong_attribute_types", wrong_types
    yield "attribute_of_100000_ints", lambda: convolution(kernel_shape=[1] * 100_000)
    yield "no_opset", lambda: changed(lambda m: m.ClearField("opset_import"))
    yield "opset_huge", lambda: changed(lambda m: setattr(m.opset_import[0], "version", 2**62))
    yield "opset_negative", lambda: changed(lambda m: setattr(m.opset_import[0], "version", -1))
    yield "ir_version_huge", lambda: changed(lambda m: setattr(m, "ir_version", 2**62))
    yield "reads_itself", lambda: model([node("Relu", ["r"], ["r"])])
    yield "cycle", lambda: model([node("Relu", ["b"], ["a"]), node("Conv", ["a", "w"], ["b"])])
    yield "no_input", lambda: model([node("Conv", [], []), node("", [], [""])])
    yield "sparse_huge", lambda: sparse(2**62, 2**62)
    yield "not_utf8", bytes_for_names
