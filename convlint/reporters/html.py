"""The report as a page to look at: one file that asks nothing of anybody, for people who would rather look than read."""

from __future__ import annotations

from convlint.errors import UsageError
from convlint.report import Report
from convlint.reporters import Reporter, Style

try:  # asked for before anything is checked, so that nobody waits for a page that cannot be made
    import jinja2 as _  # noqa: F401
except ImportError as error:
    raise UsageError("--output html needs Jinja2: pip install 'convlint[html]'") from error


def render(report: Report, style: Style) -> str:  # noqa: ARG001 - a browser knows its own width and colours
    """The whole page."""
    from convlint.reporters.page.assembling import page

    return page(report)


REPORTER = Reporter(render=render)
