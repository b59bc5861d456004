"""The hook as its users run it: the real pre-commit, on a repository of its own, against this checkout."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from checkout import ROOT, clean_environment, commit_all, copy_checkout
from readme_examples import documented_yaml
from specs import BAD, GOOD
from torch_project import torch_project

pytestmark = pytest.mark.slow


class Project:
    """A repository with the hook in its config."""

    def __init__(self, folder: Path, hooks: list[dict[str, str]] | None = None) -> None:
        self.environment = clean_environment(folder)
        source = folder / "convlint"
        copy_checkout(source)
        revision = commit_all(source, self.environment)
        self.folder = folder / "project"
        self.folder.mkdir()
        config = {"repos": [{"repo": str(source), "rev": revision, "hooks": hooks or [{"id": "convlint"}]}]}
        (self.folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
        commit_all(self.folder, self.environment)

    def run(self, **files: str) -> subprocess.CompletedProcess[str]:
        """The hook on these files (`name_yaml="…"`), and on no others."""
        for pattern in ("[!.]*.y*ml", "*.py", "*.json"):
            for path in self.folder.glob(pattern):
                path.unlink()
        for name, content in files.items():
            (self.folder / name.replace("_", ".")).write_text(content)
        subprocess.run(["git", "add", "--all"], cwd=self.folder, env=self.environment, check=True)
        return subprocess.run(
            [sys.executable, "-m", "pre_commit", "run", "--all-files", "--color", "never"],
            cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Installing the hook takes a while, so all tests share it."""
    return Project(tmp_path_factory.mktemp("hook"))


OTHER = {
    "compose_yaml": "services:\n  web:\n    image: x\n    layers: 3\n",
    "lambda_yml": "service: x\nlayers:\n  hello:\n    path: y\n",
    "two_yaml": "a: 1\n---\nb: [\n",
}


@pytest.mark.contract
def test_a_good_spec_passes(project: Project) -> None:
    ran = project.run(good_yaml=GOOD)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Passed" in ran.stdout


@pytest.mark.contract
def test_a_bad_spec_fails_with_its_findings(project: Project) -> None:
    ran = project.run(bad_yaml=BAD)
    assert ran.returncode == 1
    assert "exit code: 1" in ran.stdout
    assert "bad.yaml:5:21: warning CL102 channel-alignment:" in ran.stdout


def test_other_yaml_files_are_ignored(project: Project) -> None:
    ran = project.run(**OTHER)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Passed" in ran.stdout


def test_several_files_at_once(project: Project) -> None:
    ran = project.run(bad_yaml=BAD, good_yml=GOOD, worse_yaml=BAD, broken_yaml="version: 1\nlayers:\n- {", **OTHER)
    assert ran.returncode == 1
    assert "exit code: 3" in ran.stdout
    for name in ("bad.yaml:5:21", "worse.yaml:5:21", "broken.yaml:4:1"):
        assert name in ran.stdout
    assert all(name.replace("_", ".") not in ran.stdout for name in OTHER)
    assert "in 4 files" in ran.stdout


WIDTHS = "import torch\nfrom net import Net\n\n\ndef make():\n    return torch.compile(Net(60))\n"
NET = """\
from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(64, width, 3)
        self.more = nn.Conv2d(width, 64, 3)
"""
TRAIN = """\
import torch
from torch import nn


def main():
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = True
    model = nn.Conv2d(64, 64, 3)
    model(torch.rand(1, 64, 8, 8)).mean().backward()
    torch.optim.SGD(model.parameters(), 0.1).step()


if __name__ == "__main__":
    main()
"""


def test_python_and_json_are_looked_at_too(project: Project) -> None:
    ran = project.run(train_py=TRAIN, setup_py="x = 1\n", package_json='{"layers": 3}', **OTHER)
    assert ran.returncode == 1
    assert "train.py:7:5: warning CL503 deterministic-limits-autotune:" in ran.stdout
    assert "in 2 Python files" in ran.stdout
    ran = project.run(setup_py="x = 1\n", package_json='{"layers": 3}', good_yaml=GOOD)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_python_that_is_no_python_3_is_not_passed_over(project: Project) -> None:
    ran = project.run(old_py="print 'x'\n")
    assert "exit code: 3" in ran.stdout
    assert "old.py:1:1: error: syntax error: " in ran.stdout


def test_what_is_said_lies_in_the_files_of_the_commit(project: Project) -> None:
    """With the command of the hook itself: imports are read from disk, and nothing is said of them."""
    project.run(net_py=NET, build_py=WIDTHS)
    hook = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())[0]
    command = [sys.executable, "-m", *hook["entry"].split()]
    said = {}
    for name in ("net.py", "build.py"):
        ran = subprocess.run([*command, name], cwd=project.folder, capture_output=True, text=True, check=False)
        assert ran.returncode == 0
        said[name] = ran.stdout.splitlines()[:-1]
    assert said["net.py"] == []
    assert [line.split(" ")[:3] for line in said["build.py"]] == [["build.py:6:30:", "info", "CL102"]]


def test_the_config_of_the_project_holds(project: Project) -> None:
    (project.folder / "convlint.toml").write_text('fail-on = "error"\n')
    try:
        assert project.run(bad_yaml=BAD).returncode == 0
    finally:
        (project.folder / "convlint.toml").unlink()


def test_the_models_of_a_project_without_a_spec(tmp_path: Path) -> None:
    """As the example of the page on CI has it, in an environment where convlint and torch are installed."""
    example = documented_yaml("# .pre-commit-config.yaml", "convlint-models")
    project = Project(tmp_path, hooks=example["repos"][0]["hooks"])
    project.environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    torch_project(project.folder)
    (project.folder / ".gitignore").write_text("__pycache__/\n")  # which Python writes where the environment lets it
    subprocess.run(["git", "add", "--all"], cwd=project.folder, env=project.environment, check=True)
    ran = project.run()
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "mynet/net.py:7:35: warning CL102 channel-alignment: K=60 should be a multiple of 8 for fp16" in ran.stdout
    text = (project.folder / "mynet" / "net.py").read_text()
    (project.folder / "mynet" / "net.py").write_text(text.replace("60", "64"))
    ran = project.run()
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "convlint (models)" in ran.stdout
    assert ran.stdout.count("Passed") == 2


@pytest.mark.contract
def test_the_hook_file_is_valid() -> None:
    subprocess.run(
        [sys.executable, "-m", "pre_commit", "validate-manifest", str(ROOT / ".pre-commit-hooks.yaml")], check=True
    )
