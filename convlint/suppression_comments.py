"""Comments of a spec that silence rules: `# convlint: ignore[CL102] -- reason`, found and taken apart."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import yaml

from convlint.located_yaml import LINE_BREAK, Loader

MARKER = "convlint:"
_COMMENT = re.compile(r"(?:^|(?<=[ \t]))#+[ \t]*convlint:[ \t]*(?P<body>.*?)[ \t]*$")
_BODY = re.compile(
    r"(?P<kind>ignore|file-ignore)[ \t]*\[(?P<rules>[^\[\]]*)\]"
    r"(?:[ \t]+until[ \t]+(?P<until>[^ \t]+))?(?:[ \t]*--[ \t]*(?P<reason>.*))?"
)
_MOST_TEXT = 500
_MOST_RULES = 100  # in one comment
MOST_NAMED = 20_000  # in all comments of a file
_USAGE = "write ignore[CL102] -- reason, or file-ignore[CL102] -- reason"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleKey:
    """One code or name inside the brackets, and the columns that it takes."""

    text: str
    column: int
    end_column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
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


def find_comments(text: str) -> tuple[Comment, ...]:
    """All such comments in YAML text that was parsed before; next to no work where there are none."""
    if MARKER not in text:
        return ()
    found = []
    for number, line in enumerate(LINE_BREAK.split(text), 1):
        match = _COMMENT.search(line) if MARKER in line else None
        if match is not None:
            found.append((number, match))
    if not found:
        return ()
    scalars = _Scalars(text)
    comments: list[Comment] = []
    named = 0
    for line, match in found:
        if scalars.hold(line, match.start() + 1):
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


class _Scalars:
    """Where the text's scalars stand: a # in one of them begins no comment."""

    def __init__(self, text: str) -> None:
        self.starts: list[tuple[int, int]] = []
        self.ends: list[tuple[int, int]] = []
        token: Any
        try:
            for token in yaml.scan(text, Loader=Loader):
                if type(token) is not yaml.ScalarToken:
                    continue
                start, end = token.start_mark, token.end_mark
                block = token.style in ("|", ">")  # behind the sign, on its line, a comment may stand
                self.starts.append((start.line + 2, 0) if block else (start.line + 1, start.column + 1))
                self.ends.append((end.line + 1, end.column + 1))
        except yaml.YAMLError:
            pass  # reported by the reader; what comes before the defect is right

    def hold(self, line: int, column: int) -> bool:
        """Whether the character there lies inside a scalar."""
        index = bisect_left(self.starts, (line, column)) - 1
        return index >= 0 and (line, column) < self.ends[index]


def _comment(line: int, match: re.Match[str]) -> Comment:
    body = match["body"]
    column, end = match.start() + 1, match.end() + 1
    alone = not match.string[: match.start()].strip()
    parts = _BODY.fullmatch(body)
    if parts is None:
        return Comment(line=line, column=column, end_column=end, text=body[:80], alone=alone, problem=_USAGE)
    start = match.start("body") + parts.start("rules") + 1
    rules = tuple(
        RuleKey(text=key.group(), column=start + key.start(), end_column=start + key.end())
        for key in re.finditer(r"[^\s,]+", parts["rules"])
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
