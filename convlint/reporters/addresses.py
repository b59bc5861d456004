"""Where convlint and its documentation stand, and which page of that is a rule's."""

from __future__ import annotations

from convlint.report import RuleInfo

HOME = "https://github.com/convlint/convlint"
# All addresses of pages begin with it, those of the site itself too; it ends with a slash.
DOCS = "https://convlint.github.io/convlint/"


def rule_page(code: str) -> str:
    """The path of a rule's page, below `DOCS`."""
    return f"rules/{code}.html"


def page_of(rule: RuleInfo) -> str:
    """The address of a rule's page; empty where it is a rule of the user's own, which has none."""
    return DOCS + rule_page(rule.code) if rule.built_in else ""
