"""Markdown for a pull-request comment or a job summary: verdict, what to do first, a table, cut to what is accepted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from convlint.files.languages import plural
from convlint.files.safe import ascii_only, clean
from convlint.model.report import Finding, Report
from convlint.reporters import Reporter, Style, words
from convlint.reporters.causes import overlap, ranked, saving
from convlint.reporters.summary import coverage, unread_parts

MOST_CHARACTERS = 65_536  # of a comment on GitHub
_NOTE_ROOM = 200  # characters kept for saying what was left out
_LONGEST_CELL = 400
_MARKS = {"error": "🔴", "warning": "🟡", "info": "🔵"}
_JOINER = "\u2060"  # takes no room, and what stands on its two sides is read as two things
_REFERENCE = re.compile(  # mentions, issues and the like, commits
    r"[@#!~%$&^:](?=\S)|\b[Gg][Hh]-(?=\d)|\b(?=\d*[a-f])[0-9a-f]{6}(?=[0-9a-f])"
)
_UNLINKED = re.compile(r"\bwww(?=\.)", re.IGNORECASE)
_MARKUP = re.compile(r"[]\[\\`*_<>&|~#@!$^{}:\"]")
_LIST = re.compile(r"\A\s*(?:\d{1,9}[.)]|[-+])(?=\s)")  # begins a list where the text begins a line
_NOT_PLAIN = re.compile(r"[\x00-\x7f](?<![\w .,/=+-])|_", re.ASCII)


def render(report: Report, style: Style) -> str:
    """A comment of at most 65,536 characters, in bytes too; what is beyond is counted in a note."""
    return page(report, most=MOST_CHARACTERS, unicode=style.unicode)


def page(report: Report, *, most: int, unicode: bool = True) -> str:
    """The report in at most `most` bytes of UTF-8, the gravest findings first."""
    head = [_headline(report, unicode), "", prose(coverage(report)) + "."]
    for line in unread_parts(report):
        head += ["", prose(line)]
    for line in _verdicts(report):
        head += ["", line]
    for line in _do_first(report):
        head += ["", line]
    total = len(report.errors) + len(report.findings)
    if total:
        head += ["", "| | place | rule | finding | lost |", "|---|---|---|---|---|"]
    return with_table([_written("\n".join(head), unicode)], _rows(report, unicode), total, "row", most - _NOTE_ROOM)


def with_table(head: Sequence[str], rows: Iterable[str], total: int, kind: str, most: int) -> str:
    """The lines with as many of the `total` rows below as take at most `most` bytes; a note counts the others."""
    lines, size = [*head], sum(len(line.encode()) + 1 for line in head)
    for position, row in enumerate(rows):
        size += len(row.encode()) + 1
        if size > most:
            lines += ["", f"*{plural(total - position, kind)} left out: this is as much as fits here.*"]
            break
        lines.append(row)
    return "\n".join([*lines, ""])


def _headline(report: Report, unicode: bool) -> str:
    if not report.complete:
        mark, text = "❌", "convlint: incomplete, not everything could be read"
    elif report.findings:
        mark, text = "⚠️", f"convlint: {plural(len(report.findings), 'finding')}"
    else:
        mark, text = "✅", "convlint: nothing found"
    return f"### {mark} {text}" if unicode else f"### {text}"


def _verdicts(report: Report) -> Iterator[str]:
    """Time, grade, and what all advice makes of it: a line for each target and mode, named where there are several."""
    for total, text in words.verdicts(report):
        marked = text.replace(f"grade {total.grade}", f"grade **{total.grade}**")
        where = f"{prose(total.gpu)}: " if len(report.targets) > 1 else ""
        yield f"{where}{marked}."
        for step in words.step_lines(total):
            yield f"{where}{prose(step) if len(total.networks) > 1 else step}."


def _do_first(report: Report) -> Iterator[str]:
    """The changes that save most: what to do, what it saves on each target, the rule and the place."""
    several_targets = len(report.targets) > 1
    first = ranked(report).first
    for number, cause in enumerate(first, 1):
        saved = {gpu: text for gpu in report.targets if (text := saving(cause, gpu, with_share=False))}
        savings = ", ".join(f"{text} on {gpu}" if several_targets else text for gpu, text in saved.items())
        before = "**Do first**: " if number == 1 else ""
        what = f"{prose(cause.change)}; saves {prose(savings)}"
        yield f"{before}**{number}** {what} ({prose(cause.rule.code)}, {code(cause.where)})"
    if overlap(report, first):
        yield "These overlap: the step with all of them stands above."


def _rows(report: Report, unicode: bool) -> Iterator[str]:
    """One by one: of a large report only the first are needed."""
    several_targets = len(report.targets) > 1
    partly = words.partly_read(report)
    for error in report.errors:
        where = words.place(error.path, error.line, error.column)
        kind = "incomplete" if error.path in partly else "not read"
        yield _written(f"| {kind} | {code(where)} | | {prose(error.message)} | |", unicode)
    for finding in words.gravest_first(report.findings):
        yield _written(_row(finding, unicode, several_targets), unicode)


def _written(text: str, unicode: bool) -> str:
    return text if unicode else ascii_only(text)


def _row(finding: Finding, unicode: bool, several_targets: bool) -> str:
    at = finding.location
    mark = f"{_MARKS[finding.severity]} " if unicode else ""
    layer = f"{code(words.layer_of(finding))} " if finding.layer is not None and not words.named_in(finding) else ""
    gpu = f" on {prose(finding.gpu)}" if several_targets and finding.gpu is not None else ""
    library = f"<br>Library: {code(line)}" if (line := words.behind(finding)) else ""
    fix = f"<br>Fix: {prose(words.advice(finding.fix))}" if finding.fix is not None else ""
    others = f"<br>Or: {prose(alternatives)}" if (alternatives := words.alternatives(finding)) else ""
    rule = f"{prose(finding.rule.code)} {prose(finding.rule.name)}"
    where = code(words.place_of(at))
    message = f"{layer}{prose(finding.message)}{gpu}{library}{fix}{others}"
    return f"| {mark}{finding.severity} | {where} | {rule} | {message} | {prose(words.lost(finding))} |"


def prose(text: str) -> str:
    """Text that reads as it is written: it starts no markup, link, HTML, mention, reference or table cell."""
    return _joined(_LIST.sub(_no_list, _MARKUP.sub(_entity, _REFERENCE.sub(_apart, _cut(text)))))


def code(text: str) -> str:
    """Text in the typewriter face, where forges look for neither mentions nor references."""
    return f"<code>{_joined(_NOT_PLAIN.sub(_entity, _cut(text))) or '?'}</code>"


def _joined(text: str) -> str:
    return _UNLINKED.sub(_apart, text).replace(_JOINER, f"&#{ord(_JOINER)};").strip()


def _cut(text: str) -> str:
    text = clean(text)
    return text if len(text) <= _LONGEST_CELL else text[:_LONGEST_CELL] + "..."


def _entity(match: re.Match[str]) -> str:
    return f"&#{ord(match.group())};"


def _no_list(match: re.Match[str]) -> str:
    return f"{match.group()[:-1]}&#{ord(match.group()[-1])};"


def _apart(match: re.Match[str]) -> str:
    return match.group() + _JOINER


REPORTER = Reporter(render=render)
