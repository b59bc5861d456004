"""The command line: exit codes, options, formats, and the last line that says what was covered."""

import json
import re
from pathlib import Path

import pytest
from checked_files import CLEAN, HEAD, RULE, WARNS, check, codes, lost_us, prepared, report
from command_line import Ran, convlint

from convlint import __version__
from convlint.gpus.gpu import gpu_names
from convlint.reporters import REPORTERS

folder = pytest.fixture(autouse=True)(prepared)


# --- wrong usage


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "clean.yaml", "--gpu", "a10O"], "unknown GPU 'a10O'; did you mean a10"),
        (["check", "clean.yaml", "--select", "channel-aligment"], "did you mean 'channel-alignment'?"),
        (["check", "clean.yaml", "--ignore", "CL999"], "unknown rule 'CL999'"),
        (["check", "clean.yaml", "--ignore", "C"], "unknown rule 'C'"),
        (["check", "clean.yaml", "--extend-select", "XX1"], "unknown rule 'XX1'"),
        (["check", "clean.yaml", "--output", "sariff"], "unknown format 'sariff'; did you mean 'sarif'?"),
        (["check", "clean.yaml", "--fail-on", "warnings"], "info, never; did you mean 'warning'?"),
        (["check", "clean.yaml", "--mode", "train"], "not one of training, inference; did you mean 'training'?"),
        (["check", "clean.yaml", "--color", "on"], "--color: 'on' is not one of auto, always, never"),
        (["check", "clean.yaml", "--min-loss", "101"], "--min-loss"),
        (["check", "clean.yaml", "--min-loss", "much"], "--min-loss"),
        (["check", "clean.yaml", "--gpuu", "a100"], "--gpu"),
        (["check", "clean.yaml", "--batch", "0"], "--batch"),
        (["chekc"], "chekc"),
        (["rule", "CL1O2"], "unknown rule 'CL1O2'; did you mean 'CL102'?"),
        (["gpus", "a1000"], "unknown GPU 'a1000'; did you mean"),
        (["layer", "-C", "0"], "C: must be at least 1, not 0"),
        (["layer", "-C", "1e3"], "C: must be a whole number of at least 1, not 1e3"),
        (["layer", "--dtype", "fp61"], "dtype: 'fp61' is not one of"),
        (["layer", "--op", "pool"], "--op: 'pool' is neither conv nor conv_transpose"),
        (["layer", "--pad", "1,2,3"], "padding: must be one number, 2, or 4 sides, not 3"),
        (["layer", "-H", "2147483649"], "H: 2147483649 is larger than 2^31"),
    ],
)
def test_wrong_usage_is_refused_with_a_suggestion(arguments: list[str], message: str) -> None:
    ran = convlint(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_messages_about_files_cannot_colour_the_terminal(folder: Path) -> None:
    rules = folder / "rules\x1b[31m"
    rules.mkdir()
    (rules / "a.yaml").write_text('code: "X\\e[31m"\n"k\\e[2J": 1\n')
    ran = check("clean.yaml", "--rules", str(rules))
    assert ran.code == 2
    assert "\x1b" not in ran.err


def test_version_and_help() -> None:
    assert convlint("--version") == Ran(0, f"convlint {__version__}\n", "")
    ran = convlint("check", "--help")
    assert ran.code == 0
    assert all(option in ran.out for option in ("--gpu", "--select", "--fail-on", "--min-loss", "--output", "--rules"))
    for name in REPORTERS:
        assert name in ran.out


# --- selection


@pytest.fixture
def own(folder: Path) -> str:
    """A folder of three rules that always fire: XY100 one, XY101 two and XY200 three."""
    rules = folder / "own"
    rules.mkdir()
    for code, name in (("XY100", "one"), ("XY101", "two"), ("XY200", "three")):
        text = RULE.replace("XY100", code).replace("odd-channels", name).replace("C % 2 == 0", "C < 0")
        (rules / f"{name}.yaml").write_text(text)
    return str(rules)


@pytest.mark.parametrize(
    ("arguments", "selected"),
    [
        (["--select", "XY100"], {"XY100"}),
        (["--select", "one"], {"XY100"}),
        (["--select", "XY101,XY200"], {"XY101", "XY200"}),
        (["--select", "XY101", "--select", "three"], {"XY101", "XY200"}),
        (["--select", "XY", "--ignore", "XY1"], {"XY200"}),
        (["--select", "XY1,CL6", "--ignore", "one,two"], set()),
        (["--select", "XY1", "--extend-select", "three"], {"XY100", "XY101", "XY200"}),
        (["--select", "XY1", "--extend-select", "XY2", "--ignore", "XY2"], {"XY100", "XY101"}),
        (["--select", "CL6"], set()),
    ],
)
def test_selecting(arguments: list[str], selected: set[str], own: str) -> None:
    assert codes("clean.yaml", "--rules", own, *arguments) == selected


def test_ignoring_and_extending(folder: Path, own: str) -> None:
    everything = codes("warns.yaml", "--rules", own)
    assert {"CL102", "XY100", "XY101", "XY200"} <= everything
    assert codes("warns.yaml", "--rules", own, "--ignore", "channel-alignment") == everything - {"CL102"}
    assert codes("warns.yaml", "--rules", own, "--ignore", "XY1") == everything - {"XY100", "XY101"}
    (folder / "wide.yaml").write_text(CLEAN.replace("K: 256", "K: 320").replace("C: 256", "C: 320"))
    default, extended = codes("wide.yaml"), codes("wide.yaml", "--extend-select", "CL202")
    assert "CL202" not in default
    assert extended == default | {"CL202"} == codes("wide.yaml", "--select", "ALL") | default


def test_min_loss_leaves_findings_in_the_report_and_out_of_the_verdict() -> None:
    (finding,) = report("warns.yaml", "--select", "CL102")["findings"]
    share = finding["lost_percent"]
    below, above = str(share * 0.9), str(min(100.0, share * 1.1))
    assert check("warns.yaml", "--select", "CL102", "--min-loss", below).code == 1
    assert check("warns.yaml", "--select", "CL102", "--min-loss", above).code == 0
    assert codes("warns.yaml", "--select", "CL102", "--min-loss", above) == {"CL102"}


def test_the_total_lost_is_that_of_the_findings_shown(folder: Path) -> None:
    (finding,) = report("warns.yaml", "--select", "CL102")["findings"]
    assert lost_us("warns.yaml", "--select", "CL102") == pytest.approx(finding["lost_us"])
    assert lost_us("warns.yaml", "--ignore", "CL102") < finding["lost_us"]
    assert lost_us("warns.yaml", "--select", "CL105") == 0  # an info
    (folder / "silent.yaml").write_text(WARNS.rstrip() + "  # convlint: ignore[CL102] -- as it is\n")
    assert lost_us("silent.yaml", "--select", "CL102") == 0
    check("warns.yaml", "--select", "CL102", "--write-baseline", "known.json")
    assert lost_us("warns.yaml", "--select", "CL102", "--baseline", "known.json") == 0
    (folder / "convlint.toml").write_text("severity = { CL102 = 'info' }\n")
    assert lost_us("warns.yaml", "--select", "CL102") == pytest.approx(finding["lost_us"])  # severity is no price
    several = check("warns.yaml", "--select", "CL102", "--gpu", "a100", "--gpu", "h100", "--isolated", "--verbose").out
    verdicts = re.findall(
        r"^  on (a100|h100): \S+ us of convolutions per training step, grade \w; \S+ us with all\s+of it$",
        several,
        re.MULTILINE,
    )
    assert verdicts == ["a100", "h100"]
    assert lost_us("warns.yaml", "--gpu", "a100", "--gpu", "h100", "--isolated") == lost_us("warns.yaml", "--isolated")


def test_what_a_run_writes_into_its_baseline_is_lost_no_longer() -> None:
    assert lost_us("warns.yaml", "--select", "CL102", "--write-baseline", "known.json") == 0


# --- inputs


BY_ITSELF = """\
version: 1
runtime: { framework: pytorch, tf32: true, mixed_precision: true }
mode: inference
defaults: { dtype: fp32, layout: NCHW }
layers:
  - { name: a, N: 4, C: 512, H: 56, W: 56, K: 130, kernel_size: 1, first: true }
  - { name: b, K: 384, kernel_size: 1 }
  - { name: c, K: 16, kernel_size: 5, padding: 2, groups: 4 }
"""


def test_a_baseline_holds_what_comes_up_without_the_advice_in_it(folder: Path) -> None:
    """In 16 bits NHWC is not worth it in the last layer, and in fp32 it is: without CL106, CL401 came up."""
    (folder / "net.yaml").write_text(BY_ITSELF)
    check("net.yaml", "--gpu", "a10", "--write-baseline", "known.json")
    assert report("net.yaml", "--gpu", "a10", "--baseline", "known.json")["findings"] == []


def test_standard_input() -> None:
    ran = check("-", stdin=WARNS)
    assert ran.code == 1
    assert "<stdin>" in ran.out
    assert report("-", stdin=WARNS)["findings"][0]["path"] == "<stdin>"


def test_a_missing_file_does_not_keep_the_other_from_being_checked() -> None:
    for order in (["missing.yaml", "warns.yaml"], ["warns.yaml", "missing.yaml"]):
        found = report(*order)
        assert [error["path"] for error in found["errors"]] == ["missing.yaml"]
        assert found["errors"][0]["message"] == "cannot be read: No such file or directory"
        assert "CL102" in {finding["code"] for finding in found["findings"]}
        assert found["complete"] is False


def test_targets_of_the_spec_and_of_the_command_line(folder: Path) -> None:
    (folder / "two.yaml").write_text(CLEAN.replace("layers:", "target: [t4, v100]\nlayers:"))
    assert report("two.yaml")["targets"] == ["t4", "v100"]
    assert report("two.yaml", "--gpu", "h100", "--gpu", "a100")["targets"] == ["h100", "a100"]
    (folder / "odd.yaml").write_text(CLEAN.replace("layers:", "target: [t4, a1000]\nlayers:"))
    (error,) = report("odd.yaml")["errors"]
    assert "unknown GPU 'a1000'; did you mean" in error["message"]
    assert (error["line"], check("odd.yaml").code) == (3, 3)


def test_the_mode_of_the_spec_and_of_the_command_line(folder: Path) -> None:
    (folder / "served.yaml").write_text(CLEAN.replace("layers:", "mode: inference\nlayers:"))
    assert [report("served.yaml")["mode"], report("served.yaml", "--mode", "training")["mode"]] == [
        "inference", "training",
    ]  # fmt: skip


# --- outputs


def test_several_outputs(folder: Path) -> None:
    ran = check("warns.yaml", "-o", "text", "-o", "json=out.json", "-o", "concise=out.txt")
    assert ran.code == 1
    assert "CL102" in ran.out
    assert json.loads((folder / "out.json").read_text())["summary"]["warnings"] >= 1
    assert (folder / "out.txt").read_text().startswith("warns.yaml:4:")
    assert sorted(path.name for path in folder.iterdir() if "out" in path.name) == ["out.json", "out.txt"]


@pytest.mark.parametrize(
    ("arguments", "environment", "coloured"),
    [
        ([], {}, False),  # not a terminal
        (["--color", "always"], {}, True),
        (["--color", "never"], {"FORCE_COLOR": "1"}, False),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
        ([], {"FORCE_COLOR": "1"}, True),
        ([], {"NO_COLOR": "1"}, False),
        ([], {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ([], {"NO_COLOR": ""}, False),
        ([], {"FORCE_COLOR": "", "NO_COLOR": ""}, False),
        (["--color", "auto"], {"FORCE_COLOR": "1"}, True),
    ],
)
def test_colours(
    arguments: list[str], environment: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in check("warns.yaml", *arguments).out) is coloured


def test_files_are_never_coloured(folder: Path) -> None:
    check("warns.yaml", "-o", "text=out.txt", "--color", "always")
    assert "\x1b" not in (folder / "out.txt").read_text()


LAST_LINES = [
    (["clean.yaml"], "1 layer in 1 file on a100: 0 errors, 0 warnings"),
    (["errs.yaml", "warns.yaml", "--gpu", "t4"], "3 layers in 2 files on t4: 1 error, "),
    (["clean.yaml", "--gpu", "t4", "--gpu", "v100"], "1 layer in 1 file on t4, v100: 0 errors, "),
]


@pytest.mark.parametrize(("arguments", "start"), LAST_LINES)
def test_the_last_line_says_what_was_covered(arguments: list[str], start: str) -> None:
    last = check(*arguments).out.rstrip("\n").split("\n")[-1]
    assert last.startswith(start)


def test_the_last_line_counts_skipped_layers(folder: Path) -> None:
    (folder / "flat.yaml").write_text(CLEAN.replace("H: 56, W: 56, ", ""))
    assert check("flat.yaml").out.rstrip("\n").endswith("; 1 layer skipped; 1 input incomplete")
    (skipped,) = {tuple(skip["needs"]) for skip in report("clean.yaml")["skipped"] if skip["layer"] is not None} or {()}
    assert all(need.startswith("runtime.") or need in ("bias", "norm_follows") for need in skipped)
    assert "layer skipped" not in check("clean.yaml").out


def test_an_input_of_which_layers_were_read_is_incomplete_not_unread(folder: Path) -> None:
    (folder / "half.yaml").write_text(CLEAN + "  - { name: bad, C: 0, H: 56, W: 56, K: 256, kernel_size: 3 }\n")
    assert check("half.yaml").out.rstrip("\n").endswith("; 1 input incomplete")
    assert check("half.yaml", "broken.yaml").out.rstrip("\n").endswith("; 1 input not read; 1 input incomplete")
    github = check("half.yaml", "broken.yaml", "-o", "github").out
    assert github.count("title=convlint%3A incomplete") == github.count("title=convlint%3A not read") == 1


def test_a_file_that_cannot_be_parsed_is_shown_in_place(folder: Path) -> None:
    (folder / "tab.yaml").write_text("version: 1\nlayers:\n  - { name: a, C: [1 }\n")
    (folder / "latin.yaml").write_bytes(b"version: 1\nlayers: \xe9\n")
    text = check("tab.yaml", "latin.yaml").out
    assert re.search(r"┌─ tab.yaml:3:(\d+)\n    3 │   - { name: a, C: \[1 }\n +│ +\^\n", text)
    assert "┌─ latin.yaml:2" in text


def test_flags_have_no_line() -> None:
    flags = ["-N", "32", "-C", "64", "-H", "56", "-W", "56", "-K", "64", "-R", "3", "-S", "3", "--dtype", "fp16"]
    flags += ["--runtime", "framework=pytorch", "--runtime", "cudnn_benchmark=false"]
    flags += ["--runtime", "fixed_input_size=true", "--runtime", "deterministic=false"]
    assert ":0" not in convlint("layer", *flags).out
    findings = json.loads(convlint("layer", *flags, "-o", "json").out)["findings"]
    assert "CL501" in {finding["code"] for finding in findings}
    places = [finding[key] for finding in findings for key in ("line", "column", "end_line", "end_column")]
    assert set(places) == {None}


# --- the JSON contract


def test_a_finding_on_the_batch_belongs_to_the_network(folder: Path) -> None:
    """No layer has its batch alone: what a rule on channels says of N names the layers that it is about."""
    odd = "{ name: odd, N: 33, C: 64, H: 7, W: 7, K: 64, kernel_size: 3, padding: 1, first: false }"
    (folder / "batch.yaml").write_text(f"{HEAD}  - {odd}\n")
    (finding,) = report("batch.yaml", "--select", "CL201")["findings"]
    assert "N=33" in finding["message"]
    assert (finding["layer"], finding["layers"]) == (None, ["odd"])
    assert (finding["lost_us"], finding["advised"]) == (None, False)
    assert [len(own) for own in finding["fingerprints"]] == [16]
    line = check("batch.yaml", "--select", "CL201", "-o", "concise").out.splitlines()[0]
    assert line == f"batch.yaml:4:21: info CL201 multiple-of-64: {finding['message']}"
    out = check("batch.yaml", "--select", "CL201", "--verbose").out
    assert out.startswith("── network ── batch.yaml ")
    assert "\n      layers  odd\n" in out


def test_concise_lines_name_their_layer() -> None:
    lines = check("warns.yaml", "errs.yaml", "-o", "concise").out.splitlines()[:-1]
    assert lines
    assert all(line.endswith((" (odd)", " (ok)", " (wrong)")) for line in lines if " CL5" not in line)


def test_derived_shapes_and_places_in_json(folder: Path) -> None:
    (folder / "net.yaml").write_text(
        "version: 1\n"
        "defaults: { N: 256, dtype: fp16, layout: NHWC }\n"
        "layers:\n"
        "  - { name: stem, C: 3, H: 224, W: 224, K: 64, R: 7, S: 7, stride: 2, padding: 3 }\n"
        "  - { name: pool, op: pool, kernel_size: 3, stride: 2, padding: 1 }\n"
        "  - { name: conv2, K: 64, kernel_size: 3, padding: 1 }\n"
        "  - { name: up, op: conv_transpose, K: 62, kernel_size: 4, stride: 2, padding: 1 }\n"
    )
    found = report("net.yaml")
    shapes = [
        [layer[key] for key in ("name", "op", "line", "column", *"NCHWKPQRSUV", "PadH", "groups")]
        for layer in found["layers"]
    ]
    assert shapes == [
        ["stem", "conv", 4, 5, 256, 3, 224, 224, 64, 112, 112, 7, 7, 2, 2, 3, 1],
        ["conv2", "conv", 6, 5, 256, 64, 56, 56, 64, 56, 56, 3, 3, 1, 1, 1, 1],
        ["up", "conv_transpose", 7, 5, 256, 64, 56, 56, 62, 112, 112, 4, 4, 2, 2, 1, 1],
    ]
    gemms = {which: entry["gemm"] for which, entry in found["layers"][1]["estimates"][0]["passes"].items()}
    assert gemms == {
        "fprop": {"M": 256 * 56 * 56, "N": 64, "K": 576, "batch": 1},
        "dgrad": {"M": 256 * 56 * 56, "N": 64, "K": 576, "batch": 1},
        "wgrad": {"M": 576, "N": 64, "K": 256 * 56 * 56, "batch": 1},
    }
    places = {f["code"]: (f["layer"], f["line"], f["column"], f["end_column"]) for f in found["findings"]}
    assert places["CL103"] == ("stem", 4, 22, 23)
    assert places["CL102"] == ("up", 7, 40, 42)


def test_a_spec_cannot_ask_for_any_number_of_checks(folder: Path) -> None:
    layers = "  - { C: 64, H: 8, W: 8, K: 64, kernel_size: 3, padding: 1 }\n" * 500
    targets = ", ".join(gpu_names()[:50])
    (folder / "many.yaml").write_text(HEAD.replace("version: 1\n", f"version: 1\ntarget: [{targets}]\n") + layers)
    ran = convlint("check", "many.yaml", "--isolated", "-o", "concise")
    assert ran.code == 3
    assert "asks for 500 layers on 50 GPUs; --gpu names those that matter" in ran.out


# --- one of a thing

TINY = "  - { name: a, C: 64, H: 4, W: 4, K: 24, kernel_size: 3, padding: 1, first: false }\n"


@pytest.mark.parametrize("command", ["check", "estimate", "plan"])
@pytest.mark.parametrize("gpu", ["a100", "k80"])
@pytest.mark.parametrize("layers", [1, 2])
def test_one_of_a_thing_is_no_plural(layers: int, gpu: str, command: str, folder: Path) -> None:
    spec = HEAD.replace("N: 256", "N: 1") + "".join(TINY.replace("name: a", f"name: l{n}") for n in range(layers))
    (folder / "tiny.yaml").write_text(spec)
    formats = ("text", "concise", "markdown", "html") if command == "check" else ("text", "markdown")
    for name in formats:
        out = convlint(command, "tiny.yaml", "--gpu", gpu, "-o", name).out
        words = re.sub(r"<(script|style)\b.*?</\1>", "", out, flags=re.DOTALL)
        assert (
            re.findall(
                r"(?<![\w.,=x×])1 (?:layer|finding|rule|tile|image|model|error|warning|info|pass|file|step)s\b", words
            )
            == []
        )


def test_one_rule_is_tried_alone(folder: Path) -> None:
    (folder / "rules").mkdir(exist_ok=True)
    (folder / "rules" / "one.yaml").write_text(RULE)
    assert convlint("rule", "--test", "rules").out.startswith("1 rule, ")


def test_what_is_no_part_of_the_total_has_no_price_in_the_table(folder: Path) -> None:
    """A finding that says "time -26 %" beside a row that says "0 us" would be one of two things."""
    (folder / "wide.yaml").write_text(
        HEAD + "  - { name: a, C: 256, H: 56, W: 56, K: 72, kernel_size: 3, padding: 1, first: false }\n"
    )
    out = convlint("check", "wide.yaml", "--verbose").out
    assert "0 us" not in out.split("summary")[1]
    (offered,) = re.findall(r"fix +(.*?)\n      why", out, flags=re.DOTALL)
    for size in re.findall(r"[CK]=\d+", offered):
        assert offered.count(size) == 1


VIDEO = """version: 1
runtime: { framework: pytorch }
mode: inference
layers:
  - { name: a, N: 1, C: 128, D: 16, H: 64, W: 64, K: 128, kernel_size: 3, padding: 1, dtype: bf16 }
"""
LOCK = (
    '[[package]]\nname = "torch"\nversion = "{torch}"\n\n[[package]]\nname = "nvidia-cudnn-cu12"\nversion = "{cudnn}"\n'
)


def test_a_slow_version_in_the_lock_file_fails_the_check_until_it_is_left(folder: Path) -> None:
    (folder / "video.yaml").write_text(VIDEO)
    (folder / ".git").mkdir(exist_ok=True)
    times = {}
    for torch, cudnn, code in (("2.9.0", "9.10.2.21", 1), ("2.9.1", "9.15.1.9", 0), ("2.8.0", "9.10.2.21", 0)):
        (folder / "uv.lock").write_text(LOCK.format(torch=torch, cudnn=cudnn))
        ran = convlint("check", "video.yaml", "--gpu", "h100", "-o", "json")
        report = json.loads(ran.out)
        assert ran.code == code
        assert [each["code"] for each in report["findings"] if each["severity"] == "warning"] == ["CL811"] * code
        assert report["runtime"]["framework_version"] == {"value": torch, "origin": "uv.lock:2"}
        assert report["runtime"]["cudnn"]["value"] == cudnn
        assert report["networks"][0]["runtime"] == report["runtime"]
        times[torch] = report["summary"]["time_us"]
    assert times["2.9.0"] == pytest.approx(4 * times["2.8.0"], rel=1e-4)  # as printed
    assert times["2.9.1"] == times["2.8.0"]
    (folder / "uv.lock").write_text(LOCK.format(torch="2.9.0", cudnn="9.10.2.21"))
    text = convlint("check", "video.yaml", "--gpu", "h100").out
    assert "framework 2.9.0 (uv.lock:2)" in " ".join(text.split())
    for other in (("--versions", "none"), ("--isolated",), ("--runtime", "framework_version=2.8.0")):
        assert convlint("check", "video.yaml", "--gpu", "h100", *other).code == 0
    (folder / "other.lock").write_text(LOCK.format(torch="2.8.0", cudnn="9.10.2.21"))
    assert convlint("check", "video.yaml", "--gpu", "h100", "--versions", "other.lock").code == 0
    missing = convlint("check", "video.yaml", "--gpu", "h100", "--versions", "none.lock")
    assert (missing.code, "--versions: none.lock" in missing.err) == (2, True)
    (folder / "pyproject.toml").write_text('[tool.convlint]\nversions = "none.lock"\n')
    missing = convlint("check", "video.yaml", "--gpu", "h100")
    assert (missing.code, "pyproject.toml:2:1: 'none.lock' is no file" in missing.err) == (2, True)


@pytest.mark.parametrize("op", ["norm", "batchnorm", "groupnorm, groups: 8", "layernorm"])
def test_what_a_norm_reads_is_kept_for_its_gradient(op: str) -> None:
    Path("net.yaml").write_text(
        "version: 1\nmode: training\ndefaults: {N: 256, dtype: fp16, layout: NHWC, K: 64, kernel_size: 3, padding: 1}\n"
        f"layers: [{{name: a, C: 64, H: 112, W: 112}}, {{op: {op}}}, {{op: relu}}, {{name: b}}]\n"
    )
    (network,) = json.loads(convlint("check", "net.yaml", "--gpu", "a100", "-o", "json").out)["networks"]
    assert network["memory_bytes"]["activations"] == 3 * 256 * 64 * 112 * 112 * 2  # what a, the norm and b read


def test_what_a_batch_norm_behind_an_addition_reads_is_kept_once() -> None:
    Path("net.yaml").write_text(
        "version: 1\nmode: training\ndefaults: {N: 64, dtype: fp16, layout: NHWC, K: 64, kernel_size: 3, padding: 1}\n"
        "layers: [{name: a, C: 64, H: 56, W: 56}, {op: batchnorm, name: pre}, {op: relu}, {name: b}, {op: batchnorm},"
        " {op: relu, name: inner}, {name: c}, {op: add, name: sum, inputs: [a, c]}, {op: batchnorm, inputs: [sum]},"
        " {op: relu}, {name: d}, {op: add, inputs: [sum, d]}]\n"
    )
    (network,) = json.loads(convlint("check", "net.yaml", "--gpu", "a100", "-o", "json").out)["networks"]
    # The inputs of a, b, c and d; what the norms read: a, b and the sum, whose own output d reads.
    assert network["memory_bytes"]["activations"] == 7 * 64 * 64 * 56 * 56 * 2


def test_onnx_runtime_hears_of_its_own_setting_for_1_d_layers() -> None:
    Path("net.yaml").write_text(
        "version: 1\nmode: inference\nruntime: {framework: onnxruntime}\ndefaults: {dtype: fp16, layout: NCHW}\n"
        "layers: [{name: a, N: 32, C: 256, W: 8000, K: 256, kernel_size: 3, padding: 1, dims: 1}]\n"
    )
    findings = json.loads(convlint("check", "net.yaml", "--gpu", "a100", "-o", "json").out)["findings"]
    (fix,) = (finding["fix"]["describe"] for finding in findings if finding["code"] == "CL401")
    assert fix == "prefer_nhwc=1 in the CUDA execution provider's options"
