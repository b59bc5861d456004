"""Finds the Chromium for browser tests, or says what to install."""

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
INSTALL = "`make test-browser` installs all that browser tests need"


def missing() -> str:
    """What browser tests want for here, as a sentence with what to do; empty where nothing is missing."""
    for module, package in (("playwright", "playwright"), ("axe_playwright_python", "axe-playwright-python")):
        if find_spec(module) is None:
            return f"the package {package} is not installed: pip install -e '.[browser]'; {INSTALL}"
    given = os.environ.get("CONVLINT_CHROMIUM")
    if given and shutil.which(given) is None:
        return f"CONVLINT_CHROMIUM={given} is no program that can be run"
    if not executable():
        return f"none of {', '.join(NAMES)} is on PATH: apt-get install chromium, or set CONVLINT_CHROMIUM; {INSTALL}"
    return ""


def executable() -> str:
    """Where Chromium is; empty where it is not found."""
    asked = (os.environ.get("CONVLINT_CHROMIUM") or "",) if os.environ.get("CONVLINT_CHROMIUM") else NAMES
    return next((found for name in asked if (found := shutil.which(name))), "")


def arguments() -> list[str]:
    """Flags of Chromium: root has no sandbox, and a container's /dev/shm may be too small for a long page."""
    return ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]


def axe_script() -> str:
    """axe-core, from the package that ships it: nothing is fetched while tests run."""
    found = find_spec("axe_playwright_python")
    assert found.origin is not None
    return (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")
