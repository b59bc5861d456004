"""Rules' examples as parts of specs: what a page shows as mended passes, and reads as a spec."""

import pytest
import yaml
from cases import for_each

from convlint.files.located_yaml import Value
from convlint.mend.examples import example_findings
from convlint.rulebook.book import load_rulebook
from convlint.rulebook.rule import Rule
from handbook.examples import failing, lines, passing, shown

RULES = load_rulebook().rules


def as_text(given: Value) -> str:
    return "\n".join(lines(given))


@for_each("rule", RULES)
def test_what_is_shown_as_mended_is_clean(rule: Rule) -> None:
    example = shown(rule)
    assert example.message
    if example.mended is not None:
        assert as_text(example.mended) != as_text(example.given)
        findings, _ = example_findings(rule, example.mended)
        assert findings == ()


@for_each("rule", RULES)
def test_examples_are_yaml(rule: Rule) -> None:
    for given in (*(each.given for each in failing(rule)), *passing(rule, 9)):
        assert isinstance(yaml.safe_load(as_text(given)), dict)


def test_every_rule_with_a_fix_of_specs_is_shown_with_it() -> None:
    fixed = {rule.info.code for rule in RULES if shown(rule).mended is not None}
    assert {"CL001", "CL101", "CL102", "CL401", "CL402", "CL501", "CL603", "CL801"} <= fixed
    assert len(fixed) > 30


@pytest.mark.parametrize(
    ("code", "before", "after"),
    [
        (
            "CL402",
            "  - { name: b, K: 64, kernel_size: 3, dtype: fp16, layout: NCHW }",
            "  - { name: b, K: 64, kernel_size: 3, dtype: fp16, layout: NHWC }",
        ),
        ("CL507", "runtime: { cudnn_enabled: false }", "runtime: { cudnn_enabled: true }"),
        ("CL003", "  - { H: 4, W: 4, R: 3, S: 3, dilation: 2 }", "  - { H: 4, W: 4, R: 3, S: 3, DilH: 1, DilW: 1 }"),
    ],
)
def test_a_fix_is_put_where_it_belongs(code: str, before: str, after: str) -> None:
    rule = load_rulebook().find(code)
    assert rule is not None
    example = shown(rule)
    assert before in lines(example.given)
    assert example.mended is not None
    assert after in lines(example.mended)


def test_of_source_and_suppressions_what_was_read_is_shown() -> None:
    for code, first in (("CL508", "program: { backward_in_autocast: [12] }"), ("CL901", 'text: "ignore[CL102]"')):
        rule = load_rulebook().find(code)
        assert rule is not None
        assert next(iter(lines(shown(rule).given))) == first
