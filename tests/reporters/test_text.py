"""The text report against hand-checked snapshots, and what holds for every width, colour and character set."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from reports import ALIGNMENT, estimate, finding, full_report

from convlint.model.location import Location
from convlint.report import Report, Total
from convlint.reporters import Style, reporter
from convlint.reporters.ink import wrap
from convlint.reporters.snippet import columns

SNAPSHOTS = Path(__file__).parent / "snapshots"
COLOUR = re.compile("\x1b\\[[0-9;]*m")

CLEAN = {"findings": (), "skipped": (), "suppressed": (), "errors": (), "files": 1, "lost_us": 0.0, "grade": "A"}
UNKNOWN_TIMES = {"grade": None, "time_us": None, "lost_us": None}


def several_targets() -> Report:
    report = full_report(targets=("a100", "t4"), mode="inference", errors=(), skipped=(), suppressed=())
    totals = (
        Total(gpu="a100", grade="C", time_us=9102.5, lost_us=258.25),
        Total(gpu="t4", grade="D", time_us=41000.0, lost_us=516.5),
    )
    layers = tuple(replace(entry, estimates={"a100": estimate(), "t4": estimate("F", 3250)}) for entry in report.layers)
    findings = tuple(
        replace(f, gpu=gpu, lost_us=f.lost_us * times)
        for f in report.findings[:2]
        for gpu, times in (("a100", 1), ("t4", 2))
        if f.lost_us
    )
    return replace(report, findings=(*findings, *report.findings[4:5]), layers=layers, totals=totals)


CASES = {
    "full_80.txt": (full_report(), Style()),
    "full_120.txt": (full_report(), Style(width=120)),
    "full_ascii_60.txt": (full_report(), Style(width=60, unicode=False)),
    "quiet.txt": (full_report(), Style(quiet=True)),
    "clean.txt": (full_report(**CLEAN), Style()),
    "without_times.txt": (full_report(**UNKNOWN_TIMES), Style()),
    "several_targets.txt": (several_targets(), Style()),
}


@pytest.mark.parametrize("name", CASES)
def test_snapshot(name: str, same_as_before: Callable[[Path, str], None]) -> None:
    report, style = CASES[name]
    same_as_before(SNAPSHOTS / name, reporter("text")(report, style))


@pytest.mark.parametrize("name", CASES)
def test_colour_changes_colours_only(name: str) -> None:
    report, style = CASES[name]
    coloured = reporter("text")(report, replace(style, color=True))
    assert COLOUR.sub("", coloured) == reporter("text")(report, style)
    assert ("\x1b[" in coloured) is not style.quiet


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
@pytest.mark.parametrize("unicode", [True, False])
def test_lines_fit_the_width(width: int, unicode: bool) -> None:
    *lines, coverage, end = reporter("text")(full_report(), Style(width=width, unicode=unicode)).split("\n")
    assert [line for line in lines if columns(line) > width] == []
    assert not end
    assert coverage.startswith("4 layers in 2 files")
    assert unicode or all(line.isascii() for line in lines)


def test_each_target_has_its_verdict_and_its_losses() -> None:
    report = several_targets()
    wide, narrow = (reporter("text")(report, Style(width=width)) for width in (120, 60))
    for text in (wide, narrow):
        assert "  on a100: grade C, 9.1 ms per forward pass, 258 us" in text
        assert "  on t4: grade D, 41 ms per forward pass, 516 us" in text
        headings = [line for line in text.splitlines() if line.startswith("──")]
        assert [line.split()[-2] for line in headings[:4]] == ["a100", "t4", "a100", "t4"]
        assert "F, 3.25 ms on t4" in headings[1]
    assert re.search(r"lost, a100 +lost, t4\n", wide)
    assert re.search(r"CL103 .* 2 +210 us +420 us\n", wide)
    assert re.search(r"CL501 .* 1 +- +-\n", wide)
    assert "lost: 210 us on a100, 420 us on t4" in narrow
    markdown = reporter("markdown")(report, Style())
    assert "\na100: grade **C**, 9.1 ms per forward pass, 258 us of it lost to warnings (3 %).\n" in markdown
    assert "\nt4: grade **D**, 41 ms per forward pass, 516 us of it lost to warnings (1 %).\n" in markdown


def test_the_reason_of_a_rule_is_given_once() -> None:
    text = reporter("text")(full_report(), Style(width=120))
    assert text.count("Tensor Cores work on vectors") == 1
    assert text.count("CL102 channel-alignment:") == 2


def test_layers_that_the_title_names_are_not_named_again() -> None:
    one = full_report().findings[4]
    assert "layers  stem, conv2, conv3, head" in reporter("text")(full_report(findings=(one,)), Style())
    named = replace(one, message="off in 4 layers: stem, conv2, conv3, head")
    assert "layers  stem" not in reporter("text")(full_report(findings=(named,)), Style())


def test_a_number_and_its_percent_sign_stay_together() -> None:
    for width in range(4, 30):
        assert not [line for line in wrap("by bound: compute 82 %, memory 18 %", width) if line.lstrip()[0] == "%"]


def test_findings_at_one_place_show_it_once() -> None:
    first = full_report().findings[1]
    report = full_report(findings=(first, replace(first, rule=replace(ALIGNMENT, code="CL201"))))
    assert reporter("text")(report, Style()).count("nets/spec.yaml:6:23") == 1


def test_findings_of_one_layer_stand_together() -> None:
    stem, conv2, conv3, *_ = full_report().findings
    text = reporter("text")(full_report(findings=(conv2, stem, replace(conv3, layer="conv2"))), Style())
    assert [line.split()[1] for line in text.splitlines() if line.startswith("──")][:2] == ["conv2", "stem"]


def test_layers_of_one_name_are_not_described_for_each_other() -> None:
    report = full_report()
    twice = replace(report, layers=(*report.layers, report.layers[0]))
    assert "stride 2" in reporter("text")(report, Style(width=120)).split("\n")[0]
    assert "stride 2" not in reporter("text")(twice, Style(width=120)).split("\n")[0]


@pytest.mark.parametrize("words", range(8, 20))
def test_wrapped_lines_never_begin_with_a_workflow_command(words: int) -> None:
    message = "word " * words + "::error ::forged"
    report = full_report(findings=(finding(ALIGNMENT, message, Location(path="a"), "x"),), sources={})
    text = reporter("text")(report, Style(width=80))
    assert "::error" in text
    assert not re.search(r"^\s*::", text, re.MULTILINE)


def test_plain_text_needs_no_rich() -> None:
    code = (
        "import sys\n"
        "from convlint.reporters import reporter, REPORTERS\n"
        "[reporter(name) for name in REPORTERS]\n"
        "print([name for name in ('rich', 'typer', 'yaml') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_infos_that_cost_nothing_stand_in_the_summary_alone() -> None:
    """True, but nobody would act on them here; machines still get them."""
    report = full_report()
    free, priced, unknown = (
        replace(
            report.findings[0],
            rule=replace(report.findings[0].rule, code=code, name=code.lower()),
            severity="info",
            lost_us=lost,
        )
        for code, lost in (("CL104", 0.0), ("CL105", 12.0), ("CL302", None))
    )
    text = reporter("text")(replace(report, findings=(free, priced, unknown)), Style())
    body, _, summary = text.partition(" summary ")
    assert "CL104" not in body
    assert "CL104" in summary
    assert "1 info on what costs nothing" in summary
    assert "CL105" in body
    assert "CL302" in body
