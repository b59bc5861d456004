"""Python files put together: those of one repository under one config are one input."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from convlint.linting import source_inputs
from convlint.linting.paths import find_inputs
from convlint.linting.plan import Options, Planner
from convlint.readers.inputs import Input


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source_inputs._root.cache_clear()


def _files(*names: str) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("" if name.endswith(".py") else "version: 1\nlayers:\n  - {C: 8}\n")


def _found(*paths: str, **options: object) -> list[Input]:
    found, errors = find_inputs(paths, Planner(Options(**options), date.today()))  # type: ignore[arg-type]
    assert errors == []
    return found


def test_a_folder_is_one_input() -> None:
    _files("a.py", "pkg/b.py", "pkg/c.ipynb", "spec.yaml")
    source, spec = _found(".")
    assert (source.kind, source.name, source.root) == ("source", ".", ".")
    assert source.members == ("a.py", "pkg/b.py", "pkg/c.ipynb")
    assert source.named == frozenset()
    assert (spec.kind, spec.name) == ("file", "spec.yaml")


def test_named_files_are_known_as_such_however_they_are_found() -> None:
    _files("a.py", "b.py")
    (source,) = _found("b.py", ".", "./b.py")
    assert (source.members, source.named) == (("a.py", "b.py"), frozenset({"b.py"}))
    (source,) = _found(str(Path("b.py").absolute()))
    assert (source.name, source.members, source.root) == ("b.py", ("b.py",), ".")
    (source,) = _found("*.py")
    assert source.named == frozenset()


def test_each_config_and_each_repository_has_its_own() -> None:
    _files("a.py", "one/b.py", "two/c.py", "two/d.py")
    Path("one/convlint.toml").write_text("")
    Path("two/.git").mkdir()
    assert [(each.members, each.root) for each in _found(".")] == [
        (("a.py",), "."), (("one/b.py",), "."), (("two/c.py", "two/d.py"), "two"),
    ]  # fmt: skip


def test_a_package_inside_a_repository_belongs_to_it() -> None:
    _files("a.py", "pkg/setup.py", "pkg/b.py")
    Path(".git").mkdir()
    assert [each.root for each in _found("pkg/b.py")] == ["."]


def test_the_config_leaves_files_out_of_folders_only() -> None:
    _files("a.py", "old/b.py")
    Path("convlint.toml").write_text('exclude = ["old/**"]')
    assert [each.members for each in _found(".")] == [("a.py",)]
    assert [each.members for each in _found(".", "old/b.py")] == [("a.py", "old/b.py")]


def test_specs_alone_leave_python_out() -> None:
    _files("a.py", "spec.yaml")
    Path("other.yaml").write_text("a: 1")
    assert [each.name for each in _found("a.py", "other.yaml", ".", specs_only=True)] == ["spec.yaml"]
    assert [each.name for each in _found("a.py", "other.yaml", "spec.yaml", skip_foreign=True)] == ["a.py", "spec.yaml"]
