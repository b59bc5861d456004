"""The report as a page to look at: one file that asks nothing of anybody."""

from __future__ import annotations

import convlint.reporters.page  # noqa: F401 - says what is missing before anything is checked
from convlint.model.report import Report
from convlint.reporters import Reporter, Style


def render(report: Report, style: Style) -> str:
    """The whole page; a browser knows its own width and colours."""
    from convlint.reporters.page.assembling import page

    return page(report, unicode=style.unicode)


REPORTER = Reporter(render=render, for_people=True)
