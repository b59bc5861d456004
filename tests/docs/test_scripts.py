"""The scripts that pages show parts of: before, the rule speaks and no other; after, none does."""

import ast

import pytest

from convlint.rulebook.book import load_rulebook
from handbook.scripts import PAIRS, findings, script

# what they judge is a variable of the environment, by which no script of PyTorch is tuned, or a lock file beside it
WITHOUT = {"CL504", "CL811", "CL818"}


def test_all_rules_on_source_have_one() -> None:
    assert PAIRS.keys() == {rule.info.code for rule in load_rulebook().of_source} - WITHOUT


@pytest.mark.parametrize("code", PAIRS)
def test_a_rule_speaks_before_and_none_after(code: str) -> None:
    pair = PAIRS[code]
    before, after = script(pair.part, pair.before), script(pair.part, pair.after)
    ast.parse(before)
    ast.parse(after)
    assert [finding.rule.code for finding in findings(before)] == [code]
    assert findings(after) == ()


def test_messages_name_the_script_and_not_where_it_lay() -> None:
    pair = PAIRS["CL503"]
    (finding,) = findings(script(pair.part, pair.before))
    assert " at train.py:" in finding.message
