"""Rules of scope `suppression`: documented, one's own, and refused where they read what such a rule does not have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from checkout import ROOT
from command_line import convlint
from specs import HEAD, ODD


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
