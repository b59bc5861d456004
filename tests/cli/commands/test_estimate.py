"""`convlint estimate`: the table, its totals, JSON, CSV, and the exit codes."""

import csv
import io
import json
import re

import pytest

from convlint.__main__ import _run
from convlint.estimate import estimate_layer
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import ConvLayer, Dtype, with_output
from convlint.model.runtime import Runtime
from convlint.reporters.estimates import clock
from convlint.reporters.ink import columns

NET = """\
version: 1
defaults: { N: 256, dtype: fp16, layout: NHWC }
layers:
  - { name: stem, C: 3, H: 224, W: 224, K: 64, R: 7, S: 7, stride: 2, padding: 3 }
  - { name: pool, op: pool, kernel_size: 3, stride: 2, padding: 1 }
  - { name: body, K: 128, kernel_size: 3, padding: 1 }
  - { name: depthwise, K: 128, kernel_size: 3, padding: 1, groups: 128 }
"""
FIGURE_4 = """\
version: 1
layers:
  - { name: fig4, N: 55, C: 4096, H: 16, W: 16, K: 256, R: 3, S: 3, padding: 1, dtype: fp16, layout: NHWC }
"""
UNKNOWN = """\
version: 1
defaults: { dtype: fp16, layout: NHWC }
layers:
  - { name: open, C: 64, K: 96, kernel_size: 3, padding: 1 }
  - { name: known, N: 32, C: 64, K: 128, H: 14, W: 14, kernel_size: 3, padding: 1 }
"""
ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def convlint(capsys, monkeypatch, tmp_path):
    """Writes the spec, runs `convlint estimate` on it: (exit code, standard output, standard error)."""
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)

    def run(spec, *arguments, width=None):
        if spec is not None:
            (tmp_path / "net.yaml").write_text(spec, encoding="utf-8")
        if width is not None:
            monkeypatch.setenv("COLUMNS", str(width))
        code = _run(["estimate", *([] if spec is None else ["net.yaml"]), *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_a_row_holds_the_estimate(convlint):
    code, out, err = convlint(FIGURE_4, width=120)
    assert (code, err) == (0, "")
    head = next(line for line in out.splitlines() if "GEMM" in line)
    assert head.endswith("tile  split  tiles  waves  tile %  wave %  FLOP/B     time  TFLOPS  peak %  bound")
    fprop = next(line for line in out.splitlines() if line.startswith("  fprop")).split()
    assert fprop[1:7] == ["14080×256×36864", "128x128", "1", "220", "1.02", "100"]
    assert fprop[7] == "51"
    assert fprop[-1] == "compute"
    assert out.splitlines()[-1] == "1 layer in 1 file on a100: complete"


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
@pytest.mark.parametrize("gpus", [[], ["-g", "a100", "-g", "h100", "-g", "k80", "-g", "l4"]])
@pytest.mark.parametrize("spec", [NET, UNKNOWN])
def test_lines_fit_and_left_out_columns_are_named(convlint, width, gpus, spec):
    _, out, _ = convlint(spec, *gpus, width=width)
    table = out.split("\na100:")[0]
    assert max(map(columns, out.splitlines()[:-1])) <= width
    if not gpus:
        head = next(line for line in out.splitlines() if "GEMM" in line)
        every = ["split", "tiles", "waves", "tile %", "wave %", "FLOP/B", "peak %", "bound"]
        dropped = [title for title in every if title not in head]
        assert ("columns left out" in out) == bool(dropped)
        note = " ".join(out.split()).partition("columns left out at this width: ")[2].partition(";")[0]
        assert set(note.split(", ")) - {""} == set(dropped)
    else:
        for gpu in gpus[1::2]:
            assert len(re.findall(rf"(?<![-\w]){gpu}(?![-\w])", table)) == 1


def test_colours_only_dress_the_same_words(convlint):
    plain, dressed = convlint(NET, "--color", "never")[1], convlint(NET, "--color", "always")[1]
    assert "\x1b" not in plain
    assert ANSI.sub("", dressed) == plain != dressed


def test_shares_and_totals_add_up(convlint):
    code, out, _ = convlint(NET, "--output", "json")
    document = json.loads(out)
    assert (code, document["schema_version"], document["complete"]) == (0, 3, True)
    assert document["findings"] == document["skipped"] == document["errors"] == []
    times = [layer["estimates"][0]["time_us"] for layer in document["layers"]]
    assert document["summary"]["time_us"] == pytest.approx(sum(times), rel=1e-5)
    table = convlint(NET)[1]
    shares = [float(share) for share in re.findall(r"([0-9.]+) %  ?[█▏▎▍▌▋▊▉]", table)]
    assert len(shares) == 3
    assert sum(shares) == pytest.approx(100, abs=0.2)
    assert (
        f"a100: {clock(sum(times))} of convolutions per training step, grade {document['summary']['grade']}," in table
    )
    longest = max(table.splitlines(), key=lambda line: line.count("█"))
    assert longest.startswith(max(document["layers"], key=lambda layer: layer["estimates"][0]["time_us"])["name"])


def test_times_and_grades_are_those_of_the_check(convlint, capsys, tmp_path):
    """A rule that the config ignores, or a comment silences, is advice of neither."""
    odd = NET.replace("K: 128, kernel_size: 3, padding: 1 }", "K: 126, kernel_size: 3, padding: 1 }")
    odd = odd.replace(
        "K: 128, kernel_size: 3, padding: 1, groups: 128", "K: 126, kernel_size: 3, padding: 1, groups: 126"
    )
    odd += "  - { name: last, K: 64, kernel_size: 1 }\n"  # else the task would fix the channels before it

    def summaries(spec=odd):
        found = json.loads(convlint(spec, "-o", "json")[1])
        assert found["findings"] == []
        _run(["check", "net.yaml", "-o", "json"])
        checked = json.loads(capsys.readouterr().out)
        keys = ("grade", "time_us", "lost_us", "time_after_us", "grade_after", "time_after_fix_us")
        assert {key: found["summary"][key] for key in keys} == {key: checked["summary"][key] for key in keys}
        assert found["layers"] == checked["layers"]
        return found

    found = summaries()
    summary, (times,) = found["summary"], found["layers"][0]["estimates"]
    assert times["ideal_us"] <= times["time_after_us"] < times["time_us"]
    assert summary["lost_us"] == pytest.approx(summary["time_us"] - summary["time_after_us"], abs=0.01)
    commented = summaries(odd.replace("padding: 3 }", "padding: 3 }  # convlint: ignore[CL103] -- so it is"))
    (tmp_path / "convlint.toml").write_text("ignore = ['CL1', 'CL2']\n", encoding="utf-8")
    assert summary["lost_us"] > commented["summary"]["lost_us"] > summaries()["summary"]["lost_us"] == 0


def test_json_has_the_time_after_fix_of_the_check(convlint, capsys):
    """Autocast is advised, and `--fix` does not write it: the host needs longer for its operations."""
    spec = """
version: 1
runtime: { framework: pytorch, tf32: true }
defaults: { N: 1, dtype: fp32, layout: NHWC }
layers:
  - { name: first, C: 256, H: 28, W: 28, K: 256, kernel_size: 3, padding: 1 }
  - { name: norm, op: norm }
  - { name: last, K: 256, kernel_size: 3, padding: 1 }
"""
    found = json.loads(convlint(spec, "-o", "json")[1])["summary"]
    _run(["check", "net.yaml", "-o", "json"])
    checked = json.loads(capsys.readouterr().out)["summary"]
    assert checked["time_after_fix_us"] == checked["time_us"] > checked["time_after_us"]
    assert found["time_after_fix_us"] == checked["time_after_fix_us"]


def test_the_share_of_the_peak(convlint):
    """Of each pass in its row, of all of them in the total; it is that of the compute dtype."""
    out = convlint(FIGURE_4, width=120)[1]
    passes = json.loads(convlint(FIGURE_4, "-o", "json")[1])["layers"][0]["estimates"][0]["passes"]
    peak = load_gpu("a100").peak(Dtype.fp16, tensor=True) / 1e12
    for which, one in passes.items():
        row = next(line for line in out.splitlines() if line.startswith(f"  {which} ")).split()
        assert int(row[-2]) == round(100 * one["tflops"] / peak)
    flops, time = (sum(one[key] for one in passes.values()) for key in ("flops", "time_us"))
    (total,) = [line for line in out.splitlines() if line.startswith("a100: ")]
    assert total.endswith(f" TFLOPS, {100 * flops / time / 1e6 / peak:.0f} % of peak")


@pytest.mark.parametrize(
    ("dtype", "gpu", "words"),
    [
        ("fp16", "a100", None),
        ("bf16", "a100", None),
        ("int8", "a100", None),
        ("fp32", "a100", "2.0"),  # TF32
        ("fp32", "v100", "8.0"),
        ("fp32", "p100", "2.0"),  # without Tensor Cores, but fp16 is twice as fast
        ("fp32", "k80", None),  # no fp16 at all
    ],
)
def test_what_16_bits_would_give(convlint, dtype, gpu, words):
    mode = "inference" if dtype == "int8" else "training"
    out = " ".join(convlint(FIGURE_4.replace("fp16", dtype), "-g", gpu, "--mode", mode)[1].split())
    said = re.search(r" % of peak(, which in 16 bits is ([0-9.]+) times as high)?", out)
    assert said[2] == words


def test_launches_are_said_where_they_weigh(convlint):
    assert "launches" not in convlint(FIGURE_4)[1]
    small = "  - { name: tiny, N: 1, C: 8, H: 4, W: 4, K: 8, kernel_size: 3, padding: 1, dtype: fp16 }\n"
    assert re.search(r" % of peak; launches [0-9]+ %", " ".join(convlint(f"version: 1\nlayers:\n{small}")[1].split()))


def test_copies_are_said_where_they_weigh(convlint):
    sizes = "N: 64, C: 192, H: 56, W: 56, K: 192, dtype: fp16"
    layers = [f"  - {{ name: a, {sizes}, layout: NHWC, kernel_size: 1 }}\n",
              f"  - {{ name: b, {sizes}, layout: LAYOUT, kernel_size: 3, padding: 1 }}\n"]  # fmt: skip
    same, other = ("version: 1\nlayers:\n" + "".join(layers).replace("LAYOUT", one) for one in ("NHWC", "NCHW"))
    assert "copies" not in convlint(same)[1]
    assert re.search(r" % of peak; copies [0-9]+ %", " ".join(convlint(other)[1].split()))
    passes = json.loads(convlint(other, "-o", "json")[1])["layers"][1]["estimates"][0]["passes"]
    assert all(0 < one["copies_us"] < one["time_us"] for one in passes.values())


def test_a_training_step_and_a_forward_pass_are_never_added_up(convlint, tmp_path):
    served = NET.replace("layers:", "mode: inference\nlayers:")
    alone = [json.loads(convlint(spec, "-o", "json")[1])["summary"] for spec in (NET, served)]
    (tmp_path / "served.yaml").write_text(served, encoding="utf-8")
    both = convlint(NET, "served.yaml", "-g", "a100", "-g", "t4")[1]
    totals = re.findall(
        r"^(a100|t4): (.*) of convolutions per (training step|forward pass), grade ([A-F]),", both, re.M
    )
    assert [(gpu, step) for gpu, _, step, _ in totals] == [
        (gpu, step) for gpu in ("a100", "t4") for step in ("training step", "forward pass")
    ]
    assert [(time, grade) for _, time, _, grade in totals[:2]] == [
        (clock(summary["time_us"]), summary["grade"]) for summary in alone
    ]
    shares = [float(share) for share in re.findall(r"([0-9.]+) %  ?[█▏▎▍▌▋▊▉]", convlint(NET, "served.yaml")[1])]
    assert [sum(shares[:3]), sum(shares[3:])] == pytest.approx([100, 100], abs=0.2)


def test_a_file_without_any_time_has_the_passes_of_its_own_mode(convlint, tmp_path):
    (tmp_path / "served.yaml").write_text(UNKNOWN.replace("layers:", "mode: inference\nlayers:"), encoding="utf-8")
    (tmp_path / "open.yaml").write_text(
        UNKNOWN.replace("layers:", "mode: inference\nlayers:").replace("N: 32, ", ""), encoding="utf-8"
    )
    for name in ("served.yaml", "open.yaml"):
        rows = list(csv.DictReader(io.StringIO(convlint(NET, name, "-o", "csv")[1])))
        assert {row["pass"] for row in rows if row["path"] == name} == {"fprop"}
        assert "per forward pass" not in convlint(NET, "open.yaml")[1]


def test_json_is_the_document_of_check_without_findings(convlint, capsys):
    estimated = json.loads(convlint(NET, "-o", "json")[1])
    _run(["check", "net.yaml", "-o", "json"])
    checked = json.loads(capsys.readouterr().out)
    assert estimated["layers"] == checked["layers"]
    assert estimated.keys() == checked.keys()


def test_csv_has_one_row_per_layer_gpu_and_pass(convlint):
    code, out, _ = convlint(NET, "-g", "a100", "-g", "t4", "-o", "csv")
    found = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert out.split("\n")[0] == (
        "path,line,layer,gpu,pass,calls,gemm_M,gemm_N,gemm_K,gemm_batch,flops,bytes,arithmetic_intensity,compute_dtype,"
        "algorithm,tile_M,tile_N,split_k,tiles,waves,tile_efficiency,wave_efficiency,time_us,tflops,bound_by,"
        "layer_time_us,grade,unknown"
    )
    assert [(row["gpu"], row["pass"]) for row in found if row["layer"] == "stem"] == [
        (gpu, which) for gpu in ("a100", "t4") for which in ("fprop", "wgrad")
    ]
    assert len(found) == 2 * (2 + 3 + 3)
    body = next(row for row in found if (row["layer"], row["gpu"], row["pass"]) == ("body", "a100", "fprop"))
    layer = with_output(
        ConvLayer(name="body", N=256, C=64, H=56, W=56, K=128, R=3, S=3, PadH=1, PadW=1, PadH_end=1, PadW_end=1,
                  dtype=Dtype.fp16, layout="NHWC")
    )  # fmt: skip
    one = estimate_layer(layer, load_gpu("a100"), Runtime(), "training").passes["fprop"]
    assert (int(body["gemm_M"]), int(body["gemm_N"]), int(body["gemm_K"])) == (802816, 128, 576)
    assert float(body["time_us"]) == pytest.approx(one.time_us, abs=1e-3)
    assert round(float(body["arithmetic_intensity"]), 1) == 383.8
    assert float(body["arithmetic_intensity"]) == pytest.approx(int(body["flops"]) / int(body["bytes"]), rel=1e-5)


def test_unknown_sizes_give_what_is_known_a_reason_and_exit_3(convlint):
    code, out, _ = convlint(UNKNOWN)
    assert code == 3
    assert re.search(r"fprop +-×96×576 ", out)
    assert re.search(r"wgrad +576×96×- ", out)
    assert "error: net.yaml:4:5: no time for open: N, H, W unknown" in out
    assert "or more of convolutions per training step, grade -," in out
    assert out.splitlines()[-1] == "2 layers in 1 file on a100: no time for 1 layer"
    document = json.loads(convlint(UNKNOWN, "-o", "json")[1])
    assert document["complete"] is False
    assert document["summary"]["time_us"] is None
    rows = list(csv.DictReader(io.StringIO(convlint(UNKNOWN, "-o", "csv")[1])))
    assert [row["unknown"] for row in rows] == ["N, H, W unknown"] * 3 + [""] * 3
    assert {row["time_us"] for row in rows[:3]} == {""}


def test_a_dtype_that_one_gpu_lacks_leaves_the_others(convlint):
    code, out, _ = convlint(NET.replace("fp16", "bf16"), "-g", "t4", "-g", "a100")
    assert code == 3
    assert "no time on t4 for stem, body, depthwise: NVIDIA T4 has no unit for bf16" in out
    assert re.search(r"^a100: .* grade [A-F],", out, re.MULTILINE)
    assert not re.search(r"^t4: ", out, re.MULTILINE)


def test_unreadable_files_are_reported_and_the_others_estimated(convlint):
    code, out, _ = convlint(NET, "gone.yaml", "-o", "csv=rows.csv", "-o", "text")
    assert code == 3
    assert "error: gone.yaml: " in out
    assert out.splitlines()[-1] == "3 layers in 2 files on a100: 1 input not read"


def test_files_that_name_different_targets_are_not_incomplete(convlint, tmp_path):
    (tmp_path / "other.yaml").write_text(FIGURE_4.replace("layers:", "target: [t4]\nlayers:"), encoding="utf-8")
    code, out, _ = convlint(NET, "other.yaml")
    assert code == 0
    assert out.splitlines()[-1] == "4 layers in 2 files on a100, t4: complete"
    assert "grade -" not in out


def test_inference_runs_fprop_alone(convlint):
    out = convlint(NET, "--mode", "inference")[1]
    assert "dgrad" not in out
    assert "per forward pass" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [([], "nothing to estimate"),
     (["net.yaml", "--gpu", "a1000"], "unknown GPU"), (["net.yaml", "-o", "jsn"], "json"),
     (["net.yaml", "--mode", "train"], "--mode"), (["net.yaml", "-o", "csv", "-o", "json"], "two formats"),
     (["net.yaml", "-o", "csv=no/such/folder.csv"], "no folder")],
)  # fmt: skip
def test_wrong_usage_is_exit_2(convlint, tmp_path, arguments, message):
    (tmp_path / "net.yaml").write_text(NET, encoding="utf-8")
    code, out, err = convlint(None, *arguments)
    assert (code, out) == (2, "")
    assert message in err


STEP = NET + "  - { name: norm, op: norm }\n  - { name: relu, op: relu }\n"


@pytest.mark.parametrize("output", ["text", "html"])
def test_an_estimate_promises_nothing_of_the_step(convlint, output):
    """It names no advice that "all of it" could be."""
    _, plain, _ = convlint(STEP.replace("NHWC", "NCHW"), "--runtime", "framework=pytorch", "-o", output)
    assert re.search(r"step [\d.]+ ms \([\d,]+ images/s\): ", " ".join(plain.split()))
    assert "with all of it" not in plain


def test_the_step_and_its_operations(convlint):
    code, plain, _ = convlint(STEP, width=120)
    assert code == 0
    assert re.search(r"^  step [\d.]+ ms \([\d,]+ images/s\).*: convolutions \d+ %", plain, re.MULTILINE)
    assert "relu" not in plain
    _, listed, _ = convlint(STEP, "--operations", width=120)
    rows = re.findall(r"^(\w+) +(\w+) +(\w+) +[\d.]+ [um]s +[\d.]+ % +[\d.]+$", listed, re.MULTILINE)
    assert rows == [("pool", "pool", "pool"), ("norm", "norm", "normalisation"), ("relu", "relu", "pointwise")]
    settings = ("--runtime", "framework=pytorch", "--runtime", "compile=true")
    _, compiled, _ = convlint(STEP, "--operations", *settings, width=120)
    assert re.search(r"^relu +relu +in a kernel above +- +- +-$", compiled, re.MULTILINE)


def test_what_a_step_does_for_no_operation_stands_beside_them(convlint):
    settings = ("--runtime", "framework=pytorch", "--runtime", "optimizer=adamw", "--mode", "training")
    _, listed, _ = convlint(STEP, "--operations", *settings, width=120)
    assert re.search(r"^update of weights +- +optimizer +[\d.]+ us +[\d.]+ % +-$", listed, re.MULTILINE)


def test_without_a_step_no_operation_is_listed(convlint):
    assert convlint(NET, "--operations", width=120) == convlint(NET, width=120)
