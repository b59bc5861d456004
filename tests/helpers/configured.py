"""A folder with a config, and findings that show which of its settings hold."""

import re
from pathlib import Path

import pytest
from command_line import convlint
from specs import BAD


def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty current folder but for the spec `bad.yaml`, and no summary for GitHub."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    Path("bad.yaml").write_text(BAD)


def codes(*arguments: str) -> list[str]:
    """Codes of the findings that these tests are about, in the order of the concise report."""
    ran = convlint("check", *arguments, "-o", "concise")
    return re.findall(r": (?:error|warning|info) (CL102|CL006|CL903|XX\d+) ", ran.out)


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
