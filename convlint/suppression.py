"""What a spec's comments silence, and what is wrong with the comments themselves (rules of scope `suppression`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from hashlib import blake2b
from types import SimpleNamespace
from typing import Any

from convlint.engine import NetworkResult
from convlint.errors import RuleError, UsageError
from convlint.expr import ExprError
from convlint.model import ConvLayer, Location
from convlint.policy import matching
from convlint.report import Finding, Fix, Suppressed
from convlint.rulebook import Rule, Rulebook
from convlint.suppression_comments import Comment, RuleKey, find_comments


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
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


def silence_by_comments(
    result: NetworkResult, rulebook: Rulebook, codes: set[str], today: date
) -> tuple[tuple[Finding, ...], tuple[Suppressed, ...], tuple[Mention, ...]]:
    """(findings left, findings silenced, every rule that a comment names); `codes` are the rules that count."""
    comments = find_comments("\n".join(result.source_lines)) if result.source_lines else ()
    if not comments:
        return result.findings, (), ()
    sheet = _Sheet(result, rulebook, codes, today)
    entries = [entry for comment in comments for entry in sheet.entries(comment)]
    left, silenced = [], []
    for finding in result.findings:
        entry = sheet.silencing(finding, entries)
        if entry is None:
            left.append(finding)
        else:
            silenced.append(Suppressed(finding=finding, reason=entry.comment.reason, by="comment"))
    return tuple(left), tuple(silenced), tuple(sheet.mention(entry) for entry in entries)


class _Entry:
    """One rule of one comment."""

    def __init__(self, comment: Comment, key: RuleKey | None, codes: set[str], problem: str, layers: set[str]) -> None:
        self.comment, self.key, self.codes, self.problem, self.layers = comment, key, codes, problem, layers
        self.expired = self.used = False


class _Sheet:
    """One spec: which lines are whose, and which comment applies to what."""

    def __init__(self, result: NetworkResult, rulebook: Rulebook, codes: set[str], today: date) -> None:
        self.result, self.rulebook, self.codes, self.today = result, rulebook, codes, today
        self.lines = result.source_lines or ()
        self.extents = [(*self._extent(entry.layer), entry.layer.name) for entry in result.layers]

    def entries(self, comment: Comment) -> Iterator[_Entry]:
        """The rules that a comment names; one without a rule where it cannot be read."""
        layers = set() if comment.whole_file else self._layers_at(comment)
        if comment.problem:
            yield _Entry(comment, None, set(), comment.problem, layers)
        for key in comment.rules:
            try:
                entry = _Entry(comment, key, matching(key.text, self.rulebook), "", layers)
            except UsageError as error:
                entry = _Entry(comment, key, set(), str(error), layers)
            entry.expired = comment.expires is not None and comment.expires < self.today
            yield entry

    def silencing(self, finding: Finding, entries: Iterable[_Entry]) -> _Entry | None:
        """The entry that silences `finding`; all that apply are marked as used.

        A finding that joins many layers is silenced once all of them are.
        """
        applying = [e for e in entries if finding.rule.code in e.codes and not e.expired and self._applies(e, finding)]
        for entry in applying:
            entry.used = True
        if not applying:
            return None
        if any(e.comment.whole_file or self._at(e.comment, finding) for e in applying) or finding.layer is not None:
            return applying[0]
        covered = {name for entry in applying for name in entry.layers}
        return applying[0] if finding.layers and covered.issuperset(finding.layers) else None

    def mention(self, entry: _Entry) -> Mention:
        """The entry as the rules on suppressions see it; used where nobody can say that it is not."""
        comment, key = entry.comment, entry.key
        span = (comment.column, comment.end_column) if key is None else (key.column, key.end_column)
        checked = entry.codes & self.codes
        unsure = not checked or any(
            skip.code in checked and (comment.whole_file or skip.layer is None or skip.layer in entry.layers)
            for skip in self.result.skipped
        )
        return Mention(
            text=comment.text,
            rule="" if key is None else key.text,
            location=Location(
                path=self.result.path, line=comment.line, column=span[0], end_line=comment.line, end_column=span[1]
            ),
            layer=next(iter(entry.layers)) if len(entry.layers) == 1 else None,
            reason=comment.reason,
            problem=entry.problem,
            used=entry.used or unsure,
            expires=comment.expires,
            expired=entry.expired,
        )

    def _applies(self, entry: _Entry, finding: Finding) -> bool:
        return (
            entry.comment.whole_file
            or finding.layer in entry.layers
            or not entry.layers.isdisjoint(finding.layers)
            or self._at(entry.comment, finding)
        )

    def _at(self, comment: Comment, finding: Finding) -> bool:
        """Whether the finding points at the comment's line or, where the comment stands alone, at the one below."""
        if finding.layer is not None or finding.location.path != self.result.path:
            return False
        return finding.location.line in (comment.line, self._below(comment))

    def _layers_at(self, comment: Comment) -> set[str]:
        below = self._below(comment)
        starting = {name for first, _, name in self.extents if first == below}
        return starting or {name for first, last, name in self.extents if first <= comment.line <= last}

    def _below(self, comment: Comment) -> int | None:
        """The line that a comment on a line of its own stands above, other comments between them passed over."""
        if not comment.alone:
            return None
        line = comment.line + 1
        while line <= len(self.lines) and self.lines[line - 1].lstrip().startswith("#"):
            line += 1
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
    ordinals: Counter[tuple[str, ...]] = Counter()
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
                identity = "\0".join((*key, str(ordinals[key]))).encode("utf-8", "replace")
                findings.append(replace(finding, fingerprint=blake2b(identity, digest_size=8).hexdigest()))
    return findings


def _judge(rule: Rule, values: dict[str, Any], mention: Mention) -> Finding | None:
    if rule.when is not None and not rule.when.evaluate(values):
        return None
    values = {**values, **{name: expr.evaluate(values) for name, expr in rule.let}}
    if rule.check.evaluate(values):
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
