"""One version, stated in one place, and examples that name the tag of it."""

import re
import tomllib

from checkout import ROOT

from convlint import __version__

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
_KINDS = {".py", ".toml", ".yaml", ".yml", ".cfg"}
_TAG = re.compile(r"(?:rev: |convlint/convlint(?:\.git)?@)(\S+?)[\"']?$", re.MULTILINE)


def test_the_version_stands_in_one_file() -> None:
    """Documents name it for their readers, and two tests hold those to it; code and settings do not repeat it."""
    folders = [
        ROOT / name for name in ("convlint", "rules", "tests", "benchmarks", "sample_configs", "docs", ".github")
    ]
    inside = [path for folder in folders for path in folder.rglob("*") if "corpus" not in path.parts]
    files = [path for path in [*ROOT.iterdir(), *inside] if path.suffix in _KINDS and path.is_file()]
    stating = re.compile(rf"(?<![\d.]){re.escape(__version__)}(?![\d.])")
    found = [str(path.relative_to(ROOT)) for path in files if stating.search(path.read_text(encoding="utf-8"))]
    assert found == ["convlint/__init__.py"]
    assert "version" not in PROJECT["project"]
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["setuptools"]["dynamic"] == {"version": {"attr": "convlint.__version__"}}


def test_examples_name_the_tag_of_this_version() -> None:
    """Hook, Action and pip; what stands at a tag is what its README says."""
    named = {
        path.name: _TAG.findall(path.read_text(encoding="utf-8"))
        for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
        if path.name != "CHANGELOG.md"
    }
    assert len(named["README.md"]) >= 3
    assert {tag for tags in named.values() for tag in tags} == {f"v{__version__}"}


def test_the_example_of_a_calibration_is_one_of_this_version() -> None:
    """That of another minor version is not used."""
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        assert set(re.findall(r'^convlint = "(.*)"$', path.read_text(encoding="utf-8"), re.MULTILINE)) <= {__version__}


def test_the_changelog_begins_with_this_version() -> None:
    heads = re.findall(r"^## (\S+?)(, not yet released|, \d{4}-\d\d-\d\d)?$", CHANGELOG, re.MULTILINE)
    assert len(heads) == CHANGELOG.count("\n## ")
    assert heads[0][0] == __version__
    assert all(when != ", not yet released" for _, when in heads[1:])
    assert [head for head, _ in heads] == sorted(
        (head for head, _ in heads), key=lambda text: tuple(map(int, text.split("."))), reverse=True
    )
