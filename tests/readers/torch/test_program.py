"""The reader of torch.export programs against forward hooks on real runs, and archives made to hurt."""

import json
import random
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_nets
from archives import bomb, read_apart, with_false_size
from cases import sampled
from read_inputs import refusal
from torch import nn

from convlint.estimate.passes import running_passes
from convlint.model.layer import PASSES
from convlint.readers import ReadOptions
from convlint.readers.bounded_json import Node
from convlint.readers.torch.module import read as read_module
from convlint.readers.torch.program import Reads, evaluate, line, read

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore::FutureWarning", "ignore::DeprecationWarning", "ignore:Using padding", "ignore:No complete"
    ),
]


def exported(folder: Path, module: nn.Module, shape: tuple[int, ...], **options: Any) -> str:
    path = str(folder / "model.pt2")
    decompose = options.pop("decompose", False)
    program = torch.export.export(module.eval(), (torch.zeros(shape),), **options)
    torch.export.save(program.run_decompositions() if decompose else program, path)
    return path


message = partial(refusal, read)


@pytest.mark.parametrize("decompose", [False, True])
@pytest.mark.parametrize(
    ("name", "shape"),
    sampled([
        ("UNet", (2, 3, 32, 32)), ("ResNeXt", (2, 3, 32, 32)), ("Video", (2, 3, 8, 16, 16)), ("Generator", (2, 100)),
        ("resnet", (2, 3, 64, 64)),
    ], 3),
)  # fmt: skip
def test_every_convolution_as_forward_hooks_see_it(
    tmp_path: Path, name: str, shape: tuple[int, ...], decompose: bool
) -> None:
    module = getattr(torch_nets, name)()
    path = exported(tmp_path, module, shape, decompose=decompose)
    expected = torch_nets.hooked(module, torch.zeros(shape))
    network, errors = read(path, ReadOptions())
    assert errors == ()
    assert [
        {key: getattr(layer, key) for key in want} for layer, want in zip(network.layers, expected, strict=True)
    ] == expected
    assert [layer.node for layer in network.layers] == [want["name"] for want in expected]
    assert network.runtime.framework == "pytorch"


@pytest.mark.parametrize("name", ["partly_frozen", "behind_frozen", "frozen_norm_of_weights", "FixedFilters", "Scaled"])
def test_what_does_not_learn_is_what_the_module_has(tmp_path: Path, name: str) -> None:
    of_program, errors = read(exported(tmp_path, getattr(torch_nets, name)(), (2, 3, 32, 32)), ReadOptions())
    of_module, _ = read_module(f"torch_nets:{name}", ReadOptions(inputs={"": "2x3x32x32"}))
    assert errors == ()
    assert of_program is not None
    assert of_module is not None
    passes = [[running_passes(layer, "training") for layer in network.layers] for network in (of_program, of_module)]
    assert passes[0] == passes[1]
    assert passes[0] != [("fprop", "wgrad"), PASSES]


@pytest.mark.contract
def test_symbolic_and_fixed_sizes(tmp_path: Path) -> None:
    free = {0: torch.export.Dim("batch"), 2: torch.export.Dim("height", min=8)}
    path = exported(tmp_path, torch_nets.ResNeXt(), (2, 3, 32, 32), dynamic_shapes=(free,))
    network, errors = read(path, ReadOptions(inputs={"": "64x3x224x32"}))
    assert errors == ()
    assert [(layer.N, layer.H, layer.P, layer.Q) for layer in network.layers[:2]] == [
        (64, 224, 112, 16),
        (64, 112, 112, 16),
    ]
    network, errors = read(path, ReadOptions(batch=8))
    assert len(errors) == 1
    assert "is 8x3x?x32" in errors[0].message
    assert network.layers[0].H is None
    assert "fixed at 3" in message(path, inputs={"x": "8x4x32x32"})
    assert "no input 'y'" in message(path, inputs={"y": "8x3x32x32"})
    assert "fixed at 2" in message(exported(tmp_path, torch_nets.UNet(), (2, 3, 32, 32)), batch=4)


@pytest.mark.contract
def test_layout_and_norms(tmp_path: Path) -> None:
    module = torch_nets.UNet().to(memory_format=torch.channels_last)
    network, _ = read(exported(tmp_path, module, (2, 3, 32, 32)), ReadOptions())
    assert {layer.layout for layer in network.layers} == {"NHWC"}
    assert [layer.name for layer in network.layers if layer.norm_follows] == [
        "down1.0",
        "down2.0",
        "middle.0",
        "dec2.0",
        "dec1.0",
    ]
    assert [layer.name for layer in network.layers if layer.head] == ["out"]


@pytest.mark.contract
def test_torch_is_not_needed_and_nothing_is_unpickled(tmp_path: Path) -> None:
    path = exported(tmp_path, nn.Conv2d(3, 8, 3), (2, 3, 8, 8))
    code = (
        "import sys\nfrom convlint.readers import ReadOptions\nfrom convlint.readers.torch.program import read\n"
        f"print(len(read({path!r}, ReadOptions())[0].layers), 'torch' in sys.modules, 'pickle' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split()[:2] == ["1", "False"]


def test_archives_made_to_hurt(tmp_path: Path) -> None:
    path = tmp_path / "bad.pt2"
    bomb(path, "m/models/model.json", 1 << 30)
    assert "the limit is" in read_apart("torch.program", path)
    with_false_size(path, "m/models/model.json", 200 << 20)
    assert read_apart("torch.program", path).startswith("0 [")
    deep = {"[" * 100_000: "nests too deep", "[" + "[]," * 2_000_000 + "[]]": "more entries", '{"a":': "not valid JSON"}
    for content, words in (*deep.items(), ("{}", "it has no graph"), ("[" + "9" * 5000 + "]", "not valid JSON")):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("m/models/model.json", content)
        assert words in read_apart("torch.program", path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/data.pkl", b"")
    assert "no exported graph" in message(path)
    path.write_bytes(b"PK\x03\x04 no archive")
    assert "not a torch.export file" in message(path)
    assert "No such file" in message(tmp_path / "none.pt2")


def test_damaged_graphs_give_errors_and_nothing_else(tmp_path: Path) -> None:
    path = exported(tmp_path, torch_nets.UNet(), (2, 3, 32, 32))
    with zipfile.ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.endswith("models/model.json"))
        sound = json.loads(archive.read(name))
    generator = random.Random(2)
    for _ in range(150):
        graph = json.loads(json.dumps(sound))
        node: Any = graph["graph_module"]["graph"]
        for _ in range(generator.randrange(1, 7)):  # somewhere below, something of another kind
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            key = generator.choice(keys)
            if not isinstance(node[key], (dict, list)) or not node[key]:
                break
            parent, node = node, node[key]
            last = key
        parent[last] = generator.choice([None, 7, "x", [], {}, [1], {"as_int": "y"}])
        damaged = tmp_path / "damaged.pt2"
        with zipfile.ZipFile(damaged, "w") as archive:
            archive.writestr(name, json.dumps(graph))
        network, errors = read(str(damaged), ReadOptions())
        assert network is not None or len(errors) == 1


def node(index: int, **arguments: Any) -> dict[str, Any]:
    given = {"input": {"as_tensor": {"name": f"t{index}"}}, "weight": {"as_tensor": {"name": "w"}}, **arguments}
    return {
        "target": "torch.ops.aten.conv2d.default",
        "inputs": [{"name": name, "arg": argument} for name, argument in given.items()],
        "outputs": [{"as_tensor": {"name": f"t{index + 1}"}}],
    }


def tensor(*sizes: Any) -> dict[str, Any]:
    return {"dtype": 7, "sizes": [size if isinstance(size, dict) else {"as_int": size} for size in sizes]}


def program(nodes: list[Any], **tensors: Any) -> dict[str, Any]:
    values = {f"t{index}": tensor(2, 8, 8, 8) for index in range(len(nodes) + 1)} | {"w": tensor(8, 8, 1, 1)}
    graph = {"nodes": nodes, "tensor_values": values | tensors}
    inputs = [{"user_input": {"arg": {"as_tensor": {"name": "t0"}}}}]
    return {"graph_module": {"graph": graph, "signature": {"input_specs": inputs}}}


def written(path: Path, content: Any) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/models/model.json", json.dumps(content))
    return path


NODE = "model.json: graph_module.graph.nodes[0]"


@pytest.mark.contract
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (program([node(0, stride={"as_ints": [1, 0]})]), f"{NODE}.inputs[2].arg.as_ints[1] must be 1 to"),
        (program([node(0, stride={"as_int": 0})]), f"{NODE}.inputs[2].arg.as_int must be 1 to 2^31 - 1, not 0"),
        (program([node(0, stride={"as_ints": [1] * 3})]), "as_ints must be one number or 2, not 3"),
        (program([node(0, dilation={"as_ints": [{}, 1]})]), "as_ints[0] must be 1 to 2^31 - 1, not an object"),
        (program([node(0, padding={"as_ints": [-1, 0]})]), "as_ints[0] must be 0 to 2^31 - 1, not -1"),
        (program([node(0, padding={"as_string": "x"})]), "as_string must be same or valid, not 'x'"),
        (program([node(0, padding={"as_float": 1.0})]), f"{NODE}.inputs[2].arg gives no fixed numbers"),
        (program([node(0, groups={"as_int": 0})]), "as_int must be 1 to 2^31 - 1, not 0"),
        (program([node(0, groups={"as_int": 2})]), f"{NODE} reads 8 channels, its weights and 2 groups take 16"),
        (program([node(0, groups={"as_int": 3})], t0=tensor(2, 24, 8, 8)), "8 by 8 channels, which 3 groups cannot"),
        (program([node(0)], w=tensor(8, 8, 0, 1)), "tensor_values.w.sizes[2] must be a size of 1 to 2^31 - 1, not 0"),
        (program([node(0)], w=tensor(8, 8, 2**40, 1)), "must be a size of 1 to 2^31 - 1, not 1099511627776"),
        (program([node(0)], w=tensor(8, 8, {"as_int": "x"}, 1)), "tensor_values.w.sizes[2].as_int must be 0 to"),
        (program([node(0)], w=tensor(8, 8)), "the weights of convolution 't1' have no fixed shape"),
        (program([node(0)], w=tensor(*[1] * 17)), "sizes has 17 elements; the limit is 16"),
        (program([node(0)], t1=tensor(2)), f"{NODE} reads 4 axes and writes 1, its weights have 4"),
        (program([node(0)], w={}), "tensor_values.w has no sizes"),
        (program([node(0)], w=[]), "tensor_values.w must be an object, not a list"),
        (program([{**node(0), "outputs": []}]), f"{NODE} (aten::conv2d) does not read an input and weights"),
        (program([{**node(0), "target": {}}]), f"{NODE}.target must be text, not an object"),
        (program([7]), f"{NODE} must be an object, not 7"),
        (program([{**node(0), "metadata": {"nn_module_stack": []}}]), "nn_module_stack must be text, not a list"),
        (program([{**node(0), "inputs": [{"name": [], "arg": {}}]}]), f"{NODE}.inputs[0].name must be text"),
    ],
)
def test_each_fault_of_a_program_is_told_with_its_place(tmp_path: Path, content: Any, words: str) -> None:
    network, _ = read(str(written(tmp_path / "m.pt2", program([node(0)]))), ReadOptions())
    assert len(network.layers) == 1
    assert words in message(written(tmp_path / "m.pt2", content))


@pytest.mark.contract
@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ({"stack_trace": 'File "/home/me/net.py", line 31, in forward\n  x.view(1)'}, "net.py:31"),
        ({"stack_trace": 'File "C:\\nets\\net.py", line 3, in f'}, "net.py:3"),
        (
            {
                "stack_trace": 'File "/a/net.py", line 3, in f\n  self.norm(x)\n'
                'File "/v/site-packages/torch/nn/modules/norm.py", line 9, in forward\n  return 1'
            },
            "net.py:3",
        ),
        ({"stack_trace": 'File "/v/dist-packages/timm/layer.py", line 9, in forward'}, "layer.py:9"),
        ({"stack_trace": "File " * 100_000}, ""), ({"stack_trace": 'File "a\x1b[31m.py", line 3'}, ""),
        ({"stack_trace": ["x"]}, ""), ({}, ""), (7, ""), (None, ""),
    ],
)  # fmt: skip
def test_lines_of_nodes(metadata: Any, text: str) -> None:
    assert line(Node({"metadata": metadata}, "node")) == text


def test_tensors_of_every_form_of_argument() -> None:
    a, b = {"name": "a"}, {"name": "b"}
    for argument, names in (
        ({"as_tensor": a}, ["a"]), ({"as_tensors": [a, b]}, ["a", "b"]),
        ({"as_optional_tensor": {"as_tensor": a}}, ["a"]),
        ({"as_optional_tensor": {"as_none": True}}, []), ({"as_nested_tensors": [[a], [b, a]]}, ["a", "b", "a"]),
        ({"as_optional_tensors": [{"as_none": True}, {"as_tensor": b}]}, ["b"]), ({"as_none": True}, []), (7, []),
    ):  # fmt: skip
        assert Reads().of(Node(argument, "arg")) == names


def test_names_that_count_on_each_other(tmp_path: Path) -> None:
    """A name, the name that a second one of it would get, and so on: each layer still gets one of its own."""
    nodes = [node(index) for index in range(500)]
    for index, each in enumerate(nodes):
        name = "a" + "#2" * (index if index < 245 else 0)
        each["metadata"] = {"nn_module_stack": f"x,{name},torch.nn.Conv2d"}
        each["inputs"][1]["arg"]["as_tensor"]["name"] = f"w{index}"
    weights = {f"w{index}": tensor(8, 8, 1, 1) for index in range(500)}
    network, _ = read(str(written(tmp_path / "m.pt2", program(nodes, **weights))), ReadOptions())
    assert len({layer.name for layer in network.layers}) == 500


def test_more_than_any_program_has(tmp_path: Path) -> None:
    relu = {"target": "torch.ops.aten.relu.default", "inputs": [], "outputs": []}
    content = program([relu])
    content["graph_module"]["graph"]["nodes"] *= 50_001
    assert "has 50,001 elements; the limit is 50,000" in message(written(tmp_path / "m.pt2", content))
    reads = {**relu, "inputs": [{"name": "x", "arg": {"as_tensors": [{"name": "t0"}] * 60_000}}]}
    content = program([reads, reads])
    assert "more than 100,000 tensors that operations read" in message(written(tmp_path / "m.pt2", content))
    unknown = [{**relu, "target": f"torch.ops.my.conv{k}.default", "inputs": reads["inputs"]} for k in range(500)]
    for each in unknown:
        each["inputs"] = [{"name": "x", "arg": {"as_tensor": {"name": "t0"}}}]
    _, errors = read(str(written(tmp_path / "m.pt2", program(unknown))), ReadOptions())
    assert len(errors) == 101
    assert errors[-1].message == "400 more errors are not shown"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Symbol('s0', positive=True, integer=True)", 7), ("Add(Mul(Integer(2), Symbol('s0')), Integer(-1))", 13),
        ("Add(Mul(Integer(2), Symbol('s0')), Integer(1))", 15), ("FloorDiv(Symbol('s0'), Integer(2))", 3), ("s0", 7),
        ("torch.utils._sympy.functions.FloorDiv(Symbol('s0'), Integer(0))", None), ("2*s0 + 1", 15), ("s1", None),
        ("__import__('os').system('true')", None), ("Mul(" * 500, None), ("(" * 1900, None), ("9" * 1900, None),
        ("9**9**9", None), ("-" * 1900 + "1", 1), ("-s0 - -1", -6), ("((s0 - 1)//2) * 3 % 5", 4), ("s0 s0", None),
        ("Max(1, s0, 3) - Min(2, s0)", 5), ("FloorDiv(1)", None), ("Mod(s0, 0)", None), ("Symbol(s0)", None),
        ("Mul(" + "99999999, " * 99 + "1)", None), ("s0 if s0 else s0", None), ("Symbol('s0'", None), ("", None),
    ],
)  # fmt: skip
def test_symbolic_sizes(text: str, value: int | None) -> None:
    assert evaluate(text, {"s0": 7}) == value


@pytest.mark.contract
def test_a_norm_that_keeps_its_statistics_in_training_cancels_no_bias(tmp_path: Path) -> None:
    program = torch.export.export(torch_nets.FrozenNorm(), (torch.zeros(2, 3, 8, 8),))
    path = str(tmp_path / "model.pt2")
    torch.export.save(program, path)
    network = read(path, ReadOptions())[0]
    assert [layer.norm_follows for layer in network.layers] == [True, False]
    assert [step.work.kind for step in network.operations if step.work] == ["batch norm", "frozen norm"]
    evaluated = exported(tmp_path, torch_nets.FrozenNorm(), (2, 3, 8, 8))
    assert [layer.norm_follows for layer in read(evaluated, ReadOptions())[0].layers] == [True, True]
