"""The documents for those who change convlint name only what exists."""

import re
from pathlib import Path

import pytest
from checkout import ROOT

DOCUMENTS = ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")
_PATH = re.compile(r"`((?:convlint|rules|tests|benchmarks|sample_configs|\.ci)/[\w./-]*)`")
_TARGET = re.compile(r"`make ([\w-]+)")
_LINK = re.compile(r"\]\(([^)#]+)\)")
_NAME_IN_FILE = re.compile(r"`(\w+)` in\s+`(convlint/[\w/]+\.py)`")


def named(document: str, pattern: re.Pattern[str]) -> set[str]:
    return {match[1] for match in pattern.finditer((ROOT / document).read_text())}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_path_exists(document: str) -> None:
    missing = [path for path in sorted(named(document, _PATH) | named(document, _LINK)) if not (ROOT / path).exists()]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_make_target_exists(document: str) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert named(document, _TARGET) <= targets


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_name_stands_in_the_file_that_is_said_to_hold_it(document: str) -> None:
    for name, path in _NAME_IN_FILE.findall((ROOT / document).read_text()):
        assert re.search(rf"^(class|def) {name}\b", (ROOT / path).read_text(), re.MULTILINE), (name, path)


def test_the_words_of_the_glossary_are_where_it_says() -> None:
    """Paths are relative to the package; a name in code is defined in one of the modules of its row."""
    glossary = (ROOT / "ARCHITECTURE.md").read_text().partition("## Words")[2].partition("## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in glossary.splitlines() if "`" in line]
    assert len(rows) > 40
    for word, meaning, where in rows:
        places = [ROOT / "convlint" / path for path in re.findall(r"`([\w./]+)`", where)]
        assert [place for place in places if not place.exists()] == [], word
        texts = [place.read_text() for place in places if place.is_file()]
        for name in re.findall(r"`([A-Z]\w+|shares)`", meaning):
            assert any(re.search(rf"^(class|def) {name}\b", text, re.MULTILINE) for text in texts), (word, name)


def test_the_list_of_rooms_is_complete() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    rooms = text.partition("## The rooms")[2].partition("## ")[0]
    inside = {entry.name for entry in (ROOT / "convlint").iterdir()} - {"__pycache__", "__init__.py", "py.typed"}
    assert {name.rstrip("/") for name in re.findall(r"^  (\w+(?:\.py|/))", rooms, re.MULTILINE)} == inside
    assert len(inside) <= 20


def test_no_module_is_longer_than_a_subject() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in sorted((ROOT / "convlint").rglob("*.py"))}
    assert {str(path): length for path, length in lengths.items() if length > 800} == {}


def test_the_import_rules_are_those_of_the_contract() -> None:
    import tomllib

    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    section = (ROOT / "ARCHITECTURE.md").read_text().partition("## What may import what")[2].split("```")[1]
    assert [line.replace(", ", " | ") for line in section.split("\n") if line] == contract["layers"]
    assert Path(ROOT / "convlint").is_dir()
