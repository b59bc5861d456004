"""The registry of output formats: name -> module, each of which ends with `REPORTER = Reporter(render=...)`.

A reporter is one module and one line in `REPORTERS`. Reporters only render; they compute nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from convlint.model.report import Report

# name -> module in this package, loaded only when that format is asked for
REPORTERS: Mapping[str, str] = {
    "text": "text",
    "concise": "concise",
    "json": "json_v3",
    "sarif": "sarif",
    "github": "github",
    "gitlab": "gitlab",
    "junit": "junit",
    "rdjson": "rdjson",
    "markdown": "markdown",
    "html": "html",
}


class Style(Struct, frozen=True, kw_only=True):
    """How the output may look. Formats for machines know only `unicode`: without it they write ASCII escapes.

    `links`: codes of rules lead to their pages, in a terminal that follows links.
    `quiet` leaves out what is not needed to act: infos, reasons and the summary table. `verbose` has every finding with
    its reason and its line of source.
    """

    color: bool = False
    links: bool = False
    width: int = 80
    quiet: bool = False
    verbose: bool = False
    unicode: bool = True

    @property
    def table_width(self) -> int:
        """Columns of tables and of the text around them: longer lines are hard to read."""
        return min(max(self.width, 60), 120)


class Reporter(Struct, frozen=True, kw_only=True):
    """What a reporter module offers.

    `annotations`: its text is made of a CI system's commands. `edits`: it writes the edits of fixes. `for_people`: its
    text is in the chosen language; that of all other formats is English.
    """

    render: Callable[[Report, Style], str]
    annotations: bool = False
    edits: bool = False
    for_people: bool = False

    def __call__(self, report: Report, style: Style) -> str:
        """The report in this format."""
        return self.render(report, style)


def reporter(name: str) -> Reporter:
    """The reporter of a format. Raises KeyError for an unknown name; imports only that format's module."""
    chosen = import_module(f"{__name__}.{REPORTERS[name]}").REPORTER
    if not isinstance(chosen, Reporter):  # a module is untyped until it is loaded
        raise TypeError(f"{REPORTERS[name]}.REPORTER is no Reporter")
    return chosen
