"""Specs that the tests of the command line check, one for each kind of outcome, and a rule of one's own."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Ran, convlint

HEAD = "version: 1\ndefaults: { N: 32, dtype: fp16, layout: NHWC }\nlayers:\n"
CLEAN = HEAD + "  - { name: ok, C: 256, H: 56, W: 56, K: 256, kernel_size: 3, padding: 1, first: false }\n"
# CL004: the usual downsample, an info
INFOS = CLEAN.replace("kernel_size: 3, padding: 1", "kernel_size: 1, stride: 2")
# CL102 (62 channels) as a warning, CL105 as an info
WARNS = HEAD + "  - { name: odd, C: 62, H: 56, W: 56, K: 256, kernel_size: 3, padding: 1, first: false }\n"
# CL002: what is declared differs from what arrives
ERRS = CLEAN + "  - { name: wrong, C: 64, K: 64, kernel_size: 3, padding: 1 }\n"
BROKEN = HEAD + "  - { name: bad, C: 0, H: 56, W: 56, K: 256, kernel_size: 3 }\n"
EMPTY = "version: 1\nlayers: []\n"
RULE = """\
code: XY100
name: odd-channels
title: Channels are odd
severity: warning
check: C % 2 == 0
message: "C={C} is odd"
rationale: Pairs of channels travel together.
source: { document: house-rules, section: "1" }
examples: { pass: [ { C: 4 } ], fail: [ { given: { C: 3 }, message: "C=3 is odd" } ] }
"""


def check(*arguments: str, stdin: str = "") -> Ran:
    return convlint("check", *arguments, stdin=stdin)


def report(*arguments: str, stdin: str = "") -> dict[str, Any]:
    ran = check(*arguments, "--output", "json", stdin=stdin)
    return json.loads(ran.out)


def codes(*arguments: str) -> set[str]:
    return {finding["code"] for finding in report(*arguments)["findings"]}


def lost_us(*arguments: str) -> float:
    return report(*arguments)["summary"]["lost_us"]


def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with all these specs, and no setting from the environment."""
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    for name, text in {
        "clean": CLEAN,
        "infos": INFOS,
        "warns": WARNS,
        "errs": ERRS,
        "broken": BROKEN,
        "empty": EMPTY,
    }.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path
