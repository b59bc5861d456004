"""The whole site before MkDocs: every page, where it stands, and the settings that follow from that."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pygments.formatters import HtmlFormatter

from convlint.cli.commands.schema import config_schema, spec_schema
from convlint.reporters.words import DOCS, HOME, rule_page
from convlint.rulebook.book import Rulebook, load_rulebook
from handbook import gpu_pages, rule_pages
from handbook.fragments import filled, inside

ROOT = Path(__file__).parents[2]
WRITTEN = ROOT / "docs" / "pages"
SETTINGS = ROOT / "docs" / "mkdocs.yml"


def build(folder: Path) -> None:
    """Writes `pages/` and `mkdocs.yml` into `folder`; what was in them before is gone."""
    rulebook = load_rulebook()
    pages = folder / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(WRITTEN, pages)
    for path in pages.rglob("*.md"):
        text = filled(path.read_text(encoding="utf-8"))
        path.write_text(inside(text, path.relative_to(pages).as_posix()), encoding="utf-8")
    for name, text in made_pages(rulebook).items():
        path = pages / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    config = yaml.safe_dump(settings(folder), sort_keys=False)
    (folder / "mkdocs.yml").write_text(config, encoding="utf-8")


def made_pages(rulebook: Rulebook) -> dict[str, str]:
    """Every file that is made, by its path below the pages."""
    made = {"rules/index.md": rule_pages.index(rulebook.rules), "gpus.md": gpu_pages.page()}
    made |= {_source_of(rule_page(rule.info.code)): rule_pages.page(rule, rulebook.rules) for rule in rulebook.rules}
    made["changes.md"] = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    made["assets/code.css"] = colours()
    made["schemas/spec.schema.json"] = json.dumps(spec_schema(), indent=1) + "\n"
    made["schemas/config.schema.json"] = json.dumps(config_schema(rulebook), indent=1) + "\n"
    return made


def colours() -> str:
    """The colours of code, light and dark."""
    light = HtmlFormatter(style="default").get_style_defs(".codehilite")
    dark = HtmlFormatter(style="github-dark").get_style_defs('[data-bs-theme="dark"] .codehilite')
    return f"{light}\n{dark}\n"


def _source_of(page: str) -> str:
    return page.removesuffix(".html") + ".md"


def settings(folder: Path) -> dict[str, Any]:
    """What of MkDocs' settings follows from the sources; all else is in docs/mkdocs.yml."""
    up = Path(*[".."] * len(folder.resolve().relative_to(ROOT).parts)) if _is_inside(folder) else ROOT
    return {
        "INHERIT": str(up / SETTINGS.relative_to(ROOT)),
        "site_url": DOCS,
        "repo_url": HOME,
        "docs_dir": "pages",
        "site_dir": "site",
        "nav": navigation(),
    }


def _is_inside(folder: Path) -> bool:
    return folder.resolve().is_relative_to(ROOT)


def navigation() -> list[Mapping[str, Any]]:
    """The pages in the order in which they are read."""
    return [
        {"Start": "index.md"},
        {"Tutorial": "tutorial.md"},
        {
            "Guide": [
                {"Check a spec or a layer": "guide/checking.md"},
                {"Check a model": "guide/models.md"},
                {"The models of a repository": "guide/project.md"},
                {"Python source": "guide/python.md"},
                {"Understand a finding": "guide/reports.md"},
                {"See what it costs": "guide/costs.md"},
                {"Change it": "guide/fixing.md"},
                {"Plan the whole network": "guide/planning.md"},
                {"In CI": "guide/ci.md"},
                {"Many models": "guide/auditing.md"},
                {"Questions to an audit": "guide/audit-tables.md"},
                {"My GPU": "guide/measuring.md"},
                {"A trace": "guide/traces.md"},
                {"Versions and changes": "guide/versions.md"},
                {"Rules of your own": "guide/own-rules.md"},
            ]
        },
        {"Rules": "rules/index.md"},
        {"Cliffs": "cliffs.md"},
        {
            "Reference": [
                {"The spec": "reference/spec.md"},
                {"The config": "reference/config.md"},
                {"GPUs": "gpus.md"},
                {"Vocabulary": "vocabulary.md"},
                {"What rules can ask": "reference/quantities.md"},
                {"Accuracy": "accuracy.md"},
                {"Tried on other people's code": "tried.md"},
                {"Speed": "speed.md"},
                {"What it does not do": "limits.md"},
                {"Security": "security.md"},
            ]
        },
        {"Neighbours": "neighbours.md"},
        {"Changes": "changes.md"},
    ]
