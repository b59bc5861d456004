"""Calibrations from the config to every command: used where they hold, said where they do not."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from calibrated import text
from command_line import convlint
from configured import prepared, write
from convolutions import conv
from msgspec.structs import replace
from specs import HEAD, ODD

from convlint import __version__
from convlint.mend.checking import Running, as_it_runs, from_options, resolve_targets
from convlint.model.errors import UsageError
from convlint.model.layer import Dtype
from convlint.model.network import Network
from convlint.model.runtime import Runtime, Version

here = pytest.fixture(autouse=True)(prepared)
SPEC = """\
version: 1
defaults: { N: 256, dtype: fp16, layout: NHWC }
layers:
  - { name: deep, C: 512, H: 28, W: 28, K: 512, R: 3, S: 3, padding: 1, first: false }
  - { name: dw, C: 512, H: 28, W: 28, K: 512, R: 3, S: 3, padding: 1, groups: 512, first: false }
"""
CONFIG = 'calibration = "gpu.toml"\n'
SAID = "times: calibrated on NVIDIA A100-SXM4-40GB, 66 passes"
CL = ("-o", "json")


@pytest.fixture(autouse=True)
def _files(here: None) -> None:
    write("net.yaml", SPEC)
    write("gpu.toml", text())


def document(command: str, *arguments: str) -> dict[str, Any]:
    ran = convlint(command, *arguments, *CL)
    assert ran.err == ""
    return json.loads(ran.out)


def bases() -> list[str]:
    return [layer["estimates"][0]["basis"] for layer in document("check", "net.yaml")["layers"]]


def times(command: str = "check", *arguments: str) -> list[float]:
    layers = document(command, "net.yaml", *arguments)["layers"]
    return [each["time_us"] for layer in layers for each in layer["estimates"]]


def test_a_slower_clock_is_a_longer_time_and_off_it_changes_nothing() -> None:
    before = convlint("check", "net.yaml", *CL).out
    plain = times()
    write("convlint.toml", CONFIG)
    slow = times()
    assert slow[0] == pytest.approx(2 * plain[0], rel=0.1)
    assert slow[1] == plain[1]  # depthwise layers run on CUDA cores
    assert times("estimate") == slow
    write("convlint.toml", "")
    assert convlint("check", "net.yaml", *CL).out == before


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_each_input_has_the_calibration_of_its_own_config(jobs: str) -> None:
    """Plain and calibrated estimates of one GPU in one process, in both orders."""
    plain = times()[0]
    for folder in ("a", "m", "z"):
        write(f"{folder}/net.yaml", SPEC)
    write("m/convlint.toml", 'calibration = "../gpu.toml"\n')
    for order in (("a", "m", "z"), ("m", "a", "z")):
        layers = document("check", *(f"{name}/net.yaml" for name in order), "--jobs", jobs)["layers"]
        found = {Path(each["path"]).parts[0]: each["estimates"][0]["time_us"] for each in layers if each["C"] == 512
                 and each["groups"] == 1}  # fmt: skip
        assert found["a"] == found["z"] == plain
        assert found["m"] > 1.8 * plain
    layers = document("estimate", "a/net.yaml", "m/net.yaml")["layers"]
    assert layers[2]["estimates"][0]["time_us"] > 1.8 * layers[0]["estimates"][0]["time_us"] == 1.8 * plain


def test_every_command_says_so() -> None:
    write("convlint.toml", CONFIG)
    layer = ("-N", "256", "-C", "512", "-H", "28", "-W", "28", "-K", "512", "-R", "3", "-S", "3", "--dtype", "fp16")
    for arguments in (
        ("check", "net.yaml"), ("estimate", "net.yaml"), ("plan", "net.yaml"), ("layer", *layer),
        ("sweep", *layer[2:], "-N", "32,64", "--no-plot"), ("sweep", "net.yaml", "--layer", "deep", "-N", "32,64"),
    ):  # fmt: skip
        assert SAID in convlint(*arguments).out, arguments
        other = convlint(*arguments, "--gpu", "a100-80gb-sxm").out
        assert SAID not in other
        assert "not calibrated by gpu.toml" in other, arguments
    assert "calibrat" not in convlint("sweep", "--figure", "2").out


def test_a_plan_and_a_sweep_follow_it() -> None:
    spec = ("plan", "net.yaml", *CL)
    swept = ("sweep", "net.yaml", "--layer", "deep", "-N", "256,512", "-o", "csv")
    plain, before = json.loads(convlint(*spec).out), convlint(*swept).out
    write("convlint.toml", CONFIG)
    slow = json.loads(convlint(*spec).out)
    assert slow["time_us"] > 1.3 * plain["time_us"]
    assert (plain["calibrations"], len(slow["calibrations"])) == ([], 1)
    assert convlint(*swept).out != before


def test_json_has_what_is_in_force() -> None:
    assert document("check", "net.yaml")["calibrations"] == []
    write("convlint.toml", CONFIG)
    write("gpu.toml", text(head='cudnn = "9.1.0"\n'))
    origin = {"path": "gpu.toml", "gpu": "a100-40gb-sxm", "device": "NVIDIA A100-SXM4-40GB", "cudnn": "9.1.0"}
    used = {**origin, "passes": 66, "used": True, "reason": None}
    assert document("check", "net.yaml")["calibrations"] == [used]
    assert document("estimate", "net.yaml")["calibrations"] == [used]
    assert document("plan", "net.yaml")["calibrations"] == [used]
    (other,) = document("check", "net.yaml", "--runtime", "cudnn=8.9")["calibrations"]
    assert (other["used"], other["reason"]) == (False, "it was measured with cuDNN 9.1.0, and the runtime has 8.9")


def test_what_was_timed_is_measured() -> None:
    group = "[[groups]]\nkind = 'depthwise'\ndtype = 'fp16'\npass = '{}'\nrows = 6\nspread = 0.1\n"
    assert bases() == ["extrapolated", "extrapolated"]
    write("convlint.toml", CONFIG)
    write("gpu.toml", text(body=group.format("fprop") + group.format("dgrad")))
    assert bases() == ["extrapolated", "extrapolated"]  # as its wgrad is
    write("gpu.toml", text(body="".join(map(group.format, ("fprop", "dgrad", "wgrad")))))
    assert bases() == ["extrapolated", "measured"]
    assert "extrapolated from other GPUs for 1 layer" in convlint("check", "net.yaml").out


REFUSED = [
    ({"gpu": "h100", "capability": "9.0"}, (), "it is for h100-sxm, which is no target"),
    ({"head": 'cudnn = "9.1.0"\n'}, ("--runtime", "cudnn=9.2"), "it was measured with cuDNN 9.1.0, and the runtime"),
    ({"convlint": "0.0.9"}, (), "its errors are those of convlint 0.0.9, and estimates have changed: measure again"),
    ({"convlint": "0.1.9"}, (), "its errors are those of convlint 0.1.9, and estimates have changed: measure again"),
    ({"convlint": "99.0.0"}, (), "its errors are those of convlint 99.0.0, and estimates have changed: measure again"),
    ({"head": 'framework = "pytorch"\n'}, ("--runtime", "framework=tensorrt"), "tensorrt has other kernels"),
]


@pytest.mark.parametrize(("made", "options", "reason"), REFUSED)
def test_what_does_not_hold_is_said_and_not_used(made: dict[str, str], options: tuple[str, ...], reason: str) -> None:
    plain = times("check", *options)
    write("convlint.toml", CONFIG)
    write("gpu.toml", text(**made))
    assert times("check", *options) == plain
    for command in ("check", "estimate", "plan"):
        out = " ".join(convlint(command, "net.yaml", *options).out.split())
        assert out.count("times: not calibrated by gpu.toml: ") == 1
        assert reason in out


@pytest.mark.parametrize(
    ("head", "options"),
    [
        ('cudnn = "9.1.0"\n', ()), ('cudnn = "9.1.0"\n', ("--runtime", "cudnn=9.1")),
        ('cudnn = "9.10"\n', ("--runtime", "cudnn=9.10.2")), ("", ("--runtime", "cudnn=8.0")),
        ('framework = "pytorch"\n', ("--runtime", "framework=onnxruntime")),
    ],
)  # fmt: skip
def test_what_is_not_known_to_differ_is_used(head: str, options: tuple[str, ...]) -> None:
    write("convlint.toml", CONFIG)
    write("gpu.toml", text(head=head))
    assert SAID in convlint("check", "net.yaml", *options).out


def test_one_file_for_each_gpu() -> None:
    write("convlint.toml", 'calibration = ["gpu.toml", "t4.toml"]\ntarget = ["a100", "t4"]\n')
    write("t4.toml", text("t4", capability="7.5").replace("NVIDIA A100-SXM4-40GB", "Tesla T4"))
    out = convlint("check", "net.yaml").out
    assert "times on a100-40gb-sxm: calibrated on NVIDIA A100-SXM4-40GB, 66 passes" in out
    assert "times on t4: calibrated on Tesla T4, 66 passes" in out
    write("t4.toml", text())
    ran = convlint("check", "net.yaml")
    assert (ran.code, ran.out) == (2, "")
    assert "convlint.toml:1:28: t4.toml and gpu.toml are both for a100-40gb-sxm; name one of them" in ran.err


def test_a_target_of_one_input_is_not_missed_in_another() -> None:
    write("convlint.toml", CONFIG)
    write("t4.yaml", SPEC.replace("version: 1", "version: 1\ntarget: [t4]"))
    out = convlint("check", "net.yaml", "t4.yaml").out
    assert "calibrated on NVIDIA" in out
    assert "not calibrated" not in out


def test_paths_are_relative_to_the_config_and_shown() -> None:
    write("sub/gpu.toml", text())
    write("sub/base.toml", CONFIG)
    write("convlint.toml", 'extend = "sub/base.toml"\n')
    assert document("check", "net.yaml")["calibrations"][0]["path"] == str(Path("sub/gpu.toml"))
    ran = convlint("config")
    assert any(line.startswith("calibration ") and "base.toml:1" in line for line in ran.out.splitlines())


@pytest.mark.parametrize("command", ["check", "estimate", "plan"])
def test_a_wrong_file_is_wrong_usage(command: str) -> None:
    write("convlint.toml", CONFIG)
    write("gpu.toml", text().replace("0.5", "nan"))
    ran = convlint(command, "net.yaml")
    assert (ran.code, ran.out) == (2, "")
    assert "gpu.toml:10:18: must be from 0.05 to 20" in ran.err
    Path("gpu.toml").unlink()
    ran = convlint(command, "net.yaml")
    assert (ran.code, "gpu.toml: does not exist" in ran.err) == (2, True)


def test_no_report_is_written_over_it() -> None:
    write("convlint.toml", 'calibration = "gpu.txt"\n')
    write("gpu.txt", text())
    ran = convlint("check", "net.yaml", "-o", "json=gpu.txt")
    assert ran.code == 2
    assert "gpu.txt" in ran.err
    assert Path("gpu.txt").read_text() == text()


def test_targets_themselves_are_as_they_were() -> None:
    write("convlint.toml", CONFIG)
    convlint("check", "net.yaml")
    (target,) = resolve_targets(["a100"])
    assert target.gpu.calibration is None


@pytest.mark.parametrize(
    "command",
    [("check", "net.yaml"), ("estimate", "net.yaml"), ("plan", "net.yaml"),
     ("sweep", "net.yaml", "--layer", "deep", "-N", "1..4")],
)  # fmt: skip
def test_a_broken_config_is_refused_unless_none_is_read(command: tuple[str, ...]) -> None:
    plain = convlint(*command)
    write("convlint.toml", CONFIG)
    write("gpu.toml", "format = 1\n")
    assert convlint(*command).code == 2
    isolated = convlint(*command, "--isolated")
    assert (isolated.code, isolated.out) == (plain.code, plain.out)


def test_a_calibration_that_predicts_worse_is_not_used() -> None:
    plain = times()
    write("convlint.toml", CONFIG)
    write("gpu.toml", text().replace("error_after = 0.1", "error_after = 9.0"))
    assert "error_after = 9.0" in Path("gpu.toml").read_text(encoding="utf-8")
    assert times() == plain
    (use,) = document("check", "net.yaml")["calibrations"]
    assert use["reason"] == "it makes predictions worse: its error_after is above its error_before"


def test_calibrations_of_versions_with_the_same_estimates_are_used() -> None:
    write("convlint.toml", CONFIG)
    now = times()
    later = ".".join([*__version__.split(".")[:2], "99"])
    for version in ("0.2.0", "0.2.7", __version__, later):
        write("gpu.toml", text(convlint=version))
        assert times() == now
        assert SAID in " ".join(convlint("check", "net.yaml").out.split())


def test_a_calibration_of_hopper_from_before_it_was_timed_is_not_used() -> None:
    write("convlint.toml", CONFIG)
    for version, is_used in (("0.3.0", False), (__version__, True)):
        write("gpu.toml", text("h100-sxm", convlint=version, capability="9.0"))
        out = " ".join(convlint("check", "net.yaml", "--gpu", "h100").out.split())
        assert ("estimates have changed: measure again" in out) is not is_used


PLAIN = Running()


def ran(asked: Running = PLAIN, usual: Running = PLAIN, *, stored: bool = False, **changes: Any) -> Network:
    runtime = Runtime(framework="pytorch", cudnn_benchmark=False)
    network = Network(path="a", layers=(replace(conv(), **changes),), runtime=runtime, stored=stored)
    return as_it_runs(network, asked, usual)


def test_nothing_said_changes_nothing() -> None:
    found = ran()
    assert found.layers == (conv(),)
    assert found.runtime == Runtime(framework="pytorch", cudnn_benchmark=False)


def test_the_command_line_has_the_last_word_and_the_config_the_first() -> None:
    settings = {"framework": "tensorrt", "cudnn_benchmark": True, "deterministic": False}
    assert ran(asked=Running(settings=settings)).runtime == Runtime(**settings)
    usual = ran(usual=Running(settings=settings)).runtime
    assert usual == Runtime(framework="pytorch", cudnn_benchmark=False, deterministic=False)


def test_a_stored_model_may_be_run_by_another_framework() -> None:
    assert ran(usual=Running(settings={"framework": "tensorrt"}), stored=True).runtime.framework == "tensorrt"


@pytest.mark.parametrize(("stored", "framework"), [(True, "tensorrt"), (False, "pytorch")])
def test_a_stored_model_is_run_by_what_a_release_is_asked_of(*, stored: bool, framework: str) -> None:
    asked = Running(settings={"tensorrt": Version("10.3")})
    assert ran(asked, stored=stored).runtime.framework == framework


def test_a_spec_that_says_int8_is_overridden() -> None:
    (layer,) = ran(Running(dtype=Dtype.fp16), dtype=Dtype.int8, spans={"dtype": (1, 1, 1, 5)}).layers
    assert layer.dtype == Dtype.fp16


@pytest.mark.parametrize(
    ("asked", "usual", "dtype", "source", "expected"),
    [
        (Dtype.fp16, None, Dtype.fp32, "stated", Dtype.fp16),
        (None, Dtype.fp16, Dtype.fp32, "stated", Dtype.fp32),
        (None, Dtype.fp16, Dtype.fp32, "storage", Dtype.fp16),
        (None, Dtype.fp16, Dtype.fp32, "module", Dtype.fp16),
        (None, Dtype.fp16, None, "stated", Dtype.fp16),
        (Dtype.bf16, Dtype.fp16, None, "stated", Dtype.bf16),
        (Dtype.fp16, None, Dtype.int8, "stated", Dtype.int8),
    ],
)
def test_dtypes(asked: Any, usual: Any, dtype: Any, source: Any, expected: Dtype) -> None:
    (layer,) = ran(Running(dtype=asked), Running(dtype=usual), dtype=dtype, dtype_source=source).layers
    assert layer.dtype == expected
    assert expected in (dtype, Dtype.int8) or layer.dtype_source == "stated"


@pytest.mark.parametrize(
    ("asked", "usual", "layout", "expected"),
    [("NHWC", None, "NCHW", "NHWC"), (None, "NHWC", "NCHW", "NCHW"), (None, "NHWC", "auto", "NHWC")],
)
def test_layouts(asked: Any, usual: Any, layout: Any, expected: str) -> None:
    (layer,) = ran(Running(layout=asked), Running(layout=usual), layout=layout).layers
    assert layer.layout == expected


def test_options_are_read_as_a_spec_spells_them() -> None:
    found = from_options(["framework=trt", "benchmark=yes", "cudnn=8902"], "half", "channels_last")
    assert (found.dtype, found.layout) == (Dtype.fp16, "NHWC")
    assert {name: str(value) for name, value in found.settings.items()} == {
        "framework": "tensorrt", "cudnn_benchmark": "True", "cudnn": "8.9.2",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("runtime", "dtype", "layout", "message"),
    [
        (["cudnn"], None, None, "--runtime: 'cudnn' is not KEY=VALUE"),
        (["cudnnn=8"], None, None, "--runtime: unknown runtime setting 'cudnnn'; did you mean 'cudnn'?"),
        (["tf32=maybe"], None, None, "--runtime: tf32: must be true or false, not maybe"),
        (["tf32=on", "tf32=off"], None, None, "--runtime: tf32 is given twice"),
        ([], "fp15", None, "--dtype: 'fp15' is not one of"),
        ([], None, "NHCW", "--layout: 'NHCW' is not one of"),
    ],
)
def test_wrong_options_are_refused(runtime: list[str], dtype: Any, layout: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        from_options(runtime, dtype, layout)
    assert str(caught.value).startswith(message)


def test_one_layer_from_flags_is_judged_as_an_input_is() -> None:
    flags = ["-N", "256", "-C", "62", "-H", "56", "-W", "56", "-K", "128", "-R", "3", "-S", "3", "--pad", "3"]
    flags += ["--dtype", "fp16", "--layout", "NHWC", "--isolated", "-o", "concise"]
    assert re.findall(r" (CL102|CL006) ", convlint("layer", *flags).out) == ["CL102", "CL006"]
    assert re.findall(r" (CL102|CL006) ", convlint("layer", *flags, "--ignore", "CL102").out) == ["CL006"]
    Path("convlint.toml").write_text('[[per-layer-ignores]]\nlayers = "*"\nrules = ["CL1"]\nreason = "x"\n')
    flags.remove("--isolated")
    assert re.findall(r" (CL102|CL006) ", convlint("layer", *flags).out) == ["CL006"]


def test_what_is_silenced_is_so_with_many_processes() -> None:
    for name in "abc":
        Path(f"{name}.yaml").write_text(HEAD + f"  - {{ name: odd, {ODD} }} # convlint: ignore[CL102] -- so\n")
    Path("d.yaml").write_text(HEAD + f"  - {{ name: odd, {ODD} }}\n")
    convlint("check", "d.yaml", "--isolated", "--write-baseline", "base.json")
    options = ["--isolated", "--baseline", "base.json", "-o", "json"]
    alone, many = (convlint("check", ".", *options, "--jobs", jobs) for jobs in ("1", "3"))
    assert alone == many
    assert alone.out.count('"reason": "so"') == 3
