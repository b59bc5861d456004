"""`convlint check --fix` over several rounds and layers: what a finding promised is what becomes of the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Ran, convlint

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


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


BATCH = ("--allow", "batch")


def fixed(text: str, *options: str) -> tuple[Ran, str]:
    Path("net.yaml").write_text(text)
    ran = convlint("check", "net.yaml", "--fix", "--unsafe-fixes", "-o", "concise", *options)
    return ran, Path("net.yaml").read_text()


def test_a_batch_that_another_finding_would_change_again_stays() -> None:
    assert fixed(SMALL)[1] == SMALL  # nobody asks for another batch
    ran, after = fixed(SMALL, *BATCH)
    assert after == SMALL
    assert "net.yaml: CL301 of c, d is not fixed: CL204 would then want N=60" in ran.err


def test_a_batch_is_set_to_what_the_finding_said() -> None:
    text = SMALL.replace("N: 16", "N: 30")
    found = json.loads(convlint("check", "-", "-o", "json", stdin=text).out)["findings"]
    promised = [each["fix"]["set"]["N"] for each in found if each["fix"] and "N" in each["fix"]["set"]]
    ran, after = fixed(text, *BATCH)
    assert after == SMALL.replace("N: 16", f"N: {promised[0]}")
    assert "fixed 1 finding in 1 file" in ran.err
    assert "not fixed" not in ran.err


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_a_comment_at_any_layer_of_a_group_keeps_its_channels(name: str) -> None:
    lines = [f"{line}  # convlint: ignore[CL102]" if f"name: {name}," in line else line for line in GROUP.split("\n")]
    text = "\n".join(lines)
    ran, after = fixed(text)
    assert after == text
    assert "CL901" not in ran.out
    assert ran.err == ""  # what is silenced in one of its layers is advised in none
    assert fixed(GROUP)[1] == GROUP.replace("K: 62", "K: 64")


def test_a_fix_leaves_no_comment_without_use() -> None:
    text = SMALL.replace("N: 16", "N: 40")
    assert fixed(text, *BATCH)[1] == text.replace("N: 40", "N: 52")
    text = text.rstrip() + "  # convlint: ignore[CL301]\n"
    ran, after = fixed(text, *BATCH)
    assert after == text
    assert "CL901" not in ran.out
    assert "CL204 of a, b is not fixed: a comment would silence nothing any more" in ran.err


def test_what_is_not_fixed_is_said_quietly_too() -> None:
    ran, _ = fixed(SMALL, "-q", *BATCH)
    assert ran.err == "convlint: net.yaml: CL301 of c, d is not fixed: CL204 would then want N=60\n"
    Path("net.yaml").write_text(SMALL)
    ran = convlint("check", "net.yaml", "--diff", "--unsafe-fixes", "-q", *BATCH)
    assert ran.err == "convlint: net.yaml: CL301 of c, d is not fixed: CL204 would then want N=60\n"
    assert fixed(GROUP, "-q")[0].err == ""


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
    _, text = fixed(TOO_MUCH)
    after = json.loads(convlint("check", "net.yaml", "-o", "json").out)
    (batch,) = {layer["N"] for layer in after["layers"]}
    assert memory["fix"]["set"]["N"] < batch < 2500
    assert f"N: {batch}" in text
    assert after["summary"]["time_us"] == pytest.approx(before["summary"]["time_after_fix_us"], rel=0.01)
