"""The rules on one layer: which speak, which are silenced, and which cannot be checked."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import for_each
from layer_facts import facts
from msgspec.structs import replace
from small_networks import checked, codes, layer, rulebook

from convlint.engine.evaluate import Evaluator
from convlint.errors import RuleError
from convlint.model.layer import ConvLayer, layer_identity
from convlint.rulebook.book import load_rulebook

BUILTIN = load_rulebook()


def test_the_specific_silences_the_general_on_its_own_layer_only(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"check": "C == 64", "yields_to": "[XY001]"}, {"check": "K == 64"}, {"check": "C == 64"})
    result = checked(rules, layer("both", C=8, K=8) + layer("one", C=8))
    assert sorted(codes(result)) == [("XY000", "one"), ("XY001", "both"), ("XY002", "both"), ("XY002", "one")]


def test_silencing_is_not_passed_on(tmp_path: Path) -> None:
    """What is itself silenced still silences: the same cause was named, by the most specific."""
    rules = rulebook(tmp_path, {"yields_to": "[XY001]"}, {"yields_to": "[XY002]"}, {"check": "C == 1"})
    assert codes(checked(rules, layer("a"))) == [("XY002", "a")]


@pytest.mark.parametrize(
    ("sizes", "speaks", "silent"),
    [
        ({"C": 62}, "CL102", ["CL201"]),
        ({"C": 3, "first": "true", "kernel_size": 7, "stride": 2, "H": 224, "W": 224}, "CL103", ["CL102", "CL201"]),
        ({"C": 62, "groups": 62, "K": 62}, None, ["CL601", "CL102", "CL201"]),
        ({"groups": 4, "C": 96, "K": 96}, "CL404", ["CL401"]),
        ({"groups": 8, "C": 128, "K": 128}, None, ["CL404"]),  # 16 channels have fast kernels
    ],
)  # fmt: skip
def test_precedence_of_the_built_in_rules(sizes: dict[str, object], speaks: str | None, silent: list[str]) -> None:
    fired = {finding.rule.code for finding in checked(BUILTIN, layer("a", **sizes)).findings}
    assert speaks is None or speaks in fired
    assert not fired & set(silent)


def test_an_edge_rule_sees_connected_layers_only(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"scope": "edge", "check": "C == arriving.C", "message": "{arriving.source}"})
    result = checked(rules, layer("a", K=32) + layer("b") + layer("c", C=32, H=None, W=None))
    assert [(finding.layer, finding.message) for finding in result.findings] == [("c", "b")]


def test_what_is_lacking_is_named_and_never_passed(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"check": "N * P == 1"}, {"check": "runtime.cudnn >= '8'"}, {"check": "dtype == 'fp16'"})
    result = checked(rules, layer("a", N=None, H=None, dtype=None))
    assert [(skip.code, skip.layer, skip.needs) for skip in result.skipped] == [
        ("XY000", "a", ("N", "H")),
        ("XY001", "a", ("runtime.cudnn",)),
        ("XY002", "a", ("dtype",)),
    ]
    assert codes(result) == []


def test_what_settles_the_matter_without_the_unknown_is_no_skip(tmp_path: Path) -> None:
    rules = rulebook(
        tmp_path, {"when": "K == 1 and N > 3"}, {"check": "K == 64 or N > 3"}, {"check": "K == 1 and N > 3"}
    )
    result = checked(rules, layer("a", N=None))
    assert (codes(result), result.skipped) == ([("XY002", "a")], ())


def test_a_rule_that_divides_by_zero_is_a_defect_of_the_rule(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"check": "C // (K - 64) == 1"})
    with pytest.raises(RuleError, match="divides by zero") as caught:
        checked(rules, layer("a"))
    assert caught.value.path.endswith("0.yaml")
    assert (caught.value.line, caught.value.column) == (5, 8)


@pytest.mark.parametrize(
    ("parts", "place"),
    [
        ({"fix": '{ describe: d, set: { C: "0 - K" } }'}, (10, 6)),
        ({"variants": '[ { when: C == 64, fix: { describe: d, set: { C: "0 - K" } } } ]'}, (10, 11)),
        ({"fix": '{ describe: d, set: { groups: "3" } }'}, (10, 6)),
    ],
)
def test_a_fix_that_no_layer_can_have_is_pointed_at(
    parts: dict[str, str], place: tuple[int, int], tmp_path: Path
) -> None:
    with pytest.raises(RuleError, match="sets ") as caught:
        checked(rulebook(tmp_path, parts), layer("a"))
    assert (caught.value.line, caught.value.column) == place


@pytest.mark.parametrize(
    ("specific", "general", "silent"),
    [
        ("C", "C", True),
        ("C", "K", False),  # two flaws at two sizes
        ("[C, K]", "[K, N]", True),
        ("layout", "C", True),  # of two that do not both point at sizes, the specific one speaks
        ("C", "layout", True),
        ("N", "groups", False),
        ("R", "S", True),  # no size whose flaws stand apart
    ],
)
def test_the_specific_silences_where_it_is_the_same_flaw(
    specific: str, general: str, silent: bool, tmp_path: Path
) -> None:
    rules = rulebook(tmp_path, {"at": specific}, {"at": general, "yields_to": "[XY000]"})
    assert codes(checked(rules, layer("a"))) == [("XY000", "a")] + ([] if silent else [("XY001", "a")])


def test_the_first_variant_that_holds_speaks(tmp_path: Path) -> None:
    rules = rulebook(
        tmp_path,
        {"message": "default", "variants": '[ { when: N == 8, message: "eight" }, { when: N < 9, message: "few" } ]'},
    )
    layers = layer("a", N=8) + layer("b", N=7) + layer("c", N=64) + layer("d", N=None)
    found = {finding.layer: finding.message for finding in checked(rules, layers).findings}
    assert found == {"a": "eight", "b": "few", "c": "default", "d": "default"}


@for_each("field, value, same", [
        ("name", "b", True), ("path", "x", True), ("node", "n", True), ("library", "l.py:3", True),
        ("model", "m", True), ("spans", {"C": (1, 1, 1, 2)}, True),
        *((name, object(), False) for name in ConvLayer.__struct_fields__
          if name not in ("name", "path", "node", "library", "model", "spans")),
    ])  # fmt: skip
def test_layers_are_equal_but_for_where_they_stand(field: str, value: object, same: bool) -> None:
    one = ConvLayer(name="a", C=3)
    other = replace(one, **{field: value})
    assert (layer_identity(one) == layer_identity(other)) is same


NAMED = 'name == "b"'


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ({"message": "m"}, {("a", "m"), ("b", "m")}),
        ({"message": "{name}"}, {("a", "a"), ("b", "b")}),
        ({"check": f"not ({NAMED})"}, {("b", "m")}),
        ({"when": NAMED}, {("b", "m")}),
        ({"let": f"{{ other: '{NAMED}' }}", "check": "not other"}, {("b", "m")}),
        ({"variants": f"[ {{ when: '{NAMED}', message: of b }} ]"}, {("a", "m"), ("b", "of b")}),
        ({"fix": "{ describe: 'as {name}', set: { C: 8 } }"}, {("a", "m as a 8"), ("b", "m as b 8")}),
        ({"fix": f"{{ describe: d, set: {{ C: '8 if {NAMED} else 16' }} }}"}, {("a", "m d 16"), ("b", "m d 8")}),
        ({"fix": f"{{ describe: d, set: {{ C: 8 }}, or: {{ C: '72 if {NAMED} else 0' }} }}"},
         {("a", "m d 8"), ("b", "m d 72")}),
        ({"join": f"{{ share: any, when: 'not ({NAMED})', message: 'in {{count}}' }}"}, {("a", "m"), ("b", "m")}),
    ],
)  # fmt: skip
def test_a_rule_that_reads_names_sets_equal_layers_apart(
    rule: dict[str, str], found: set[tuple[str, str]], tmp_path: Path
) -> None:
    rules = rulebook(tmp_path, {"check": "C == 1", **rule})
    result = checked(rules, layer("a") + layer("b"))
    fixes = [(finding.fix.describe.split(":")[0], finding.fix.set) for finding in result.findings if finding.fix]
    said = {
        (finding.layer or "", " ".join([finding.message, *(f"{fix[0]} {fix[1]['C']}" for fix in fixes[number:][:1])]))
        for number, finding in enumerate(result.findings)
    }
    assert said == found


def test_what_an_edge_leads_from_is_no_other_layer(tmp_path: Path) -> None:
    """Of equal layers that read nothing, the one with a branch beside it is told from the one without."""
    rules = rulebook(tmp_path, {"check": "not has_branches"})
    middle = layer("left", input="root", C=None, H=None, W=None) + layer("right", input="root", C=None, H=None, W=None)
    result = checked(rules, layer("alone") + layer("root") + middle)
    assert codes(result) == [("XY000", "left"), ("XY000", "right")]
    assert not Evaluator(rules.rules).tells_apart


def test_a_truth_is_the_same_alone_and_compared(tmp_path: Path) -> None:
    join = {"join": "{ share: all, message: 'in {count} layers' }"}
    rules = rulebook(tmp_path, {"check": "bias", **join}, {"check": "bias == true", **join})
    layers = layer("a", bias="false") + layer("b", bias="false") + layer("c")
    assert codes(checked(rules, layers)) == [("XY000", None), ("XY001", None)]


def test_what_a_rule_applies_to_is_told(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"when": "C == 3"}, {"when": "C == 4"}, {"check": "C == 3"}, {"check": "K == 1"})
    found = Evaluator(rules.rules).evaluate(facts("C: 3"), connected=False)
    assert found.applicable == ("XY000", "XY002")
    assert [flaw.rule.info.code for flaw in found.flaws] == ["XY000"]
    assert found.skipped == (("XY003", ("K",)),)
