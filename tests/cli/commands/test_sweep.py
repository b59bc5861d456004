"""Sweeps: the values that an option gives, the layers they make, and what the command writes and refuses."""

from __future__ import annotations

import csv
import io
import json
import sys
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convlint.__main__ import _run
from convlint.cli.commands.text_plot import plot
from convlint.errors import UsageError
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import ConvLayer, Dtype, with_output
from convlint.model.runtime import Runtime
from convlint.reporters.ink import painter
from convlint.reporters.snippet import columns
from convlint.sweep.sweep import MOST_POINTS, geometric, parse_values, peak_flops, series, unknown_time, vary

FIG4 = ["-C", "4096", "-H", "16", "-W", "16", "-K", "256", "-R", "3", "-S", "3", "--pad", "1",
        "--dtype", "fp16", "--layout", "NHWC", "--gpu", "a100"]  # fmt: skip
SPEC = """\
version: 1
target: [v100]
mode: inference
layers:
  - { name: one, N: 8, C: 64, H: 28, W: 28, K: 64, kernel_size: 3, padding: 1, dtype: fp16, layout: NHWC }
  - { name: two, N: 8, K: 128, kernel_size: 1, dtype: fp16, layout: NHWC }
"""


@pytest.fixture
def convlint(capsys, monkeypatch):
    """Runs the command line: (exit code, standard output, standard error)."""
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments):
        code = _run(["sweep", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize(
    ("text", "values"),
    [("1:4", (1, 2, 3, 4)), ("5:5", (5,)), ("64:200:64", (64, 128, 192)), (" 1 : 3 ", (1, 2, 3)),
     ("1,2,4,8", (1, 2, 4, 8)), ("8, 2,8", (8, 2)), ("7", (7,))],
)  # fmt: skip
def test_values(text, values):
    assert parse_values("-N", text) == values


@pytest.mark.parametrize(
    ("text", "message"),
    [("5:1", "did you mean 1:5"), ("0:4", "not between 1 and"), ("-1:4", "not between 1 and"), ("1:x", "whole number"),
     ("1.5:3", "whole number"), ("1:2:3:4", "START:STOP:STEP"), ("1:9:0", "the step '0'"), ("1:1000000", "larger step"),
     (":5", "whole number"), ("1,,2", "whole number"), ("1,0", "not between"), ("", "whole number"),
     ("9" * 5000 + ":1", "whole number"), ("1:3000000000:1000000", "not between"), ("1e3:2e3", "whole number")],
)  # fmt: skip
def test_bad_values_say_what_is_wrong(text, message):
    with pytest.raises(UsageError, match=message) as caught:
        parse_values("-N", text)
    assert str(caught.value).startswith("-N: ")
    assert len(str(caught.value)) < 200


@given(st.integers(1, 2**31), st.integers(0, 5000), st.integers(1, 2**31))
def test_a_range_holds_start_and_every_step_up_to_stop(start, length, step):
    stop = min(start + length, 2**31)
    values = parse_values("-N", f"{start}:{stop}:{step}")
    assert values[0] == start
    assert stop - step < values[-1] <= stop
    assert len(values) <= MOST_POINTS


@given(st.text(alphabet="0123456789:,- x", max_size=12))
def test_any_text_gives_values_or_a_usage_error(text):
    try:
        values = parse_values("-N", text)
    except UsageError:
        return
    assert values
    assert min(values) >= 1
    assert len(set(values)) == len(values)


@pytest.mark.parametrize(
    ("values", "expected"),
    [((1, 2, 4, 8), True), ((64, 128, 192), False), ((1, 2, 3, 4), False), ((1, 99), False)],
)
def test_geometric_values_get_a_logarithmic_axis(values, expected):
    assert geometric(values) is expected


LAYER = with_output(
    ConvLayer(name="l", N=8, C=64, H=28, W=28, K=64, R=3, S=3, PadH=1, PadW=1, PadH_end=1, PadW_end=1, declared_P=28,
              dtype=Dtype.fp16, layout="NHWC")
)  # fmt: skip


@pytest.mark.parametrize(
    ("parameter", "value", "fields"),
    [("N", 3, {"N": 3, "P": 28}), ("H", 14, {"P": 14, "Q": 28}), ("stride", 2, {"U": 2, "V": 2, "P": 14, "Q": 14}),
     ("dilation", 2, {"DilH": 2, "DilW": 2, "P": 26}), ("groups", 4, {"groups": 4}),
     ("R", 5, {"R": 5, "S": 3, "P": 26})],
)  # fmt: skip
def test_vary_sets_the_parameter_and_computes_the_output_anew(parameter, value, fields):
    layer = vary(LAYER, parameter, value)
    assert {name: getattr(layer, name) for name in fields} == fields


def test_depth_varies_in_3d_layers_only():
    with pytest.raises(UsageError, match="3-D"):
        vary(LAYER, "D", 4)


def test_a_point_without_a_time_has_its_reason():
    gpu = load_gpu("a100")
    line = series("f", "fprop", (1, 3), lambda g: vary(LAYER, "groups", g), ("a100", gpu), Runtime())
    assert [point.estimate is None for point in line.points] == [False, True]
    assert "not both divisible by groups=3" in line.points[1].reason
    assert line.points[1].value("time") is None
    assert "P=-1" in unknown_time(vary(vary(LAYER, "R", 32), "H", 1), gpu).replace("P=-28", "P=-1")
    assert (
        unknown_time(vary(LAYER, "N", 1), load_gpu("k80"))
        == "NVIDIA Tesla K80 (per die; board = 2x) has no unit for fp16"
    )


def test_efficiency_is_of_the_peak_of_what_multiplies():
    a100 = load_gpu("a100")
    (point,) = series("f", "fprop", (256,), lambda n: vary(LAYER, "N", n), ("a100", a100), Runtime()).points
    assert peak_flops(LAYER, a100, Runtime()) == 312e12
    assert point.value("efficiency") == pytest.approx(point.value("tflops") / 312)
    assert peak_flops(LAYER, load_gpu("k80"), Runtime()) == load_gpu("k80").peak_flops["fp32"]


def test_flags_as_a_table(convlint):
    code, out, err = convlint("-N", "54:55", *FIG4)
    assert (code, err) == (0, "")
    rates = {line[:2]: float(line.split()[3]) for line in out.splitlines() if line[:2] in ("54", "55")}
    assert rates["55"] < 0.75 * rates["54"]
    assert "C=4096 H=16 W=16 K=256 R=3 S=3 pad=1" in out
    assert max(map(columns, out.splitlines())) <= 80
    assert "\x1b" not in out


def test_csv_has_one_row_per_pass_and_value(convlint):
    code, out, _ = convlint("-N", "54,55,108", *FIG4, "--output", "csv")
    found = rows(out)
    assert code == 0
    assert [(row["pass"], row["value"]) for row in found[:4]] == [
        ("fprop", "54"), ("fprop", "55"), ("fprop", "108"), ("dgrad", "54")
    ]  # fmt: skip
    assert [row["tiles"] for row in found[:3]] == ["216", "220", "432"]
    assert all(0 < float(row["efficiency"]) < 1 for row in found)


def test_a_layer_of_a_file_with_the_files_mode_and_target(convlint, tmp_path):
    path = tmp_path / "net.yaml"
    path.write_text(SPEC, encoding="utf-8")
    code, out, err = convlint(str(path), "--layer", "two", "-N", "1:3", "-o", "csv")
    assert (code, err) == (0, "")
    assert [(row["gpu"], row["pass"], row["value"]) for row in rows(out)] == [("v100", "fprop", n) for n in "123"]
    code, out, _ = convlint(
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
        (["-N", "1:4", *FIG4, "--layer", "x"], "give the file too"),
        (["--figure", "3"], "Figures 2, 4"),
        (["--figure", "4", "-N", "1:4"], "leave out -N"),
        (["{path}", "-N", "1:4"], "name one with --layer: one, two"),
        (["{path}", "--layer", "tow", "-N", "1:4"], "did you mean 'two'"),
        (["{path}", "--layer", "two", "-N", "1:4", "-C", "8"], "leave out -C"),
        (["{path}", "--layer", "two"], "nothing varies"),
    ],
)
def test_wrong_usage_is_exit_2_with_a_hint(convlint, tmp_path, arguments, message):
    path = tmp_path / "net.yaml"
    path.write_text(SPEC, encoding="utf-8")
    code, out, err = convlint(*(argument.format(path=path) for argument in arguments))
    assert code == 2
    assert message in err
    assert out == ""


def test_what_cannot_be_predicted_is_exit_3(convlint, tmp_path):
    code, out, err = convlint("--groups", "1:3", "-N", "4", *FIG4)
    assert code == 3
    assert "no time at groups = 3" in err
    assert "no time" not in out
    assert convlint(str(tmp_path / "gone.yaml"), "-N", "1:2")[0] == 3


def test_two_strides_are_a_pair_where_another_parameter_varies(convlint):
    code, out, _ = convlint("-N", "1:2", *FIG4, "--stride", "1,2")
    assert code == 0
    assert "stride=1,2" in out
    code, out, _ = convlint("-N", "4", *FIG4, "--stride", "1,2", "-o", "csv", "--mode", "inference")
    assert [row["value"] for row in rows(out)] == ["1", "2"]


@pytest.mark.parametrize("metric", ["time", "tflops", "efficiency"])
@pytest.mark.parametrize("color", ["always", "never"])
def test_the_chart_fits_its_width_and_draws_every_line(convlint, monkeypatch, metric, color):
    monkeypatch.setenv("COLUMNS", "72")
    code, out, _ = convlint("-N", "1:256", *FIG4, "--plot", "--metric", metric, "--color", color)
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


def test_the_plot_starts_at_zero_and_keeps_high_and_low_in_their_place():
    drawn = plot([("a", [(1.0, 10.0), (2.0, 0.0)])], (30, 10), paint=painter(False), dots=False)
    assert drawn[0].startswith("10 +o")
    assert drawn[7].rstrip().endswith("o")
    assert drawn[7].startswith(" 0 +")
    assert plot([("a", [])], (30, 10), paint=painter(False), dots=True) == []


def test_images_are_valid_and_repeatable(convlint, tmp_path):
    svg, png = tmp_path / "a.svg", tmp_path / "a.png"
    code, out, _ = convlint("--figure", "15", "-o", f"svg={svg}", "-o", f"png={png}")
    assert (code, out) == (0, "")
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
    assert png.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    before = svg.read_bytes()
    convlint("--figure", "15", "-o", f"svg={svg}")
    assert svg.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "a.svg"]


def test_images_without_matplotlib_name_the_extra(convlint, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = convlint("--figure", "4", "-o", f"png={tmp_path / 'a.png'}")
    assert code == 2
    assert "pip install matplotlib" in err
    assert list(tmp_path.iterdir()) == []


def test_gaps_stay_gaps_in_an_image(convlint, tmp_path):
    code, _, _ = convlint("--groups", "1:4", "-N", "4", *FIG4, "-o", f"svg={tmp_path / 'a.svg'}")
    assert code == 3
    assert (tmp_path / "a.svg").stat().st_size > 1000


@pytest.mark.parametrize("name", [r"$\frac{", r"$\no$", "$$", "a" * 500, "<svg>&", "^{x}_"])
def test_figures_show_any_name_as_it_is(name, tmp_path, convlint):
    pytest.importorskip("matplotlib")
    spec, image = tmp_path / "net.yaml", tmp_path / "a.svg"
    layer = "N: 8, C: 64, H: 8, W: 8, K: 64, kernel_size: 1, dtype: fp16"
    spec.write_text(f"version: 1\nlayers: [{{ name: {json.dumps(name)}, {layer} }}]")
    code, _, err = convlint(str(spec), "-N", "1,2", "-o", f"svg={image}")
    assert (code, err) == (0, "")
    assert ElementTree.parse(image).getroot().tag.endswith("svg")
