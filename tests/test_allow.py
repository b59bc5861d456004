"""`--allow`: advice that only some want is given on request, and is the same in every command."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import convlint

pytestmark = pytest.mark.slow
NARROW = """\
version: 1
target: [a100]
mode: training
runtime: { framework: pytorch }
defaults: { N: 64, dtype: fp16, layout: NHWC }
layers:
  - { name: image, op: input, C: 64, H: 56, W: 56 }
  - { name: a, K: 264, kernel_size: 3, padding: 1 }
  - { name: b, K: 520, kernel_size: 3, padding: 1 }
  - { name: c, K: 256, kernel_size: 3, padding: 1 }
  - { name: head, K: 21, kernel_size: 1 }
"""
BATCH = """\
version: 1
target: [a100]
mode: inference
defaults: { dtype: fp16, layout: NHWC }
layers:
  - { name: wave, N: 55, C: 4096, H: 16, W: 16, K: 256, kernel_size: 3, padding: 1 }
"""


@pytest.fixture(autouse=True)
def _here(here: Path) -> None:
    Path("net.yaml").write_text(NARROW)


def of(*arguments: str) -> dict[str, Any]:
    return json.loads(convlint(*arguments, "-o", "json").out)


def test_nothing_is_taken_away_unasked() -> None:
    found = of("check", "net.yaml")
    assert not any(finding["advised"] for finding in found["findings"])
    assert found["summary"]["time_after_us"] == found["summary"]["time_us"]
    named = {each["set"].get("C") for finding in found["findings"] for each in finding["alternatives"]}
    assert 256 in named  # but it is named
    convlint("check", "net.yaml", "--fix", "--unsafe-fixes")
    assert Path("net.yaml").read_text() == NARROW


@pytest.mark.parametrize("way", ["option", "config"])
def test_narrower_layers_are_advised_where_they_are_allowed(way: str) -> None:
    asked = ["--allow", "narrower"] if way == "option" else []
    if way == "config":
        Path("convlint.toml").write_text('allow = ["narrower"]\n')
    found, plan = of("check", "net.yaml", *asked), of("plan", "net.yaml", *asked)
    total = found["summary"]
    advised = [finding for finding in found["findings"] if finding["advised"]]
    assert {finding["code"] for finding in advised} == {"CL201"}
    assert sum(finding["lost_us"] for finding in advised) == pytest.approx(total["lost_us"], rel=1e-3)
    assert all(finding["fix"]["applicable"] for finding in advised)
    assert total["time_after_fix_us"] == pytest.approx(total["time_after_us"])
    assert (plan["time_us"], plan["grade"]) == (total["time_us"], total["grade"])
    assert (plan["time_after_us"], plan["grade_after"]) == (total["time_after_us"], total["grade_after"])
    assert [step["kinds"] for step in plan["steps"]] == [["channels"]] * 2
    convlint("check", "net.yaml", "--fix", "--unsafe-fixes", *asked)
    assert Path("net.yaml").read_text() == NARROW.replace("K: 264", "K: 256").replace("K: 520", "K: 512")
    assert of("check", "net.yaml")["summary"]["time_us"] == pytest.approx(total["time_after_us"], rel=0.01)


def test_no_narrower_size_is_written_than_is_advised() -> None:
    """Once K is a multiple of 8, a narrower one of 64 shows as well: that is for another run."""
    Path("net.yaml").write_text("""\
version: 1
target: [a100]
mode: inference
runtime: { framework: pytorch }
defaults: { N: 32, dtype: fp16, layout: NHWC, H: 56, W: 56 }
layers:
  - { name: a, C: 64, K: 105, kernel_size: 3, padding: 1 }
  - { name: b, K: 64, kernel_size: 1 }
""")
    total = of("check", "net.yaml", "--allow", "narrower")["summary"]
    ran = convlint("check", "net.yaml", "--allow", "narrower", "--fix", "--unsafe-fixes")
    assert "K: 112" in Path("net.yaml").read_text()
    assert "CL201 of a is not fixed: it shows only once other fixes are written, and takes channels away" in ran.err
    then = of("check", "net.yaml", "--allow", "narrower")["summary"]
    assert then["time_us"] == pytest.approx(total["time_after_fix_us"], rel=0.01)
    convlint("check", "net.yaml", "--allow", "narrower", "--fix", "--unsafe-fixes")
    assert "K: 64, kernel_size: 3" in Path("net.yaml").read_text()


def test_no_layer_gets_narrower_without_those_that_read_it() -> None:
    """Tiles that are filled by more channels, another network, ask for fewer of one layer alone."""
    Path("net.yaml").write_text("""\
version: 1
target: v100
runtime: { framework: jax }
defaults: { N: 1, dtype: fp32, layout: NHWC }
layers:
  - { name: clip, op: input, C: 3, D: 16, H: 112, W: 112 }
  - { name: wide, op: conv3d, K: 45, kernel_size: [1, 7, 7], stride: [1, 2, 2], padding: [0, 3, 3] }
  - { name: deep, op: conv3d, K: 64, kernel_size: [3, 1, 1], padding: [1, 0, 0] }
  - { name: last, op: conv3d, K: 64, kernel_size: 1 }
""")
    total = of("check", "net.yaml", "--allow", "narrower")["summary"]
    convlint("check", "net.yaml", "--allow", "narrower", "--fix", "--unsafe-fixes")
    then = of("check", "net.yaml", "--allow", "narrower")["summary"]
    assert then["time_us"] == pytest.approx(total["time_after_fix_us"], rel=0.01)


def test_another_batch_is_written_where_it_is_allowed() -> None:
    Path("net.yaml").write_text(BATCH)
    convlint("check", "net.yaml", "--fix", "--unsafe-fixes")
    assert Path("net.yaml").read_text() == BATCH
    (finding,) = (each for each in of("check", "net.yaml", "--allow", "batch")["findings"] if each["code"] == "CL204")
    assert (finding["severity"], finding["fix"]["set"], finding["fix"]["applicable"]) == ("info", {"N": 108}, True)
    plan = of("plan", "net.yaml", "--allow", "batch", "--write", "planned.yaml")
    assert [each["set"] for each in plan["unpriced"]] == [{"N": 108}]
    assert "N: 108" in Path("planned.yaml").read_text()
    of("plan", "net.yaml", "--allow", "batch", "--fixed", "batch", "--write", "kept.yaml")
    assert "N: 55" in Path("kept.yaml").read_text()
    assert of("plan", "net.yaml")["unpriced"] == []
    convlint("check", "net.yaml", "--fix", "--unsafe-fixes", "--allow", "batch")
    assert Path("net.yaml").read_text() == BATCH.replace("N: 55", "N: 108")


def test_what_can_be_allowed_is_named() -> None:
    ran = convlint("check", "net.yaml", "--allow", "wider")
    assert (ran.code, ran.out) == (2, "")
    assert "--allow: 'wider' is not one of narrower, batch" in ran.err


INT8 = """\
version: 1
target: [t4]
mode: inference
runtime: { framework: tensorrt }
defaults: { N: 64, dtype: fp32, layout: NHWC }
layers:
  - { name: stem, C: 3, H: 112, W: 112, K: 64, kernel_size: 3, stride: 2, padding: 1 }
  - { name: deep, K: 64, kernel_size: 3, padding: 1, groups: 64 }
  - { name: wide, K: 128, kernel_size: 1 }
  - { name: last, K: 128, kernel_size: 3, padding: 1 }
"""


def test_eight_bits_are_one_setting_of_the_network_where_they_are_allowed() -> None:
    Path("net.yaml").write_text(INT8)
    plain, asked = of("check", "net.yaml"), of("check", "net.yaml", "--allow", "int8,fp8")
    assert [each["code"] for each in plain["findings"] if each["advised"]] == ["CL106"]
    (found,) = (each for each in asked["findings"] if each["advised"])
    assert (found["code"], found["severity"], found["fix"]["set"]) == ("CL109", "warning", {"dtype": "int8"})
    assert asked["summary"]["time_after_us"] < 0.8 * plain["summary"]["time_after_us"]
    plan = of("plan", "net.yaml", "--allow", "int8")
    assert plan["time_after_us"] == pytest.approx(asked["summary"]["time_after_us"], rel=0.01)
    convlint("check", "net.yaml", "--allow", "int8", "--fix", "--unsafe-fixes")
    after = of("check", "net.yaml", "--allow", "int8")
    assert "dtype: int8" in Path("net.yaml").read_text()
    assert after["summary"]["time_us"] == pytest.approx(asked["summary"]["time_after_fix_us"], rel=0.01)
    assert not any(each["advised"] for each in after["findings"])


@pytest.mark.parametrize(
    "line", ["runtime: { framework: pytorch }", "mode: training", "target: [p40]"], ids=["framework", "mode", "gpu"]
)
def test_eight_bits_are_not_named_where_nothing_runs_them(line: str) -> None:
    key = line.split(":")[0]
    lines = [line if each.startswith(key) else each for each in INT8.splitlines()]
    Path("net.yaml").write_text("\n".join(lines))
    found = of("check", "net.yaml", "--allow", "int8,fp8", "--fail-on", "never")
    assert "CL109" not in {each["code"] for each in found["findings"]}


def test_a_batch_beside_a_wider_input_can_be_written() -> None:
    """The input gets its fourth channel along with the layer that reads it."""
    Path("net.yaml").write_text("""\
version: 1
target: [a100]
mode: inference
runtime: { framework: pytorch }
defaults: { dtype: fp16, layout: NHWC, N: 55 }
layers:
  - { name: image, op: input, C: 3, H: 128, W: 128 }
  - { name: stem, C: 3, K: 64, kernel_size: 3, stride: 2, padding: 1 }
  - { name: mid, C: 64, K: 4096, kernel_size: 2, stride: 4 }
  - { name: wave, C: 4096, K: 256, kernel_size: 3, padding: 1 }
""")
    found = of("check", "net.yaml", "--allow", "batch", "--select", "CL103,CL204")["findings"]
    assert [(each["fix"]["set"], each["fix"]["applicable"]) for each in found] == [({"C": 4}, True), ({"N": 108}, True)]
