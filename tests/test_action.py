"""The GitHub Action: its file is valid, and its shell steps do what they say, run as they stand."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from cases import sampled
from checkout import ROOT, clean_environment, copy_checkout
from readme_examples import documented_yaml
from specs import BAD, GOOD
from torch_project import torch_project

pytestmark = pytest.mark.slow

ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = ACTION["runs"]["steps"]
DEFAULTS = {name: entry["default"] for name, entry in ACTION["inputs"].items()}


class Ran(NamedTuple):
    code: int
    out: str
    outputs: dict[str, str]
    summary: str


class Runner:
    """A folder that stands for the machine of a job."""

    def __init__(self, folder: Path, action: Path | None = None, **variables: str) -> None:
        self.temp, self.action = folder / "temp", action or folder / "action"
        self.temp.mkdir(parents=True)
        if action is None:
            copy_checkout(self.action)
        self.environment = {**clean_environment(folder), "RUNNER_TEMP": str(self.temp), **variables}

    def elsewhere(self, folder: Path, **variables: str) -> Runner:
        """A machine with the same action, on which nothing is installed."""
        return Runner(folder, self.action, **variables)

    def install(self, workspace: Path, inputs: Mapping[str, str]) -> None:
        installed = self.step("Install convlint", workspace, inputs, {})
        assert installed.code == 0, installed.out

    def step(self, name: str, workspace: Path, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> Ran:
        """One step's script under the shell that GitHub runs it with."""
        step = next(step for step in STEPS if step["name"] == name)
        known = {
            "github.action_path": str(self.action),
            **{f"inputs.{key}": value for key, value in {**DEFAULTS, **inputs}.items()},
            **{f"steps.check.outputs.{key}": value for key, value in outputs.items()},
        }

        def expression(match: re.Match[str]) -> str:
            return known[match.group(1)]

        variables = {key: re.sub(r"\$\{\{ (\S+) \}\}", expression, value) for key, value in step.get("env", {}).items()}
        output, summary = workspace.parent / "output", workspace.parent / "summary"
        for file in (output, summary):
            file.write_text("")
        environment = {
            **self.environment, **variables, "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)
        }  # fmt: skip
        script = workspace.parent / "script.sh"
        script.write_text(step["run"])
        ran = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
            cwd=workspace, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        written = dict(line.split("=", 1) for line in output.read_text().splitlines())
        return Ran(ran.returncode, ran.stdout + ran.stderr, written, summary.read_text())


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """A machine on which the first step has installed convlint from the action's own files."""
    folder = tmp_path_factory.mktemp("runner")
    runner = Runner(folder)
    runner.install(empty(folder), {})
    return runner


def empty(folder: Path) -> Path:
    """A workspace in a folder of its own, beside which steps write their files."""
    workspace = folder / "job" / "work"
    workspace.mkdir(parents=True)
    return workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "a job's work"
    folder.mkdir()
    (folder / "bad.yaml").write_text(BAD)
    (folder / "nets").mkdir()
    (folder / "nets/good.yaml").write_text(GOOD)
    return folder


@pytest.mark.contract
@pytest.mark.parametrize(
    ("inputs", "code", "coverage"),
    [
        ({}, 1, "2 layers in 2 files on a100"),
        ({"paths": "nets"}, 0, "1 layer in 1 file on a100"),
        ({"paths": "nets\n  bad.yaml\n", "gpu": "t4 h100"}, 1, "2 layers in 2 files on t4, h100"),
        ({"paths": "bad.yaml", "fail-on": "error"}, 0, "1 layer in 1 file"),
        ({"paths": "bad.yaml", "args": "--select CL101,CL102  --ignore channel-alignment"}, 0, "0 errors, 0 warnings"),
        ({"paths": "bad.yaml", "fail-on": "errors"}, 2, "did you mean 'error'?"),
        ({"paths": "nowhere.yaml"}, 3, "1 input not read"),
    ],
)
def test_the_check_and_its_verdict(
    runner: Runner, workspace: Path, inputs: dict[str, str], code: int, coverage: str
) -> None:
    ran = runner.step("Check", workspace, inputs, {})
    assert ran.code == 0, ran.out
    assert ran.outputs["exit-code"] == str(code)
    assert coverage in ran.out
    assert ("sarif-file" in ran.outputs) is (code != 2)
    if code != 2:
        assert Path(ran.outputs["sarif-file"]).is_file()
        assert ran.summary.strip()
    assert runner.step("Verdict", workspace, inputs, ran.outputs).code == code


def test_a_page_where_one_is_asked_for(tmp_path: Path) -> None:
    runner, workspace = Runner(tmp_path), empty(tmp_path)
    (workspace / "bad.yaml").write_text(BAD)
    asked = {"paths": "bad.yaml", "report": "true"}
    runner.install(workspace, asked)
    for report in ("true", "convlint on this branch", "$(touch owned) `touch owned`; touch owned"):
        ran = runner.step("Check", workspace, {**asked, "report": report}, {})
        assert ran.outputs["exit-code"] == "1", ran.out
        assert Path(ran.outputs["report-file"]).read_text(encoding="utf-8").startswith("<!doctype html>")
        assert Path(ran.outputs["sarif-file"]).is_file()
        assert not (workspace / "owned").exists()
    for report in ("false", ""):  # nor that of a run before
        assert "report-file" not in runner.step("Check", workspace, {**asked, "report": report}, {}).outputs


def test_no_upload_can_hide_the_verdict() -> None:
    """That of the page comes after all others, and its failure is none; the verdict is said whatever became of them."""
    names = [step["name"] for step in STEPS]
    assert names[-3:] == ["Upload to code scanning", "Upload the page", "Verdict"]
    assert STEPS[-2]["continue-on-error"] is True
    assert STEPS[-1]["if"] == "${{ !cancelled() && steps.check.outputs.exit-code != '' }}"
    assert not any("continue-on-error" in step for step in STEPS if step["name"] != "Upload the page")
    assert DEFAULTS["report"] == "false"


def test_the_extras_are_named() -> None:
    import tomllib

    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    named = re.search(r"\((.*?)\)", ACTION["inputs"]["extras"]["description"])
    assert set(named[1].split(", ")) == extras - {"all", "test", "browser", "docs", "dev"}


def test_every_action_is_pinned_to_a_commit() -> None:
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert len(used) == 2
    assert all(re.fullmatch(r"[\w-]+/[\w/-]+@[0-9a-f]{40}", name) for name in used)


@pytest.mark.contract
def test_findings_are_annotations(runner: Runner, workspace: Path) -> None:
    assert "::warning file=bad.yaml,line=5," in runner.step("Check", workspace, {}, {}).out


def test_the_models_of_a_project_without_a_spec(tmp_path: Path) -> None:
    """As the example of the page on CI has it, with the Python of an environment that has torch."""
    steps = documented_yaml("# .github/workflows/convlint.yml", "models:")["jobs"]["convlint"]["steps"]
    inputs = {**steps[-1]["with"], "python": sys.executable}
    runner, workspace = Runner(tmp_path), empty(tmp_path)
    torch_project(workspace)
    runner.install(workspace, inputs)
    for wanted, code in ((inputs, "1"), ({**inputs, "models": "net", "fail-on": "error"}, "0")):
        ran = runner.step("Check", workspace, wanted, {})
        assert ran.outputs["exit-code"] == code, ran.out
        assert "::warning file=mynet/net.py,line=7,endLine=7,col=35," in ran.out
    isolated = runner.step("Check", workspace, {"gpu": "a100"}, {})
    assert isolated.outputs["exit-code"] == "0"  # without its models, the Python is read, and not run
    assert "Python file" in isolated.out


@pytest.mark.parametrize("models", ["true", "net other"])
def test_models_need_the_projects_python(runner: Runner, workspace: Path, models: str) -> None:
    ran = runner.elsewhere(workspace.parent / "t").step("Install convlint", workspace, {"models": models}, {})
    assert ran.code == 1
    assert "::error title=convlint::models need python" in ran.out


def test_extras_come_with_what_they_need(tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    runner.install(empty(tmp_path), {"extras": " onnx\n"})
    python = next((runner.temp / "convlint").glob("*/python"))
    subprocess.run([str(python), "-I", "-c", "import onnx"], check=True)


@pytest.mark.parametrize("extras", ["onnx; touch owned", "../x", "onnx]"])
def test_extras_are_words(runner: Runner, workspace: Path, extras: str) -> None:
    ran = runner.elsewhere(workspace.parent / "t").step("Install convlint", workspace, {"extras": extras}, {})
    assert ran.code == 1
    assert "::error title=convlint::extras are words such as onnx" in ran.out
    assert not (workspace / "owned").exists()
    assert [*(workspace.parent / "t").rglob("pyvenv.cfg")] == []  # it is said before anything is installed


@pytest.mark.parametrize("name", sampled(["paths", "gpu", "fail-on", "args", "models"], 4))
def test_inputs_are_never_run(runner: Runner, workspace: Path, name: str) -> None:
    hostile = "$(touch${IFS}owned) `touch owned` ; touch owned #\n|touch owned\n* ' \""
    ran = runner.step("Check", workspace, {name: hostile}, {})
    assert ran.code == 0
    assert ran.outputs["exit-code"] in ("2", "3"), ran.out
    assert not (workspace / "owned").exists()


@pytest.mark.contract
def test_no_expression_stands_in_a_script() -> None:
    assert all("${{" not in step.get("run", "") for step in STEPS)


def test_nothing_is_installed_by_a_name_alone(runner: Runner, workspace: Path) -> None:
    """With a stand-in for Python that writes down what it is asked to do."""
    python = workspace / "python3"
    python.write_text(
        '#!/bin/sh\nmkdir -p "$4/bin"\necho "$@"\n'
        'echo \'#!/bin/sh\necho "$@"\' > "$4/bin/python"\nchmod +x "$4/bin/python"\n'
    )
    python.chmod(0o755)
    bare = runner.elsewhere(workspace / "bare", PATH=f"{workspace}{os.pathsep}{os.environ['PATH']}")
    pip = "-I -m pip install --quiet --disable-pip-version-check"
    assert bare.step("Install convlint", workspace, {}, {}).out.splitlines() == [
        f"-I -m venv {bare.temp}/convlint",
        f"{pip} --require-hashes --only-binary :all: --requirement {runner.action}/requirements.lock",
        f"{pip} --no-deps --no-build-isolation {runner.action}",
    ]
    shutil.rmtree(bare.temp)
    bare.temp.mkdir()
    asked = bare.step("Install convlint", workspace, {"report": "true"}, {}).out.splitlines()
    assert asked[3:] == [
        f"{pip} --require-hashes --only-binary :all: --requirement {runner.action}/requirements-html.lock"
    ]


def test_a_checkout_cannot_stand_in_for_what_the_steps_run(runner: Runner, tmp_path: Path) -> None:
    workspace = empty(tmp_path)
    for name in ("venv", "pip", "convlint", "yaml", "typer", "rich", "json", "re", "sitecustomize", "usercustomize"):
        (workspace / f"{name}.py").write_text("open('owned', 'w').close()\nraise SystemExit(0)\n")
    (workspace / "bad.yaml").write_text(BAD)
    fresh = runner.elsewhere(tmp_path / "fresh")
    fresh.install(workspace, {})
    assert fresh.step("Check", workspace, {}, {}).outputs["exit-code"] == "1"
    assert not (workspace / "owned").exists()


def test_words_that_look_like_modules_are_files(runner: Runner, tmp_path: Path) -> None:
    """As a list of changed files holds them, deleted ones included."""
    workspace = empty(tmp_path)
    (workspace / "evil.py").write_text("open('owned', 'w').close()\n")
    assert runner.step("Check", workspace, {"paths": "evil:Net"}, {}).outputs["exit-code"] == "3"
    assert not (workspace / "owned").exists()


@pytest.mark.contract
def test_what_is_pinned_is_what_the_package_asks_for() -> None:
    import tomllib

    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    asked = [Requirement(text) for text in project["project"]["dependencies"] + project["build-system"]["requires"]]
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    html = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements-html.lock").read_text(), re.MULTILINE))
    (jinja,) = map(Requirement, project["project"]["optional-dependencies"]["html"])
    assert jinja.specifier.contains(html[jinja.name])
    assert set(html) == {"jinja2", "markupsafe"}
    hook = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())[0]
    hooked = dict(entry.split("==") for entry in hook["additional_dependencies"])
    for requirement in asked:
        assert requirement.specifier.contains(locked[requirement.name]), requirement
    assert hooked.items() <= locked.items()
    assert set(locked) - set(hooked) == {"setuptools", "colorama"}


def _tool(*arguments: str) -> subprocess.CompletedProcess[str]:
    tool, *rest = arguments
    return subprocess.run(
        [str(Path(sys.executable).parent / tool), *rest, str(ROOT / "action.yml")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.contract
def test_the_file_is_valid() -> None:
    ran = _tool("check-jsonschema", "--builtin-schema", "vendor.github-actions")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_file_is_safe() -> None:
    ran = _tool("zizmor", "--offline", "--no-progress", "--persona", "pedantic")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_input_and_output_is_described() -> None:
    described: dict[str, Any] = {**ACTION["inputs"], **ACTION["outputs"]}
    assert all(entry["description"] for entry in described.values())
