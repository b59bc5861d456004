"""Who decides how severe a finding is, and where exactly the thresholds lie: each is met and just missed."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from convlint.engine.hits import Flaw
from convlint.engine.severity import Weight, by_batch, decided, joins, overridden, stated
from convlint.model.layer import ConvLayer, DtypeSource
from convlint.report import Severity
from convlint.rulebook.book import load_rulebook

RULE = load_rulebook().by_key["CL102"]
LOST = Weight(share=0.02, layer=0.05, rule=0.02)  # just enough
NOT_LOST = Weight(share=0.0, layer=0.0, rule=0.0)
# Pays just enough for tiles, and its fix widens by just as much as it may, adds work and no time.
EMPTY = Weight(
    share=0.0, layer=0.0, rule=0.0, capacity=0.10, capacity_network=0.02, time_added=0.0, work_added=0.01, widened=0.5
)


@pytest.mark.parametrize(
    ("weight", "severity"),
    [
        (LOST, "warning"),
        (LOST._replace(share=0.0199), "info"),
        (LOST._replace(layer=0.0499), "info"),
        (LOST._replace(rule=0.0199), "info"),
        (LOST._replace(share=0.0199, layer=1.0, rule=1.0), "info"),  # one that is missed is not made up for
        (LOST._replace(share=1.0, layer=0.0499, rule=1.0), "info"),
        (LOST._replace(share=1.0, layer=1.0, rule=0.0199), "info"),
        (LOST._replace(time_added=0.1, widened=3.0), "warning"),  # what its fix does alone matters to capacity
        (NOT_LOST, "info"),
        (None, "info"),  # the time is not predictable
    ],
)
def test_what_a_warning_must_lose(weight: Weight | None, severity: Severity) -> None:
    assert decided("warning", weight) == severity


@pytest.mark.parametrize(
    ("weight", "severity"),
    [
        (EMPTY, "warning"),
        (EMPTY._replace(capacity=0.0999), "info"),
        (EMPTY._replace(capacity_network=0.0199), "info"),
        (EMPTY._replace(widened=0.5001), "info"),
        (EMPTY._replace(time_added=-0.1), "warning"),
        (EMPTY._replace(time_added=1e-9), "info"),  # a fix that is priced as slower is no warning
        (EMPTY._replace(time_added=0.05, work_added=0.3), "info"),  # however much work it adds
        (EMPTY._replace(work_added=0.0), "info"),  # nothing more is done in that time
        (EMPTY._replace(work_added=-0.1, time_added=-0.2), "info"),
        (EMPTY._replace(capacity=0.9, capacity_network=0.9, time_added=0.0001), "info"),
        (EMPTY._replace(share=0.02, layer=0.05, rule=0.02, time_added=0.1), "warning"),  # by what it loses
    ],
)
def test_what_capacity_a_warning_must_waste(weight: Weight, severity: Severity) -> None:
    assert decided("warning", weight) == severity


@pytest.mark.parametrize("weight", [LOST, EMPTY, NOT_LOST, None])
@pytest.mark.parametrize("severity", ["error", "info"])
def test_errors_and_infos_stand_whatever_they_cost(severity: Severity, weight: Weight | None) -> None:
    assert decided(severity, weight) == severity


@pytest.mark.parametrize(
    ("severity", "best", "left"),
    [
        ("warning", 95.0, "warning"),
        ("warning", 95.01, "info"),
        ("warning", 94.99, "warning"),
        ("warning", 100.0, "info"),
        ("error", 94.0, "error"),
        ("error", 99.0, "info"),
        ("info", 50.0, "info"),
    ],
)
def test_batch(severity: Severity, best: float, left: Severity) -> None:
    assert by_batch(severity, 100.0, best) == left


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


SOURCES: tuple[DtypeSource, ...] = ("stated", "module", "storage")
STATED, MODULE, ASSUMED = (ConvLayer(name="a", dtype_source=source) for source in SOURCES)


@pytest.mark.parametrize(
    ("severity", "loss", "layer", "says"),
    [
        *((severity, loss, layer, severity) for severity in ("error", "warning", "info") for loss in ("fix", "none")
          for layer in (None, STATED)),
        ("warning", "fix", ASSUMED, "info"),  # it may run as another dtype, so that nothing is lost for certain
        ("warning", "tile", ASSUMED, "info"),
        ("warning", "wave", ASSUMED, "info"),
        ("warning", "none", ASSUMED, "warning"),  # no matter of time
        ("error", "fix", ASSUMED, "error"),
        ("info", "fix", ASSUMED, "info"),
        ("warning", "fix", MODULE, "warning"),
    ],
)  # fmt: skip
def test_what_the_rule_states_comes_first(
    severity: Severity, loss: Any, layer: ConvLayer | None, says: Severity
) -> None:
    case = replace(RULE.cases[-1], severity=severity)
    assert stated(Flaw(rule=replace(RULE, loss=loss), case=case, places=(), message="m"), layer) == says


@pytest.mark.parametrize(("source", "says"), [("stated", "warning"), ("module", "info"), ("storage", "info")])
def test_another_dtype_for_a_module_is_info(source: DtypeSource, says: Severity) -> None:
    """Autocast may stand around it, where nobody sees it."""
    case = replace(RULE.cases[-1], severity="warning")
    flaw = Flaw(rule=replace(RULE, loss="fix"), case=case, places=(), message="m", set={"dtype": "fp16"})
    assert stated(flaw, ConvLayer(name="a", dtype_source=source)) == says


@pytest.mark.parametrize("before", ["error", "warning", "info"])
@pytest.mark.parametrize("wanted", ["error", "warning", "info"])
def test_the_user_has_the_last_word(before: Severity, wanted: Severity) -> None:
    assert overridden(before, wanted) == wanted
