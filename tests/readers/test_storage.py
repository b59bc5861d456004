"""What models say of dtypes: fp32 that was only read from a file is stated by nobody."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import convlint
from onnx import TensorProto, helper
from onnx_graphs import model, save, value, weight

from convlint.model.layer import ConvLayer, Dtype
from convlint.model.network import Network
from convlint.readers import ReadOptions
from convlint.readers.inputs import decide, file_input
from convlint.readers.reading import Reading
from convlint.readers.storage import of_model


def stated(dtype: Dtype | None, inputs: dict[str, str]) -> bool:
    """Whether a layer of a model has a dtype that somebody stated."""
    layers = (ConvLayer(name="a", dtype=dtype), ConvLayer(name="b", dtype=Dtype.fp16))
    network = of_model(Network(path="m.onnx", layers=layers), ReadOptions(inputs=inputs), "storage")
    assert [layer.dtype for layer in network.layers] == [dtype, Dtype.fp16]
    assert network.layers[1].dtype_source == "stated"
    return network.layers[0].dtype_source == "stated"


@pytest.mark.parametrize(
    ("dtype", "inputs", "expected"),
    [
        (Dtype.fp32, {}, False),
        (Dtype.fp32, {"": "8x3x64x64"}, False),
        (Dtype.fp32, {"": "8x3x64x64:fp32"}, True),
        (Dtype.fp32, {"": "8x3x64x64", "mask": "8x1x64x64:float32"}, True),
        (Dtype.fp32, {"": "8x3x64x64:fp16"}, False),
        (Dtype.fp16, {}, True),  # stands there because somebody put it there
        (Dtype.fp64, {}, True),
        (Dtype.int8, {}, True),
        (None, {}, True),
    ],
)
def test_fp32_is_stated_by_the_user_alone(dtype: Dtype | None, inputs: dict[str, str], expected: bool) -> None:
    assert stated(dtype, inputs) is expected


def read(path: str | Path, **options: Any) -> list[tuple[Dtype | None, bool]]:
    with Reading() as reading:
        network, errors = reading.read(file_input(str(path)), ReadOptions(**options))
    assert all("left without sizes" in error.message for error in errors)
    assert network is not None
    return [(layer.dtype, layer.dtype_source == "stated") for layer in network.layers]


def test_what_a_spec_says_is_stated(tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    path.write_text("version: 1\ndefaults: { dtype: fp32 }\nlayers:\n  - { name: a, C: 8, K: 8, R: 3, S: 3 }\n")
    assert read(path) == [(Dtype.fp32, True)]


@pytest.mark.parametrize(
    ("dtype", "size", "expected"), [("F32", 4, (Dtype.fp32, False)), ("F16", 2, (Dtype.fp16, True))]
)
def test_weights_alone_state_nothing(dtype: str, size: int, expected: tuple[Dtype, bool], tmp_path: Path) -> None:
    header = json.dumps({"a.weight": {"dtype": dtype, "shape": [8, 8, 3, 3], "data_offsets": [0, 576 * size]}}).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(576 * size))
    assert read(path) == [expected]


def graph(folder: Path, *, half: bool = False, sized: bool = False) -> str:
    """Five convolutions, of odd widths, in a file that fixes the sizes of its input or leaves them open."""
    widths = (3, 62, 62, 128, 100, 513)
    nodes = [
        helper.make_node("Conv", [f"x{n}", f"w{n}"], [f"x{n + 1}"], name=f"c{n}", pads=[1, 1, 1, 1]) for n in range(5)
    ]
    dtype: Any = np.float16 if half else np.float32
    weights = [weight(f"w{n}", [widths[n + 1], widths[n], 3, 3], dtype) for n in range(5)]
    shape: list[int | str] = [64, 3, 56, 56] if sized else ["N", 3, "H", "W"]
    kind = TensorProto.FLOAT16 if half else TensorProto.FLOAT
    proto = model(nodes, [value("x0", shape, kind)], [value("x5", None, kind)], weights)
    return save(folder, proto, f"{'sized' if sized else 'open'}_{'half' if half else 'single'}.onnx")


def test_an_onnx_file_in_fp32_states_nothing(tmp_path: Path) -> None:
    assert set(read(graph(tmp_path))) == {(Dtype.fp32, False)}
    assert set(read(graph(tmp_path, half=True))) == {(Dtype.fp16, True)}
    assert set(read(graph(tmp_path), inputs={"": "64x3x56x56:fp32"})) == {(Dtype.fp32, True)}


def warnings(path: str, *options: str) -> list[tuple[str, str]]:
    """(code, layer) of the warnings on a model."""
    report = json.loads(convlint("check", path, "--isolated", "-o", "json", "--gpu", "a100", *options).out)
    assert all("left without sizes" in error["message"] for error in report["errors"])
    return sorted(
        (found["code"], layer)
        for found in report["findings"]
        if found["severity"] != "info"
        for layer in found["layers"] or [found["layer"]]
    )


@pytest.mark.parametrize("half", [False, True])
def test_a_model_without_sizes_has_no_more_warnings_than_one_with_them(half: bool, tmp_path: Path) -> None:
    sized = warnings(graph(tmp_path, half=half, sized=True))
    unsized = warnings(graph(tmp_path, half=half))
    assert set(unsized) <= set(sized)
    assert warnings(graph(tmp_path, half=half), "--input", "64x3x56x56") == sized
    assert bool(sized) is half  # what is wrong with the widths is wrong, but nobody said that fp32 runs


def test_what_rests_on_fp32_that_nobody_stated_is_info_and_saves_nothing(tmp_path: Path) -> None:
    path = graph(tmp_path, sized=True)
    report = json.loads(convlint("check", path, "--isolated", "-o", "json", "--gpu", "v100").out)
    priced = [found for found in report["findings"] if found["code"] in ("CL106", "CL401", "CL102")]
    assert {found["severity"] for found in priced} == {"info"}
    assert not any(found["advised"] for found in priced)
    assert report["summary"]["time_after_us"] == report["summary"]["time_us"]
    told = convlint("check", path, "--isolated", "-o", "concise", "--gpu", "v100", "--dtype", "fp32")
    assert re.findall(r"warning (CL106) ", told.out) == ["CL106"]


def test_a_module_runs_what_its_weights_are_unless_autocast_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its layout and its widths are flaws whatever the dtype; that 16 bits are faster is for the training loop."""
    (tmp_path / "fp32_net.py").write_text(
        "from torch import nn\n\ndef net():\n    return nn.Sequential(nn.Conv2d(64, 250, 3), nn.Conv2d(250, 256, 3))\n"
    )
    monkeypatch.chdir(tmp_path)
    with Reading() as reading:
        network, errors = reading.read(decide("fp32_net:net"), ReadOptions(inputs={"": "32x64x56x56"}))
    assert network is not None
    assert not errors
    assert [(layer.dtype, layer.dtype_source) for layer in network.layers] == [(Dtype.fp32, "module")] * 2
    options = ("--isolated", "-o", "json", "--gpu", "a100")
    report = json.loads(convlint("check", "fp32_net:net", *options, "--input", "32x64x56x56").out)
    found = {finding["code"]: (finding["severity"], finding["advised"]) for finding in report["findings"]}
    assert found["CL401"] == ("warning", True)
    assert found["CL106"] == ("info", False)
    report = json.loads(convlint("check", "fp32_net:net", *options, "--input", "32x64x56x56:fp32").out)
    found = {finding["code"]: (finding["severity"], finding["advised"]) for finding in report["findings"]}
    assert found["CL106"] == ("warning", True)
