"""The end of the text report: a table of the rules that fired, the grade, and what was not checked or shown."""

from __future__ import annotations

from convlint.report import SEVERITIES, Report, Severity
from convlint.reporters.ink import GRADE_INKS, Glyphs, Paint, shorten, wrap
from convlint.reporters.safe import ascii_only, clean
from convlint.reporters.snippet import columns
from convlint.reporters.words import duration, plural

_CODES = 6  # rules named where many could not be checked


def summary_lines(report: Report, paint: Paint, glyphs: Glyphs, width: int) -> list[str]:
    """The summary without its heading; empty where there is nothing to sum up."""
    lines = _table(report, paint, glyphs, width)
    notes = [*_verdict(report, paint), *_not_checked(report, glyphs, width), *_suppressed(report)]
    if lines and notes:
        lines.append("")
    return lines + notes


def coverage_ink(report: Report) -> str:
    """The colour of the last line: red for errors and for an incomplete run, green for nothing found."""
    if report.errors or report.count("error"):
        return "poor"
    return "fair" if report.count("warning") else "good"


def _table(report: Report, paint: Paint, glyphs: Glyphs, width: int) -> list[str]:
    """One row per rule that fired, in order of appearance; the time lost is that of the first target."""
    worst: dict[str, Severity] = {}
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    losses: dict[str, float] = {}
    for finding in report.findings:
        code = finding.rule.code
        grave = worst.setdefault(code, finding.severity)
        if SEVERITIES.index(finding.severity) < SEVERITIES.index(grave):
            worst[code] = finding.severity
        names.setdefault(code, finding.rule.name)
        counts[code] = counts.get(code, 0) + 1
        if finding.lost_us is not None and finding.gpu in (None, *report.targets[:1]):
            losses[code] = losses.get(code, 0.0) + finding.lost_us
    if not counts:
        return []
    room = width - 36
    titles = {code: shorten(_shown(f"{code}  {names[code]}", glyphs), room, glyphs.more) for code in counts}
    title_width = max(map(columns, titles.values()))
    title_width = max(title_width, len("rule"))
    head = f"  {'':7}  {'rule':{title_width}}  {'findings':>8}" + (f"  {'lost':>9}" if losses else "")
    lines = [paint("faint", head)]
    for code, count in counts.items():
        severity = worst[code]
        pad = " " * (title_width - columns(titles[code]))
        row = f"  {paint(severity, severity)}{' ' * (7 - len(severity))}  {titles[code]}{pad}  {count:>8}"
        loss = duration(losses[code]) if code in losses else "-"
        lines.append(f"{row}  {loss:>9}" if losses else row)
    return lines


def _verdict(report: Report, paint: Paint) -> list[str]:
    """Grade, total time, and how much of it is lost."""
    parts = []
    if report.grade is not None:
        parts.append(f"grade {paint(GRADE_INKS.get(report.grade, 'strong'), report.grade)}")
    if report.time_us is not None:
        step = "training step" if report.mode == "training" else "forward pass"
        parts.append(f"{duration(report.time_us)} per {step}")
        if report.lost_us is not None:
            share = f" ({100 * report.lost_us / report.time_us:.0f} %)" if report.time_us > 0 else ""
            lost = f"{duration(report.lost_us)} of it lost{share}" if report.lost_us > 0 else "nothing of it lost"
            parts.append(lost)
    line = ", ".join(parts)
    if line and len(report.targets) > 1:
        line += f" on {ascii_only(clean(report.targets[0]))}"
    return [f"  {line}"] if line else []


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
