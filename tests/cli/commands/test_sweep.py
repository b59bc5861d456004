"""Sweeps: the values that an option gives, the layers they make, and what the command writes and refuses."""

import csv
import io
import json

import pytest
from command_line import convlint
from sweeps import FIG4, plain, sweep

from convlint.reporters.ink import columns

SPEC = """\
version: 1
target: [v100]
mode: inference
layers:
  - { name: one, N: 8, C: 64, H: 28, W: 28, K: 64, kernel_size: 3, padding: 1, dtype: fp16, layout: NHWC }
  - { name: two, N: 8, K: 128, kernel_size: 1, dtype: fp16, layout: NHWC }
"""


plain = pytest.fixture(autouse=True)(plain)


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_flags_as_a_table():
    code, out, err = sweep("-N", "54:55", *FIG4)
    assert (code, err) == (0, "")
    rates = {line[:2]: float(line.split()[3]) for line in out.splitlines() if line[:2] in ("54", "55")}
    assert rates["55"] < 0.75 * rates["54"]
    assert "C=4096 H=16 W=16 K=256 R=3 S=3 pad=1" in out
    assert max(map(columns, out.splitlines())) <= 80
    assert "\x1b" not in out


def test_csv_has_one_row_per_pass_and_value():
    code, out, _ = sweep("-N", "54,55,108", *FIG4, "--output", "csv")
    found = rows(out)
    assert code == 0
    assert [(row["pass"], row["value"]) for row in found[:4]] == [
        ("fprop", "54"), ("fprop", "55"), ("fprop", "108"), ("dgrad", "54")
    ]  # fmt: skip
    assert [row["tiles"] for row in found[:3]] == ["216", "220", "432"]
    assert all(0 < float(row["efficiency"]) < 1 for row in found)


@pytest.mark.parametrize("runtime", ["framework: jax", "compile: true", "framework: pytorch"])
def test_a_layer_takes_what_it_takes_in_its_network(tmp_path, runtime):
    path = tmp_path / "net.yaml"
    path.write_text(SPEC.replace("mode:", f"runtime: {{ {runtime} }}\nmode:").replace("NHWC }\n  -", "NCHW }\n  -"))
    code, out, _ = sweep(str(path), "--layer", "two", "-N", "8,16", "-o", "csv")
    whole = json.loads(convlint("estimate", str(path), "-o", "json").out)
    estimated = whole["layers"][1]["estimates"][0]["passes"]["fprop"]["time_us"]
    assert code == 0
    assert float(rows(out)[0]["time_us"]) == pytest.approx(estimated, rel=0.01)


def test_a_layer_of_a_file_with_the_files_mode_and_target(tmp_path):
    path = tmp_path / "net.yaml"
    path.write_text(SPEC, encoding="utf-8")
    code, out, err = sweep(str(path), "--layer", "two", "-N", "1:3", "-o", "csv")
    assert (code, err) == (0, "")
    assert [(row["gpu"], row["pass"], row["value"]) for row in rows(out)] == [("v100", "fprop", n) for n in "123"]
    code, out, _ = sweep(
        str(path), "--layer", "two", "-N", "1:3", "-o", "csv", "-g", "a100", "-g", "t4", "--mode", "training"
    )
    assert [row["gpu"] for row in rows(out)] == ["a100"] * 9 + ["t4"] * 9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-N", "4", *FIG4], "nothing varies"),
        (["-N", "1:4", *FIG4, "--stride", "1:2"], "exactly one parameter may vary, not -N and --stride"),
        (["-N", "1:4", *FIG4, "--dtype", "fp61"], "did you mean 'fp64'"),
        (["-N", "1:4", *FIG4, "--gpu", "a1000"], "unknown GPU"),
        (["-N", "1:4", *FIG4, "--metric", "tim"], "did you mean 'time'"),
        (["-N", "1:4", *FIG4, "--output", "pdf"], "unknown format 'pdf'"),
        (["-N", "1:4", *FIG4, "--output", "png"], "png=FILE"),
        (["-N", "1:4", *FIG4, "--output", "csv=/nowhere/at/all.csv"], "no folder"),
        (["-N", "1:4", "-C", "8", "--dtype", "fp16"], "unknown"),
        (["-N", "1:4", *FIG4, "--layer", "x"], "give that too: convlint sweep PATH"),
        (["--figure", "3"], "Figures 2, 4"),
        (["--figure", "4", "-N", "1:4"], "leave out -N"),
        (["{path}", "-N", "1:4"], "name one with --layer: one, two"),
        (["{path}", "--layer", "tow", "-N", "1:4"], "did you mean 'two'"),
        (["{path}", "--layer", "two", "-N", "1:4", "-C", "8"], "leave out -C"),
        (["{path}", "--layer", "two"], "nothing varies"),
    ],
)
def test_wrong_usage_is_exit_2_with_a_hint(tmp_path, arguments, message):
    path = tmp_path / "net.yaml"
    path.write_text(SPEC, encoding="utf-8")
    code, out, err = sweep(*(argument.format(path=path) for argument in arguments))
    assert code == 2
    assert message in err
    assert out == ""


def test_what_cannot_be_predicted_is_exit_3(tmp_path):
    code, out, err = sweep("--groups", "1:3", "-N", "4", *FIG4)
    assert code == 3
    assert "no time at groups = 3" in err
    assert "no time" not in out
    assert sweep(str(tmp_path / "gone.yaml"), "-N", "1:2")[0] == 3


def test_two_strides_are_a_pair_where_another_parameter_varies():
    code, out, _ = sweep("-N", "1:2", *FIG4, "--stride", "1,2")
    assert code == 0
    assert "stride=1,2" in out
    code, out, _ = sweep("-N", "4", *FIG4, "--stride", "1,2", "-o", "csv", "--mode", "inference")
    assert [row["value"] for row in rows(out)] == ["1", "2"]


@pytest.mark.parametrize("metric", ["time", "tflops", "efficiency"])
@pytest.mark.parametrize("color", ["always", "never"])
def test_the_chart_fits_its_width_and_draws_every_line(monkeypatch, metric, color):
    monkeypatch.setenv("COLUMNS", "72")
    code, out, _ = sweep("-N", "1:256", *FIG4, "--plot", "--metric", metric, "--color", color)
    assert code == 0
    plain = out
    for code_ in ("36", "33", "32", "31", "1", "2", "34", "1;32", "1;33", "1;31", "0"):
        plain = plain.replace(f"\x1b[{code_}m", "")
    assert "\x1b" not in plain
    assert max(map(columns, plain.splitlines())) <= 72
    assert ("\x1b" in out) == (color == "always")
    for name in ("fprop", "dgrad", "wgrad", "N, batch size"):
        assert name in plain
    if color == "never":
        chart = plain.split("N, batch size")[0]
        assert "w" in chart
        assert "⠁" not in chart
