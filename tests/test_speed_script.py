"""The speed script: each section does the work that it names and prints its lines, however fast."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from benchmark_scripts import BENCHMARKS, modules_fixture
from readme_examples import PAGES

from convlint import lint

# Each section's lines, how they begin, what packages they need, and whether they have a peer.
LINES = {
    "spec": (
        ("check, 50 layers (20 shapes repeated)", ["yamllint"], True),
        ("check, 300 layers (20 shapes repeated) : CSafeLoader", [], True),
        ("peak memory per layer", [], False),
        ("peak memory, 300 layers", [], True),
    ),
    "flawed": (
        ("check, 50 distinct, flawed layers", ["yamllint"], True),
        ("check, 300 distinct, flawed layers", [], True),
        ("--fix (as --diff), 300 distinct, flawed layers : check", [], True),
    ),
    "models": (
        ("check ResNet-50 as ONNX", ["onnx"], True),
        ("read ResNet-50 as ONNX in a child", ["onnx"], True),
        ("check a transformers ResNet", ["torch", "transformers"], True),
        ("check a safetensors header", [], True),
    ),
    "project": (
        ("check --models, a ResNet-50", ["torch"], True),
        ("check --models, 10 ResNets", ["torch"], True),
    ),
    "estimates": (
        ("three passes of a layer", [], False),
        ("rules on 300 distinct layers", [], True),
    ),
    "formats": (
        ("check, 300 layers (20 shapes repeated), all formats", [], True),
        ("check ResNet-50 with the HTML page : text alone", ["jinja2"], True),
    ),
    "config": (("check 5 layers, configuration eight folders up", [], True),),
    "source": (
        ("check 30 files of Python, 150 lines each : torchfix", ["torchfix"], True),
        ("check every 20th of 30 files of Python : torchfix", ["torchfix"], True),
        ("check 30 files of Python, --jobs 2 : one process", [], True),
    ),
}
PAGE = (PAGES / "speed.md").read_text(encoding="utf-8")
needs_wait4 = pytest.mark.skipif(sys.platform == "win32", reason="os.wait4 measures, which Windows does not have")


scripts = modules_fixture("speed", "speed_inputs", "side_by_side")


def printed(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / "speed.py"), "--runs", "1", "--quick", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
@needs_wait4
def test_every_section_runs_after_the_others_and_prints_its_lines(scripts) -> None:
    done = printed("--markdown")
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()]
    assert rows[0] == ["comparison", "convlint", "peer", "ratio", "CPU ratio", "aim"]
    assert set(rows[1]) == {"---"}
    assert list(LINES) == list(scripts[0].SECTIONS)
    named = [re.sub(r"\b30\b", "1,000", re.sub(r"\b300\b", "10,000", row[0])) for row in rows[2:]]
    assert named == re.findall(r"^\| (?!comparison|---)(.*?) \|", PAGE, re.MULTILINE)  # the table of the page
    expected = [line for lines in LINES.values() for line in lines]
    assert len(rows) - 2 == len(expected)
    for (name, ours, theirs, ratio, _, aim), (begins, packages, has_peer) in zip(rows[2:], expected, strict=True):
        assert name.startswith(begins)
        missing = [package for package in packages if find_spec(package) is None]
        if missing or ours.startswith("left out: needs PyYAML with libyaml"):
            assert ours.startswith("left out: needs "), name
            assert all(package in ours for package in missing), name
            continue
        assert re.fullmatch(r"-?[\d.]+ (s|ms|us|MiB|kB)", ours), name
        assert aim, name
        if has_peer:
            assert re.fullmatch(r"[\d.]+ (s|ms|us|MiB)", theirs), name
            assert float(ratio) > 0, name


@needs_wait4
def test_a_section_alone_in_columns() -> None:
    done = printed("config")
    assert done.returncode == 0, done.stderr
    heading, line = done.stdout.splitlines()
    assert heading.split() == ["comparison", "convlint", "peer", "ratio", "CPU", "ratio", "aim"]
    assert re.search(r"isolated +[\d.]+ m?s +[\d.]+ m?s +[\d.]+ +[\d.]+   5 ms more at most$", line)


@needs_wait4
def test_a_side_that_fails_is_no_measurement(scripts) -> None:
    with pytest.raises(SystemExit, match=r"(?s)exit 1, expected 0: .*nowhere"):
        scripts[2].process([sys.executable, "-c", "import nowhere"])


@pytest.mark.parametrize(
    ("markdown", "line"), [(True, "| a : b | left out: {} |  |  |  |  |"), (False, "a : b: left out: {}")]
)
def test_what_is_left_out_says_why(scripts, capsys, markdown, line) -> None:
    speed, _, side_by_side = scripts
    table = side_by_side.Table(markdown=markdown)
    bench = speed.Bench(folder=Path(), runs=1, layers=1, fewer=1, warm_up=False, table=table)
    assert not bench.lacks("a : b", "yaml")
    assert bench.lacks("a : b", "yaml", "no_such_package")
    assert capsys.readouterr().out.splitlines()[-1] == line.format("needs no_such_package, not installed")


def test_flawed_layers_differ_and_have_findings_of_many_rules(scripts, tmp_path) -> None:
    _, speed_inputs, _ = scripts
    assert speed_inputs.flawed_text(10_000).count("\n  - ") == 10_000  # which asserts that their sizes differ
    path = tmp_path / "flawed.yaml"
    path.write_text(speed_inputs.flawed_text(100), encoding="utf-8")
    report = lint([str(path)])
    assert not report.errors
    assert len({finding.rule.code for finding in report.findings}) >= 10
