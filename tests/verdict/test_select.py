"""What counts: selected rules, the severities that the user wants, what the config silences, and the exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_networks import rulebook

from convlint.model.errors import UsageError
from convlint.model.location import Location
from convlint.model.report import Finding, InputError, Report, RuleInfo, Severity, Source
from convlint.rulebook.book import Rulebook
from convlint.verdict.select import (
    Exemption,
    Policy,
    chosen,
    counts,
    incomplete,
    matching,
    selected,
    severity_overrides,
    verdict,
)

ALL = {"AB100", "AB101", "AB200", "XY100"}


@pytest.fixture
def rules(tmp_path: Path) -> Rulebook:
    """Four rules, of which AB200 counts only where it is asked for."""
    return rulebook(
        tmp_path,
        {"code": "AB100", "name": "one"}, {"code": "AB101", "name": "two"},
        {"code": "AB200", "name": "three", "opt_in": "true"}, {"code": "XY100", "name": "four"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("key", "codes"),
    [
        ("AB100", {"AB100"}), ("ab100", {"AB100"}), ("one", {"AB100"}), ("ONE", {"AB100"}), (" one ", {"AB100"}),
        ("AB1", {"AB100", "AB101"}), ("ab", {"AB100", "AB101", "AB200"}), ("XY", {"XY100"}), ("all", ALL),
    ],
)  # fmt: skip
def test_what_a_key_names(key: str, codes: set[str], rules: Rulebook) -> None:
    assert matching(key, rules) == codes


@pytest.mark.parametrize("key", ["A", "X", "", "AB3", "AB1000", "fiv"])
def test_what_names_no_rule(key: str, rules: Rulebook) -> None:
    with pytest.raises(UsageError, match=f"unknown rule '{key}'"):
        matching(key, rules)


@pytest.mark.parametrize(
    ("policy", "codes"),
    [
        ({}, ALL - {"AB200"}),
        ({"select": ("AB",)}, {"AB100", "AB101", "AB200"}),
        ({"select": ("AB",), "ignore": ("AB1",)}, {"AB200"}),
        ({"extend_select": ("three",)}, ALL),
        ({"extend_select": ("three",), "ignore": ("three",)}, ALL - {"AB200"}),
        ({"base": frozenset({"XY100"})}, {"XY100"}),
        ({"base": frozenset({"XY100"}), "extend_select": ("one",)}, {"XY100", "AB100"}),
        ({"base": frozenset({"XY100"}), "select": ("one",)}, {"AB100"}),  # the command line beats the config
        ({"base": frozenset()}, set()),
    ],
)
def test_which_rules_count(policy: dict[str, Any], codes: set[str], rules: Rulebook) -> None:
    assert selected(Policy(**policy), rules) == codes


def test_severities_are_those_of_all_rules_that_a_key_names(rules: Rulebook) -> None:
    policy = Policy(severities={"AB1": "info", "two": "error", "XY100": "warning"})
    assert severity_overrides(policy, rules) == {"AB100": "info", "AB101": "error", "XY100": "warning"}


def finding(code: str = "AB100", severity: Severity = "warning", **parts: Any) -> Finding:
    source = Source(document="house", section="1")
    info = RuleInfo(code=code, name="one", title="t", severity="warning", rationale="r", source=source)
    values: dict[str, Any] = {"message": "m", "location": Location(path="net.yaml")} | parts
    return Finding(rule=info, severity=severity, **values)


def test_what_is_not_selected_is_gone_and_the_rest_as_severe_as_wanted() -> None:
    found = [finding("AB100"), finding("AB101", "error"), finding("XY100", "info"), finding("AB100", "info")]
    left = chosen(found, {"AB100", "AB101"}, {"AB100": "error", "XY100": "error"})
    assert [(one.rule.code, one.severity) for one in left] == [
        ("AB100", "error"), ("AB101", "error"), ("AB100", "error")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("layers", "parts", "covered"),
    [
        (None, {}, True),
        (None, {"code": "AB101"}, False),
        ("stem", {"layer": "stem"}, True),
        ("stem", {"layer": "stem2"}, False),
        ("stem*", {"layer": "stem2"}, True),
        ("stem*", {}, False),  # of the network, not of a layer
        ("*", {"code": "AB101", "layer": "stem"}, False),
    ],
)
def test_what_an_exemption_covers(layers: str | None, parts: dict[str, Any], covered: bool) -> None:
    exemption = Exemption(codes=frozenset({"AB100"}), reason="r", layers=layers)
    assert exemption.covers(finding(**parts)) is covered


@pytest.mark.parametrize(
    ("fail_on", "severities"),
    [("error", ["error"]), ("warning", ["error", "warning"]), ("info", ["error", "warning", "info"]), ("never", [])],
)
def test_the_least_severity_that_fails(fail_on: Any, severities: list[str]) -> None:
    policy = Policy(fail_on=fail_on)
    every: tuple[Severity, ...] = ("error", "warning", "info")
    assert [one for one in every if counts(finding(severity=one), policy)] == severities


@pytest.mark.parametrize(
    ("severity", "lost_percent", "counted"),
    [("warning", 2.0, True), ("warning", 1.99, False), ("warning", None, True), ("error", 0.0, True)],
)
def test_what_loses_too_little_does_not_fail(severity: Severity, lost_percent: float | None, counted: bool) -> None:
    assert counts(finding(severity=severity, lost_percent=lost_percent), Policy(min_loss=2.0)) is counted


UNREAD, DEFECT = InputError(path="a", message="m"), InputError(path="a", message="m", internal=True)


@pytest.mark.parametrize(
    ("errors", "failing", "code"),
    [
        ((), False, 0), ((), True, 1), ((UNREAD,), False, 3), ((UNREAD,), True, 3), ((DEFECT,), False, 4),
        ((DEFECT, UNREAD), True, 4),
    ],
)  # fmt: skip
def test_the_worse_wins(errors: tuple[InputError, ...], failing: bool, code: int) -> None:
    report = Report(version="1", targets=(), mode="training", files=1, layers=(), findings=(), errors=errors)
    assert verdict(report, failing=failing) == code
    assert incomplete(errors) == (code if errors else 0)
