"""What rules of scope `suppression` judge: that which comments and the config name to be silenced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date
from types import SimpleNamespace
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from convlint.errors import RuleError
from convlint.model.location import Location
from convlint.report import Finding, Fix
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
        message=case.message.render(values),
        location=mention.location,
        layer=mention.layer,
        fix=None
        if fix is None
        else Fix(describe=fix.describe.render(values), safety=fix.safety, changes=fix.changes, set={}),
    )
