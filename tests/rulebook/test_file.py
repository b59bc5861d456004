"""Rule files: what decides and speaks in them, and what is refused and where, whatever the text."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from cases import for_each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from layer_facts import facts
from rule_texts import RULE, edited, written
from source_records import record

from convlint.cli.commands.rules import document
from convlint.engine.check import Target, check_network
from convlint.engine.source_check import check_source
from convlint.facts.predicted import PASS_TABLES
from convlint.files.cache import packed, unpacked
from convlint.files.located_yaml import parse
from convlint.gpus.gpu import load_gpu
from convlint.mend.examples import run_examples
from convlint.model.errors import RuleError
from convlint.model.report import Finding
from convlint.model.source import SourceLayer, SourceReading
from convlint.readers.spec.reader import read_fragment
from convlint.rulebook import book
from convlint.rulebook.book import Rulebook, linked, load_rulebook
from convlint.rulebook.file import (
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
    read_rule,
    texts_of,
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


PIECED = """\
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
    assert messages(made(PIECED), layer) == [message]


def test_where_none_holds_stands_the_title(made: Make) -> None:
    rule = made(PIECED.replace("{ when: odd_C, text", "{ when: N > 99, text"))
    assert messages(rule, "C: 3, K: 4, N: 1") == ["Channels are odd"]
    assert messages(rule, "C: 3, K: 4") == ["Channels are odd"]


def test_a_fragment_without_when_holds_and_shows_the_unknown(made: Make) -> None:
    rule = made(PIECED.replace("{ when: N > 1, text", "{ text"))
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
    rule = made(PIECED + variants)
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
    rule = made(PIECED + join)
    layers = ["name: a, C: 3", "name: b, C: 5", "name: c, C: 4, K: 3", "name: d, C: 3, K: 3", "name: e, C: 4, K: 7"]
    # a and b take their K from nobody and say the same; d stands alone with its own message
    assert messages(rule, *layers) == [
        "odd C, in 2 layers: a, b", "odd K, in 2 layers: c, e", "C=3 is odd, K=3 is odd",
    ]  # fmt: skip


def test_the_cache_keeps_fragments(made: Make) -> None:
    rule = made(PIECED + "join: { message: [ { when: odd_C, text: 'in {layers}' } ] }\nvariants: [ { when: odd_K } ]\n")
    kept = book._rule(unpacked(packed(book._plain(rule), "KEY"), "KEY"))
    assert kept == rule
    assert isinstance(kept.cases[-1].message, Fragments)
    assert kept.cases[0].message == rule.cases[-1].message
    assert kept.join is not None
    assert isinstance(kept.join.message, Fragments)
    for layer in ("C: 3, K: 5, N: 8", "C: 4, K: 5"):
        assert messages(kept, layer) == messages(rule, layer)


def test_fragments_differ_where_a_text_a_condition_or_the_order_does(made: Make) -> None:
    message = made(PIECED).cases[-1].message
    assert isinstance(message, Fragments)
    assert message == made(PIECED).cases[-1].message
    others = [
        PIECED.replace("C={C} is odd", "C={K} is odd"),
        PIECED.replace("title: Channels", "title: Some channels"),
        PIECED.replace('  - { when: odd_K, text: "K={K} is odd" }\n', ""),
    ]
    for text in others:
        assert made(text).cases[-1].message != message
    assert message != Template(("C",))


def test_names_in_fragments_set_layers_apart_and_depend_on_the_gpu(made: Make) -> None:
    assert "name" in made(PIECED.replace("C={C} is odd", "{name} is odd")).names_in_messages()
    assert "name" in made(PIECED.replace("when: N > 1", 'when: name == "a"')).names_in_messages()
    assert "name" not in made(PIECED).names_in_messages()
    assert made(PIECED.replace("when: N > 1", "when: gpu.sms > 1")).needs_gpu
    assert made(PIECED.replace("batch of {N}", "batch on {gpu.name}")).needs_gpu
    assert not made(PIECED).needs_gpu


def test_the_documentation_shows_every_fragment_with_its_condition(made: Make) -> None:
    lines = document(made(PIECED), 80).splitlines()
    start = lines.index("Says, joined by commas")
    assert lines[start + 1 : start + 5] == [
        "  C={C} is odd (where odd_C)",
        "  K={K} is odd (where odd_K)",
        "  in a batch of {N} (where N > 1)",
        "",
    ]
    plain = PIECED[: PIECED.index("  - {")].rstrip() + " odd\n" + PIECED[PIECED.index("at: ") :]
    assert "Says" not in document(made(plain), 80)


@pytest.mark.parametrize(("count", "read"), [(0, False), (1, True), (12, True), (13, False)])
def test_a_message_has_at_most_twelve_fragments(count: int, read: bool, made: Make) -> None:
    start, end = PIECED.index("message:"), PIECED.index("at: {")
    fragments = ", ".join('{ text: "C={C}" }' for _ in range(count))
    text = f"{PIECED[:start]}message: [{fragments}]\n{PIECED[end:]}"
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
    assert join is not None
    assert (join.share, join.when) == ("any", None)


def test_places_are_those_of_the_scope() -> None:
    with pytest.raises(RuleError, match="at: unknown place 'width'"):
        cases_of(pieces("severity: info\nmessage: m\nat: width"))
    rule = pieces("severity: info\nmessage: m\nat: width")
    rule.reads("width")
    assert cases_of(rule)[0].at == (("width", None),)


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
        "CL811": "construction", "CL818": "program",
    }  # fmt: skip


RULES = {rule.info.code: rule for rule in load_rulebook().rules}


def test_texts_are_all_that_a_rule_says() -> None:
    texts = set(texts_of(RULES["CL103"]))
    assert {"in NHWC, ", RULES["CL103"].info.title, RULES["CL103"].info.rationale} <= texts
    assert "NCHW" not in texts  # what an expression compares with
    assert "{width.layers}: no multiple of 8 (fp16, bf16){source.proviso}" in set(texts_of(RULES["CL102"]))


def test_the_rule_that_the_defects_start_from(tmp_path: Path) -> None:
    rule = read_rule(written(tmp_path, RULE))
    assert [outcome.problem for outcome in run_examples(rule)] == [None, None]


MESSAGE = 'message: "C={C} should be {even}"'

DEFECTS: list[tuple[str, str, int, int, str]] = [
    ("title:", "tilte:", 1, 1, "unknown key"),
    ("loss: none", "lose: none", 14, 1, "unknown key 'lose' in a rule; did you mean 'loss'?"),
    ("code: XY100\n", "", 1, 1, "code is missing"),
    ("code: XY100", "code: 100", 1, 7, "code: capital letters and three or four digits"),
    ("code: XY100", "code: [XY100]", 1, 7, "code: must be text, not a list"),
    ("name: odd-channels", "name: Odd Channels", 2, 7, "name: lower-case words joined by hyphens"),
    ("name: odd-channels", "name: all", 2, 7, "name: lower-case words"),
    ("title: Channels are odd", "title:", 3, 7, "title: must be text, not nothing"),
    ("title: Channels are odd", "title: ''", 3, 8, "title: must be text, not empty"),
    ("severity: warning\nwhen", "severity: waring\nwhen", 4, 11, "severity: 'waring' is not one of error, warning"),
    ("when: groups == 1", "when: groupss == 1", 5, 7, "when: unknown name 'groupss'; did you mean 'groups'?"),
    ("when: groups == 1", "when: groups", 5, 7, "when: groups is a number, a truth belongs here"),
    ("when: groups == 1", "when: {}", 5, 7, "when: must be text, not a mapping"),
    ("when: groups == 1", "when: even == 2", 5, 7, "when: unknown name 'even'"),
    ('let: { even: "ceil_to(C, 2)" }', "let: [even]", 6, 6, "let must map names to expressions"),
    ("{ even: ", "{ _even: ", 6, 15, "let: '_even' cannot be a name here"),
    ("{ even: ", "{ gpu: ", 6, 13, "let: 'gpu' cannot be a name here"),
    ("{ even: ", "{ min: ", 6, 13, "let: 'min' cannot be a name here"),
    ("{ even: ", "{ C: ", 6, 11, "let: 'C' cannot be a name here"),
    ("{ even: ", "{ if: ", 6, 12, "let: 'if' cannot be a name here"),
    ('"ceil_to(C, 2)"', '"ceil_to(C)"', 6, 14, "let: even: ceil_to takes 2 arguments"),
    ("check: C % 2 == 0", "check: C % 2", 7, 8, "check: C % 2 is a number, a truth belongs here"),
    ("check: C % 2 == 0", "check: C % 2 = 0", 7, 8, "check: not an expression"),
    ("check: C % 2 == 0", "check: C ** 2 == 4", 7, 8, "check: BinOp is not part of the language"),
    ("check: C % 2 == 0", "check: __import__('os')", 7, 8, "check: unknown function '__import__'"),
    ("C={C} should", "C={c} should", 8, 10, "message: unknown name 'c' in a message; did you mean 'C'?"),
    ("C={C} should", "C={C + 1} should", 8, 10, "message: a message holds {names} only"),
    ("C={C} should", "C={ should", 8, 10, "message: a message holds {names} only"),
    ("C={C} should", "C={C:d} should", 8, 10, "message: 'd' is no format for a number"),
    ("C={C} should", "C={C:..f} should", 8, 10, "message: '..f' is no format for a number"),
    ("C={C} should", "C={layout:.1f} should", 8, 10, "message: layout is no number and takes no format"),
    (MESSAGE, "message: []", 8, 10, "message: a list holds 1 to 12 fragments, not 0"),
    (MESSAGE, "message: [ C is odd ]", 8, 12, "message: each fragment is a mapping of when and text"),
    (MESSAGE, "message: [ [ { text: x } ] ]", 8, 12, "message: each fragment is a mapping of when and text"),
    (MESSAGE, "message: [ { when: first } ]", 8, 12, "message: a fragment needs text"),
    (MESSAGE, "message: [ { text: x }, {} ]", 8, 25, "message: a fragment needs text"),
    (MESSAGE, "message: [ { txt: x } ]", 8, 14, "unknown key 'txt' in a fragment of message; did you mean 'text'?"),
    (MESSAGE, "message: [ { text: [ x ] } ]", 8, 20, "message: text: must be text, not a list"),
    (MESSAGE, "message: [ { text: '' } ]", 8, 20, "message: text: must be text, not empty"),
    (MESSAGE, 'message: [ { text: "{c}" } ]', 8, 20, "message: text: unknown name 'c' in a message; did you mean 'C'?"),
    (MESSAGE, 'message: [ { text: "{C + 1}" } ]', 8, 20, "message: text: a message holds {names} only"),
    (MESSAGE, "message: [ { when: C, text: x } ]", 8, 20, "message: when: C is a number, a truth belongs here"),
    (MESSAGE, "message: [ { when: [], text: x } ]", 8, 20, "message: when: must be text, not a list"),
    (MESSAGE, "message: [ { when: evn > 1, text: x } ]", 8, 20, "unknown name 'evn'; did you mean 'even'?"),
    (MESSAGE, "message: [ { when: first or, text: x } ]", 8, 20, "message: when: not an expression"),
    (MESSAGE, "message: [ " + ", ".join(["{ text: x }"] * 13) + " ]", 8, 10, "fragments, not 13"),
    (MESSAGE, "message: { text: x }", 8, 10, "message: must be text, not a mapping"),
    ("loss: none", "variants: [ { when: first, message: [] } ]", 14, 37, "message: a list holds 1 to 12 fragments"),
    ("loss: none", "join: { message: [ { when: first } ] }", 14, 20, "join: message: a fragment needs text"),
    ("loss: none", "join: { message: [ { when: count > 1, text: x } ] }", 14, 28, "unknown name 'count'"),
    (MESSAGE, MESSAGE + "\nlet: { given: 1 }", 9, 1, "duplicate key 'let'"),
    ("{ even: ", "{ given: ", 6, 15, "let: 'given' cannot be a name here"),
    ("{ even: ", "{ gcd: ", 6, 13, "let: 'gcd' cannot be a name here"),
    ("at: C", "at: channels", 9, 5, "at: unknown place 'channels'"),
    ("at: C", "at: { C: 3 }", 9, 10, "at: 3 is a number, a truth belongs here"),
    ('fix:\n  describe: "use C={even}"', "fix:", 11, 3, "fix needs describe"),
    ("safety: unsafe", "safety: maybe", 12, 11, "safety: 'maybe' is not one of safe, unsafe"),
    ("set: { C: even }", "set: { channels: even }", 13, 20, "set: unknown field 'channels'"),
    ("set: { C: even }", "set: { C: layout }", 13, 13, "set: C: layout is a text, a number belongs here"),
    ("set: { C: even }", "set: C", 13, 8, "set must map fields to expressions"),
    (
        "loss: none", "loss: tiles", 14, 7,
        "loss: 'tiles' is not one of fix, tile, wave, host, compile, none; did you mean 'tile'?",
    ),
    ("loss: none", "loss: { kind: tile }", 14, 7, "loss needs passes"),
    ("loss: none", "loss: { kind: tile, passes: [fwd] }", 14, 29, "loss: passes are fprop, dgrad, wgrad"),
    ("loss: none", "loss: { kind: tile, passes: [] }", 14, 29, "loss: passes are fprop, dgrad, wgrad"),
    ("loss: none", "join: { share: all }", 14, 7, "join needs message"),
    ("loss: none", "join: { share: some, message: x }", 14, 16, "share: 'some' is not one of all, any"),
    ("loss: none", "join: all", 14, 7, "join is a mapping"),
    ("loss: none", "scope: world", 14, 8, "scope: 'world' is not one of layer, edge, network"),
    ("loss: none", "opt_in: 1", 14, 9, "opt_in: '1' is not one of true, false"),
    ("loss: none", "evidence: yes", 14, 11, "evidence: 'yes' is not one of true, false"),
    ("loss: none", "yields_to: { a: b }", 14, 12, "yields_to: must be text, not a mapping"),
    ("loss: none", "variants: [ x ]", 14, 13, "a variant is a mapping"),
    ("loss: none", "variants: [ { message: x } ]", 14, 13, "a variant needs when"),
    ("loss: none", "variants: [ { when: first, check: first } ]", 14, 28, "unknown key 'check' in a variant"),
    ("loss: none", "loss: none\nloss: fix", 15, 1, "duplicate key 'loss'; first given on line 14"),
    ("loss: none", "loss: !!str none", 14, 7, "tags such as"),
    ("source: { document: house-rules, section: \"1\" }", "source: house-rules", 16, 9, "source is a mapping"),
    (', section: "1"', "", 16, 9, "source needs section"),
    (', section: "1"', ', section: "1", page: 3', 16, 48, "unknown key 'page' in source"),
    ("  pass: [ { C: 4 } ]\n", "", 18, 3, "examples needs pass"),
    ("[ { C: 4 } ]", "[]", 18, 9, "examples: at least one that should pass"),
    ("[ { C: 4 } ]", "{ C: 4 }", 18, 9, "examples: at least one that should pass"),
    ("[ { C: 4 } ]", "[ 4 ]", 18, 11, "examples: each is a mapping"),
    ("given: { C: 3 }", "give: { C: 3 }", 20, 7, "unknown key 'give' in an example; did you mean 'given'?"),
    ("- given: { C: 3 }\n      message", "- message", 20, 7, "examples: one that should fail needs given"),
    ("given: { C: 3 }", "given: 3", 20, 7, "examples: one that should fail needs given, a mapping"),
    ("fixed: { C: 4 }", "fixed: { channels: 4 }", 23, 26, "fixed: unknown field 'channels'"),
    ("fixed: { C: 4 }", "fixed: 4", 23, 14, "fixed must map fields to their new values"),
    ("      severity: warning\n", "      severity: bad\n", 22, 17, "severity: 'bad' is not one of"),
    ("code: XY100", "code: 'XY100", 24, 1, "is not valid YAML"),
    ("code: XY100", "code: \x07", 1, 7, "character U+0007 is not allowed"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "column", "message"), DEFECTS)
def test_a_defective_rule_is_refused_at_its_place(
    old: str, new: str, line: int, column: int, message: str, tmp_path: Path
) -> None:
    path = written(tmp_path, edited(old, new))
    with pytest.raises(RuleError) as caught:
        load_rulebook([str(tmp_path)])
    assert message in caught.value.message
    assert caught.value.path == path
    if message != "unknown key":
        assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).startswith(f"{path}:{caught.value.line}:{caught.value.column}: ")


@pytest.mark.parametrize(("text", "message"), [("", "a rule is a mapping"), ("- x", "a rule is a mapping")])
def test_no_rule_at_all(text: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(RuleError, match=message) as caught:
        load_rulebook([str(tmp_path)])
    assert (caught.value.path, caught.value.line) == (path, 1)


# --- rules as untrusted input

keys = st.sampled_from([*RULE.replace(":", " ").split(), "variants", "join", "scope", "yields_to", "opt_in", "or"])
values = st.recursive(
    st.sampled_from([*RULE.split(), "C + 1", "first", "gpu.sms > 3", "{C}", "C / K", "a100"])
    | st.integers()
    | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.dictionaries(keys, values, max_size=3), cut=st.integers(0, len(RULE)))
def test_any_rule_text_is_read_or_refused(changes: dict[str, Any], cut: int, tmp_path: Path) -> None:
    rule = {**yaml.safe_load(RULE), **changes}
    for text in (yaml.safe_dump(rule), RULE[:cut]):
        path = written(tmp_path, text)
        refused = None
        try:
            made = linked([read_rule(path)], load_rulebook().rules)[0]
            list(run_examples(made))
        except RuleError as error:
            refused = error
        assert refused is None or refused.path == path


@pytest.mark.parametrize(
    ("key", "count", "message"),
    [("let", 200, None), ("let", 201, "let: more than 200 names"), ("variants", 200, None),
     ("variants", 201, "variants: more than 200")],
)  # fmt: skip
def test_a_rule_has_its_limits(key: str, count: int, message: str | None, tmp_path: Path) -> None:
    if key == "let":
        names = ", ".join(f"name{number}: '1'" for number in range(count - 1))
        text = edited('let: { even: "ceil_to(C, 2)" }', f'let: {{ even: "ceil_to(C, 2)", {names} }}')
    else:
        text = RULE + "variants:\n" + "  - { when: C == 1, severity: info }\n" * count
    path = written(tmp_path, text)
    if message is None:
        assert len(read_rule(path).cases if key == "variants" else read_rule(path).decision.let) >= count
        return
    with pytest.raises(RuleError, match=message):
        read_rule(path)


@pytest.mark.parametrize(
    ("loss", "kind", "passes"),
    [
        ("loss: none", "none", ("fprop", "dgrad", "wgrad")),
        ("loss: tile", "tile", ("fprop", "dgrad", "wgrad")),
        ("loss: { kind: wave, passes: [fprop, dgrad] }", "wave", ("fprop", "dgrad")),
        ("loss: { kind: tile, passes: wgrad }", "tile", ("wgrad",)),
    ],
)
def test_reporters_learn_what_its_price_counts(loss: str, kind: str, passes: tuple[str, ...], tmp_path: Path) -> None:
    path = written(tmp_path, edited("loss: none", loss))
    rule = next(rule for rule in load_rulebook([str(tmp_path)]).rules if rule.path == path)
    assert (rule.info.loss, rule.info.loss_passes) == (rule.loss, rule.loss_passes) == (kind, passes)
