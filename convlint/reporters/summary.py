"""The end of the text report: a table of the rules that fired, the grade, and what was not checked or shown."""

from __future__ import annotations

from collections import Counter

from convlint.files.safe import ascii_only, clean
from convlint.report import SEVERITIES, Report, Severity
from convlint.reporters.covered import unread_parts
from convlint.reporters.ink import GRADE_INKS, UNICODE, Glyphs, Paint, shorten, wrap
from convlint.reporters.machine import basis_notes, calibration_notes, host_notes
from convlint.reporters.snippet import columns
from convlint.reporters.totals import verdicts
from convlint.reporters.words import costs_nothing, duration, plural

_LEAST_TITLE = 24  # columns of a rule's code and name beside the times lost on several targets
_ONE_LINE = 1_000_000  # columns
_CODES = 6  # rules named where many could not be checked
_REASONS = {
    "config": "built from config",
    "parameter": "with parameters that nobody gives",
    "caller": "whose callers are not known",
    "branch": "under conditions that nobody knows",
    "untaken": "in branches that no call takes",
    "call": "behind calls that cannot be followed",
    "limit": "beyond what is read of one file",
}


def summary_lines(report: Report, paint: Paint, glyphs: Glyphs, width: int) -> list[str]:
    """The summary without its heading; empty where there is nothing to sum up."""
    lines = _table(report, paint, glyphs, width)
    notes = [
        *_verdicts(report, paint, glyphs, width),
        *_basis(report, glyphs, width),
        *_free(report),
        *_fixable(report),
        *_not_checked(report, glyphs, width),
        *_not_read(report, glyphs, width),
        *_suppressed(report),
    ]
    if lines and notes:
        lines.append("")
    return lines + notes


def _free(report: Report) -> list[str]:
    """How many infos stand in the table alone, and where they are written out."""
    free = sum(costs_nothing(finding) for finding in report.findings)
    if not free:
        return []
    return [f"  not shown: {plural(free, 'info')} on what costs nothing here (--output concise has all)"]


def _fixable(report: Report) -> list[str]:
    """How many findings --fix would mend."""
    now, unsafe = report.fixable, report.fixable_unsafe
    if now:
        more = f" ({unsafe} more with --unsafe-fixes)" if unsafe else ""
        return [f"  [*] {now} fixable with --fix{more}"]
    return [f"  [*] {unsafe} fixable with --fix --unsafe-fixes"] if unsafe else []


def notes(report: Report) -> list[str]:
    """What the times rest on, and what was not checked, not read or suppressed, one line each, for a page."""
    texts = [
        *_basis(report, UNICODE, _ONE_LINE),
        *_fixable(report),
        *_not_checked(report, UNICODE, _ONE_LINE),
        *_not_read(report, UNICODE, _ONE_LINE),
        *_suppressed(report),
    ]
    return [text.strip() for text in texts]


def coverage_ink(report: Report) -> str:
    """The colour of the last line: red for errors and for an incomplete run, green for nothing found."""
    if report.errors or report.count("error"):
        return "poor"
    return "fair" if report.count("warning") else "good"


def _table(report: Report, paint: Paint, glyphs: Glyphs, width: int) -> list[str]:
    """One row per rule that fired, in order of appearance, with the time lost to it on each target."""
    worst: dict[str, Severity] = {}
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    losses: dict[str, dict[str, float]] = {}
    gpus = report.targets or ("",)
    for finding in report.findings:
        code = finding.rule.code
        grave = worst.setdefault(code, finding.severity)
        if SEVERITIES.index(finding.severity) < SEVERITIES.index(grave):
            worst[code] = finding.severity
        names.setdefault(code, finding.rule.name)
        counts[code] = counts.get(code, 0) + 1
        gpu = finding.gpu or gpus[0]
        if finding.lost_us is not None and gpu in gpus:
            of_rule = losses.setdefault(code, {})
            of_rule[gpu] = of_rule.get(gpu, 0.0) + finding.lost_us
    if not counts:
        return []
    several = len(gpus) > 1
    if len({total.mode for total in report.totals}) > 1:  # a step and a forward pass have no sum
        losses = {}
    heads = {gpu: _shown(f"lost, {gpu}", glyphs) if several else "lost" for gpu in gpus} if losses else {}
    sizes = {gpu: max(9, columns(head)) for gpu, head in heads.items()}
    room = width - 25 - sum(size + 2 for size in sizes.values())
    beside = room >= _LEAST_TITLE or not several  # else the times stand below their rule
    if not beside:
        room = width - 25
    titles = {code: shorten(_shown(f"{code}  {names[code]}", glyphs), room, glyphs.more) for code in counts}
    title_width = max(map(columns, titles.values()))
    title_width = max(title_width, len("rule"))
    head = f"  {'':7}  {'rule':{title_width}}  {'findings':>8}"
    if beside:
        head += "".join(f"  {' ' * (sizes[gpu] - columns(heads[gpu]))}{heads[gpu]}" for gpu in heads)
    lines = [paint("faint", head)]
    for code, count in counts.items():
        severity = worst[code]
        pad = " " * (title_width - columns(titles[code]))
        row = f"  {paint(severity, severity)}{' ' * (7 - len(severity))}  {titles[code]}{pad}  {count:>8}"
        own = {gpu: duration(loss) for gpu, loss in losses.get(code, {}).items()}
        if beside:
            row += "".join(f"  {own.get(gpu, '-'):>{sizes[gpu]}}" for gpu in heads)
        lines.append(row)
        if own and not beside:
            text = _shown("lost: " + ", ".join(f"{own[gpu]} on {gpu}" for gpu in gpus if gpu in own), glyphs)
            lines += [f"{'':11}{line}" for line in wrap(text, width - 11)]
    return lines


def _verdicts(report: Report, paint: Paint, glyphs: Glyphs, width: int) -> list[str]:
    """Time, grade, and what all advice makes of it: a line for each target and mode, named where there are several."""
    lines = []
    several = len(report.targets) > 1
    for total, text in verdicts(report):
        first, *rest = wrap(_shown(f"on {total.gpu}: {text}" if several else text, glyphs), width - 4)
        if total.grade is not None:
            letter = paint(GRADE_INKS.get(total.grade, "strong"), total.grade)
            first = first.replace(f"grade {total.grade}", f"grade {letter}", 1)
        lines += [f"  {first}", *(f"    {line}" for line in rest)]
    return lines


def _basis(report: Report, glyphs: Glyphs, width: int) -> list[str]:
    lines = []
    calibrated = calibration_notes(report.calibrations, several=len(report.targets) > 1)
    for note in (*calibrated, *host_notes(report), *basis_notes(report)):
        first, *rest = wrap(_shown(note, glyphs), width - 4)
        lines += [f"  {first}", *(f"    {line}" for line in rest)]
    return lines


def _not_checked(report: Report, glyphs: Glyphs, width: int) -> list[str]:
    """What was needed, which rules, on how many layers: one entry for the network, one per set of values of layers."""
    rules: dict[tuple[str, ...], dict[str, None]] = {}
    layers: dict[tuple[str, ...], set[tuple[str, str]]] = {}
    settings = tuple(dict.fromkeys(need for skip in report.skipped if skip.layer is None for need in skip.needs))
    for skip in report.skipped:
        needs = settings if skip.layer is None else skip.needs
        rules.setdefault(needs, {})[skip.code] = None
        if skip.layer is not None:
            layers.setdefault(needs, set()).add((skip.path, skip.layer))
    lines = []
    for needs, codes in rules.items():
        named = ", ".join(list(codes)[:_CODES]) + (f", {glyphs.more}" if len(codes) > _CODES else "")
        where = f" on {plural(len(layers[needs]), 'layer')}" if needs in layers else ""
        missing = ", ".join(needs) or "a value"
        text = f"not checked: {plural(len(codes), 'rule')}{where} for want of {missing} ({named})"
        first, *rest = wrap(_shown(text, glyphs), width - 4)
        lines += [f"  {first}", *(f"    {line}" for line in rest)]
    return lines


def _not_read(report: Report, glyphs: Glyphs, width: int) -> list[str]:
    """Of how many convolutions in Python C or K is unknown, by reason; and what was not read at all."""
    source, texts = report.source, []
    if source is None:
        return []
    if source.unread:
        reasons = Counter(place.why for place in source.unread)
        parts = ", ".join(f"{count} {_REASONS.get(why, why)}" for why, count in reasons.most_common())
        texts.append(
            f"C or K unknown: {len(source.unread)} of {plural(source.constructions, 'convolution')} in Python: {parts}"
        )
    texts += unread_parts(report)
    lines = []
    for text in texts:
        first, *rest = wrap(_shown(text, glyphs), width - 4)
        lines += [f"  {first}", *(f"    {line}" for line in rest)]
    return lines


def _suppressed(report: Report) -> list[str]:
    if not report.suppressed:
        return []
    ways: dict[str, int] = {}
    for entry in report.suppressed:
        ways[entry.by] = ways.get(entry.by, 0) + 1
    by = ", ".join(f"{count} by {way}" for way, count in ways.items())
    return [f"  suppressed: {plural(len(report.suppressed), 'finding')} ({by})"]


def _shown(text: str, glyphs: Glyphs) -> str:
    """Cleaned, and in ASCII where the frames are."""
    text = clean(text)
    return ascii_only(text) if glyphs.line.isascii() else text
