"""Engines of TensorRT as trtexec exports them: convolutions, formats, times, devices, and files that are none."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import convlint as run

from convlint.model.layer import ConvLayer
from convlint.model.network import Network
from convlint.readers import ReadOptions
from convlint.readers.trace.reader import read

HWC8 = "Channel major FP16 format where channel % 8 == 0"
DEVICE = {
    "Selected Device": "Tesla T4", "Compute Capability": 7.5, "SMs": 40.0, "Device Global Memory": "15109 MiB",
}  # fmt: skip


def tensor(name: str, sizes: list[int], stored: str = HWC8) -> dict[str, Any]:
    return {"Name": name, "Location": "Device", "Dimensions": sizes, "Format/Datatype": stored}


def conv(name: str, inputs: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "Name": name, "LayerType": "CaskConvolution", "Inputs": inputs, "Outputs": [tensor(f"{name}:0", [1])],
        "ParameterType": "Convolution", "Kernel": [3, 3], "PrePadding": [1, 1], "PostPadding": [1, 1], "Stride": [2, 2],
        "Dilation": [1, 1], "OutMaps": 64, "Groups": 1, "Weights": {"Type": "Half", "Count": 9}, "HasBias": 1,
        "TacticName": "sm75_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize128x64x32_tensor16x8x8",
        **more,
    }  # fmt: skip


STEM = conv("stem", [tensor("x", [8, 3, 224, 224], "Channel major FP16 format where channel % 4 == 0")])
BODY = conv("body + add", [tensor("stem:0", [8, 64, 112, 112]), tensor("y", [8, 96, 56, 56])], OutMaps=96, HasBias=0)
DEPTHWISE = conv(
    "dw", [tensor("z", [8, 96, 56, 56], "Thirty-two wide channel vectorized row major Int8 format")], Groups=96,
    OutMaps=96, Kernel=[5, 5], PrePadding=[2, 2], PostPadding=[2, 2], Stride=[1, 1], TacticName="",
    Weights={"Type": "Int8", "Count": 2400},
)  # fmt: skip
UP = conv("up", [tensor("w", [8, 96, 56, 56], "Row major linear FP32")], ParameterType="Deconvolution",
          Weights={"Type": "Float", "Count": 1}, TacticName="volta_sgemm_128x64_nn", Kernel=[2, 2],
          PrePadding=[0, 0], PostPadding=[0, 0])  # fmt: skip
REFORMAT = {"Name": "copy", "LayerType": "Reformat", "ParameterType": "Reformat", "Inputs": [], "Outputs": []}
TIMES = [
    {"count": 50}, {"name": "copy", "timeMs": 1, "averageMs": 0.02, "medianMs": 0.02, "percentage": 9},
    {"name": "stem", "timeMs": 10, "averageMs": 0.21, "medianMs": 0.2, "percentage": 30},
    {"name": "body + add", "timeMs": 10, "averageMs": 0.5, "percentage": 30},
]  # fmt: skip


def write(folder: Path, *, layers: Any = (REFORMAT, STEM, BODY, DEPTHWISE, UP), times: Any = TIMES,
          device: Any = DEVICE) -> Path:  # fmt: skip
    path = folder / "net.engine.graph.json"
    path.write_text(json.dumps({"Layers": list(layers), "Bindings": ["x"]}), encoding="utf-8")
    if times is not None:
        (folder / "net.engine.profile.json").write_text(json.dumps(times), encoding="utf-8")
    if device is not None:
        (folder / "net.engine.profile.metadata.json").write_text(
            json.dumps({"performance_summary": {}, "device_information": device}), encoding="utf-8"
        )
    return path


def network(path: Path) -> Network:
    found, errors = read(str(path), ReadOptions())
    assert not errors
    assert found is not None
    return found


def us(layer: ConvLayer) -> float | None:
    found = None if layer.measured is None else layer.measured.of("fprop")
    return None if found is None else found.us


def test_convolutions_have_their_sizes_formats_and_times(tmp_path: Path) -> None:
    found = network(write(tmp_path))
    assert (found.mode, found.runtime.framework, found.targets) == ("inference", "tensorrt", ("t4",))
    stem, body, depthwise, up = found.layers
    assert (stem.N, stem.C, stem.H, stem.K, stem.R, stem.U, stem.PadH, stem.P) == (8, 3, 224, 64, 3, 2, 1, 112)
    assert (stem.dtype, stem.layout, stem.bias, us(stem)) == ("fp16", "NHWC", True, 200.0)
    assert (body.name, body.residual_inputs, body.bias, us(body)) == ("body + add", 1, False, 500.0)
    assert (depthwise.groups, depthwise.dtype, depthwise.layout, us(depthwise)) == (96, "int8", "auto", None)
    assert (up.op, up.dtype, up.layout, up.P) == ("conv_transpose", "fp32", "NCHW", 112)
    measured = stem.measured.of("fprop")
    assert (measured.calls, measured.tensor_cores) == (50, True)
    assert found.notes == ("the whole engine: 720 us a run, of which 20 us in reformats of tensors",)


def test_every_command_takes_it_and_times_are_those_of_the_engine(here: Path) -> None:
    write(here, layers=(STEM, BODY))
    for command in ("check", "estimate", "plan", "export"):
        assert run(command, "net.engine.graph.json").code in (0, 1)
    document = json.loads(run("check", "net.engine.graph.json", "-o", "json").out)
    assert document["summary"]["time_us"] == pytest.approx(700.0)
    fprop = document["layers"][0]["estimates"][0]["passes"]["fprop"]
    assert (fprop["measured_us"], fprop["measured_tensor_cores"]) == (200.0, True)
    assert fprop["predicted_us"] > 0
    ran = run("measure", "--from-trace", "net.engine.graph.json")
    assert ran.code == 3
    assert "an engine of TensorRT" in ran.out


def test_without_times_or_a_device_it_is_predicted_or_asked_for(here: Path) -> None:
    assert "no times of the engine" in network(write(here, times=None)).notes[0]
    found = network(write(here, layers=(STEM, BODY), device=None))
    (here / "net.engine.profile.metadata.json").unlink()
    found = network(write(here, layers=(STEM, BODY), device=None))
    assert found.targets == ()
    assert found.notes[1] == "nothing says which GPU timed the engine: --gpu names it"
    document = json.loads(run("check", "net.engine.graph.json", "--gpu", "l4", "-o", "json").out)
    assert document["summary"]["time_us"] == pytest.approx(700.0)


def test_open_batches_are_set_as_of_any_model(here: Path) -> None:
    write(here, layers=(conv("a", [tensor("x", [-1, 64, 56, 56])]),), times=None, device=None)
    assert network(here / "net.engine.graph.json").layers[0].N is None
    document = json.loads(run("check", "net.engine.graph.json", "--batch", "16", "-o", "json").out)
    assert document["layers"][0]["N"] == 16


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"Layers": ["conv1", "conv2"]}', "its layers are names without sizes: build with trtexec --profilingVerb"),
        ('{"Layers": []}', "no convolution in the engine"), ('{"Layers": 7}', "no convolution in the engine"),
        ('{"Layers": [{"Name": "a"', "not a whole description of an engine"),
        ('{"Layers": [{"Name": "a", "ParameterType": "Convolution"}]}', "a: a convolution without the sizes"),
        ('[{"count": 3}, {"name": "a"}]', "times of an engine without its layers"),
    ],
)  # fmt: skip
def test_what_is_no_engine(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content, encoding="utf-8")
    found, (error,) = read(str(path), ReadOptions())
    assert found is None
    assert words in error.message
    ran = run("check", str(path))
    assert ran.code == 3
    assert "internal error" not in ran.out


@pytest.mark.parametrize("key", ["Name", "Inputs", "Kernel", "OutMaps", "Stride", "Groups", "Weights", "PrePadding"])
@pytest.mark.parametrize("value", [None, -1, 2**70, "x", [], [2**70, 1], {}, [None], True, [0, 0]])
def test_any_value_anywhere_is_an_error_or_unknown(tmp_path: Path, key: str, value: Any) -> None:
    found, errors = read(str(write(tmp_path, layers=({**STEM, key: value},))), ReadOptions())
    assert found is not None or errors
