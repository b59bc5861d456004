"""Messages made of fragments: which texts are joined, what stands where none holds, and that the cache keeps them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from convlint.cli.commands.rules import document
from convlint.engine.check import Target, check_network
from convlint.errors import RuleError
from convlint.files.located_yaml import parse
from convlint.gpus.gpu import load_gpu
from convlint.readers.spec.reader import read_fragment
from convlint.report import Finding
from convlint.rulebook.book import Rulebook, linked
from convlint.rulebook.cache import packed, unpacked
from convlint.rulebook.file import read_rule
from convlint.rulebook.rule import Fragments, Rule, Template

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
    found = unpacked(packed([rule], "KEY"), "KEY", [rule.path])
    assert found is not None
    assert found == [rule]
    (kept,) = found
    assert isinstance(kept.cases[-1].message, Fragments)
    assert kept.cases[0].message == rule.cases[-1].message
    assert kept.join is not None
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
