"""The report as an HTML page: one file that loads nothing else."""

from __future__ import annotations

import convlint.reporters.page  # noqa: F401 - says what is missing before anything is checked
from convlint.model.report import Report
from convlint.reporters import Reporter, Style


def render(report: Report, style: Style) -> str:
    """The whole page; of `style` only `unicode` matters."""
    from convlint.reporters.page.assembling import page

    return page(report, unicode=style.unicode)


REPORTER = Reporter(render=render, for_people=True)
