"""Traces of PyTorch's profiler: sizes, layouts, kernels and times of what ran, and what is no trace."""

import gzip
import json
import os
import re
import subprocess
import sys
import time
from math import exp, log
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from command_line import convlint as run
from hypothesis import given, settings
from hypothesis import strategies as st
from traces import ADD, DGRAD, FPROP, NCHW_TO_NHWC, SUM, WGRAD, TraceWriter

from convlint.model.layer import ConvLayer, Pass
from convlint.model.network import Network
from convlint.readers import ReadOptions
from convlint.readers.trace.reader import read

SHAPE, WEIGHT = (64, 256, 56, 56), (64, 256, 1, 1)


def network(path: Path) -> Network:
    found, errors = read(str(path), ReadOptions())
    assert errors == ()
    assert found is not None
    return found


def message(path: Path) -> str:
    _, errors = read(str(path), ReadOptions())
    return " ".join(error.message for error in errors)


def taken(layer: ConvLayer, which: Pass) -> tuple[float, float, float, float, float]:
    found = layer.measured.of(which)
    return found.us, found.convolution, found.transpose, found.bias, found.other


@pytest.mark.parametrize("at", [3, 5, 8])
def test_no_stride_dilation_or_groups_of_zero_are_read(at: int, tmp_path: Path) -> None:
    values = ["", "", "", "[1, 1]", "[0, 0]", "[1, 1]", "False", "[0, 0]", "1"]
    values[at] = values[at].replace("1", "0", 1)
    trace = TraceWriter()
    trace.conv(SHAPE, WEIGHT, [(FPROP, 1.0)], **{"Concrete Inputs": values})
    assert message(trace.write(tmp_path / "t.json"))


def test_a_call_has_its_sizes_its_layout_its_place_and_what_its_kernels_took(tmp_path: Path) -> None:
    trace = TraceWriter()
    kernels = [(NCHW_TO_NHWC, 100.0), (NCHW_TO_NHWC, 37.0), (FPROP, 300.0), (ADD, 14.0)]
    trace.conv((8, 64, 57, 57), (128, 64, 3, 3), kernels, stride=2, pad=1, bias=True, module="Conv2d_4",
               line="models/net.py(12): forward")  # fmt: skip
    found = network(trace.write(tmp_path / "t.json.gz"))
    (layer,) = found.layers
    assert (layer.name, layer.path, layer.locate().line) == ("Conv2d_4", "models/net.py", 12)
    sizes = (layer.N, layer.C, layer.H, layer.W, layer.K, layer.R, layer.S, layer.U, layer.PadH, layer.P, layer.groups)
    assert sizes == (8, 64, 57, 57, 128, 3, 3, 2, 1, 29, 1)
    assert (layer.dtype, layer.layout, layer.bias, layer.copies_input) == ("fp16", "NCHW", True, False)
    assert taken(layer, "fprop") == (451.0, 300.0, 137.0, 14.0, 0.0)
    assert (found.targets, found.mode, found.runtime.framework) == (("a100-40gb-sxm",), "inference", "pytorch")


def test_gradients_go_to_their_layer_and_their_pass(tmp_path: Path) -> None:
    trace = TraceWriter()
    for sequence in (1, 2):  # two layers of one size, which only their sequence numbers tell apart
        trace.conv(SHAPE, WEIGHT, [(FPROP, 10.0 * sequence)], sequence=sequence, module=f"Conv2d_{sequence}")
    for sequence in (2, 1):
        kernels = [(NCHW_TO_NHWC, 5.0), (DGRAD, 20.0 * sequence), (NCHW_TO_NHWC, 7.0), (WGRAD, 30.0 * sequence),
                   (SUM, 3.0)]  # fmt: skip
        trace.gradient(SHAPE, WEIGHT, kernels, sequence=sequence)
    found = network(trace.write(tmp_path / "t.json"))
    assert found.mode == "training"
    for number, layer in enumerate(found.layers, 1):
        assert layer.name == f"Conv2d_{number}"
        assert taken(layer, "fprop")[0] == 10.0 * number
        assert taken(layer, "dgrad") == (20.0 * number + 5, 20.0 * number, 5.0, 0.0, 0.0)
        assert taken(layer, "wgrad") == (30.0 * number + 10, 30.0 * number, 7.0, 3.0, 0.0)
    assert [layer.first for layer in found.layers] == [False, False]


def test_a_first_layer_has_no_gradient_of_its_input_and_what_names_no_pass_is_other(tmp_path: Path) -> None:
    trace = TraceWriter()
    trace.conv(SHAPE, WEIGHT, [(FPROP, 10.0)])
    trace.gradient(SHAPE, WEIGHT, [("ampere_sgemm_128x64_nt", 9.0)], mask="[False, True, False]")
    (layer,) = network(trace.write(tmp_path / "t.json")).layers
    assert layer.first
    assert taken(layer, "wgrad") == (9.0, 9.0, 0.0, 0.0, 0.0)
    both = TraceWriter()
    both.conv(SHAPE, WEIGHT, [(FPROP, 10.0)])
    both.gradient(SHAPE, WEIGHT, [("ampere_sgemm_128x64_nt", 9.0), (WGRAD, 4.0)])
    (layer,) = network(both.write(tmp_path / "u.json")).layers
    assert taken(layer, "dgrad") == (9.0, 0.0, 0.0, 0.0, 9.0)
    assert taken(layer, "wgrad") == (4.0, 4.0, 0.0, 0.0, 0.0)


def test_calls_of_all_steps_are_one_layer_without_those_that_try_algorithms(tmp_path: Path) -> None:
    trace = TraceWriter()
    for number, us in enumerate((900.0, 100.0, 104.0, 102.0)):
        begin = trace.now
        trace.conv(SHAPE, WEIGHT, [(FPROP, us)])
        trace.conv(SHAPE, WEIGHT, [(FPROP, 101.0)])
        trace.step(number, begin)
    (layer,) = network(trace.write(tmp_path / "t.json")).layers
    assert layer.calls == 2
    measured = layer.measured.of("fprop")
    assert (measured.us, measured.calls) == (101.0, 7)
    assert measured.spread == pytest.approx(0.5 / 101.0)


def test_channels_last_is_told_by_strides_and_weights_alone_copy_the_input(tmp_path: Path) -> None:
    trace = TraceWriter()
    trace.conv(SHAPE, WEIGHT, [(FPROP, 1.0)], nhwc=True)
    (layer,) = network(trace.write(tmp_path / "t.json")).layers
    assert (layer.layout, layer.copies_input) == ("NHWC", False)


@pytest.mark.parametrize("suffix", ["json", "json.gz", "pt.trace.json", "pt.trace.json.gz"])
def test_every_command_takes_it(here: Path, suffix: str) -> None:
    trace = TraceWriter()
    trace.conv(SHAPE, WEIGHT, [(NCHW_TO_NHWC, 60.0), (FPROP, 100.0)])
    trace.write(here / f"t.{suffix}")
    for command in ("check", "estimate", "plan", "export"):
        assert run(command, f"t.{suffix}").code in (0, 1)
    found = json.loads(run("check", f"t.{suffix}", "-o", "json").out)
    fprop = found["layers"][0]["estimates"][0]["passes"]["fprop"]
    assert (fprop["measured_us"], fprop["time_us"]) == (160.0, pytest.approx(160.0, abs=1e-3))
    assert fprop["measured_parts"] == {"convolution": 100.0, "transpose": 60.0, "bias": 0.0, "other": 0.0}
    assert found["layers"][0]["estimates"][0]["basis"] == "measured"
    elsewhere = json.loads(run("check", f"t.{suffix}", "-o", "json", "--gpu", "h100").out)
    assert "measured_us" not in elsewhere["layers"][0]["estimates"][0]["passes"]["fprop"]


# (C, K, filter, stride, map that it reads, how often) of ResNet-50
RESNET50 = [
    (3, 64, 7, 2, 224, 1), (64, 64, 1, 1, 56, 1), (64, 64, 3, 1, 56, 3), (64, 256, 1, 1, 56, 4), (256, 64, 1, 1, 56, 2),
    (256, 128, 1, 1, 56, 1), (128, 128, 3, 2, 56, 1), (128, 512, 1, 1, 28, 4), (256, 512, 1, 2, 56, 1),
    (512, 128, 1, 1, 28, 3), (128, 128, 3, 1, 28, 3), (512, 256, 1, 1, 28, 1), (256, 256, 3, 2, 28, 1),
    (256, 1024, 1, 1, 14, 6), (512, 1024, 1, 2, 28, 1), (1024, 256, 1, 1, 14, 5), (256, 256, 3, 1, 14, 5),
    (1024, 512, 1, 1, 14, 1), (512, 512, 3, 2, 14, 1), (512, 2048, 1, 1, 7, 3), (1024, 2048, 1, 2, 14, 1),
    (2048, 512, 1, 1, 7, 2), (512, 512, 3, 1, 7, 2),
]  # fmt: skip


def test_a_resnet50_whose_kernels_turn_nchw_around_is_advised_nhwc_at_what_was_measured(here: Path) -> None:
    trace = TraceWriter()
    whole = 0.0
    for C, K, size, stride, side, count in RESNET50:
        for _ in range(count):
            own = [(NCHW_TO_NHWC, 120.0), (NCHW_TO_NHWC, 10.0), (FPROP, 200.0)]
            trace.conv((128, C, side, side), (K, C, size, size), own, stride=stride, pad=size // 2)
            whole += 330.0
    trace.write(here / "resnet50.json.gz")
    document = json.loads(run("check", "resnet50.json.gz", "-o", "json").out)
    assert sum(layer["calls"] for layer in document["layers"]) == 53
    assert document["summary"]["time_us"] == pytest.approx(whole, rel=1e-4)
    (advice,) = (finding for finding in document["findings"] if finding["code"] == "CL401")
    assert advice["severity"] == "warning"
    assert 0.1 * whole < advice["lost_us"] < 0.6 * whole
    assert "measured 17.5 ms a step, of which 6.89 ms in transposes" in advice["message"]
    assert document["summary"]["time_after_us"] < whole


def test_what_pytorch_records_on_a_processor_is_read_but_for_kernels(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 16, 7, stride=2, padding=3)
        self.b = nn.Conv2d(16, 32, 3, padding=1, groups=2, bias=False)
        self.c = nn.ConvTranspose2d(32, 8, 4, stride=2, padding=1, output_padding=1)
        self.d = nn.Conv1d(8, 4, 5, dilation=2)
        self.e = nn.Conv3d(1, 2, (1, 2, 3))

    def forward(self, x):
        y = self.c(self.b(self.a(x).relu()))
        return self.d(y.flatten(2)).mean() + self.e(y[:, :1, None]).mean()


net, x = Net(), torch.randn(4, 3, 32, 32)
net.a.to(memory_format=torch.channels_last)
with torch.profiler.profile(record_shapes=True, with_stack=True) as profile:
    net(x).backward()
profile.export_chrome_trace("trace.json")
""",
        encoding="utf-8",
    )
    subprocess.run([sys.executable, "net.py"], cwd=tmp_path, check=True, capture_output=True)
    found = network(tmp_path / "trace.json")
    assert found.mode == "training"
    assert found.notes == ("no kernel of a GPU in the trace: its layers are predicted, not measured",)
    a, b, c, d, e = sorted(found.layers, key=lambda layer: (layer.dims != 2, layer.dims, layer.op != "conv", layer.C))
    assert (a.C, a.K, a.R, a.U, a.PadH, a.layout, a.copies_input, a.first) == (3, 16, 7, 2, 3, "NHWC", True, True)
    assert (b.C, b.K, b.groups, b.bias, b.P) == (16, 32, 2, False, 16)
    assert (c.op, c.C, c.K, c.R, c.OutPadH, c.P) == ("conv_transpose", 32, 8, 4, 1, 33)
    assert (d.dims, d.C, d.K, d.S, d.DilW, d.H) == (1, 8, 4, 5, 2, 1)
    assert (e.dims, e.C, e.K, e.T, e.R, e.S, e.layout) == (3, 1, 2, 1, 2, 3, "NCHW")
    assert {layer.path for layer in found.layers} == {"net.py"}
    assert a.name == "Net_0.Conv2d_0"


def test_a_trace_without_shapes_says_how_to_record_one_and_tells_what_it_can(tmp_path: Path) -> None:
    trace = TraceWriter()
    for _ in range(2):
        for us in (10.0, 20.0):
            trace.conv(SHAPE, WEIGHT, [(NCHW_TO_NHWC, 3.0), (f"{FPROP}{us}", us)],
                       **{"Input Dims": [], "Input Strides": [], "Concrete Inputs": []})  # fmt: skip
    path = trace.write(tmp_path / "t.json")
    found, errors = read(str(path), ReadOptions())
    assert "record with torch.profiler.profile(record_shapes=True)" in errors[0].message
    assert [(layer.C, layer.layout, taken(layer, "fprop")[:3]) for layer in found.layers] == [
        (None, "NCHW", (13.0, 10.0, 3.0)), (None, "NCHW", (23.0, 20.0, 3.0)),
    ]  # fmt: skip


def test_gradients_without_shapes_are_of_the_layers_whose_sequence_number_they_have(tmp_path: Path) -> None:
    trace, bare = TraceWriter(), {"Input Dims": [], "Input Strides": [], "Concrete Inputs": []}
    for step in range(2):
        for number in range(3):
            trace.conv(SHAPE, WEIGHT, [(FPROP, 10.0 + number)], sequence=3 * step + number, **bare)
        for number in reversed(range(3)):
            trace.gradient(SHAPE, WEIGHT, [(WGRAD, 20.0 + number)], sequence=3 * step + number, **bare)
    found, errors = read(str(trace.write(tmp_path / "t.json")), ReadOptions())
    assert "its 12 calls of convolutions have no sizes, which took 192 us" in errors[0].message
    assert [(taken(layer, "fprop")[0], taken(layer, "wgrad")[0]) for layer in found.layers] == [
        (10.0, 20.0), (11.0, 21.0), (12.0, 22.0),
    ]  # fmt: skip


def test_a_gradient_in_another_layout_is_of_its_layer(tmp_path: Path) -> None:
    trace = TraceWriter()
    trace.conv(SHAPE, WEIGHT, [(FPROP, 10.0)], sequence=1, nhwc=True)
    trace.conv(SHAPE, (32, *WEIGHT[1:]), [(FPROP, 15.0)], sequence=2, nhwc=True)
    trace.gradient(SHAPE, (32, *WEIGHT[1:]), [(WGRAD, 25.0)], sequence=9)  # of a compiled graph: no sequence is known
    trace.gradient(SHAPE, WEIGHT, [(WGRAD, 20.0)], sequence=1)
    found = network(trace.write(tmp_path / "t.json"))
    assert [(layer.K, layer.layout, taken(layer, "fprop")[0], taken(layer, "wgrad")[0]) for layer in found.layers] == [
        (64, "NHWC", 10.0, 20.0), (32, "NHWC", 15.0, 25.0),
    ]  # fmt: skip


def test_an_unknown_gpu_and_an_amd_one(tmp_path: Path) -> None:
    trace = TraceWriter({**TraceWriter().device, "name": "NVIDIA A100X", "numSms": 99})
    trace.conv(SHAPE, WEIGHT, [(FPROP, 10.0)])
    found = network(trace.write(tmp_path / "t.json"))
    assert found.targets == ()
    assert "convlint does not know the GPU NVIDIA A100X" in found.notes[0]
    amd = TraceWriter({"name": "AMD Instinct MI300X"})
    amd.conv(SHAPE, WEIGHT, [("miopenSp3AsmConv", 10.0)])
    assert "recorded on an AMD GPU" in message(amd.write(tmp_path / "amd.json"))


def test_a_trace_that_was_cut_is_read_up_to_there_and_said(tmp_path: Path) -> None:
    trace = TraceWriter()
    for _ in range(3):
        trace.conv(SHAPE, WEIGHT, [(FPROP, 10.0)])
    whole = trace.write(tmp_path / "t.json").read_bytes()
    (tmp_path / "cut.json").write_bytes(whole[: len(whole) * 2 // 3])
    found, errors = read(str(tmp_path / "cut.json"), ReadOptions())
    assert found is not None
    assert "it ends in the middle" in errors[0].message
    packed = gzip.compress(whole)
    (tmp_path / "cut.json.gz").write_bytes(packed[: len(packed) * 2 // 3])
    assert "it ends in the middle" in message(tmp_path / "cut.json.gz")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no convolution ran in it"), (b"[]", "no convolution ran in it"), (b"null", "not a trace"),
        (b'{"traceEvents": {}}', "no convolution ran in it"),
        (b'{"traceEvents": [1, "a", null, [], {}]}', "no convolution"),
        (b'{"traceEvents": [{"ph": "X"} {"ph"', "not a sound trace"), (b'{"a": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "nested too deeply or too long"), (b"\x1f\x8bgarbage", "cannot be unpacked"),
        (b"\0\0\0\0", "not a trace"),
    ],
    ids=range(10),
)  # fmt: skip
def test_what_is_no_trace(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "t.json.gz").write_bytes(content)
    assert words in message(tmp_path / "t.json.gz")


def test_a_bomb_in_its_gzip_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "t.json.gz"
    with gzip.open(path, "wb", compresslevel=9) as stream:
        stream.write(b'{"traceEvents": [')
        for _ in range(600):
            stream.write(b" " * (1 << 20))
    begin = time.perf_counter()
    assert "MiB unpacked is not read" in message(path)
    assert time.perf_counter() - begin < 60


def test_events_out_of_order_with_ids_that_repeat_and_negative_times(tmp_path: Path) -> None:
    trace = TraceWriter()
    for _ in range(3):
        trace.conv(SHAPE, WEIGHT, [(FPROP, 10.0)])
    bad: list[dict[str, Any]] = [
        {**event, "dur": -1} if event["cat"] == "kernel" and number % 9 == 0 else event
        for number, event in enumerate(trace.events)
    ]
    extra = [{**event, "ts": "soon"} for event in bad[:3]] + [{**event, "name": 7} for event in bad[:3]]
    trace.events = [*reversed(bad), *extra, {"ph": "X", "cat": "kernel", "name": "\x1b[31mx", "ts": 1, "dur": 1,
                                             "args": {"correlation": 1}}]  # fmt: skip
    (layer,) = network(trace.write(tmp_path / "t.json")).layers
    assert layer.measured is not None
    ran = run("check", os.fspath(tmp_path / "t.json"))
    assert "\x1b" not in ran.out


def test_a_folder_stands_for_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    trace = TraceWriter()
    trace.conv(SHAPE, WEIGHT, [(FPROP, 10.0)])
    trace.write(tmp_path / "t.json")
    trace.write(tmp_path / "u.json.gz")
    ran = run("check", ".")
    assert ran.code == 3
    assert "nothing here that convlint" in ran.out


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_change_of_a_trace_ends_in_a_crash(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    trace = TraceWriter()
    trace.conv(SHAPE, WEIGHT, [(NCHW_TO_NHWC, 3.0), (FPROP, 10.0)], module="Conv2d_0", line="a.py(1): f")
    trace.gradient(SHAPE, WEIGHT, [(DGRAD, 3.0), (WGRAD, 10.0)])
    for _ in range(data.draw(st.integers(1, 4))):
        event = data.draw(st.sampled_from(trace.events))
        place = data.draw(st.sampled_from([event, event["args"]]))
        if place:
            place[data.draw(st.sampled_from(sorted(place)))] = data.draw(_VALUES)
        if not isinstance(event.get("args"), dict):
            event["args"] = {}
    trace.device = data.draw(st.just(trace.device) | _VALUES)
    path = trace.write(tmp_path_factory.mktemp("t") / "t.json")
    found, errors = read(str(path), ReadOptions())
    assert found is not None or errors


def test_settings_are_those_that_operators_were_called_with(tmp_path: Path) -> None:
    for told in ("True", "False"):
        trace = TraceWriter()
        trace.conv(SHAPE, WEIGHT, [(FPROP, 10.0)])
        outer = next(event for event in trace.events if event["name"] == "aten::convolution")
        values = [*outer["args"]["Concrete Inputs"], told, "False", "True", told]
        inner = {**outer["args"], "Concrete Inputs": values, "Input type": ["c10::BFloat16", "c10::BFloat16"]}
        trace.events.append(
            {**outer, "name": "aten::_convolution", "ts": outer["ts"] + 0.5, "dur": outer["dur"] - 1, "args": inner}
        )
        found = network(trace.write(tmp_path / "t.json"))
        assert (found.runtime.cudnn_benchmark, found.runtime.tf32) == (told == "True", told == "True")
        assert found.runtime.deterministic is False
        assert [layer.dtype for layer in found.layers] == ["bf16"]  # autocast stands between the two


def test_the_gpu_is_the_one_that_ran_the_kernels(tmp_path: Path) -> None:
    trace = TraceWriter()
    trace.conv(SHAPE, WEIGHT, [(FPROP, 10.0)])
    for event in trace.events:
        if event["cat"] == "kernel":
            event["args"]["device"] = 1
    path = trace.write(tmp_path / "t.json")
    document = json.loads(path.read_text(encoding="utf-8"))
    first = {**trace.device, "id": 0, "name": "Tesla T4", "numSms": 40, "computeMajor": 7, "computeMinor": 5}
    path.write_text(json.dumps({**document, "deviceProperties": [first, {**trace.device, "id": 1}]}), encoding="utf-8")
    assert network(path).targets == ("a100-40gb-sxm",)


@pytest.mark.parametrize("marked", [True, False])
def test_steps_are_those_that_are_marked_or_what_repeats(tmp_path: Path, marked: bool) -> None:
    other = (64, 64, 1, 1)
    trace = TraceWriter()
    for number in range(3):
        begin = trace.now
        for weight in (WEIGHT, WEIGHT, other, other):
            trace.conv(SHAPE, weight, [(FPROP, 10.0)])
        if marked:
            trace.step(number, begin)
    if marked:
        trace.step(3, trace.now)  # a loader that ended
    found = network(trace.write(tmp_path / "t.json"))
    assert [layer.calls for layer in found.layers] == [2, 2]
    assert any("taken as steps" in note for note in found.notes) is not marked


def test_layers_that_run_twice_in_the_only_step_run_twice(tmp_path: Path) -> None:
    trace = TraceWriter()
    for weight in (WEIGHT, WEIGHT, (64, 64, 1, 1), (64, 64, 1, 1)):
        trace.conv(SHAPE, weight, [(FPROP, 10.0)])
    assert [layer.calls for layer in network(trace.write(tmp_path / "t.json")).layers] == [2, 2]


def test_calls_that_lack_their_sizes_are_an_error_with_their_time(tmp_path: Path) -> None:
    trace = TraceWriter()
    trace.conv(SHAPE, WEIGHT, [(FPROP, 10.0)])
    trace.conv(SHAPE, WEIGHT, [(FPROP, 5000.0)], **{"Input Dims": []})
    found, (error,) = read(str(trace.write(tmp_path / "t.json")), ReadOptions())
    assert found is not None
    assert "1 call of convolutions lacks sizes, strides or padding, which took 5 ms: left out" in error.message


def test_a_transpose_back_is_of_the_product_before_it(tmp_path: Path) -> None:
    back = NCHW_TO_NHWC.replace("nchwToNhwc", "nhwcToNchw")
    trace = TraceWriter()
    trace.conv(SHAPE, WEIGHT, [(FPROP, 10.0)])
    trace.gradient(
        SHAPE, WEIGHT, [(NCHW_TO_NHWC, 31.0), (DGRAD, 600.0), (back, 77.0), (NCHW_TO_NHWC, 32.0), (WGRAD, 500.0)]
    )
    (layer,) = network(trace.write(tmp_path / "t.json")).layers
    assert taken(layer, "dgrad") == (708.0, 600.0, 108.0, 0.0, 0.0)
    assert taken(layer, "wgrad") == (532.0, 500.0, 32.0, 0.0, 0.0)


def test_gradients_of_which_no_kernel_says_anything_share_them(tmp_path: Path) -> None:
    trace = TraceWriter()
    trace.conv(SHAPE, WEIGHT, [(FPROP, 10.0)])
    trace.gradient(SHAPE, WEIGHT, [("ampere_fp16_s16816gemm_nt", 60.0), ("ampere_fp16_s16816gemm_tn", 70.0)])
    path = trace.write(tmp_path / "t.json")
    (layer,) = network(path).layers
    assert taken(layer, "dgrad") == (60.0, 0.0, 0.0, 0.0, 60.0)
    assert taken(layer, "wgrad") == (70.0, 0.0, 0.0, 0.0, 70.0)
    document = json.loads(run("check", os.fspath(path), "-o", "json").out)
    assert document["summary"]["time_us"] == pytest.approx(140.0)


def test_one_product_for_each_gradient_is_taken_in_pytorchs_order(tmp_path: Path) -> None:
    """As cuDNN 9 runs a 1x1 on Hopper: products of cuBLAS, whose sums of parts name no pass, or one."""
    trace = TraceWriter()
    trace.conv(SHAPE, WEIGHT, [(FPROP, 10.0)])
    trace.gradient(
        SHAPE, WEIGHT,
        [
            ("nvjet_sm90_tst_160x256_64x3_1x2_h_ssched_bz_coopA_NTN", 31.0),
            ("nvjet_sm90_tss_256x128_64x4_1x2_h_bz_coopA_TNT", 47.0),
            ("void cudnn::cnn::reduce_wgrad_nchw_helper<float, __nv_bfloat16>(void*)", 12.0),
        ],
    )  # fmt: skip
    (layer,) = network(trace.write(tmp_path / "t.json")).layers
    assert taken(layer, "dgrad") == (31.0, 31.0, 0.0, 0.0, 0.0)
    assert taken(layer, "wgrad") == (59.0, 59.0, 0.0, 0.0, 0.0)


TRACES = Path(__file__).resolve().parents[3] / "benchmarks" / "data" / "traces"


def recorded_on_an_h100(layout: str, *options: str) -> dict[str, Any]:
    """What a check says of a step of ResNet-50 under bf16 autocast."""
    return json.loads(run("check", os.fspath(TRACES / f"h100-resnet50-{layout}.json.gz"), "-o", "json", *options).out)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
def test_a_step_recorded_on_an_h100_took_what_is_predicted(layout: str) -> None:
    document = recorded_on_an_h100(layout)
    ratios = [
        one["predicted_us"] / one["measured_us"]
        for layer in document["layers"]
        for one in layer["estimates"][0]["passes"].values()
    ]
    assert len(ratios) == 68
    assert 0.85 < exp(fmean(map(log, ratios))) < 1.15
    assert sum(not 1 / 1.5 < ratio < 1.5 for ratio in ratios) <= 4
    norms = [one["estimates"][0] for one in document["operations"] if "batch_norm" in one["name"]]
    measured = sum(one["time_us"] for one in norms)
    assert measured > 7_000
    assert sum(one["predicted_us"] for one in norms) == pytest.approx(measured, rel=0.15)


@pytest.mark.slow
def test_what_channels_last_is_promised_to_save_of_a_step_is_what_it_saved() -> None:
    """In NCHW the GPU was the bound, in NHWC the host: 29.7 ms by the stopwatch on such a machine."""
    before, after = recorded_on_an_h100("nchw", "--ignore", "CL306")["summary"], recorded_on_an_h100("nhwc")["summary"]
    in_nchw, in_nhwc = (sum(one["step_parts"].values()) for one in (before, after))
    assert before["step_us"] == pytest.approx(in_nchw)
    assert in_nchw > 1.5 * in_nhwc
    assert after["step_us"] == after["host_us"] == pytest.approx(29_700, rel=0.05)
    assert before["step_after_us"] == pytest.approx(after["step_us"], rel=0.05)
    with_graphs = recorded_on_an_h100("nchw")["summary"]["step_after_us"]
    assert with_graphs == pytest.approx(in_nhwc, rel=0.1)


def test_a_product_that_says_what_it_does_not_permute_is_no_transpose(tmp_path: Path) -> None:
    trace = TraceWriter()
    name = "_ZN17cutlass__5x_cudnn6KernelINS_4conv6kernel23ImplicitGemmConvolutionINS_6layout9NoPermuteE"
    trace.conv(SHAPE, WEIGHT, [(FPROP, 10.0)])
    kernels = [("void nhwcAddPaddingKernel<__nv_bfloat16>(int)", 5.0), (name, 226.0)]
    trace.gradient(SHAPE, WEIGHT, kernels, mask="[False, True, False]")
    (layer,) = network(trace.write(tmp_path / "t.json")).layers
    assert taken(layer, "wgrad") == (231.0, 231.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("us", [float("inf"), float("nan"), 1e308, 10**400, -1, 0])
def test_times_that_cannot_be_are_passed_over(tmp_path: Path, us: float) -> None:
    trace = TraceWriter()
    trace.conv(SHAPE, WEIGHT, [(FPROP, us), (NCHW_TO_NHWC, 3.0)])
    trace.gradient(SHAPE, WEIGHT, [(WGRAD, us)])
    path = trace.write(tmp_path / "t.json")
    for command in ("check", "estimate", "plan"):
        assert run(command, os.fspath(path)).code in (0, 1)


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_events_that_lie_across_what_is_read_at_once(tmp_path: Path, name: str) -> None:
    trace = TraceWriter()
    for number in range(9000):
        trace.conv(SHAPE, WEIGHT, [(FPROP, 10.0 + number % 7)], module="Conv2d_0")
    path = trace.write(tmp_path / name)
    found, errors = read(str(path), ReadOptions())
    assert not errors
    (layer,) = found.layers
    measured = layer.measured.of("fprop")
    assert measured.calls == 9000


def test_deep_stacks_and_many_warm_ups_take_no_long(tmp_path: Path) -> None:
    trace = TraceWriter()
    for number in range(300):
        trace.conv(SHAPE, WEIGHT, [(FPROP, 10.0)])
        trace.events.append(
            {"ph": "X", "cat": "user_annotation", "name": "warmup", "ts": number, "dur": 1e6, "args": {}}
        )
    for depth in range(20_000):
        trace.events.append(
            {"ph": "X", "cat": "python_function", "name": f"a.py({depth}): f", "pid": 7, "tid": 7,
             "ts": depth / 1e3, "dur": 1e6 - depth, "args": {}}
        )  # fmt: skip
    path = trace.write(tmp_path / "t.json")
    begin = time.perf_counter()
    network(path)
    assert time.perf_counter() - begin < 30


def test_a_step_is_told_by_its_parts(here: Path) -> None:
    trace = TraceWriter()
    others = {
        "aten::batch_norm": 30.0, "aten::linear": 40.0, "aten::scaled_dot_product_attention": 50.0, "aten::relu_": 7.0,
        "aten::max_pool2d": 5.0, "aten::_foreach_addcdiv_": 9.0, "aten::cat": 3.0, "cudaGraphLaunch": 2.0,
    }  # fmt: skip
    trace.conv(SHAPE, WEIGHT, [(FPROP, 1000.0)])  # before any step
    for number in range(2):
        begin = trace.now
        trace.conv(SHAPE, WEIGHT, [(FPROP, 100.0)])
        for name, us in others.items():
            trace.operator(name, [("a_kernel", us)])
        trace.step(number, begin)
    trace.write(here / "t.json")
    (found,) = json.loads(run("check", "t.json", "-o", "json").out)["networks"]
    assert found["measured_step_parts"] == {
        "convolution": 100.0, "linear": 40.0, "attention": 50.0, "normalisation": 30.0, "pointwise": 7.0, "copy": 3.0,
        "pool": 5.0, "optimizer": 9.0, "other": 2.0,
    }  # fmt: skip
    assert found["measured_step_us"] == 246.0
    said = " ".join(run("check", "t.json").out.split())
    parts = r"kernels of a step: measured 246 us: convolution 100 us \(predicted .+ us\), attention 50 us, linear"
    assert re.search(parts, said)
    assert found["step_parts"] == found["measured_step_parts"]
    assert list(filter(None, found["predicted_step_parts"].values())) == [
        found["predicted_step_us"]
    ]  # no sizes are told


def test_parts_have_predictions_where_sizes_are_told_and_another_gpu_gets_them(here: Path) -> None:
    trace = TraceWriter()
    trace.conv(SHAPE, WEIGHT, [(FPROP, 100.0)])
    trace.operator("aten::relu_", [("a_kernel", 80.0)], ("c10::Half", (64, 64, 256, 256)))
    trace.operator("aten::linear", [("gemm", 90.0)], ("c10::Half", (4096, 4096)), ("c10::Half", (4096, 4096)))
    trace.write(here / "t.json")
    (found,) = json.loads(run("check", "t.json", "-o", "json").out)["networks"]
    parts = found["predicted_step_parts"]
    moved = 2 * 2 * 64 * 64 * 256 * 256  # bytes, of 1,555 GB/s
    assert 0.85 * moved / 1.555e6 < parts["pointwise"] < 1.25 * moved / 1.555e6
    assert 2 * 4096**3 / 312e6 < parts["linear"] < 2 * 2 * 4096**3 / 312e6
    assert (found["measured_step_parts"]["linear"], found["step_parts"]["linear"]) == (90.0, 90.0)
    listed = [line.split() for line in run("estimate", "--operations", "t.json").out.splitlines()]
    (linear,) = [line for line in listed if line[:2] == ["linear", "4096×4096×4096"]]
    assert linear[2:6] == ["linear", "1", "90.0", "us"]
    (other,) = json.loads(run("check", "t.json", "-o", "json", "--gpu", "t4").out)["networks"]
    assert 4 * 80 < other["step_parts"]["pointwise"] < 6 * 80  # by the bandwidths, 1,555 and 320 GB/s
    assert other["predicted_step_parts"] is None


def test_calls_outside_of_marked_steps_are_of_no_step(tmp_path: Path) -> None:
    trace = TraceWriter()
    trace.conv(SHAPE, WEIGHT, [(FPROP, 900.0)])
    for number in range(2):
        begin = trace.now
        trace.conv(SHAPE, WEIGHT, [(FPROP, 100.0)])
        trace.step(number, begin)
    (layer,) = network(trace.write(tmp_path / "t.json")).layers
    assert (layer.calls, taken(layer, "fprop")[0]) == (1, 100.0)


def test_a_template_of_inductor_is_a_convolution_of_a_compiled_network(tmp_path: Path) -> None:
    trace = TraceWriter()
    tensors = (("c10::Half", each) for each in ((8, 64, 56, 56), (128, 64, 3, 3), (128,), (8, 128, 28, 28)))
    trace.operator("triton_tem_fused_convolution_relu_1", [("triton_tem_fused_convolution_relu_1", 50.0)], *tensors)
    found = network(trace.write(tmp_path / "t.json"))
    (layer,) = found.layers
    assert (layer.N, layer.C, layer.K, layer.R, layer.U, layer.PadH, layer.P) == (8, 64, 128, 3, 2, 1, 28)
    assert found.runtime.compile is True
    assert taken(layer, "fprop")[0] == 50.0


def test_compiled_kernels_are_parts_by_what_is_fused_in_them(here: Path) -> None:
    trace = TraceWriter()
    trace.conv(SHAPE, WEIGHT, [(FPROP, 100.0)])
    tensor = ("c10::Half", (64, 64, 256, 256))
    trace.operator(
        "triton_poi_fused_convolution_relu_0", [("triton_poi_fused_convolution_relu_0", 70.0)], tensor, tensor
    )
    trace.write(here / "t.json")
    report = json.loads(run("check", "t.json", "-o", "json").out)
    (found,) = report["networks"]
    assert found["measured_step_parts"]["pointwise"] == 70.0
    assert found["predicted_step_parts"]["pointwise"] > 0
    assert "CL510" not in {finding["code"] for finding in report["findings"]}


def step_parts(path: Path, *options: str) -> dict[str, Any]:
    """The step's entry of the report on a trace."""
    (found,) = json.loads(run("check", str(path), "-o", "json", *options).out)["networks"]
    return dict(found)


def within(trace: TraceWriter, outer: str, *inner: str, dtype: str = "float") -> None:
    """An operator with others inside of it, each of which launches a kernel of 10 us."""
    begin = trace.now
    for name in inner:
        trace.operator(name, [("a_kernel", 10.0)], ("c10::Half", (4096, 4096)), ("c10::Half", (4096, 4096)))
    trace.call(outer, begin, (dtype, (4096, 4096)), (dtype, (4096, 4096)))


def test_products_run_in_the_dtype_that_autocast_gives_them_and_its_casts_are_copies(tmp_path: Path) -> None:
    trace = TraceWriter()
    trace.conv(SHAPE, WEIGHT, [(FPROP, 100.0)])
    within(trace, "aten::linear", "aten::copy_", "aten::addmm")
    within(trace, "aten::conv2d", "aten::copy_")
    found = step_parts(trace.write(tmp_path / "t.json"))
    assert found["measured_step_parts"]["copy"] == 20.0
    assert found["measured_step_parts"]["linear"] == 10.0
    assert found["predicted_step_parts"]["linear"] < 2 * 2 * 4096**3 / 312e6  # of fp16, not of fp32


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_max_pools_take_longer_than_their_bytes(layout: str) -> None:
    """PyTorch's kernels in ResNet-50's training on H100."""
    found = step_parts(TRACES / f"h100-resnet50-{layout}.json.gz")
    assert 1 / 1.5 < found["predicted_step_parts"]["pool"] / found["measured_step_parts"]["pool"] < 1.5


def test_steps_in_which_algorithms_are_tried_and_warm_ups_are_no_part_of_it(tmp_path: Path) -> None:
    trace = TraceWriter()
    for number, us in enumerate((9000.0, 100.0, 100.0)):
        begin = trace.now
        trace.conv(SHAPE, WEIGHT, [(FPROP, us)])
        trace.operator("aten::relu", [("a_kernel", 30.0)])
        trace.step(number, begin)
    found = step_parts(trace.write(tmp_path / "t.json"))
    assert (found["measured_step_parts"]["convolution"], found["measured_step_us"]) == (100.0, 130.0)


def test_copies_over_the_link_to_the_host_are_no_kernels_of_the_step(tmp_path: Path) -> None:
    trace = TraceWriter()
    trace.operator("aten::to", [("Memcpy HtoD (Pinned -> Device)", 3000.0)], ("float", (64, 3, 224, 224)))
    trace.conv(SHAPE, WEIGHT, [(FPROP, 100.0)])
    assert step_parts(trace.write(tmp_path / "t.json"))["measured_step_us"] == 100.0


def test_another_precision_makes_the_products_of_a_step_faster(tmp_path: Path) -> None:
    trace = TraceWriter()
    trace.conv(SHAPE, WEIGHT, [(FPROP, 300.0)], dtype="float")
    trace.operator("aten::mm", [("sgemm", 9000.0)], ("float", (4096, 4096)), ("float", (4096, 4096)))
    found = step_parts(trace.write(tmp_path / "t.json"))
    assert found["step_after_us"] < 0.3 * found["step_us"]


@pytest.mark.parametrize("size", [10**7, 10**12])
def test_a_template_of_impossible_sizes_is_no_convolution(tmp_path: Path, size: int) -> None:
    trace = TraceWriter()
    trace.conv(SHAPE, WEIGHT, [(FPROP, 100.0)])
    tensors = ((1, 1, size, 1), (1, 1, 1, 1), (1, 1, 1, 1))
    trace.operator("triton_tem_fused_convolution_1", [("k", 5.0)], *(("c10::Half", each) for each in tensors))
    read(str(trace.write(tmp_path / "t.json")), ReadOptions())


def test_kernels_without_a_time_make_no_step(tmp_path: Path) -> None:
    trace = TraceWriter()
    trace.conv(SHAPE, WEIGHT, [(FPROP, 0.0)])
    trace.operator("aten::relu", [("a_kernel", 0.0)], ("float", (64, 64)))
    assert run("estimate", str(trace.write(tmp_path / "t.json"))).code == 0


def test_the_operator_of_a_depthwise_layer_tells_its_groups_by_its_weight(tmp_path: Path) -> None:
    trace = TraceWriter()
    shape, weight = (8, 32, 28, 28), (64, 1, 3, 3)
    values = {"Concrete Inputs": ["", "", "[3, 3]", "", "[1, 1]", "[1, 1]", "[1, 1]"]}
    tensors = (("c10::Half", shape), ("c10::Half", weight), ("", ()), ("", ()), ("", ()), ("", ()), ("", ()))
    trace.operator("aten::_conv_depthwise2d", [("conv_depthwise2d_forward_kernel", 20.0)], *tensors, **values)
    (layer,) = network(trace.write(tmp_path / "t.json")).layers
    assert (layer.groups, layer.C, layer.K, layer.PadH, layer.layout) == (32, 32, 64, 1, "NCHW")


def test_captured_graphs_take_the_host_away(tmp_path: Path) -> None:
    trace = TraceWriter()
    trace.conv(SHAPE, WEIGHT, [])
    trace.operator("replay", [("a_kernel", 90.0)])
    assert network(trace.write(tmp_path / "eager.json")).runtime.cuda_graphs is None
    launch = next(event for event in trace.events if event["name"] == "cudaLaunchKernel")
    launch["name"] = "cudaGraphLaunch"
    assert network(trace.write(tmp_path / "graphs.json")).runtime.cuda_graphs is True
