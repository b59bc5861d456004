"""Every built-in rule: its examples, its documentation, and the rules that it yields to."""

import pytest
from cases import for_each

from convlint.files.located_yaml import parse, read_text
from convlint.mend.examples import ExampleResult, run_examples
from convlint.rulebook.book import builtin_folder, load_rulebook, rule_files
from convlint.rulebook.rule import Rule

RULES = load_rulebook().rules

# the most specific speaks: code -> the codes that silence it
PRECEDENCE = {
    "CL102": {"CL101", "CL103"},
    "CL201": {"CL101", "CL102", "CL103", "CL203"},
    "CL104": {"CL203"},
    "CL105": {"CL203"},
    "CL205": {"CL203"},
    "CL401": {"CL404"},
    "CL601": {"CL602"},
}


def outcomes() -> list[tuple[Rule, int, int]]:
    """(rule, number of the example, line) of every example of every rule, without running any."""
    found = []
    for rule in RULES:
        if rule.scope == "suppression":
            continue
        document = parse(read_text(rule.path))
        examples = document.data["examples"].data
        items = [*examples["pass"].data, *examples["fail"].data]
        found += [(rule, number, item.span[0]) for number, item in enumerate(items)]
    return found


CASES = outcomes()
_RUN: dict[str, list[ExampleResult]] = {}


@for_each("rule, number", [case[:2] for case in CASES])
def test_every_example_of_every_rule(rule: Rule, number: int) -> None:
    code = rule.info.code
    if code not in _RUN:
        _RUN[code] = list(run_examples(rule))
    outcome = _RUN[code][number]
    assert outcome.problem is None, f"{outcome.path}:{outcome.line}: {outcome.problem}"


def test_the_codes_of_a_family_have_no_gap() -> None:
    """A code is never used twice, nor is one given up without a word: what is retired leaves a gap to be named here."""
    families: dict[str, list[int]] = {}
    # Reports that did not stand: of TF32 in volumes, and of Conv1d in ONNX Runtime (docs/pages/cliffs.md).
    retired = {"CL812", "CL822"}
    for code in (*(rule.info.code for rule in RULES), *retired):
        family, number = ("CL81", int(code[2:]) - 810) if code[2:4] in ("81", "82") else (code[:-2], int(code[-2:]))
        families.setdefault(family, []).append(number)
    assert {code: found for code, found in families.items() if sorted(found) != list(range(1, len(found) + 1))} == {}


@pytest.mark.parametrize(("code", "silenced_by"), PRECEDENCE.items())
def test_precedence(code: str, silenced_by: set[str]) -> None:
    rule = next(rule for rule in RULES if rule.info.code == code)
    assert silenced_by <= rule.yields_to


def test_infos_that_ask_for_no_change_have_no_price() -> None:
    evidence = {rule.info.code for rule in RULES if rule.info.evidence}
    assert evidence == {"CL004", "CL302", "CL303", "CL304", "CL305", "CL602", "CL825"}
    assert all(rule.loss == "none" for rule in RULES if rule.info.evidence)


def test_no_more_than_one_rule_is_opt_in() -> None:
    """What is worth a rule is worth being on."""
    assert sum(rule.opt_in for rule in RULES) <= 1


@for_each("rule", RULES)
def test_every_rule_documents_itself(rule: Rule) -> None:
    assert rule.info.source.document
    assert rule.info.source.section
    assert len(rule.info.rationale.split()) >= 10
    assert not rule.info.title.endswith(".")
    assert rule.path.endswith(f"/{rule.info.name}.yaml")


def test_each_folder_holds_one_family() -> None:
    families: dict[str, set[str]] = {}
    for rule in RULES:
        folder = rule.path.removeprefix(builtin_folder()).strip("/").split("/")[0]
        families.setdefault(folder, set()).add(rule.info.code[:-2])
    assert all(len(codes) == 1 for codes in families.values()), families
    assert len(rule_files(builtin_folder())) == len(RULES)
