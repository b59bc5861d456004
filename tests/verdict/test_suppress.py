"""Comments that silence rules: what they apply to, what is wrong with them, and that they stay visible."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path

import pytest
from command_line import convlint
from hypothesis import given, settings
from hypothesis import strategies as st
from specs import HEAD, ODD

BOTH = "CL102, CL006"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def check(spec: str, *options: str) -> list[tuple[int, str]]:
    """(line, code) of every finding of the rules that these tests are about."""
    options = options or ("--select", "CL102,CL006,CL501,CL9")
    out = convlint("check", "-", "--isolated", "-o", "concise", *options, stdin=spec).out
    return [(int(line), code) for line, code in re.findall(r"<stdin>:(\d+):\d+: \w+ (\w+) ", out)]


FLOW = f"  - {{ name: odd, {ODD} }}"
BLOCK = "  - name: odd\n    C: 62\n    K: 128\n    kernel_size: 3\n    padding: 3\n    first: false\n"


@pytest.mark.parametrize(
    "layers",
    [
        FLOW + f" # convlint: ignore[{BOTH}]\n",
        FLOW + " # convlint: ignore[channel-alignment,padding-only-output] -- a reason\n",
        FLOW + " # convlint: ignore[CL0 CL1] -- prefixes\n",
        FLOW + "   ##  convlint:   ignore[ALL]   --   everything  \n",
        FLOW + " # noqa # convlint: ignore[ALL]\n",
        f"  # convlint: ignore[{BOTH}]\n{FLOW}\n",
        f"# convlint: ignore[{BOTH}]\n{FLOW}\n",
        f"  # convlint: ignore[CL102]\n  # convlint: ignore[CL006]\n{FLOW}\n",
        f"  # convlint: ignore[{BOTH}]\n  # prose\n{FLOW}\n",
        BLOCK.replace("C: 62", f"C: 62 # convlint: ignore[{BOTH}]"),
        BLOCK.replace("    K:", f"    # convlint: ignore[{BOTH}]\n    K:"),
        BLOCK.replace("name: odd", f"name: odd # convlint: ignore[{BOTH}]"),
        BLOCK + "  - { name: pool, op: pool, kernel_size: 2 } # convlint: file-ignore[CL102, CL006]\n",
        f"# convlint: file-ignore[{BOTH}]\n{BLOCK}",
        BLOCK.replace("name: odd", f"name: | # convlint: ignore[{BOTH}]\n      odd"),
        FLOW.replace("{", "{ # convlint: ignore[ALL]\n     ") + "\n",
        FLOW + f" # convlint: ignore[{BOTH}] until 2999-01-01 -- for now\n",
        BLOCK.replace("\n", "\r\n").replace("C: 62", f"C: 62 # convlint: ignore[{BOTH}]"),
    ],
)
def test_comments_that_silence(layers: str) -> None:
    assert check(HEAD + layers) == []


@pytest.mark.parametrize(
    "layers",
    [
        FLOW.replace("name: odd", 'name: "# convlint: ignore[ALL]"') + "\n",
        FLOW.replace("name: odd", "name: 'x # convlint: ignore[ALL]'") + "\n",
        BLOCK.replace("name: odd", "name: |\n      x # convlint: ignore[ALL]\n      y\n     "),
        BLOCK.replace("name: odd", 'name: "a\n      # convlint: ignore[ALL]\n      b"'),
        BLOCK.replace("name: odd", "name: odd#convlint:ignore[ALL]"),
        FLOW + " # see convlint: ignore[ALL]\n",
    ],
)
def test_what_is_no_comment_silences_nothing(layers: str) -> None:
    found = check(HEAD + layers)
    assert {code for _, code in found} == {"CL102", "CL006"}


def test_only_the_layer_of_the_comment_is_silenced() -> None:
    spec = (
        HEAD
        + BLOCK
        + "\n  # convlint: ignore[CL006, CL102]\n"
        + FLOW.replace("odd", "two")
        + "\n"
        + FLOW.replace("odd", "three")
    )
    assert {line for line, _ in check(spec)} == {6, 9, 14}


def test_a_comment_after_a_layer_belongs_to_the_next_one_or_to_none() -> None:
    spec = HEAD + BLOCK + "    # convlint: ignore[CL102]\n\n" + FLOW.replace("odd", "two") + "\n"
    assert [code for _, code in check(spec) if code == "CL901"] == ["CL901"]


def test_findings_of_the_runtime_are_silenced_where_they_point() -> None:
    spec = (
        "version: 1\nruntime:\n  framework: pytorch\n  fixed_input_size: true\n  deterministic: false\n"
        "  cudnn_benchmark: false{}\n"
        "defaults: {{ N: 256, C: 64, H: 56, W: 56, dtype: fp16, layout: NHWC, first: false }}\n"
        "layers:\n  - {{ K: 64, R: 3, S: 3, padding: 1 }}\n"
    )
    assert (6, "CL501") in check(spec.format(""))
    assert "CL501" not in str(check(spec.format(" # convlint: ignore[CL501] -- known")))
    assert "CL901" not in str(check(spec.format(" # convlint: ignore[CL501] -- known")))


def test_a_finding_that_joins_layers_is_silenced_layer_by_layer_or_by_the_file() -> None:
    layer = "  - {{ name: d{0}, C: 64, K: 64, groups: 64, R: 3, S: 3, padding: 1, first: false }}{1}\n"
    plain = HEAD + layer.format(1, "") + layer.format(2, "")
    assert [code for _, code in check(plain, "--select", "CL602")] == ["CL602"]
    mark = " # convlint: ignore[CL602]"
    for marks, left in ((("", mark), [(5, "CL602")]), ((mark, ""), [(6, "CL602")]), ((mark, mark), [])):
        spec = HEAD + layer.format(1, marks[0]) + layer.format(2, marks[1])
        assert check(spec, "--select", "CL602,CL901") == left
    assert check(plain + "# convlint: file-ignore[CL602]\n", "--select", "CL602,CL901") == []


# --- what is wrong with a comment


@pytest.mark.parametrize(
    ("comment", "code", "column", "message"),
    [
        ("ignore[CL402]", "CL901", 22, "no finding of CL402 here to silence"),
        ("ignore[CL102, layout-change]", "CL901", 29, "no finding of layout-change here"),
        ("ignore[CL1O2]", "CL902", 22, "unknown rule 'CL1O2'; did you mean 'CL102'?"),
        ("ignore[channel-aligment]", "CL902", 22, "did you mean 'channel-alignment'?"),
        ("ignore", "CL902", 3, "write ignore[CL102] -- reason"),
        ("ignore[]", "CL902", 3, "write ignore[CL102] -- reason"),
        ("ignore[CL102] because", "CL902", 3, "write ignore[CL102] -- reason"),
        ("disable=CL102", "CL902", 3, "write ignore[CL102] -- reason"),
        ("ignore[CL102] until tomorrow", "CL902", 3, "until takes a date such as 2026-12-31"),
        ("ignore[" + "CL1 " * 101 + "]", "CL902", 3, "names more than 100 rules"),
        ("ignore[CL102] until 2020-02-29 -- soon", "CL903", 22, "expired on 2020-02-29"),
        ("file-ignore[CL402] until 2020-02-29", "CL903", 27, "expired on 2020-02-29"),
    ],
)
def test_comments_are_findings_themselves(comment: str, code: str, column: int, message: str) -> None:
    spec = HEAD + f"  # convlint: {comment}\n{FLOW}\n"
    ran = convlint("check", "-", "--isolated", "-o", "concise", "--select", "CL102,CL402,layout-change,CL9", stdin=spec)
    lines = [line for line in ran.out.splitlines() if code in line]
    assert len(lines) == 1
    assert lines[0].startswith(f"<stdin>:5:{column}: warning {code} ")
    assert message in lines[0]
    assert ran.code == 1
    assert code not in convlint("check", "-", "--isolated", "--ignore", code, "-o", "concise", stdin=spec).out


def test_what_is_wrong_with_a_comment_is_silenced_by_the_config_and_the_baseline_alone() -> None:
    spec = HEAD + f"  # convlint: ignore[ALL]\n  # convlint: ignore[CL402, CL1O2, CL901]\n{FLOW}\n"
    spec += "# convlint: file-ignore[CL9]\n"
    wrong = [(6, "CL901"), (6, "CL902"), (6, "CL901"), (8, "CL901")]
    assert sorted(check(spec, "--select", "CL006,CL102,CL402,CL9")) == sorted(wrong)
    Path("a.yaml").write_text(spec)
    options = ("--select", "CL006,CL102,CL402,CL9", "-o", "json")
    convlint("check", "a.yaml", *options, "--write-baseline", "base.json")
    ran = convlint("check", "a.yaml", *options, "--baseline", "base.json")
    assert (ran.code, ran.err, json.loads(ran.out)["findings"]) == (0, "", [])
    Path("convlint.toml").write_text('[per-file-ignores]\n"a.yaml" = ["CL901"]\n')
    assert [one["code"] for one in json.loads(convlint("check", "a.yaml", *options).out)["findings"]] == ["CL902"]


def test_expired_and_unknown_suppressions_silence_nothing() -> None:
    for comment in ("ignore[ALL] until 2020-01-01", "ignore[CL1O2]", "ignore"):
        assert {"CL102", "CL006"} <= {code for _, code in check(HEAD + FLOW + f" # convlint: {comment}\n")}


def test_whether_a_rule_that_was_not_checked_is_needed_is_not_known() -> None:
    """Neither a rule that is not selected nor one that lacks a value makes its suppression unused."""
    assert check(HEAD + FLOW + " # convlint: ignore[CL102]\n", "--select", "CL006,CL901") == [(5, "CL006")]
    unknown = "version: 1\nlayers:\n  - { C: 62, K: 128, R: 3, S: 3 } # convlint: ignore[CL102]\n"
    assert "CL901" not in str(check(unknown))


def test_a_suppression_of_the_last_day_still_holds() -> None:
    today = date.today().isoformat()
    assert check(HEAD + FLOW + f" # convlint: ignore[ALL] until {today}\n") == []


def test_silenced_findings_stay_visible() -> None:
    spec = HEAD + FLOW + f" # convlint: ignore[{BOTH}] -- the data are so\n"
    report = json.loads(convlint("check", "-", "--isolated", "-o", "json", stdin=spec).out)
    assert [(entry["code"], entry["reason"]) for entry in report["suppressed"]] == [
        ("CL102", "the data are so"),
        ("CL006", "the data are so"),
    ]
    run = json.loads(convlint("check", "-", "--isolated", "-o", "sarif", stdin=spec).out)["runs"][0]
    assert [result["suppressions"][0]["kind"] for result in run["results"]] == ["inSource", "inSource"]
    assert "suppressed: 2 findings (2 by comment)" in convlint("check", "-", "--isolated", stdin=spec).out


@pytest.mark.slow
def test_no_number_of_comments_takes_long() -> None:
    spec = HEAD + "  # convlint: ignore[ALL]\n" * 30_000 + FLOW + "\n"
    ran = convlint("check", "-", "--isolated", "-o", "concise", "--select", "CL102,CL902", stdin=spec)
    assert ran.code == 1
    assert "<stdin>:2005:3: warning CL902" in ran.out
    assert "the comments of one file name at most 2,000 rules" in ran.out
    assert ran.out.count("\n") == 2


@pytest.mark.slow
@settings(max_examples=200)
@given(
    st.text(alphabet=st.characters(codec="utf-8"), max_size=40),
    st.sampled_from(["", "ignore[", "ignore[CL102] until ", "file-ignore[ALL] -- "]),
)
def test_no_comment_is_a_defect_of_ours(text: str, start: str) -> None:
    spec = HEAD + FLOW + f" # convlint: {start}{text}\n"
    ran = convlint("check", "-", "--isolated", "-o", "concise", "-o", "sarif=/dev/null", stdin=spec)
    assert ran.code in (0, 1, 3), ran
    assert "internal error" not in ran.out
    assert "\x1b" not in ran.out
