"""The summary of a report: what was checked, on which GPUs, and what it comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from convlint.files.languages import duration, plural, say, sentence
from convlint.files.safe import clean
from convlint.model.grouping import grouped
from convlint.model.layer import AXES
from convlint.model.report import SEVERITIES, Finding, NetworkTotal, Report, SkippedRule
from convlint.model.source import SourceReport, UnreadCell, UnreadFile
from convlint.reporters import words
from convlint.reporters.ink import GRADE_INKS, UNICODE, Page, columns, row, shorten, wrap

# what a layer is made of: without one of these it is not checked in full, whatever settings are known
_OF_LAYERS = frozenset(("N", "C", "K", "groups", "dtype", *(name for axis in AXES for name in axis[:-1])))
_NEEDS = 1  # values named for want of which rules could not be checked
_OPTIONS = {"dtype": "--dtype", "N": "--batch", "layout": "--layout"}  # by which a whole network is told
_FILES = 3  # named where many could not be read


def coverage(report: Report) -> str:
    """The last line: `53 layers in 1 file on a100: 3 errors, 12 warnings; 2 layers skipped`.

    Of Python it says `76 convolutions (C and K known for 49) in 132 Python files`, behind layers where there are any.
    """
    counts = [plural(report.count("error"), "error"), plural(report.count("warning"), "warning")]
    if infos := report.count("info"):
        counts.append(plural(infos, "info"))
    of_source = 0 if report.source is None else report.source.given
    parts = [] if report.source is None else [_covered(report.source)]
    if report.source is None or report.files > of_source or report.layers:
        layers, files = plural(len(report.layers), "layer"), plural(report.files - of_source, "file")
        targets = say(" on {targets}", targets=clean(", ".join(report.targets))) if report.targets else ""
        parts.insert(0, say("{layers} in {files}", layers=layers, files=files) + targets)
    line = say("{covered}: {counts}", covered=say(", ").join(parts), counts=say(", ").join(counts))
    if skipped := len({(skip.path, skip.layer) for skip in report.skipped if _lacks_size(skip)}):
        line += say("; {what} skipped", what=plural(skipped, "layer"))
    wrong, partly = {error.path for error in report.errors}, words.partly_read(report)
    if unread := len(wrong - partly):
        line += say("; {what} not read", what=plural(unread, "input"))
    if incomplete := len(wrong & partly):
        line += say("; {what} incomplete", what=plural(incomplete, "input"))
    if code := unread_files(report):
        line += say("; {what} not read", what=plural(len(code), "Python file"))
    if cells := unread_cells(report):
        line += say("; {what} not read", what=plural(len(cells), "cell"))
    return line


def ending(report: Report) -> list[str]:
    """The last line, and before it which Python files and cells could not be read, where that is so."""
    return [*unread_parts(report), *_quiet(report), coverage(report)]


def _quiet(report: Report) -> list[str]:
    """A note that nothing was judged, where all Python files are tests and the like."""
    source = report.source
    if source is None or not source.quiet or source.quiet < len(source.files):
        return []
    files = plural(source.quiet, "Python file")
    return [say("not judged: {files} of tests, documentation or vendored code", files=files)]


def unread_parts(report: Report) -> list[str]:
    """Which Python files, and which cells of notebooks, could not be read: a line for each kind that there is."""
    lines = []
    if (source := report.source) is not None and (files := unread_files(report)):
        places = _first([(words.place(path, file.line, file.column), file.why) for path, file in sorted(files.items())])
        what = plural(source.given, "Python file")
        lines.append(say("not read: {count} of {what}: {places}", count=len(files), what=what, places=places))
    if cells := unread_cells(report):
        places = _first([(words.place_of(cell.at), cell.why) for cell in cells])
        lines.append(say("not read: {what}: {places}", what=plural(len(cells), "cell"), places=places))
    return lines


def unread_files(report: Report) -> dict[str, UnreadFile]:
    """The Python files that could not be read, but for those that are errors."""
    wrong = {error.path for error in report.errors}
    files = {} if report.source is None else report.source.unread_files
    return {path: file for path, file in files.items() if path not in wrong}


def unread_cells(report: Report) -> list[UnreadCell]:
    """The cells that could not be read, but for those that are errors."""
    wrong = {error.path for error in report.errors}
    return [] if report.source is None else [cell for cell in report.source.unread_cells if cell.at.path not in wrong]


def _first(unread: list[tuple[str, str]]) -> str:
    """`old.py:2:1 (syntax error: ...); ...`, of places and reasons."""
    texts = [say("{place} ({reason})", place=where, reason=clean(why)) for where, why in unread[:_FILES]]
    more = say("; and {count} more", count=len(unread) - _FILES) if len(unread) > _FILES else ""
    return say("; ").join(texts) + more


def _covered(source: SourceReport) -> str:
    text = plural(source.constructions, "convolution")
    if source.known < source.constructions:
        text += say(" (C and K known for {count})", count=source.known or say("none"))
    if source.programs:
        text += say(" and ") + plural(source.programs, "program")
    return say("{layers} in {files}", layers=text, files=plural(len(source.files), "Python file"))


def _lacks_size(skip: SkippedRule) -> bool:
    """Whether a layer's rule was skipped for want of a size or the dtype, not of a setting."""
    return skip.layer is not None and any(need.rpartition(".")[2] in _OF_LAYERS for need in skip.needs)


_LEAST_TITLE = 24  # columns of a rule's code and name beside the times lost on several targets
_LEAST_CODE = 12  # the same beside those of one
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


def summary_lines(report: Report, page: Page) -> list[str]:
    """The summary without its heading; empty where there is nothing to sum up."""
    lines = _table(report, page)
    texts = [*_about_times(report), *words.basis_notes(report), *_free(report), *_gaps(report, page.glyphs.more)]
    below = [*_verdicts(report, page), *page.note_lines(texts)]
    if lines and below:
        lines.append("")
    return lines + below


def brief_notes(report: Report) -> list[str]:
    """The same notes in a line each: what the times rest on, infos that are only counted, and what was not checked."""
    return [
        *_about_times(report),
        *words.basis_in_short(report),
        *_fixable(report),
        *filter(None, (_infos(report), _not_checked_in_short(report))),
        *_not_read(report),
        *_quiet(report),
        *_suppressed(report),
    ]


def _infos(report: Report) -> str:
    """How many infos there are, and how many of them ask for a change; empty where there is none."""
    count = report.count("info")
    asking = count - sum(map(words.asks_for_nothing, report.findings))
    infos = plural(count, "info")
    if asking and asking < count:
        return say("{asking} of {infos} to act on, and every reason: --verbose", asking=asking, infos=infos)
    if asking:
        return say("{infos}, and every reason: --verbose", infos=infos)
    return say("{infos}, none to act on: --output concise", infos=infos) if count else ""


def _not_checked_in_short(report: Report) -> str:
    """How many rules could not be checked, for want of what; empty where all were."""
    rules = {skip.code for skip in report.skipped}
    needs = dict.fromkeys(need for skip in report.skipped for need in skip.needs)
    if not rules:
        return ""
    named = (f"{say(need)} ({_OPTIONS[need]})" if need in _OPTIONS else say(need) for need in list(needs)[:_NEEDS])
    missing = ", ".join(named) or say("a value")
    rest = len(needs) - _NEEDS
    more = say(" and {count} other values", count=rest) if rest > 1 else say(" and 1 other value") if rest == 1 else ""
    return say("not checked: {rules} for want of {missing}", rules=plural(len(rules), "rule"), missing=missing + more)


def _free(report: Report) -> list[str]:
    """How many infos stand in the table alone, and where they are written out."""
    free = sum(map(words.asks_for_nothing, report.findings))
    if not free:
        return []
    infos = plural(free, "info")
    return [say("not shown: {infos} with nothing to change (--output concise has all)", infos=infos)]


def _fixable(report: Report) -> list[str]:
    """How many findings --fix would mend."""
    now, unsafe = report.fixable, report.fixable_unsafe
    if now:
        more = say(" ({count} more with --unsafe-fixes)", count=unsafe) if unsafe else ""
        return ["[*] " + say("{count} fixable with --fix", count=now) + more]
    return ["[*] " + say("{count} fixable with --fix --unsafe-fixes", count=unsafe)] if unsafe else []


def notes(report: Report) -> list[str]:
    """What the times rest on, and what was not checked, not read or suppressed, one line each, for a page."""
    return [clean(text) for text in (*_about_times(report), *words.basis_notes(report), *_gaps(report, UNICODE.more))]


def _gaps(report: Report, more: str) -> list[str]:
    """What --fix would mend, and what was not checked, not read or suppressed."""
    return [*_fixable(report), *_not_checked(report, more), *_not_read(report), *_suppressed(report)]


def coverage_ink(report: Report) -> str:
    """The colour of the last line: red for errors and for an incomplete run, green for nothing found."""
    if report.errors or report.count("error"):
        return "poor"
    return "fair" if report.count("warning") else "good"


def _table(report: Report, page: Page) -> list[str]:
    """One row per rule that fired, in order of appearance, with the time lost to it on each target."""
    by_rule = grouped((finding.rule.code, finding) for finding in report.findings)
    if not by_rule:
        return []
    gpus = report.targets or ("",)
    several_targets = len(gpus) > 1
    losses: dict[str, dict[str, str]] = {}
    if len({total.mode for total in report.totals}) <= 1:  # a step and a forward pass have no sum
        losses = {code: own for code, findings in by_rule.items() if (own := _lost(findings, gpus))}
    heads = []
    if losses:
        of_step = all(total.step_us is not None for total in report.totals)
        alone = say("lost of step") if of_step else say("lost")
        heads = [page.shown(say("lost, {gpu}", gpu=gpu) if several_targets else alone) for gpu in gpus]
    rule, findings_title = page.shown(say("rule")), page.shown(say("findings"))
    worst = {code: words.gravest_first(findings)[0].severity for code, findings in by_rule.items()}
    severity_words = {severity: page.shown(words.severity_word(severity)) for severity in SEVERITIES}
    graves = max(7, *(columns(severity_words[severity]) for severity in worst.values()))
    sizes = [max(8, columns(findings_title)), *(max(9, columns(head)) for head in heads)]
    room = page.width - 8 - graves - sum(sizes) - 2 * len(sizes)
    beside = room >= (_LEAST_TITLE if several_targets else _LEAST_CODE)  # else the times stand below their rule
    if not beside:
        heads, sizes = [], sizes[:1]
        room = page.width - 10 - graves - sizes[0]
    titles = {
        code: shorten(page.shown(f"{code}  {findings[0].rule.name}"), room, page.glyphs.more)
        for code, findings in by_rule.items()
    }
    sizes = [max(map(columns, (rule, *titles.values()))), *sizes]
    sides = "l" + "r" * (len(sizes) - 1)
    head = row([rule, findings_title, *heads], sizes, sides, page.glyphs.more)
    lines = [page.paint("faint", f"  {'':{graves}}  {head}")]
    for code, findings in by_rule.items():
        severity, own = worst[code], losses.get(code, {})
        word = page.paint(severity, severity_words[severity]) + " " * (graves - columns(severity_words[severity]))
        cells = [titles[code], str(len(findings)), *(own.get(gpu, "-") for gpu in gpus if heads)]
        lines.append(f"  {word}  {row(cells, sizes, sides, page.glyphs.more)}")
        if own and not beside:
            times = say(", ").join(say("{time} on {gpu}", time=own[gpu], gpu=gpu) for gpu in gpus if gpu in own)
            text = page.shown(say("lost: {each}", each=times))
            lines += [f"{'':11}{line}" for line in wrap(text, page.width - 11)]
    return lines


def _lost(findings: Sequence[Finding], gpus: Sequence[str]) -> dict[str, str]:
    """The time lost to findings of one rule, on each target where it is known."""
    lost_us: dict[str, float] = {}
    for finding in findings:
        gpu = finding.gpu or gpus[0]
        price_us = finding.price_us
        if price_us is not None and gpu in gpus and (finding.advised or price_us > 0):
            lost_us[gpu] = lost_us.get(gpu, 0.0) + price_us
    return {gpu: duration(us) for gpu, us in lost_us.items()}


def _verdicts(report: Report, page: Page) -> list[str]:
    """Time, grade, and what all advice makes of it: a line for each target and mode, named where there are several."""
    lines = []
    several_targets = len(report.targets) > 1
    for total, text in words.verdicts(report):
        for line in (text, *words.step_lines(total)):
            verdict = say("on {gpu}: {verdict}", gpu=total.gpu, verdict=line) if several_targets else line
            lines += verdict_lines(total, verdict, page)
    return lines


def verdict_lines(total: NetworkTotal, text: str, page: Page) -> list[str]:
    """A sentence on a total, set in and broken to the width, its grade in its colour."""
    first, *rest = page.note_lines([text])
    if total.grade is not None:
        letter = page.paint(GRADE_INKS.get(total.grade, "strong"), total.grade)
        before, after = (say("grade {grade}", grade=grade) for grade in (total.grade, letter))
        first = first.replace(before, after, 1)
    return [first, *rest]


def _about_times(report: Report) -> list[str]:
    return [
        *words.version_notes(report),
        *words.calibration_notes(report.calibrations, several=len(report.targets) > 1),
        *words.host_notes(report),
        *words.step_notes(report),
        *words.weak_notes(report),
        *words.batch_notes(report),
        *words.layout_notes(report),
        *words.dtype_notes(report),
    ]


def _not_checked(report: Report, more: str) -> list[str]:
    """What was needed, which rules, on how many layers: one entry for the network, one per set of values of layers."""
    rules: dict[tuple[str, ...], dict[str, None]] = {}
    layers: dict[tuple[str, ...], set[tuple[str, str]]] = {}
    settings = tuple(dict.fromkeys(need for skip in report.skipped if skip.layer is None for need in skip.needs))
    for skip in report.skipped:
        needs = settings if skip.layer is None else skip.needs
        rules.setdefault(needs, {})[skip.code] = None
        if skip.layer is not None:
            layers.setdefault(needs, set()).add((skip.path, skip.layer))
    texts = []
    for needs, codes in rules.items():
        listed = ", ".join(list(codes)[:_CODES]) + (f", {more}" if len(codes) > _CODES else "")
        where = say(" on {layers}", layers=plural(len(layers[needs]), "layer")) if needs in layers else ""
        texts.append(
            say(
                "not checked: {rules}{where} for want of {missing} ({codes})",
                rules=plural(len(codes), "rule"),
                where=where,
                missing=", ".join(map(say, needs)) or say("a value"),
                codes=listed,
            )
        )
    return texts


def _not_read(report: Report) -> list[str]:
    """Of how many convolutions in Python C or K is unknown, by reason; and what was not read at all."""
    source, texts = report.source, []
    if source is not None and source.unread:
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
    return [*texts, *unread_parts(report)]


def _suppressed(report: Report) -> list[str]:
    if not report.suppressed:
        return []
    ways = Counter(entry.by for entry in report.suppressed)
    by = say(", ").join(say(_WAYS[way], count=count) for way, count in ways.items())
    count = plural(len(report.suppressed), "finding")
    return [say("suppressed: {findings} ({by})", findings=count, by=by)]
