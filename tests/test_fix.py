"""`convlint check --fix`, `--diff` and `--unsafe-fixes`, as they are typed."""

import json
import os
import stat
import subprocess
from pathlib import Path
from unittest.mock import patch

import pytest
from command_line import convlint
from specs import GOOD

from convlint.mend import mending

NET = """\
# a network   of three layers
version: 1
target: [a100]
runtime: { framework: pytorch, cudnn_benchmark: false, fixed_input_size: true }
defaults: { N: 256, dtype: fp16, layout: NCHW }   # as torch has it
layers:
  - { name: image, op: input, C: 3, H: 224, W: 224 }
  - { name: stem, K: 60, kernel_size: 7, stride: 2, padding: 3 }   # first
  - name: conv2
    out_channels: 124   # odd
    kernel_size: [3, 3]
    padding: 1
  - {name: conv3, "in_channels": 124, K: 64, kernel_size: 3, padding: 1, head: false}
  - { name: pool, op: global_pool }
"""
SAFE = NET.replace("benchmark: false", "benchmark: true").replace("layout: NCHW", "layout: NHWC")
MENDED = SAFE.replace("C: 3,", "C: 4,").replace("K: 60", "K: 64").replace(": 124", ": 128")


@pytest.fixture(autouse=True)
def _here(here: Path) -> None:
    write("net.yaml")


def write(name: str, text: str | bytes = NET) -> Path:
    path = Path(name)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def content(name: str = "net.yaml") -> str:
    return Path(name).read_bytes().decode()


def test_safe_fixes_alone() -> None:
    ran = convlint("check", "net.yaml", "--fix", "-o", "concise")
    assert content() == SAFE
    assert ran.code == 1  # what is left
    assert "CL102" in ran.out
    assert "CL401" not in ran.out
    assert "fixed 2 findings in 1 file" in ran.err


def test_unsafe_fixes_too() -> None:
    ran = convlint("check", "net.yaml", "--fix", "--unsafe-fixes", "-o", "concise")
    assert content() == MENDED
    assert ran.code == 0
    assert ": 0 errors, 0 warnings" in ran.out
    again = convlint("check", "net.yaml", "--fix", "--unsafe-fixes")
    assert content() == MENDED
    assert again.err == ""


def test_how_many_could_be_fixed_is_said_before_the_last_line() -> None:
    def told(*options: str) -> str:
        *lines, last = convlint("check", *options).out.splitlines()
        assert last.startswith("3 layers in 1 file")
        return next((line.strip() for line in lines if "[*]" in line), "")

    assert told("net.yaml") == "[*] 2 fixable with --fix (3 more with --unsafe-fixes)"
    assert told("net.yaml", "--unsafe-fixes") == "[*] 5 fixable with --fix"
    write("net.yaml", SAFE)
    assert told("net.yaml") == "[*] 3 fixable with --fix --unsafe-fixes"
    write("net.yaml", MENDED)
    assert told("net.yaml") == ""


def test_a_diff_is_all_that_is_printed_and_nothing_is_written() -> None:
    ran = convlint("check", "net.yaml", "--diff", "--unsafe-fixes")
    assert ran.code == 1
    assert ran.out.startswith("--- net.yaml\n+++ net.yaml\n@@ -1,14 +1,14 @@\n")
    assert ran.err == "convlint: would fix 5 findings in 1 file\n"
    assert content() == NET
    subprocess.run(["patch", "-s", "net.yaml"], input=ran.out, text=True, check=True)
    assert content() == MENDED
    ran = convlint("check", "net.yaml", "--diff", "--fix", "--unsafe-fixes")
    assert ran == (0, "", "convlint: nothing would be fixed\n")


def test_a_diff_in_colour() -> None:
    lines = convlint("check", "net.yaml", "--diff", "--color", "always").out.splitlines()
    assert lines[0] == "\x1b[1m--- net.yaml\x1b[0m"
    assert "\x1b[31m-defaults: { N: 256, dtype: fp16, layout: NCHW }   # as torch has it\x1b[0m" in lines
    assert "\x1b[32m+defaults: { N: 256, dtype: fp16, layout: NHWC }   # as torch has it\x1b[0m" in lines


def test_standard_input_is_answered_on_standard_output() -> None:
    ran = convlint("check", "-", "--fix", "--unsafe-fixes", "-o", "concise", stdin=NET)
    assert (ran.code, ran.out) == (0, MENDED)
    assert "0 errors, 0 warnings" in ran.err  # the report makes room
    assert "--- -\n+++ -\n" in convlint("check", "-", "--diff", stdin=NET).out
    good = GOOD.replace("\n", "\r\n")
    assert convlint("check", "-", "--fix", stdin=good).out == good


@pytest.mark.parametrize("text", ["version: 1\nlayers: [\n", "", "hello", NET.replace("K: 60", "K: -60")])
def test_standard_input_that_cannot_be_read_is_not_lost(text: str) -> None:
    ran = convlint("check", "-", "--fix", stdin=text)
    assert (ran.code, ran.out) == (3, text)
    assert "<stdin>" in ran.err


def test_standard_input_that_is_too_long_is_not_lost() -> None:
    text = NET + "# padding\n" * 500_000
    ran = convlint("check", "-", "--fix", stdin=text)
    assert (ran.code, ran.out) == (3, text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (NET.replace("\n", "\r\n"), MENDED.replace("\n", "\r\n")),
        ("\ufeff" + NET, "\ufeff" + MENDED),
        (NET.rstrip("\n"), MENDED.rstrip("\n")),
        (NET.replace("   #", "\t#"), MENDED.replace("   #", "\t#")),
        (NET.replace("# first", "# ünïcödé 网络 🙂"), MENDED.replace("# first", "# ünïcödé 网络 🙂")),
    ],
    ids=["CRLF", "BOM", "no last line break", "tabs", "unicode"],
)
def test_all_other_bytes_stay(before: str, after: str) -> None:
    write("net.yaml", before)
    convlint("check", "net.yaml", "--fix", "--unsafe-fixes")
    assert content() == after
    diff = convlint("check", "-", "--diff", "--unsafe-fixes", stdin=before).out
    assert ("\r\n" in diff) == ("\r\n" in before)


def test_several_files_in_folders_and_processes() -> None:
    Path("specs").mkdir()
    for number in range(3):
        write(f"specs/{number}.yaml")
    write("specs/good.yaml", GOOD)
    ran = convlint("check", "specs", "--fix", "--unsafe-fixes", "-j", "2")
    assert ran.code == 0
    assert "fixed 15 findings in 3 files" in ran.err
    assert [content(f"specs/{number}.yaml") for number in range(3)] == [MENDED] * 3
    assert content("specs/good.yaml") == GOOD


def test_what_counts_is_fixed() -> None:
    convlint("check", "net.yaml", "--fix", "--fail-on", "error")
    assert content() == NET.replace("layout: NCHW", "layout: NHWC")  # all that is advised
    write("net.yaml")
    convlint("check", "net.yaml", "--fix", "--select", "CL501")
    assert content() == NET.replace("benchmark: false", "benchmark: true")
    convlint("check", "net.yaml", "--fix", "--fail-on", "never")
    assert content() == SAFE


def test_what_is_silenced_is_not_fixed() -> None:
    text = NET.replace("# as torch has it", "# convlint: ignore[CL401] -- as torch has it")
    write("net.yaml", text)
    convlint("check", "net.yaml", "--fix")
    assert content() == text.replace("benchmark: false", "benchmark: true")
    write("net.yaml")
    convlint("check", "net.yaml", "--write-baseline", "known.json")
    assert convlint("check", "net.yaml", "--fix", "--unsafe-fixes", "--baseline", "known.json").code == 0
    assert content() == NET


def test_what_the_command_line_overrides_is_not_written() -> None:
    ran = convlint("check", "net.yaml", "--fix", "--layout", "NCHW")
    assert content() == NET.replace("benchmark: false", "benchmark: true")
    assert "CL401 of stem, conv2, conv3 is not fixed: --layout is given" in ran.err


def test_what_would_make_another_target_slower_is_not_fixed() -> None:
    ran = convlint("check", "net.yaml", "--fix", "--unsafe-fixes", "-g", "a100", "-g", "p100", "-o", "concise")
    assert "layout: NCHW" in content()
    assert "is not fixed" in ran.err


COMPILED = """\
version: 1
target: [p100, a100]
runtime: { framework: pytorch, compile: true }
mode: inference
defaults: { dtype: fp16, layout: NHWC }
layers:
  - { name: a, N: 64, C: 64, H: 56, W: 56, K: 64, kernel_size: 3, padding: 1 }
  - { op: norm }
  - { op: activation }
  - { name: b, K: 64, kernel_size: 3, padding: 1 }
  - { op: norm }
"""


@pytest.mark.parametrize(("targets", "written"), [("p100", True), ("p100, k80", True), ("p100, a100", False)])
def test_what_one_target_cannot_run_is_no_safe_fix_where_another_runs_longer_for_it(
    targets: str, *, written: bool
) -> None:
    """The P100 has no compiler, which the A100 has: without it, its step takes longer."""
    text = COMPILED.replace("p100, a100", targets)
    write("net.yaml", text)
    before = json.loads(convlint("check", "net.yaml", "-o", "json").out)
    fix = next(each["fix"] for each in before["findings"] if each["code"] == "CL803")
    assert (fix["applicable"], "longer on a100" in (fix["no_edit"] or "")) == (written, not written)
    fixed = convlint("check", "net.yaml", "--fix", "--select", "CL803")
    assert content() == (text.replace("compile: true", "compile: false") if written else text)
    assert written or f"CL803 is not fixed: {fix['no_edit']}" in fixed.err
    assert written or '"fixes"' not in convlint("check", "net.yaml", "--select", "CL803", "-o", "sarif").out


BUSY = """version: 1
mode: training
target: h100
runtime: {{ framework: pytorch, cudnn_benchmark: true, fixed_input_size: true }}
defaults: {{ N: {N}, dtype: fp32, layout: NCHW }}
layers:
  - {{ name: image, op: input, C: 64, H: 160, W: 160 }}
"""


@pytest.mark.parametrize("N", [1, 6, 12])
def test_no_fix_makes_the_step_longer_that_the_host_sets_the_pace_of(N: int) -> None:
    """Mixed precision pays once the host is out of the way, which no fix of a file is: check, fix and check agree."""
    layers = (
        f"  - {{ name: c{i}, K: 64, kernel_size: 3, padding: 1 }}\n  - {{ name: r{i}, op: relu }}\n" for i in range(12)
    )
    write("net.yaml", BUSY.format(N=N) + "".join(layers))
    before = json.loads(convlint("check", "net.yaml", "-o", "json").out)["summary"]
    said = convlint("check", "net.yaml", "--fix", "--unsafe-fixes").err
    after = json.loads(convlint("check", "net.yaml", "-o", "json").out)["summary"]
    assert after["step_us"] <= before["step_us"] * 1.001
    assert after["time_us"] == pytest.approx(before["time_after_fix_us"], rel=0.01)
    assert ("the step would take" in said) == (N == 1)


SKIPPING = """\
version: 1
target: [v100]
defaults: { N: 128, dtype: fp16 }
layers:
  - { name: a, C: 16, D: 8, H: 8, W: 8, K: 250, kernel_size: [3, 1, 1], stride: [1, 2, 2] }
"""
# In NCHW this network needs more than the 4 GiB that the GPU has, most of it the workspace of FFT, which fits alone.
FULL_IN_NCHW = """\
version: 1
target: [gtx-1650]
defaults: { N: 14, dtype: fp32, layout: NHWC }
layers:
  - { name: l0, C: 2, H: 112, W: 112, K: 250, kernel_size: [7, 1] }
  - { name: l1, K: 250, kernel_size: [5, 3], padding: [2, 1] }
  - { name: l2, op: conv_transpose, K: 96, kernel_size: 2, stride: 2 }
  - { name: l3, K: 96, kernel_size: 3 }
  - { name: l4, K: 256, kernel_size: 5 }
  - { name: l5, K: 256, kernel_size: 1 }
  - { name: l6, K: 256, kernel_size: 1 }
"""


# fp16 pays with CL813 alone, which no spec can have.
PATCHES = """\
version: 1
target: [t4]
mode: inference
runtime: { framework: pytorch }
defaults: { N: 55, dtype: tf32, layout: NHWC }
layers:
  - { name: p, C: 3, H: 128, W: 112, K: 192, R: 8, S: 8, stride: 8 }
"""


@pytest.mark.parametrize(
    ("text", "code", "why", "mended"),
    [
        (SKIPPING, "CL004", "a larger filter takes longer", SKIPPING.replace("K: 250", "K: 256")),
        (FULL_IN_NCHW, "CL403", "it would lead to CL801", FULL_IN_NCHW),
        (PATCHES, "CL106", "its layers would take 31.6 us longer on t4", PATCHES),
    ],
)
def test_the_check_knows_what_the_fix_refuses(text: str, code: str, why: str, mended: str) -> None:
    write("net.yaml", text)
    before = json.loads(convlint("check", "net.yaml", "-o", "json").out)
    finding = next(each for each in before["findings"] if each["code"] == code)
    assert finding["fix"]["applicable"] is False
    assert why in finding["fix"]["no_edit"]
    fixed = convlint("check", "net.yaml", "--fix", "--unsafe-fixes")
    assert f"is not fixed: {finding['fix']['no_edit']}" in fixed.err
    assert content() == mended
    (after,) = json.loads(convlint("check", "net.yaml", "-o", "json").out)["networks"]
    assert before["networks"][0]["time_after_fix_us"] == pytest.approx(after["time_us"], abs=0.01)


TOO_MUCH = """\
version: 1
target: [p100]
runtime: { framework: tensorflow }
mode: training
defaults: { dtype: fp32, layout: NHWC }
layers:
  - { name: a, N: 256, C: 32, H: 256, W: 256, K: 500, R: 3, S: 3, padding: 1, first: true }
  - { op: layernorm }
  - { name: b, K: 250, R: 3, S: 3, padding: 1 }
  - { op: groupnorm }
  - { op: activation }
  - { name: c, K: 128, R: 1, S: 1 }
"""
TOO_OLD = """\
version: 1
target: [b200]
runtime: { framework: pytorch, compile: true, cuda: "12.1" }
mode: training
defaults: { dtype: fp32 }
layers:
  - { name: a, N: 128, C: 3, H: 224, W: 224, K: 10, R: 1, S: 1, first: true }
  - { op: layernorm }
"""
FOR_TWO = """\
version: 1
target: [h100, rtx-4090]
runtime: { framework: pytorch, compile: false, mixed_precision: true }
mode: inference
defaults: { dtype: fp16 }
layers:
  - { name: a, N: 128, C: 256, H: 56, W: 56, K: 130, R: 1, S: 1 }
  - { op: layernorm }
  - { op: activation }
"""
WITHOUT_OUTPUT = """\
version: 1
target: [a100]
mode: inference
defaults: { dtype: fp16, layout: NHWC }
layers:
  - { name: a, N: 96, C: 64, H: 6, W: 6, K: 100, R: 7, S: 7 }
  - { name: b, K: 130, R: 5, S: 5 }
"""
# Once all widths but that of c and d are written, fp16 is advised, for which they need a multiple of 8.
OF_TWO_DTYPES = """\
version: 1
target: [h100]
runtime: { framework: pytorch, mixed_precision: false }
mode: training
defaults: { dtype: tf32, layout: NHWC }
layers:
  - { name: a, N: 64, C: 128, H: 28, W: 28, K: 255, kernel_size: 5, padding: 4, dilation: 2, first: true }
  - { op: layernorm }
  - { op: activation }
  - { name: b, K: 8, kernel_size: 3, padding: 1, dtype: fp16 }
  - { op: groupnorm }
  - { op: activation }
  - { name: c, K: 65, kernel_size: 7, stride: 2 }
  - { op: norm }
  - { op: activation }
  - { name: d, K: 65, kernel_size: 2, padding: 1, groups: 65 }
  - { op: norm }
  - { op: activation }
  - { name: e, K: 62, kernel_size: 3, padding: 1, bias: true }
  - { op: norm }
  - { name: f, K: 24, kernel_size: 3, padding: 1 }
  - { op: groupnorm }
"""


@pytest.mark.parametrize(
    ("text", "applicable"),
    [
        pytest.param(TOO_MUCH, {"CL801"}, id="a batch that fits is written"),
        pytest.param(TOO_OLD, {"CL102", "CL103", "CL106"}, id="nobody writes another CUDA"),
        pytest.param(FOR_TWO, set(), id="the step of one target would be longer"),
        pytest.param(WITHOUT_OUTPUT, set(), id="the next layer would have no output"),
    ],
)
def test_a_promise_follows_all_rounds(text: str, applicable: set[str]) -> None:
    write("net.yaml", text)
    before = json.loads(convlint("check", "net.yaml", "-o", "json").out)
    assert {each["code"] for each in before["findings"] if each["fix"] and each["fix"]["applicable"]} == applicable
    convlint("check", "net.yaml", "--fix", "--unsafe-fixes")
    assert (content() != text) is bool(applicable)
    after = json.loads(convlint("check", "net.yaml", "-o", "json").out)
    promised = [network["time_after_fix_us"] for network in before["networks"]]
    assert promised == pytest.approx([network["time_us"] for network in after["networks"]], abs=0.01)


def test_no_dtype_is_promised_for_which_an_old_cudnn_has_no_kernel() -> None:
    """In fp16, cuDNN 7.5 runs the 61 channels, which the task fixes, without Tensor Cores."""
    text = """\
version: 1
target: [v100]
mode: inference
runtime: { framework: pytorch, cudnn: "7.5" }
defaults: { dtype: fp32, layout: NHWC }
layers:
  - { name: a, N: 64, C: 64, H: 56, W: 56, K: 64, kernel_size: 3, padding: 1 }
  - { name: b, K: 61, kernel_size: 3, padding: 1, head: true }
"""
    write("net.yaml", text)
    (finding,) = json.loads(convlint("check", "net.yaml", "--select", "CL1", "-o", "json").out)["findings"]
    fixed = convlint("check", "net.yaml", "--select", "CL1", "--fix", "--unsafe-fixes")
    assert "CL106 of a, b is not fixed: it would lead to CL101" in fixed.err
    assert content() == text
    assert (finding["fix"]["applicable"], finding["fix"]["no_edit"]) == (False, "it would lead to CL101")


def test_of_two_dtypes_the_widths_are_those_of_the_one_that_is_advised() -> None:
    """--fix writes no fp16, which the host is too slow for, but the widths that fp16 wants beside CUDA graphs."""
    write("net.yaml", OF_TWO_DTYPES)
    before = json.loads(convlint("check", "net.yaml", "-o", "json").out)
    convlint("check", "net.yaml", "--fix", "--unsafe-fixes")
    after = json.loads(convlint("check", "net.yaml", "-o", "json").out)
    fixes = {each["layer"]: each["fix"] for each in before["findings"] if each["code"] == "CL102"}
    assert {layer: fix["set"] for layer, fix in fixes.items()} == {"a": {"K": 256}, "c": {"K": 72}, "e": {"K": 64}}
    assert all(fix["applicable"] for fix in fixes.values())
    (dtype,) = [each["fix"] for each in before["findings"] if each["code"] == "CL106"]
    assert "the host starts all operations of autocast" in dtype["no_edit"]
    assert (
        before["summary"]["time_after_fix_us"] == after["summary"]["time_us"] == after["summary"]["time_after_fix_us"]
    )


def test_no_width_is_mended_that_the_norms_behind_it_pay_for() -> None:
    """One channel for eight: the convolution saves 50 us, and the norm behind it costs 80 us more."""
    text = """\
version: 1
target: [h100]
mode: training
defaults: { N: 100, dtype: bf16, layout: NHWC }
layers:
  - { name: a, C: 2, H: 112, W: 112, K: 1, kernel_size: 5 }
  - { name: b, op: norm }
"""
    write("net.yaml", text)
    ran = convlint("check", "net.yaml", "-o", "json")
    before = json.loads(ran.out)
    (network,) = before["networks"]
    finding = next(each for each in before["findings"] if each["code"] == "CL102")
    assert ran.code == 0
    assert network["step_after_us"] > network["step_us"]
    assert (finding["severity"], finding["lost_us"] > 0, finding["lost_step_us"]) == ("info", True, 0)
    assert "gets wider" in finding["fix"]["no_edit"]
    convlint("check", "net.yaml", "--fix", "--unsafe-fixes")
    assert content() == text


def test_no_layout_is_written_that_the_norms_between_pay_for() -> None:
    """In NCHW the convolutions save 9 ms, and two batch norms cost 19 ms more."""
    text = """\
version: 1
target: [jetson-agx-orin]
runtime: { framework: pytorch, cudnn_benchmark: true, tf32: false }
mode: inference
defaults: { dtype: fp16, layout: NHWC }
layers:
  - { name: a, N: 128, C: 64, H: 224, W: 224, K: 30, kernel_size: 5, padding: 2, first: false }
  - { op: groupnorm }
  - { op: activation }
  - { name: b, K: 256, kernel_size: 3, padding: 1 }
  - { op: norm }
  - { op: norm }
"""
    write("net.yaml", text)
    before = json.loads(convlint("check", "net.yaml", "-o", "json").out)
    fixes = [each["fix"] for each in before["findings"] if each["fix"] and "NCHW" in each["fix"]["set"].values()]
    assert fixes
    assert not any(fix["applicable"] for fix in fixes)
    assert "takes longer in that layout" in fixes[0]["no_edit"]
    assert before["summary"]["time_after_fix_us"] == before["summary"]["time_us"]
    assert '"fixes"' not in convlint("check", "net.yaml", "-o", "sarif").out
    fixed = convlint("check", "net.yaml", "--fix")
    assert f"is not fixed: {fixes[0]['no_edit']}" in fixed.err
    assert content() == text


def test_what_a_linear_layer_reads_may_change() -> None:
    text = MENDED.replace("name: pool, op: global_pool", "name: fc, op: linear, C: 10, H: 1, W: 1")
    write("net.yaml", text.replace("K: 64, kernel_size: 3", "K: 62, kernel_size: 3"))
    ran = convlint("check", "net.yaml", "-o", "json")
    (finding,) = json.loads(ran.out)["findings"]
    assert (finding["code"], finding["advised"], finding["fix"]["applicable"]) == ("CL102", True, True)
    assert "linear fc with it" in finding["fix"]["describe"]
    convlint("check", "net.yaml", "--fix", "--unsafe-fixes")
    assert content() == text


def test_a_linear_layer_of_twice_the_channels_changes_with_them() -> None:
    """As one that makes a scale and an offset for each channel."""
    text = MENDED.replace(
        "  - { name: pool, op: global_pool }",
        "  - { name: pool, op: global_pool }\n  - {name: both, op: linear, C: 128}  # scale, offset\n"
        "  - {name: scale, op: channel_split}\n  - {name: scaled, op: mul, inputs: [conv3, scale]}\n"
        "  - {name: last, K: 64, kernel_size: 1, head: false}",
    )
    assert "both" in text
    narrow = text.replace("K: 64, kernel_size: 3, padding: 1, head", "K: 62, kernel_size: 3, padding: 1, head").replace(
        "C: 128", "C: 124"
    )
    write("net.yaml", narrow)
    convlint("check", "net.yaml", "--fix", "--unsafe-fixes")
    assert content() == text


def test_what_depends_on_channels_that_stay_says_so() -> None:
    text = MENDED.replace("name: pool, op: global_pool", "name: fc, op: reshape, C: 10, H: 1, W: 1")
    text = text.replace("K: 64, kernel_size: 3", "K: 62, kernel_size: 3")
    write("net.yaml", text)
    ran = convlint("check", "net.yaml", "--fix", "--unsafe-fixes", "-o", "json")
    assert (ran.code, ran.err, content()) == (0, "", text)  # nobody knows what the reshape does: nobody is advised
    (finding,) = json.loads(ran.out)["findings"]
    assert (finding["code"], finding["advised"], finding["fix"]["applicable"]) == ("CL102", False, False)


def test_models_are_not_edited(tmp_path: Path) -> None:
    write("weights.safetensors", b"\x02\x00\x00\x00\x00\x00\x00\x00{}")
    ran = convlint("check", "weights.safetensors", "net.yaml", "--fix")
    assert (
        "weights.safetensors is not edited: only specs in YAML and JSON, and the code of PyTorch models, are" in ran.err
    )
    assert "fixed 2 findings in 1 file" in ran.err
    assert Path("weights.safetensors").read_bytes() == b"\x02\x00\x00\x00\x00\x00\x00\x00{}"


def test_a_file_that_is_read_only_stays(tmp_path: Path) -> None:
    os.chmod("net.yaml", 0o444)
    ran = convlint("check", "net.yaml", "--fix", "-o", "concise")
    assert ran.code == 3
    assert content() == NET
    assert "is not fixed: it is read-only" in ran.out
    assert "CL401" in ran.out  # the report is of the file as it is
    assert "fixed" not in ran.err


def test_a_file_that_changed_meanwhile_stays() -> None:
    other = NET + "# somebody was faster\n"
    run = mending.Mending.run

    def meanwhile(self: mending.Mending) -> None:
        run(self)
        write("net.yaml", other)

    with patch.object(mending.Mending, "run", meanwhile):
        ran = convlint("check", "net.yaml", "--fix", "-o", "concise")
    assert ran.code == 3
    assert content() == other
    assert "it changed while it was checked" in ran.out


def test_a_defect_leaves_the_file() -> None:
    with patch.object(mending.Mending, "_accept", side_effect=RuntimeError("boom")):
        ran = convlint("check", "net.yaml", "--fix", "-o", "concise")
    assert ran.code == 4
    assert content() == NET
    assert "boom" in ran.out


def test_mode_and_links_are_kept() -> None:
    os.chmod("net.yaml", 0o640)
    os.symlink("net.yaml", "link.yaml")
    convlint("check", "link.yaml", "--fix", "--unsafe-fixes")
    assert content() == MENDED
    assert os.path.islink("link.yaml")
    assert stat.S_IMODE(os.stat("net.yaml").st_mode) == 0o640
    assert sorted(os.listdir()) == ["link.yaml", "net.yaml"]


def test_links_that_lead_away_are_not_followed(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "net.yaml"
    outside.write_text(NET)
    Path("net.yaml").unlink()
    os.symlink(outside, "net.yaml")
    ran = convlint("check", "net.yaml", "--fix", "-o", "concise")
    assert ran.code == 3
    assert outside.read_text() == NET
    assert "leads out of" in ran.out


def test_files_that_cannot_be_read_are_reported_beside_the_diff() -> None:
    write("broken.yaml", "version: 1\nlayers: [\n")
    ran = convlint("check", "broken.yaml", "net.yaml", "--diff")
    assert ran.code == 3
    assert ran.out.startswith("--- net.yaml")
    assert "broken.yaml:" in ran.err


@pytest.mark.parametrize("option", ["--output=json", "--write-baseline=b.json", "--prune-baseline"])
def test_a_diff_goes_with_nothing_that_writes(option: str) -> None:
    ran = convlint("check", "net.yaml", "--diff", option)
    assert ran.code == 2
    assert "--diff" in ran.err


def test_json_specs() -> None:
    text = (
        '{"version": 1, "target": "a100", "defaults": {"N": 256, "dtype": "fp16", "layout": "NCHW"},\n'
        ' "layers": [{"name": "a", "C": 64, "H": 56, "W": 56, "K": 128, "kernel_size": 3, "padding": 1}]}\n'
    )
    write("net.json", text)
    assert convlint("check", "net.json", "--fix").code == 0
    assert content("net.json") == text.replace("NCHW", "NHWC")


PARTLY_UNKNOWN = """\
version: 1
target: t4
runtime: { framework: pytorch, cudnn_benchmark: true, fixed_input_size: true }
defaults: { N: 1, dtype: bf16, layout: NHWC }
layers:
  - { name: stem, C: 3, H: 224, W: 224, K: 40, kernel_size: 4, stride: 4 }
  - { name: d2, K: 80, kernel_size: 2, stride: 2 }
  - { name: d3, K: 160, kernel_size: 2, stride: 2 }
  - { name: split, op: reshape, C: 160 }
  - { name: d4, K: 320, kernel_size: 2, stride: 2 }
"""


def test_where_a_time_is_unknown_the_check_calls_applicable_what_is_written() -> None:
    write("net.yaml", PARTLY_UNKNOWN)
    found = json.loads(convlint("check", "net.yaml", "-o", "json").out)["findings"]
    (fix,) = (each["fix"] for each in found if each["code"] == "CL106")
    why = fix["no_edit"]
    assert (fix["applicable"], why[:27]) == (False, "its layers would take 26.1 ")
    ran = convlint("check", "net.yaml", "--fix", "--unsafe-fixes")
    assert why in ran.err
    assert content("net.yaml") == PARTLY_UNKNOWN


# The wider channels of l0 pay on the RTX with fp16 alone, which the host cannot start; fp32 is what tf32 runs as.
WIDER_WITH_HALF = """\
version: 1
target: [p100, rtx-2080-ti]
mode: training
runtime: { framework: pytorch, tf32: false }
defaults: { N: 16, dtype: tf32, layout: NCHW }
layers:
  - { name: image, op: input, C: 100, H: 4, W: 4 }
  - { name: l0, K: 100, groups: 100, kernel_size: 1 }
  - { name: l1, op: activation }
  - { name: l2, K: 48, kernel_size: 4, stride: 4, padding: 2 }
"""
# On the K80 fp16 is faster in some layers and slower in others.
HALF_IN_SOME = """\
version: 1
target: [k80, h100]
mode: inference
runtime: { framework: mxnet }
defaults: { N: 1, dtype: tf32, layout: auto }
layers:
  - { name: image, op: input, C: 3, H: 56, W: 56 }
  - { name: l0, K: 512, kernel_size: 7, stride: 7, padding: 3 }
  - { name: l1, op: conv_transpose, K: 8, kernel_size: 2, padding: 1, layout: NCHW }
  - { name: l2, K: 60, kernel_size: 5, stride: 2 }
"""


@pytest.mark.parametrize("text", [WIDER_WITH_HALF, HALF_IN_SOME])
def test_what_corrects_a_dtype_for_one_gpu_brings_nothing_that_makes_another_slower(text: str) -> None:
    """`call it fp32` comes without what pays with fp16, and in all layers, as fp16 would."""
    write("net.yaml", text)
    before = json.loads(convlint("check", "net.yaml", "-o", "json").out)["totals"]
    convlint("check", "net.yaml", "--fix", "--unsafe-fixes")
    after = json.loads(convlint("check", "net.yaml", "-o", "json").out)
    for old, new in zip(before, after["totals"], strict=True):
        assert new["time_us"] <= old["time_us"] * (1 + 1e-6), new["gpu"]
    assert len({layer["dtype"] for layer in after["layers"]}) == 1
    assert content("net.yaml").count("dtype") == 1
