"""The PyTorch reader against forward hooks on real runs, and against code that misbehaves."""

import importlib
import inspect
import json
import linecache
import os
import subprocess
import sys
from collections import OrderedDict, deque, namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import named_groups
import pytest
import torch
import torch_nets
from cases import sampled
from checkout import ROOT
from command_line import convlint
from read_inputs import refusal, sound
from torch import nn

from convlint.estimate.passes import running_passes
from convlint.estimate.step import Steps, step_of
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import PASSES, ConvLayer
from convlint.model.network import Network
from convlint.model.runtime import Runtime
from convlint.readers import find_format
from convlint.readers.spec.reader import read_spec
from convlint.readers.spec.writing import spec_text
from convlint.readers.torch import module
from convlint.readers.torch.module import edited_sources, read, tensors_in
from convlint.readers.torch.trace import Trace

A, B = torch.zeros(1), torch.zeros(2)
Pair = namedtuple("Pair", "first second")


@dataclass
class Held:
    """A dataclass."""

    maps: Any
    name: str = "x"


@dataclass(slots=True)
class Slotted:
    """One without a __dict__."""

    maps: Any


def held_by_itself() -> list[Any]:
    value: list[Any] = [A]
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (A, [A]), ([A, (B, None)], [A, B]), ({"a": [A], "b": {"c": B}}, [A, B]), (OrderedDict(a=A), [A]),
        (Pair(A, B), [A, B]), (Held([A, Held(B)]), [A, B]), (Slotted({"a": A}), [A]), (SimpleNamespace(x=A), [A]),
        (torch.distributions.Normal(A, A + 1, validate_args=False), None), ({A}, [A]), ((A, A), [A]),
        (held_by_itself(), [A]), (deque([A]), [A]), ((index for index in ()), []),
        (None, []), (3, []), ("text", []), (nn.Conv2d(3, 8, 1), []), (Held, []), (torch, []), (lambda: A, []),
    ],
)  # fmt: skip
def test_tensors_are_found(value: Any, found: list[Any] | None) -> None:
    tensors = tensors_in(value)
    assert tensors is not None
    ids = {id(tensor) for tensor in tensors}
    if found is None:
        assert id(value.loc) in ids
        assert len(ids) == 2
    else:
        assert ids == {id(tensor) for tensor in found}


def test_looking_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OBJECTS", 10)
    assert tensors_in([A, *map(str, range(8))]) == [A]
    assert tensors_in([A, *map(str, range(9))]) is None


def test_models_of_transformers_return_mappings_of_their_own() -> None:
    from transformers.modeling_outputs import BaseModelOutput

    tensors = tensors_in(BaseModelOutput(last_hidden_state=A, hidden_states=(B,)))
    assert tensors is not None
    assert {id(tensor) for tensor in tensors} == {id(A), id(B)}


PACKAGE = "edited_package"


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "width.py").write_text("WIDTH = 60\n")
    (folder / "net.py").write_text("from .width import WIDTH\n\n\ndef net():\n    return WIDTH\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]
    linecache.clearcache()
    importlib.invalidate_caches()


def imported(sources: dict[Path, bytes]) -> Any:
    _forget()
    with edited_sources({os.path.realpath(path): raw.decode("latin-1") for path, raw in sources.items()}):
        return importlib.import_module(f"{PACKAGE}.net")


def test_modules_are_imported_as_edited_and_know_their_files(package: Path) -> None:
    assert imported({}).net() == 60  # and there is bytecode now
    edited = {package / "width.py": b"WIDTH = 64\n"}
    assert imported(edited).net() == 64
    assert sys.modules[f"{PACKAGE}.width"].__file__ == str(package / "width.py")
    assert (package / "width.py").read_text() == "WIDTH = 60\n"
    assert imported({}).net() == 60  # bytecode of the edited source is not left behind


def test_lines_are_those_of_the_edited_source(package: Path) -> None:
    text = "# coding: latin-1\r\n\f\r\ndef net():\r\n    return 'größe'\r\n"
    _forget()
    with edited_sources({os.path.realpath(package / "net.py"): text.encode("latin-1").decode("latin-1")}):
        net = importlib.import_module(f"{PACKAGE}.net").net
        assert net() == "größe"
        assert inspect.getsource(net) == "def net():\n    return 'größe'\n"
        assert linecache.getline(str(package / "width.py"), 1) == "WIDTH = 60\n"


def test_files_are_known_behind_links(package: Path, tmp_path: Path) -> None:
    (package / "width.py").rename(tmp_path / "real.py")
    (package / "width.py").symlink_to(tmp_path / "real.py")
    assert imported({tmp_path / "real.py": b"WIDTH = 128\n"}).net() == 128


pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "tests" / "helpers")


def one(reference: str, shape: str = "", **options: Any) -> Network:
    return sound(read, reference, **{"inputs": {"": shape}, **options})


def message(reference: str, shape: str = "2x3x8x8", **options: Any) -> str:
    return refusal(read, reference, inputs={"": shape} if shape else {}, **options)


def net(made: str, *forward: str) -> str:
    """A class, by the last line of its constructor and the lines of its forward pass."""
    run = "".join(f"        {line}\n" for line in forward)
    return f"class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  {made}\n def forward(self, x):\n{run}"


def line_of(mark: str) -> int:
    lines = Path(torch_nets.__file__).read_text().splitlines()
    return next(number for number, text in enumerate(lines, 1) if f"# line: {mark}" in text)


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
@pytest.mark.parametrize(
    ("name", "shape", "count"),
    sampled([
        ("UNet", (2, 3, 32, 32), 13), ("ResNeXt", (2, 3, 32, 32), 10), ("Video", (2, 3, 8, 16, 16), 3),
        ("Sound", (2, 2, 100), 2), ("Generator", (2, 100), 2), ("resnet", (2, 3, 64, 64), 53),
        ("convnext", (2, 3, 64, 64), 22), ("mobilenet", (2, 3, 64, 64), 52), ("segformer", (2, 3, 64, 64), 20),
        ("detr", (1, 3, 64, 64), 54),
    ], 4),
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


@pytest.mark.contract
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


@pytest.mark.contract
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


@pytest.mark.contract
def test_layout_and_dtype() -> None:
    plain = one("torch_nets:UNet", "2x3x32x32").layers
    assert {(layer.layout, layer.dtype) for layer in plain} == {("NCHW", "fp32")}
    half = one("torch_nets:half_channels_last", "2x3x32x32").layers
    assert {(layer.layout, layer.dtype) for layer in half} == {("NHWC", "fp16")}
    made = one("torch_nets:TwoInputs", "torch_nets:two_inputs").layers
    assert [(layer.layout, layer.N) for layer in made] == [("NHWC", 2)]


@pytest.mark.contract
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
    assert network.runtime.cuda_graphs is None
    assert one("torch_nets:UNet", "2x3x32x32").runtime.compile is None
    for name in ("compiled_in_place", "compiled_in_part", "compiled_into_graphs"):
        runtime = one(f"torch_nets:{name}", "2x3x32x32").runtime
        assert (runtime.compile, runtime.cuda_graphs) == (True, True)


def test_an_attribute_may_hide_the_method_that_lists_modules() -> None:
    assert [layer.name for layer in one("torch_nets:KeepsItsModules", "2x3x32x32").layers] == ["first"]


def test_autocast_that_is_made_before_the_forward_pass_holds_in_it() -> None:
    layers = one("torch_autocast_nets:Decorated", "2x8x32x32").layers
    assert [layer.dtype for layer in layers] == ["fp16", "bf16", "fp32"]


@pytest.mark.contract
def test_values_that_are_not_known() -> None:
    assert [layer.C for layer in one("torch_nets:Drops", "2x3x16x16").layers] == [3, 3, 3]
    text = message("torch_nets:Depends")
    assert "depends on the values of a tensor" in text
    assert "ONNX" in text
    assert "torch_nets.py:" in text


@pytest.mark.contract
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


@pytest.mark.contract
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


@pytest.mark.contract
def test_torch_is_as_it_was() -> None:
    before = torch.nn.modules.conv._ConvNd.__init__
    one("torch_nets:UNet", "2x3x32x32")
    message("torch_nets:Depends")
    assert torch.nn.modules.conv._ConvNd.__init__ is before
    assert not torch.compiler.is_exporting()
    assert isinstance(one("torch_nets:UNet", "2x3x32x32").layers[0], ConvLayer)


@pytest.fixture
def project(here: Path) -> Callable[[str, str], None]:
    """Writes a module, whose name no other test uses, into the folder that modules are imported from."""
    return lambda name, text: (here / f"{name}.py").write_text("from torch import nn\n" + text) and None


@pytest.mark.contract
def test_dtype_and_layout_of_the_inputs_are_those_of_the_module(project):
    """Half precision is what mixed precision makes of the convolutions of a module whose weights are in fp32."""
    project("lasting", "def net():\n    return nn.Conv2d(3, 8, 3)\n")
    assert [layer.dtype for layer in one("lasting:net", "2x3x8x8:fp16").layers] == ["fp16"]
    assert [layer.dtype for layer in one("lasting:net", "2x3x8x8").layers] == ["fp32"]
    assert [layer.layout for layer in one("lasting:net", "2x3x8x8:fp16:channels_last").layers] == ["NHWC"]
    assert "4 or 5 sizes" in message("lasting:net", "2x3x8:channels_last")


@pytest.mark.contract
def test_a_module_does_not_see_our_command_line(project, monkeypatch):
    project(
        "parser", "import argparse\nargparse.ArgumentParser().parse_args()\ndef net():\n    return nn.Conv2d(3, 8, 3)\n"
    )
    monkeypatch.setattr(sys, "argv", ["convlint", "check", "parser:net"])
    assert one("parser:net", "1x3x8x8").layers
    assert sys.argv == ["convlint", "check", "parser:net"]


def test_a_first_layer_of_one_channel_has_the_layout_that_it_writes(project):
    """Its input is the same in both, and what reads its output follows."""
    project(
        "spectrum",
        "def net():\n    return nn.Sequential(nn.Conv2d(1, 8, 3), nn.Conv2d(8, 1, 3), nn.Conv2d(1, 1, 3))\n",
    )
    assert [layer.layout for layer in one("spectrum:net", "2x1x9x9").layers] == ["NCHW", "NCHW", "auto"]
    layers = one("spectrum:net", "2x1x9x9:fp16:channels_last").layers
    assert [layer.layout for layer in layers][:2] == ["NHWC", "NHWC"]


def test_a_generator_of_one_pixel_has_the_layout_that_it_writes(project):
    project("dcgan", "def net():\n    return nn.Sequential(nn.ConvTranspose2d(8, 8, 4), nn.Conv2d(8, 8, 3))\n")
    assert [layer.layout for layer in one("dcgan:net", "2x8x1x1").layers] == ["NCHW", "NCHW"]


def test_maps_of_one_pixel_have_no_layout(project):
    """Squeeze-and-excite in a channels_last network: nothing is transposed in front of its 1x1 maps."""
    made = "self.a, self.squeeze, self.b = nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 3)"
    gate = "return self.b(x * self.squeeze(x.mean((2, 3), keepdim=True)))"
    project("squeeze", net(made, "x = self.a(x)", gate))
    layers = one("squeeze:Net", "2x8x16x16:fp16:channels_last").layers
    assert {layer.name: layer.layout for layer in layers} == {"a": "NHWC", "squeeze": "auto", "b": "NHWC"}


MODES = """
import torch


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.drop = nn.Conv2d(3, 64, 3), nn.Dropout(0.1)
        self.body = nn.Sequential(nn.Conv2d(64, 64, 3), nn.BatchNorm2d(64), nn.ReLU())
        self.aux = nn.Conv2d(64, 10, 1)

    def forward(self, x):
        x = self.body(self.drop(self.stem(x)))
        return (x, self.aux(x)) if self.training else x


class Turned(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)

    def forward(self, x):
        return self.up(x)


class Detector(Net):
    def forward(self, x, targets=None):
        assert not self.training or targets is not None, "targets should not be none when in training mode"
        return super().forward(x)


class Pooled(Net):
    def forward(self, x):
        return self.body[1](self.stem(x).mean((2, 3), keepdim=True))
"""


@pytest.fixture
def modes(project):
    project("modal", MODES)
    yield
    sys.modules.pop("modal", None)


@pytest.mark.usefixtures("modes")
def test_a_module_is_followed_in_the_mode_that_is_asked_for():
    assert [layer.name for layer in one("modal:Net", "8x3x32x32").layers] == ["stem", "body.0"]
    trained = one("modal:Net", "8x3x32x32", trains=True)
    assert [layer.name for layer in trained.layers] == ["stem", "body.0", "aux"]
    kinds = [operation.kind for operation in trained.operations]
    assert (kinds.count("batchnorm"), kinds.count("conv")) == (1, 3)  # dropout and running statistics hide no width


@pytest.mark.usefixtures("modes")
@pytest.mark.parametrize(
    ("name", "said"), [("Detector", "targets should not be none"), ("Pooled", "more than 1 value")]
)
def test_what_train_mode_needs_beside_is_said(name, said):
    found = message(f"modal:{name}", "1x3x8x8", trains=True)
    assert said in found
    assert found.endswith("--trace eval follows it as inference does")
    assert "--input package.module:function" in found
    assert [layer.name for layer in one(f"modal:{name}", "1x3x8x8").layers][:1] == ["stem"]


FIXED = """
import torch
from torch import nn

class Shift(nn.Conv2d):
    def __init__(self):
        super().__init__(3, 3, 1)
        self.weight.data = torch.eye(3).view(3, 3, 1, 1)
        self.bias.data = torch.Tensor([1.0, 2.0, 3.0])
        self.bias.data.div_(torch.Tensor([2.0]))

class Viewing(nn.Conv2d):
    def forward(self, x):
        norm = self.weight.view(self.weight.size(0), -1).norm()
        return self._conv_forward(x, self.weight / norm, self.bias)
"""


def test_weights_with_values_are_set_on_the_meta_device(project):
    project("fixed", FIXED)
    assert [layer.name for layer in one("fixed:Shift", "1x3x8x8").layers] == [""]
    sys.modules.pop("fixed", None)


def test_a_view_that_channels_last_refuses_is_no_matter_of_targets(project):
    project("fixed", FIXED)
    found = message("fixed:Viewing(4, 4, 3)", "1x4x8x8", trains=True, channels_last=True)
    assert "view size is not compatible" in found
    assert found.endswith(".reshape(), or .contiguous() before, works in every layout")
    sys.modules.pop("fixed", None)


HEADS = """
import torch
from torch import nn

class Head(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.conv, self.how = nn.Conv2d(4, 8, 3), how

    def forward(self, x):
        x = self.conv(x)
        if self.how == "view":
            return x.view(x.size(0), -1)
        if self.how == "reshape":
            return x.reshape(x.size(0), -1)
        if self.how == "flatten":
            return x.flatten(1)
        if self.how == "pooled":
            return x.mean((2, 3), keepdim=True).view(x.size(0), -1)
        if self.how == "flattened":
            return x.flatten(2).view(x.size(0), -1)
        if self.how == "filter":
            return x + self.conv.weight.view(-1).norm()
        return x.view(x.size(0), x.size(1), -1)
"""


@pytest.mark.parametrize(
    ("how", "line"),
    [
        ("view", 14),
        ("flattened", 22),
        ("filter", 24),
        ("reshape", 0),
        ("flatten", 0),
        ("pooled", 0),
        ("keeps channels", 0),
    ],
)
def test_a_view_that_would_refuse_channels_last_is_found(project, how: str, line: int):
    project("heads", HEADS)
    here = one(f"heads:Head('{how}')", "1x4x8x8").rigid_view
    assert here.rpartition("heads.py:")[2] == (str(line) if line else "")
    if not line:  # it runs in that layout
        assert one(f"heads:Head('{how}')", "1x4x8x8", channels_last=True).layers
    sys.modules.pop("heads", None)


def test_lazy_modules_run_in_channels_last(project):
    project("lazily", "from torch import nn\nclass Net(nn.Sequential):\n    def __init__(self):\n"
                      "        super().__init__(nn.LazyConv2d(8, 3), nn.Flatten(), nn.LazyLinear(9))\n")  # fmt: skip
    network = one("lazily:Net", "1x4x8x8", channels_last=True)
    assert [(layer.C, layer.K) for layer in network.layers] == [(4, 8)]
    sys.modules.pop("lazily", None)


@pytest.mark.usefixtures("modes")
@pytest.mark.parametrize(
    ("name", "shape", "said"),
    [
        ("Net", "8x4x32x32", "Given groups=1, weight of size [64, 3, 3, 3], expected input[8, 4, 32, 32] to have 3 "
         "channels, but got 4 channels instead at modal.py:14, in stem (Conv2d)"),
        ("Net", "4x32x32", "expected input[1, 4, 32, 32] to have 3 channels, but got 4 channels instead"),
        ("Turned", "8x3x32x32", "Given transposed=1, weight of size [16, 8, 2, 2], expected input[8, 3, 32, 32] to "
         "have 16 channels, but got 3 channels instead at modal.py:24, in up (ConvTranspose2d)"),
    ],
)  # fmt: skip
def test_a_wrong_number_of_channels_is_said_as_torch_says_it_with_the_layer(name, shape, said):
    for trains in (False, True):
        found = message(f"modal:{name}", shape, trains=trains)
        assert said in found
        assert "--trace" not in found


def test_what_torch_says_of_channels_elsewhere_is_what_is_said_here():
    for layer, shape in ((torch.nn.Conv2d(6, 4, 3, groups=2), (1, 4, 9, 9)), (torch.nn.Conv1d(6, 4, 3), (4, 9)),
                         (torch.nn.ConvTranspose2d(6, 4, 3), (1, 4, 9, 9))):  # fmt: skip
        with pytest.raises(RuntimeError) as caught:
            layer(torch.zeros(shape))
        root = torch.nn.Sequential(layer).to("meta")
        with pytest.raises(RuntimeError) as ours, torch.inference_mode(), Trace(root):
            root(torch.zeros(shape, device="meta"))
        assert str(ours.value) == str(caught.value)


@pytest.mark.usefixtures("modes")
def test_an_image_without_a_batch_is_known_as_such():
    assert one("modal:Net", "1x3x32x32").unbatched == ""
    alone = one("modal:Turned", "16x9x9")
    assert (alone.unbatched, alone.layers[0].N) == ("16x9x9", 1)


@pytest.mark.contract
@pytest.mark.usefixtures("modes")
def test_an_image_without_a_batch_has_the_widths_of_one_in_a_batch_of_one():
    """Widths that layers share are one number in both, and a batch norm does not refuse it."""
    alone, batched = one("modal:Net", "3x32x32"), one("modal:Net", "1x3x32x32")
    assert alone.unbatched == "3x32x32"
    assert alone.edges == batched.edges != ()
    assert named_groups.members(alone, "stem") == named_groups.members(batched, "stem") != (set(), {})


def test_a_convolution_without_a_batch_inside_says_nothing_of_the_input(project):
    made = "self.a, self.b = nn.Conv2d(3, 8, 3), nn.Conv1d(8, 8, 1)"
    project("inside", net(made, "return self.b(self.a(x)[0].flatten(1))"))
    assert one("inside:Net", "8x3x32x32").unbatched == ""


WHOLE = """
import torch
from torch.nn import functional as F


class Squeezed(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU())
        self.pools = nn.Sequential(nn.MaxPool2d(3, 2, 1), nn.AvgPool2d(2))
        self.squeeze, self.excite = nn.Conv2d(64, 16, 1), nn.Conv2d(16, 64, 1)
        self.body = nn.Conv2d(64, 128, 3, padding=1)
        self.head = nn.Linear(128 * 8 * 8, 10, bias=False)

    def forward(self, x):
        x = self.pools(self.stem(x))
        x = x * torch.sigmoid(self.excite(F.relu(self.squeeze(x.mean((2, 3), keepdim=True)))))
        return self.head(self.body(x).flatten(1))


class LastChannels(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.depthwise = nn.Conv2d(3, 96, 4, 4), nn.Conv2d(96, 96, 7, padding=3, groups=96)
        self.norm, self.up, self.down = nn.LayerNorm(96), nn.Linear(96, 384), nn.Linear(384, 96)
        self.gamma = nn.Parameter(torch.ones(96, 1, 1))

    def forward(self, x):
        x = self.stem(x)
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        return x + self.gamma * self.down(F.gelu(self.up(y))).permute(0, 3, 1, 2)


class Cut(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 16, 3), nn.Conv2d(16, 32, 3), nn.Conv2d(8, 8, 1)

    def forward(self, x):
        x = self.b(F.pad(torch.tanh(self.a(x))[:, :, ::2, 1:], (0, 1, 2, 0)))
        return self.c(F.pixel_shuffle(torch.sigmoid(x), 2))


class Neck(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.fc = nn.Conv2d(3, 62, 3), nn.BatchNorm1d(62), nn.Linear(62, 10)

    def forward(self, x):
        return self.fc(self.norm(F.relu(self.a(x)).mean((2, 3))))


class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 64, 3), nn.Conv2d(32, 32, 1), nn.Conv2d(64, 64, 1)
        self.norm = nn.BatchNorm2d(64)

    def forward(self, x):
        left, right = F.relu(self.norm(self.a(x))).chunk(2, 1)
        x = F.relu(self.c(torch.cat([left, self.b(right)], 1)))
        return self.b(x[:, :32].narrow(2, 0, 8)), x[:, 16:], x[:, :, 2]


class Shuffled(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 64, 3), nn.Conv2d(32, 64, 1)
        self.norm, self.c = nn.BatchNorm2d(64), nn.Conv2d(64, 64, 1, groups=2)

    def forward(self, x):
        x = F.relu(self.norm(self.a(x)))
        n, c, h, w = x.shape
        x = x.view(n, 2, c // 2, h, w).transpose(1, 2).contiguous().view(n, c, h, w)
        left, right = x.chunk(2, 1)
        x = self.c(F.relu(self.b(left.contiguous())))
        return self.c(x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)), F.relu(right)


class Affine(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 64, 3), nn.Conv2d(64, 8, 1)
        self.gain = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return self.b(F.relu(self.a(x)) * self.gain + 0.5)
"""


@pytest.mark.parametrize("mode", ["training", "inference"])
@pytest.mark.parametrize("name", ["Squeezed", "LastChannels", "Cut", "Neck", "Parts", "Shuffled", "Affine"])
def test_the_spec_of_a_module_has_the_whole_step_of_the_module(project, name, mode):
    project("entire", WHOLE)
    network = one(f"entire:{name}", "32x3x64x64:fp16")
    found = read_spec(spec_text(network), "entire.yaml")[0]
    assert found is not None
    gpu = load_gpu("h100")
    for runtime in Runtime(framework="pytorch"), Runtime(framework="pytorch", compile=True):
        steps = [step_of(Steps(each, each.layers, 0.0, runtime, mode), gpu) for each in (network, found)]
        assert None not in steps
        assert steps[1].parts == pytest.approx(steps[0].parts, rel=1e-3)


def test_the_spec_of_a_module_that_pads_channels_copies_them(project):
    made = "self.a, self.b = nn.Conv2d(3, 60, 3), nn.Conv2d(64, 64, 3)"
    forward = "return self.b(nn.functional.pad(self.a(x).relu(), (0, 0, 0, 0, 0, 4)))"
    project("pads", "import torch\nfrom torch import nn\n\n\n" + net(made, forward))
    network = one("pads:Net", "32x3x64x64:fp16")
    found = read_spec(spec_text(network), "pads.yaml")[0]
    assert found is not None
    assert (network.whole, found.whole) == (True, True)
    runtime, gpu = Runtime(framework="pytorch"), load_gpu("h100")
    steps = [step_of(Steps(each, each.layers, 0.0, runtime, "training"), gpu) for each in (network, found)]
    assert steps[1].parts["copy"] == pytest.approx(steps[0].parts["copy"], rel=0.1)


@pytest.mark.parametrize("trains", [True, None])
def test_the_module_of_an_exported_program_has_one_mode(project, trains):
    """Its train() and eval() raise NotImplementedError."""
    made = "return torch.export.export(nn.Conv2d(3, 8, 3), (torch.zeros(2, 3, 8, 8),)).module()"
    project("exported", f"import torch\nfrom torch import nn\n\n\ndef make():\n    {made}\n")
    (layer,) = one("exported:make", "2x3x8x8", trains=trains).layers
    assert (layer.C, layer.K, layer.H) == (3, 8, 8)


@pytest.mark.parametrize("product", ["nn.LayerNorm(62)", "nn.Linear(62, 62)"])
def test_the_spec_of_a_product_over_the_width_of_a_map_takes_it_for_no_channels(project, product):
    """As many channels as positions in a row: its layers must not become free to change."""
    made = f"self.a, self.norm, self.b = nn.Conv2d(3, 62, 3, padding=1), {product}, nn.Conv2d(62, 62, 3)"
    project("across", net(made, "return self.b(self.norm(self.a(x)).relu())"))
    network = one("across:Net", "32x3x62x62:fp16")
    found = read_spec(spec_text(network), "across.yaml")[0]
    assert found is not None
    assert named_groups.members(found, "a") == named_groups.members(network, "a")
    between = [[edge.producers for edge in each.edges if edge.producers] for each in (found, network)]
    assert between == [[(0,)], [(0,)]]


@pytest.mark.parametrize(("trains", "follows"), [(True, [True, False]), (None, [True, True])])
def test_a_norm_that_keeps_its_statistics_in_training_cancels_no_bias(trains: bool | None, follows: list[bool]) -> None:
    layers = one("torch_nets:FrozenNorm", "2x3x8x8", trains=trains).layers
    assert [layer.norm_follows for layer in layers] == follows  # in eval mode, nobody can tell


@pytest.mark.parametrize(("trains", "kinds"), [(True, ["batch norm", "frozen norm"]), (None, ["batch norm"] * 2)])
def test_a_spec_says_which_norm_keeps_its_statistics_in_training(trains: bool | None, kinds: list[str]) -> None:
    network = one("torch_nets:FrozenNorm", "2x3x8x8", trains=trains)
    found = read_spec(spec_text(network), "net.yaml")[0]
    assert found is not None
    for each in network, found:
        assert [(step.work.kind, step.work.weights) for step in each.operations if step.work] == [
            (kind, 16) for kind in kinds
        ]
    assert [layer.norm_follows for layer in found.layers] == [layer.norm_follows for layer in network.layers]


def test_a_spec_says_which_norms_do_not_learn_behind_layers_that_do() -> None:
    """As detectors freeze norms: a norm with frozen weights reads less on the way back."""
    network = one("torch_nets:frozen_norm_weights", "2x3x8x8", trains=True)
    found = read_spec(spec_text(network), "net.yaml")[0]
    assert found is not None
    for each in network, found:
        assert [step.learns for step in each.operations if step.work] == [True, False]


@pytest.mark.parametrize("trains", [True, None])
def test_lazy_layers_get_their_sizes_from_the_input(trains: bool | None) -> None:
    network = one("torch_nets:lazy", "2x3x8x8", trains=trains)
    assert [(layer.C, layer.K, layer.H, layer.norm_follows) for layer in network.layers] == [(3, 8, 8, True)]
    assert network.whole


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize(
    ("name", "trains", "words"),
    [
        ("wholly_frozen", True, "no convolution learns (requires_grad, torch.no_grad()); training is priced as if all"),
        ("wholly_frozen", None, ""),  # as whoever runs a network sets it
        ("weight_normed", None, "1 operation on weights alone, as of weight normalisation, is in no time of the step"),
        ("Checkpointed", True, "activation checkpointing is not priced"),
        ("Checkpointed(use_reentrant=True)", True, "activation checkpointing is not priced"),
        ("UNet", True, ""),
    ],
)
def test_what_of_a_module_is_not_priced_is_said(name: str, trains: bool | None, words: str) -> None:
    network = one(f"torch_nets:{name}", "2x3x32x32", trains=trains)
    assert [words in note for note in network.notes] == ([True] if words else [])
    # Weights that are computed of others keep nothing that matters.
    assert bool(network.training_keeps) is (bool(words) and name != "weight_normed")


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize(
    ("name", "passes", "note"),
    [
        ("partly_frozen", [("fprop",), ("fprop", "wgrad")], "1 of 2 convolutions does not learn"),
        ("Taught", [("fprop", "wgrad"), ("fprop",), ("fprop",)], "2 of 3 convolutions do not learn"),
        ("behind_frozen", [("fprop", "wgrad"), ("fprop", "dgrad"), PASSES], "1 of 3 convolutions does not learn"),
        ("detached", [("fprop",), ("fprop", "wgrad")], "1 of 2 convolutions does not learn"),
        ("frozen_norm_of_weights", [("fprop",), ("fprop", "wgrad")], "1 of 2 convolutions does not learn"),
        ("Checkpointed(use_reentrant=True)", [("fprop", "wgrad"), PASSES], ""),  # runs under no_grad, and again
        ("reversible", [("fprop", "wgrad"), PASSES, PASSES], ""),
        ("learning_norms", [("fprop",), *[("fprop", "dgrad")] * 2, PASSES], "3 of 4 convolutions do not learn"),
        ("FixedFilters", [("fprop", "wgrad"), ("fprop", "dgrad"), ("fprop", "dgrad")], "2 of 3 convolutions do not"),
        ("Scaled", [("fprop",), ("fprop", "dgrad")], "2 of 2 convolutions do not learn"),
    ],
)
def test_what_does_not_learn_has_no_wgrad(name: str, passes: list[tuple[str, ...]], note: str) -> None:
    network = one(f"torch_nets:{name}", "2x3x32x32", trains=True)
    assert [running_passes(layer, "training") for layer in network.layers] == passes
    assert [running_passes(layer, "inference") for layer in network.layers] == [("fprop",)] * len(passes)
    assert note in "".join(network.notes)
    spec, errors = read_spec(spec_text(network), "net.yaml")
    assert (spec is not None, errors) == (True, ())
    if name not in ("detached", "Scaled"):  # a spec does not say where gradients stop, nor which scales learn
        assert spec is not None
        assert [running_passes(layer, "training") for layer in spec.layers] == passes


def test_only_what_has_weights_is_called_frozen() -> None:
    """A frozen product of activations, such as attention, would lose its gradients."""
    network = one("torch_nets:partly_frozen", "2x3x32x32", trains=True)
    assert [(step.kind, step.frozen) for step in network.operations] == [
        ("input", False), ("conv", True), ("identity", False), ("conv", False)
    ]  # fmt: skip


def test_what_switches_gradients_off_and_on() -> None:
    network = one("torch_nets:Switched", "2x3x32x32", trains=True)
    assert {layer.name: layer.frozen for layer in network.layers} == {
        layer.name: layer.name.startswith("b.") for layer in network.layers
    }


def test_whoever_runs_a_network_without_gradients_does_not_train_it() -> None:
    network = one("torch_nets:Teacher", "2x3x32x32")
    assert (network.notes, network.training_keeps) == ((), "")


@pytest.mark.parametrize(("command", "key"), [("check", "networks"), ("estimate", "networks"), ("plan", "notes")])
def test_every_command_says_what_of_a_module_is_not_priced(command: str, key: str) -> None:
    options = ("--input", "2x3x32x32", "--gpu", "a100", "--mode", "training", "--dtype", "fp16")
    words = "activation checkpointing is not priced"
    text = convlint(command, "torch_nets:Checkpointed", *options)
    assert words in " ".join(text.out.split())
    if command == "estimate":  # nor what it keeps
        assert "memory: unknown for want of what checkpoints keep" in " ".join(text.out.split())
    assert words in str(json.loads(convlint(command, "torch_nets:Checkpointed", *options, "-o", "json").out)[key])
