"""The rules that a comment names: each by itself, whether it still counts, and what becomes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from convlint.errors import UsageError
from convlint.model.location import Location
from convlint.rulebook.book import Rulebook
from convlint.verdict.comments import Comment, RuleKey
from convlint.verdict.mentions import Mention
from convlint.verdict.select import matching


class Named:
    """One rule of one comment, and the codes that it means; without a key, a comment that cannot be read."""

    def __init__(self, comment: Comment, key: RuleKey | None, codes: set[str], problem: str, *, expired: bool) -> None:
        self.comment, self.key, self.codes, self.problem, self.expired = comment, key, codes, problem, expired
        self.used = False

    def mention(self, path: str, *, used: bool, layer: str | None = None) -> Mention:
        """It as the rules on suppressions see it; `used` also where nobody can say that it is not."""
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
    """What comments name, by one rulebook, today; each key is looked up once."""

    def __init__(self, rulebook: Rulebook, today: date) -> None:
        self._rulebook, self._today = rulebook, today
        self._known: dict[str, tuple[set[str], str]] = {}

    def of(self, comment: Comment) -> Iterator[Named]:
        """The rules of a comment; one without a key where it cannot be read."""
        if comment.problem:
            yield Named(comment, None, set(), comment.problem, expired=False)
        expired = comment.expires is not None and comment.expires < self._today
        for key in comment.rules:
            codes, problem = self._meant(key.text)
            yield Named(comment, key, codes, problem, expired=expired)

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
