"""Who decides how severe a finding is, and where exactly the thresholds lie: each is met and just missed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from convlint.engine.hits import Flaw, Hit, Price
from convlint.engine.severity import graded, joins, overridden, stated
from convlint.model.layer import ConvLayer, DtypeSource
from convlint.model.location import Location
from convlint.report import Severity
from convlint.rulebook.book import load_rulebook

BOOK = load_rulebook()
RULE = BOOK.by_key["CL102"]


def hit(lost_us: float | None, severity: Severity = "warning", *, advised: bool = True, rule: str = "CL102") -> Hit:
    found = BOOK.by_key[rule]
    flaw = Flaw(rule=found, case=found.cases[-1], places=(), message="m")
    price = Price(lost_us=lost_us, advised=advised)
    return Hit(flaw, (0,), ("a",), Location(path="a"), "m", ({},), {}, severity, price=price)


@pytest.mark.parametrize(
    ("lost", "severities"),
    [
        ([10.0], ["warning"]),  # 1 % of the network's 1000 us
        ([9.99], ["info"]),
        ([0.0], ["info"]),
        ([30.0, 8.0, 9.0], ["warning", "info", "info"]),
        ([9.0] * 6, ["warning", "warning", "warning", "info", "info", "info"]),  # 54 us: half of what can be saved
        ([9.0] * 5, ["info"] * 5),  # less than 5 %
        ([5.0, 9.0, 9.0, 9.0, 9.0, 9.0], ["info", "warning", "warning", "warning", "info", "info"]),
    ],
)
def test_what_loses_most_warns(lost: Sequence[float], severities: Sequence[Severity]) -> None:
    assert [each.severity for each in graded([hit(us) for us in lost], 1000.0)] == severities


def test_no_info_loses_more_than_a_warning() -> None:
    found = graded([hit(us) for us in (3.0, 7.0, 1.0, 8.0, 40.0, 6.0, 9.5, 2.0)], 1000.0)
    warned = [each.price.lost_us for each in found if each.severity == "warning"]
    silent = [each.price.lost_us for each in found if each.severity == "info"]
    assert min(warned, default=0.0) >= max(silent)  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("one", "severity"),
    [
        (hit(500.0, advised=False), "info"),  # nobody is advised to do it
        (hit(0.0, "error"), "error"),
        (hit(None, "warning", rule="CL005"), "warning"),  # has no price
        (hit(None, "info", rule="CL405"), "info"),
        (hit(0.0, "warning", advised=False, rule="CL201"), "info"),  # capacity is evidence
        (hit(None, "warning", rule="CL401", advised=False), "info"),  # the time is not predictable
    ],
)
def test_errors_and_what_has_no_price_stand(one: Hit, severity: Severity) -> None:
    assert [each.severity for each in graded([one], 1000.0)] == [severity]


@pytest.mark.parametrize(
    ("source", "sets", "severity"),
    [
        ("stated", {"dtype": "fp16"}, "warning"),
        ("storage", {"K": 64}, "info"),
        ("module", {"dtype": "fp16"}, "info"),
        ("module", {"K": 64}, "warning"),
    ],
)
def test_what_rests_on_a_dtype_that_nobody_stated(
    source: DtypeSource, sets: dict[str, int | str], severity: Severity
) -> None:  # fmt: skip
    flaw = Flaw(rule=RULE, case=replace(RULE.cases[-1], severity="warning"), places=(), message="m", set=sets)
    assert stated(flaw, ConvLayer(name="a", dtype_source=source)) == severity
    assert stated(flaw) == "warning"


def test_what_joins() -> None:
    assert joins("all", is_advised=True)
    assert joins("any", is_advised=True)
    assert joins("info", is_advised=False)
    assert not joins("info", is_advised=True)


def test_the_user_has_the_last_word() -> None:
    assert overridden("error", "info") == "info"
