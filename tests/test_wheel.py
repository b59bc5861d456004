"""The wheel holds the rules and the data of the repository."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from checkout import ROOT

from convlint.rulebook.folders import builtin_folder, rule_files

pytestmark = pytest.mark.slow


def test_the_wheel_holds_exactly_the_rules_and_data_of_the_repository(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("convlint", "rules"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(tmp_path / "dist"),
        str(copy),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}

    def files(folder: str, prefix: str) -> set[str]:
        base = copy / folder
        data = (".py", ".yaml", ".j2", ".css", ".js", ".LICENSE")
        found = [path for path in base.rglob("*") if path.suffix in data or path.name == "py.typed"]
        return {f"{prefix}/{path.relative_to(base).as_posix()}" for path in found}

    assert held == files("convlint", "convlint") | files("rules", "convlint_rules")
    assert len([name for name in held if name.startswith("convlint_rules/") and name.endswith(".yaml")]) == len(
        rule_files(builtin_folder())
    )
