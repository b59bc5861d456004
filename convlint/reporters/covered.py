"""The line that every format for people ends with: what was covered, and what was not."""

from __future__ import annotations

from convlint.files.languages.saying import say
from convlint.files.safe import clean
from convlint.model.source import SourceReport, UnreadCell
from convlint.report import Report, Skipped
from convlint.reporters.words import partly_read, place, place_of, plural

# what a layer is made of: without one of these it is not checked in full, whatever settings are known
_OF_LAYERS = frozenset((
    "N", "C", "D", "H", "W", "K", "Z", "P", "Q", "T", "R", "S", "StrideD", "U", "V", "PadD", "PadH", "PadW",
    "PadD_end", "PadH_end", "PadW_end", "DilD", "DilH", "DilW", "groups", "dtype",
))  # fmt: skip
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
    wrong, partly = {error.path for error in report.errors}, partly_read(report)
    if unread := len(wrong - partly):
        line += say("; {what} not read", what=plural(unread, "input"))
    if incomplete := len(wrong & partly):
        line += say("; {what} incomplete", what=plural(incomplete, "input"))
    unread_files = () if report.source is None else report.source.unread_files.keys() - wrong
    if unread_files:
        line += say("; {what} not read", what=plural(len(unread_files), "Python file"))
    if cells := _cells(report):
        line += say("; {what} not read", what=plural(len(cells), "cell"))
    return line


def ending(report: Report) -> list[str]:
    """The last line, and before it which Python files and cells could not be read, where that is so."""
    return [*unread_parts(report), coverage(report)]


def unread_parts(report: Report) -> list[str]:
    """Which Python files, and which cells of notebooks, could not be read: a line for each kind that there is."""
    return [*filter(None, (_unread_files(report), _unread_cells(report)))]


def _cells(report: Report) -> list[UnreadCell]:
    """The cells that could not be read, but for those that are errors."""
    said = {error.path for error in report.errors}
    return [] if report.source is None else [each for each in report.source.unread_cells if each.at.path not in said]


def _unread_cells(report: Report) -> str:
    """`not read: 1 cell: train.ipynb:cell 2:1:17 (syntax error: ...)`."""
    cells = _cells(report)
    if not cells:
        return ""
    places = [say("{place} ({reason})", place=place_of(each.at), reason=clean(each.why)) for each in cells]
    return say("not read: {what}: {places}", what=plural(len(cells), "cell"), places=_first(places))


def _first(places: list[str]) -> str:
    more = say("; and {count} more", count=len(places) - _FILES) if len(places) > _FILES else ""
    return say("; ").join(places[:_FILES]) + more


def _unread_files(report: Report) -> str:
    """`not read: 5 of 8 Python files: old.py:2:1 (syntax error: ...); ...`, but for those that are errors."""
    source = report.source
    if source is None:
        return ""
    said = {error.path for error in report.errors}
    files = [
        say("{place} ({reason})", place=place(path, each.line, each.column), reason=clean(each.why))
        for path, each in sorted(source.unread_files.items())
        if path not in said
    ]
    if not files:
        return ""
    return say(
        "not read: {count} of {what}: {places}",
        count=len(files),
        what=plural(source.given, "Python file"),
        places=_first(files),
    )


def _covered(source: SourceReport) -> str:
    found = plural(source.constructions, "convolution")
    if source.known < source.constructions:
        found += say(" (C and K known for {count})", count=source.known or say("none"))
    if source.programs:
        found += say(" and ") + plural(source.programs, "program")
    return say("{layers} in {files}", layers=found, files=plural(len(source.files), "Python file"))


def _lacks_size(skip: Skipped) -> bool:
    """Whether a layer's rule was skipped for want of a size or the dtype, not of a setting."""
    return skip.layer is not None and any(need.rpartition(".")[2] in _OF_LAYERS for need in skip.needs)
