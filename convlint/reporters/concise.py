"""One line per finding, `path:line:col: severity CODE name: message`, then what was covered."""

from __future__ import annotations

from convlint.files.languages import say
from convlint.files.safe import ascii_only
from convlint.model.report import Report
from convlint.reporters import Reporter, Style
from convlint.reporters.ink import linker
from convlint.reporters.summary import ending
from convlint.reporters.words import (
    behind,
    headline,
    layer_of,
    named_in,
    page_of,
    place,
    place_of,
    severity_word,
    without_kind,
)


def render(report: Report, style: Style) -> str:
    """The report for grep, editors and eyes in a hurry; quiet leaves out the infos."""
    link = linker(style.links)
    several_targets = len(report.targets) > 1
    lines = []
    for finding in report.findings:
        if finding.severity != "info" or not style.quiet:
            at = finding.location
            rule, colon, message = headline(finding, several_targets).partition(":")
            line = (
                f"{place_of(at)}: {severity_word(finding.severity)} {link(page_of(finding.rule), rule)}{colon}{message}"
            )
            starts = finding.message.startswith(f"{finding.layer} ") and not finding.location.model
            beside = [layer_of(finding)] if finding.layer and not starts and not named_in(finding) else []
            if library := behind(finding):
                beside.append(library)
            line += f" ({', '.join(beside)})" if beside else ""
            lines.append(line)
    for error in report.errors:
        word = say("internal error") if error.internal else severity_word("error")
        lines.append(f"{place(error.path, error.line, error.column)}: {word}: {without_kind(error)}")
    text = "\n".join([*lines, *ending(report), ""])
    return text if style.unicode else ascii_only(text)


REPORTER = Reporter(render=render)
