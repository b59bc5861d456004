"""A flaw: where it points, which case speaks, and what its fix would set."""

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from layer_facts import facts
from msgspec.structs import replace
from small_networks import checked, codes, rulebook
from small_networks import layer as layer_of_evaluate
from small_networks import layer as layer_of_hits

from convlint.engine.hits import (
    COUNT,
    LAYERS,
    Evaluator,
    Flaw,
    Hit,
    Price,
    Violation,
    graded,
    holds,
    impossible,
    new_value,
    places_of,
    priced_by_step,
    stated,
    with_fix,
    with_settings,
)
from convlint.facts.quantity import UNKNOWN, UnknownValue
from convlint.model.errors import RuleError
from convlint.model.layer import ConvLayer, Dtype, DtypeSource, layer_identity, with_output
from convlint.model.location import Location
from convlint.model.report import Scalar, Severity
from convlint.model.runtime import Runtime
from convlint.rulebook.book import Rulebook, load_rulebook
from convlint.rulebook.expr import ExprError
from convlint.rulebook.grammar import compile_expr

CONV = with_output(
    ConvLayer(name="a", N=1, C=8, H=9, W=9, K=8, R=3, S=3, PadH=1, PadW=1, PadH_end=1, PadW_end=1, dtype=Dtype.fp32)
)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {"P": 9, "Q": 9}),
        ({"runtime.tf32": True}, {"C": 8}),
        ({"C": 16, "layout": "NHWC"}, {"C": 16, "layout": "NHWC", "P": 9}),
        ({"dtype": "fp16"}, {"dtype": Dtype.fp16}),
        ({"R": 5}, {"R": 5, "P": 7, "Q": 9}),
        ({"PadH": 2}, {"PadH": 2, "PadH_end": 2, "P": 11}),  # one side of a padding that is even means both
        ({"PadH": 2, "PadH_end": 1}, {"PadH": 2, "PadH_end": 1, "P": 10}),
        ({"P": 5}, {"declared_P": 5, "P": 9}),
    ],
)
def test_a_layer_after_a_fix(changes: dict[str, int | str | bool], expected: dict[str, object]) -> None:
    after = with_fix(CONV, changes)
    assert {name: getattr(after, name) for name in expected} == expected


def test_a_runtime_after_a_fix() -> None:
    assert with_settings(Runtime(), {"runtime.cudnn_benchmark": True, "C": 8}) == Runtime(cudnn_benchmark=True)
    assert with_settings(Runtime(), {"C": 8}) == Runtime()


@pytest.mark.parametrize(
    ("name", "value", "result"),
    [
        ("C", 64, 64),
        ("C", 64.0, 64),
        ("C", 0, 0),  # there is none
        ("C", 2**31, 2**31),
        ("C", 2**31 + 1, None),
        ("dtype", "fp16", "fp16"),
        ("layout", "auto", "auto"),
        ("bias", False, False),
        ("runtime.deterministic", True, True),
        ("runtime.gpu_clock", "boost", "boost"),
        ("runtime.xla_gpu_autotune_level", -1, -1),  # no size
    ],
)
def test_what_a_layer_can_take(name: str, value: Any, result: Any) -> None:
    found = new_value(name, value)
    assert (found, type(found)) == (result, type(result))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("dtype", "fp61", "sets dtype to 'fp61', which is not one of fp64, fp32, tf32, fp16, bf16, fp8, int8"),
        ("layout", "nhwc", "sets layout to 'nhwc', which is not one of NCHW, NHWC, auto"),
        ("C", 1.5, "sets C to 1.5, which is no whole number"),
        ("C", -1, "sets C to -1, which no layer can have"),
        ("PadH", -0.5, "sets PadH to -0.5, which no layer can have"),
    ],
)
def test_a_wrong_rule_is_told(name: str, value: Any, message: str) -> None:
    with pytest.raises(ExprError) as caught:
        new_value(name, value)
    assert caught.value.message == message


@pytest.mark.parametrize("name", ["C", "dtype", "runtime.tf32"])
def test_what_is_not_known_is_not_set(name: str) -> None:
    with pytest.raises(UnknownValue):
        new_value(name, UNKNOWN)


def layer(**sizes: Any) -> ConvLayer:
    values = {"N": 8, "C": 62, "H": 28, "W": 28, "K": 60, "R": 3, "S": 3} | sizes
    return with_output(ConvLayer(name="a", **values))


@pytest.mark.parametrize(
    ("sizes", "changes", "problem"),
    [
        ({}, {"C": 64}, None),
        ({}, {"dtype": "fp16", "layout": "NHWC", "N": 0}, None),  # which shape nothing
        ({}, {"groups": 2}, None),
        ({}, {"groups": 4}, "sets groups=4, but groups=4 must divide C=62 and K=60"),
        ({"groups": 2}, {"C": 63}, "sets C=63, but groups=2 must divide C=63 and K=60"),
        ({"groups": 4}, {"C": 63}, None),  # nothing divides as it is
        ({"groups": 4}, {"C": 64}, None),
        ({"C": None}, {"groups": 4}, None),  # as far as it is known
        ({"C": None}, {"groups": 7}, "sets groups=7, but groups=7 must divide C=None and K=60"),
        ({}, {"R": 28}, None),
        ({}, {"R": 29}, "sets R=29, which leaves no output"),
        ({}, {"DilH": 14, "DilW": 2}, "sets DilH=14, DilW=2, which leaves no output"),
        ({"H": 2}, {"S": 40}, None),  # there is none as it is
        ({"H": None}, {"R": 99}, None),
    ],
)
def test_what_no_layer_can_be(sizes: dict[str, Any], changes: dict[str, Scalar], problem: str | None) -> None:
    assert impossible(changes, layer(**sizes)) == problem


LAYER = "name: a, N: 8, C: 62, H: 28, W: 28, K: 60, R: 3, S: 3, padding: 1, dtype: fp16"


def flaw(folder: Path, written: str = LAYER, **parts: str) -> Flaw:
    (rule,) = rulebook(folder, {"check": "C == 1", **parts}).rules
    case, values = rule.cases[-1], facts(written)
    return Violation(rule, case, places_of(case, values)).flaw(values)


def fix(new: str, other: str = "", describe: str = "d") -> dict[str, str]:
    return {"fix": f'{{ describe: "{describe}", set: {{ {new} }}' + (f", or: {{ {other} }}" if other else "") + " }"}


@pytest.mark.parametrize(
    ("new", "sets"),
    [
        ("C: '64'", {"C": 64}),
        ("C: '62'", {}),  # what is there already
        ("C: '64', K: '60'", {"C": 64}),
        ("C: '0'", {}),  # there is none
        ("C: 'C * 1000000000'", {}),  # larger than any layer may be
        ("PadH: '0'", {"PadH": 0, "PadH_end": 0}),  # a padding may well be none
        ("PadH: '2'", {"PadH": 2, "PadH_end": 2}),
        ("bias: 'false'", {"bias": False}),  # not known, so that it changes
        ("dtype: \"'bf16'\"", {"dtype": "bf16"}),
        ("dtype: \"'fp16'\"", {}),
        ("runtime.tf32: 'true'", {"runtime.tf32": True}),  # a setting is always said
    ],
)
def test_a_fix_sets_what_differs(new: str, sets: dict[str, Any], tmp_path: Path) -> None:
    if "PadH" in sets:
        new += ", PadH_end: '" + str(sets["PadH_end"]) + "'"
    assert flaw(tmp_path, **fix(new)).set == sets


def test_one_side_of_a_padding_alone_names_both(tmp_path: Path) -> None:
    assert flaw(tmp_path, **fix("PadH: '1', PadH_end: '2'")).set == {"PadH": 1, "PadH_end": 2}
    assert flaw(tmp_path, **fix("PadH: '1', PadH_end: '1', PadW: '2', PadW_end: '1'")).set == {"PadW": 2, "PadW_end": 1}


def test_a_declared_output_is_compared_with_what_was_declared(tmp_path: Path) -> None:
    assert flaw(tmp_path, LAYER + ", P: 29", **fix("P: 'P'")).set == {"P": 28}
    assert flaw(tmp_path, LAYER + ", P: 28", **fix("P: 'P'")).set == {}


@pytest.mark.parametrize(
    ("new", "other", "sets", "others"),
    [
        ("C: '64'", "C: '61'", {"C": 61}, {"C": 64}),  # the nearer one is the one to set
        ("C: '64'", "C: '60'", {"C": 64}, {"C": 60}),  # as near: the first
        ("C: '64'", "C: '32'", {"C": 64}, {"C": 32}),
        ("C: '0'", "C: '56'", {"C": 56}, {}),
        ("C: '64'", "C: '0'", {"C": 64}, {}),
        ("C: '64', N: '80'", "C: '124', N: '8'", {"C": 124}, {"C": 64, "N": 80}),  # by share of what is there
    ],
)
def test_of_two_good_values_the_nearer_is_set(
    new: str, other: str, sets: dict[str, int], others: dict[str, int], tmp_path: Path
) -> None:
    made = flaw(tmp_path, **fix(new, other))
    assert (made.set, made.other) == (sets, others)


@pytest.mark.parametrize(
    ("new", "problem"),
    [
        ("C: '0 - 1'", "sets C to -1, which no layer can have"),
        ("groups: '7'", "sets groups=7, but groups=7 must divide C=62 and K=60"),
        ("PadH: '0', PadH_end: '0', R: '40'", "which leaves no output"),
    ],
)
def test_a_rule_that_asks_for_what_no_layer_can_be_is_wrong(new: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ExprError) as caught:
        flaw(tmp_path, **fix(new))
    assert problem in caught.value.message
    with pytest.raises(ExprError):
        flaw(tmp_path, **fix("C: '64'", new.replace("R: '40'", "R: '41'")))


@pytest.mark.parametrize(
    ("sizes", "sets"),
    [
        ({"H": 3, "W": 3, "padding": 0}, {}),  # both computed sizes are negative
        ({"H": 3, "W": 3, "padding": [0, 6]}, {"Q": 7}),
        ({"H": 9, "W": 9, "padding": 0}, {"P": 1, "Q": 1}),
    ],
)
def test_our_own_rules_ask_no_layer_for_a_negative_size(sizes: dict[str, Any], sets: dict[str, int]) -> None:
    rules = Rulebook([load_rulebook().by_key["CL001"]])
    (finding,) = checked(rules, layer_of_hits("a", kernel_size=9, P=5, Q=5, **sizes)).findings
    assert finding.fix.set == sets


def test_what_a_fix_says_has_the_new_values(tmp_path: Path) -> None:
    made = flaw(tmp_path, message="{C} of {K}", **fix("C: '64'", describe="use {C}, K={K}"))
    assert (made.message, made.describe) == ("62 of 60", "use 64, K=60")


def test_a_flaw_points_at_what_breaks_the_rule(tmp_path: Path) -> None:
    assert flaw(tmp_path, at="[C, K]").places == ("C", "K")
    assert flaw(tmp_path, at="{ C: C == 1, K: K == 60, N: NPQ > 1e9 }").places == ("K",)


@pytest.mark.parametrize(
    ("join", "joins", "message"),
    [
        ('{ message: "{count}: {layers}, N={N}" }', True, f"{COUNT}: {LAYERS}, N=8"),
        ('{ when: C == 62, message: "{C}" }', True, "62"),
        ('{ when: C == 63, message: "{C}" }', False, ""),
    ],
)
def test_what_it_says_of_many_layers(join: str, joins: bool, message: str, tmp_path: Path) -> None:
    made = flaw(tmp_path, join=join)
    assert (made.join, made.join_message) == (joins, message)


@pytest.mark.parametrize(("text", "truth"), [(None, False), ("C == 62", True), ("C == 1", False), ("calls > K", False)])
def test_what_is_not_known_does_not_hold(text: str | None, truth: bool) -> None:
    expr = None if text is None else compile_expr(text, {"C": "number", "K": "number", "calls": "number"})
    assert holds(expr, facts("C: 62")) is truth


BUILTIN = load_rulebook()


def test_the_specific_silences_the_general_on_its_own_layer_only(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"check": "C == 64", "yields_to": "[XY001]"}, {"check": "K == 64"}, {"check": "C == 64"})
    result = checked(rules, layer_of_evaluate("both", C=8, K=8) + layer_of_evaluate("one", C=8))
    assert sorted(codes(result)) == [("XY000", "one"), ("XY001", "both"), ("XY002", "both"), ("XY002", "one")]


def test_silencing_is_not_passed_on(tmp_path: Path) -> None:
    """What is itself silenced still silences: the same cause was named, by the most specific."""
    rules = rulebook(tmp_path, {"yields_to": "[XY001]"}, {"yields_to": "[XY002]"}, {"check": "C == 1"})
    assert codes(checked(rules, layer_of_evaluate("a"))) == [("XY002", "a")]


@pytest.mark.parametrize(
    ("sizes", "speaks", "silent"),
    [
        ({"C": 62}, "CL102", ["CL201"]),
        ({"C": 3, "first": "true", "kernel_size": 7, "stride": 2, "H": 224, "W": 224}, "CL103", ["CL102", "CL201"]),
        ({"C": 62, "groups": 62, "K": 62}, None, ["CL601", "CL102", "CL201"]),
        ({"groups": 4, "C": 96, "K": 96}, "CL404", ["CL401"]),
        ({"groups": 32, "C": 512, "K": 512}, None, ["CL404"]),  # 16 channels have fast kernels
    ],
)
def test_precedence_of_the_built_in_rules(sizes: dict[str, object], speaks: str | None, silent: list[str]) -> None:
    fired = {finding.rule.code for finding in checked(BUILTIN, layer_of_evaluate("a", **sizes)).findings}
    assert speaks is None or speaks in fired
    assert not fired & set(silent)


def test_an_edge_rule_sees_connected_layers_only(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"scope": "edge", "check": "C == arriving.C", "message": "{arriving.source}"})
    result = checked(
        rules, layer_of_evaluate("a", K=32) + layer_of_evaluate("b") + layer_of_evaluate("c", C=32, H=None, W=None)
    )
    assert [(finding.layer, finding.message) for finding in result.findings] == [("c", "b")]


def test_what_is_lacking_is_named_and_never_passed(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"check": "N * P == 1"}, {"check": "runtime.cudnn >= '8'"}, {"check": "dtype == 'fp16'"})
    result = checked(rules, layer_of_evaluate("a", N=None, H=None, dtype=None))
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
    result = checked(rules, layer_of_evaluate("a", N=None))
    assert (codes(result), result.skipped) == ([("XY002", "a")], ())


def test_a_rule_that_divides_by_zero_is_a_defect_of_the_rule(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"check": "C // (K - 64) == 1"})
    with pytest.raises(RuleError, match="divides by zero") as caught:
        checked(rules, layer_of_evaluate("a"))
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
        checked(rulebook(tmp_path, parts), layer_of_evaluate("a"))
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
    assert codes(checked(rules, layer_of_evaluate("a"))) == [("XY000", "a")] + ([] if silent else [("XY001", "a")])


def test_the_first_variant_that_holds_speaks(tmp_path: Path) -> None:
    rules = rulebook(
        tmp_path,
        {"message": "default", "variants": '[ { when: N == 8, message: "eight" }, { when: N < 9, message: "few" } ]'},
    )
    layers = (
        layer_of_evaluate("a", N=8)
        + layer_of_evaluate("b", N=7)
        + layer_of_evaluate("c", N=64)
        + layer_of_evaluate("d", N=None)
    )
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
    result = checked(rules, layer_of_evaluate("a") + layer_of_evaluate("b"))
    fixes = [(finding.fix.describe.split(":")[0], finding.fix.set) for finding in result.findings if finding.fix]
    said = {
        (finding.layer or "", " ".join([finding.message, *(f"{fix[0]} {fix[1]['C']}" for fix in fixes[number:][:1])]))
        for number, finding in enumerate(result.findings)
    }
    assert said == found


def test_what_an_edge_leads_from_is_no_other_layer(tmp_path: Path) -> None:
    """Of equal layers that read nothing, the one with a branch beside it is told from the one without."""
    rules = rulebook(tmp_path, {"check": "not has_branches"})
    middle = layer_of_evaluate("left", input="root", C=None, H=None, W=None) + layer_of_evaluate(
        "right", input="root", C=None, H=None, W=None
    )
    result = checked(rules, layer_of_evaluate("alone") + layer_of_evaluate("root") + middle)
    assert codes(result) == [("XY000", "left"), ("XY000", "right")]
    assert not Evaluator(rules.rules).tells_apart


def test_a_truth_is_the_same_alone_and_compared(tmp_path: Path) -> None:
    join = {"join": "{ share: all, message: 'in {count} layers' }"}
    rules = rulebook(tmp_path, {"check": "bias", **join}, {"check": "bias == true", **join})
    layers = layer_of_evaluate("a", bias="false") + layer_of_evaluate("b", bias="false") + layer_of_evaluate("c")
    assert codes(checked(rules, layers)) == [("XY000", None), ("XY001", None)]


def test_what_a_rule_applies_to_is_told(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"when": "C == 3"}, {"when": "C == 4"}, {"check": "C == 3"}, {"check": "K == 1"})
    found = Evaluator(rules.rules).evaluate(facts("C: 3"), connected=False)
    assert found.applicable == ("XY000", "XY002")
    assert [flaw.rule.info.code for flaw in found.flaws] == ["XY000"]
    assert found.skipped == (("XY003", ("K",)),)


BOOK = load_rulebook()
RULE = BOOK.by_key["CL102"]
NUMBERS = count()


def hit(lost_us: float | None, severity: Severity = "warning", *, advised: bool = True, rule: str = "CL102") -> Hit:
    found = BOOK.by_key[rule]
    flaw = Flaw(rule=found, case=found.cases[-1], places=(), message="m")
    price = Price(lost_us=lost_us, advised=advised)
    return Hit(flaw, (0,), ("a",), Location(path="a"), "m", ({},), {}, severity, next(NUMBERS), price=price)


@pytest.mark.parametrize(
    ("lost", "severities"),
    [
        ([10.0], ["warning"]),  # 1 % of the network's 1000 us
        ([9.99], ["info"]),
        ([0.0], ["info"]),
        ([30.0, 8.0, 9.0], ["warning", "info", "info"]),
        ([9.0] * 6, ["warning", "warning", "warning", "info", "info", "info"]),  # 54 us: half of what can be saved
        ([9.0] * 5, ["info"] * 5),  # less than 5 %
        ([5.0, 9.0, 9.0, 9.0, 9.0, 9.0], ["info", "warning", "warning", "warning", "info", "info"]),
    ],
)
def test_what_loses_most_warns(lost: Sequence[float], severities: Sequence[Severity]) -> None:
    assert [each.severity for each in graded([hit(us) for us in lost], 1000.0)] == severities


def test_no_info_loses_more_than_a_warning() -> None:
    found = graded([hit(us) for us in (3.0, 7.0, 1.0, 8.0, 40.0, 6.0, 9.5, 2.0)], 1000.0)
    warned = [each.price.lost_us for each in found if each.severity == "warning"]
    silent = [each.price.lost_us for each in found if each.severity == "info"]
    assert min(warned, default=0.0) >= max(silent)  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("one", "severity"),
    [
        (hit(500.0, advised=False), "info"),  # nobody is advised to do it
        (hit(0.0, "error"), "error"),
        (hit(None, "warning", rule="CL005"), "warning"),  # has no price
        (hit(None, "info", rule="CL405"), "info"),
        (hit(0.0, "warning", advised=False, rule="CL201"), "info"),  # capacity is evidence
        (hit(None, "warning", rule="CL401", advised=False), "info"),  # the time is not predictable
    ],
)
def test_errors_and_what_has_no_price_stand(one: Hit, severity: Severity) -> None:
    assert [each.severity for each in graded([one], 1000.0)] == [severity]


@pytest.mark.parametrize(
    ("source", "sets", "severity"),
    [
        ("stated", {"dtype": "fp16"}, "warning"),
        ("storage", {"K": 64}, "info"),
        ("module", {"dtype": "fp16"}, "info"),
        ("module", {"K": 64}, "warning"),
    ],
)
def test_what_rests_on_a_dtype_that_nobody_stated(
    source: DtypeSource, sets: dict[str, int | str], severity: Severity
) -> None:
    flaw = Flaw(rule=RULE, case=replace(RULE.cases[-1], severity="warning"), places=(), message="m", set=sets)
    assert stated(flaw, ConvLayer(name="a", dtype_source=source)) == severity
    assert stated(flaw) == "warning"


@pytest.mark.parametrize(("most_us", "expected"), [(None, 40.0), (100.0, 40.0), (25.0, 25.0), (0.0, 0.0)])
def test_less_work_shortens_no_step_that_waits_for_its_host(most_us: float | None, expected: float) -> None:
    setting, lever = (replace(hit(30.0), number=number) for number in (1, 2))
    first, second = priced_by_step([setting, lever], {}, 1000.0, {1: 10.0}, most_us)
    assert first.price.lost_step_us == expected
    assert second.price.lost_step_us == (most_us if most_us is not None and most_us < 30.0 else None)
