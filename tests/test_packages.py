"""Wheel and sdist hold the rules and the data of the repository, and run where nothing else is installed."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
from checkout import ROOT
from installing import PackageFault, try_package
from packaging.requirements import Requirement
from pythons import PROJECT, SUPPORTED, interpreter

from convlint.rulebook.book import builtin_folder, rule_files

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What packages are built from, where a build may leave its traces."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("convlint", "rules"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def packages(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An sdist of the checkout, and the wheel that is built from that sdist, by their endings."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(checkout)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


@pytest.mark.contract
def test_the_wheel_holds_exactly_the_rules_and_data_of_the_repository(
    checkout: Path, packages: dict[str, Path]
) -> None:
    with zipfile.ZipFile(packages["wheel"]) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}

    def files(folder: str, prefix: str) -> set[str]:
        base = checkout / folder
        found = [path for path in base.rglob("*") if path.is_file()]
        return {f"{prefix}/{path.relative_to(base).as_posix()}" for path in found}

    expected = files("convlint", "convlint") | files("rules", "convlint_rules")
    assert held == {name for name in expected if ".egg-info/" not in name}
    assert len([name for name in held if name.startswith("convlint_rules/") and name.endswith(".yaml")]) == len(
        rule_files(builtin_folder())
    )


@pytest.mark.parametrize(
    ("version", "kind"),
    [*((version, "wheel") for version in SUPPORTED), *((version, "sdist") for version in SUPPORTED[::4])],
)
def test_it_runs_in_an_empty_environment(
    version: str, kind: str, packages: dict[str, Path], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """On each supported Python that this machine has; the end of the run says which."""
    python = interpreter(version)
    record_property("packages not tried on" if python is None else "packages tried on", version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    assert f"on Python {version}." in try_package(packages[kind], python, tmp_path)


def test_some_supported_python_is_here() -> None:
    assert [version for version in SUPPORTED if interpreter(version)] != []


def test_the_least_python_is_the_first_that_is_supported() -> None:
    assert PROJECT["requires-python"] == f">={SUPPORTED[0]}"
    assert list(SUPPORTED) == [f"3.{minor}" for minor in range(11, 11 + len(SUPPORTED))]


def test_a_package_that_lacks_files_is_found_out(packages: dict[str, Path], tmp_path: Path) -> None:
    missing = ("convlint/gpus/data/a10.yaml", "convlint/reporters/page/assets/page.css")
    damaged = tmp_path / packages["wheel"].name
    with zipfile.ZipFile(packages["wheel"]) as whole, zipfile.ZipFile(damaged, "w") as less:
        for name in whole.namelist():
            if name not in missing:
                less.writestr(name, whole.read(name))
    with pytest.raises(PackageFault, match=re.escape(f"missing: {list(missing)}; too many: []")):
        try_package(damaged, sys.executable, tmp_path)


# what others have installed, and keep: a build for the CPU, an older one, one that is newer than any of today
TORCHES = ("2.4.0", "2.6.0+cu124", "2.13.0+cpu", "3.1.0")


def test_the_extras_accept_a_torch_that_is_there_and_none_is_too_new() -> None:
    extras = PROJECT["optional-dependencies"]
    for name in ("torch", "all"):
        own = [Requirement(text) for text in extras[name]]
        (torch,) = [one for one in own if one.name == "torch"] or [Requirement(text) for text in extras["torch"]]
        assert all(torch.specifier.contains(version) for version in (*TORCHES, metadata.version("torch")))
        assert {clause.operator for clause in torch.specifier} == {">="}
    assert "torch" in Requirement(extras["all"][0]).extras


@pytest.mark.parametrize("extra", ["torch", "all"])
@pytest.mark.parametrize("version", TORCHES)
def test_pip_leaves_the_torch_that_is_installed(
    version: str, extra: str, packages: dict[str, Path], tmp_path: Path
) -> None:
    """It asks no index, and so finds no other one; what it would install is convlint alone."""
    ran = dry_run(tmp_path, version, f"{packages['wheel']}[{extra}]")
    assert ran.returncode == 0, ran.stderr
    would = json.loads((tmp_path / "report.json").read_text())["install"]
    assert [each["metadata"]["name"] for each in would] in ([], ["convlint"])


def test_a_torch_that_is_too_old_is_not_left(packages: dict[str, Path], tmp_path: Path) -> None:
    """So that the test above can fail."""
    ran = dry_run(tmp_path, "2.3.1", f"{packages['wheel']}[torch]")
    assert ran.returncode != 0
    assert "torch>=2.4" in ran.stderr


def dry_run(folder: Path, torch: str, wanted: str) -> subprocess.CompletedProcess[str]:
    """What pip would install where this version of torch is, in `folder`; its report comes there, too."""
    info = folder / f"torch-{torch}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {torch}\n")
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--quiet"]
    # What this machine has pip do, such as a constraint on torch or a folder of wheels, is no user's.
    machine = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return subprocess.run(
        [*command, "--report", str(folder / "report.json"), wanted],
        env={**machine, "PIP_CONFIG_FILE": os.devnull, "PYTHONPATH": str(folder)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
