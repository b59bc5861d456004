"""Each hit's price: its stake in B, what it changes alone, and what its layers waste."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from convlint.engine import weigh
from convlint.engine.hits import UNPRICED, Flaw, Hit, Price
from convlint.engine.shapley import Stake
from convlint.engine.weigh import weighed
from convlint.model.location import Location
from convlint.report import Scalar
from convlint.rulebook.book import load_rulebook

BOOK = load_rulebook()


def hit(code: str = "CL102", indices: tuple[int, ...] = (0,), **sets: Scalar) -> Hit:
    rule, changes = BOOK.by_key[code], sets or {"C": 64}
    flaw = Flaw(rule=rule, case=rule.cases[-1], places=(), message="m", set=changes)
    names = tuple(f"l{index}" for index in indices)
    return Hit(flaw, indices, names, Location(path="a"), "m", (changes,) * len(indices), {}, "warning")


def pricer(*, change_us: float | None = -3.0, capacity_us: float | None = None, known: bool = True) -> Any:
    """Of equal layers, of which every fix changes as much and each wastes as much."""
    return SimpleNamespace(
        estimates=[object() if known else None] * 3, capacity_us=lambda *_: capacity_us, change_us=lambda *_: change_us
    )


def one(made: Hit, stake: Stake | None, prices: Any = None) -> Price:
    stakes = {} if stake is None else {id(made): stake}
    (found,) = weighed([made], stakes, {id(made): "measured"}, prices or pricer())
    return found.price


def test_what_is_advised_has_its_stake() -> None:
    stake = Stake(-2.0, True, 5.0, ("CL106",))
    assert one(hit(), stake) == Price(5.0, 2.0, None, -2.0, True, ("CL106",), "measured")
    assert one(hit(), stake, pricer(known=False)).lost_us == 5.0  # a setting may hold for layers without a time too


def test_what_is_not_loses_nothing() -> None:
    assert one(hit(), Stake(4.0)) == Price(0.0, 0.0, None, 4.0, basis="measured")
    assert one(hit(), None) == Price(0.0, 3.0, None, -3.0, basis="measured")
    assert one(hit(indices=(0, 1)), None).change_us == -6.0
    assert one(hit(), None, pricer(change_us=None)) == Price(0.0, None, None, None, basis="measured")


def test_without_a_time_there_is_no_price() -> None:
    assert one(hit(), None, pricer(known=False)) == replace_basis(UNPRICED)


def replace_basis(price: Price) -> Price:
    return price._replace(basis="measured")


def test_capacity_is_summed_where_the_rule_fired() -> None:
    prices = pricer(capacity_us=2.0)
    assert one(hit("CL201", (0, 1, 2)), None, prices).capacity_us == 6.0
    assert one(hit("CL201", (0, 1, 2))._replace(fired=(1,)), None, prices).capacity_us == 2.0
    assert one(hit("CL204", N=64), None, prices) == Price(
        capacity_us=2.0, basis="measured"
    )  # the batch is weighed later


def test_a_rule_without_a_price_and_a_finding_on_the_network_stay_as_they_are() -> None:
    unpriced, whole = hit("CL005"), replace_indices(hit())
    assert weighed([unpriced, whole], {}, {}, pricer()) == [unpriced, whole]


def replace_indices(made: Hit) -> Hit:
    return made._replace(indices=(), names=(), sets=())


def test_what_cannot_be_priced_only_wastes() -> None:
    made = hit("CL201")
    fix = made.flaw.case.fix
    assert fix is not None
    case = replace(made.flaw.case, fix=replace(fix, priced=False))
    made = made._replace(flaw=replace(made.flaw, case=case))
    assert one(made, None, pricer(capacity_us=2.0)) == Price(capacity_us=2.0, basis="measured")


@pytest.mark.parametrize(("most", "change_us"), [(2, -3.0), (1, None)])
def test_of_very_many_not_all_are_priced(most: int, change_us: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weigh, "MOST_PRICED", most)
    found = weighed([hit(), hit(indices=(1,))], {}, {}, pricer())
    assert [each.price.change_us for each in found] == [change_us, change_us]
