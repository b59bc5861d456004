"""The report for people: in short, or verbose with each finding's source line, price, fix and reason, by layer."""

from __future__ import annotations

from convlint.files.languages import duration, say
from convlint.files.safe import ascii_only, clean, clean_path
from convlint.model.location import Location
from convlint.model.report import Finding, InputError, LayerReport, Report, Severity
from convlint.reporters import Reporter, Style, words
from convlint.reporters.brief import brief_lines
from convlint.reporters.ink import GRADE_INKS, Page, columns, excerpt, shorten, wrap
from convlint.reporters.summary import coverage, coverage_ink, summary_lines

_GUTTER = 5  # columns of the line number
_INDENT = " " * (_GUTTER + 1)
_LABEL = 8  # columns of "why", "fix" and so on
_NARROW, _WIDE = 40, 120  # prose is easier to read in lines that are not longer
_LEAST = 16  # columns below which a layer is not described in its heading
_NAMES = 12  # layers named where a finding joins many


def render(report: Report, style: Style) -> str:
    """The report; the same lines with and without colour. Quiet: errors and warnings, one line each."""
    if style.quiet:
        from convlint.reporters.concise import render as in_lines

        return in_lines(report, style)
    page = _TextReport(report, style)
    for group in _by_layer(report).values() if style.verbose else ():
        page.layer(group)
    partly = words.partly_read(report)
    for name, is_partly_read in ((say("not read"), False), (say("incomplete"), True)):
        errors = [error for error in report.errors if (error.path in partly) is is_partly_read]
        if errors:
            page.heading(name)
        for error in errors:
            page.input_error(error)
    if _is_first_contact(report):
        page.lines += [*(page.written(f"  {line}") for line in words.first_steps()), ""]
    lines = summary_lines(report, page) if style.verbose else brief_lines(report, style, page.width)
    if lines:
        if style.verbose or page.lines:
            page.heading(say("summary"))
        page.lines += lines
        page.lines.append("")
    page.lines += [page.paint(coverage_ink(report), page.written(coverage(report))), ""]
    return "\n".join(page.lines)


def _is_first_contact(report: Report) -> bool:
    """Whether convlint was started in a folder that holds nothing for it."""
    if report.files or [error.path for error in report.errors] != ["."]:
        return False
    from convlint.readers.discovery import HOLDS_NOTHING  # loads the parser of specs

    return report.errors[0].message.startswith(HOLDS_NOTHING)


def _by_layer(report: Report) -> dict[tuple[str | None, ...], list[Finding]]:
    """The findings of each (path, layer), and of each GPU where there are several, in the order in which they come.

    Infos that cost nothing here are left to the summary, which counts them.
    """
    several_targets = len(report.targets) > 1
    groups: dict[tuple[str | None, ...], list[Finding]] = {}
    for finding in report.findings:
        if words.asks_for_nothing(finding):
            continue
        gpu = finding.gpu if several_targets and finding.layer is not None else None
        groups.setdefault((finding.location.model, finding.location.path, finding.layer, gpu), []).append(finding)
    return groups


class _TextReport(Page):
    """A page that knows what has been explained in it."""

    def __init__(self, report: Report, style: Style) -> None:
        super().__init__(style, min(max(style.width, _NARROW), _WIDE))
        self._source_width = max(style.width, _NARROW) - _GUTTER - 3
        self._unicode = style.unicode
        self._report = report
        self._several = len(report.targets) > 1
        self._explained: set[str] = set()
        self._layers: dict[tuple[str, str, str], LayerReport | None] = {}
        for entry in report.layers:
            key = (entry.layer.model, entry.layer.path, entry.layer.name)
            self._layers[key] = None if key in self._layers else entry  # which of two is meant is not known

    def written(self, text: str) -> str:
        """The text as this terminal can show it."""
        return text if self._unicode else ascii_only(text)

    def heading(self, name: str, details: str = "", verdict: str = "", ink: str = "frame") -> None:
        """A ruled line: name, details and, at its right end, the verdict; what does not fit is cut."""
        edge = self.glyphs.line * 2
        ending = columns(verdict) + 4 if verdict else 0
        name = shorten(self.written(name), self.width - 8 - ending, self.glyphs.more)
        room = self.width - columns(name) - ending - 10
        details = self.written(details)
        details = shorten(details, room, self.glyphs.more) if room > _LEAST else ""
        used = columns(name) + 4 + (columns(details) + 4 if details else 0) + ending
        parts = [self.paint("frame", edge), self.paint("strong", name)]
        if details:
            parts += [self.paint("frame", edge), self.paint("faint", details)]
        parts.append(self.paint("frame", self.glyphs.line * max(self.width - used, 2)))
        if verdict:
            parts += [self.paint(ink, verdict), self.paint("frame", edge)]
        self.lines.append(" ".join(parts))

    def layer(self, findings: list[Finding]) -> None:
        """One layer's heading and its findings."""
        first = findings[0]
        if first.layer is None and self._is_source(first):
            self.heading(clean_path(first.location.path))
        elif first.layer is None:
            model = first.location.model
            self.heading(say("network {model}", model=clean(model)).rstrip(), clean_path(first.location.path))
        else:
            entry = self._layers.get((first.location.model, first.location.path, first.layer))
            details = "" if entry is None else words.shape(entry.layer, self.glyphs.times, self.glyphs.arrow)
            self.heading(words.layer_of(first) or say("(no name)"), details, *self._verdict(entry, first.gpu))
        before = None
        for finding in findings:
            self._finding(finding, shown=finding.location == before)
            before = finding.location

    def _is_source(self, finding: Finding) -> bool:
        source = self._report.source
        return source is not None and not finding.location.model and finding.location.path in source.files

    def _verdict(self, entry: LayerReport | None, gpu: str | None) -> tuple[str, str]:
        """A layer's grade and time on the GPU of its findings, which is named where there are several; and the ink."""
        target = self.written(clean(gpu)) if self._several and gpu is not None else ""
        if not self._several:
            gpu = next(iter(self._report.targets), None)
        times = None if entry is None or gpu is None else entry.times.get(gpu)
        if times is None:
            return target, "strong"
        verdict = f"{times.grade}, {duration(times.time_us)}"
        if target:
            verdict = self.written(say("{time} on {gpu}", time=verdict, gpu=target))
        return verdict, GRADE_INKS.get(times.grade, "strong")

    def _finding(self, finding: Finding, *, shown: bool) -> None:
        rule, at = finding.rule, finding.location
        gpu = f" [{clean(finding.gpu)}]" if self._several and finding.gpu is not None else ""
        identity = f"{clean(rule.code)} {clean(rule.name)}:"
        self._title(finding.severity, identity, clean(finding.message) + gpu, words.page_of(rule))
        if not shown:
            self._place(at)
        if library := words.behind(finding):
            self._note(say("library"), "label", library)
        if finding.layers and ", ".join(finding.layers) not in finding.message and not words.named_in(finding):
            names = [clean(name) for name in finding.layers[:_NAMES]]
            text = ", ".join(names)
            if len(finding.layers) > _NAMES:
                text = say("{names} and {count} more", names=text, count=len(finding.layers) - _NAMES)
            self._note(say("layers"), "label", text)
        if price := words.lost(finding):
            self._note(say("lost"), "lost", price)
        if finding.fix is not None:
            self._note(say("fix"), "fix", words.advice(finding.fix))
            if finding.fix.no_edit and not at.library:
                self._note(say("code"), "label", clean(finding.fix.no_edit))
        if others := words.alternatives(finding):
            self._note(say("or"), "label", others)
        if rule.code not in self._explained:
            self._explained.add(rule.code)
            if rule.rationale:
                self._note(say("why"), "label", clean(rule.rationale))
            self._note(say("source"), "label", words.origin(rule))
        self.lines.append("")

    def input_error(self, error: InputError) -> None:
        """Something that could not be read."""
        message = say("nothing here that convlint reads; what to type:") if _is_first_contact(self._report) else ""
        self._title("error", say("internal error:") if error.internal else "", message or words.without_kind(error))
        self._place(Location(path=error.path, line=error.line, column=error.column))
        self.lines.append("")

    def _title(self, severity: Severity, identity: str, message: str, page: str = "") -> None:
        word = self.written(words.severity_word(severity))
        prefix = self.written(f"{word} {identity}".rstrip() if identity else f"{word}:")
        first, *rest = wrap(self.written(f"{prefix} {message}"), self.width - 4)
        if first.startswith(prefix):
            gap, tail = (" ", prefix[len(word) + 1 :]) if identity else ("", ":")
            head = self.paint(severity, word) + gap + self.link(page, self.paint("strong", tail))
            first = head + first[len(prefix) :]
        self.lines.append(f"  {first}")
        self.lines += [f"    {line}" for line in rest]

    def _place(self, at: Location) -> None:
        where = self.written(words.place_of(at))
        corner, bar = self.glyphs.corner, self.glyphs.bar
        line, column = at.line, at.column
        if at.cell is not None:
            _, line, column = at.cell
        span = (at.line, column, at.end_line, at.end_column)
        shown = excerpt(self._report.sources, at.path, span, width=self._source_width, unicode=self._unicode)
        self.lines.append(f"{_INDENT}{self.paint('frame', corner)} {where}")
        if shown is None or (at.cell is not None and not shown[0]):  # a notebook on one line
            return
        text, start, length = shown
        number = self.paint("frame", f"{line:>{_GUTTER}} {bar}")
        self.lines.append(f"{number} {text}".rstrip())
        if column is not None:
            mark = " " * start + self.paint("strong", "^" * length)
            self.lines.append(f"{_INDENT}{self.paint('frame', bar)} {mark}")

    def _note(self, label: str, ink: str, text: str) -> None:
        label = self.written(label)
        first, *rest = wrap(self.written(text), self.width - len(_INDENT) - _LABEL)
        gap = " " * max(_LABEL - columns(label), 1)
        self.lines.append(f"{_INDENT}{self.paint(ink, label)}{gap}{first}")
        self.lines += [f"{_INDENT}{' ' * _LABEL}{line}" for line in rest]


REPORTER = Reporter(render=render, for_people=True)
