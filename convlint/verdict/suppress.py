"""What the comments of a spec, and of modules, silence; which of them can be read, and are used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date

from convlint.model.layer import ConvLayer
from convlint.model.network import Network
from convlint.report import Finding, Skipped
from convlint.rulebook.book import Rulebook
from convlint.verdict.comments import Comment, find_comments
from convlint.verdict.mentions import Mention
from convlint.verdict.named import Named, Naming, line_below


class Comments:
    """The comments of one spec, or of the modules that build a network: what they silence, and what becomes of each.

    Of a module only those count that stand at a layer, or are for the whole file. Whether such a one is used is never
    said: other networks may be built at the same line.
    """

    def __init__(self, network: Network, rulebook: Rulebook, codes: Collection[str], today: date) -> None:
        """`codes` are the rules that count."""
        self._sheets = []
        texts = {network.path: network.source_lines or (), **network.code_lines}
        for path, lines in texts.items():
            found = find_comments("\n".join(lines), python=path in network.code_lines) if lines else ()
            if found:
                layers = [layer for layer in network.layers if layer.path == path or path == network.path]
                sheet = _Sheet(path, lines, layers, rulebook, codes, today, is_spec=path == network.path)
                sheet.read(found)
                self._sheets.append(sheet)

    def __bool__(self) -> bool:
        return any(sheet.all for sheet in self._sheets)

    def reason(self, finding: Finding) -> str | None:
        """Why a comment silences `finding`, which is of one layer or of the network; None where none does."""
        applying = [entry for sheet in self._sheets for entry in sheet.index.applying(finding)]
        for entry in applying:
            entry.named.used = True
        return applying[0].named.comment.reason if applying else None

    def mentions(self, skipped: Iterable[Skipped]) -> list[Mention]:
        """Every rule that a comment names, once all findings have been asked about."""
        skips = {(skip.code, skip.layer) for skip in skipped} if self else set()
        return [sheet.mention(entry, skips) for sheet in self._sheets for entry in sheet.all]


class _Entry:
    """A rule that a comment names, and the layers that it is about."""

    def __init__(self, named: Named, layers: set[str]) -> None:
        self.named, self.layers = named, layers


class _Index:
    """Entries by what they can apply to, so that a thousand comments on ten thousand layers take no time."""

    def __init__(self, entries: Iterable[_Entry], sheet: _Sheet) -> None:
        self._path, self._is_spec = sheet.path, sheet.is_spec
        self._of_file: defaultdict[str, list[_Entry]] = defaultdict(list)  # code -> entries
        self._of_layer: defaultdict[tuple[str, str], list[_Entry]] = defaultdict(list)  # code, layer -> entries
        self._of_line: defaultdict[tuple[str, int], list[_Entry]] = defaultdict(list)  # code, line -> entries
        for entry in entries:
            named = entry.named
            for code in () if named.expired else named.codes:
                if named.comment.whole_file:
                    self._of_file[code].append(entry)
                    continue
                for line in {named.comment.line, sheet.below(named.comment)} - {None}:
                    self._of_line[code, line or 0].append(entry)
                for layer in entry.layers:
                    self._of_layer[code, layer].append(entry)

    def applying(self, finding: Finding) -> list[_Entry]:
        """Those for the file, for the layer, and for the line that it points at."""
        code, at = finding.rule.code, finding.location
        if not self._is_spec and at.path != self._path:
            return []
        found = [*self._of_file.get(code, ())]
        if finding.layer is not None:
            found += self._of_layer.get((code, finding.layer), ())
        if at.path == self._path and at.line is not None:
            found += [entry for entry in self._of_line.get((code, at.line), ()) if entry not in found]
        return found


class _Sheet:
    """One spec or module: which lines are whose, and which comment applies to what."""

    def __init__(
        self, path: str, lines: Sequence[str], layers: Iterable[ConvLayer], rulebook: Rulebook, codes: Collection[str],
        today: date, *, is_spec: bool,
    ) -> None:  # fmt: skip
        self.path, self.codes, self.naming = path, set(codes), Naming(rulebook, today)
        self.lines, self.is_spec = lines, is_spec
        self.starting: defaultdict[int, set[str]] = defaultdict(set)  # first line -> layers
        self.standing: defaultdict[int, set[str]] = defaultdict(set)  # any line -> layers
        for layer in layers:
            first, last = self._extent(layer)
            self.starting[first].add(layer.name)
            for line in range(first, min(last, len(lines)) + 1):
                self.standing[line].add(layer.name)
        self.above: tuple[int, int] = (0, 0)  # the lines of comments that were passed over last, end excluded
        self.all: list[_Entry] = []
        self.index = _Index((), self)

    def read(self, comments: Iterable[Comment]) -> None:
        """Takes in what the file's comments say."""
        for comment in comments:
            if self.is_spec or comment.whole_file or self._layers_at(comment):
                self.all += self.entries(comment)
        self.index = _Index(self.all, self)

    def entries(self, comment: Comment) -> Iterator[_Entry]:
        """The rules that a comment names; one without a rule where it cannot be read."""
        layers = set() if comment.whole_file else self._layers_at(comment)
        for named in self.naming.of(comment):
            yield _Entry(named, layers)

    def mention(self, entry: _Entry, skipped: Collection[tuple[str, str | None]]) -> Mention:
        """The entry as the rules on suppressions see it; used where nobody can say that it is not."""
        checked = entry.named.codes & self.codes
        anywhere = {code for code, _ in skipped} if entry.named.comment.whole_file else set()
        unsure = not checked or any(
            code in anywhere or any((code, layer) in skipped for layer in (None, *entry.layers)) for code in checked
        )
        return entry.named.mention(
            self.path,
            used=entry.named.used or unsure or not self.is_spec,
            layer=next(iter(entry.layers)) if len(entry.layers) == 1 else None,
        )

    def _layers_at(self, comment: Comment) -> set[str]:
        below = self.below(comment)
        starting = self.starting.get(below) if below is not None else None
        return starting or self.standing.get(comment.line, set())

    def below(self, comment: Comment) -> int | None:
        """The line that a comment on a line of its own stands above, other comments between them passed over."""
        if not comment.alone:
            return None
        first, line = self.above
        if not first <= comment.line < line:
            line = line_below(comment, self.lines)
            self.above = comment.line, line
        return line

    def _extent(self, layer: ConvLayer) -> tuple[int, int]:
        """First and last line of a layer; a block's end is the next token, so lines without content are taken off."""
        first, _, last, end_column = layer.spans.get("layer", (0, 0, -1, 0))
        if last > first and not self._line(last)[: end_column - 1].strip():
            last -= 1
        while last > first and (not self._line(last).strip() or self._line(last).lstrip().startswith("#")):
            last -= 1
        return first, last

    def _line(self, number: int) -> str:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""
