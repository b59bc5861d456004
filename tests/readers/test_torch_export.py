"""The reader of torch.export programs against forward hooks on real runs, and archives made to hurt."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_nets
from archives import bomb, read_apart, with_false_size
from torch import nn

from convlint.readers import ReadOptions
from convlint.readers.symbolic_size import evaluate
from convlint.readers.torch_export import read

pytestmark = pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::DeprecationWarning", "ignore:Using padding", "ignore:No complete"
)


def exported(folder: Path, module: nn.Module, shape: tuple[int, ...], **options: Any) -> str:
    path = str(folder / "model.pt2")
    decompose = options.pop("decompose", False)
    program = torch.export.export(module.eval(), (torch.zeros(shape),), **options)
    torch.export.save(program.run_decompositions() if decompose else program, path)
    return path


def message(path: Path | str, **options: Any) -> str:
    network, errors = read(str(path), ReadOptions(**options))
    assert network is None
    assert len(errors) == 1
    return errors[0].message


@pytest.mark.parametrize("decompose", [False, True])
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("UNet", (2, 3, 32, 32)), ("ResNeXt", (2, 3, 32, 32)), ("Video", (2, 3, 8, 16, 16)), ("Generator", (2, 100)),
        ("resnet", (2, 3, 64, 64)),
    ],
)  # fmt: skip
def test_every_convolution_as_forward_hooks_see_it(
    tmp_path: Path, name: str, shape: tuple[int, ...], decompose: bool
) -> None:  # fmt: skip
    module = getattr(torch_nets, name)()
    path = exported(tmp_path, module, shape, decompose=decompose)
    expected = torch_nets.hooked(module, torch.zeros(shape))
    network, errors = read(path, ReadOptions())
    assert errors == ()
    assert network is not None
    assert [
        {key: getattr(layer, key) for key in want} for layer, want in zip(network.layers, expected, strict=True)
    ] == expected  # fmt: skip
    assert [layer.node for layer in network.layers] == [want["name"] for want in expected]
    assert network.runtime.framework == "pytorch"


def test_symbolic_and_fixed_sizes(tmp_path: Path) -> None:
    free = {0: torch.export.Dim("batch"), 2: torch.export.Dim("height", min=8)}
    path = exported(tmp_path, torch_nets.ResNeXt(), (2, 3, 32, 32), dynamic_shapes=(free,))
    network, errors = read(path, ReadOptions(inputs={"": "64x3x224x32"}))
    assert errors == ()
    assert network is not None
    assert [(layer.N, layer.H, layer.P, layer.Q) for layer in network.layers[:2]] == [
        (64, 224, 112, 16),
        (64, 112, 112, 16),
    ]
    network, errors = read(path, ReadOptions(batch=8))
    assert len(errors) == 1
    assert "is 8x3x?x32" in errors[0].message
    assert network is not None
    assert network.layers[0].H is None
    assert "fixed at 3" in message(path, inputs={"x": "8x4x32x32"})
    assert "no input 'y'" in message(path, inputs={"y": "8x3x32x32"})
    assert "fixed at 2" in message(exported(tmp_path, torch_nets.UNet(), (2, 3, 32, 32)), batch=4)


def test_layout_and_norms(tmp_path: Path) -> None:
    module = torch_nets.UNet().to(memory_format=torch.channels_last)
    network, _ = read(exported(tmp_path, module, (2, 3, 32, 32)), ReadOptions())
    assert network is not None
    assert {layer.layout for layer in network.layers} == {"NHWC"}
    assert [layer.name for layer in network.layers if layer.norm_follows] == [
        "down1.0",
        "down2.0",
        "middle.0",
        "dec2.0",
        "dec1.0",
    ]
    assert [layer.name for layer in network.layers if layer.head] == ["out"]


def test_torch_is_not_needed_and_nothing_is_unpickled(tmp_path: Path) -> None:
    path = exported(tmp_path, nn.Conv2d(3, 8, 3), (2, 3, 8, 8))
    code = (
        "import sys\nfrom convlint.readers import ReadOptions\nfrom convlint.readers.torch_export import read\n"
        f"print(len(read({path!r}, ReadOptions())[0].layers), 'torch' in sys.modules, 'pickle' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split()[:2] == ["1", "False"]


def test_archives_made_to_hurt(tmp_path: Path) -> None:
    path = tmp_path / "bad.pt2"
    bomb(path, "m/models/model.json", 1 << 30)
    assert "the limit is" in read_apart("torch_export", path)
    with_false_size(path, "m/models/model.json", 200 << 20)
    assert read_apart("torch_export", path).startswith("0 [")
    deep = {"[" * 100_000: "nests too deep", "[" + "[]," * 2_000_000 + "[]]": "more entries", '{"a":': "not valid JSON"}
    for content, words in (*deep.items(), ("{}", "it has no graph"), ("[" + "9" * 5000 + "]", "not valid JSON")):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("m/models/model.json", content)
        assert words in read_apart("torch_export", path)
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


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Symbol('s0', positive=True, integer=True)", 7), ("Add(Mul(Integer(2), Symbol('s0')), Integer(-1))", 13),
        ("Add(Mul(Integer(2), Symbol('s0')), Integer(1))", 15), ("FloorDiv(Symbol('s0'), Integer(2))", 3), ("s0", 7),
        ("torch.utils._sympy.functions.FloorDiv(Symbol('s0'), Integer(0))", None), ("2*s0 + 1", 15), ("s1", None),
        ("__import__('os').system('true')", None), ("Mul(" * 500, None), ("(" * 1900, None), ("9" * 1900, None),
    ],
)  # fmt: skip
def test_symbolic_sizes(text: str, value: int | None) -> None:
    assert evaluate(text, {"s0": 7}) == value
