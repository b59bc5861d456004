"""The versions of Python that convlint supports, and which of them this machine has."""

import functools
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from checkout import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_CLASSIFIER = re.compile(r"Programming Language :: Python :: (3\.\d+)")
SUPPORTED = tuple(found[1] for entry in PROJECT["classifiers"] if (found := _CLASSIFIER.fullmatch(entry)))


@functools.cache
def interpreter(version: str) -> str | None:
    """A Python of this version, such as 3.12, that can make environments; None where there is none."""
    return next((path for path in _candidates(version) if _answers(path, version)), None)


def _candidates(version: str) -> Iterator[str]:
    yield sys.executable
    if found := shutil.which(f"python{version}"):
        yield found
    kept = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    yield from (str(path) for path in sorted(kept.glob(f"{version}.*/bin/python{version}"), reverse=True))


def _answers(path: str, version: str) -> bool:
    """A name on the path may be a stand-in that leads nowhere."""
    code = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
    asked = subprocess.run([path, "-I", "-c", code], capture_output=True, text=True, check=False)
    return asked.returncode == 0 and asked.stdout.strip() == version
