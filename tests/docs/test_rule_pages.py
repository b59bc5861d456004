"""Each rule's page says what its file says, and the index names all."""

import re
from pathlib import Path

from cases import for_each
from checkout import ROOT

from convlint.rulebook.book import load_rulebook
from convlint.rulebook.rule import SOURCE_SCOPES, Rule
from handbook.rule_pages import family_of, index, page

RULES = load_rulebook().rules
SECTIONS = ("Why", "Before and after", "What it costs", "What it asks", "When it is silent", "Severity", "Source")


@for_each("rule", RULES)
def test_a_page_has_all_of_a_rule(rule: Rule) -> None:
    text = page(rule, RULES)
    assert f"\n# {rule.info.code} {rule.info.name}\n" in text
    found = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert [each for each in found if each != "In Python source"] == list(SECTIONS)
    judges_source = rule.in_source is not None or rule.scope in SOURCE_SCOPES
    assert ("In Python source" in found) is judges_source
    assert rule.decision.check.text.split()[0] in text
    assert ("<svg" in text) is (rule.loss in ("fix", "tile", "wave") and rule.info.code != "CL702")
    file = Path(rule.path).relative_to(ROOT).as_posix()
    assert f"/blob/main/{file})" in text
    for other in rule.yields_to:
        assert f"[{other}]({other}.md)" in text


def test_messages_are_all_there() -> None:
    rule = next(rule for rule in RULES if rule.info.code == "CL102")
    text = page(rule, RULES)
    assert "`C={C} and K={K} should be multiples of {alignment} for {compute_dtype}`" in text
    assert "460 us, 102 us (22 %) saved by the fix" in text
    assert "> C=62 should be a multiple of 8 for fp16" in text


def test_the_index_has_every_rule_once_under_its_family() -> None:
    text = index(RULES)
    assert re.findall(r"^\| \[(CL\d+)\]\((CL\d+)\.md\)", text, re.MULTILINE) == [
        (rule.info.code, rule.info.code) for rule in RULES
    ]
    assert f"There are {len(RULES)} of them" in text


@for_each("rule", RULES)
def test_families_go_by_the_first_digit(rule: Rule) -> None:
    assert family_of(rule).startswith(rule.info.code[:3])
