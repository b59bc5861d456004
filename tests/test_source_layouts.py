"""Projects in common layouts: `convlint check` reports exactly the expected findings."""

import re
import shutil
from pathlib import Path

import pytest
from checkout import ROOT
from command_line import convlint

pytestmark = pytest.mark.usefixtures("here")
LAYOUTS = ROOT / "tests" / "layouts"
# Of each layout: its findings as (place, rule), and what is said of how much was read.
EXPECTED: dict[str, tuple[list[str], str]] = {
    "src_layout": (
        ["src/shapes/blocks.py:9:21 CL506", "src/shapes/net.py:13:23 CL102", "src/shapes/net.py:14:19 CL102"],
        "2 convolutions in 4 Python files",
    ),
    "package_entry": (
        ["digits/models.py:21:30 CL102", "train.py:20:1 CL501"],
        "1 convolution and 1 program in 4 Python files",
    ),
    "notebook": (
        ["flowers.ipynb:cell 3:5:13 CL506", "flowers.ipynb:cell 3:8:27 CL102"],
        "2 convolutions in 1 Python file",
    ),
    "lightning": ([], "1 convolution and 1 program in 2 Python files"),  # the trainer sets what runs it
    "config_driven": ([], "2 convolutions (C and K known for none) in 2 Python files"),
    "seed_helpers": (["train.py:8:5 CL503"], "1 convolution and 1 program in 2 Python files"),
    "argparse_flags": ([], "1 convolution and 1 program in 1 Python file"),  # a flag decides; its default is the width
    "distributed": ([], "0 convolutions and 1 program in 1 Python file"),  # it has switched tuning on
    "gan": (
        ["dcgan.py:6:48 CL102", "dcgan.py:36:13 CL506", "dcgan.py:52:5 CL501"],
        "5 convolutions and 1 program in 1 Python file",
    ),
    "keras": (
        ["train.py:5:17 CL102", "train.py:9:9 CL506"],
        "3 convolutions and 1 program in 1 Python file",
    ),
}


def test_every_layout_is_checked() -> None:
    assert {path.name for path in LAYOUTS.iterdir()} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_said_of_a_layout(name: str) -> None:
    findings, covered = EXPECTED[name]
    shutil.copytree(LAYOUTS / name, ".", dirs_exist_ok=True)
    ran = convlint("check", ".", "-o", "concise")
    *lines, last = ran.out.splitlines()
    said = [re.fullmatch(r"(.+?): \w+ (\w+) .*", line) for line in lines]
    assert [f"{match[1]} {match[2]}" for match in said if match] == findings
    assert len(said) == len(findings)
    assert last.startswith(f"{covered}: ")
    assert ran.code == (1 if name == "seed_helpers" else 0)


def test_what_is_not_read_is_said_with_the_reason() -> None:
    shutil.copytree(LAYOUTS / "config_driven", ".", dirs_exist_ok=True)
    out = " ".join(convlint("check", ".").out.split())
    assert "C or K unknown: 2 of 2 convolutions in Python: 1 built from config" in out


@pytest.mark.parametrize("name", ["src_layout", "package_entry"])
def test_a_changed_file_alone_is_judged_with_what_it_imports(name: str) -> None:
    shutil.copytree(LAYOUTS / name, ".", dirs_exist_ok=True)
    findings = EXPECTED[name][0]
    for file in sorted({finding.split(":")[0] for finding in findings}):
        ran = convlint("check", file, "-o", "concise")
        assert all(line.startswith(f"{file}:") for line in ran.out.splitlines()[:-1]), ran.out
        alone = {line.split(": ")[1].split()[1] for line in ran.out.splitlines()[:-1]}
        assert {code for code in ("CL102",) if any(code in each for each in findings if each.startswith(file))} <= alone


@pytest.mark.parametrize(("name", "rule"), [("src_layout", "CL506"), ("gan", "CL506"), ("gan", "CL501")])
def test_a_layout_is_mended_and_stays_so(name: str, rule: str) -> None:
    shutil.copytree(LAYOUTS / name, ".", dirs_exist_ok=True)
    before = {path: path.read_text() for path in Path().rglob("*.py")}
    ran = convlint("check", ".", "--select", rule, "--fix")
    assert before == {path: path.read_text() for path in Path().rglob("*.py")}  # it is unsafe
    ran = convlint("check", ".", "--select", rule, "--fix", "--unsafe-fixes")
    assert "fixed 1 finding in 1 file" in ran.err
    changed = [path for path, text in before.items() if path.read_text() != text]
    assert len(changed) == 1
    compile(changed[0].read_text(), str(changed[0]), "exec")
    assert rule not in convlint("check", ".", "--select", rule, "-o", "concise").out


def test_notebooks_are_not_edited() -> None:
    shutil.copytree(LAYOUTS / "notebook", ".", dirs_exist_ok=True)
    before = Path("flowers.ipynb").read_bytes()
    ran = convlint("check", ".", "--fix", "--unsafe-fixes")
    assert (ran.code, Path("flowers.ipynb").read_bytes()) == (0, before)
