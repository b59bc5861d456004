"""Comments in specs that silence findings, and the rules that they mention."""

from __future__ import annotations

import io
import re
import tokenize
from collections import Counter
from collections.abc import Sequence
from datetime import date
from itertools import islice
from types import SimpleNamespace
from typing import Any

import yaml
from msgspec import Struct
from msgspec.structs import replace

from convlint.errors import RuleError
from convlint.files.located_yaml import LINE_BREAK, Loader
from convlint.model.location import Location
from convlint.model.report import Finding, Fix
from convlint.rulebook.book import Rulebook
from convlint.rulebook.expr import ExprError
from convlint.rulebook.rule import Rule


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
_COMMENT = re.compile(r"(?:^|(?<=[ \t]))#+[ \t]*convlint:[ \t]*(?P<body>.*)")
_BODY = re.compile(
    r"(?P<kind>ignore|file-ignore)[ \t]*\[(?P<rules>[^\[\]]*)\]"
    r"(?:[ \t]+until[ \t]+(?P<until>[^ \t]+))?(?:[ \t]*--[ \t]*(?P<reason>.*))?"
)
_SCALAR_SIGNS = "'\"|>"  # quoted scalars and blocks begin with these
_MOST_TEXT = 500  # characters of a reason, which every report shows
_MOST_RULES = 100  # in one comment
MOST_NAMED = 2_000  # in all comments of a file: each may become a finding of its own
_USAGE = "write ignore[CL102] -- reason, or file-ignore[CL102] -- reason"


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
    """All such comments in YAML text, or Python's, that was parsed before; next to no work where there are none."""
    if MARKER not in text:
        return ()
    found = []
    for number, line in enumerate(text.split("\n") if python else LINE_BREAK.split(text), 1):
        match = _COMMENT.search(line) if MARKER in line else None
        if match is not None:
            found.append((number, match))
    if not found:
        return ()
    places = [(number, match.start() + 1) for number, match in found]
    held = _in_strings(text, places) if python else _in_scalars(text, places)
    comments: list[Comment] = []
    named = 0
    for line, match in found:
        if (line, match.start() + 1) in held:
            continue
        comment = _comment(line, match)
        named += max(1, len(comment.rules))
        if named > MOST_NAMED:
            problem = (
                f"the comments of one file name at most {MOST_NAMED:,} rules: this one and those below are not read"
            )
            comments.append(replace(comment, rules=(), problem=problem))
            break
        comments.append(comment)
    return tuple(comments)


def _in_scalars(text: str, places: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    """Those places (line, column), given in order, that lie in a scalar: a # there begins no comment."""
    if not any(sign in text for sign in _SCALAR_SIGNS):
        return set()  # in a plain scalar, a # behind a space begins a comment
    held = set()
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
                    held.add(places[following])
                following += 1
            if following == len(places):
                break
    except yaml.YAMLError:
        pass  # reported by the reader; what comes before the defect is right
    return held


def _in_strings(text: str, places: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    """Those places (line, column) of Python code at which no comment begins."""
    held = set(places)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                line, column = token.start
                held -= {place for place in held if place[0] == line and place[1] > column}
    except (tokenize.TokenError, SyntaxError):
        pass  # what comes before the defect is right
    return held


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
