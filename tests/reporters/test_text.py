"""The text report against hand-checked snapshots, and what holds for every width, colour and character set."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from reports import (
    ALIGNMENT,
    ALL_TIMES,
    NETWORK,
    estimate,
    finding,
    full_report,
    layer_times,
    priced,
    priced_report,
    rendered,
    total,
)

from convlint.model.estimates import StepEstimate
from convlint.model.location import Location
from convlint.model.report import Alternative, InputError, Report, Severity
from convlint.readers.discovery import HOLDS_NOTHING
from convlint.reporters import Style, reporter
from convlint.reporters.ink import columns, wrap

SNAPSHOTS = Path(__file__).parent / "snapshots"
COLOUR = re.compile("\x1b\\[[0-9;]*m")

CLEAN_TIMES = layer_times(3250.0, 3250.0, 3060.0)  # grade A
CLEAN = {
    "findings": (), "skipped": (), "suppressed": (), "errors": (), "files": 1,
    "total": total("a100", CLEAN_TIMES), "totals": (total("a100", CLEAN_TIMES),),
}  # fmt: skip
UNKNOWN_TIMES = {"total": total("a100", None), "totals": (total("a100", None),)}


def several_targets() -> Report:
    report = full_report(targets=("a100", "t4"), mode="inference", errors=(), skipped=(), suppressed=())
    totals = (
        total("a100", layer_times(3250.0, 2991.75, 2380.0), "inference"),
        total("t4", layer_times(13_000.0, 12_483.5, 6500.0), "inference"),
    )
    layers = tuple(
        replace(
            entry,
            estimates={"a100": estimate(), "t4": estimate(3250)},
            times={**entry.times, "t4": layer_times(3250.0, 2829.5, 1200.0)},
        )
        for entry in report.layers
    )
    findings = tuple(
        replace(f, gpu=gpu, lost_us=f.lost_us * times, lost_percent=100 * f.lost_us * times / whole)
        for f in report.findings[:2]
        for gpu, times, whole in (("a100", 1, 3250), ("t4", 2, 13_000))
        if f.lost_us
    )
    return replace(report, findings=(*findings, *report.findings[4:5]), layers=layers, total=totals[0], totals=totals)


def several_networks(count: int, *gpus: str) -> Report:
    """Networks that take 1, 2, 3 ... ms of convolutions in steps of twice that; each GPU takes twice as long."""
    networks = tuple(
        replace(
            NETWORK, path=f"configs/of/some/length/net{number}.yaml", gpu=gpu, layers=4,
            times=layer_times(1000.0 * number * times, 800.0 * number * times, 500.0 * number * times),
            step=StepEstimate(parts={"convolution": 1000.0 * number * times, "pointwise": 1000.0 * number * times},
                              host_us=None), step_after_us=1800.0 * number * times,
        )
        for number in range(1, count + 1)
        for times, gpu in enumerate(gpus, 1)
    )  # fmt: skip
    totals = tuple(
        replace(
            total(gpu, layer_times(6000.0, 4800.0, 3000.0)), networks=tuple(one for one in networks if one.gpu == gpu)
        )
        for gpu in gpus
    )
    return full_report(
        targets=gpus, networks=networks, total=totals[0], totals=totals, findings=(), errors=(), skipped=(),
        suppressed=(),
    )  # fmt: skip


CASES = {
    "brief_networks.txt": (several_networks(3, "a100"), Style()),
    "brief_networks_targets.txt": (several_networks(7, "a100", "t4"), Style()),
    "brief_80.txt": (full_report(), Style()),
    "brief_120.txt": (full_report(), Style(width=120)),
    "brief_several_60.txt": (several_targets(), Style(width=60, unicode=False)),
    "brief_several.txt": (several_targets(), Style()),
    "brief_prices.txt": (priced_report(), Style()),
    "brief_clean.txt": (full_report(**CLEAN), Style()),
    "full_80.txt": (full_report(), Style(verbose=True)),
    "full_120.txt": (full_report(), Style(verbose=True, width=120)),
    "full_ascii_60.txt": (full_report(), Style(verbose=True, width=60, unicode=False)),
    "quiet.txt": (full_report(), Style(quiet=True)),
    "clean.txt": (full_report(**CLEAN), Style(verbose=True)),
    "without_times.txt": (full_report(**UNKNOWN_TIMES), Style(verbose=True)),
    "several_targets.txt": (several_targets(), Style(verbose=True)),
    "prices_80.txt": (priced_report(), Style(verbose=True)),
    "prices_120.txt": (priced_report(), Style(verbose=True, width=120)),
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


@pytest.mark.parametrize("gpus", [("a100",), ("a100", "t4"), tuple(f"gpu{number}" for number in range(7))])
def test_steps_of_several_networks_are_not_added_up(gpus: tuple[str, ...]) -> None:
    text = reporter("text")(several_networks(13, *gpus), Style())
    assert "step 182 ms" not in text  # the sum of all
    head, *rows = text.splitlines()[:14]
    assert head.split()[:3] == ["step", "images/s", "advised"]
    assert re.search(r"configs/.*net13\.yaml .* 26 ms ", rows[0])  # the one that takes longest comes first
    shown = sum("net" in line for line in rows)
    assert shown == max(1, 12 // len(gpus))  # lines, of which each network has one for every GPU
    assert f"  and {13 - shown} more: --output json" in text
    assert [line for line in text.splitlines()[:-1] if columns(line) > 80] == []


def test_networks_with_targets_of_their_own_have_a_line_each() -> None:
    reports = [several_networks(number, f"gpu{number}") for number in range(1, 7)]
    networks = tuple(replace(report.networks[-1], path=f"own-{n}.yaml") for n, report in enumerate(reports))
    report = replace(reports[0], networks=networks, targets=tuple(network.gpu for network in networks))
    text = reporter("text")(report, Style())
    rows = [line.split()[:2] for line in text.splitlines() if "own-" in line]
    assert sorted(rows) == [[f"own-{number}.yaml", f"gpu{number + 1}"] for number in range(6)]
    assert "more: --output json" not in text


def test_the_table_of_rules_says_where_its_times_are_of_the_step() -> None:
    step = StepEstimate(parts={"convolution": 3250.0, "pointwise": 100.0}, host_us=None)
    of_step = replace(total("a100", ALL_TIMES), networks=(replace(NETWORK, step=step),))
    reports = full_report(), full_report(total=of_step, totals=(of_step,))
    texts = [reporter("text")(report, Style(verbose=True)).splitlines() for report in reports]
    heads = [next(line.split() for line in lines if line.split()[:2] == ["rule", "findings"]) for lines in texts]
    assert [head[2:] for head in heads] == [["lost"], ["lost", "of", "step"]]


@pytest.mark.parametrize("report", [several_targets(), several_networks(3, "a100")], ids=["targets", "networks"])
def test_a_table_says_that_convolutions_are_not_compiled(report: Report) -> None:
    compiling = replace(ALIGNMENT, code="CL510", name="compile", severity="warning", loss="compile")
    asks = finding(compiling, "eager", Location(path="a"), gpu="a100", lost_us=300.0, lost_percent=1.0)
    note = "Convolutions are those before torch.compile."
    assert note not in reporter("text")(report, Style())
    assert note in reporter("text")(replace(report, findings=(*report.findings, asks)), Style())


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
@pytest.mark.parametrize("unicode", [True, False])
def test_lines_fit_the_width(width: int, unicode: bool) -> None:
    *lines, coverage, end = reporter("text")(full_report(), Style(verbose=True, width=width, unicode=unicode)).split(
        "\n"
    )
    assert [line for line in lines if columns(line) > width] == []
    assert not end
    assert coverage.startswith("4 layers in 2 files")
    assert unicode or all(line.isascii() for line in lines)


def test_each_target_and_each_mode_has_its_verdict_in_markdown() -> None:
    markdown = reporter("markdown")(several_targets(), Style(verbose=True))
    assert "\na100: 3.25 ms of convolutions per forward pass, grade **C**; 2.99 ms with all of it.\n" in markdown
    assert "\nt4: 13 ms of convolutions per forward pass, grade **D**; 12.5 ms with all of it.\n" in markdown
    training = "3.25 ms of convolutions per training step, grade **C**; 2.99 ms with all of it"
    inference = "610 us of convolutions per forward pass, grade **A**; no fix of theirs is advised"
    assert f"\n{training}.\n\n{inference}.\n" in reporter("markdown")(priced_report(), Style(verbose=True))


def test_a_total_that_is_unknown_beside_another_is_said_to_be() -> None:
    report = full_report()
    report = replace(report, totals=(*report.totals, total("a100", None, "inference")))
    assert "\n  time per forward pass unknown\n" in reporter("text")(report, Style(verbose=True))
    assert "\ntime per forward pass unknown.\n" in reporter("markdown")(report, Style(verbose=True))
    assert "unknown" not in reporter("text")(full_report(**UNKNOWN_TIMES), Style(verbose=True))


def test_no_line_ends_in_spaces_where_a_target_is_unknown() -> None:
    report = replace(several_targets(), totals=(several_targets().totals[0], total("t4", None, "inference")))
    lines = reporter("text")(report, Style()).splitlines()
    assert any(line.endswith("unknown") for line in lines)
    assert [line for line in lines if line != line.rstrip()] == []


def test_the_reason_of_a_rule_is_given_once() -> None:
    text = reporter("text")(full_report(), Style(verbose=True, width=120))
    assert text.count("Tensor Cores work on vectors") == 1
    assert text.count("CL102 channel-alignment:") == 2


def test_layers_that_the_title_names_are_not_named_again() -> None:
    one = full_report().findings[4]
    assert "layers  stem, conv2, conv3, head" in reporter("text")(full_report(findings=(one,)), Style(verbose=True))
    named = replace(one, message="off in 4 layers: stem, conv2, conv3, head")
    assert "layers  stem" not in reporter("text")(full_report(findings=(named,)), Style(verbose=True))


def test_a_number_and_its_percent_sign_stay_together() -> None:
    for width in range(4, 30):
        assert not [line for line in wrap("by bound: compute 82 %, memory 18 %", width) if line.lstrip()[0] == "%"]


def test_findings_at_one_place_show_it_once() -> None:
    first = full_report().findings[1]
    report = full_report(findings=(first, replace(first, rule=replace(ALIGNMENT, code="CL201"))))
    assert reporter("text")(report, Style(verbose=True)).count("nets/spec.yaml:6:23") == 1


def test_findings_of_one_layer_stand_together() -> None:
    stem, conv2, conv3, *_ = full_report().findings
    text = reporter("text")(full_report(findings=(conv2, stem, replace(conv3, layer="conv2"))), Style(verbose=True))
    assert [line.split()[1] for line in text.splitlines() if line.startswith("──")][:2] == ["conv2", "stem"]


def test_layers_of_one_name_are_not_described_for_each_other() -> None:
    report = full_report()
    twice = replace(report, layers=(*report.layers, report.layers[0]))
    assert "stride 2" in reporter("text")(report, Style(verbose=True, width=120)).split("\n")[0]
    assert "stride 2" not in reporter("text")(twice, Style(verbose=True, width=120)).split("\n")[0]


@pytest.mark.parametrize("words", range(8, 20))
def test_wrapped_lines_never_begin_with_a_workflow_command(words: int) -> None:
    message = "word " * words + "::error ::forged"
    report = full_report(findings=(finding(ALIGNMENT, message, Location(path="a"), "x"),), sources={})
    text = reporter("text")(report, Style(verbose=True, width=80))
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


@pytest.mark.parametrize(
    ("prices", "shown"),
    [
        ({"lost_us": 0.0, "lost_alone_us": 0.0}, False),
        ({"lost_us": 0.0, "lost_alone_us": 0.0, "lost_capacity_us": 0.0}, False),
        ({"lost_us": 12.0}, True),
        ({"lost_us": 0.0, "lost_alone_us": 12.0}, True),
        ({"lost_us": 0.0, "lost_alone_us": 0.0, "lost_capacity_us": 12.0}, True),
        ({}, True),
    ],
)
def test_infos_that_cost_nothing_stand_in_the_summary_alone(prices: dict[str, Any], shown: bool) -> None:
    """True, but nobody would act on them here; machines still get them."""
    report = full_report(findings=(priced(severity="info", **prices),))
    body, _, summary = reporter("text")(report, Style(verbose=True)).partition(" summary ")
    assert ("CL102" in body) is shown
    assert "CL102" in summary
    assert ("1 info with nothing to change" in summary) is not shown
    assert "CL102" in reporter("concise")(report, Style(verbose=True))


@pytest.mark.parametrize(("severity", "shown"), [("info", False), ("warning", True)])
def test_infos_that_only_say_where_time_goes_are_counted(severity: Severity, shown: bool) -> None:
    one = priced(severity=severity)
    report = full_report(findings=(replace(one, rule=replace(one.rule, evidence=True)),))
    text = reporter("text")(report, Style(verbose=True))
    assert ("CL102" in text.partition(" summary ")[0]) is shown
    brief = reporter("text")(report, Style())
    assert ("CL102" in brief) is shown
    assert ("1 info, none to act on: --output concise" in brief) is (severity == "info")
    two = replace(report, findings=(*report.findings, priced(severity="info", lost_us=9.0)))
    assert ("1 of 2 infos to act on" in reporter("text")(two, Style())) is (severity == "info")
    assert "CL102" in reporter("concise")(report, Style())
    assert [each["code"] for each in json.loads(reporter("json")(report, Style()))["findings"]] == ["CL102"]


def test_a_price_that_is_unknown_or_hidden_by_other_advice_is_no_line() -> None:
    for prices in ({}, {"lost_us": 0.0, "lost_alone_us": 12.0}):
        assert "\n      lost " not in reporter("text")(full_report(findings=(priced(**prices),)), Style(verbose=True))


def test_the_line_of_code_that_would_have_to_change_is_named() -> None:
    report = full_report()
    first = report.findings[0]
    assert first.fix is not None
    said = replace(first, fix=replace(first.fix, no_edit="net.py:9: K comes from `w`"))
    assert "code    net.py:9: K comes from `w`" in reporter("text")(full_report(findings=(said,)), Style(verbose=True))
    in_library = replace(said, location=replace(said.location, library="timm/layers.py:3"))
    assert "K comes from" not in reporter("text")(full_report(findings=(in_library,)), Style(verbose=True))


def test_alternatives_stand_below_the_fix_in_every_report_for_people() -> None:
    other = Alternative(describe="use K=512", set={"K": 512}, time_change_us=-42.0, work_change=-0.0154)
    report = full_report(findings=(replace(full_report().findings[1], alternatives=(other,)),))
    assert "      or      use K=512 (42 us faster, work -2 %)\n" in rendered("text", report, verbose=True)
    assert "<br>Or: use K=512 (42 us faster, work -2 %" in rendered("markdown", report)
    assert "<dt>or</dt><dd>use K=512 (42 us faster, work -2 %)</dd>" in rendered("html", report)


@pytest.mark.parametrize(
    ("paths", "message", "is_first"),
    [
        (["."], f"{HOLDS_NOTHING} (.onnx). A model in Python: ...", True),
        (["bare"], f"{HOLDS_NOTHING} (.onnx)", False),
        ([".", "bare"], HOLDS_NOTHING, False),
        (["."], "nothing to check", False),
    ],
)
def test_where_nothing_is_read_it_says_what_to_type(paths: list[str], message: str, is_first: bool) -> None:
    errors = tuple(InputError(path=path, message=message) for path in paths)
    report = full_report(findings=(), layers=(), suppressed=(), skipped=(), errors=errors, files=0)
    text = rendered("text", report, width=80)
    assert ("\n  convlint check mypkg.models:Net --input 64x3x224x224  a PyTorch module\n" in text) == is_first
    assert ("error: nothing here that convlint reads; what to type:" in text) == is_first
    assert max(columns(line) for line in text.splitlines()) <= 80
