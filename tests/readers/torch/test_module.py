"""The PyTorch reader against forward hooks on real runs, and against code that misbehaves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_nets
from checkout import ROOT

from convlint.model.layer import ConvLayer
from convlint.model.network import Network
from convlint.readers import ReadOptions, find_format
from convlint.readers.torch.module import read

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "tests" / "helpers")


def one(reference: str, shape: str = "", **options: Any) -> Network:
    inputs = options.pop("inputs", {"": shape})
    network, errors = read(reference, ReadOptions(inputs=inputs, **options))
    assert errors == ()
    assert network is not None
    return network


def message(reference: str, shape: str = "2x3x8x8", **options: Any) -> str:
    network, errors = read(reference, ReadOptions(inputs={"": shape} if shape else {}, **options))
    assert network is None
    assert len(errors) == 1
    assert errors[0].path == reference
    return errors[0].message


def line_of(mark: str) -> int:
    lines = Path(torch_nets.__file__).read_text().splitlines()
    return next(number for number, text in enumerate(lines, 1) if f"# line: {mark}" in text)


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
@pytest.mark.parametrize(
    ("name", "shape", "count"),
    [
        ("UNet", (2, 3, 32, 32), 13), ("ResNeXt", (2, 3, 32, 32), 10), ("Video", (2, 3, 8, 16, 16), 3),
        ("Sound", (2, 2, 100), 2), ("Generator", (2, 100), 2), ("resnet", (2, 3, 64, 64), 53),
        ("convnext", (2, 3, 64, 64), 22), ("mobilenet", (2, 3, 64, 64), 52), ("segformer", (2, 3, 64, 64), 20),
        ("detr", (1, 3, 64, 64), 54),
    ],
)  # fmt: skip
def test_every_convolution_as_forward_hooks_see_it(name: str, shape: tuple[int, ...], count: int) -> None:
    expected = torch_nets.hooked(getattr(torch_nets, name)(), torch.zeros(shape))
    layers = one(f"torch_nets:{name}", "x".join(map(str, shape))).layers
    assert [
        {key: getattr(layer, key) for key in want} for layer, want in zip(layers, expected, strict=True)
    ] == expected
    assert len(layers) == count
    assert {layer.calls for layer in layers} == {1}
    assert [layer.name for layer in layers if layer.first] == ([] if name == "Generator" else [layers[0].name])


def test_transformers_layers_point_at_the_call_of_the_library_and_name_its_line() -> None:
    from transformers.models.resnet import modeling_resnet

    built = {layer.library for layer in one("torch_nets:resnet", "8x3x64x64").layers}
    code = Path(modeling_resnet.__file__).read_text().splitlines()
    assert {line.rpartition(":")[0] for line in built} == {"transformers/models/resnet/modeling_resnet.py"}
    assert all("nn.Conv2d(" in code[int(line.rpartition(":")[2]) - 1] for line in built)
    for layer in one("torch_nets:resnet", "8x3x64x64").layers:
        place = layer.locate()
        text = Path(place.path).read_text().splitlines()[place.line - 1]
        assert place.path == "torch_nets.py"
        assert text[place.column - 1 : place.end_column - 1] == "ResNetModel(ResNetConfig())"


def test_places_names_and_calls() -> None:
    layers = one("torch_nets:Traps", "2x3x8x8").layers
    assert [(layer.name, layer.node, layer.calls, layer.H) for layer in layers] == [
        ("own", "own", 1, 8), ("shared", "shared", 3, 8), ("shared#2", "shared", 1, 4), ("conv2d", None, 1, 4),
    ]  # fmt: skip
    marks = ["own", "shared", "shared", "functional"]
    assert [(layer.path, layer.locate().line) for layer in layers] == [
        ("torch_nets.py", line_of(mark)) for mark in marks
    ]
    assert [layer.norm_follows for layer in layers] == [True, False, False, False]
    assert [layer.head for layer in layers] == [False, False, False, True]
    assert layers[3].groups == 2


def test_edges_follow_the_data() -> None:
    network = one("torch_nets:UNet", "2x3x32x32")
    names = [layer.name for layer in network.layers]
    edges = {names[edge.consumer]: [names[index] for index in edge.producers] for edge in network.edges}
    assert edges["down1.3"] == ["down1.0"]
    assert edges["dec2.0"] == ["down2.3", "up2"]
    assert edges["out"] == ["dec1.3"]
    for edge in network.edges:
        consumer = network.layers[edge.consumer]
        assert (edge.C, edge.H, edge.W) == (consumer.C, consumer.H, consumer.W)
        assert sum(network.layers[index].K for index in edge.producers) == edge.C
    slices = one("torch_nets:Slices", "2x3x8x8")
    assert [(edge.consumer, edge.producers) for edge in slices.edges] == [(1, (0,))]


def test_layout_and_dtype() -> None:
    plain = one("torch_nets:UNet", "2x3x32x32").layers
    assert {(layer.layout, layer.dtype) for layer in plain} == {("NCHW", "fp32")}
    half = one("torch_nets:half_channels_last", "2x3x32x32").layers
    assert {(layer.layout, layer.dtype) for layer in half} == {("NHWC", "fp16")}
    made = one("torch_nets:TwoInputs", "torch_nets:two_inputs").layers
    assert [(layer.layout, layer.N) for layer in made] == [("NHWC", 2)]


def test_forms_of_input() -> None:
    for inputs in (
        {"": "4x3x8x8,1:int64"}, {"": "4x3x8x8:fp32", "scale": "1"}, {"": "Nx3x8x8, 1:torch.int64"},
    ):  # fmt: skip
        assert [layer.N for layer in one("torch_nets:TwoInputs", inputs=inputs, batch=4).layers] == [4]
    assert "--input 256x3x224x224" in message("torch_nets:UNet", "")
    assert "neither a shape" in message("torch_nets:UNet", "big")
    assert "unknown dtype" in message("torch_nets:UNet", "2x3x8x8:fp17")
    assert "--batch" in message("torch_nets:UNet", "Nx3x8x8")
    assert "has no 'make_input'" in message("torch_nets:UNet", "torch_nets:make_input")


@pytest.mark.filterwarnings("ignore:`torch.jit")
def test_compiled_modules_are_looked_into() -> None:
    network = one("torch_nets:compiled", "2x3x32x32")
    assert len(network.layers) == 13
    assert network.runtime.compile is True
    assert network.runtime.framework == "pytorch"
    assert one("torch_nets:UNet", "2x3x32x32").runtime.compile is None


def test_values_that_are_not_known() -> None:
    assert [layer.C for layer in one("torch_nets:Drops", "2x3x16x16").layers] == [3, 3, 3]
    text = message("torch_nets:Depends")
    assert "depends on the values of a tensor" in text
    assert "ONNX" in text
    assert "torch_nets.py:" in text


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("torch_nets:UNett", "did you mean 'UNet'"), ("no_such:thing", "no module 'no_such'"),
        ("torch_nets.no_such:thing", "no module"),
        ("torch_nets.py:UNet", "a module is named as it is imported: torch_nets"),
        ("torch_nets:needs_arguments", "missing a required argument: 'width'"),
        ("torch_nets:not_a_module", "gives a int, not a torch.nn.Module"), ("torch_nets:number", "is a int"),
    ],
)  # fmt: skip
def test_references_that_lead_nowhere(reference: str, words: str) -> None:
    assert words in message(reference)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("raise ValueError('no\\nway')", "importing hostile raises ValueError: no at hostile.py:1"),
        ("import sys; sys.exit(0)", "importing hostile calls sys.exit(0) at hostile.py:1"),
        ("import not_there", "importing hostile raises ModuleNotFoundError"),
        ("def net(:", "importing hostile raises SyntaxError"),
        ("def net(): raise BaseException('x')", "building hostile:net raises BaseException: x"),
        ("def net(): exit()", "building hostile:net calls sys.exit(None)"),
        ("from torch import nn\nclass net(nn.Module):\n def forward(self, x): raise SystemExit(3)", "sys.exit(3)"),
        ("from torch import nn\nnet = nn.Conv2d(4, 4, 3)", "the forward pass raises RuntimeError"),
    ],
)
def test_code_that_misbehaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, words: str) -> None:
    (tmp_path / "hostile.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "hostile", raising=False)
    path, stdout = list(sys.path), sys.stdout
    assert words in message("hostile:net")
    assert (sys.path, sys.stdout) == (path, stdout)
    sys.modules.pop("hostile", None)


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"import sys\nsys.path.append({str(ROOT)!r})\n{code}"],
        cwd=folder, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip


def test_no_weights_are_allocated(tmp_path: Path) -> None:
    (tmp_path / "huge.py").write_text(
        "from torch import nn\nnet = nn.Conv2d(65536, 65536, 3)\ndef make(): return nn.Conv2d(65536, 65536, 3)\n"
    )
    code = (
        "from convlint.readers import ReadOptions\nfrom convlint.readers.torch.module import read\n"
        "for name in ('net', 'make'):\n"
        "    network, errors = read(f'huge:{name}', ReadOptions(inputs={'': '64x65536x32x32'}))\n"
        "    print(network.layers[0].K, errors)\n"
    )
    assert run(code, tmp_path).stdout == "65536 ()\n" * 2


def test_the_registry_knows_files_only() -> None:
    assert find_format("package.module:name") is None
    assert getattr(find_format("C:\\models\\a.onnx"), "module", None) == "onnx.reader"
    assert find_format("folder/no.suffix") is None


def test_torch_is_as_it_was() -> None:
    before = torch.nn.modules.conv._ConvNd.__init__
    one("torch_nets:UNet", "2x3x32x32")
    message("torch_nets:Depends")
    assert torch.nn.modules.conv._ConvNd.__init__ is before
    assert not torch.compiler.is_exporting()
    assert isinstance(one("torch_nets:UNet", "2x3x32x32").layers[0], ConvLayer)


def test_inputs_in_half_precision_cast_the_module(tmp_path, monkeypatch):
    """What mixed precision does to the convolutions of a module whose weights are kept in fp32."""
    (tmp_path / "halved.py").write_text("from torch import nn\ndef net():\n    return nn.Conv2d(3, 8, 3)\n")
    monkeypatch.chdir(tmp_path)
    network, errors = read("halved:net", ReadOptions(inputs={"": "2x3x8x8:fp16"}))
    assert not errors
    assert [layer.dtype for layer in network.layers] == ["fp16"]
    network, _ = read("halved:net", ReadOptions(inputs={"": "2x3x8x8"}))
    assert [layer.dtype for layer in network.layers] == ["fp32"]


def test_channels_last_inputs_make_channels_last_layers(tmp_path, monkeypatch):
    (tmp_path / "lasting.py").write_text("from torch import nn\ndef net():\n    return nn.Conv2d(3, 8, 3)\n")
    monkeypatch.chdir(tmp_path)
    network, _ = read("lasting:net", ReadOptions(inputs={"": "2x3x8x8:fp16:channels_last"}))
    assert [layer.layout for layer in network.layers] == ["NHWC"]
    _, errors = read("lasting:net", ReadOptions(inputs={"": "2x3x8:channels_last"}))
    assert "4 or 5 sizes" in errors[0].message


def test_a_module_does_not_see_our_command_line(tmp_path, monkeypatch):
    (tmp_path / "parser.py").write_text(
        "import argparse\nfrom torch import nn\nargparse.ArgumentParser().parse_args()\n"
        "def net():\n    return nn.Conv2d(3, 8, 3)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["convlint", "check", "parser:net"])
    _, errors = read("parser:net", ReadOptions(inputs={"": "1x3x8x8"}))
    assert not errors
    assert sys.argv == ["convlint", "check", "parser:net"]


def test_maps_of_one_pixel_have_no_layout(tmp_path, monkeypatch):
    """Squeeze-and-excite in a channels_last network: nothing is transposed in front of its 1x1 maps."""
    (tmp_path / "squeeze.py").write_text(
        "from torch import nn\n"
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.a, self.squeeze, self.b = nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 3)\n"
        "    def forward(self, x):\n"
        "        x = self.a(x)\n"
        "        return self.b(x * self.squeeze(x.mean((2, 3), keepdim=True)))\n"
    )
    monkeypatch.chdir(tmp_path)
    network, _ = read("squeeze:Net", ReadOptions(inputs={"": "2x8x16x16:fp16:channels_last"}))
    assert {layer.name: layer.layout for layer in network.layers} == {"a": "NHWC", "squeeze": "auto", "b": "NHWC"}
