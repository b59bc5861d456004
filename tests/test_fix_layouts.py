"""`convlint check --fix` on whole networks: layouts that move together, and rounds that keep what was promised."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Ran, convlint
from parsed import sarif_run
from sarif_fixes import applied

pytestmark = pytest.mark.usefixtures("here")
TOP = "version: 1\ntarget: [a100]\ndefaults: { N: 64, dtype: fp16, layout: NCHW }\nlayers:\n"
MOBILE = (
    TOP
    + """\
  - { name: image, op: input, C: 3, H: 224, W: 224 }
  - { name: stem, K: 64, kernel_size: 3, stride: 2, padding: 1 }
  - { name: dw1, K: 64, groups: 64, kernel_size: 3, padding: 1 }   # no rule minds its layout
  - { name: pw1, K: 128, kernel_size: 1 }
  - { name: dw2, K: 128, groups: 128, kernel_size: 3, padding: 1 }
  - { name: c3, K: 256, kernel_size: 3, padding: 1 }
  - { name: head, K: 21, kernel_size: 1 }
"""
)
ALONE = (
    TOP
    + """\
  - { name: a, C: 64, H: 56, W: 56, K: 64, kernel_size: 3, padding: 1 }
  - { name: dw, C: 64, H: 56, W: 56, K: 64, groups: 64, kernel_size: 3, padding: 1 }
  - { name: b, C: 64, H: 56, W: 56, K: 256, kernel_size: 1 }
"""
)
GROUPED = (
    TOP
    + """\
  - { name: image, op: input, C: 64, H: 56, W: 56 }
  - { name: a, K: 384, kernel_size: 3, padding: 1 }
  - { name: g, K: 384, groups: 8, kernel_size: 3, padding: 1 }
  - { name: b, K: 256, kernel_size: 1 }
"""
)


def fixed(text: str, *options: str) -> tuple[Ran, str]:
    Path("net.yaml").write_text(text)
    ran = convlint("check", "net.yaml", "--fix", "-o", "concise", *options)
    return ran, Path("net.yaml").read_text()


@pytest.mark.parametrize("text", [MOBILE, ALONE], ids=["connected", "alone"])
@pytest.mark.parametrize("gpus", [(), ("-g", "v100"), ("-g", "v100", "-g", "a100")], ids=["a100", "v100", "both"])
def test_a_network_moves_as_a_whole(text: str, gpus: tuple[str, ...]) -> None:
    ran, after = fixed(text, *gpus)
    assert after == text.replace("layout: NCHW", "layout: NHWC")
    assert "CL402" not in ran.out
    assert "not fixed" not in ran.err


def test_what_says_its_layout_itself_moves_with_what_it_is_connected_to() -> None:
    text = MOBILE.replace("groups: 64,", "groups: 64, layout: NCHW,")
    assert fixed(text)[1] == text.replace("layout: NCHW", "layout: NHWC")
    text = ALONE.replace("groups: 64,", "groups: 64, layout: NCHW,")
    assert fixed(text)[1] == text.replace("layout: NCHW", "layout: NHWC")  # the setting is the network's


def test_layers_with_groups_that_are_better_off_stay() -> None:
    ran, after = fixed(GROUPED)
    assert after.count("layout: NHWC") == 2
    assert "groups: 8, kernel_size: 3, padding: 1 }" in after
    assert "CL40" not in ran.out
    assert "not fixed" not in ran.err


def test_a_list_that_is_fixed_is_as_fast_as_promised() -> None:
    """Where grouped layers that nothing connects stay, the copies at their borders are part of the promise."""
    blocks = "".join(
        f"  - {{ name: a{i}, C: {C}, H: 56, W: 56, K: 192, kernel_size: 1 }}\n"
        f"  - {{ name: g{i}, C: 192, H: 56, W: 56, K: 192, groups: 4, kernel_size: 3, padding: 1 }}\n"
        f"  - {{ name: b{i}, C: 192, H: 56, W: 56, K: {C}, kernel_size: 1 }}\n"
        for i, C in enumerate((256, 320, 384))
    )
    Path("net.yaml").write_text(TOP + blocks)
    options = ("net.yaml", "-g", "rtx-3090", "--mode", "training", "--select", "CL401,CL404", "-o", "json")
    before, after = (json.loads(convlint("check", *options, *more).out)["summary"] for more in ((), ("--fix",)))
    text = Path("net.yaml").read_text()
    assert text.count("layout: NHWC") == 6
    assert after["time_us"] == pytest.approx(before["time_after_us"])
    assert after["time_us"] < before["time_us"]
    assert json.loads(convlint("check", *options).out)["summary"] == after


def test_a_layout_that_one_target_does_not_want_stays_for_all() -> None:
    text = MOBILE.replace("fp16", "fp32")
    ran, after = fixed(text, "-g", "a100", "-g", "v100")
    assert after == text
    assert "CL401" in ran.err
    assert "not fixed" in ran.err


def test_a_comment_at_one_layer_keeps_that_one() -> None:
    """Its neighbours pay the copies, and follow the advice as far as it pays nevertheless."""
    text = MOBILE.replace("1 }\n  - { name: head", "1 }  # convlint: ignore[CL401]\n  - { name: head")
    ran, after = fixed(text)
    assert after.count("NHWC") == 5
    assert "K: 256, kernel_size: 3, padding: 1 }  #" in after
    assert "not fixed" not in ran.err
    assert "CL901" not in ran.out
    text = ALONE.replace("K: 256, kernel_size: 1 }", "K: 256, kernel_size: 1 }  # convlint: ignore[CL401]")
    ran, after = fixed(text)
    assert after.count("NHWC") == 2
    assert "K: 256, kernel_size: 1 }  #" in after
    assert "CL901" not in ran.out


def test_layers_that_read_the_same_image_move_together() -> None:
    text = TOP.replace("[a100]", "[a100, t4]").replace("fp16", "fp32") + (
        "  - { name: image, op: input, C: 3, H: 56, W: 56 }\n"
        "  - { name: a, K: 24, kernel_size: 3, padding: 1 }\n"
        "  - { name: b, input: image, K: 16, kernel_size: 5, padding: 2 }\n"
        "  - { name: c, K: 124, kernel_size: 3, padding: 1 }\n"
    )
    assert fixed(text)[1] == text  # a alone would be no slower on t4


@pytest.mark.parametrize("text", [MOBILE, ALONE, GROUPED], ids=["connected", "alone", "grouped"])
def test_sarif_has_the_same_edits(text: str) -> None:
    Path("net.yaml").write_text(text)
    found = sarif_run(convlint("check", "net.yaml", "--select", "CL401,CL404", "-o", "sarif").out)["results"]
    edited = [applied(text.encode(), result["fixes"][0]).decode() for result in found if "fixes" in result]
    assert edited == [fixed(text, "--select", "CL401,CL404")[1]]
    assert edited != [text]


# --- several rounds ---------------------------------------------------------------------------------------------------

SMALL = """\
version: 1
target: [v100]
defaults: { N: 16, dtype: fp16, layout: NHWC }
layers:
  - { name: image, op: input, C: 64, H: 28, W: 28 }
  - { name: a, K: 128, kernel_size: 1 }
  - { name: b, K: 64, kernel_size: 3 }
  - { name: c, K: 64, kernel_size: 3 }
  - { name: d, K: 64, kernel_size: 3 }
"""
GROUP = """\
version: 1
target: [a100]
defaults: { N: 256, dtype: fp16, layout: NHWC }
layers:
  - { name: image, op: input, C: 64, H: 56, W: 56 }
  - { name: a, K: 62, kernel_size: 3, padding: 1 }
  - { name: b, K: 128, kernel_size: 3, padding: 1 }
  - { name: c, input: a, K: 128, kernel_size: 3, padding: 1 }
"""
BATCH = ("--allow", "batch")


def mended(text: str, *options: str) -> tuple[Ran, str]:
    return fixed(text, "--unsafe-fixes", *options)


def test_a_batch_that_another_finding_would_change_again_stays() -> None:
    assert mended(SMALL)[1] == SMALL  # nobody asks for another batch
    ran, after = mended(SMALL, *BATCH)
    assert after == SMALL
    assert "net.yaml: CL301 of c, d is not fixed: CL204 would then want N=60" in ran.err


@pytest.mark.parametrize(("N", "fixable"), [(16, False), (30, True)])
def test_a_check_counts_no_batch_that_would_be_changed_again(N: int, fixable: bool) -> None:
    document = json.loads(convlint("check", "-", "-o", "json", *BATCH, stdin=SMALL.replace("N: 16", f"N: {N}")).out)
    (fix,) = (each["fix"] for each in document["findings"] if each["fix"] and "N" in each["fix"]["set"])
    assert fix["applicable"] is fixable


def test_a_batch_is_set_to_what_the_finding_said() -> None:
    text = SMALL.replace("N: 16", "N: 30")
    found = json.loads(convlint("check", "-", "-o", "json", stdin=text).out)["findings"]
    promised = [each["fix"]["set"]["N"] for each in found if each["fix"] and "N" in each["fix"]["set"]]
    ran, after = mended(text, *BATCH)
    assert after == SMALL.replace("N: 16", f"N: {promised[0]}")
    assert "fixed 1 finding in 1 file" in ran.err
    assert "not fixed" not in ran.err


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_a_comment_at_any_layer_of_a_group_keeps_its_channels(name: str) -> None:
    lines = [f"{line}  # convlint: ignore[CL102]" if f"name: {name}," in line else line for line in GROUP.split("\n")]
    text = "\n".join(lines)
    ran, after = mended(text)
    assert after == text
    assert "CL901" not in ran.out
    assert ran.err == ""  # what is silenced in one of its layers is advised in none
    assert mended(GROUP)[1] == GROUP.replace("K: 62", "K: 64")


def test_a_fix_leaves_no_comment_without_use() -> None:
    text = SMALL.replace("N: 16", "N: 40")
    assert mended(text, *BATCH)[1] == text.replace("N: 40", "N: 52")
    text = text.rstrip() + "  # convlint: ignore[CL301]\n"
    ran, after = mended(text, *BATCH)
    assert after == text
    assert "CL901" not in ran.out
    assert "CL204 of a, b is not fixed: a comment would silence nothing any more" in ran.err


def test_what_is_not_fixed_is_said_quietly_too() -> None:
    ran, _ = mended(SMALL, "-q", *BATCH)
    assert ran.err == "convlint: net.yaml: CL301 of c, d is not fixed: CL204 would then want N=60\n"
    Path("net.yaml").write_text(SMALL)
    ran = convlint("check", "net.yaml", "--diff", "--unsafe-fixes", "-q", *BATCH)
    assert ran.err == "convlint: net.yaml: CL301 of c, d is not fixed: CL204 would then want N=60\n"
    assert mended(GROUP, "-q")[0].err == ""


TOO_MUCH = """\
version: 1
target: [v100]
mode: training
runtime: { framework: pytorch, cudnn_benchmark: true, fixed_input_size: true }
defaults: { N: 2500, dtype: fp32, layout: NHWC }
layers:
  - { name: image, op: input, C: 64, H: 112, W: 112 }
  - { name: a, K: 128, kernel_size: 3, padding: 1 }
  - { name: b, K: 128, kernel_size: 3, padding: 1 }
  - { name: c, K: 128, kernel_size: 3, padding: 1 }
"""


def test_the_batch_that_fits_once_all_else_is_written_is_part_of_the_promise() -> None:
    Path("net.yaml").write_text(TOO_MUCH)
    before = json.loads(convlint("check", "net.yaml", "-o", "json").out)
    (memory,) = (each for each in before["findings"] if each["code"] == "CL801")
    assert not memory["fix"]["applicable"]
    assert memory["fix"]["no_edit"].startswith("the batch is written once all else is")
    _, text = mended(TOO_MUCH)
    after = json.loads(convlint("check", "net.yaml", "-o", "json").out)
    (batch,) = {layer["N"] for layer in after["layers"]}
    assert memory["fix"]["set"]["N"] < batch < 2500
    assert f"N: {batch}" in text
    assert after["summary"]["time_us"] == pytest.approx(before["summary"]["time_after_fix_us"], rel=0.01)


def test_what_another_dtype_makes_of_the_layout_is_part_of_the_promise() -> None:
    """bf16 on a GPU without it runs no faster in NCHW; fp16, which is written first, does."""
    text = """\
version: 1
target: gtx-1660-ti
runtime: { framework: pytorch, mixed_precision: false }
defaults: { N: 8, dtype: bf16, layout: NHWC }
layers:
  - { name: a, C: 64, H: 56, W: 56, K: 128, kernel_size: 5, padding: 2 }
  - { name: b, K: 128, kernel_size: 3, padding: 1 }
"""
    Path("net.yaml").write_text(text)
    before = json.loads(convlint("check", "net.yaml", "-o", "json").out)["summary"]
    _, written = mended(text)
    assert "dtype: fp16, layout: NCHW" in written
    after = json.loads(convlint("check", "net.yaml", "-o", "json").out)["summary"]
    assert after["time_us"] == pytest.approx(before["time_after_fix_us"], rel=0.01)


@pytest.mark.parametrize(
    ("targets", "runtime", "layers"),
    [
        ("a100, p100", "{ framework: pytorch, tf32: false }", [(64, 64)]),
        ("a100, v100", "{ framework: pytorch, tf32: false }", [(64, 190), (190, 64)]),
        ("a100, p100", "{}", [(1, 64), (64, 32), (32, 9)]),
    ],
)
def test_what_one_target_undoes_is_not_promised_on_another(
    targets: str, runtime: str, layers: list[tuple[int, int]]
) -> None:
    text = f"version: 1\ntarget: [{targets}]\nruntime: {runtime}\n"
    text += "defaults: { N: 16, dtype: fp32, layout: NHWC, H: 56, W: 56 }\nlayers:\n"
    text += "".join(
        f"  - {{ name: c{number}, C: {C}, K: {K}, kernel_size: 3, padding: 1 }}\n"
        for number, (C, K) in enumerate(layers)
    )
    promised = [one["time_after_fix_us"] for one in _networks(text)]
    _, after = mended(text)
    assert [one["time_us"] for one in _networks(after)] == pytest.approx(promised, rel=1e-3)


def _networks(text: str) -> list[dict[str, Any]]:
    networks: list[dict[str, Any]] = json.loads(convlint("check", "-", "-o", "json", stdin=text).out)["networks"]
    return networks


def test_a_layout_that_a_norm_wants_back_is_not_promised() -> None:
    """Of mixed layouts NHWC for all is advised, and once it is there a group norm would want NCHW for all."""
    text = """\
version: 1
target: [t4]
mode: training
runtime: { framework: pytorch }
defaults: { N: 32, dtype: fp16, layout: NCHW, kernel_size: 3, padding: 1 }
layers:
  - { name: a, C: 4, H: 56, W: 56, K: 16, kernel_size: 1, padding: 0 }
  - { name: norm, op: groupnorm }
  - { name: b, K: 64, groups: 8, layout: NHWC }
  - { name: c, K: 128, groups: 64 }
  - { name: d, K: 256, groups: 128 }
  - { name: e, K: 256, groups: 256 }
"""
    Path("net.yaml").write_text(text)
    before = json.loads(convlint("check", "net.yaml", "-o", "json").out)
    (layout,) = (finding for finding in before["findings"] if finding["code"] == "CL401")
    convlint("check", "net.yaml", "--fix", "-o", "json")
    after = json.loads(convlint("check", "net.yaml", "-o", "json").out)
    assert not layout["fix"]["applicable"]
    assert layout["fix"]["no_edit"] == "CL819 would want it back"
    assert after["summary"]["time_us"] == before["summary"]["time_after_fix_us"]


def test_a_layout_for_all_leaves_out_the_groups_that_want_theirs_back() -> None:
    """Once their inputs are wider, the groups of `late` are faster in NCHW; `pairs` are slow in NHWC until widened."""
    text = """\
version: 1
target: [rtx-5080-laptop]
mode: training
runtime: { framework: pytorch, fixed_input_size: true, mixed_precision: true }
defaults: { N: 4, dtype: tf32, bias: false, layout: NCHW, kernel_size: 1 }
layers:
  - { name: x, op: input, C: 64, H: 32, W: 32 }
  - { name: a, input: x, K: 1040 }
  - { name: left, op: channel_split, input: a }
  - { name: right, op: channel_split, input: a }
  - { name: b, input: right, K: 130, kernel_size: 3, padding: 1 }
  - { name: c, input: b, K: 520, kernel_size: 3, padding: 1 }
  - { name: sum, op: add, inputs: [right, c] }
  - { name: joined, op: concat, inputs: [left, right, sum] }
  - { name: d, input: joined, K: 64 }
  - { name: e, input: d, K: 20 }
  - { name: pairs, input: e, K: 20, kernel_size: 3, padding: 1, groups: 10 }
  - { name: f, input: pairs, K: 512 }
  - { name: g, input: f, K: 100, bias: true }
  - { name: norm, op: batchnorm, input: g }
  - { name: late, input: norm, K: 80, kernel_size: 3, padding: 1, stride: 2, groups: 10 }
  - { name: h, input: late, K: 96, bias: true }  # convlint: ignore[CL203] -- which takes an attempt to find useless
  - { name: relu, op: relu, input: h }
  - { name: head, op: linear, input: relu, C: 10, H: 1, W: 1 }
"""
    (before,) = _networks(text)
    _, mended_text = mended(text)
    (after,) = _networks(mended_text)
    assert after["time_us"] == pytest.approx(before["time_after_fix_us"], rel=0.01)
    assert "layout: NHWC" in mended_text


def test_autotuning_is_not_to_blame_for_what_another_fix_costs() -> None:
    text = """\
version: 1
target: [a100]
mode: training
runtime: { framework: pytorch, tf32: false, cudnn_benchmark: false, fixed_input_size: true }
defaults: { N: 33, dtype: fp32, layout: NHWC, H: 56, W: 56 }
layers:
  - { name: pw, C: 48, K: 190, kernel_size: 1 }
  - { name: g, C: 190, K: 190, kernel_size: 3, padding: 1, groups: 19 }
  - { name: last, C: 190, K: 21, kernel_size: 1 }
"""
    ran, after = fixed(text)
    assert after == text.replace("cudnn_benchmark: false", "cudnn_benchmark: true")
    assert "CL501" not in ran.err
    assert "CL403 of g is not fixed" in ran.err


@pytest.mark.parametrize("first", ["", "target: [a100]\nmode: training\n"])
def test_a_diff_that_shows_a_byte_order_mark_says_that_it_cannot_be_applied(first: str) -> None:
    layer = "N: 256, H: 28, W: 28, kernel_size: 3, padding: 1, dtype: fp16, layout: NHWC"
    layers = f"  - {{ name: a, C: 64, K: 62, {layer} }}\n  - {{ name: b, C: 62, K: 64, {layer} }}\n"
    text = f"version: 1\n{first}layers:\n{layers}"
    Path("marked.yaml").write_text(text, encoding="utf-8-sig")
    ran = convlint("check", "marked.yaml", "--diff", "--unsafe-fixes")
    assert "+  - { name: a, C: 64, K: 64" in ran.out
    assert ("marked.yaml: this diff cannot be applied" in ran.err) is (not first)
