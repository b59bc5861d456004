"""The short report: the verdict, what to do first and what that saves, a line for each other warning."""

from __future__ import annotations

from collections.abc import Sequence

from convlint.files.languages import duration, plural, say
from convlint.files.safe import clean, clean_path
from convlint.model.grouping import grouped
from convlint.model.report import NetworkReport, NetworkTotal, Report
from convlint.reporters import Style, ink, words
from convlint.reporters.causes import Cause, overlap, ranked, saving
from convlint.reporters.summary import brief_notes, verdict_lines

_OTHERS = 15  # further ones, of a line each
_LEAST_ROOM = 34  # columns of a text beside what it saves on several targets; with less that stands below it
_DROPPED = (3, 7, 4, 1)  # columns of the verdict that a narrow terminal does without, the first one first
_CONVOLUTIONS = 6  # the column of their time, on several networks; it stays where a step is unknown
_DROPPED_OF_NETWORKS = (8, _CONVOLUTIONS, 4, 5, 2)  # the same of several networks
_LEAST_NAME = 24  # columns of a network's name
_NUMBER = "   "  # columns of an entry's number


def brief_lines(report: Report, style: Style, width: int) -> list[str]:
    """The verdict, the causes and the notes, without heading and last line."""
    brief = _Brief(report, style, width)
    ranking = ranked(report)
    brief.verdict()
    brief.listed(say("errors"), ranking.errors, len(ranking.errors))
    brief.first(ranking.first)
    brief.listed(say("other warnings") if ranking.first else say("warnings"), ranking.others, _OTHERS)
    brief.listed(say("also, not in the total"), ranking.beside, _OTHERS, saves=True)
    if not (report.layers or brief.lines):  # of source alone, nearly all that is said is an info
        brief.listed(say("infos"), ranking.infos, _OTHERS)
    notes = list(brief.note_lines(brief_notes(report)))
    if notes and brief.lines:
        brief.lines.append("")
    return brief.lines + notes


class _Brief(ink.Page):
    def __init__(self, report: Report, style: Style, width: int) -> None:
        super().__init__(style, width)
        self.report = report
        self.targets: Sequence[str] = report.targets
        known = [estimate for entry in report.layers for estimate in entry.estimates.values() if estimate is not None]
        self._extrapolated = all(estimate.basis == "extrapolated" for estimate in known)

    def verdict(self) -> None:
        """Adds a line for each target and mode: step, convolutions, grade, and the same with all advice taken.

        Of several networks a line for each on each target: nobody can time the sum of their steps.
        """
        networks = [
            network
            for network in self.report.networks
            if network.layers or network.step is not None or network.times is not None
        ]
        known = any(network.step is not None or network.times is not None for network in networks)
        if known and len({network.path for network in networks}) > 1:
            self._networks(networks)
            return
        every = words.totals(self.report)
        if len(every) > 1 and any(total.times is not None or total.step_us is not None for total in every):
            self._table(every)
            return
        for total, text in list(words.verdicts(self.report))[:1]:  # of several, none is known
            for line in (*words.step_lines(total), text):
                self.lines += verdict_lines(total, line, self)

    def _table(self, every: Sequence[NetworkTotal]) -> None:
        modes = len({total.mode for total in every}) > 1
        self._rows([["", *_heads(modes=modes)], *(_cells(total, modes=modes) for total in every)], _DROPPED)
        self._but_compiled()

    def _but_compiled(self) -> None:
        """Adds a note to a table: where torch.compile is advised, the step includes it, and convolutions do not."""
        if any(words.is_to_compile(self.report, gpu) for gpu in self.targets):
            self._more(say("Convolutions are those before torch.compile."))

    def _rows(self, rows: Sequence[Sequence[str]], dropped: Sequence[int]) -> None:
        """Adds heads and rows without columns that are empty or do not fit; long names in the first keep their ends."""
        rows = [[self.shown(cell) for cell in cells] for cells in rows]
        places = [place for place in range(len(rows[0])) if place == 0 or any(cells[place] for cells in rows[1:])]
        widths = ink.column_sizes(rows)
        least = min(widths[0], _LEAST_NAME)
        for place in dropped:
            if place in places and least + sum(widths[other] + 2 for other in places[1:]) + 2 > self.width:
                places.remove(place)
        rows = [[cells[place] for place in places] for cells in rows]
        sizes, sides = ink.column_sizes(rows), "m" + "r" * (len(places) - 1)
        sizes[0] = max(least, min(sizes[0], self.width - 2 - sum(size + 2 for size in sizes[1:])))
        self.lines.append(self.paint("faint", f"  {ink.row(rows[0], sizes, sides, self.glyphs.more)}"))
        self.lines += [f"  {ink.row(cells, sizes, sides, self.glyphs.more)}".rstrip() for cells in rows[1:]]

    def _networks(self, networks: Sequence[NetworkReport]) -> None:
        """Adds a table of the networks that take longest on any target, each with all targets."""
        modes = len({network.mode for network in networks}) > 1
        by_path = grouped(
            (network.path, NetworkTotal(gpu=network.gpu, mode=network.mode, times=network.times, networks=(network,)))
            for network in networks
        )
        order = sorted(by_path, key=lambda path: -max(total.step_us or total.time_us or 0.0 for total in by_path[path]))
        rows = [["", "", *_heads(modes=modes)]]
        shown = 0
        for path in order:
            if shown and len(rows) + len(by_path[path]) > words.MOST_STEPS + 1:
                break
            shown += 1
            for number, total in enumerate(by_path[path]):
                gpu, *cells = _cells(total, modes=modes)
                rows.append(["" if number else clean_path(path), gpu if len(self.targets) > 1 else "", *cells])
        stepless = any(network.step is None for network in networks)
        self._rows(rows, [place for place in _DROPPED_OF_NETWORKS if place != _CONVOLUTIONS or not stepless])
        if len(order) > shown:
            more = say("and {count} more: --output json", count=len(order) - shown)
            self.lines.append(f"  {self.shown(more)}")
        self._but_compiled()

    def first(self, leading: Sequence[Cause]) -> None:
        """Adds the causes that save most, with what each saves on each target."""
        if not leading:
            return
        gpus: Sequence[str | None] = self.targets or (None,)
        findings = [finding for cause in leading for finding in cause.findings]
        of_step = all(finding.lost_step_percent is not None for finding in findings)
        alone = len(gpus) == 1 and len({network.path for network in self.report.networks}) <= 1
        with_share = alone and (of_step or all(finding.lost_step_percent is None for finding in findings))
        cells = [[saving(cause, gpu, with_share=with_share) for gpu in gpus] for cause in leading]
        saves = say("saves, of the step") if with_share and of_step else say("saves")
        heads = [self.shown(head) for head in (self.targets if len(self.targets) > 1 else (saves,))]
        sizes = ink.column_sizes([heads, *cells])
        room = self.width - sum(sizes) - 2 * len(sizes) - 2
        beside = room >= _LEAST_ROOM
        head = self.shown(say("do first"))
        self._title(f"{ink.padded(head, room + 2)}  {ink.row(heads, sizes, 'r' * len(sizes))}" if beside else head)
        for number, (cause, own) in enumerate(zip(leading, cells, strict=True), 1):
            fits = (room if beside else self.width - 2) - len(_NUMBER)
            lines = ink.wrap(self.shown(cause.change), fits)
            first, *rest = [ink.shorten(line, fits, self.glyphs.more) for line in lines]
            if beside:
                first = f"{ink.padded(first, fits)}  {ink.row(own, sizes, 'r' * len(sizes))}"
            self.lines.append(f"  {number:<{len(_NUMBER)}}{first}".rstrip())
            self.lines += [f"  {_NUMBER}{line}" for line in rest]
            if not beside:
                saved = [
                    say("{time} on {gpu}", time=cell, gpu=gpu)
                    for gpu, cell in zip(self.targets, own, strict=True)
                    if cell
                ]
                self._more(say("saves {each}", each=say(", ").join(saved)))
            self._more(self._identity(cause, with_what=cause.first.fix is not None and cause.alike), cause)
        if overlap(self.report, leading):
            self._more(say("These overlap: the step with all of them stands above."))

    def listed(self, title: str, section: Sequence[Cause], most: int, *, saves: bool = False) -> None:
        """Adds a line for each cause: rule, place and message; with `saves`, also the fix and what it saves."""
        if not section:
            return
        self._title(self.shown(title))
        for cause in section[:most]:
            text = self._identity(cause, with_what=True)
            if cause.severity == "error" and cause.first.fix is not None:
                text += say("; fix: {fix}", fix=cause.change)
            elif saves:
                text = say("{what}; {fix}, {time} faster", what=text, fix=cause.change, time=duration(cause.beside_us))
            first, *rest = ink.wrap(self.shown(text), self.width - 4)
            code = cause.rule.code
            first = first.replace(code, self.link(words.page_of(cause.rule), self.paint(cause.severity, code)), 1)
            self.lines += [f"  {first}", *(f"    {line}" for line in rest)]
        if len(section) > most:
            more = say("and {count} more: --verbose", count=len(section) - most)
            self.lines.append(f"  {self.shown(more)}")

    def _identity(self, cause: Cause, *, with_what: bool) -> str:
        """`CL401 model.py:12:9, 53 layers: NCHW in 53 layers`."""
        text = f"{clean(cause.rule.code)} {cause.where}"
        count = len(cause.layers)
        if count == 1 and not words.named_in(cause.first):
            text += say(", {layer}", layer=clean(cause.layers[0]))
        elif count > 1:
            text += say(", {layers}", layers=plural(count, "layer"))
        gpus = {finding.gpu for finding in cause.findings} - {None}
        if len(self.targets) > 1 and 0 < len(gpus) < len(self.targets):
            text += say(" on {targets}", targets=", ".join(gpu for gpu in self.targets if gpu in gpus))
        if with_what:
            text = say("{where}: {what}", where=text, what=cause.what)
        beside = sorted(set.intersection(*(set(finding.pays_with) for finding in cause.findings)))
        if beside:
            text += say(" (together with {codes})", codes=", ".join(words.company(cause.rule.code, beside)))
        bases = {finding.basis for finding in cause.findings if finding.lost_us is not None}
        if bases == {"extrapolated"} and not self._extrapolated:  # else a note below says so of all
            text += say(" (extrapolated)")
        return text

    def _more(self, text: str, cause: Cause | None = None) -> None:
        first, *rest = ink.wrap(self.shown(text), self.width - 2 - len(_NUMBER))
        if cause is not None:
            first = first.replace(cause.rule.code, self.link(words.page_of(cause.rule), cause.rule.code), 1)
        self.lines += [f"  {_NUMBER}{self.paint('faint', line)}" for line in (first, *rest)]

    def _title(self, text: str) -> None:
        if self.lines:
            self.lines.append("")
        self.lines.append(self.paint("strong", text.rstrip()))


def _heads(*, modes: bool) -> list[str]:
    """The heads of the columns that `_cells` fills."""
    return [
        say("time of") if modes else "", say("step"), say("images/s"), say("advised"), say("convolutions"),
        say("grade"), say("advised"),
    ]  # fmt: skip


def _cells(total: NetworkTotal, *, modes: bool) -> list[str]:
    """The cells of one target: step, images a second, step as advised; convolutions, grade, grade as advised."""
    us, after_us, times = total.step_us, total.step_after_us, total.times
    batch = total.networks[0].batch if len(total.networks) == 1 else None
    now = "" if us is None else duration(us)
    rate = f"{batch / us * 1e6:,.0f}" if us and batch else ""
    then = duration(after_us) if us is not None and after_us is not None and after_us < us else ""
    cells = [clean(total.gpu), words.step(total.mode) if modes else "", now, rate, then]
    if times is None:
        return [*cells, say("unknown"), "", ""]
    share = f", {100 * total.step_parts.get('convolution', 0.0) / us:.0f} %" if us else ""
    share = say(", host") if total.waits else share
    saved, is_saving = words.outcome(times)
    best = times.grade_after if is_saving or not saved else f"{saved}, {times.grade_after}"
    return [*cells, duration(times.time_us) + share, times.grade, best]
