"""Findings that the user silenced, by comments, the config or a baseline; what is wrong with such comments.

Findings are judged for one layer at a time, before layers are joined: a comment takes its own layer out alone.
"""

from __future__ import annotations

import io
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date
from itertools import islice
from types import SimpleNamespace
from typing import Any

import yaml
from msgspec import Struct
from msgspec.structs import replace

from convlint.files.located_yaml import LINE_BREAK, Loader
from convlint.files.patterns import pattern
from convlint.model.errors import RuleError, UsageError
from convlint.model.grouping import grouped
from convlint.model.layer import ConvLayer
from convlint.model.location import Location
from convlint.model.network import Network
from convlint.model.report import Finding, Fix, SkippedRule, Suppressed
from convlint.model.source import SourceReading
from convlint.rulebook.book import Rulebook
from convlint.rulebook.expr import ExprError
from convlint.rulebook.rule import Rule
from convlint.verdict.baseline import NOTHING_KNOWN, Known
from convlint.verdict.select import Exemption, matching


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
        message=case.message.render(values, code=rule.info.code),
        location=mention.location,
        layer=mention.layer,
        fix=None
        if fix is None
        else Fix(
            describe=fix.describe.render(values, code=rule.info.code), safety=fix.safety, changes=fix.changes, set={}
        ),
    )


MARKER = "convlint:"
_COMMENT = pattern(r"(?:^|(?<=[ \t]))#+[ \t]*convlint:[ \t]*(?P<body>.*)")
_BODY = pattern(
    r"(?P<kind>ignore|file-ignore)[ \t]*\[(?P<rules>[^\[\]]*)\]"
    r"(?:[ \t]+until[ \t]+(?P<until>[^ \t]+))?(?:[ \t]*--[ \t]*(?P<reason>.*))?"
)
_SCALAR_SIGNS = "'\"|>"  # quoted scalars and blocks begin with these
_MOST_TEXT = 500  # characters of a reason, which every report shows
_MOST_RULES = 100  # in one comment
MOST_NAMED = 2_000  # in all comments of a file: each may become a finding of its own
_USAGE = (
    "write ignore[CL102] -- reason, or file-ignore[CL102] -- reason; ignore[CL102] until 2027-01-31 -- reason ends then"
)


class RuleKey(Struct, frozen=True, kw_only=True):
    """One code or name inside the brackets, and the columns that it takes."""

    text: str
    column: int
    end_column: int


class Comment(Struct, frozen=True, kw_only=True):
    """One comment; `problem` says why it cannot be read, and it silences nothing then."""

    line: int
    column: int
    end_column: int
    text: str  # what follows "convlint:", without the reason
    alone: bool  # nothing else stands on its line
    whole_file: bool = False
    rules: tuple[RuleKey, ...] = ()
    reason: str = ""
    expires: date | None = None
    problem: str = ""


def find_comments(text: str, *, python: bool = False) -> tuple[Comment, ...]:
    """All convlint comments in text of YAML or Python that was parsed before; fast where there are none."""
    if MARKER not in text:
        return ()
    matches = []
    for number, line in enumerate(text.split("\n") if python else LINE_BREAK.split(text), 1):
        match = _COMMENT.search(line) if MARKER in line else None
        if match is not None:
            matches.append((number, match))
    if not matches:
        return ()
    places = [(number, match.start() + 1) for number, match in matches]
    quoted = _in_strings(text, places) if python else _in_scalars(text, places)
    comments: list[Comment] = []
    count = 0
    for line, match in matches:
        if (line, match.start() + 1) in quoted:
            continue
        comment = _comment(line, match)
        count += max(1, len(comment.rules))
        if count > MOST_NAMED:
            problem = (
                f"the comments of one file name at most {MOST_NAMED:,} rules: this one and those below are not read"
            )
            comments.append(replace(comment, rules=(), problem=problem))
            break
        comments.append(comment)
    return tuple(comments)


def _in_scalars(text: str, places: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    """Those of the sorted `places` (line, column) that lie in a scalar: a # there begins no comment."""
    if not any(sign in text for sign in _SCALAR_SIGNS):
        return set()  # in a plain scalar, a # behind a space begins a comment
    quoted = set()
    following = 0  # the first place that no scalar so far lies behind
    token: Any
    try:
        for token in yaml.scan(text, Loader=Loader):
            if type(token) is not yaml.ScalarToken or token.plain:
                continue
            block = token.style in ("|", ">")  # behind the sign, on its line, a comment may stand
            line, column = token.start_mark.line + 1, token.start_mark.column + 1
            start = (line + 1, 0) if block else (line, column)
            end = token.end_mark.line + 1, token.end_mark.column + 1
            while following < len(places) and places[following] < end:
                if start < places[following]:
                    quoted.add(places[following])
                following += 1
            if following == len(places):
                break
    except yaml.YAMLError:
        pass  # reported by the reader; what comes before the defect is right
    return quoted


def _in_strings(text: str, places: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    """Those of the `places` (line, column) in Python code at which no comment begins."""
    import tokenize  # of Python files alone

    quoted = set(places)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                line, column = token.start
                quoted -= {place for place in quoted if place[0] == line and place[1] > column}
    except (tokenize.TokenError, SyntaxError):
        pass  # what comes before the defect is right
    return quoted


def _comment(line: int, match: re.Match[str]) -> Comment:
    body = match["body"].rstrip(" \t")
    column, end = match.start() + 1, match.start("body") + len(body) + 1
    alone = not match.string[: match.start()].strip()
    parts = _BODY.fullmatch(body)
    if parts is None:
        return Comment(line=line, column=column, end_column=end, text=body[:80], alone=alone, problem=_USAGE)
    start = match.start("body") + parts.start("rules") + 1
    rules = tuple(
        RuleKey(text=key.group(), column=start + key.start(), end_column=start + key.end())
        for key in islice(re.finditer(r"[^\s,]+", parts["rules"]), _MOST_RULES + 1)
    )
    problem = "" if rules else _USAGE
    if len(rules) > _MOST_RULES:
        rules, problem = (), f"names more than {_MOST_RULES} rules"
    expires = None
    if parts["until"]:
        try:
            expires = date.fromisoformat(parts["until"])
        except ValueError:
            problem = "until takes a date such as 2026-12-31"
    written = body[: parts.end("until") if parts["until"] else parts.end("rules") + 1]
    return Comment(
        line=line,
        column=column,
        end_column=end,
        text=written[:80],
        alone=alone,
        whole_file=parts["kind"] == "file-ignore",
        rules=() if problem else rules,
        reason=(parts["reason"] or "")[:_MOST_TEXT],
        expires=expires,
        problem=problem,
    )


class NamedRule:
    """One rule of one comment, with the codes that match it; `key` is None for a comment that cannot be read."""

    def __init__(self, comment: Comment, key: RuleKey | None, codes: set[str], problem: str, *, expired: bool) -> None:
        self.comment, self.key, self.codes, self.problem, self.expired = comment, key, codes, problem, expired
        self.used = False

    def mention(self, path: str, *, used: bool, layer: str | None = None) -> Mention:
        """The record that rules on suppressions judge; `used` also if nobody can tell that it is unused."""
        comment, key = self.comment, self.key
        column, end_column = (comment.column, comment.end_column) if key is None else (key.column, key.end_column)
        return Mention(
            text=comment.text,
            rule="" if key is None else key.text,
            location=Location(
                path=path, line=comment.line, column=column, end_line=comment.line, end_column=end_column
            ),
            layer=layer,
            reason=comment.reason,
            problem=self.problem,
            used=used,
            expires=comment.expires,
            expired=self.expired,
        )


class Naming:
    """Looks up the rules that comments name, each key once, and whether a comment has expired today."""

    def __init__(self, rulebook: Rulebook, today: date) -> None:
        self._rulebook, self._today = rulebook, today
        self._known: dict[str, tuple[set[str], str]] = {}

    def of(self, comment: Comment) -> Iterator[NamedRule]:
        """The rules of a comment; one without a key where it cannot be read."""
        if comment.problem:
            yield NamedRule(comment, None, set(), comment.problem, expired=False)
        expired = comment.expires is not None and comment.expires < self._today
        for key in comment.rules:
            codes, problem = self._meant(key.text)
            yield NamedRule(comment, key, codes, problem, expired=expired)

    def _meant(self, key: str) -> tuple[set[str], str]:
        if key not in self._known:
            try:
                self._known[key] = matching(key, self._rulebook), ""
            except UsageError as error:
                self._known[key] = set(), str(error)
        return self._known[key]


def line_below(comment: Comment, lines: Sequence[str]) -> int:
    """The line that a comment on a line of its own stands above, other comments between them passed over."""
    line = comment.line + 1
    while line <= len(lines) and lines[line - 1].lstrip().startswith("#"):
        line += 1
    return line


def _reason_of(applying: Sequence[NamedRule]) -> str | None:
    """The reason of the first rule; marks all as used, since each alone would silence the finding."""
    for rule in applying:
        rule.used = True
    return applying[0].comment.reason if applying else None


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
        naming = Naming(rulebook, today)
        for path, lines in reading.lines.items():
            for comment in (
                find_comments("\n".join(lines), python=True) if any(MARKER in line for line in lines) else ()
            ):
                self._entries += self._taken(path, lines, comment, naming)
        self._layers = grouped((record.layer.name, record) for record in reading.layers) if self._entries else {}
        self._unread = {(place.at.path, place.at.line) for place in reading.unread}

    def __bool__(self) -> bool:
        return bool(self._entries)

    def reason(self, finding: Finding) -> str | None:
        """Why a comment silences `finding`, which is of one layer or program; None where none does."""
        code, applying = finding.rule.code, list[_SourceEntry]()
        for at in (finding.location, *self._constructions(finding)):
            applying += self._of_file.get((code, at.path), ())
            for line in range(at.line or 0, max(at.end_line or 0, at.line or 0) + 1):
                applying += self._of_line.get((code, (at.path, line)), ())
        return _reason_of([entry.rule for entry in applying])

    def mentions(self, skipped: Iterable[SkippedRule]) -> list[Mention]:
        """The rules that comments in the given files name; to be called once all findings have been asked about."""
        given, skips = set(self._reading.files), {(skip.code, skip.path) for skip in skipped}
        return [self._mention(entry, skips) for entry in self._entries if entry.path in given]

    def _constructions(self, finding: Finding) -> Iterator[Location]:
        """Where layers with the finding's name are constructed, of those that it can be about."""
        for record in self._layers.get(finding.layer or "", ()):
            at = record.layer.locate()
            literals = (literal.at for group in record.stated.values() for literal in group)
            if finding.location.path == at.path or finding.location in literals:
                yield at

    def _taken(self, path: str, lines: tuple[str, ...], comment: Comment, naming: Naming) -> Iterator[_SourceEntry]:
        on = {comment.line, line_below(comment, lines)} if comment.alone else {comment.line}
        for rule in naming.of(comment):
            entry = _SourceEntry(path, rule, on)
            for code in () if rule.expired else rule.codes:
                if comment.whole_file:
                    self._of_file[code, path].append(entry)
                else:
                    for line in on:
                        self._of_line[code, (path, line)].append(entry)
            yield entry

    def _mention(self, entry: _SourceEntry, skipped: Collection[tuple[str, str]]) -> Mention:
        """The entry as the rules on suppressions see it; used where nobody can say that it is not."""
        checked = entry.rule.codes & self._codes
        unsure = (
            not checked
            or not self._reading.whole  # what was left out may lead to a finding here
            or any((entry.path, line) in self._unread for line in entry.on)
            or any((code, entry.path) in skipped for code in checked)
        )
        return entry.rule.mention(entry.path, used=entry.rule.used or unsure)


class _SourceEntry(Struct, frozen=True):
    """A rule that a comment of a file names, and the lines that it is on."""

    path: str
    rule: NamedRule
    on: set[int]


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
            comments = find_comments("\n".join(lines), python=path in network.code_lines) if lines else ()
            if comments:
                layers = [layer for layer in network.layers if layer.path == path or path == network.path]
                sheet = _Sheet(path, lines, layers, rulebook, codes, today, is_spec=path == network.path)
                sheet.read(comments)
                self._sheets.append(sheet)

    def __bool__(self) -> bool:
        return any(sheet.all for sheet in self._sheets)

    def reason(self, finding: Finding) -> str | None:
        """Why a comment silences `finding`, which is of one layer or of the network; None where none does."""
        applying = [entry for sheet in self._sheets for entry in sheet.applying(finding)]
        return _reason_of([entry.rule for entry in applying])

    def mentions(self, skipped: Iterable[SkippedRule]) -> list[Mention]:
        """The rules that comments name; to be called once all findings have been asked about."""
        skips = {(skip.code, skip.layer) for skip in skipped} if self else set()
        return [sheet.mention(entry, skips) for sheet in self._sheets for entry in sheet.all]


class _Entry(Struct, frozen=True):
    """A rule that a comment names, and the layers that it is about."""

    rule: NamedRule
    layers: set[str]


class _Sheet:
    """One spec or module: which lines are whose, and which comment applies to what.

    Entries are kept by what they can apply to, so that a thousand comments on ten thousand layers take no time.
    """

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
        self._of_file: defaultdict[str, list[_Entry]] = defaultdict(list)  # code -> entries
        self._of_layer: defaultdict[tuple[str, str], list[_Entry]] = defaultdict(list)  # code, layer -> entries
        self._of_line: defaultdict[tuple[str, int], list[_Entry]] = defaultdict(list)  # code, line -> entries

    def read(self, comments: Iterable[Comment]) -> None:
        """Takes in what the file's comments say."""
        for comment in comments:
            layers = set() if comment.whole_file else self._layers_at(comment)
            for rule in self.naming.of(comment) if self.is_spec or comment.whole_file or layers else ():
                entry = _Entry(rule, layers)
                self.all.append(entry)
                for code in () if rule.expired else rule.codes:
                    if comment.whole_file:
                        self._of_file[code].append(entry)
                        continue
                    for line in {comment.line, self._below(comment)} - {None}:
                        self._of_line[code, line or 0].append(entry)
                    for layer in layers:
                        self._of_layer[code, layer].append(entry)

    def applying(self, finding: Finding) -> list[_Entry]:
        """The entries for the finding's file, for its layer, and for the line that it points at."""
        code, at = finding.rule.code, finding.location
        if not self.is_spec and at.path != self.path:
            return []
        entries = [*self._of_file.get(code, ())]
        if finding.layer is not None:
            entries += self._of_layer.get((code, finding.layer), ())
        if at.path == self.path and at.line is not None:
            entries += [entry for entry in self._of_line.get((code, at.line), ()) if entry not in entries]
        return entries

    def mention(self, entry: _Entry, skipped: Collection[tuple[str, str | None]]) -> Mention:
        """The entry as the rules on suppressions see it; used where nobody can say that it is not."""
        checked = entry.rule.codes & self.codes
        anywhere = {code for code, _ in skipped} if entry.rule.comment.whole_file else set()
        unsure = not checked or any(
            code in anywhere or any((code, layer) in skipped for layer in (None, *entry.layers)) for code in checked
        )
        return entry.rule.mention(
            self.path,
            used=entry.rule.used or unsure or not self.is_spec,
            layer=next(iter(entry.layers)) if len(entry.layers) == 1 else None,
        )

    def _layers_at(self, comment: Comment) -> set[str]:
        below = self._below(comment)
        starting = self.starting.get(below) if below is not None else None
        return starting or self.standing.get(comment.line, set())

    def _below(self, comment: Comment) -> int | None:
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


class Silencing(Struct, frozen=True, kw_only=True):
    """Which findings to leave out: all but those of `codes`, and what is exempt or in the baseline.

    `adopts`: what is found is to be a baseline.
    """

    codes: frozenset[str]
    today: date
    exemptions: tuple[Exemption, ...] = ()
    known: Known = NOTHING_KNOWN
    adopts: bool = False


class Silencer:
    """Judges the findings of one network, or of source, one layer at a time, before they are joined."""

    def __init__(self, read: Network | SourceReading, rulebook: Rulebook, silencing: Silencing) -> None:
        self._rulebook, self._silencing = rulebook, silencing
        self._comments: Comments | SourceComments
        self._exemptions: Sequence[Exemption] = silencing.exemptions
        self._path: str | None = None  # of the one input; source has many files
        if isinstance(read, SourceReading):
            self._comments = SourceComments(read, rulebook, silencing.codes, silencing.today)
        else:
            self._comments = Comments(read, rulebook, silencing.codes, silencing.today)
            self._path = read.path
            self._exemptions = [e for e in silencing.exemptions if e.files is None or e.files.matches(read.path)]
        self._suppressed: dict[str, Suppressed] = {}
        self.until: date | None = None  # the last day on which the comments silence what they do
        self.is_idle = not (self._comments or self._exemptions)
        self.knows_nothing = not silencing.known

    @property
    def suppressed(self) -> tuple[Suppressed, ...]:
        """What was silenced, each finding once."""
        return tuple(self._suppressed.values())

    def silences(self, finding: Finding) -> bool:
        """Whether a comment or the config silences `finding`, before it has a price; if so, records why."""
        return self._record(self._by_comment(finding) or self._by_config(finding))

    def is_known(self, finding: Finding) -> bool:
        """Whether the baseline holds `finding`, once it is weighed; if so, records it."""
        return self._record(self._by_baseline(finding))

    def of_comments(self, skipped: tuple[SkippedRule, ...]) -> tuple[Finding, ...]:
        """Findings on the comments themselves, which no comment silences; to be called once all others are judged."""
        mentions = self._comments.mentions(skipped)
        self.until = min((entry.expires for entry in mentions if entry.expires and not entry.expired), default=None)
        findings = judge_mentions(mentions, self._rulebook)
        chosen = [finding for finding in findings if finding.rule.code in self._silencing.codes]
        return tuple(entry for entry in chosen if not self._record(self._by_config(entry) or self._by_baseline(entry)))

    def _record(self, entry: Suppressed | None) -> bool:
        """Whether there is an entry; records the first of each finding."""
        if entry is not None:
            self._suppressed.setdefault(entry.finding.fingerprint, entry)
        return entry is not None

    def _by_comment(self, finding: Finding) -> Suppressed | None:
        reason = self._comments.reason(finding)
        return None if reason is None else Suppressed(finding=finding, reason=reason, by="comment")

    def _by_config(self, finding: Finding) -> Suppressed | None:
        covering = (exemption for exemption in self._exemptions if self._covers(exemption, finding))
        exemption = next(covering, None)
        return None if exemption is None else Suppressed(finding=finding, reason=exemption.reason, by="config")

    def _covers(self, exemption: Exemption, finding: Finding) -> bool:
        if self._path is None and exemption.files is not None and not exemption.files.matches(finding.location.path):
            return False
        return exemption.covers(finding)

    def _by_baseline(self, finding: Finding) -> Suppressed | None:
        return Suppressed(finding=finding, reason="", by="baseline") if self._silencing.known.holds(finding) else None
