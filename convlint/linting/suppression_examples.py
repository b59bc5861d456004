"""The examples of rules on suppressions: each gives what such a rule reads, and the rule judges it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from convlint.errors import RuleError, shown, suggestion
from convlint.files.located_yaml import Value
from convlint.model.location import Location
from convlint.report import Finding
from convlint.rulebook.book import Rulebook
from convlint.rulebook.rule import Rule
from convlint.verdict.comments import Mention, judge_mentions

_TEXTS = ("text", "rule", "reason", "problem")
_TRUTHS = ("used", "expired")


def suppression_problems(rule: Rule, examples: Mapping[str, Value]) -> Iterator[tuple[Value, str | None]]:
    """Each example and, where it does not hold, why. Raises RuleError where one cannot be read."""
    for item in examples["pass"].data:
        findings = suppression_findings(rule, item)
        yield item, f"should pass, but: {findings[0].message}" if findings else None
    for item in examples["fail"].data:
        findings = suppression_findings(rule, item.data["given"])
        problem = None if findings else "should fail, but passes"
        for key in ("message", "severity"):
            if findings and key in item.data and item.data[key].data != getattr(findings[0], key):
                problem = f"{key} is {getattr(findings[0], key)!r}, not {item.data[key].data!r}"
        yield item, problem


def suppression_findings(rule: Rule, given: Value) -> list[Finding]:
    """What the rule finds in an example. Raises RuleError where it cannot be read."""
    return judge_mentions([_mention(rule, given)], Rulebook([rule]))


def _mention(rule: Rule, given: Value) -> Mention:
    if not isinstance(given.data, dict):
        raise _error(rule, given, "an example is a mapping")
    values: dict[str, Any] = {"text": ""}
    for key, value in given.data.items():
        text = value.data
        if not isinstance(text, str):
            raise _error(rule, value, f"{key}: must be one value, not {value.kind}")
        if key in _TEXTS:
            values[key] = text
        elif key in _TRUTHS and text in ("true", "false"):
            values[key] = text == "true"
        elif key == "expires":
            try:
                values[key] = date.fromisoformat(text)
            except ValueError:
                raise _error(rule, value, f"expires: {shown(text)!r} is no date such as 2026-12-31") from None
        elif key in _TRUTHS:
            raise _error(rule, value, f"{key}: must be true or false")
        else:
            known = (*_TEXTS, *_TRUTHS, "expires")
            raise _error(rule, value, f"unknown key {shown(key)!r} in an example{suggestion(key, known)}")
    return Mention(location=Location(path=rule.path), **values)


def _error(rule: Rule, value: Value, message: str) -> RuleError:
    return RuleError(message, path=rule.path, line=value.span[0], column=value.span[1])
