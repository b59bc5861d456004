"""Finding the comments that silence rules: those of YAML and no others, in time proportional to the text."""

from __future__ import annotations

import re
from pathlib import Path
from time import process_time

import pytest
import yaml
from checkout import ROOT
from command_line import convlint
from hypothesis import given, settings
from hypothesis import strategies as st
from specs import HEAD, ODD

from convlint.verdict.suppress import find_comments


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_rules_on_suppressions_are_documented_and_can_be_ones_own() -> None:
    assert "A suppression silences nothing" in convlint("rule", "CL901").out
    Path("rules").mkdir()
    Path("rules/mine.yaml").write_text(
        "code: XX901\nname: reason-missing\ntitle: No reason\nseverity: error\nscope: suppression\n"
        "when: suppression.known\ncheck: suppression.reason != ''\nmessage: '{suppression.rule}: say why'\n"
        "rationale: x\nsource: { document: d, section: s }\n"
        "examples:\n  pass: [ { text: a, reason: b } ]\n"
        "  fail: [ { given: { rule: CL102 }, message: 'CL102: say why' } ]\n"
    )
    assert convlint("rule", "--test", "rules").code == 0
    spec = f"{HEAD}  - {{ name: odd, {ODD} }} # convlint: ignore[CL102, CL006]\n"
    out = convlint("check", "-", "--isolated", "-o", "concise", "--rules", "rules", stdin=spec).out
    assert re.findall(r"<stdin>:(\d+):\d+: \w+ (XX\w+) ", out) == [("5", "XX901"), ("5", "XX901")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("check: suppression.used", "check: C > 3"), "unknown name 'C'"),
        (("scope: suppression", "scope: layer"), "unknown name 'suppression."),
        (("check:", "loss: fix\ncheck:"), "loss means nothing in a rule on suppressions"),
        (("  safety: safe", "  safety: safe\n  set: { C: 3 }"), "unknown key 'set' in fix"),
        (("used: true }", "usd: true }"), "unknown key 'usd' in an example; did you mean 'used'?"),
        (("used: true }", "used: 3 }"), "used: must be true or false"),
        (("used: true }", "expires: soon }"), "is no date such as 2026-12-31"),
    ],
)
def test_defects_in_rules_on_suppressions(change: tuple[str, str], message: str) -> None:
    source = ROOT / "rules" / "suppression" / "unused-suppression.yaml"
    text = source.read_text().replace("CL901", "XX901").replace("name: unused", "name: my-unused")
    assert change[0] in text
    Path("rules").mkdir()
    Path("rules/mine.yaml").write_text(text.replace(*change, 1))
    ran = convlint("rule", "--test", "rules")
    assert ran.code == 2
    assert message in ran.err


_lines = st.lists(
    st.sampled_from(
        ["a: 1", "b: 'x", "y'", 'c: "', '# convlint: ignore[CL102]"', "# convlint: ignore[CL102]", "d: |",
         "  # convlint: ignore[X]", "  text", "e: >-", "- f", "{ g: # convlint: ignore[Y]", "}", "",
         "h: plain # convlint: ignore[Z]", "'#", "[", "]"]
    ),
    max_size=8,
)  # fmt: skip


@settings(max_examples=300)
@given(_lines)
def test_a_comment_is_what_yaml_leaves_out(lines: list[str]) -> None:
    """Taking the comments out of a text leaves the same values behind."""
    text = "\n".join(lines) + "\n"
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError:
        return
    cut = text.split("\n")
    for comment in find_comments(text):
        cut[comment.line - 1] = cut[comment.line - 1][: comment.column - 1]
    assert yaml.safe_load("\n".join(cut)) == values
    scalars = [event.value for event in yaml.parse(text) if isinstance(event, yaml.ScalarEvent)]
    assert "\n".join(cut).count("convlint:") == sum(scalar.count("convlint:") for scalar in scalars)


def test_text_without_the_word_is_not_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml, "scan", lambda *_, **__: pytest.fail("scanned"))
    assert find_comments("a: 1 # comment\n" * 10) == ()


@pytest.mark.parametrize(
    "text",
    [
        "a: 1 # convlint: x" + " " * 1_000_000 + "x\n",
        "a: 1 " + "# " * 500_000 + "convlint: x\n",
        "a: 1\n# convlint: ignore[" + "a," * 500_000 + "]\n",
        "a: |\n" + "  # convlint: ignore[CL1]\n" * 40_000,
        "a: 'x'\n" + "# convlint: x\n" * 40_000,
        "a: 1\n" + "\n" * 1_000_000 + "# convlint: x\n",
    ],
)
def test_finding_comments_takes_time_in_proportion_to_the_text(text: str) -> None:
    begin = process_time()
    comments = find_comments(text)
    assert process_time() - begin < 5  # a quadratic search takes hours
    assert all(len(comment.rules) <= 100 for comment in comments)
    assert len(comments) == (0 if "|" in text else text.count("convlint:") if "'" not in text else 2_001)


def test_a_sign_in_a_quoted_scalar_begins_no_comment() -> None:
    text = (
        "a: 'x # convlint: ignore[A]' # convlint: ignore[B]\n"
        'b: "x\n  # convlint: ignore[C]\n  " # convlint: ignore[D]\n'
        "c: >- # convlint: ignore[E]\n  # convlint: ignore[F]\n# convlint: ignore[G]\n"
    )
    assert [key.text for comment in find_comments(text) for key in comment.rules] == ["D", "E", "G"]


@pytest.mark.parametrize(("length", "kept"), [(500, 500), (501, 500)])
def test_a_reason_has_an_end(length: int, kept: int) -> None:
    (comment,) = find_comments(f"a: 1 # convlint: ignore[CL102] -- {'x' * length}\n")
    assert comment.reason == "x" * kept


@pytest.mark.parametrize(("count", "problem"), [(100, ""), (101, "names more than 100 rules")])
def test_a_comment_names_at_most_a_hundred_rules(count: int, problem: str) -> None:
    (comment,) = find_comments(f"a: 1 # convlint: ignore[{','.join(['CL102'] * count)}]\n")
    assert (comment.problem, len(comment.rules)) == (problem, 0 if problem else count)
