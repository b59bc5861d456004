"""Layouts by strides: against PyTorch's own reading of them, and against real runs on the CPU."""

import importlib
import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from checkout import ROOT
from command_line import convlint
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch._prims_common import suggest_memory_format

from convlint.readers.torch.places import suggests_channels_last

SIZES = st.lists(st.sampled_from([1, 1, 2, 3, 8]), min_size=3, max_size=5)


@st.composite
def tensors(draw: st.DrawFn) -> torch.Tensor:
    """In one of the layouts, and then sliced, chunked, permuted or padded."""
    sizes = draw(SIZES)
    tensor = torch.empty(sizes, device="meta")
    order = {4: torch.channels_last, 5: torch.channels_last_3d}.get(len(sizes))
    if order is not None and draw(st.booleans()):
        tensor = torch.empty(sizes, device="meta", memory_format=order)
    axis = draw(st.integers(0, len(sizes) - 1))
    change = draw(st.sampled_from(["none", "narrow", "step", "permute", "expand"]))
    if change == "narrow":
        return tensor.narrow(axis, 0, max(1, tensor.shape[axis] // 2))
    if change == "step":
        return tensor[(slice(None),) * axis + (slice(None, None, 2),)]
    if change == "permute":
        return tensor.permute(draw(st.permutations(range(len(sizes)))))
    if change == "expand":
        return tensor.narrow(axis, 0, 1).expand(sizes)
    return tensor


@given(tensors())
def test_strides_suggest_what_torch_says_they_do(tensor: torch.Tensor) -> None:
    expected = suggest_memory_format(tensor) in (torch.channels_last, torch.channels_last_3d)
    assert suggests_channels_last(tensor.shape, tensor.stride()) == expected


class Mixed(nn.Module):
    """Whatever may keep or lose a layout, and a convolution behind each."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(8, 8, 3, padding=1) for _ in range(16))
        self.halves = nn.ModuleList(nn.Conv2d(4, 4, 1) for _ in range(3))
        self.one, self.depthwise = nn.Conv2d(8, 1, 1), nn.Conv2d(1, 8, 1)
        self.norm, self.groups, self.layer = nn.BatchNorm2d(8), nn.GroupNorm(2, 8), nn.LayerNorm(8)
        self.up, self.shuffle = nn.ConvTranspose2d(8, 8, 2, 2), nn.PixelShuffle(2)
        self.wide = nn.Conv2d(8, 32, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        f = nn.functional
        conv = iter(self.convs)
        x = next(conv)(x)
        a, b = x.chunk(2, 1)
        x = torch.cat((self.halves[0](a), self.halves[1](b)), 1)
        x = next(conv)(f.relu(self.norm(x)))
        a, b = x.split((4, 4), 1)
        x = next(conv)(torch.cat((a, self.halves[2](b)), 1))
        n, c, h, w = x.shape
        x = next(conv)(x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w))  # a channel shuffle
        x = next(conv)(f.max_pool2d(x, 2))
        x = next(conv)(f.interpolate(x, scale_factor=2.0, mode="nearest"))
        x = next(conv)(f.interpolate(x, scale_factor=2.0, mode="bilinear"))
        x = next(conv)(f.avg_pool2d(x, 2))
        x = next(conv)(x * torch.sigmoid(f.adaptive_avg_pool2d(x, 1)))
        x = next(conv)(self.layer(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2))
        x = next(conv)(self.shuffle(self.wide(x)))
        x = next(conv)(self.up(x))
        x = self.depthwise(self.one(x))
        x = next(conv)(f.pad(x, (1, 1, 1, 1)))
        x = next(conv)(x.contiguous())
        x = next(conv)(self.groups(x))
        return next(conv)(x[:, :, ::2].flip(3))


@pytest.fixture(scope="module")
def layouts() -> Any:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return importlib.import_module("layouts")
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def in_channels_last() -> nn.Module:
    return Mixed().to(memory_format=torch.channels_last)


@pytest.mark.parametrize("build", [Mixed, in_channels_last])
def test_operations_keep_and_lose_layouts_as_they_really_do(layouts: Any, build: Callable[[], nn.Module]) -> None:
    count, differing = layouts.compared(layouts.Subject(build, [(2, 8, 16, 16)]))
    assert count == 23
    assert differing == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_networks_run_in_the_layouts_that_are_traced(layouts: Any) -> None:
    """Those whose packages the tests have; benchmarks/layouts.py has 69."""
    names = [name for name in layouts.NETWORKS if name.startswith("transformers ")]
    assert len(names) == 5
    assert {name: layouts.compared(layouts.NETWORKS[name])[1] for name in names} == {name: [] for name in names}


BREAKS = """
import torch
from torch import nn


class Breaks(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(64, 64, 3, padding=1)
        self.b = nn.Conv2d(64, 64, 3, padding=1)
        self.norm = nn.GroupNorm(8, 64)

    def forward(self, x):
        x = torch.relu(self.a(x))
        x = x.contiguous()
        x = x + 1
        return self.b(x)


class Tokens(Breaks):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(64, 64)

    def forward(self, x):
        x = self.a(x)
        tokens = self.mix(x.flatten(2).transpose(1, 2))
        return self.b(tokens.transpose(1, 2).reshape(x.shape))


class Views(Breaks):
    def forward(self, x):
        x = self.a(x).permute(0, 2, 3, 1)
        return self.b(torch.relu(x).permute(0, 3, 1, 2))


class Shuffled(Breaks):
    def forward(self, x):
        x = self.a(x)
        n, c, h, w = x.shape
        return self.b(x.reshape(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w))


class Normed(Breaks):
    def forward(self, x):
        return self.b(torch.relu(self.norm(self.a(x))))


class Elsewhere(Breaks):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Parameter(torch.zeros(4, 64, 8, 8))

    def forward(self, x):
        for _ in range(60):  # tensors that come and go, and have to do with none of x
            self.embedding.to(memory_format=torch.channels_last).contiguous()
        x = self.a(x)
        for _ in range(60):
            x = x + 1
        return self.b(x)


class Convolved(Breaks):
    def forward(self, x):
        return self.b(self.a(x.contiguous()))
"""


def breaking(
    folder: Path, patched: pytest.MonkeyPatch, name: str, *, weights: bool, mode: str = "inference"
) -> tuple[list[dict[str, Any]], dict[str, float], str]:
    """CL402's findings, the time of each layer's fprop, and what is printed, of a module whose input is NHWC."""
    (folder / "breaks.py").write_text(BREAKS)
    (folder / "pyproject.toml").write_text(
        f'[[tool.convlint.models]]\nname = "net"\nmodel = "breaks:{name}"\ninputs = "128x64x56x56:fp16:channels_last"\n'
        f"channels_last = {str(weights).lower()}\n"
    )
    patched.chdir(folder)
    ran = convlint("check", "--models", "--mode", mode, "-o", "json")
    document = json.loads(ran.out)
    times = {layer["name"]: layer["estimates"][0]["time_us"] for layer in document["layers"]}
    return [finding for finding in document["findings"] if finding["code"] == "CL402"], times, ran.err


def test_a_copy_names_the_line_that_breaks_the_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,), _, _ = breaking(tmp_path, monkeypatch, "Breaks", weights=False)
    assert (
        found["message"]
        == "b is NCHW, but a, which it reads, is NHWC: the tensor is copied by contiguous() at breaks.py:15"
    )
    assert found["fix"]["set"] == {"layout": "NHWC"}
    assert found["fix"]["describe"] == "NHWC for b too, kept in contiguous() at breaks.py:15"


def test_a_copy_before_a_convolution_that_runs_nhwc_is_priced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,), times, _ = breaking(tmp_path, monkeypatch, "Breaks", weights=True)
    what = "what it reads is left in NCHW by contiguous() at breaks.py:15"
    assert found["message"].startswith(f"b runs in NHWC, but {what}")
    assert found["severity"] == "warning"
    assert found["advised"]
    assert times["b"] - times["a"] == pytest.approx(found["lost_us"])
    # 128x64x56x56 in 16 bits is 51.4 MB, more than A100's L2: read and written once, at 1,555 GB/s or no less than half
    assert 66 < found["lost_us"] < 132


@pytest.mark.parametrize("name", ["Tokens", "Views", "Elsewhere", "Convolved"])
@pytest.mark.parametrize("weights", [False, True])
def test_what_copies_nothing_between_convolutions_is_no_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, weights: bool
) -> None:
    found, times, said = breaking(tmp_path, monkeypatch, name, weights=weights)
    assert (found, said) == ([], "")
    assert len(times) == 2


def test_a_channel_shuffle_copies_where_its_views_are_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (found,), _, _ = breaking(tmp_path, monkeypatch, "Shuffled", weights=True)
    assert "left in NCHW by reshape at breaks.py:41" in found["message"]
    assert found["severity"] == "warning"


def test_an_operator_that_writes_nchw_is_named_and_promises_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (found,), times, _ = breaking(tmp_path, monkeypatch, "Normed", weights=True)
    assert found["message"].startswith("b runs in NHWC, but GroupNorm norm at breaks.py:")
    assert (found["severity"], found["lost_us"], found["advised"]) == ("info", None, False)
    _, other, _ = breaking(tmp_path, monkeypatch, "Breaks", weights=True)
    assert times["b"] == pytest.approx(other["b"])  # the copy is there all the same
    assert times["a"] > other["a"] + 66  # and so is the norm's own, of what a has written


def test_training_copies_the_input_for_wgrad_again_and_the_gradient(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (once,), _, _ = breaking(tmp_path, monkeypatch, "Breaks", weights=True)
    (thrice,), _, _ = breaking(tmp_path, monkeypatch, "Breaks", weights=True, mode="training")
    assert thrice["lost_us"] == pytest.approx(3 * once["lost_us"], rel=0.01)


class Tokenwise(nn.Module):
    """Two blocks as ConvNeXt's: what lies between the convolutions works on the channels, seen as the last axis."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm, self.mix = nn.Conv2d(3, 48, 4, 4), nn.LayerNorm(48), nn.Linear(48, 48)
        self.a, self.b = (nn.Conv2d(48, 48, 7, padding=3, groups=48) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.stem(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        x = x + self.mix(self.a(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return self.b(x)


@pytest.mark.parametrize("program", [False, True])
def test_a_residual_of_views_in_channels_last_is_no_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: bool
) -> None:
    module, image = Tokenwise().eval(), torch.zeros(2, 3, 64, 64)
    inputs: list[torch.Tensor] = []
    module.b.register_forward_pre_hook(lambda _, given: inputs.append(given[0]))
    module(image)
    assert inputs[0].is_contiguous(memory_format=torch.channels_last)
    path = str(tmp_path / "model.pt2")
    if program:
        torch.export.save(torch.export.export(module, (image,)), path)
        ran = convlint("check", path, "--dtype", "fp16", "--mode", "inference", "-o", "json")
    else:
        source = f"import torch\nfrom torch import nn\n\n{inspect.getsource(Tokenwise)}"
        (tmp_path / "tokenwise.py").write_text(source)
        monkeypatch.chdir(tmp_path)
        ran = convlint("check", "tokenwise:Tokenwise", "--input", "2x3x64x64:fp16", "-o", "json")
    document = json.loads(ran.out)
    assert [layer["layout"] for layer in document["layers"]] == ["NCHW", "NHWC", "NHWC"]
    assert [finding["layer"] for finding in document["findings"] if finding["code"] == "CL402"] == []
    a, b = (layer["estimates"][0]["time_us"] for layer in document["layers"][1:])
    assert a == b
