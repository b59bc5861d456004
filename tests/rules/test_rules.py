"""Every built-in rule: its own examples, and that no row of the catalogue is missing."""

from __future__ import annotations

import pytest

from convlint.files.located_yaml import parse, read_text
from convlint.linting.rule_examples import Outcome, run_examples
from convlint.rulebook.book import load_rulebook
from convlint.rulebook.folders import builtin_folder, rule_files
from convlint.rulebook.rule import Rule
from convlint.rulebook.vocabulary import MEANINGS, VOCABULARY

RULES = load_rulebook().rules

CATALOGUE = [
    *range(1, 7), *range(101, 109), *range(201, 206), *range(301, 307), *range(401, 406), *range(501, 507),
    *range(601, 604), *range(701, 710),
]  # fmt: skip
NAMES = [
    "output-mismatch", "channel-mismatch", "filter-exceeds-input", "stride-skips-input", "dead-taps",
    "padding-only-output",
    "tensor-cores-unavailable", "channel-alignment", "first-layer-channels", "few-output-channels",
    "few-input-channels", "tensor-core-dtype", "unsupported-dtype", "slow-fp64",
    "multiple-of-64", "multiple-of-256", "tile-quantization", "wave-quantization", "wgrad-tile-waste",
    "too-few-tiles", "short-reduction", "memory-bound", "small-wgrad-output", "strided-dgrad", "launch-bound",
    "prefer-nhwc", "layout-change", "nhwc-without-tensor-cores", "nhwc-grouped", "asymmetric-padding",
    "enable-autotune", "autotune-varying-input", "deterministic-limits-autotune", "autotune-disabled",
    "outdated-cudnn", "bias-before-norm",
    "grouped-channels", "depthwise", "uneven-transposed-phases",
    "no-tensor-cores", "half-precision-storage-only", "multi-die-board", "low-occupancy", "concurrent-kernels",
    "gpu-boost", "retired-architecture", "library-too-old", "host-transfer",
]  # fmt: skip

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
        assert document is not None
        examples = document.data["examples"].data
        items = [*examples["pass"].data, *examples["fail"].data]
        found += [(rule, number, item.span[0]) for number, item in enumerate(items)]
    return found


CASES = outcomes()
_RUN: dict[str, list[Outcome]] = {}


@pytest.mark.parametrize(
    ("rule", "number"), [case[:2] for case in CASES], ids=[f"{rule.info.code}:{line}" for rule, _, line in CASES]
)
def test_every_example_of_every_rule(rule: Rule, number: int) -> None:
    code = rule.info.code
    if code not in _RUN:
        _RUN[code] = list(run_examples(rule))
    outcome = _RUN[code][number]
    assert outcome.problem is None, f"{outcome.path}:{outcome.line}: {outcome.problem}"


def test_no_row_of_the_catalogue_is_missing() -> None:
    held = {rule.info.code: rule.info.name for rule in RULES}
    assert {f"CL{number:03}": name for number, name in zip(CATALOGUE, NAMES, strict=True)}.items() <= held.items()


@pytest.mark.parametrize(("code", "silenced_by"), PRECEDENCE.items())
def test_precedence(code: str, silenced_by: set[str]) -> None:
    rule = next(rule for rule in RULES if rule.info.code == code)
    assert silenced_by <= rule.yields_to


def test_only_one_rule_is_opt_in() -> None:
    assert [rule.info.code for rule in RULES if rule.opt_in] == ["CL202"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.info.code)
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


def test_every_name_of_the_vocabulary_has_a_meaning() -> None:
    assert MEANINGS.keys() == VOCABULARY.keys()
    assert all(MEANINGS.values())
