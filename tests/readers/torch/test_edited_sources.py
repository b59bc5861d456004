"""Source that is not on disk is what imports see, with the paths, lines and bytecode of the files left as they are."""

from __future__ import annotations

import importlib
import inspect
import linecache
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from convlint.readers.torch.edited_sources import edited_sources

PACKAGE = "edited_package"


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "width.py").write_text("WIDTH = 60\n")
    (folder / "net.py").write_text("from .width import WIDTH\n\n\ndef net():\n    return WIDTH\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]
    linecache.clearcache()
    importlib.invalidate_caches()


def imported(sources: dict[Path, bytes]) -> Any:
    _forget()
    with edited_sources({os.path.realpath(path): raw.decode("latin-1") for path, raw in sources.items()}):
        return importlib.import_module(f"{PACKAGE}.net")


def test_modules_are_imported_as_edited_and_know_their_files(package: Path) -> None:
    assert imported({}).net() == 60  # and there is bytecode now
    edited = {package / "width.py": b"WIDTH = 64\n"}
    assert imported(edited).net() == 64
    assert sys.modules[f"{PACKAGE}.width"].__file__ == str(package / "width.py")
    assert (package / "width.py").read_text() == "WIDTH = 60\n"
    assert imported({}).net() == 60  # bytecode of the edited source is not left behind


def test_lines_are_those_of_the_edited_source(package: Path) -> None:
    text = "# coding: latin-1\r\n\f\r\ndef net():\r\n    return 'größe'\r\n"
    _forget()
    with edited_sources({os.path.realpath(package / "net.py"): text.encode("latin-1").decode("latin-1")}):
        net = importlib.import_module(f"{PACKAGE}.net").net
        assert net() == "größe"
        assert inspect.getsource(net) == "def net():\n    return 'größe'\n"
        assert linecache.getline(str(package / "width.py"), 1) == "WIDTH = 60\n"


def test_files_are_known_behind_links(package: Path, tmp_path: Path) -> None:
    (package / "width.py").rename(tmp_path / "real.py")
    (package / "width.py").symlink_to(tmp_path / "real.py")
    assert imported({tmp_path / "real.py": b"WIDTH = 128\n"}).net() == 128
