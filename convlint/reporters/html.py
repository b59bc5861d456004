"""The report as a page to look at: one file that asks nothing of anybody."""

from __future__ import annotations

from convlint.report import Report
from convlint.reporters import Reporter, Style
from convlint.reporters.page.assembling import page  # says what is missing before anything is checked


def render(report: Report, style: Style) -> str:  # noqa: ARG001 - a browser knows its own width and colours
    """The whole page."""
    return page(report)


REPORTER = Reporter(render=render)
