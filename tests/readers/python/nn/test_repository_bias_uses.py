"""Which uses of a bias in a repository are told: as many as may be said of a layer."""

from __future__ import annotations

from pathlib import Path

import pytest

from convlint.readers.python.nn.repository_bias_uses import first_uses
from convlint.readers.python.project import Project

ANY = "def reset(m):\n    m.bias.data.zero_()\n"
OWN = "from torch import nn\nclass Net(nn.Module):\n    def __init__(self):\n        self.conv = nn.Conv2d(3, 8, 3)\n"
OWN += "        self.conv.bias.data.zero_()\n"


def uses(
    files: dict[str, str], given: list[str], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> list[tuple[str, str]]:
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    monkeypatch.chdir(folder)
    return [(use.at.path, use.attribute) for use in first_uses(Project(".", given))]


def test_those_of_files_to_report_on_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = uses({"a.py": OWN, "b.py": OWN, "c.py": OWN}, ["b.py"], monkeypatch, tmp_path)
    assert found == [("b.py", "conv"), ("a.py", "conv"), ("c.py", "conv")]


def test_behind_one_of_every_layer_only_files_to_report_on_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"a.py": OWN, "b.py": ANY, "c.py": OWN, "net.py": ANY, "other.py": OWN}
    assert uses(files, ["net.py", "other.py"], monkeypatch, tmp_path) == [("net.py", ""), ("other.py", "conv")]
    assert uses(files, ["other.py"], monkeypatch, tmp_path) == [("other.py", "conv"), ("a.py", "conv"), ("b.py", "")]
