"""`convlint plan --write`: the user's own spec with the plan's values in it, and nothing else changed."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import convlint as run

SAMPLES = sorted((Path(__file__).parents[3] / "sample_configs").glob("*.yaml"))
NET = """\
# A network with remarks.
version: 1
runtime: { framework: pytorch, cudnn_benchmark: false, fixed_input_size: true, deterministic: false }
defaults: { N: 64, dtype: fp32, layout: NCHW }  # as it is trained
layers:
  - { name: image, op: input, C: 3, H: 56, W: 56 }
  - { name: stem, K: 60, kernel_size: 3, padding: 1 }
  - { name: squeeze, op: pool, kernel_size: 2 }  # halves it
  - { name: body, in_channels: 60, filters: 124, kernel_size: 3, padding: 1 }
  - { name: head, K: 10, kernel_size: 1 }
"""


def planned(*arguments: str, stdin: str = "") -> dict[str, Any]:
    ran = run("plan", *arguments, "-o", "json", "--write", "better.yaml", stdin=stdin)
    return json.loads(ran.out)


def time_us(*arguments: str) -> float:
    return json.loads(run("check", *arguments, "-o", "json").out)["summary"]["time_us"]


def test_remarks_names_and_words_stay(here: Path) -> None:
    (here / "net.yaml").write_text(NET)
    found = planned("net.yaml", "--fixed", "batch")
    assert (here / "better.yaml").read_text() == NET.replace("C: 3", "C: 4").replace("K: 60", "K: 64").replace(
        "in_channels: 60, filters: 124", "in_channels: 64, filters: 128"
    ).replace("dtype: fp32, layout: NCHW", "dtype: fp16, layout: NHWC").replace(
        "cudnn_benchmark: false", "cudnn_benchmark: true"
    ).replace("version: 1\n", "version: 1\ntarget: [a100]\n")
    assert time_us("better.yaml") == pytest.approx(found["time_after_us"], abs=0.01)


def test_of_standard_input_too(here: Path) -> None:
    found = planned("-", "--fixed", "batch", stdin=NET)
    assert "# halves it" in (here / "better.yaml").read_text()
    assert time_us("better.yaml") == pytest.approx(found["time_after_us"], abs=0.01)


def test_standard_input_that_is_no_text(here: Path) -> None:
    ran = run("plan", "-", "--write", "better.yaml", stdin="version: 1\0")
    assert ran.code == 3
    assert "error: <stdin>" in ran.out
    assert not (here / "better.yaml").exists()


def test_what_is_asked_for_on_the_command_line_is_written(here: Path) -> None:
    (here / "net.yaml").write_text(NET)
    found = planned("net.yaml", "--gpu", "t4", "--mode", "inference", "--dtype", "fp16", "--batch", "32")
    text = (here / "better.yaml").read_text()
    assert "target: [t4]\nmode: inference\n" in text
    assert "# halves it" in text
    assert "dtype: fp16" in text
    checked = json.loads(run("check", "better.yaml", "-o", "json").out)
    N = checked["layers"][0]["N"]
    assert checked["summary"]["time_us"] * 32 / N == pytest.approx(found["time_after_us"], rel=1e-4)


def test_what_no_edit_can_say_is_a_new_spec(here: Path) -> None:
    """Both layers are one text, and get different channels."""
    spec = """\
version: 1
defaults: { N: 64, H: 28, W: 28, kernel_size: 3, padding: 1, dtype: fp16, layout: NHWC }
layers:
  - &one { name: a, C: 64, K: 60 }
  - { <<: *one, name: b, C: 60, input: a }
  - { name: c, K: 64 }
"""
    (here / "net.yaml").write_text(spec)
    found = planned("net.yaml", "--fixed", "batch")
    assert found["steps"]
    assert time_us("better.yaml") == pytest.approx(found["time_after_us"], abs=0.01)
    assert (here / "better.yaml").read_text().startswith("# Written anew, without comments and anchors")


@pytest.mark.slow
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_samples_keep_their_operations_and_take_the_promised_time(path: Path, here: Path) -> None:
    found = planned(str(path))
    before, after = path.read_text(), (here / "better.yaml").read_text()
    for word in ("op: pool", "op: slice", "op: linear", "#"):
        assert after.count(word) == before.count(word), word
    checked = json.loads(run("check", "better.yaml", "--gpu", found["gpu"], "-o", "json").out)
    batches = {layer["N"] for layer in checked["layers"]}
    share = found["batch"] / batches.pop() if found["batch"] else 1.0
    times = [one["estimates"][0]["time_us"] for one in checked["layers"]]
    assert sum(filter(None, times)) * share == pytest.approx(found["time_after_us"], rel=1e-4)
    assert "CL501" not in {one["code"] for one in checked["findings"]}
