"""What a rule costs on three GPUs is what a check of its example says."""

from pathlib import Path

import pytest
import yaml
from cases import for_each

from convlint.model.layer import OF_STEPS
from convlint.rulebook.book import load_rulebook
from convlint.rulebook.rule import Rule
from convlint.run.api import lint
from handbook.examples import lines
from handbook.prices import GENERATIONS, completed, prices

RULEBOOK = load_rulebook()


def found(code: str) -> Rule:
    rule = RULEBOOK.find(code)
    assert rule is not None
    return rule


@for_each("rule", RULEBOOK.rules)
def test_rules_with_a_price_are_shown_on_three_gpus(rule: Rule) -> None:
    priced = prices(rule)
    if rule.loss == "none" or rule.loss in OF_STEPS:
        assert priced is None
    elif rule.info.code != "CL702":  # fp16 that is only stored costs nothing beside fp32
        assert len(priced.rows) == 3


@pytest.mark.parametrize("code", ["CL102", "CL106", "CL203", "CL401", "CL402"])
def test_the_price_is_that_of_a_check(code: str, tmp_path: Path) -> None:
    priced = prices(found(code))
    spec = yaml.safe_load("\n".join(lines(priced.given)))
    spec.pop("gpu", None)
    path = tmp_path / "net.yaml"
    path.write_text(yaml.safe_dump({"version": 1, **spec}))
    for row in priced.rows:
        report = lint(path, gpu=row.gpu.id, select=code, isolated=True)
        assert report.total.time_us == pytest.approx(row.time_us)
        losses = [(each.lost_us, each.lost_capacity_us) for each in report.findings]
        assert losses[:1] == ([(row.lost_us, row.capacity_us)] if row.message else [])


def test_what_an_example_leaves_open_is_filled_in_and_said() -> None:
    priced = prices(found("CL102"))
    assert set(priced.filled) == {"N", "H", "W", "layout", "kernel_size", "padding"}
    given, filled = completed(priced.given)
    assert filled == ()
    assert given.data.keys() == priced.given.data.keys()


def test_rules_on_old_gpus_have_prices_on_old_ones() -> None:
    priced = prices(found("CL108"))
    assert [row.gpu.id for row in priced.rows] == list(GENERATIONS[1])
