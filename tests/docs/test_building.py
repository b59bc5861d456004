"""How the site is built: strictly, in CI too, and with what is printed, without which MkDocs counts no warning."""

import re

import yaml
from checkout import ROOT


def test_the_site_is_built_strictly_and_not_quietly() -> None:
    target = re.search(r"^docs:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    (build,) = [line for line in target[1].splitlines() if "mkdocs build" in line]
    assert "--strict" in build
    assert {"-q", "--quiet"}.isdisjoint(build.split())
    assert "handbook.checks" in target[1].splitlines()[-1]


def test_ci_builds_it() -> None:
    assert "make docs\n" in (ROOT / ".ci" / "run").read_text()


def test_links_and_headings_are_warned_of() -> None:
    settings = yaml.safe_load((ROOT / "docs" / "mkdocs.yml").read_text())
    assert settings["strict"] is True
    for part, kinds in {"nav": ("omitted_files", "not_found"), "links": ("not_found", "anchors")}.items():
        assert {settings["validation"][part][kind] for kind in kinds} == {"warn"}
