"""The workflows of the repository are valid and safe, and a release is what its tag says, and was tried before."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from checkout import ROOT
from pythons import SUPPORTED

from convlint import __version__

pytestmark = [pytest.mark.slow, pytest.mark.contract]

FILES = sorted((ROOT / ".github" / "workflows").glob("*"))
WORKFLOWS: dict[str, dict[str, Any]] = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FILES}
RELEASE = WORKFLOWS["release"]["jobs"]
PINNED = re.compile(r"uses: [\w-]+(?:/[\w.-]+)+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def _tool(*arguments: str) -> subprocess.CompletedProcess[str]:
    tool, *rest = arguments
    command = [str(Path(sys.executable).parent / tool), *rest, *map(str, FILES)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_files_are_valid() -> None:
    ran = _tool("check-jsonschema", "--builtin-schema", "vendor.github-workflows")
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("persona", ["pedantic", "auditor"])
def test_the_files_are_safe(persona: str) -> None:
    ran = _tool("zizmor", "--offline", "--no-progress", "--persona", persona)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])
def test_every_action_is_pinned_to_a_commit_beside_its_version(path: Path) -> None:
    used = [line.strip(" -") for line in path.read_text(encoding="utf-8").splitlines() if "uses:" in line]
    assert used != []
    assert [line for line in used if not PINNED.fullmatch(line)] == []


def test_one_action_has_one_commit() -> None:
    lines = {line for path in FILES for line in re.findall(r"uses: (\S+)", path.read_text(encoding="utf-8"))}
    assert len({line.split("@")[0] for line in lines}) == len(lines)


def test_a_job_may_do_what_it_says_and_no_more() -> None:
    assert all(workflow["permissions"] == {} for workflow in WORKFLOWS.values())
    assert {name: job["permissions"] for name, job in RELEASE.items()} == {
        "build": {"contents": "read"},
        "try": {"contents": "read"},
        "tests": {"contents": "read"},
        "publish": {"id-token": "write", "attestations": "write"},
        "page": {"contents": "write"},
        "site": {"pages": "write", "id-token": "write"},
    }
    assert WORKFLOWS["platforms"]["jobs"]["try"]["permissions"] == {"contents": "read"}
    assert WORKFLOWS["tests"]["jobs"]["tests"]["permissions"] == {"contents": "read"}


def test_no_token_reaches_code_of_the_repository() -> None:
    """Jobs that may write check nothing out, and so run none of its files."""
    for job in RELEASE.values():
        uses = [step["uses"].split("@")[0] for step in job["steps"] if "uses" in step]
        assert ("actions/checkout" in uses) is (job["permissions"] == {"contents": "read"})
    assert not any("secrets." in path.read_text(encoding="utf-8") for path in FILES)


def test_what_is_published_was_tried_on_every_supported_python() -> None:
    assert {name: job.get("needs") for name, job in RELEASE.items()} == {
        "build": None, "try": "build", "tests": None, "publish": ["try", "tests"], "page": "publish", "site": "publish"
    }  # fmt: skip
    assert RELEASE["try"]["strategy"]["matrix"]["python"] == list(SUPPORTED)
    assert RELEASE["try"]["steps"][-1]["run"] == "python tests/helpers/installing.py dist/*"
    steps = [step for job in RELEASE.values() for step in job["steps"]]
    taken = [step["with"]["name"] for step in steps if "load-artifact@" in step.get("uses", "")]
    assert taken == ["dist"] * 4
    assert RELEASE["publish"]["environment"]["name"] == "pypi"


def test_platforms_are_those_that_the_readme_speaks_of() -> None:
    matrix = WORKFLOWS["platforms"]["jobs"]["try"]["strategy"]["matrix"]
    assert [system.split("-")[0] for system in matrix["system"]] == ["ubuntu", "macos", "windows"]
    assert matrix["python"] == [SUPPORTED[0], SUPPORTED[-1]]


@pytest.mark.parametrize(
    ("tag", "head", "code", "said"),
    [
        (f"v{__version__}", f"## {__version__}", 0, ""),
        (f"v{__version__}", f"## {__version__}, 2026-12-01", 0, ""),
        (f"v{__version__}", f"## {__version__}, not yet released", 1, "does not begin with"),
        (f"v{__version__}", "## 0.1.1", 1, "does not begin with"),
        (f"v{__version__}", f"## {__version__}1", 1, "does not begin with"),
        (f"v{__version__}.1", f"## {__version__}", 1, f"but convlint/__init__.py says {__version__}"),
        (__version__, f"## {__version__}", 1, "the tag is"),
        ("v$(touch owned)", f"## {__version__}", 1, "the tag is v$(touch owned)"),
    ],
)
def test_the_tag_is_the_version(tag: str, head: str, code: int, said: str, tmp_path: Path) -> None:
    (step,) = (step for step in RELEASE["build"]["steps"] if step.get("name") == "Check that the tag is the version")
    (tmp_path / "convlint").symlink_to(ROOT / "convlint")
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{head}\n\n## 0.1.0\n")
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
        cwd=tmp_path, env={**os.environ, "TAG": tag, "PATH": tools}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, said in ran.stdout) == (code, True), ran.stdout + ran.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["CHANGELOG.md", "convlint"]


def test_both_workflows_build_alike() -> None:
    jobs = (RELEASE["build"], WORKFLOWS["platforms"]["jobs"]["try"])
    steps = [step for job in jobs for step in job["steps"]]
    builds = [step["run"] for step in steps if step.get("name") == "Build sdist and wheel"]
    assert len(builds) == 2
    assert len({re.sub(r"^#.*\n", "", text, flags=re.MULTILINE) for text in builds}) == 1


def test_a_push_runs_the_short_lane_and_a_night_or_a_release_everything() -> None:
    steps = {step["run"]: step["if"] for step in WORKFLOWS["tests"]["jobs"]["tests"]["steps"] if "run" in step}
    events = WORKFLOWS["tests"][True].keys()  # YAML 1.1 reads `on` as true
    shown = {run: {event for event in events if f"'{event}'" in condition} for run, condition in steps.items()}
    assert shown == {
        "make check test": {"push", "pull_request"}, "make check test-all": {"schedule", "workflow_dispatch"}
    }  # fmt: skip
    *_, tests, site = RELEASE["tests"]["steps"]
    assert (tests["run"], site["with"]) == ("make check test-all", {"path": "build/docs/site/"})


def test_the_lanes_leave_nothing_out() -> None:
    """Each test is of `make test` or of `make test-rest`, and `make test-all` and CI run both."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lanes = re.findall(r'^\t\$\(PYTEST\) -m "(.*)"$', makefile, re.MULTILINE)
    assert lanes == ["not slow or contract", "slow and not contract"]
    (everything,) = re.findall(r"^test-all: (.*)$", makefile, re.MULTILINE)
    called = re.findall(r"^make (\S+)$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
    assert called[:2] == ["check", "test"]
    assert set(everything.split()) == {"test", "test-rest", "docs", "test-browser"} == set(called) - {"check"}
