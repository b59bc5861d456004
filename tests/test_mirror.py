"""Test files mirror the modules that they test, and inner rooms have a test file for every module."""

from pathlib import Path

from cases import for_each
from checkout import ROOT

CODE, TESTS = ROOT / "convlint", ROOT / "tests"
ROOMS = sorted(path.name for path in CODE.iterdir() if (path / "__init__.py").exists())
# Rooms of which every module has a test file of its own.
WHOLE = ("config", "engine", "estimate", "facts", "fixes", "measuring", "model", "rulebook", "verdict")
# Of all modules of a room together.
TOGETHER = {"engine/test_laws.py"}
TEST_FILES = sorted(path for room in ROOMS for path in (TESTS / room).rglob("test_*.py"))
MODULES = sorted(path for room in WHOLE for path in (CODE / room).rglob("*.py") if path.name != "__init__.py")


def named(path: Path | str, top: Path) -> str:
    return Path(path).relative_to(top).as_posix()


def test_there_is_something_to_compare() -> None:
    assert set(WHOLE) < set(ROOMS)
    assert len(TEST_FILES) > len(WHOLE)


@for_each("path", [path for path in TEST_FILES if named(path, TESTS) not in TOGETHER])
def test_each_test_file_names_what_it_tests(path: Path) -> None:
    """A module or a package beside it; the folder's own name stands for the package that the folder mirrors."""
    folder, name = CODE / path.parent.relative_to(TESTS), path.stem.removeprefix("test_")
    found = (folder / f"{name}.py").exists() or (folder / name / "__init__.py").exists()
    assert found or (name == folder.name and (folder / "__init__.py").exists())


@for_each("path", MODULES)
def test_each_module_of_the_inner_rooms_has_its_test_file(path: Path) -> None:
    mirrored = TESTS / path.parent.relative_to(CODE) / f"test_{path.name}"
    assert mirrored.exists()


def test_rules_are_tested_by_family() -> None:
    families = {path.name for path in (ROOT / "rules").iterdir() if path.is_dir()}
    names = {path.stem.removeprefix("test_") for path in (TESTS / "rules").glob("test_*.py")}
    assert names - families <= {"rules", "cliffs"}  # of all rules together


def test_helpers_are_no_tests() -> None:
    assert list((TESTS / "helpers").glob("test_*")) == []
