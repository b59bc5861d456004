"""Standard streams that are closed, full or read by nobody, and a current folder full of traps: defined and quiet."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from checkout import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.contract]

LAYER = "N: 8, C: 60, H: 8, W: 8, K: 64, kernel_size: 1, dtype: fp16"
SPEC = f"version: 1\nlayers:\n  - {{ name: a, {LAYER} }}\n"
PYTHON = [sys.executable, "-m", "convlint"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.fixture(autouse=True)
def folder(here: Path) -> Path:
    """A folder with a spec that has warnings, and one that fills any pipe."""
    Path("net.yaml").write_text(SPEC)
    layers = "".join(f"  - {{ name: layer{i}, {LAYER} }}\n" for i in range(300))
    Path("large.yaml").write_text(f"version: 1\nlayers:\n{layers}")
    return here


def shell(line: str) -> tuple[int, str, str]:
    """(exit code of convlint, standard output, standard error) of a line in which `convlint` is this one."""
    quoted = " ".join(f"'{word}'" for word in PYTHON)
    script = f'convlint() {{ {quoted} "$@"; echo $? >code; }}\n{line}\n'
    done = subprocess.run(["bash", "-c", script], env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    return int(Path("code").read_text()), done.stdout, done.stderr


@cache
def with_open_streams(command: str) -> tuple[int, str, str]:
    return shell(f"convlint {command}")


COMMANDS = [
    ("check net.yaml", 1),
    ("check net.yaml -o json", 1),
    ("check net.yaml -o github", 1),
    ("check missing.yaml", 3),
    ("check net.yaml --gpu nothing", 2),
    ("check net.yaml --no-such-option", 2),
    ("estimate net.yaml", 0),
    ("sweep net.yaml -N 1,2", 0),
    ("export net.yaml", 0),
    ("export missing.yaml", 3),
    ("layer -C 3", 3),
    ("rule", 0),
    ("gpus", 0),
    ("config net.yaml", 0),
    ("schema", 0),
    ("--help", 0),
    ("check --help", 0),
    ("--version", 0),
]


@pytest.mark.parametrize("closing", [">&-", "2>&- <&-", ">&- 2>&- <&-"])
@pytest.mark.parametrize(("command", "code"), COMMANDS)
def test_closed_streams_change_no_exit_code(command: str, code: int, closing: str) -> None:
    expected = with_open_streams(command)
    assert expected[0] == code
    found = shell(f"convlint {command} {closing}")
    assert found == (code, "" if ">&-" in closing.split() else expected[1], "" if "2>&-" in closing else expected[2])


@pytest.mark.parametrize("closing", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_no_file_takes_the_number_of_a_closed_stream(closing: str) -> None:
    """Else what is meant for standard error lands in the report, or the report in an input."""
    code, _, _ = shell(f"convlint check net.yaml missing.yaml -o json=report.json -o text {closing}")
    assert code == 3
    assert len(json.loads(Path("report.json").read_text())["errors"]) == 1
    assert Path("net.yaml").read_text() == SPEC


@pytest.mark.parametrize("command", ["check - -o concise", "estimate -", "export -", "sweep - -N 1,2"])
def test_reading_a_closed_standard_input_is_an_error_of_that_input(command: str) -> None:
    code, out, err = shell(f"convlint {command} <&-")
    assert code == 3
    assert "standard input is closed" in out + err
    assert "internal" not in out + err


@pytest.mark.parametrize(("command", "code"), [*COMMANDS[:3], *COMMANDS[6:9], *COMMANDS[10:]])
def test_a_reader_that_is_gone_changes_no_exit_code(command: str, code: int) -> None:
    assert shell(f"(sleep 0.2; convlint {command}) | true") == (code, "", "")


@pytest.mark.parametrize(
    ("command", "code"),
    [("check large.yaml", 1), ("check large.yaml -o json", 1), ("estimate large.yaml", 0), ("export large.yaml", 0)],
)
def test_a_reader_that_leaves_changes_no_exit_code(command: str, code: int) -> None:
    found, _, err = shell(f"convlint {command} | head -c 10")
    assert (found, err) == (code, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("command", ["check net.yaml", "check large.yaml", "rule", "schema", "--help", "--version"])
def test_a_full_standard_output_is_2_and_one_line(command: str) -> None:
    code, _, err = shell(f"convlint {command} >/dev/full")
    assert (code, err) == (2, "convlint: error: output failed: No space left on device\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize(("command", "code"), COMMANDS)
def test_a_full_standard_error_changes_nothing(command: str, code: int) -> None:
    assert shell(f"convlint {command} 2>/dev/full")[0] == code
    assert shell(f"(sleep 0.2; convlint {command} 2>&1 >/dev/null) | true") == (code, "", "")


TRAPS = (
    "__future__", "typing", "copy", "gc", "os", "yaml", "rich", "typer", "click", "onnx", "numpy", "dataclasses",
    "tomllib", "json", "difflib", "importlib", "convlint_rules", "pickle", "multiprocessing", "concurrent", "random",
    "selectors", "struct", "sitecustomize", "marshal", "unicodedata", "textwrap", "shutil", "msgspec",
    "typing_extensions",
)  # fmt: skip


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_nothing_in_the_current_folder_is_imported(jobs: str) -> None:
    for name in TRAPS:
        Path(f"{name}.py").write_text("open('ran', 'a').write(__name__ + '\\n')\n")
    Path("two.yaml").write_text(SPEC)
    for command in (f"check net.yaml two.yaml --jobs {jobs}", "estimate net.yaml", "rule", "--help", "export net.yaml"):
        assert shell(f"convlint {command}")[0] in (0, 1)
    assert not Path("ran").exists(), Path("ran").read_text()


def test_the_current_folder_stays_where_python_was_told_to_look_there() -> None:
    Path("sitecustomize.py").write_text("")
    Path("marker.py").write_text("")
    code = "import atexit, runpy, sys\nsys.argv = ['convlint', '--version']\nsys.path.insert(0, 'kept')\n"
    code += "atexit.register(lambda: print(sys.path[0]))\nrunpy.run_module('convlint', run_name='__main__')\n"
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True)
    assert done.stdout.split() == ["convlint", done.stdout.split()[1], "kept"]


def test_a_current_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    spec = tmp_path / "net.yaml"
    spec.write_text("version: 1\nlayers: [ { C: 8, H: 8, W: 8, K: 8, kernel_size: 3 } ]\n")
    gone = tmp_path / "gone"
    gone.mkdir()
    line = 'rmdir "$PWD"; exec "$0" -m convlint check "$1"'
    ran = subprocess.run(
        ["sh", "-c", line, sys.executable, str(spec)], cwd=gone, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (2, "convlint: error: the current folder no longer exists\n")


def test_what_waits_for_the_end_of_a_run_is_called() -> None:
    code = "import atexit\nfrom convlint.__main__ import main\natexit.register(print, 'the end')\nmain()\n"
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:] == ["the end"]


def test_a_profiler_gets_its_profile() -> None:
    line = [sys.executable, "-m", "cProfile", "-m", "convlint", "--version"]
    assert "function calls" in subprocess.run(line, capture_output=True, text=True, check=True).stdout
