"""Rule files: what is refused and where, whatever the text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rule_texts import RULE, edited, written

from convlint.mend.examples import run_examples
from convlint.model.errors import RuleError
from convlint.rulebook.book import linked, load_rulebook
from convlint.rulebook.file import read_rule, texts_of

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
