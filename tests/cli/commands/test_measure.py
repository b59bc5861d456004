"""`convlint measure`: the report, JSON, the file of timings, and the exit codes; on the CPU of this machine."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT
from command_line import Ran, default_interrupt
from command_line import convlint as run
from measured import DEVICE, Pretender, predicted_us
from traces import DGRAD, FPROP, NCHW_TO_NHWC, WGRAD, TraceWriter

from convlint.cli.commands import measure as command
from convlint.measuring.rows import header, rows_of
from convlint.measuring.workload import Workload

NET = """\
version: 1
target: t4
defaults: { N: 2, dtype: fp32, layout: NCHW }
layers:
  - { name: stem, C: 3, H: 8, W: 8, K: 12, kernel_size: 3, padding: 1 }
  - { name: body, K: 16, kernel_size: 3, padding: 1 }
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.yaml").write_text(NET, encoding="utf-8")
    return tmp_path


def on_a_gpu(monkeypatch: pytest.MonkeyPatch, times: Any = None) -> list[Workload]:
    """Pretends that an A100 times, as fast as is predicted unless `times` says otherwise; what it is asked for."""
    timer = Pretender(times or (lambda workload: 1.25 * predicted_us(workload)))
    monkeypatch.setattr(command, "Bench", timer)
    return timer.asked


def said(ran: Ran) -> str:
    """The report, however its lines are broken."""
    return " ".join(ran.out.split())


def document(ran: Ran) -> dict[str, Any]:
    return json.loads(ran.out)


def test_a_spec_on_the_cpu(here: Path) -> None:
    ran = run("measure", "net.yaml", "--device", "cpu", "--layers-only")
    assert ran.code == 0
    assert "training, on this machine's CPU" in ran.out
    assert "timed on a CPU: nothing of it says how right the predictions for t4 are" in ran.out
    assert "over measured" not in ran.out
    (csv,) = here.glob("convlint-*.csv")
    rows = list(rows_of(csv.read_text(encoding="utf-8")))
    assert [(row.workload.K, row.workload.which) for row in rows] == [
        (12, "fprop"), (12, "wgrad"), (16, "fprop"), (16, "dgrad"), (16, "wgrad"),
    ]  # fmt: skip
    assert f"{csv.name}: 5 new timings" in ran.out
    again = run("measure", "net.yaml", "--device", "cpu", "--layers-only")
    assert f"{csv.name}: 0 new timings, 5 were there" in again.out
    assert list(rows_of(csv.read_text(encoding="utf-8"))) == rows


def test_predictions_and_advice_on_a_gpu(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = on_a_gpu(monkeypatch)
    ran = run("measure", "net.yaml", "--gpu", "a100")
    assert ran.code == 0
    assert "training, on NVIDIA A100-SXM4-40GB with PyTorch 2.11.0 and cuDNN 9.10.2, cudnn.benchmark off" in said(ran)
    assert "predicted for a100 over measured: 0.80 on average of 5 passes" in said(ran)
    assert "within 20 %, within 0.0 % once all are divided by that" in said(ran)
    assert "SM clock held at 1410 MHz" in said(ran)
    assert len(asked) == len(set(asked)) > 5
    assert (here / "convlint-a100-40gb-sxm.csv").exists()


def test_the_gpu_that_times_is_the_one_predicted_for(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_gpu(monkeypatch)
    found = document(run("measure", "net.yaml", "-o", "json", "--layers-only"))
    assert found["gpu"] == "a100-40gb-sxm"
    assert found["device"]["name"] == DEVICE.name
    assert found["notes"] == []
    assert found["agreement"]["predicted_over_measured"] == pytest.approx(0.8)
    other = document(run("measure", "net.yaml", "-o", "json", "--gpu", "h100", "--layers-only"))
    assert other["notes"] == ["predicted for h100, which is not the GPU that timed"]


def test_json_has_every_pass_and_what_came_of_each_advice(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_gpu(monkeypatch, lambda work: predicted_us(work) * (2.0 if work.layout == "NHWC" else 1.0))
    (here / "net.yaml").write_text(NET.replace("N: 2", "N: 64").replace("8,", "56,").replace("fp32", "fp16"))
    found = document(run("measure", "net.yaml", "-o", "json"))
    assert found["schema_version"] == 2
    assert [(each["layer"], each["pass"], each["runs"]) for each in found["passes"][:2]] == [
        ("stem", "fprop", 25), ("stem", "wgrad", 25),
    ]  # fmt: skip
    assert found["passes"][0]["measured_us"] == pytest.approx(found["passes"][0]["predicted_us"])
    layout = next(each for each in found["advice"] if each["code"] == "CL401")
    assert layout["held"] == "not held"
    assert layout["promised_change"] < 0 < layout["measured_change"]
    assert layout["set"] == {"layout": "NHWC"}


def test_what_fails_is_said_per_layer_and_the_rest_is_timed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_gpu(monkeypatch, lambda work: "CUDA out of memory." if work.which == "wgrad" else 3.0)
    ran = run("measure", "net.yaml", "--layers-only")
    assert ran.code == 3
    assert "error: net.yaml:5:5: stem, body not timed: wgrad: CUDA out of memory." in said(ran)
    assert "3 new timings" in said(ran)


def test_a_layer_of_unknown_size_is_named(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_gpu(monkeypatch)
    (here / "net.yaml").write_text(NET.replace("C: 3, H: 8, W: 8", "C: 3").replace("K: 16", "C: 12, H: 8, W: 8, K: 16"))
    ran = run("measure", "net.yaml", "--layers-only")
    assert ran.code == 3
    assert "stem not timed: H and W are not known" in said(ran)
    assert "body" in said(ran)


def test_the_time_may_be_limited_and_the_next_run_goes_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = on_a_gpu(monkeypatch)
    ran = run("measure", "net.yaml", "--limit-seconds", "0", "--layers-only")
    assert ran.code == 3
    assert asked == []
    assert "5 timings not begun: --limit-seconds is over; the next run goes on from there" in said(ran)
    assert not list(here.glob("*.csv"))
    assert len(document(run("measure", "net.yaml", "-o", "json", "--layers-only"))["passes"]) == 5
    assert len(asked) == 5


def test_an_interrupt_keeps_what_was_timed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def times(work: Workload) -> float:
        if work.which == "dgrad":
            raise KeyboardInterrupt
        return 2.0

    on_a_gpu(monkeypatch, times)
    stopped = run("measure", "net.yaml", "--layers-only")
    assert (stopped.code, stopped.out) == (130, "")
    assert (
        "interrupted; convlint-a100-40gb-sxm.csv has 3 new timings, and the next run goes on from there" in stopped.err
    )
    file = here / "convlint-a100-40gb-sxm.csv"
    kept = list(rows_of(file.read_text(encoding="utf-8")))
    assert [row.workload.which for row in kept] == ["fprop", "wgrad", "fprop"]
    file.write_text(file.read_text(encoding="utf-8")[:-20], encoding="utf-8")  # in the middle of a line
    asked = on_a_gpu(monkeypatch)
    assert run("measure", "net.yaml", "--layers-only").code == 0
    assert [work.which for work in asked] == ["fprop", "dgrad", "wgrad"]
    assert len(list(rows_of(file.read_text(encoding="utf-8")))) == 5


def test_timings_of_other_libraries_stay_and_are_not_used(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_gpu(monkeypatch)
    run("measure", "net.yaml", "--layers-only", "--csv", "t.csv")
    file = here / "t.csv"
    file.write_text(file.read_text(encoding="utf-8").replace("9.10.2", "9.1.0"), encoding="utf-8")
    asked = on_a_gpu(monkeypatch)
    run("measure", "net.yaml", "--layers-only", "--csv", "t.csv")
    assert len(asked) == 5
    assert len(list(rows_of(file.read_text(encoding="utf-8")))) == 10
    asked = on_a_gpu(monkeypatch, lambda _: 7.0)
    run("measure", "net.yaml", "--layers-only", "--csv", "t.csv", "--again")
    rows = list(rows_of(file.read_text(encoding="utf-8")))
    assert len(asked) == 5
    assert sorted((row.cudnn, row.timing.us == 7.0) for row in rows) == [("9.1.0", False)] * 5 + [("9.10.2", True)] * 5


def test_what_is_timed_again_stays_until_it_is(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_gpu(monkeypatch)
    run("measure", "net.yaml", "--layers-only", "--csv", "t.csv")
    before = (here / "t.csv").read_text(encoding="utf-8")
    assert run("measure", "net.yaml", "--layers-only", "--csv", "t.csv", "--again", "--limit-seconds", "0").code == 3
    assert (here / "t.csv").read_text(encoding="utf-8") == before


def test_a_report_is_not_written_over_the_timings(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = on_a_gpu(monkeypatch)
    name = "convlint-a100-40gb-sxm.csv"
    assert run("measure", "net.yaml", "-o", f"json={name}").code == 2
    assert run("measure", "net.yaml", "--calibrate", name).code == 2
    assert asked == []
    assert not (here / name).exists()


def test_the_cudnn_that_the_input_states_is_compared(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_gpu(monkeypatch)
    ran = run("measure", "net.yaml", "--layers-only", "--runtime", "cudnn=8.9.2")
    assert "predicted for cuDNN 8.9.2, as the input says; timed with 9.10.2" in said(ran)


@pytest.mark.parametrize("content", ["my,data\n1,2\n", header() + "1,2\n", "\0\xff", "no newline"])
def test_a_file_of_something_else_is_left_as_it_is(here: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    asked = on_a_gpu(monkeypatch)
    (here / "t.csv").write_text(content, encoding="latin-1")
    ran = run("measure", "net.yaml", "--csv", "t.csv")
    assert ran.code == 2
    assert "t.csv" in ran.err
    assert "--csv names another file" in ran.err
    assert asked == []
    assert (here / "t.csv").read_text(encoding="latin-1") == content


def test_an_unknown_gpu_needs_a_name(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_gpu(monkeypatch)
    monkeypatch.setattr(command, "gpu_of", lambda _: None)
    ran = run("measure", "net.yaml")
    assert ran.code == 2
    assert "convlint does not know the GPU NVIDIA A100-SXM4-40GB (compute capability 8.0, 108 SMs)" in ran.err
    assert run("measure", "net.yaml", "--gpu", "a100", "--layers-only").code == 0
    assert (here / "convlint-nvidia-a100-sxm4-40gb.csv").exists()


def test_what_is_predicted_for_another_framework_is_said(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_gpu(monkeypatch)
    ran = run("measure", "net.yaml", "--layers-only", "--runtime", "framework=tensorrt", "--dtype", "fp16")
    assert "predicted for tensorrt; what is timed are PyTorch's convolutions" in said(ran)


def test_without_a_gpu_nothing_is_timed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    ran = run("measure", "net.yaml")
    assert ran.code == 3
    assert "error: net.yaml: PyTorch finds no CUDA device" in said(ran)
    assert not list(here.glob("*.csv"))


def test_what_is_wrong_with_the_input_is_said_before_anything_is_timed(here: Path) -> None:
    (here / "net.yaml").write_text("version: 1\nlayers: []\n")
    ran = run("measure", "net.yaml", "--device", "cpu")
    assert ran.code == 3
    assert "error: net.yaml" in said(ran)
    assert not list(here.glob("*.csv"))


@pytest.mark.parametrize(
    "arguments",
    [(), ("a.yaml", "--model", "x"), ("net.yaml", "--device", "tpu"), ("net.yaml", "--gpu", "a100,h100"),
     ("net.yaml", "--csv", "net.yaml"), ("net.yaml", "-o", "yaml")],
)  # fmt: skip
def test_wrong_usage(here: Path, arguments: tuple[str, ...]) -> None:
    assert run("measure", *arguments).code == 2


def test_a_measurement_fits_the_terminal_with_and_without_colour(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_gpu(monkeypatch)
    plain = run("measure", "net.yaml", "--color", "never").out
    colored = run("measure", "net.yaml", "--color", "always").out
    assert "\x1b[" in colored
    assert "\x1b[" not in plain
    for columns in (60, 80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert max(map(len, run("measure", "net.yaml").out.splitlines())) <= columns


CALIBRATED = """\
version: 1
defaults: { N: 32, dtype: fp16, layout: NHWC, kernel_size: 3, padding: 1 }
layers:
  - { name: a, C: 64, H: 56, W: 56, K: 64 }
  - { name: b, C: 128, H: 28, W: 28, K: 128 }
  - { name: c, C: 256, H: 14, W: 14, K: 256 }
  - { name: d, C: 512, H: 7, W: 7, K: 512 }
  - { name: e, C: 64, H: 56, W: 56, K: 256, kernel_size: 1, padding: 0 }
  - { name: f, C: 512, H: 28, W: 28, K: 128, kernel_size: 1, padding: 0 }
"""


def test_timings_become_a_calibration_that_the_config_names(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_gpu(monkeypatch, lambda work: 1.5 * predicted_us(work, "a100-40gb-sxm"))
    (here / "net.yaml").write_text(CALIBRATED, encoding="utf-8")
    ran = run("measure", "net.yaml", "--layers-only", "--calibrate", "gpu.toml")
    assert ran.code == 0
    assert "gpu.toml: calibrated on 18 timings; half of them within" in said(ran)
    assert "33 % before" in said(ran)
    before = document(run("measure", "net.yaml", "--layers-only", "-o", "json"))
    (here / "convlint.toml").write_text('calibration = "gpu.toml"\n', encoding="utf-8")
    after = document(run("measure", "net.yaml", "--layers-only", "-o", "json"))
    pairs = zip(before["passes"], after["passes"], strict=True)
    assert all(1.35 < there["predicted_us"] / plain["predicted_us"] < 1.65 for plain, there in pairs)
    assert before["agreement"]["predicted_over_measured"] == pytest.approx(1 / 1.5, abs=1e-3)
    assert after["agreement"]["predicted_over_measured"] == pytest.approx(1, abs=0.05)
    assert after["agreement"]["median_error"] < 0.1
    assert any("calibrated on NVIDIA A100-SXM4-40GB" in note for note in after["notes"])
    assert "times: calibrated on NVIDIA A100-SXM4-40GB, 18 passes" in said(run("estimate", "net.yaml", "--gpu", "a100"))


def test_too_few_timings_calibrate_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_gpu(monkeypatch)
    ran = run("measure", "net.yaml", "--layers-only", "--calibrate", "gpu.toml")
    assert ran.code == 3
    assert "error: gpu.toml: too little is timed to calibrate a100-40gb-sxm" in said(ran)
    assert not (here / "gpu.toml").exists()


def test_a_processor_calibrates_nothing(here: Path) -> None:
    ran = run("measure", "net.yaml", "--device", "cpu", "--layers-only", "--calibrate", "gpu.toml")
    assert ran.code == 3
    assert "cannot be calibrated: convlint knows no such GPU" in said(ran)
    assert not (here / "gpu.toml").exists()


@pytest.mark.slow
def test_a_real_interrupt_ends_the_child_and_the_next_run_goes_on(here: Path) -> None:
    command_line = [sys.executable, "-m", "convlint", "measure", "net.yaml", "--device", "cpu", "--csv", "t.csv"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = subprocess.Popen(
        command_line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=default_interrupt,
    )  # fmt: skip
    file, deadline = here / "t.csv", time.monotonic() + 120
    while not (file.exists() and len(file.read_text(encoding="utf-8").splitlines()) > 2):
        assert time.monotonic() < deadline
        assert running.poll() is None
        time.sleep(0.02)
    tasks = list(Path(f"/proc/{running.pid}/task").iterdir())
    children = [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
    os.kill(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out) == (130, "")
    assert "t.csv has" in err
    assert children
    assert not any(Path(f"/proc/{child}").exists() for child in children)
    kept = list(rows_of(file.read_text(encoding="utf-8")))
    assert len(kept) >= 2
    done = subprocess.run(command_line, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0
    assert f"{len(kept)} were there" in done.stdout
    rows = list(rows_of(file.read_text(encoding="utf-8")))
    assert rows[: len(kept)] == kept
    assert len({row.workload for row in rows}) == len(rows)


SHAPES = [
    ((64, 64, 56, 56), (256, 64, 1, 1)), ((64, 256, 28, 28), (128, 256, 1, 1)), ((64, 128, 28, 28), (96, 128, 1, 1)),
]  # fmt: skip


def trace_of_a_training(path: Path, *, us: float = 500.0) -> None:
    """Three layers with their gradients, of which the last mixes kernels that do not say what they are for."""
    trace = TraceWriter()
    for sequence, (shape, weight) in enumerate(SHAPES):
        trace.conv(shape, weight, [(NCHW_TO_NHWC, us / 5), (FPROP, us)], sequence=sequence, module=f"Conv2d_{sequence}")
    for sequence, (shape, weight) in reversed(list(enumerate(SHAPES))):
        own = [(DGRAD, us), (WGRAD, us)] if sequence < 2 else [("volta_h884cudnn", us), (WGRAD, us)]
        trace.gradient(shape, weight, own, sequence=sequence)
    trace.write(path)


def test_a_trace_gives_the_timings_of_its_layers(here: Path) -> None:
    trace_of_a_training(here / "t.json.gz")
    ran = run("measure", "--from-trace", "t.json.gz", "-o", "json")
    assert ran.code == 0, ran.out + ran.err
    found = document(ran)
    assert (found["gpu"], found["mode"], found["trace"]) == ("a100-40gb-sxm", "training", "t.json.gz")
    measured = {(each["layer"], each["pass"]): each["measured_us"] for each in found["passes"]}
    assert measured[("Conv2d_0", "fprop")] == 600.0  # its transpose is part of the call
    assert measured[("Conv2d_1", "wgrad")] == 500.0
    assert ("Conv2d_2", "dgrad") not in measured  # no kernel says that it is that
    rows = list(rows_of((here / "convlint-a100-40gb-sxm.csv").read_text(encoding="utf-8")))
    assert [row.timing.us for row in rows] == list(measured.values())
    assert {row.device for row in rows} == {"NVIDIA A100-SXM4-40GB"}
    # What is predicted is the layer as it is, not scaled to what was measured.
    assert all(each["predicted_us"] < 0.75 * each["measured_us"] for each in found["passes"])
    text = said(run("measure", "--from-trace", "t.json.gz"))
    assert f"{len(measured)} of {len(measured)} predictions off by more than a factor of 1.5" in text
    assert "--runtime cudnn_benchmark=true says it was" in text


def test_the_timings_of_a_trace_serve_a_spec_of_the_same_layers(here: Path) -> None:
    trace_of_a_training(here / "t.json")
    (here / "own.yaml").write_text(
        "version: 1\ndefaults: { N: 64, dtype: fp16, kernel_size: 1 }\nlayers:\n"
        "  - { name: a, C: 64, H: 56, W: 56, K: 256 }\n  - { name: b, C: 32, H: 7, W: 7, K: 64 }\n",
        encoding="utf-8",
    )
    ran = run("measure", "own.yaml", "--from-trace", "t.json", "-o", "json")
    assert ran.code == 3
    found = document(ran)
    times = {(each["layer"], each["pass"]): each["measured_us"] for each in found["passes"]}
    assert (times["a", "fprop"], times["a", "dgrad"], times["b", "fprop"]) == (600.0, 500.0, None)
    assert any("b not timed" in error["message"] and "no timing" in error["message"] for error in found["errors"])


def test_a_trace_calibrates_like_timings(here: Path) -> None:
    trace = TraceWriter()
    for number in range(24):
        shape, weight = (32, 64, 14 + number, 14), (64 + 8 * number, 64, 3, 3)
        trace.conv(shape, weight, [(FPROP, 300.0 + number)], pad=1, nhwc=True)
    trace.write(here / "t.json")
    ran = run("measure", "--from-trace", "t.json", "--calibrate", "gpu.toml")
    assert "gpu.toml: calibrated on 24 timings" in said(ran), ran.out
    assert 'gpu = "a100-40gb-sxm"' in (here / "gpu.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("more", [("--device", "cpu"), ("--again",), ("--limit-seconds", "3")])
def test_a_trace_times_nothing(here: Path, more: tuple[str, ...]) -> None:
    trace_of_a_training(here / "t.json")
    ran = run("measure", "--from-trace", "t.json", *more)
    assert ran.code == 2
    assert "--from-trace times nothing" in ran.err


def test_what_is_no_trace_of_a_known_gpu_gives_no_timings(here: Path) -> None:
    assert run("measure", "--from-trace", "net.yaml").code == 3
    trace = TraceWriter({})
    trace.conv(*SHAPES[0], [(FPROP, 3.0)])
    trace.write(here / "t.json")
    ran = run("measure", "--from-trace", "t.json")
    assert ran.code == 3
    assert "t.json: the trace names no GPU that convlint knows" in said(ran)
    trace = TraceWriter()
    trace.conv(*SHAPES[0], [])
    trace.write(here / "t.json")
    ran = run("measure", "--from-trace", "t.json")
    assert ran.code == 3
    assert "t.json: no kernel of a GPU in the trace belongs to a convolution" in said(ran)
    assert not list(here.glob("*.csv"))
