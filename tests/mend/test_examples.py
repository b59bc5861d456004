"""The examples of a rule: what does not hold, what a fix must mend, and what cannot be run."""

from pathlib import Path

import pytest
from rule_texts import edited, written

from convlint.mend.examples import run_examples
from convlint.model.errors import RuleError
from convlint.rulebook.file import read_rule


@pytest.mark.parametrize(
    ("old", "new", "problems"),
    [
        ("[ { C: 4 } ]", "[ { C: 5 } ]", ["should pass, but: C=5 should be 6", None]),
        ("given: { C: 3 }", "given: { C: 2 }", [None, "should fail, but passes"]),
        ("given: { C: 3 }", "given: { K: 3 }", [None, "should fail, but was skipped for want of C"]),
        ('message: "C=3 should be 4"', "message: other", [None, "message is 'C=3 should be 4', not 'other'"]),
        ("      severity: warning\n", "      severity: info\n", [None, "severity is 'warning', not 'info'"]),
        ("fixed: { C: 4 }", "fixed: { C: 6 }", [None, "fixed has C = 4, not 6"]),
        ("set: { C: even }", 'set: { C: "C + 2" }', [None, "fixed has C = 5, not 4"]),
        ("set: { C: even }", "set: { K: 8 }", [None, "fixed has C = 3, not 4"]),
        # a size that is larger than any layer's is no fix
        ("set: { C: even }", 'set: { C: "1e12" }', [None, "fixed has C = 3, not 4"]),
    ],
)
def test_examples_that_do_not_hold(old: str, new: str, problems: list[str | None], tmp_path: Path) -> None:
    rule = read_rule(written(tmp_path, edited(old, new)))
    assert [outcome.problem for outcome in run_examples(rule)] == problems


def test_a_fix_must_mend(tmp_path: Path) -> None:
    text = edited("set: { C: even }", 'set: { C: "C + 2" }').replace("fixed: { C: 4 }", "fixed: { C: 5 }")
    rule = read_rule(written(tmp_path, text))
    assert [outcome.problem for outcome in run_examples(rule)] == [None, "still fails once fixed: C=5 should be 6"]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("[ { C: 4 } ]", "[ { C: 0 } ]", 18, "C: must be at least 1, not 0"),
        ("given: { C: 3 }", "given: { chanels: 3 }", 20, "unknown key 'chanels'"),
        ("given: { C: 3 }", "given: { C: 3, gpu: a1000 }", 20, "unknown GPU 'a1000'"),
        ("set: { C: even }", 'set: { C: "0 - C" }', 11, "sets C to -3, which no layer can have"),
        ("set: { C: even }", 'set: { C: "C / 2" }', 11, "sets C to 1.5, which is no whole number"),
        ("set: { C: even }", 'set: { dtype: "\'half\'" }', 11, "sets dtype to 'half', which is not one of fp64"),
        ("set: { C: even }", 'set: { layout: "\'NHCW\'" }', 11, "sets layout to 'NHCW', which is not one of NCHW"),
        ("check: C % 2 == 0", "check: C % (C - 3) == 9", 7, "divides by zero: C % (C - 3) == 9"),
    ],
)  # fmt: skip
def test_examples_that_cannot_be_run(old: str, new: str, line: int, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, edited(old, new))
    rule = read_rule(path)
    with pytest.raises(RuleError) as caught:
        list(run_examples(rule))
    assert message in caught.value.message
    assert (caught.value.path, caught.value.line) == (path, line)
