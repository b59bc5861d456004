"""Hostile .pt2, .keras and .safetensors files, built from valid ones: faults of the content and of the archive."""

import copy
import json
import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from .containers import DEEP, containers, sparse
from .seeds import CONFIG, HEADER, PROGRAM, json_seed, keras, pt2, safetensors

Case = tuple[str, str, str, Callable[[], Any], bool]  # kind, name, suffix, what makes it, whether it needs much
SCALARS: dict[str, Any] = {
    "null": None, "true": True, "zero": 0, "minus_one": -1, "huge": 2**70, "float": 1.5, "infinity": float("inf"),
    "nan": float("nan"), "text": "::error::pwn\n\x1b[31m", "list": [], "object": {}, "nested": [[[{}]]],
    "digits": 10**4000, "many": [1] * 3000,
}  # fmt: skip

OFFSETS = {"backwards": [3348, 0], "overlapping": [0, 3348], "negative": [-10, 3338], "gap": [9, 3357]}
LENGTHS = {"past_end": 10**6, "huge": 2**63, "zero": 0, "one": 1}


def cases() -> Iterator[Case]:
    """Kind, name, suffix, what makes the content or writes the file, and whether it may need much."""
    yield from _programs()
    yield from _keras_models()
    yield from _checkpoints()
    for kind, suffix, member in (("pt2", ".pt2", f"model/{PROGRAM}"), ("keras", ".keras", CONFIG)):
        yield from ((kind, name, suffix, make, heavy) for name, make, heavy in containers(member, kind))


def replaced(document: Any, *path: str | int, by: Any) -> Any:
    """A copy of nested lists and objects with one place of it changed."""
    made = copy.deepcopy(document)
    holder = made
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = by
    return made


def every_place(document: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path to every value inside a document."""
    inside = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in inside:
        yield (*path, key)
        yield from every_place(value, (*path, key))


def _programs() -> Iterator[Case]:
    graph = ("graph_module", "graph")
    convolution = (*graph, "nodes", 0, "inputs")
    stride = (*convolution, 3, "arg")
    for name, scalar in SCALARS.items():
        for place, path in {
            "stride": stride, "strides": (*stride, "as_ints"), "first_stride": (*stride, "as_ints", 0),
            "target": (*graph, "nodes", 0, "target"), "nodes": (*graph, "nodes"), "tensors": (*graph, "tensor_values"),
            "input_name": (*convolution, 0, "arg", "as_tensor", "name"), "stack": (*graph, "nodes", 0, "metadata"),
            "sizes": (*graph, "tensor_values", "input", "sizes"), "dtype": (*graph, "tensor_values", "input", "dtype"),
            "size": (*graph, "tensor_values", "p_0_weight", "sizes", 0), "ranges": ("range_constraints",),
        }.items():  # fmt: skip
            yield "pt2", f"{place}_{name}", ".pt2", _program(*path, by=scalar), False
    size = (*graph, "tensor_values", "input", "sizes", 0)
    for name, text in {
        "divides_by_zero": "FloorDiv(Integer(1), Integer(0))", "mod_zero": "Mod(1, 0)", "power": "Pow(10, Pow(10, 10))",
        "product": "*".join(["9999999999"] * 150), "deep": "-" * 1900 + "1",
        "call": "__import__('os').system('touch PWNED')",
        "empty_call": "Integer()", "huge": "9" * 1999, "float": "1e999", "lambda": "(lambda: 1)()", "nul": "a\0b",
        "brackets": "(" * 900 + "1" + ")" * 900,
    }.items():  # fmt: skip
        expression = {"as_expr": {"expr_str": text, "hint": None}}
        # not "size_", which is a place above: of two attacks of one name one would overwrite the other's file
        yield "pt2", f"expression_{name}", ".pt2", _program(*size, by=expression), False
    yield "pt2", "100000_nodes", ".pt2", lambda: _repeated(100_000), True
    yield "pt2", "nodes_of_one_reading_all", ".pt2", lambda: _fan_in(20_000), True


def _program(*path: str | int, by: Any) -> Callable[[], bytes]:
    return lambda: pt2(replaced(json_seed("program.json"), *path, by=by))


def _repeated(count: int) -> bytes:
    document = copy.deepcopy(json_seed("program.json"))
    nodes = document["graph_module"]["graph"]["nodes"]
    document["graph_module"]["graph"]["nodes"] = nodes[:1] * count
    return pt2(document)


def _fan_in(count: int) -> bytes:
    document = copy.deepcopy(json_seed("program.json"))
    graph = document["graph_module"]["graph"]
    arg = {"name": "tensors", "arg": {"as_tensors": [{"name": "conv2d"}] * count}, "kind": 1}
    node = {"target": "torch.ops.aten.cat.default", "inputs": [arg], "metadata": {}}
    graph["nodes"] += [{**node, "outputs": [{"as_tensor": {"name": "conv2d"}}]}] * 5
    return pt2(document)


def _keras_models() -> Iterator[Case]:
    layer = ("config", "layers", 1)
    for name, scalar in SCALARS.items():
        for place, path in {
            "filters": (*layer, "config", "filters"), "kernel": (*layer, "config", "kernel_size"),
            "stride": (*layer, "config", "strides", 0), "strides": (*layer, "config", "strides"),
            "padding": (*layer, "config", "padding"), "groups": (*layer, "config", "groups"),
            "dilation": (*layer, "config", "dilation_rate"), "format": (*layer, "config", "data_format"),
            "class": (*layer, "class_name"), "layer_name": (*layer, "config", "name"), "layers": ("config", "layers"),
            "config": (*layer, "config"), "inbound": (*layer, "inbound_nodes"),
            "batch_shape": ("config", "layers", 0, "config", "batch_shape"),
            "size": ("config", "layers", 0, "config", "batch_shape", 1), "outputs": ("config", "output_layers"),
            "inputs": ("config", "input_layers"), "dtype": (*layer, "config", "dtype"),
        }.items():  # fmt: skip
            yield "keras", f"{place}_{name}", ".keras", _config(*path, by=scalar), False
    yield "keras", "inside_itself_50", ".keras", lambda: _inside_itself(50), True
    yield "keras", "inside_itself_2000", ".keras", lambda: _inside_itself(2000), True
    yield "keras", "lambda_layer", ".keras", _config(*layer, "class_name", by="Lambda"), False
    yield "keras", "50000_layers", ".keras", lambda: _many_layers(50_000), True


def _config(*path: str | int, by: Any) -> Callable[[], bytes]:
    return lambda: keras(replaced(json_seed("config.json"), *path, by=by))


def _inside_itself(depth: int) -> bytes:
    document = json.dumps(json_seed("config.json"))
    opened = '{"class_name": "Sequential", "config": {"name": "s", "layers": ['
    return keras(opened * depth + document + ']}, "inbound_nodes": []}' * depth)


def _many_layers(count: int) -> bytes:
    one = copy.deepcopy(json_seed("config.json")["config"]["layers"])
    image, layer = one[:2]
    image["config"]["batch_shape"] = [1, 16, 16, 3]
    return keras({"class_name": "Sequential", "config": {"name": "s", "layers": [image, *[layer] * count]}})


def _checkpoints() -> Iterator[Case]:
    weight = "conv.weight"
    for name, scalar in SCALARS.items():
        for place, path in {
            "shape": (weight, "shape"), "size": (weight, "shape", 0), "offsets": (weight, "data_offsets"),
            "start": (weight, "data_offsets", 0), "end": (weight, "data_offsets", 1), "dtype": (weight, "dtype"),
            "tensor": (weight,), "metadata": ("__metadata__",), "format": ("__metadata__", "format"),
        }.items():  # fmt: skip
            header = replaced(HEADER, *path, by=scalar)
            yield "safetensors", f"{place}_{name}", ".safetensors", lambda header=header: safetensors(header), False
        index = {"metadata": {}, "weight_map": {"a.weight": scalar}}
        yield "safetensors", f"shard_{name}", ".safetensors.index.json", lambda index=index: json.dumps(index), False
    made: dict[str, Callable[[], Any]] = {
        **{f"length_{name}": partial(safetensors, HEADER, length=length) for name, length in LENGTHS.items()},
        "deep": lambda: safetensors(DEEP.encode()),
        "not_utf8": lambda: safetensors(b'{"\xff.weight": {}}'),
    }
    for name, ends in OFFSETS.items():
        header = {**HEADER, weight: {**HEADER[weight], "data_offsets": ends}, "again.weight": HEADER[weight]}
        made[f"offsets_{name}"] = partial(safetensors, header, 9000)
    yield from (("safetensors", name, ".safetensors", make, False) for name, make in made.items())
    large = 3 << 30
    for name, make in {
        "400000_tensors": lambda: safetensors(_many_tensors(400_000), 0),
        "sparse_3_gb_header": lambda: sparse(large, struct.pack("<Q", large - 8)),
    }.items():
        yield "safetensors", name, ".safetensors", make, True
    for name, target in {
        "parent": "../x.safetensors", "itself": "shard_itself.safetensors.index.json", "absolute": "/etc/passwd",
    }.items():  # fmt: skip
        index = {"weight_map": {"a.weight": target}}
        yield "safetensors", f"shard_{name}", ".safetensors.index.json", partial(json.dumps, index), False
    many = {"weight_map": {f"{i}.weight": f"{i}.safetensors" for i in range(50_000)}}
    yield "safetensors", "50000_shards", ".safetensors.index.json", partial(json.dumps, many), True


def _many_tensors(count: int) -> bytes:
    tensors = (f'"{i}.weight":{{"dtype":"F16","shape":[{i + 1},3,3,3],"data_offsets":[0,0]}}' for i in range(count))
    return ("{" + ",".join(tensors) + "}").encode()
