"""A copy of this checkout in a git repository of its own, for tools that install from one."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
_PARTS = (
    "convlint", "rules", "pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml", "action.yml",
    "requirements.lock",
    "requirements-html.lock",
)  # fmt: skip


def clean_environment(home: Path) -> dict[str, str]:
    """The environment without what would tie git or pre-commit to where the tests run."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "PRE_COMMIT", "GITHUB_"))
    }
    return {
        **environment,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "PRE_COMMIT_HOME": str(home / "pre-commit"),
    }


def commit_all(folder: Path, environment: Mapping[str, str]) -> str:
    """Makes `folder` a git repository that holds all its files; returns the commit."""
    for arguments in (
        ["init", "--quiet"],
        ["add", "--all"],
        ["-c", "user.name=Test", "-c", "user.email=test@example.com", "commit", "--quiet", "--message", "all"],
    ):
        subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True)
    shown = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return shown.stdout.strip()


def copy_checkout(target: Path) -> None:
    """What an installation needs, as it is in the working tree."""
    target.mkdir(parents=True)
    for name in _PARTS:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy(source, target / name)
