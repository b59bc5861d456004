"""`convlint plan`: the table, Markdown, JSON, the options, the spec that it writes, and the exit codes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import Ran
from command_line import convlint as run
from markdown_it import MarkdownIt

from convlint.cli.plan import FORMATS, share, time_us
from convlint.files.languages import duration
from convlint.model.errors import UsageError

NET = """\
version: 1
defaults: { N: 64, dtype: fp32, layout: NCHW }
layers:
  - { name: stem, C: 3, H: 56, W: 56, K: 60, kernel_size: 3, padding: 1 }
  - { name: body, K: 124, kernel_size: 3, padding: 1 }
  - { name: wide, K: 124, kernel_size: 3, padding: 1 }
  - { name: head, K: 10, kernel_size: 1 }
"""
FINE = """\
version: 1
layers:
  - { name: a, N: 256, C: 64, H: 56, W: 56, K: 128, kernel_size: 3, padding: 1, dtype: fp16, layout: NHWC, first: no }
"""
# 16 channels, which fp16 alone asks for, save time; fp16 itself costs some.
TINY = """\
version: 1
defaults: { N: 50, dtype: fp32, layout: NHWC }
layers:
  - { name: l1, C: 3, H: 16, W: 16, K: 12, kernel_size: 1 }
  - { name: l2, K: 12, kernel_size: 3 }
"""
UNKNOWN = """\
version: 1
defaults: { N: 32, dtype: fp32, layout: NHWC }
layers:
  - { name: open, C: 64, K: 96, kernel_size: 3, padding: 1 }
  - { name: known, C: 64, K: 128, H: 14, W: 14, kernel_size: 3, padding: 1 }
"""
WHOLE = """\
version: 1
runtime: { framework: pytorch }
defaults: { N: 64, dtype: fp16, layout: NCHW }
layers:
  - { name: stem, C: 64, H: 56, W: 56, K: 128, kernel_size: 3, padding: 1 }
  - { name: norm, op: norm }
  - { name: act, op: relu }
"""
ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes the spec and plans it."""
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)

    def planned(spec: str, *arguments: str) -> Ran:
        (tmp_path / "net.yaml").write_text(spec, encoding="utf-8")
        return run("plan", "net.yaml", *arguments)

    return planned


def document(ran: Ran) -> dict[str, Any]:
    return json.loads(ran.out)


def kinds(found: dict[str, Any]) -> set[str]:
    return {kind for step in found["steps"] for kind in step["kinds"]}


def test_the_steps_lead_from_one_time_to_the_other(plan: Any) -> None:
    ran = plan(NET, "-o", "json")
    found = document(ran)
    assert (ran.code, ran.err) == (0, "")
    assert (found["schema_version"], found["gpu"], found["mode"], found["batch"]) == (3, "a100", "training", 64)
    times = [found["time_us"]]
    for step in found["steps"]:
        assert step["time_before_us"] == times[-1]
        assert step["time_after_us"] < step["time_before_us"]
        assert {"describe", "layers", "set", "parameters_added", "flops_added"} <= step.keys()
        assert len(step["layers"]) == len(step["by_layer"])
        times.append(step["time_after_us"])
    assert times[-1] == found["time_after_us"]
    assert {"dtype", "layout", "channels"} <= kinds(found)
    assert sum(step["parameters_added"] for step in found["steps"]) == found["parameters_after"] - found["parameters"]
    assert sum(step["flops_added"] for step in found["steps"]) == found["flops_after"] - found["flops"]


@pytest.mark.parametrize(
    "rules", [(), ("--ignore", "CL4"), ("--ignore", "CL1,CL2"), ("--select", "CL1"),
              ("--select", "CL3", "--extend-select", "CL1")],
)  # fmt: skip
def test_it_goes_as_far_as_a_check_by_the_same_rules(rules: tuple[str, ...], plan: Any) -> None:
    found = document(plan(NET, *rules, "--output", "json"))
    (checked,) = document(run("check", "net.yaml", *rules, "--output", "json"))["networks"]
    for key in ("time_us", "time_after_us", "grade", "grade_after"):
        assert found[key] == checked[key], key


def test_rules_of_ones_own_count(tmp_path: Path, plan: Any) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "broken.yaml").write_text("code: XX1\n", encoding="utf-8")
    ran = plan(NET, "--rules", "own")
    assert ran.code == 2
    assert "broken.yaml" in ran.err


@pytest.mark.parametrize("form", FORMATS)
def test_a_network_that_is_fine_gets_no_steps(form: str, plan: Any) -> None:
    ran = plan(FINE, "-o", form)
    assert ran.code == 0
    assert '"steps": []' in ran.out if form == "json" else "no step would shorten it" in ran.out


def test_the_table_has_a_row_for_each_step(plan: Any) -> None:
    ran = plan(NET)
    steps = document(plan(NET, "-o", "json"))["steps"]
    assert len(re.findall(r"^ *\d+  +[\d.]+ (?:us|ms)  ", ran.out, re.MULTILINE)) == len(steps)
    assert "grade F" in ran.out
    assert re.search(rf"after {len(steps)} steps \(-\d+\.\d %\), grade [AB]", ran.out)
    assert max(map(len, ran.out.splitlines())) <= 80


def test_colours_change_no_word(plan: Any) -> None:
    plain, coloured = plan(NET), plan(NET, "--color", "always")
    assert "\x1b[" in coloured.out
    assert ANSI.sub("", coloured.out) == plain.out


def test_markdown_is_a_table(plan: Any) -> None:
    ran = plan(NET, "-o", "markdown")
    html = MarkdownIt("commonmark").enable("table").render(ran.out)
    assert html.count("<tr>") == 1 + len(document(plan(NET, "-o", "json"))["steps"])
    assert "64 channels for 60" in html


def test_the_page_has_each_step_with_its_times_and_their_sum(plan: Any) -> None:
    found = document(plan(NET, "-o", "json"))
    ran = plan(NET, "-o", "html")
    assert ran.code == 0
    cells = re.findall(r'data-label="(before|after)">([^<]*)<', ran.out)
    times = [duration(step[f"time_{name}_us"]) for step in found["steps"] for name in ("before", "after")]
    assert [time for _, time in cells] == [*times, duration(found["time_us"]), duration(found["time_after_us"])]
    assert f"all {len(found['steps'])} steps" in ran.out.partition("<tfoot>")[2]


def test_every_table_has_the_whole_step_where_it_is_known(plan: Any) -> None:
    """Its first change saves nothing else."""
    found = document(plan(WHOLE, "-o", "json"))
    steps = [duration(step["step_after_us"]) for step in found["steps"]]
    assert len(set(steps)) > 1
    markdown = [line.split(" | ") for line in plan(WHOLE, "-o", "markdown").out.splitlines() if line.startswith("| ")]
    assert [cells[-1].removesuffix(" |") for cells in markdown] == ["whole step", *steps]
    page = plan(WHOLE, "-o", "html").out
    assert re.findall(r'data-label="whole step">([^<]*)<', page)[: len(steps)] == steps
    assert "whole step" not in plan(NET, "-o", "html").out + plan(NET, "-o", "markdown").out


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (("--dtype", "fixed"), {"dtype"}),
        (("--layout", "fixed"), {"layout"}),
        (("--fixed", "dtype", "--fixed", "layout", "--fixed", "batch"), {"dtype", "layout", "batch"}),
        (("--fixed", "channels"), {"channels"}),
        (("--dtype", "fp16", "--layout", "NHWC"), {"dtype", "layout"}),
    ],
)
def test_what_is_fixed_stays(arguments: tuple[str, ...], absent: set[str], plan: Any) -> None:
    found = document(plan(NET, *arguments, "-o", "json"))
    assert kinds(found).isdisjoint(absent)
    assert found["steps"]


@pytest.mark.parametrize("stays", [("--fixed", "dtype"), ("--keep", "results")])
def test_a_dtype_that_cannot_run_stays_where_it_has_to(plan: Any, stays: tuple[str, ...]) -> None:
    text = NET.replace("fp32", "bf16").replace("fp16", "bf16")
    assert "CL107 comes first" in plan(text, "--gpu", "k40").out
    ran = plan(text, "--gpu", "k40", *stays)
    assert ran.code == 3
    assert "comes first" not in ran.out


def test_what_comes_first_is_said_once_for_layers_of_several_dtypes(plan: Any) -> None:
    text = (
        "version: 1\nmode: inference\ndefaults: { N: 8, dtype: fp8 }\nlayers:\n"
        "  - { name: a, C: 16, H: 32, W: 32, K: 64, kernel_size: 3 }\n"
        "  - { name: b, K: 64, kernel_size: 3, dtype: bf16 }\n"
    )
    assert plan(text, "--gpu", "gtx-1660-ti").out.count("CL107 comes first: fp16; all times are those with it") == 1


def test_results_are_kept(plan: Any) -> None:
    found = document(plan(NET, "--keep", "results", "-o", "json"))
    assert {step["safety"] for step in found["steps"]} == {"safe"}
    assert kinds(found) == {"layout"}
    safe = plan(NET, "--keep", "results").out
    assert "changes the" not in safe
    assert "changes the weights" in plan(NET, "--fixed", "dtype").out
    # another dtype is the same network with the same weights, as `check` says too
    assert "); may change results" in " ".join(plan(NET).out.split())


def test_limits_hold(plan: Any) -> None:
    found = document(plan(NET, "--max-params", "+3%", "--max-flops", "4%", "-o", "json"))
    assert found["parameters_after"] <= 1.03 * found["parameters"]
    assert found["flops_after"] <= 1.04 * found["flops"]
    assert any("limits" in note for note in found["notes"])


@pytest.mark.parametrize(("time", "code", "reached"), [("100s", 0, True), ("1us", 1, False)])
def test_a_time_is_reached_or_not(time: str, code: int, reached: bool, plan: Any) -> None:
    ran = plan(NET, "--target-time", time, "-o", "json")
    assert (ran.code, document(ran)["target_reached"]) == (code, reached)
    text = plan(NET, "--target-time", time).out
    assert ("out of reach" in text) != reached
    assert ("no step is needed" in text) == reached


def test_what_has_no_time_is_left_out_and_said(plan: Any) -> None:
    ran = plan(UNKNOWN, "-o", "json")
    found = document(ran)
    assert ran.code == 3
    assert found["without_time"] == ["open"]
    assert [error["message"] for error in found["errors"]] == ["no time for open: H, W unknown"]
    assert found["time_after_us"] < found["time_us"]
    assert not found["complete"]
    assert "no time for open" in plan(UNKNOWN).out


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_predictable_is_no_plan(form: str, plan: Any) -> None:
    ran = plan("version: 1\nlayers:\n  - { name: a, C: 64, K: 96, kernel_size: 3 }\n", "-o", form)
    assert ran.code == 3
    assert "N, H, W, dtype unknown" in ran.out


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("version: 1\nlayers: []\n", ""), ("version: 1\nlayers:\n  - { C: -1 }\n", ""), ("layers: [", ""),
        (NET.replace("version: 1", "version: 1\ntarget: [a10000]"), ":2:"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_an_error(text: str, place: str, plan: Any) -> None:
    ran = plan(text)
    assert ran.code == 3
    assert f"error: net.yaml{place}" in ran.out


def test_of_several_targets_it_takes_the_first_and_says_so(plan: Any) -> None:
    found = document(plan(NET.replace("version: 1", "version: 1\ntarget: [t4, a100]"), "-o", "json"))
    assert found["gpu"] == "t4"
    assert found["notes"] == ["for t4, the first of t4, a100: --gpu names another"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--gpu", "a100,t4"), ("--gpu", "a10000"), ("--keep", "dtype"), ("--fixed", "dtypes"), ("--max-params", "lots"),
        ("--max-flops", "-5%"), ("--max-params", "5"), ("--target-time", "10"), ("--target-time", "0ms"),
        ("--target-time", "-1s"), ("--dtype", "fp12"), ("-o", "csv"), ("--model", "net"),
    ],
)  # fmt: skip
def test_wrong_usage(arguments: tuple[str, ...], plan: Any) -> None:
    assert plan(NET, *arguments).code == 2


def test_one_input_is_needed() -> None:
    assert run("plan").code == 2


def test_standard_input() -> None:
    assert document(run("plan", "-", "-o", "json", stdin=NET))["steps"]


@pytest.mark.parametrize(("text", "expected"), [("+5%", 0.05), ("5 %", 0.05), ("0%", 0.0), ("+0.25%", 0.0025)])
def test_shares(text: str, expected: float) -> None:
    assert share("--max-params", text) == expected


@pytest.mark.parametrize(("text", "expected"), [("10ms", 1e4), ("1.5 s", 1.5e6), ("250us", 250.0)])
def test_times(text: str, expected: float) -> None:
    assert time_us(text) == expected


@pytest.mark.parametrize("text", ["9" * 5000 + "s", "1e3ms", "٣ms", "nan s", ""])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(UsageError):
        time_us(text)


def test_names_from_files_steer_nothing(plan: Any) -> None:
    hostile = NET.replace("name: stem", r'name: "a\x1b[31m|b::error::\nc"')
    for form in FORMATS:
        assert "\x1b" not in plan(hostile, "-o", form).out


def test_a_spec_in_json_stays_json(here: Path) -> None:
    layers = [{"name": "a", "C": 62, "H": 56, "W": 56, "K": 124, "kernel_size": 3}, {"name": "b", "K": 124,
              "kernel_size": 3}]  # fmt: skip
    spec = {"version": 1, "defaults": {"N": 64, "dtype": "fp16", "layout": "NHWC"}, "layers": layers}
    Path("net.json").write_text(json.dumps(spec), encoding="utf-8")
    ran = run("plan", "net.json", "--write", "out.json", "--gpu", "v100", "--mode", "inference", "-o", "json")
    assert ran.code == 0
    written = json.loads(Path("out.json").read_text(encoding="utf-8"))
    assert (written["target"], written["mode"]) == (["v100"], "inference")
    again = document(run("check", "out.json", "-o", "json"))
    assert again["summary"]["time_us"] == pytest.approx(document(ran)["time_after_us"])


def test_of_an_input_that_is_not_whole_no_spec_is_written(plan: Any) -> None:
    ran = plan(NET + "  - { name: bad, K: many }\n", "--write", "out.yaml")
    assert ran.code == 3
    assert "out.yaml is not written: the input is incomplete" in " ".join(ran.out.split())
    assert not Path("out.yaml").exists()


def test_no_step_takes_longer_than_the_one_before_it(plan: Any) -> None:
    found = document(plan(TINY, "-o", "json"))
    assert found["steps"]
    for step in found["steps"]:
        assert step["time_after_us"] < step["time_before_us"]


def test_the_batch_stays_also_where_it_is_too_large(plan: Any) -> None:
    ran = plan(FINE.replace("N: 256", "N: 100000"), "--gpu", "gk20a", "--write", "out.yaml")
    assert "CL801" in ran.out
    assert "N: 100000" in Path("out.yaml").read_text(encoding="utf-8")


def test_that_the_planned_network_may_not_run_is_said(plan: Any) -> None:
    spec = FINE.replace("C: 64", "C: 62").replace("fp16", "int8")
    ran = plan(spec, "--gpu", "v100", "--mode", "inference", "--fixed", "dtype")
    errors = {found["code"] for found in document(run("check", "net.yaml", "--gpu", "v100", "--mode", "inference",
              "-o", "json"))["findings"] if found["severity"] == "error"}  # fmt: skip
    assert errors == {"CL101"}
    said = " ".join(ran.out.split())
    assert (
        "the check of the planned network has errors, and its times are of what may not run: CL101 in 1 layer" in said
    )
    assert "still warns of CL101" not in said
