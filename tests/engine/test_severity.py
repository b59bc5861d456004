"""Who decides how severe a finding is, and where exactly the thresholds lie: each is met and just missed."""

from __future__ import annotations

from typing import Any

import pytest

from convlint.engine.severity import by_batch, by_price, joins, overridden, stated
from convlint.report import Severity
from convlint.rulebook.rule import Case, Template


@pytest.mark.parametrize(
    ("stated", "lost_us", "lost_percent", "layer_share", "decided"),
    [
        ("warning", 1.0, 0.5, 0.05, "warning"),  # both thresholds met exactly
        ("warning", 1.0, 0.499, 0.9, "info"),
        ("warning", 1.0, 99.0, 0.0499, "info"),
        ("warning", 1.0, 0.501, 0.0501, "warning"),
        ("warning", 1.0, None, 0.05, "warning"),  # the network's time is not known: the layer's alone decides
        ("warning", 1.0, None, 0.0499, "info"),
        ("warning", 1.0, 99.0, None, "info"),
        ("warning", 0.0, 0.0, 0.0, "info"),
        ("warning", None, None, None, "warning"),  # what cannot be priced stands
        ("error", 0.0, 0.0, 0.0, "error"),
        ("info", 1e9, 99.0, 0.99, "info"),
    ],
)
def test_price(
    stated: Severity, lost_us: float | None, lost_percent: float | None, layer_share: float | None, decided: Severity
) -> None:
    assert by_price(stated, lost_us, lost_percent, layer_share) == decided


@pytest.mark.parametrize(
    ("stated", "best", "decided"),
    [
        ("warning", 95.0, "warning"),
        ("warning", 95.01, "info"),
        ("warning", 94.99, "warning"),
        ("warning", 100.0, "info"),
        ("error", 94.0, "error"),
        ("error", 99.0, "info"),
    ],
)
def test_batch(stated: Severity, best: float, decided: Severity) -> None:
    assert by_batch(stated, 100.0, best) == decided


@pytest.mark.parametrize(
    ("share", "severity", "said_together"),
    [
        ("all", "error", True), ("all", "warning", True), ("all", "info", True),
        ("any", "error", True), ("any", "warning", True), ("any", "info", True),
        ("info", "error", False), ("info", "warning", False), ("info", "info", True),
    ],
)  # fmt: skip
def test_which_severities_join(share: Any, severity: Severity, said_together: bool) -> None:
    assert joins(share, severity) is said_together


@pytest.mark.parametrize("severity", ["error", "warning", "info"])
def test_what_the_rule_states_comes_first(severity: Severity) -> None:
    case = Case(when=None, severity=severity, message=Template(()), at=(), fix=None)
    assert stated(case) == severity


@pytest.mark.parametrize("decided", ["error", "warning", "info"])
@pytest.mark.parametrize("wanted", ["error", "warning", "info"])
def test_the_user_has_the_last_word(decided: Severity, wanted: Severity) -> None:
    assert overridden(decided, wanted) == wanted
