"""Comments that silence rules: what they apply to, what is wrong with them, and that they stay visible."""

import json
import re
from datetime import date
from pathlib import Path
from time import process_time
from typing import Any

import pytest
import yaml
from checkout import ROOT
from command_line import convlint
from configured import write
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from read_specs import network
from small_networks import layer, rulebook
from source_records import RULEBOOK, literal, record
from specs import HEAD, ODD

from convlint.config.keys import PathPattern
from convlint.engine.check import Target
from convlint.gpus.gpu import load_gpu
from convlint.mend.checking import judged
from convlint.model.location import Location
from convlint.model.network import Network
from convlint.model.report import Finding, SkippedRule
from convlint.model.source import SourceReading, Unread
from convlint.rulebook.book import Rulebook, load_rulebook
from convlint.verdict.baseline import baseline_of, known_of
from convlint.verdict.select import Exemption
from convlint.verdict.suppress import Comment, Naming, Silencer, Silencing, SourceComments, find_comments, line_below

pytestmark = pytest.mark.usefixtures("here")

TODAY = date(2026, 5, 1)


def comment(text: str) -> Comment:
    (found,) = find_comments(f"# convlint: {text}", python=True)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ignore[CL102] -- why", [("CL102", {"CL102"}, False, False)]),
        ("ignore[CL102, prefer-nhwc]", [("CL102", {"CL102"}, False, False), ("prefer-nhwc", {"CL401"}, False, False)]),
        ("ignore[CL999]", [("CL999", set(), True, False)]),
        ("ignore[CL102] until 2026-04-30", [("CL102", {"CL102"}, False, True)]),
        ("ignore[CL102] until 2026-05-01", [("CL102", {"CL102"}, False, False)]),
        ("ignore CL102", [(None, set(), True, False)]),
    ],
)
def test_each_rule_by_itself(text: str, expected: list[tuple[object, ...]]) -> None:
    named = list(Naming(load_rulebook(), TODAY).of(comment(text)))
    assert [(each.key and each.key.text, each.codes, bool(each.problem), each.expired) for each in named] == expected


def test_a_mention_points_at_the_rule_and_else_at_the_comment() -> None:
    naming = Naming(load_rulebook(), TODAY)
    (rule,) = naming.of(comment("ignore[CL102] -- why"))
    mention = rule.mention("a.py", used=False, layer="conv")
    assert (mention.location.path, mention.location.line, mention.location.column) == ("a.py", 1, 20)
    assert (mention.rule, mention.reason, mention.used, mention.layer) == ("CL102", "why", False, "conv")
    (unread,) = naming.of(comment("ignore CL102"))
    assert (unread.mention("a.py", used=True).location.column, unread.mention("a.py", used=True).rule) == (1, "")


def test_other_comments_between_are_passed_over() -> None:
    lines = ["# convlint: ignore[CL102]", "  # more", "a = 1"]
    (found,) = find_comments("\n".join(lines), python=True)
    assert line_below(found, lines) == 3
    assert line_below(found, lines[:1]) == 2


CODES = {"CL102", "CL506"}


def _reading(text: str, path: str = "net.py", **more: object) -> SourceReading:
    fields = {"files": (path,), "lines": {path: tuple(text.split("\n"))}, "whole": True} | more
    return SourceReading(**fields)  # type: ignore[arg-type]


def _finding(
    line: int, path: str = "net.py", code: str = "CL102", layer: str | None = None, end: int | None = None
) -> Finding:
    rule = RULEBOOK.by_key[code].info
    at = Location(path=path, line=line, column=1, end_line=end or line, end_column=9)
    return Finding(rule=rule, severity="info", message="", location=at, layer=layer)


def _comments(reading: SourceReading) -> SourceComments:
    return SourceComments(reading, RULEBOOK, CODES, TODAY)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("a = 60  # convlint: ignore[CL102] -- paper", 1, "paper"),
        ("# convlint: ignore[channel-alignment] -- above\na = 60", 2, "above"),
        ("# convlint: ignore[CL1] -- above\n# prose\na = 60", 3, "above"),
        ("# convlint: file-ignore[CL102] -- all\n\n\na = 60", 4, "all"),
        ("a = 60  # convlint: ignore[CL506] -- other", 1, None),
        ("a = 60  # convlint: ignore[CL102] until 2025-12-31 -- over", 1, None),
        ("a = 60  # convlint: ignore[CL102] until 2026-12-31 -- not yet", 1, "not yet"),
        ("b = 1  # convlint: ignore[CL102]\na = 60", 2, None),  # of another line, not alone on its own
        ("s = '# convlint: ignore[CL102] -- text'", 1, None),
        ("'''\n# convlint: ignore[CL102] -- text\n'''\na = 60", 4, None),
    ],
)
def test_on_the_line_or_alone_above_it(text: str, line: int, reason: str | None) -> None:
    assert _comments(_reading(text)).reason(_finding(line)) == reason


def test_on_any_line_of_a_call() -> None:
    comments = _comments(_reading("a = f(\n    1,\n)  # convlint: ignore[CL102] -- it"))
    assert comments.reason(_finding(1, end=3)) == "it"
    assert comments.reason(_finding(1)) is None


def test_at_the_construction_of_what_a_literal_elsewhere_is_blamed_for() -> None:
    layer = record("Net.conv", line=2, path="net.py", K_of=(literal(60, 9, path="train.py"),))
    reading = _reading("import x\nself.conv = conv()  # convlint: ignore[CL102] -- here", layers=(layer,))
    comments = _comments(reading)
    blamed = replace(_finding(9, "train.py", layer="Net.conv"), location=literal(60, 9, path="train.py").at)
    assert comments.reason(blamed) == "here"
    assert comments.reason(_finding(9, "train.py", layer="Net.other")) is None
    assert comments.reason(_finding(8, "other.py", layer="Net.conv")) is None  # another layer of that name


def test_of_another_file_nothing() -> None:
    comments = _comments(_reading("# convlint: file-ignore[CL102] -- all\na = 60"))
    assert comments.reason(_finding(2, "other.py")) is None


def _unused(
    reading: SourceReading, *asked: Finding, skipped: tuple[SkippedRule, ...] = ()
) -> list[tuple[int | None, bool]]:
    comments = _comments(reading)
    for finding in asked:
        comments.reason(finding)
    return [(mention.location.line, mention.used) for mention in comments.mentions(skipped)]


TEXT = "a = 60  # convlint: ignore[CL102]"


def test_what_silences_nothing_is_unused() -> None:
    assert _unused(_reading(TEXT)) == [(1, False)]
    assert _unused(_reading(TEXT), _finding(1)) == [(1, True)]


def test_nobody_can_say_so_where_something_is_not_known() -> None:
    at = Location(path="net.py", line=1, column=5)
    assert _unused(_reading(TEXT, whole=False)) == [(1, True)]
    assert _unused(_reading(TEXT, unread=(Unread(at=at, why="config"),))) == [(1, True)]
    assert _unused(_reading(TEXT.replace("CL102", "CL101"))) == [(1, True)]  # a rule that does not count
    skipped = (SkippedRule(code="CL102", layer=None, path="net.py", needs=("x",)),)
    assert _unused(_reading(TEXT), skipped=skipped) == [(1, True)]


def test_of_files_that_were_not_given_nothing_is_said() -> None:
    assert _unused(_reading(TEXT, files=("other.py",))) == []


def test_what_cannot_be_read_has_a_problem() -> None:
    texts = "a = 1  # convlint: ignore\nb = 2  # convlint: ignore[CL999]"
    first, second = _comments(_reading(texts)).mentions(())
    assert first.problem.startswith("write ignore[CL102]")
    assert second.problem.startswith("unknown rule 'CL999'")
    assert not _comments(_reading("a = 1"))


BOTH = "CL102, CL006"


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


def test_whether_a_rule_that_was_not_checked_is_needed_is_not_known() -> None:
    """Neither a rule that is not selected nor one that lacks a value makes its suppression unused."""
    assert check(HEAD + FLOW + " # convlint: ignore[CL102]\n", "--select", "CL006,CL901") == [(5, "CL006")]
    unknown = "version: 1\nlayers:\n  - { C: 62, K: 128, R: 3, S: 3 } # convlint: ignore[CL102]\n"
    assert "CL901" not in str(check(unknown))


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


ALL = frozenset({"XY000", "XY001"})


@pytest.fixture
def rules(tmp_path: Path) -> Rulebook:
    """XY000 wants C=1 and XY001 K=1 of every layer."""
    (tmp_path / "house").mkdir()
    return rulebook(tmp_path / "house", {}, {"check": "K == 1"})


def listed(layers: str) -> Network:
    return network(f"version: 1\nlayers:\n{layers}")


def silenced(spec: str, rules: Rulebook, **silencing: Any) -> tuple[list[tuple[str, str | None]], list[str]]:
    """(code and layer of what is left, how, with which reason and where the rest was silenced)."""
    known: dict[str, Any] = {"codes": ALL, "today": TODAY} | silencing
    targets = [Target(label="a100", gpu=load_gpu("a100"))]
    result = judged(listed(spec), rules, targets, Silencing(**known))
    return (
        [(finding.rule.code, finding.layer) for finding in result.findings],
        [f"{one.by} {one.reason}: {one.finding.rule.code} {one.finding.layer}" for one in result.suppressed],
    )


def test_what_nobody_silences_is_left(rules: Rulebook) -> None:
    assert silenced(layer("a"), rules) == ([("XY000", "a"), ("XY001", "a")], [])
    assert Silencer(listed(layer("a")), rules, Silencing(codes=ALL, today=TODAY)).is_idle
    assert judged(listed(layer("a")), rules, [], None).suppressed == ()


def test_a_rule_that_is_not_selected_is_not_even_silenced(rules: Rulebook) -> None:
    assert silenced(layer("a"), rules, codes=frozenset({"XY001"})) == ([("XY001", "a")], [])


def test_the_first_that_covers_a_finding_gives_its_reason(rules: Rulebook, tmp_path: Path) -> None:
    codes = frozenset({"XY000"})
    entries = (
        Exemption(codes=codes, reason="of another file", files=PathPattern(str(tmp_path), "other.yaml")),
        Exemption(codes=codes, reason="of a layer", layers="stem"),
        Exemption(codes=codes, reason="of this file", files=PathPattern(str(tmp_path), "net.yaml")),
    )
    comment = " # convlint: ignore[XY001] -- said here\n"
    spec = layer("stem").replace("\n", comment) + layer("head")
    left, rest = silenced(spec, rules, exemptions=entries, known=known_of({}))
    assert left == [("XY001", "head")]
    assert rest == [
        "config of a layer: XY000 stem", "comment said here: XY001 stem", "config of this file: XY000 head",
    ]  # fmt: skip


def test_comments_and_the_config_go_before_the_baseline(rules: Rulebook) -> None:
    everything = found(layer("a"), rules)
    known = known_of(baseline_of(everything))
    spec = layer("a").replace("\n", " # convlint: ignore[XY000] -- said here\n")
    assert silenced(spec, rules, known=known) == ([], ["comment said here: XY000 a", "baseline : XY001 a"])


def found(spec: str, rules: Rulebook) -> tuple[Finding, ...]:
    targets = [Target(label="a100", gpu=load_gpu("a100"))]
    return judged(listed(spec), rules, targets, Silencing(codes=ALL, today=TODAY)).findings


def test_the_last_day_is_the_callers(rules: Rulebook) -> None:
    spec = layer("a").replace("\n", " # convlint: ignore[ALL] until 2026-05-01\n")
    assert silenced(spec, rules)[0] == []
    assert len(silenced(spec, rules, today=date(2026, 5, 2))[0]) == 2


# --- what it means for prices, grades and other findings

SPEC = """\
version: 1
target: [a100]
defaults:
  N: 128
  dtype: fp16
  layout: NCHW{}
layers:
  - {{ name: a, C: 256, H: 28, W: 28, K: 256, R: 3, S: 3, padding: 1, first: false }}{}
  - {{ name: b, C: 256, H: 28, W: 28, K: 256, R: 3, S: 3, padding: 1, first: false }}{}
  - {{ name: odd, C: 250, H: 28, W: 28, K: 256, R: 3, S: 3, padding: 1, first: false }}
"""
MARK = " # convlint: ignore[CL401] -- the exporter wants it"


def checked(*options: str) -> dict[str, Any]:
    """The JSON report on net.yaml."""
    ran = convlint("check", "net.yaml", "-o", "json", *options)
    assert ran.code in (0, 1)
    return json.loads(ran.out)


def numbers(report: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """What the summary and each layer come to, and the findings with their prices."""
    shown = [report["summary"][name] for name in ("grade", "time_us", "lost_us", "time_after_us")]
    shown += [
        (one["name"], one["estimates"][0]["grade"], one["estimates"][0]["time_after_us"]) for one in report["layers"]
    ]
    return shown, [(one["code"], one["layer"], one["severity"], one["lost_us"]) for one in report["findings"]]


def test_every_way_to_silence_a_rule_comes_to_the_same() -> None:
    write("net.yaml", SPEC.format("", "", ""))
    plain = checked()
    assert {finding["code"] for finding in plain["findings"]} == {"CL401", "CL102"}
    assert plain["summary"]["time_after_us"] < 0.9 * plain["summary"]["time_us"]
    ignored = numbers(checked("--ignore", "CL401"))
    assert ignored[0] != numbers(plain)[0]
    assert [code for code, *_ in ignored[1]] == ["CL102"]
    for config in (
        'ignore = ["CL401"]\n',
        '[per-file-ignores]\n"net.yaml" = ["CL401"]\n',
        '[[per-layer-ignores]]\nlayers = "*"\nrules = ["CL401"]\nreason = "x"\n',
    ):
        write("convlint.toml", config)
        assert numbers(checked()) == ignored, config
    write("convlint.toml", "")
    write("net.yaml", SPEC.format(MARK, "", ""))
    assert numbers(checked()) == ignored
    write("net.yaml", SPEC.format("", "", "") + "# convlint: file-ignore[CL401]\n")
    assert numbers(checked()) == ignored


def test_what_the_baseline_holds_does_not_play() -> None:
    """What is new is priced as if nobody would ever mend the old, and no grade waits for that."""
    write("net.yaml", SPEC.format("", "", ""))
    plain = checked()
    assert convlint("check", "net.yaml", "--select", "CL401", "--write-baseline", "base.json").code == 0
    report = checked("--baseline", "base.json")
    assert report["summary"]["grade"] <= plain["summary"]["grade"]
    new = report["findings"]
    assert {finding["code"] for finding in new} == {each["code"] for each in plain["findings"]} - {"CL401"}
    assert report["summary"]["lost_us"] == pytest.approx(sum(finding["lost_us"] for finding in new), abs=0.01)
    assert report["summary"]["time_after_us"] > plain["summary"]["time_after_us"]


def test_with_everything_silenced_nothing_is_left_to_gain() -> None:
    write("net.yaml", SPEC.format("", "", ""))
    assert convlint("check", "net.yaml", "--write-baseline", "base.json").code == 0
    for options in (["--select", "CL501"], ["--baseline", "base.json"]):
        report = checked(*options)
        assert report["findings"] == []
        assert report["summary"]["time_after_us"] == report["summary"]["time_us"]
        assert report["summary"]["lost_us"] == 0


def test_a_comment_on_the_defaults_silences_what_points_at_its_line() -> None:
    """Whatever layer it is of; above its line does as well."""
    for spec in (
        SPEC.format(MARK, "", ""),
        SPEC.format("", "", "").replace("  layout", f" {MARK}\n  layout"),
        SPEC.format("", "", "").replace("  layout", f" {MARK}\n  # prose\n  layout"),
    ):
        write("net.yaml", spec)
        report = checked("--select", "CL102,CL401,CL9")
        assert {finding["code"] for finding in report["findings"]} == {"CL102"}
        assert [(one["code"], one["layer"], one["reason"]) for one in report["suppressed"]] == [
            ("CL401", name, "the exporter wants it") for name in ("a", "b", "odd")
        ]
    write("net.yaml", SPEC.format("", "", "").replace("dtype: fp16", "dtype: fp16" + MARK))
    found = [finding["code"] for finding in checked("--select", "CL401,CL9")["findings"]]
    assert sorted(found) == ["CL401", "CL901"]  # the finding does not point there


def test_of_a_joined_finding_the_layers_with_a_comment_leave() -> None:
    write("net.yaml", SPEC.format("", "", ""))
    (whole,) = checked("--select", "CL401,CL9")["findings"]
    write("net.yaml", SPEC.format("", MARK, ""))
    report = checked("--select", "CL401,CL9")
    (rest,) = report["findings"]
    assert (whole["layers"], rest["layers"]) == (["a", "b", "odd"], ["b", "odd"])
    assert 0 < rest["lost_us"] < whole["lost_us"]
    assert rest["fingerprints"] == whole["fingerprints"][1:]
    assert [(one["code"], one["layer"]) for one in report["suppressed"]] == [("CL401", "a")]
    after = {one["name"]: one["estimates"][0]["time_after_us"] for one in report["layers"]}
    now = {one["name"]: one["estimates"][0]["time_us"] for one in report["layers"]}
    assert after["a"] == now["a"]
    assert after["b"] < now["b"]
    write("net.yaml", SPEC.format("", MARK, MARK))
    (one,) = checked("--select", "CL401,CL9")["findings"]
    assert (one["layer"], one["layers"]) == ("odd", [])


# fp32 on a V100: CL401 and CL102 come to light only once CL106 is mended
HIDDEN = """\
version: 1
target: [v100]
layers:
  - {{ name: a, N: 128, C: 100, H: 56, W: 56, K: 128, R: 3, S: 3, padding: 1, stride: 2, dtype: fp32, layout: NCHW{} }}
"""


def test_what_an_old_finding_brings_to_light_is_old() -> None:
    write("net.yaml", HIDDEN.format(", first: false"))
    codes = {finding["code"]: finding["message"] for finding in checked()["findings"]}
    assert codes["CL401"].startswith("once CL106 is mended, ")
    assert convlint("check", "net.yaml", "--write-baseline", "base.json").code == 0
    written = Path("base.json").read_text()
    ran = convlint("check", "net.yaml", "--baseline", "base.json", "--prune-baseline", "-o", "json")
    assert (ran.code, ran.err) == (0, "")  # nothing new, and nothing that no longer occurs
    assert {entry["code"] for entry in json.loads(ran.out)["suppressed"]} == set(codes)
    assert Path("base.json").read_text() == written
    write("net.yaml", HIDDEN.format(", first: false").replace("fp32", "fp16"))
    gone = convlint("check", "net.yaml", "--baseline", "base.json").err
    assert "CL106 net.yaml a [v100]" in gone
    assert "CL401" not in gone


def test_a_comment_stays_in_use_where_the_baseline_hides_what_it_silences() -> None:
    write("net.yaml", HIDDEN.format(", first: false").rstrip("\n") + MARK + "\n")
    assert convlint("check", "net.yaml", "--write-baseline", "base.json").code == 0
    ran = convlint("check", "net.yaml", "--baseline", "base.json", "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    assert ("CL401", "the exporter wants it") in [
        (one["code"], one["reason"]) for one in json.loads(ran.out)["suppressed"]
    ]


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


@pytest.mark.parametrize(("length", "kept"), [(500, 500), (501, 500)])
def test_a_reason_has_an_end(length: int, kept: int) -> None:
    (comment,) = find_comments(f"a: 1 # convlint: ignore[CL102] -- {'x' * length}\n")
    assert comment.reason == "x" * kept


@pytest.mark.parametrize(("count", "problem"), [(100, ""), (101, "names more than 100 rules")])
def test_a_comment_names_at_most_a_hundred_rules(count: int, problem: str) -> None:
    (comment,) = find_comments(f"a: 1 # convlint: ignore[{','.join(['CL102'] * count)}]\n")
    assert (comment.problem, len(comment.rules)) == (problem, 0 if problem else count)
