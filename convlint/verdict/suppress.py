"""What a spec's comments silence, and what is wrong with the comments themselves (rules of scope `suppression`)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date
from types import SimpleNamespace
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from convlint.errors import RuleError, UsageError
from convlint.model.layer import ConvLayer
from convlint.model.location import Location
from convlint.model.network import Network
from convlint.report import Finding, Fix, Skipped
from convlint.rulebook.book import Rulebook
from convlint.rulebook.expr import ExprError
from convlint.rulebook.rule import Rule
from convlint.verdict.comments import Comment, RuleKey, find_comments
from convlint.verdict.select import matching


class Mention(Struct, frozen=True, kw_only=True):
    """One rule that a comment or the config names to be silenced, as rules of scope `suppression` judge it."""

    text: str  # what the user wrote
    location: Location
    layer: str | None = None
    rule: str = ""
    reason: str = ""
    problem: str = ""
    used: bool = True
    expires: date | None = None
    expired: bool = False

    def values(self) -> dict[str, Any]:
        """The names that such a rule may read."""
        expires = "" if self.expires is None else self.expires.isoformat()
        return {
            "suppression": SimpleNamespace(
                text=self.text, rule=self.rule, reason=self.reason, problem=self.problem, known=not self.problem,
                used=self.used, expires=expires, expired=self.expired,
            )
        }  # fmt: skip


class Comments:
    """The comments of one spec: what they silence, and what becomes of each rule that they name."""

    def __init__(self, network: Network, rulebook: Rulebook, codes: Collection[str], today: date) -> None:
        """`codes` are the rules that count."""
        found = find_comments("\n".join(network.source_lines)) if network.source_lines else ()
        self._sheet = _Sheet(network, rulebook, codes, today)
        self._entries = [entry for comment in found for entry in self._sheet.entries(comment)]
        self._index = _Index(self._entries, self._sheet)

    def __bool__(self) -> bool:
        return bool(self._entries)

    def reason(self, finding: Finding) -> str | None:
        """Why a comment silences `finding`, which is of one layer or of the network; None where none does."""
        applying = self._index.applying(finding) if self._entries else []
        for entry in applying:
            entry.used = True
        return applying[0].comment.reason if applying else None

    def mentions(self, skipped: Iterable[Skipped]) -> list[Mention]:
        """Every rule that a comment names, once all findings have been asked about."""
        skips = {(skip.code, skip.layer) for skip in skipped} if self._entries else set()
        return [self._sheet.mention(entry, skips) for entry in self._entries]


class _Entry:
    """One rule of one comment."""

    def __init__(self, comment: Comment, key: RuleKey | None, codes: set[str], problem: str, layers: set[str]) -> None:
        self.comment, self.key, self.codes, self.problem, self.layers = comment, key, codes, problem, layers
        self.expired = self.used = False


class _Index:
    """Entries by what they can apply to, so that a thousand comments on ten thousand layers take no time."""

    def __init__(self, entries: Iterable[_Entry], sheet: _Sheet) -> None:
        self._path = sheet.path
        self._of_file: defaultdict[str, list[_Entry]] = defaultdict(list)  # code -> entries
        self._of_layer: defaultdict[tuple[str, str], list[_Entry]] = defaultdict(list)  # code, layer -> entries
        self._of_line: defaultdict[tuple[str, int], list[_Entry]] = defaultdict(list)  # code, line -> entries
        for entry in entries:
            for code in () if entry.expired else entry.codes:
                if entry.comment.whole_file:
                    self._of_file[code].append(entry)
                    continue
                for line in {entry.comment.line, sheet.below(entry.comment)} - {None}:
                    self._of_line[code, line or 0].append(entry)
                for layer in entry.layers:
                    self._of_layer[code, layer].append(entry)

    def applying(self, finding: Finding) -> list[_Entry]:
        """Those for the file, for the layer, and for the line that it points at."""
        code, at = finding.rule.code, finding.location
        found = [*self._of_file.get(code, ())]
        if finding.layer is not None:
            found += self._of_layer.get((code, finding.layer), ())
        if at.path == self._path and at.line is not None:
            found += [entry for entry in self._of_line.get((code, at.line), ()) if entry not in found]
        return found


class _Sheet:
    """One spec: which lines are whose, and which comment applies to what."""

    def __init__(self, network: Network, rulebook: Rulebook, codes: Collection[str], today: date) -> None:
        self.path, self.rulebook, self.codes, self.today = network.path, rulebook, set(codes), today
        self.lines = network.source_lines or ()
        self.starting: defaultdict[int, set[str]] = defaultdict(set)  # first line -> layers
        self.standing: defaultdict[int, set[str]] = defaultdict(set)  # any line -> layers
        for layer in network.layers if self.lines else ():
            first, last = self._extent(layer)
            self.starting[first].add(layer.name)
            for line in range(first, last + 1):
                self.standing[line].add(layer.name)
        self.keys: dict[str, tuple[set[str], str]] = {}
        self.above: tuple[int, int] = (0, 0)  # the lines of comments that were passed over last, end excluded

    def entries(self, comment: Comment) -> Iterator[_Entry]:
        """The rules that a comment names; one without a rule where it cannot be read."""
        layers = set() if comment.whole_file else self._layers_at(comment)
        if comment.problem:
            yield _Entry(comment, None, set(), comment.problem, layers)
        for key in comment.rules:
            codes, problem = self._matching(key.text)
            entry = _Entry(comment, key, codes, problem, layers)
            entry.expired = comment.expires is not None and comment.expires < self.today
            yield entry

    def _matching(self, key: str) -> tuple[set[str], str]:
        """The codes of the rules that `key` names, or why there are none; worked out once for each key."""
        if key not in self.keys:
            try:
                self.keys[key] = matching(key, self.rulebook), ""
            except UsageError as error:
                self.keys[key] = set(), str(error)
        return self.keys[key]

    def mention(self, entry: _Entry, skipped: Collection[tuple[str, str | None]]) -> Mention:
        """The entry as the rules on suppressions see it; used where nobody can say that it is not."""
        comment, key = entry.comment, entry.key
        span = (comment.column, comment.end_column) if key is None else (key.column, key.end_column)
        checked = entry.codes & self.codes
        anywhere = {code for code, _ in skipped} if comment.whole_file else set()
        unsure = not checked or any(
            code in anywhere or any((code, layer) in skipped for layer in (None, *entry.layers)) for code in checked
        )
        return Mention(
            text=comment.text,
            rule="" if key is None else key.text,
            location=Location(
                path=self.path, line=comment.line, column=span[0], end_line=comment.line, end_column=span[1]
            ),
            layer=next(iter(entry.layers)) if len(entry.layers) == 1 else None,
            reason=comment.reason,
            problem=entry.problem,
            used=entry.used or unsure,
            expires=comment.expires,
            expired=entry.expired,
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
            line = comment.line + 1
            while line <= len(self.lines) and self.lines[line - 1].lstrip().startswith("#"):
                line += 1
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


def judge_mentions(mentions: Sequence[Mention], rulebook: Rulebook) -> list[Finding]:
    """What the rules of scope `suppression` find in `mentions`. Raises RuleError where one cannot be evaluated."""
    rules = [rule for rule in rulebook.rules if rule.scope == "suppression"]
    ordinals: Counter[tuple[str, str, str, str]] = Counter()
    findings = []
    for mention in mentions:
        values = mention.values()
        for rule in rules:
            try:
                finding = _judge(rule, values, mention)
            except ExprError as error:
                raise RuleError(error.message, path=rule.path) from error
            if finding is not None:
                key = (rule.info.code, mention.location.path, mention.layer or "", mention.rule)
                ordinals[key] += 1
                findings.append(replace(finding, identity=(*key, ordinals[key])))
    return findings


def _judge(rule: Rule, values: dict[str, Any], mention: Mention) -> Finding | None:
    values = dict(values)
    right = rule.decision.evaluate(values)
    if right is None or right:
        return None
    case = next((case for case in rule.cases[:-1] if case.when and case.when.evaluate(values)), rule.cases[-1])
    fix = case.fix
    return Finding(
        rule=rule.info,
        severity=case.severity,
        message=case.message.render(values),
        location=mention.location,
        layer=mention.layer,
        fix=None if fix is None else Fix(describe=fix.describe.render(values), safety=fix.safety, set={}),
    )
