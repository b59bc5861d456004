"""What of a rule's file decides and speaks: names in terms of those before, cases with what variants leave out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cases import for_each
from layer_facts import facts
from rule_texts import RULE as RULE_of_source_code
from rule_texts import written
from source_records import record

from convlint.cli.commands.rules import document
from convlint.engine.check import Target, check_network
from convlint.engine.source_check import check_source
from convlint.facts.predicted import PASS_TABLES
from convlint.files.cache import packed, unpacked
from convlint.files.located_yaml import parse
from convlint.gpus.gpu import load_gpu
from convlint.model.errors import RuleError
from convlint.model.report import Finding
from convlint.model.source import SourceLayer, SourceReading
from convlint.readers.spec.reader import read_fragment
from convlint.rulebook import book
from convlint.rulebook.book import Rulebook, linked, load_rulebook
from convlint.rulebook.file import read_rule
from convlint.rulebook.judgement import (
    GPU_NAMES,
    MEANINGS,
    MOST_PARTS,
    PLACES,
    SETTABLE,
    SUPPRESSION,
    SUPPRESSION_MEANINGS,
    VOCABULARY,
    Pieces,
    cases_of,
    join_of,
    let_of,
    loss_of,
)
from convlint.rulebook.rule import Fragments, Rule, Template


def test_every_name_has_a_meaning() -> None:
    assert MEANINGS.keys() == VOCABULARY.keys()
    assert SUPPRESSION_MEANINGS.keys() == SUPPRESSION.keys()
    assert all({**MEANINGS, **SUPPRESSION_MEANINGS}.values())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("C", "number"), ("dtype.bytes", "number"), ("network.time_us", "number"), ("fprop.waves", "number"),
        ("name", "text"), ("gpu.id", "text"), ("support.cudnn_last", "text"), ("tiles_worst.pass_name", "text"),
        ("dgrad.bound_by", "text"), ("first", "truth"), ("gpu.tensor_fp8", "truth"), ("runtime.tf32", "truth"),
        ("support.cuda_dropped", "truth"), ("gpu.compute_capability", "version"), ("runtime.cudnn", "version"),
        ("stated.cudnn_benchmark", "truth"), ("stated.deterministic", "truth"), ("has_branches", "truth"),
        ("on_branches", "text"),
    ],
)  # fmt: skip
def test_types(name: str, kind: str) -> None:
    assert VOCABULARY[name] == kind


@pytest.mark.parametrize(
    ("name", "depends"),
    [
        ("C", False), ("dtype", False), ("runtime.cudnn", False), ("network.layers", False), ("arriving.C", False),
        ("compute_dtype", True), ("alignment", True), ("fprop.time_us", True), ("tiles_worst.tile_m", True),
        ("network.time_us", True), ("support.cudnn_dropped", True), ("batch_above", True), ("tile_K", True),
        ("stated.xla_gpu_autotune_level", False), ("on_branches", False), ("has_branches", False),
    ],
)  # fmt: skip
def test_what_depends_on_the_gpu(name: str, depends: bool) -> None:
    assert name in VOCABULARY
    assert (name in GPU_NAMES) == depends


def test_what_a_fix_may_set_can_be_pointed_at() -> None:
    assert set(SETTABLE) <= set(PLACES)
    assert {name for name in SETTABLE if "." not in name} <= VOCABULARY.keys()
    assert "version" not in SETTABLE.values()  # no fix makes up a release


def test_passes_have_the_same_names() -> None:
    by_prefix = {
        prefix: {name.split(".")[1] for name in VOCABULARY if name.startswith(f"{prefix}.")} - {"pass_name"}
        for prefix in PASS_TABLES
    }
    assert len(by_prefix["fprop"]) > 15
    assert all(names == by_prefix["fprop"] for names in by_prefix.values())


SIZED = "N: 8, C: 64, H: 28, W: 28, K: 64, R: 3, S: 3, padding: 1, dtype: fp16, layout: NHWC, bias: true, "


@for_each("name", [name for name in VOCABULARY if "." not in name])
def test_every_name_of_a_layer_can_be_read(name: str) -> None:
    found = facts(SIZED + "name: a")
    kinds: dict[str, type | tuple[type, ...]] = {"number": (int, float), "text": str, "truth": bool}
    value = found[name]
    assert repr(value) == "UNKNOWN" or isinstance(value, kinds[VOCABULARY[name]]), value


RULE = """\
code: XY100
name: odd-channels
title: Channels are odd
severity: warning
let: { odd_C: given(C % 2 != 0), odd_K: given(K % 2 != 0) }
check: not odd_C and not odd_K
message:
  - { when: odd_C, text: "C={C} is odd" }
  - { when: odd_K, text: "K={K} is odd" }
  - { when: N > 1, text: "in a batch of {N}" }
at: { C: odd_C, K: odd_K }
rationale: Pairs of channels travel together.
source: { document: house-rules, section: "1" }
examples: { pass: [ { C: 4 } ], fail: [ { given: { C: 3 } } ] }
"""
Make = Callable[[str], Rule]


@pytest.fixture
def made(tmp_path: Path) -> Make:
    """A rule from its text."""

    def make(text: str) -> Rule:
        path = tmp_path / "rule.yaml"
        path.write_text(text)
        return read_rule(str(path))

    return make


def findings(rule: Rule, *layers: str) -> list[Finding]:
    parsed = parse("version: 1\nlayers:\n" + "".join(f"  - {{ {layer} }}\n" for layer in layers))
    assert parsed is not None
    network, errors = read_fragment(parsed, "net.yaml")
    assert network is not None, errors
    target = Target(label="a100", gpu=load_gpu("a100"))
    return list(check_network(network, Rulebook(linked([rule])), [target], "training").findings)


def messages(rule: Rule, *layers: str) -> list[str]:
    return [finding.message for finding in findings(rule, *layers)]


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ("C: 3, K: 5, N: 8", "C=3 is odd, K=5 is odd, in a batch of 8"),
        ("C: 3, K: 5, N: 1", "C=3 is odd, K=5 is odd"),
        ("C: 4, K: 5, N: 8", "K=5 is odd, in a batch of 8"),
        ("C: 3, N: 1", "C=3 is odd"),
        ("K: 5", "K=5 is odd"),  # N is not known, so neither is whether there is a batch
    ],
)
def test_the_texts_that_hold_are_joined(layer: str, message: str, made: Make) -> None:
    assert messages(made(RULE), layer) == [message]


def test_where_none_holds_stands_the_title(made: Make) -> None:
    rule = made(RULE.replace("{ when: odd_C, text", "{ when: N > 99, text"))
    assert messages(rule, "C: 3, K: 4, N: 1") == ["Channels are odd"]
    assert messages(rule, "C: 3, K: 4") == ["Channels are odd"]


def test_a_fragment_without_when_holds_and_shows_the_unknown(made: Make) -> None:
    rule = made(RULE.replace("{ when: N > 1, text", "{ text"))
    assert messages(rule, "C: 3") == ["C=3 is odd, in a batch of ?"]


def test_a_variant_has_fragments_of_its_own_or_those_of_the_rule(made: Make) -> None:
    variants = """\
variants:
  - when: C == 3
    message: [ { text: three }, { when: odd_K, text: "K={K:.1f}" } ]
  - when: C == 5
    severity: info
  - when: C == 7
    message: seven
"""
    rule = made(RULE + variants)
    assert messages(rule, "C: 3, K: 5", "C: 3, K: 4") == ["three, K=5.0", "three"]
    assert [(f.severity, f.message) for f in findings(rule, "C: 5, K: 5")] == [("info", "C=5 is odd, K=5 is odd")]
    assert messages(rule, "C: 7, K: 5") == ["seven"]


def test_joined_findings_say_which_fragments_hold_and_join_only_where_they_are_the_same(made: Make) -> None:
    join = """\
join:
  share: any
  message:
    - { when: odd_C, text: "odd C" }
    - { when: odd_K, text: "odd K" }
    - { text: "in {count} layers: {layers}" }
"""
    rule = made(RULE + join)
    layers = ["name: a, C: 3", "name: b, C: 5", "name: c, C: 4, K: 3", "name: d, C: 3, K: 3", "name: e, C: 4, K: 7"]
    # a and b take their K from nobody and say the same; d stands alone with its own message
    assert messages(rule, *layers) == [
        "odd C, in 2 layers: a, b", "odd K, in 2 layers: c, e", "C=3 is odd, K=3 is odd",
    ]  # fmt: skip


def test_the_cache_keeps_fragments(made: Make) -> None:
    rule = made(RULE + "join: { message: [ { when: odd_C, text: 'in {layers}' } ] }\nvariants: [ { when: odd_K } ]\n")
    kept = book._rule(unpacked(packed(book._plain(rule), "KEY"), "KEY"))
    assert kept == rule
    assert isinstance(kept.cases[-1].message, Fragments)
    assert kept.cases[0].message == rule.cases[-1].message
    assert isinstance(kept.join.message, Fragments)
    for layer in ("C: 3, K: 5, N: 8", "C: 4, K: 5"):
        assert messages(kept, layer) == messages(rule, layer)


def test_fragments_differ_where_a_text_a_condition_or_the_order_does(made: Make) -> None:
    message = made(RULE).cases[-1].message
    assert isinstance(message, Fragments)
    assert message == made(RULE).cases[-1].message
    others = [
        RULE.replace("C={C} is odd", "C={K} is odd"),
        RULE.replace("title: Channels", "title: Some channels"),
        RULE.replace('  - { when: odd_K, text: "K={K} is odd" }\n', ""),
    ]
    for text in others:
        assert made(text).cases[-1].message != message
    assert message != Template(("C",))


def test_names_in_fragments_set_layers_apart_and_depend_on_the_gpu(made: Make) -> None:
    assert "name" in made(RULE.replace("C={C} is odd", "{name} is odd")).names_in_messages()
    assert "name" in made(RULE.replace("when: N > 1", 'when: name == "a"')).names_in_messages()
    assert "name" not in made(RULE).names_in_messages()
    assert made(RULE.replace("when: N > 1", "when: gpu.sms > 1")).needs_gpu
    assert made(RULE.replace("batch of {N}", "batch on {gpu.name}")).needs_gpu
    assert not made(RULE).needs_gpu


def test_the_documentation_shows_every_fragment_with_its_condition(made: Make) -> None:
    lines = document(made(RULE), 80).splitlines()
    start = lines.index("Says, joined by commas")
    assert lines[start + 1 : start + 5] == [
        "  C={C} is odd (where odd_C)",
        "  K={K} is odd (where odd_K)",
        "  in a batch of {N} (where N > 1)",
        "",
    ]
    plain = RULE[: RULE.index("  - {")].rstrip() + " odd\n" + RULE[RULE.index("at: ") :]
    assert "Says" not in document(made(plain), 80)


@pytest.mark.parametrize(("count", "read"), [(0, False), (1, True), (12, True), (13, False)])
def test_a_message_has_at_most_twelve_fragments(count: int, read: bool, made: Make) -> None:
    start, end = RULE.index("message:"), RULE.index("at: {")
    fragments = ", ".join('{ text: "C={C}" }' for _ in range(count))
    text = f"{RULE[:start]}message: [{fragments}]\n{RULE[end:]}"
    if read:
        assert isinstance(made(text).cases[-1].message, Fragments)
        return
    with pytest.raises(RuleError, match=f"a list holds 1 to 12 fragments, not {count}"):
        made(text)


def pieces(text: str) -> Pieces:
    document = parse(text)
    assert document is not None
    return Pieces("rule.yaml", document)


def test_names_are_in_terms_of_those_before_them() -> None:
    rule = pieces("let: { twice: 2 * C, more: twice + 1 }")
    assert [(name, expr.type) for name, expr in let_of(rule)] == [("twice", "number"), ("more", "number")]
    assert rule.names["more"] == "number"
    with pytest.raises(RuleError, match="unknown name 'twice'"):
        let_of(pieces("let: { more: twice + 1, twice: 2 * C }"))
    assert let_of(pieces("title: x")) == ()


@pytest.mark.parametrize("name", ["source", "width", "program", "gpu", "suppression"])
def test_no_name_hides_one_of_the_vocabulary(name: str) -> None:
    with pytest.raises(RuleError, match="cannot be a name here"):
        let_of(pieces(f"let: {{ {name}: C }}"))


def test_what_a_variant_leaves_out_is_the_rule_s() -> None:
    text = (
        "severity: info\nmessage: own\nat: C\nvariants: [ { when: C == 3, message: three }, { when: C == 4, at: K } ]\n"
    )
    three, four, own = cases_of(pieces(text))
    assert [case.severity for case in (three, four, own)] == ["info", "info", "info"]
    assert [case.message.render({}) for case in (three, four, own)] == ["three", "own", "own"]
    assert [case.at[0][0] for case in (three, four, own)] == ["C", "K", "C"]
    assert [case.when is None for case in (three, four, own)] == [False, False, True]


def test_there_are_only_so_many_parts() -> None:
    many = ", ".join(f"n{number}: C" for number in range(MOST_PARTS + 1))
    with pytest.raises(RuleError, match="more than 200 names"):
        let_of(pieces(f"let: {{ {many} }}"))
    variants = ", ".join(["{ when: C == 3 }"] * (MOST_PARTS + 1))
    with pytest.raises(RuleError, match="variants: more than 200"):
        cases_of(pieces(f"severity: info\nmessage: m\nvariants: [ {variants} ]"))


def test_prices_and_joins() -> None:
    assert loss_of(pieces("title: x")) == ("none", ())
    assert loss_of(pieces("loss: tile")) == ("tile", ("fprop", "dgrad", "wgrad"))
    assert loss_of(pieces("loss: { kind: tile, passes: [wgrad] }")) == ("tile", ("wgrad",))
    assert join_of(pieces("title: x")) is None
    join = join_of(pieces("title: x\njoin: { share: any, message: '{count} layers' }"))
    assert (join.share, join.when) == ("any", None)


def test_places_are_those_of_the_scope() -> None:
    with pytest.raises(RuleError, match="at: unknown place 'width'"):
        cases_of(pieces("severity: info\nmessage: m\nat: width"))
    rule = pieces("severity: info\nmessage: m\nat: width")
    rule.reads("width")
    assert cases_of(rule)[0].at == (("width", None),)


OWN_SCOPE = RULE_of_source_code.replace("when: groups == 1", "scope: width\nwhen: groups == 1").replace(
    "loss: none\n", ""
)


def judged(rule: Rule, *records: SourceLayer) -> list[Finding]:
    target = Target(label="a100", gpu=load_gpu("a100"))
    reading = SourceReading(layers=records)
    return list(check_source(reading, Rulebook([rule]), [target], None, given=("net.py",)).findings)


def rule_with(folder: Path, source_code: str, text: str = RULE_of_source_code) -> Rule:
    return read_rule(written(folder, text.replace("loss: none\n", f"loss: none\nsource_code: {source_code}\n")))


def test_a_rule_that_says_nothing_of_source_judges_none(tmp_path: Path) -> None:
    rule = read_rule(written(tmp_path, RULE_of_source_code))
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
    text = RULE_of_source_code.replace("loss: none\n", "variants: [ { when: C == 3, message: three } ]\nloss: none\n")
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
        read_rule(written(tmp_path, RULE_of_source_code.replace("groups == 1", "source.stated")))


def test_the_rules_that_judge_source_are_these() -> None:
    scopes = {rule.info.code: rule.scope for rule in load_rulebook().of_source}
    assert scopes == {
        "CL102": "width", "CL106": "program", "CL501": "program", "CL502": "program", "CL503": "program",
        "CL504": "program", "CL506": "construction", "CL507": "program", "CL508": "program", "CL509": "program",
        "CL811": "construction", "CL818": "program",
    }  # fmt: skip
