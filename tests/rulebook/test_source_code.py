"""A rule judges source where its file says so, and says there what it says there; all else is its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from rule_texts import RULE, written
from source_records import record

from convlint.engine.check import Target
from convlint.engine.source_check import check_source
from convlint.errors import RuleError
from convlint.gpus.gpu import load_gpu
from convlint.model.source import SourceLayer, SourceReading
from convlint.report import Finding
from convlint.rulebook.book import Rulebook, load_rulebook
from convlint.rulebook.file import read_rule
from convlint.rulebook.rule import Rule

OWN_SCOPE = RULE.replace("when: groups == 1", "scope: width\nwhen: groups == 1").replace("loss: none\n", "")


def judged(rule: Rule, *records: SourceLayer) -> list[Finding]:
    target = Target(label="a100", gpu=load_gpu("a100"))
    reading = SourceReading(layers=records)
    return list(check_source(reading, Rulebook([rule]), [target], None, given=("net.py",)).findings)


def rule_with(folder: Path, source_code: str, text: str = RULE) -> Rule:
    return read_rule(written(folder, text.replace("loss: none\n", f"loss: none\nsource_code: {source_code}\n")))


def test_a_rule_that_says_nothing_of_source_judges_none(tmp_path: Path) -> None:
    rule = read_rule(written(tmp_path, RULE))
    assert rule.in_source is None
    assert judged(rule, record(C=3)) == []


def test_a_rule_may_judge_source_as_it_judges_layers(tmp_path: Path) -> None:
    (finding,) = judged(rule_with(tmp_path, "{}"), record(C=3))
    assert (finding.message, finding.severity) == ("C=3 should be 4", "warning")


@pytest.mark.parametrize(
    ("source_code", "expected"),
    [
        ("{ severity: info }", ("C=3 should be 4", "info")),
        ("{ message: 'C={C}' }", ("C=3", "warning")),
        ("{ when: K == 64 }", ("C=3 should be 4", "warning")),
        ("{ when: K == 65 }", None),
        ("{ check: C > 3, message: few, fix: null }", ("few", "warning")),
        ("{ check: C > 2, message: few, fix: null }", None),
        (
            "{ scope: width, check: width.value > 3, message: '{width.side} is few', fix: null }",
            ("C is few", "warning"),
        ),
        ("{ variants: [ { when: C == 3, severity: error } ] }", ("C=3 should be 4", "error")),
    ],
)
def test_what_it_says_there(tmp_path: Path, source_code: str, expected: tuple[str, str] | None) -> None:
    found = judged(rule_with(tmp_path, source_code), record(C=3))
    assert [(each.message, each.severity) for each in found] == ([expected] if expected else [])


def test_a_message_of_its_own_leaves_out_variants_that_speak_otherwise(tmp_path: Path) -> None:
    text = RULE.replace("loss: none\n", "variants: [ { when: C == 3, message: three } ]\nloss: none\n")
    assert judged(rule_with(tmp_path, "{}", text), record(C=3))[0].message == "three"
    assert judged(rule_with(tmp_path, "{ message: own }", text), record(C=3))[0].message == "own"


def test_a_rule_may_be_about_source_alone(tmp_path: Path) -> None:
    rule = read_rule(written(tmp_path, OWN_SCOPE))
    assert (rule.scope, rule.in_source) == ("width", None)
    assert Rulebook([rule]).of_source == (rule,)
    assert Rulebook([rule]).of_networks == ()


@pytest.mark.parametrize(
    ("source_code", "message"),
    [
        ("[]", "source_code is a mapping"),
        ("{ scop: width }", "unknown key 'scop' in source_code; did you mean 'scope'?"),
        ("{ scope: layer }", "'layer' is not one of construction, width, program"),
        ("{ when: width.value > 3 }", "when: unknown name 'width.value'"),
        ("{ scope: program, check: source.stated }", "check: unknown name 'source.stated'"),
        ("{ check: C > 3 }", "unknown name 'even' in a message"),
        ("{ at: program }", "at: unknown place 'program'"),
        ("{ loss: fix }", "unknown key 'loss' in source_code"),
    ],
)
def test_defects_are_said_where_they_stand(tmp_path: Path, source_code: str, message: str) -> None:
    with pytest.raises(RuleError) as error:
        rule_with(tmp_path, source_code)
    assert message in str(error.value)


@pytest.mark.parametrize("key", ["loss: none", "source_code: {}", "join: { message: x }"])
def test_keys_that_mean_nothing_for_source_alone(tmp_path: Path, key: str) -> None:
    with pytest.raises(RuleError, match="means nothing in a rule on widths"):
        read_rule(written(tmp_path, OWN_SCOPE.replace("at: C\n", f"at: C\n{key}\n")))


def test_no_other_rule_reads_what_stands_in_source(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match=r"unknown name 'source\.stated'"):
        read_rule(written(tmp_path, RULE.replace("groups == 1", "source.stated")))


def test_the_rules_that_judge_source_are_these() -> None:
    scopes = {rule.info.code: rule.scope for rule in load_rulebook().of_source}
    assert scopes == {
        "CL102": "width", "CL106": "program", "CL501": "program", "CL502": "program", "CL503": "program",
        "CL504": "program", "CL506": "construction", "CL507": "program", "CL508": "program", "CL509": "program",
    }  # fmt: skip
