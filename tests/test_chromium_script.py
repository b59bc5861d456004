"""The script that installs Chromium for browser tests: what it asks for, with stand-ins for what it runs."""

import os
import subprocess
from pathlib import Path

import pytest
from checkout import ROOT

SCRIPT = ROOT / "tests" / "browser" / "install_chromium.sh"


def stand_in(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def run(folder: Path, *, user: int = 0, chromium: str = "") -> subprocess.CompletedProcess[str]:
    """With nothing on PATH but stand-ins: `apt-get` says what it is asked for, `sudo` that it was run."""
    for name, text in (
        ("id", f"echo {user}"),
        ("apt-get", 'echo "apt-get $@" >&2'),
        ("sudo", 'echo sudo >&2; exec "$@"'),
        ("env", 'shift; exec "$@"'),
    ):
        stand_in(folder, name, text)
    environment = {"PATH": str(folder), **({"CONVLINT_CHROMIUM": chromium} if chromium else {})}
    return subprocess.run(["/bin/sh", str(SCRIPT)], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("user", "packages"), [(0, "chromium"), (1000, "chromium chromium-sandbox")])
def test_who_is_not_root_gets_the_sandbox_too(tmp_path: Path, user: int, packages: str) -> None:
    ran = run(tmp_path, user=user)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.splitlines()[-1].endswith(f"install --yes --no-install-recommends {packages}")
    assert ("sudo" in ran.stderr.splitlines()) is (user > 0)


def test_nothing_is_installed_where_one_is_found(tmp_path: Path) -> None:
    stand_in(tmp_path, "google-chrome", "exit 1")
    ran = run(tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_path_with_spaces_is_one_program(tmp_path: Path) -> None:
    folder = tmp_path / "my browsers" / "chromium"
    folder.mkdir(parents=True)
    stand_in(folder, "chrome", "exit 1")
    (tmp_path / "bin").mkdir()
    assert run(tmp_path / "bin", chromium=str(folder / "chrome")).returncode == 0
    missing = run(tmp_path / "bin", chromium=str(folder / "no such thing"))
    assert missing.returncode == 1
    assert f"CONVLINT_CHROMIUM={folder}/no such thing is no program" in missing.stderr


def test_a_script_of_its_own_is_a_script(tmp_path: Path) -> None:
    assert os.access(SCRIPT, os.X_OK)
