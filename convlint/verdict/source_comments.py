"""What the comments of Python source silence, which was read and not run: at literals, at constructions, in files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from datetime import date

from convlint.model.location import Location
from convlint.model.source import SourceLayer, SourceReading
from convlint.report import Finding, Skipped
from convlint.rulebook.book import Rulebook
from convlint.verdict.comments import MARKER, Comment, find_comments
from convlint.verdict.mentions import Mention
from convlint.verdict.named import Named, Naming, line_below

_Line = tuple[str, int]


class SourceComments:
    """The comments of the files that were read: what they silence, and what becomes of each.

    One that is on a line, or alone above it, silences what stands on that line: the literal or statement that a finding
    points at, or the construction of a layer that it is about.
    """

    def __init__(self, reading: SourceReading, rulebook: Rulebook, codes: Collection[str], today: date) -> None:
        """`codes` are the rules that count."""
        self._codes, self._reading = set(codes), reading
        self._entries: list[_SourceEntry] = []
        self._of_file: defaultdict[tuple[str, str], list[_SourceEntry]] = defaultdict(list)  # code, path -> entries
        self._of_line: defaultdict[tuple[str, _Line], list[_SourceEntry]] = defaultdict(list)  # code, line -> entries
        self._layers: defaultdict[str, list[SourceLayer]] = defaultdict(list)  # by name
        naming = Naming(rulebook, today)
        for path, lines in reading.lines.items():
            for comment in (
                find_comments("\n".join(lines), python=True) if any(MARKER in line for line in lines) else ()
            ):
                self._entries += self._taken(path, lines, comment, naming)
        if self._entries:
            for each in reading.layers:
                self._layers[each.layer.name].append(each)
        self._unread = {(each.at.path, each.at.line) for each in reading.unread}

    def __bool__(self) -> bool:
        return bool(self._entries)

    def reason(self, finding: Finding) -> str | None:
        """Why a comment silences `finding`, which is of one layer or program; None where none does."""
        code, applying = finding.rule.code, list[_SourceEntry]()
        for at in (finding.location, *self._constructions(finding)):
            applying += self._of_file.get((code, at.path), ())
            for line in range(at.line or 0, max(at.end_line or 0, at.line or 0) + 1):
                applying += self._of_line.get((code, (at.path, line)), ())
        for entry in applying:
            entry.named.used = True
        return applying[0].named.comment.reason if applying else None

    def mentions(self, skipped: Iterable[Skipped]) -> list[Mention]:
        """Every rule that a comment of the files that were given names, once all findings have been asked about."""
        given, skips = set(self._reading.files), {(skip.code, skip.path) for skip in skipped}
        return [self._mention(entry, skips) for entry in self._entries if entry.path in given]

    def _constructions(self, finding: Finding) -> Iterator[Location]:
        """Where the layers of that name are constructed which the finding can be about."""
        for each in self._layers.get(finding.layer or "", ()):
            at = each.layer.locate()
            literals = (literal.at for several in each.stated.values() for literal in several)
            if finding.location.path == at.path or finding.location in literals:
                yield at

    def _taken(self, path: str, lines: tuple[str, ...], comment: Comment, naming: Naming) -> Iterator[_SourceEntry]:
        on = {comment.line, line_below(comment, lines)} if comment.alone else {comment.line}
        for named in naming.of(comment):
            entry = _SourceEntry(path, named, on)
            for code in () if named.expired else named.codes:
                if comment.whole_file:
                    self._of_file[code, path].append(entry)
                else:
                    for line in on:
                        self._of_line[code, (path, line)].append(entry)
            yield entry

    def _mention(self, entry: _SourceEntry, skipped: Collection[tuple[str, str]]) -> Mention:
        """The entry as the rules on suppressions see it; used where nobody can say that it is not."""
        checked = entry.named.codes & self._codes
        unsure = (
            not checked
            or not self._reading.whole  # what was left out may lead to a finding here
            or any((entry.path, line) in self._unread for line in entry.on)
            or any((code, entry.path) in skipped for code in checked)
        )
        return entry.named.mention(entry.path, used=entry.named.used or unsure)


class _SourceEntry:
    """A rule that a comment of a file names, and the lines that it is on."""

    def __init__(self, path: str, named: Named, on: set[int]) -> None:
        self.path, self.named, self.on = path, named, on
