"""Each hit's price, and what its weight in the layer, in its rule and in the network makes of its severity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from convlint.engine import weigh
from convlint.engine.hits import Flaw, Hit, Price
from convlint.engine.pricing import Priced
from convlint.engine.shapley import Stake
from convlint.engine.weigh import weighed
from convlint.model.layer import ConvLayer, with_output
from convlint.model.location import Location
from convlint.report import LayerTimes, Scalar, Severity
from convlint.rulebook.book import load_rulebook

BUILTIN = load_rulebook()
ALIGNMENT, TILES, WAVES = (BUILTIN.by_key[code] for code in ("CL102", "CL201", "CL301"))
NETWORK_US = 1000.0
LAYER = with_output(ConvLayer(name="a", N=8, C=96, H=28, W=28, K=96, R=3, S=3))


def hit(
    index: int = 0, *, rule: Any = ALIGNMENT, severity: Severity = "warning", sets: Mapping[str, Scalar] | None = None
) -> Hit:
    changes = {"C": 128} if sets is None else sets
    flaw = Flaw(rule=rule, case=rule.cases[-1], places=(), message="m", set=changes)
    return Hit(
        flaw=flaw, indices=(index,), names=("a",), location=Location(path="a"), message="m", sets=(changes,), other={},
        severity=severity,
    )  # fmt: skip


def layer(now_us: float = 100.0, after_us: float = 100.0) -> Priced:
    return Priced(times=LayerTimes(time_us=now_us, after_us=after_us, ideal_us=after_us), outcome=None)


def pricer(*, change_us: float | None = 0.0, capacity_us: float | None = None, layers: int = 1) -> Any:
    """Of equal layers, of which every fix changes as much and each wastes as much."""
    return SimpleNamespace(
        layers=[LAYER] * layers, facts=SimpleNamespace(time_us=NETWORK_US), capacity_us=lambda *_: capacity_us,
        change_us=lambda *_: change_us,
    )  # fmt: skip


def one(made: Hit, stake: Stake | None, priced: Priced | None, prices: Any = None) -> Hit:
    stakes = {} if stake is None else {id(made): stake}
    (found,) = weighed([made], stakes, [priced], pricer() if prices is None else prices)
    return found


# --- what is lost


@pytest.mark.parametrize(
    ("lost_us", "now_us", "after_us", "severity"),
    [
        (20.0, 100.0, 80.0, "warning"),
        (20.0, 1000.0, 900.0, "warning"),  # just 2 % of the layer
        (19.9, 1000.0, 900.0, "info"),
        (20.0, 400.0, 380.0, "warning"),  # the advice on the layer saves just 5 %
        (20.0, 400.0, 380.1, "info"),
        (19.9, 100.0, 50.0, "info"),  # and 1.99 % of the network
    ],
)
def test_a_share_is_held_against_layer_and_network(
    lost_us: float, now_us: float, after_us: float, severity: Severity
) -> None:
    assert one(hit(), Stake(-lost_us, True, lost_us), layer(now_us, after_us)).severity == severity


@pytest.mark.parametrize(
    ("codes", "severities"),
    [
        (["CL102", "CL102"], ["warning", "warning"]),  # the rule's findings count together
        (["CL102", "CL201"], ["info", "info"]),
    ],
)
def test_the_findings_of_a_rule_are_weighed_together(codes: list[str], severities: list[Severity]) -> None:
    hits = [hit(number, rule=BUILTIN.by_key[code]) for number, code in enumerate(codes)]
    stakes = {id(each): Stake(-10.0, True, 10.0) for each in hits}
    found = weighed(hits, stakes, [layer(100.0, 90.0)] * 2, pricer(layers=2))
    assert [each.severity for each in found] == severities


@pytest.mark.parametrize("severity", ["error", "info"])
def test_errors_and_infos_get_their_price_and_stand(severity: Severity) -> None:
    stake = Stake(-50.0, True, 50.0)
    found = one(hit(severity=severity), stake, layer(100.0, 50.0))
    assert (found.severity, found.price.lost_us) == (severity, 50.0)
    found = one(hit(severity=severity), Stake(5.0), layer())
    assert (found.severity, found.price.lost_us) == (severity, 0.0)


# --- prices


def test_the_price_is_that_of_the_stake() -> None:
    stake = Stake(-5.0, True, 30.0, ("CL401",))
    found = one(hit(), stake, layer(100.0, 40.0), pricer(capacity_us=12.0))
    assert found.price == Price(
        lost_us=30.0, alone_us=5.0, capacity_us=12.0, change_us=-5.0, advised=True, pays_with=("CL401",)
    )


@pytest.mark.parametrize(("change_us", "alone_us"), [(-7.0, 7.0), (7.0, 0.0), (0.0, 0.0), (None, None)])
def test_what_does_not_play_loses_nothing_but_says_what_its_fix_changes(
    change_us: float | None, alone_us: float | None
) -> None:
    found = one(hit(), None, layer(), pricer(change_us=change_us))
    assert found.price == Price(lost_us=0.0, alone_us=alone_us, change_us=change_us)
    assert found.severity == "info"


@pytest.mark.parametrize(("most", "priced"), [(2, True), (1, False)])
def test_of_a_rule_that_fires_everywhere_only_so_many_are_priced_beside_the_game(
    most: int, priced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weigh, "MOST_PRICED", most)
    hits = [hit(number) for number in range(3)]
    stakes = {id(hits[0]): Stake(-1.0, True, 1.0)}
    found = weighed(hits, stakes, [layer()] * 3, pricer(change_us=-7.0, layers=3))
    assert [each.price.change_us for each in found] == [-1.0, *[-7.0 if priced else None] * 2]
    assert [each.price.lost_us for each in found] == [1.0, 0.0, 0.0]


def test_what_has_no_layer_or_no_price_is_left_as_it_is() -> None:
    of_network = hit()._replace(indices=(), names=(), sets=())
    unpriced = hit(rule=replace(ALIGNMENT, loss="none"))
    found = weighed([of_network, unpriced], {}, [layer()], pricer(capacity_us=12.0))
    assert found == [of_network, unpriced]


def without_price(**parts: Any) -> Hit:
    """A warning whose fix cannot be priced, or that has none."""
    made = hit(rule=TILES)
    fix = made.flaw.case.fix
    assert fix is not None
    case = replace(made.flaw.case, fix=replace(fix, **parts) if parts else None)
    return made._replace(flaw=replace(made.flaw, case=case))


@pytest.mark.parametrize("made", [without_price(), without_price(priced=False), without_price(set=())])
@pytest.mark.parametrize("priced", [layer(), None])
def test_what_cannot_be_priced_keeps_its_severity(made: Hit, priced: Priced | None) -> None:
    """What its tiles leave empty is known all the same."""
    found = one(made, None, priced, pricer(capacity_us=12.0))
    assert found == made._replace(price=Price(capacity_us=12.0))


@pytest.mark.parametrize(("stated", "severity"), [("error", "error"), ("warning", "info"), ("info", "info")])
def test_where_the_time_is_not_known_a_warning_informs(stated: Severity, severity: Severity) -> None:
    found = one(hit(severity=stated), None, None)
    assert (found.severity, found.price) == (severity, Price())


@pytest.mark.parametrize("priced", [layer(), None])
def test_the_batch_is_weighed_later_and_over_all_layers(priced: Priced | None) -> None:
    made = hit(rule=WAVES, sets={"N": 16})
    found = one(made, None, priced, pricer(capacity_us=12.0))
    assert (found.severity, found.price) == ("warning", Price() if priced is None else Price(capacity_us=12.0))


# --- capacity


@pytest.mark.parametrize(
    ("sets", "change_us", "capacity_us", "now_us", "severity"),
    [
        ({"C": 128}, 0.0, 20.0, 200.0, "warning"),  # 10 % of the layer, 2 % of the network, a third wider
        ({"C": 128}, -3.0, 20.0, 200.0, "warning"),
        ({"C": 128}, 0.1, 20.0, 200.0, "info"),  # a fix that is priced as slower is no warning
        ({"C": 128}, None, 20.0, 200.0, "info"),  # nor one whose price is not known
        ({"C": 128}, 0.0, 20.0, 200.1, "info"),
        ({"C": 128}, 0.0, 19.9, 100.0, "info"),
        ({"C": 128}, 0.0, None, 200.0, "info"),
        ({"C": 144}, 0.0, 20.0, 200.0, "warning"),  # half as wide again
        ({"C": 145}, 0.0, 20.0, 200.0, "info"),
        ({"C": 144, "K": 145}, 0.0, 20.0, 200.0, "info"),  # the wider of the two
        ({"C": 64}, -30.0, 20.0, 200.0, "info"),  # which does less work
        ({"layout": "NHWC"}, 0.0, 20.0, 200.0, "info"),  # or no more of it
    ],
)
def test_capacity_that_a_fix_would_use(
    sets: dict[str, Scalar], change_us: float | None, capacity_us: float | None, now_us: float, severity: Severity
) -> None:
    prices = pricer(change_us=change_us, capacity_us=capacity_us)
    made = hit(rule=TILES, sets=sets)
    assert one(made, None, layer(now_us, now_us), prices).severity == severity
    assert one(made, Stake(change_us), layer(now_us, now_us), prices).severity == severity  # whether it plays or not


def test_order_is_kept() -> None:
    hits: Sequence[Hit] = [hit(0), hit(0, rule=TILES), hit(0, rule=WAVES, sets={"N": 16})]
    assert [each.flaw for each in weighed(hits, {}, [layer()], pricer())] == [each.flaw for each in hits]
