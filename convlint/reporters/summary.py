"""The end of the text report: a table of the rules that fired, the grade, and what was not checked or shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from convlint.files.languages.saying import say, sentence
from convlint.files.safe import ascii_only, clean
from convlint.report import SEVERITIES, Report, Severity
from convlint.reporters.covered import unread_parts
from convlint.reporters.ink import GRADE_INKS, UNICODE, Glyphs, Paint, padded, shorten, wrap
from convlint.reporters.machine import basis_notes, batch_notes, calibration_notes, dtype_notes, host_notes
from convlint.reporters.snippet import columns
from convlint.reporters.totals import verdicts
from convlint.reporters.words import costs_nothing, duration, plural, severity_word

_LEAST_TITLE = 24  # columns of a rule's code and name beside the times lost on several targets
_LEAST_CODE = 12  # the same beside those of one
_ONE_LINE = 1_000_000  # columns
_CODES = 6  # rules named where many could not be checked
_REASONS = {
    "config": sentence("{count} built from config"),
    "parameter": sentence("{count} with parameters that nobody gives"),
    "caller": sentence("{count} whose callers are not known"),
    "branch": sentence("{count} under conditions that nobody knows"),
    "untaken": sentence("{count} in branches that no call takes"),
    "call": sentence("{count} behind calls that cannot be followed"),
    "weight": sentence("{count} functional, with a weight whose shape is not known"),
    "limit": sentence("{count} beyond what is read of one file"),
}
_WAYS = {
    "comment": sentence("{count} by comment"),
    "config": sentence("{count} by config"),
    "baseline": sentence("{count} by baseline"),
}


def summary_lines(report: Report, paint: Paint, glyphs: Glyphs, width: int) -> list[str]:
    """The summary without its heading; empty where there is nothing to sum up."""
    lines = _table(report, paint, glyphs, width)
    notes = [
        *_verdicts(report, paint, glyphs, width),
        *_basis(report, glyphs, width),
        *_broken(_free(report), glyphs, width),
        *_broken(_fixable(report), glyphs, width),
        *_not_checked(report, glyphs, width),
        *_not_read(report, glyphs, width),
        *_broken(_suppressed(report), glyphs, width),
    ]
    if lines and notes:
        lines.append("")
    return lines + notes


def _broken(notes: Iterable[str], glyphs: Glyphs, width: int) -> Iterator[str]:
    """Notes in lines of the width, each set in."""
    for note in notes:
        first, *rest = wrap(_shown(note, glyphs), width - 4)
        yield from (f"  {first}", *(f"    {line}" for line in rest))


def _free(report: Report) -> list[str]:
    """How many infos stand in the table alone, and where they are written out."""
    free = sum(costs_nothing(finding) for finding in report.findings)
    if not free:
        return []
    infos = plural(free, "info")
    return [say("not shown: {infos} on what costs nothing here (--output concise has all)", infos=infos)]


def _fixable(report: Report) -> list[str]:
    """How many findings --fix would mend."""
    now, unsafe = report.fixable, report.fixable_unsafe
    if now:
        more = say(" ({count} more with --unsafe-fixes)", count=unsafe) if unsafe else ""
        return ["[*] " + say("{count} fixable with --fix", count=now) + more]
    return ["[*] " + say("{count} fixable with --fix --unsafe-fixes", count=unsafe)] if unsafe else []


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
        if finding.lost_us is not None and gpu in gpus and (finding.advised or finding.lost_us > 0):
            of_rule = losses.setdefault(code, {})
            of_rule[gpu] = of_rule.get(gpu, 0.0) + finding.lost_us
    if not counts:
        return []
    several = len(gpus) > 1
    if len({total.mode for total in report.totals}) > 1:  # a step and a forward pass have no sum
        losses = {}
    heads = {}
    if losses:
        heads = {gpu: _shown(say("lost, {gpu}", gpu=gpu) if several else say("lost"), glyphs) for gpu in gpus}
    sizes = {gpu: max(9, columns(head)) for gpu, head in heads.items()}
    rule, found = _shown(say("rule"), glyphs), _shown(say("findings"), glyphs)
    words = {severity: _shown(severity_word(severity), glyphs) for severity in SEVERITIES}
    graves = max(7, *(columns(words[severity]) for severity in worst.values()))
    fixed = 10 + graves + max(8, columns(found))
    room = width - fixed - sum(size + 2 for size in sizes.values())
    beside = room >= (_LEAST_TITLE if several else _LEAST_CODE)  # else the times stand below their rule
    if not beside:
        room = width - fixed
    titles = {code: shorten(_shown(f"{code}  {names[code]}", glyphs), room, glyphs.more) for code in counts}
    title_width = max(map(columns, titles.values()))
    title_width = max(title_width, columns(rule))
    head = f"  {'':{graves}}  {padded(rule, title_width)}  {' ' * (8 - columns(found))}{found}"
    if beside:
        head += "".join(f"  {' ' * (sizes[gpu] - columns(heads[gpu]))}{heads[gpu]}" for gpu in heads)
    lines = [paint("faint", head)]
    for code, count in counts.items():
        severity = worst[code]
        pad = " " * (title_width - columns(titles[code]))
        row = f"  {paint(severity, words[severity])}{' ' * (graves - columns(words[severity]))}"
        row += f"  {titles[code]}{pad}  {count:>{max(8, columns(found))}}"
        own = {gpu: duration(loss) for gpu, loss in losses.get(code, {}).items()}
        if beside:
            row += "".join(f"  {own.get(gpu, '-'):>{sizes[gpu]}}" for gpu in heads)
        lines.append(row)
        if own and not beside:
            each = say(", ").join(say("{time} on {gpu}", time=own[gpu], gpu=gpu) for gpu in gpus if gpu in own)
            text = _shown(say("lost: {each}", each=each), glyphs)
            lines += [f"{'':11}{line}" for line in wrap(text, width - 11)]
    return lines


def _verdicts(report: Report, paint: Paint, glyphs: Glyphs, width: int) -> list[str]:
    """Time, grade, and what all advice makes of it: a line for each target and mode, named where there are several."""
    lines = []
    several = len(report.targets) > 1
    for total, text in verdicts(report):
        line = say("on {gpu}: {verdict}", gpu=total.gpu, verdict=text) if several else text
        first, *rest = wrap(_shown(line, glyphs), width - 4)
        if total.grade is not None:
            letter = paint(GRADE_INKS.get(total.grade, "strong"), total.grade)
            before, after = (say("grade {grade}", grade=each) for each in (total.grade, letter))
            first = first.replace(before, after, 1)
        lines += [f"  {first}", *(f"    {line}" for line in rest)]
    return lines


def _basis(report: Report, glyphs: Glyphs, width: int) -> list[str]:
    calibrated = calibration_notes(report.calibrations, several=len(report.targets) > 1)
    of_times = (*calibrated, *host_notes(report), *batch_notes(report), *dtype_notes(report), *basis_notes(report))
    return list(_broken(of_times, glyphs, width))


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
        where = say(" on {layers}", layers=plural(len(layers[needs]), "layer")) if needs in layers else ""
        text = say(
            "not checked: {rules}{where} for want of {missing} ({codes})",
            rules=plural(len(codes), "rule"),
            where=where,
            missing=", ".join(map(say, needs)) or say("a value"),
            codes=named,
        )
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
        unknown = [
            say(_REASONS[why], count=count) if why in _REASONS else f"{count} {why}"
            for why, count in reasons.most_common()
        ]
        texts.append(
            say(
                "C or K unknown: {count} of {what} in Python: {reasons}",
                count=len(source.unread),
                what=plural(source.constructions, "convolution"),
                reasons=say(", ").join(unknown),
            )
        )
    return list(_broken((*texts, *unread_parts(report)), glyphs, width))


def _suppressed(report: Report) -> list[str]:
    if not report.suppressed:
        return []
    ways: dict[str, int] = {}
    for entry in report.suppressed:
        ways[entry.by] = ways.get(entry.by, 0) + 1
    by = say(", ").join(say(_WAYS[way], count=count) for way, count in ways.items())
    count = plural(len(report.suppressed), "finding")
    return [say("suppressed: {findings} ({by})", findings=count, by=by)]


def _shown(text: str, glyphs: Glyphs) -> str:
    """Cleaned, and in ASCII where the frames are."""
    text = clean(text)
    return ascii_only(text) if glyphs.line.isascii() else text
