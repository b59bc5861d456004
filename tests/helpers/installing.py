"""Installs a package of convlint into an empty environment and runs it there.

As a script, with the standard library alone, so that a bare machine can run it on what is going to be published:
`python tests/helpers/installing.py dist/*`. It ends with 1 at the first thing that is not as it should be.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
SPEC = """\
version: 1
target: [a100]
layers:
  - { name: odd, N: 32, C: 60, H: 56, W: 56, K: 128, R: 3, S: 3, padding: 1, dtype: fp16, layout: NHWC, first: false }
"""
_NAME = re.compile(r"convlint-(\d[^-]*?)(?:-py3-none-any\.whl|\.tar\.gz)")
_HOME = "import json, sys, sysconfig; print(json.dumps([sysconfig.get_path(n) for n in ('purelib', 'scripts')]))"


class PackageFault(Exception):
    """A package misbehaves in an empty environment."""


def try_package(package: Path, python: str, folder: Path) -> str:
    """Installs `package` under `python` into a new environment in `folder` and runs it; returns what it was run on."""
    named = _NAME.fullmatch(package.name)
    _holds(named is not None, f"{package.name} is no wheel or sdist of convlint")
    environment = _Environment(python, folder)
    environment.install(package)
    shown = environment.convlint("--version")
    _holds(shown.strip() == f"convlint {named[1]}", f"--version says {shown!r} in {package.name}")
    _holds(_installed(environment.packages) == _of_checkout(), _difference(environment.packages))
    (folder / "spec.yaml").write_text(SPEC, encoding="utf-8")
    outputs = ("--output", "concise", "--output", "json=report.json")
    found = environment.convlint("check", *outputs, "spec.yaml", code=1)
    _holds("spec.yaml:4:28: warning CL102 channel-alignment: C=60" in found, f"check says {found!r}")
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    _holds(report["layers"][0]["estimates"] != [], "nothing is priced")
    tested = environment.convlint("rule", "--test", str(environment.packages / "convlint_rules"))
    rules = sum(path.startswith("convlint_rules/") and path.endswith(".yaml") for path in _of_checkout())
    _holds(re.search(rf"^{rules} rules, [1-9]\d* examples: 0 failed$", tested, re.MULTILINE) is not None, tested)
    refused = environment.convlint("check", "--output", "html=page.html", "spec.yaml", code=2)
    _holds("pip install 'convlint[html]'" in refused, f"a page without its extra says {refused!r}")
    return f"{package.name} on {environment.version}"


class _Environment:
    """A virtual environment that holds nothing, not even pip: that of the Python that runs this installs into it."""

    def __init__(self, python: str, folder: Path) -> None:
        self.folder = folder
        foreign = ("PYTHON", "CONVLINT")
        self._variables = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
        self._run([python, "-I", "-m", "venv", "--without-pip", str(folder / "environment")])
        self._python = str(folder / "environment" / ("Scripts" if os.name == "nt" else "bin") / "python")
        packages, scripts = json.loads(self._run([self._python, "-I", "-c", _HOME]))
        self.version = self._run([self._python, "--version"]).strip()
        self.packages = Path(packages)
        self._script = str(Path(scripts) / "convlint")
        _holds(not self.packages.exists() or not any(self.packages.iterdir()), "the environment is not empty")

    def install(self, package: Path) -> None:
        """Installs a package with its requirements and no extras; byte code is compiled on the first run."""
        pip = [sys.executable, "-I", "-m", "pip", "--python", self._python, "--disable-pip-version-check"]
        self._run([*pip, "install", "--quiet", "--no-compile", str(package.resolve())])

    def convlint(self, *arguments: str, code: int = 0) -> str:
        """All that it prints."""
        return self._run([self._script, *arguments], code)

    def _run(self, command: list[str], code: int = 0) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self._variables, capture_output=True, text=True, encoding="utf-8", check=False
        )
        printed = done.stdout + done.stderr
        _holds(done.returncode == code, f"exit code {done.returncode}, not {code}, of {' '.join(command)}\n{printed}")
        return done.stdout if code == 0 else printed


def _of_checkout() -> set[str]:
    """Every file of the two packages, whatever its kind."""
    return _files(ROOT / "convlint", "convlint") | _files(ROOT / "rules", "convlint_rules")


def _installed(packages: Path) -> set[str]:
    return _files(packages / "convlint", "convlint") | _files(packages / "convlint_rules", "convlint_rules")


def _files(folder: Path, prefix: str) -> set[str]:
    found = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    return {f"{prefix}/{path.as_posix()}" for path in found if "__pycache__" not in path.parts}


def _difference(packages: Path) -> str:
    wanted, there = _of_checkout(), _installed(packages)
    return f"missing: {sorted(wanted - there)}; too many: {sorted(there - wanted)}"


def _holds(condition: bool, otherwise: str) -> None:
    if not condition:
        raise PackageFault(otherwise)


def main(packages: list[str]) -> None:
    """Each package under the Python that runs this."""
    if not packages:
        raise SystemExit("which packages? as in: installing.py dist/*")
    for package in packages:
        with tempfile.TemporaryDirectory() as folder:
            try:
                where = try_package(Path(package), sys.executable, Path(folder))
            except PackageFault as wrong:
                raise SystemExit(f"{package}: {wrong}") from None
        print(f"installed and run: {where}, {sys.platform}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
