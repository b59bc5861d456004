"""What the user does not want to hear of one input: rules not selected, comments, the config, the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from msgspec import Struct

from convlint.model.network import Network
from convlint.model.source import SourceReading
from convlint.report import Finding, Skipped, Suppressed
from convlint.rulebook.book import Rulebook
from convlint.verdict.baseline import NOTHING_KNOWN, Known
from convlint.verdict.mentions import judge_mentions
from convlint.verdict.select import Exemption
from convlint.verdict.source_comments import SourceComments
from convlint.verdict.suppress import Comments


class Silencing(Struct, frozen=True, kw_only=True):
    """What is to be left out: all but `codes`, and what is exempt or known."""

    codes: frozenset[str]
    today: date
    exemptions: tuple[Exemption, ...] = ()
    known: Known = NOTHING_KNOWN


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
        """Whether a comment or the config silences `finding`, before it has a price; which and why is kept."""
        return self._kept(self._by_comment(finding) or self._by_config(finding))

    def is_known(self, finding: Finding) -> bool:
        """Whether the baseline holds `finding`, once it is weighed; that is kept."""
        return self._kept(self._by_baseline(finding))

    def of_comments(self, skipped: tuple[Skipped, ...]) -> tuple[Finding, ...]:
        """What is wrong with the comments themselves, once everything else has been judged; no comment silences it."""
        mentions = self._comments.mentions(skipped)
        self.until = min((each.expires for each in mentions if each.expires and not each.expired), default=None)
        found = judge_mentions(mentions, self._rulebook)
        chosen = [finding for finding in found if finding.rule.code in self._silencing.codes]
        return tuple(each for each in chosen if not self._kept(self._by_config(each) or self._by_baseline(each)))

    def _kept(self, entry: Suppressed | None) -> bool:
        """Whether there is one; the first of each finding is kept."""
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
