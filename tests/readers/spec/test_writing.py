"""A network written as a spec reads back as the same layers."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import onnx
import pytest
from checkout import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from convlint.model.layer import ConvLayer, Dtype, with_output
from convlint.model.network import Network
from convlint.model.runtime import Runtime
from convlint.model.version import Version
from convlint.readers import ReadOptions
from convlint.readers.onnx import reader as onnx_model
from convlint.readers.spec import reader as yaml_spec
from convlint.readers.spec.writing import spec_text
from convlint.readers.torch import module as torch_module

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def bare(layer: ConvLayer) -> ConvLayer:
    """Without what a spec does not hold: where the layer stood, and what a format called it."""
    return replace(layer, path="", spans={}, node=None)


def back(network: Network, folder: Path) -> Network:
    path = folder / "spec.yaml"
    path.write_text(spec_text(network), encoding="utf-8")
    found, errors = yaml_spec.read(str(path), ReadOptions())
    assert errors == ()
    assert found is not None
    return found


def same(network: Network, folder: Path) -> None:
    found = back(network, folder)
    assert list(map(bare, found.layers)) == list(map(bare, network.layers))
    assert (found.mode, found.targets) == (network.mode, network.targets)
    assert replace(found.runtime, spans={}) == replace(network.runtime, spans={})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["densenet121", "resnet50", "shufflenet", "inception_v2"])
def test_onnx_graphs(tmp_path: Path, name: str) -> None:
    network, errors = onnx_model.read(str(LIGHT / f"light_{name}.onnx"), ReadOptions())
    assert errors == ()
    assert network is not None
    same(network, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "shape"), [("UNet", "2x3x32x32"), ("Traps", "2x3x8x8"), ("Video", "2x3x8x16x16"), ("Generator", "2x100")]
)
def test_torch_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, shape: str) -> None:
    monkeypatch.chdir(ROOT / "tests" / "helpers")
    monkeypatch.syspath_prepend(str(Path.cwd()))
    network, errors = torch_module.read(f"torch_nets:{name}", ReadOptions(inputs={"": shape}))
    assert errors == ()
    assert network is not None
    same(network, tmp_path)
    assert f"torch_nets.py:{network.layers[0].locate().line}\n" in spec_text(network)
    sys.modules.pop("torch_nets")


small = st.integers(1, 4)
pads = st.integers(0, 3)
NAMES = st.text(st.characters(codec="utf-8"), max_size=12)


@st.composite
def layers(draw: Any) -> ConvLayer:
    dims = draw(st.integers(1, 3))
    known = dims == 3 or draw(st.booleans())  # a spec has no way to say that D is unknown
    fields: dict[str, Any] = {"R": 1, "H": 1 if dims == 1 else None}
    for depth, (axis, taps, stride) in enumerate((("D", "T", "StrideD"), ("H", "R", "U"), ("W", "S", "V"))):
        if depth < 3 - dims:
            continue
        fields[axis] = draw(st.integers(1, 300)) if known else None
        fields[taps], fields[stride], fields[f"Dil{axis}"] = draw(small), draw(small), draw(small)
        fields[f"Pad{axis}"] = draw(pads)
        fields[f"Pad{axis}_end"] = draw(pads)
    op = draw(st.sampled_from(["conv", "conv_transpose"]))
    if op == "conv_transpose":
        fields |= {f"OutPad{axis}": draw(pads) for axis in "DHW"[3 - dims :]}
    layer = ConvLayer(
        name=draw(NAMES), dims=dims, op=op, N=draw(st.none() | st.integers(1, 512)),
        C=draw(st.none() | st.integers(1, 512)),
        K=draw(st.integers(1, 512)), groups=draw(small), dtype=draw(st.none() | st.sampled_from(Dtype)),
        layout=draw(st.sampled_from(["auto", "NCHW", "NHWC"])), bias=draw(st.none() | st.booleans()),
        norm_follows=draw(st.none() | st.booleans()), first=draw(st.booleans()), head=draw(st.booleans()),
        calls=draw(small), residual_inputs=draw(pads), **fields,
    )  # fmt: skip
    return with_output(layer)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(found=st.lists(layers(), max_size=5))
def test_any_layers(found: list[ConvLayer], tmp_path_factory: Any) -> None:
    read_back = back(Network(path="m", layers=tuple(found)), tmp_path_factory.mktemp("spec")) if found else None
    for before, after in zip(found, read_back.layers if read_back else (), strict=True):
        assert replace(bare(after), name="") == replace(bare(before), name="")
        assert before.name == after.name or not before.name.strip() or "#" in after.name


def test_names_that_a_spec_cannot_hold(tmp_path: Path) -> None:
    odd = [
        "",
        " ",
        "no",
        "1:30",
        "017",
        "a: b",
        "- x",
        "#",
        "a",
        "a",
        "a#2",
        "x" * 600,
        "tab\tnew\nline",
        "\x1b[31m",
        "{",
        "ü",
    ]
    odd += ["input of unknown size", "read by other operations", "null", "~", "&a", "*a", "!!python/object:os.system"]
    network = Network(path="m", layers=tuple(ConvLayer(name=name, K=8, R=3, S=3, norm_follows=False) for name in odd))
    names = [layer.name for layer in back(network, tmp_path).layers]
    assert len(set(names)) == len(odd)
    assert names[2:9] == odd[2:9]
    assert "\x1b" not in spec_text(network)


def test_runtime_mode_and_targets(tmp_path: Path) -> None:
    runtime = Runtime(framework="pytorch", cudnn=Version("8.9.2"), tf32=False, cudnn_benchmark=True, compile=True)
    layer = with_output(ConvLayer(name="a", N=8, C=64, H=8, W=8, K=8, R=1, S=1))
    same(Network(path="m", layers=(layer,), runtime=runtime, mode="inference", targets=("a100", "t4")), tmp_path)


def test_nothing_is_a_spec_too(tmp_path: Path) -> None:
    assert back(Network(path="m", layers=()), tmp_path).layers == ()


def test_a_path_in_a_comment_cannot_end_it(tmp_path: Path) -> None:
    layer = with_output(ConvLayer(name="a", K=8, R=1, S=1, path="m"))
    for odd in ("a\nlayers: []", "a\x85b", "a\u2028b", "::error ::x", "##vso[x].py", "a # b.py"):
        placed = replace(layer, path=odd, spans={"layer": (6, 1, 6, 2)})
        text = spec_text(Network(path="m", layers=(placed,)))
        assert len(text.splitlines()) == len(spec_text(Network(path="m", layers=(layer,))).splitlines())
        assert "##" not in text
        assert len(back(Network(path="m", layers=(placed,)), tmp_path).layers) == 1


def test_more_layers_than_one_item_reads(tmp_path: Path) -> None:
    layers = [ConvLayer(name="a", path="m", K=8, R=3, S=3, norm_follows=norm) for norm in (True, False) * 300]
    found = back(Network(path="m", layers=tuple(layers)), tmp_path)
    assert [layer.norm_follows for layer in found.layers] == [True, False] * 300


def test_a_volume_of_unknown_depth(tmp_path: Path) -> None:
    layer = ConvLayer(name="a", path="m", dims=3, C=3, D=None, H=None, W=None, K=8, T=3, R=3, S=3, Z=None)
    same(Network(path="m", layers=(layer,)), tmp_path)


@pytest.mark.slow
def test_many_layers_of_one_name_and_unknown_size() -> None:
    """The work is linear: names that are taken are not searched for again for each layer."""
    layers = [ConvLayer(name="a", path="m", K=8, R=3, S=3, norm_follows=False) for _ in range(20_000)]
    before = time.process_time()
    text = spec_text(Network(path="m", layers=tuple(layers)))
    assert time.process_time() - before < 20
    assert (text.count("name: a,"), text.count("name: a#")) == (1, 19_999)
