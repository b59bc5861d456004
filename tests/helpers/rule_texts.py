"""A valid rule as text, which tests edit into others."""

from pathlib import Path

RULE = """\
code: XY100
name: odd-channels
title: Channels are odd
severity: warning
when: groups == 1
let: { even: "ceil_to(C, 2)" }
check: C % 2 == 0
message: "C={C} should be {even}"
at: C
fix:
  describe: "use C={even}"
  safety: unsafe
  set: { C: even }
loss: none
rationale: Pairs of channels travel together.
source: { document: house-rules, section: "1" }
examples:
  pass: [ { C: 4 } ]
  fail:
    - given: { C: 3 }
      message: "C=3 should be 4"
      severity: warning
      fixed: { C: 4 }
"""


def written(folder: Path, text: str, name: str = "rule.yaml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def edited(old: str, new: str) -> str:
    assert RULE.count(old) == 1
    return RULE.replace(old, new)
