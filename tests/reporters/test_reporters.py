"""What all formats share: the registry, and that no name, path or message from a file breaks or forges any."""

import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from command_line import convlint
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from parsed import READERS, workflow_commands
from reports import ALIGNMENT, AUTOTUNE, FEW_OUTPUTS, LINES, MISMATCH, RULES, finding, full_report, rendered

from convlint import reporters
from convlint.cli.options import listed
from convlint.model.layer import ConvLayer
from convlint.model.location import Location
from convlint.model.report import Fix, InputError, LayerReport, Report, SkippedRule, Suppressed
from convlint.reporters import REPORTERS, Reporter, Style, github, reporter
from convlint.reporters.causes import causes
from convlint.reporters.words import asks_for_nothing


@pytest.mark.parametrize("name", READERS)
def test_the_full_report_by_its_own_parser(name: str) -> None:
    assert READERS[name](rendered(name, full_report())) == (6, 1)


@pytest.mark.parametrize("name", READERS)
def test_an_empty_report(name: str) -> None:
    report = full_report(findings=(), errors=(), skipped=(), suppressed=(), layers=())
    assert READERS[name](rendered(name, report)) == (0, 0)


@pytest.mark.parametrize("name", REPORTERS)
def test_every_output_ends_with_one_newline(name: str) -> None:
    text = rendered(name, full_report())
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_unknown_format() -> None:
    with pytest.raises(KeyError):
        reporter("xml")


def test_source_lines_of_the_sample_are_what_locations_point_at() -> None:
    for one in full_report().findings:
        place = one.location
        assert LINES[place.line - 1][place.column - 1 :][:1].isalnum()


@pytest.mark.parametrize("name", REPORTERS)
def test_each_format_has_a_reporter(name: str) -> None:
    assert isinstance(reporter(name), Reporter)
    assert reporter(name).annotations == (name == "github")


def test_each_reporter_is_registered_once() -> None:
    folder = Path(reporters.__file__).parent
    offered = {path.stem for path in folder.glob("*.py") if re.search(r"^def render\(", path.read_text(), re.MULTILINE)}
    assert sorted(offered) == sorted(REPORTERS.values())


def test_help_and_errors_name_all_formats() -> None:
    shown = " ".join(convlint("check", "--help").out.split())
    assert f"{listed(REPORTERS)}; repeatable." in shown
    assert f"known are {', '.join(REPORTERS)}" in convlint("check", "--output", "xml").err


@pytest.mark.parametrize(("names", "text"), [(["a"], "a"), (["a", "b"], "a or b"), (["a", "b", "c"], "a, b or c")])
def test_names_are_listed(names: list[str], text: str) -> None:
    assert listed(names) == text


PIECES = [
    "\n", "\r\n", "\r", "\x00", "\x1b[31m", "\x1b]0;title\x07", "\x9b2J", "::error file=a::forged", "::",
    "::add-mask::",
    "##[error]forged", "##vso[task.complete]", "]]>", "<![CDATA[", "<!--", "-->", "<script>", "</testcase>", "&amp;",
    "&lt;", '"', "'", "`", "```", "|", "\\|", "\\", "*", "_", "[x](http://x)", "![x](y)", "http://example.com",
    "www.example.com", "@someone", "#1", "gh-12", "a/b#3", "deadbeefcafe", "%0A", "%25", "%", ",", ":", "\u202e",
    "\u2066", "\u200b", "\u2028", "\u2029", "\x85", "\ud800", "\udfff", "\uffff", "\ufdd0", "\U000e0041", "\t", " ",
    "./", "/", "..", "é", "中文", "🙂", "e\u0301", "\nCL999: error", "nets/a.yaml:1:1: error: x", "\n\n# heading\n",
    "\n| a | b |\n", "{0}", "${{ x }}", "$(x)", "  - ", "--", "~~~", "~~x~~", "^", "!",
]  # fmt: skip
hostile = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=6).map("".join)
positions = st.none() | st.integers(1, 5)
prices = st.none() | st.just(0.0) | st.floats(0, 1e6)
identities = st.tuples(hostile, hostile, hostile, hostile, st.integers(1, 9))


@st.composite
def reports(draw: Any) -> Report:
    def place(path: str) -> Location:
        line = draw(positions)
        if line is None:
            return Location(path=path)
        column = draw(st.integers(1, 30))
        return Location(path=path, line=line, column=column, end_line=line, end_column=column + 2)

    paths = draw(st.lists(hostile, min_size=1, max_size=2))
    names = draw(st.lists(hostile, min_size=1, max_size=2))
    findings = tuple(
        finding(
            draw(st.sampled_from([ALIGNMENT, FEW_OUTPUTS, MISMATCH, AUTOTUNE])),
            draw(hostile),
            place(draw(st.sampled_from(paths))),
            draw(st.none() | st.sampled_from(names)),
            gpu=draw(st.none() | hostile),
            advised=draw(st.booleans()),
            lost_us=draw(prices),
            lost_alone_us=draw(prices),
            lost_capacity_us=draw(prices),
            lost_percent=draw(st.none() | st.floats(0, 100)),
            pays_with=tuple(draw(st.lists(hostile, max_size=2))),
            fix=draw(st.none() | st.builds(Fix, describe=hostile, safety=st.just("safe"), set=st.just({"C": 8}))),
            layers=tuple(draw(st.lists(hostile, max_size=2))),
            identity=draw(st.none() | identities),
            identities=tuple(draw(st.lists(identities, max_size=2))),
        )
        for _ in range(draw(st.integers(0, 4)))
    )
    sources = {path: tuple(draw(st.lists(hostile, max_size=4))) for path in paths if draw(st.booleans())}
    errors = st.builds(InputError, path=hostile, message=hostile, line=positions, column=positions)
    return full_report(
        targets=tuple(draw(st.lists(hostile, min_size=1, max_size=2))),
        layers=tuple(LayerReport(layer=ConvLayer(name=name, path=paths[0])) for name in names),
        findings=findings,
        skipped=(SkippedRule(code="CL102", layer=names[0], path=paths[0], needs=(draw(hostile),)),),
        suppressed=tuple(Suppressed(finding=f, reason=draw(hostile), by="comment") for f in findings[:1]),
        errors=tuple(draw(st.lists(errors, max_size=2))),
        sources=sources,
        rules=RULES,
    )


def with_everywhere(text: str) -> Report:
    report = full_report()
    findings = tuple(
        replace(f, message=text, layer=text, location=replace(f.location, path=text)) for f in report.findings
    )
    return replace(report, findings=findings, errors=(InputError(path=text, message=text, line=1, column=1),))


styles = st.builds(Style, width=st.integers(20, 130), unicode=st.booleans(), color=st.booleans())
thorough = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
IN_CI = ["text", "concise", "json", "sarif", "gitlab", "junit", "rdjson", "markdown"]


@pytest.mark.slow
@pytest.mark.contract
@thorough
@given(report=reports(), style=styles)
@example(report=with_everywhere("a\x1b[31mb\x00c\u202ed\n::error::e##[error]"), style=Style(unicode=True))
def test_hostile_names_in_every_format(report: Report, style: Style) -> None:
    """As many come out as were put in, no control characters, and nothing that a CI runner takes for a command.

    One report for all formats: to make one up takes longer than to render it.
    """
    counts = (len(report.findings), len(report.errors))
    for name in READERS:
        text = reporter(name)(report, style)
        text.encode("utf-8")
        files = [{finding.location.path for finding in cause.findings} for cause in causes(report)]
        annotated = (sum(map(len, files)), len(report.errors))  # one for each cause in each file
        assert READERS[name](text) == (annotated if name == "github" else counts), name
    plain = replace(style, color=False)
    for name in REPORTERS:
        text = reporter(name)(report, plain)
        bad = {char for char in text if char != "\n" and unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")}
        bad |= {char for char in text if unicodedata.category(char) == "Cf" and char not in "\u200c\u200d"}
        assert bad == set(), name
        assert text.isascii() or style.unicode, name
        if name in IN_CI:
            assert workflow_commands(text) == [], name


@for_each("name, piece", [(name, piece) for name in READERS for piece in PIECES])
def test_each_piece_everywhere(name: str, piece: str) -> None:
    report = with_everywhere(piece)
    text = reporter(name)(report, Style())
    assert READERS[name](text) == (len(report.findings), len(report.errors))


@pytest.mark.slow
@thorough
@given(report=reports(), style=styles)
def test_concise_has_one_line_for_each(report: Report, style: Style) -> None:
    shown = [f for f in report.findings if not (style.quiet and f.severity == "info")]
    *lines, coverage, end = reporter("concise")(report, style).split("\n")
    assert len(lines) == len(shown) + len(report.errors)
    for line, one in zip(lines, shown, strict=False):
        assert f": {one.severity} {one.rule.code} {one.rule.name}: " in line
    assert coverage.startswith(f"{len(report.layers)} layer")
    assert end == ""


@pytest.mark.slow
@thorough
@given(report=reports(), style=styles)
def test_text_shows_every_finding_that_costs_something(report: Report, style: Style) -> None:
    free = sum(asks_for_nothing(finding) for finding in report.findings)
    text = re.sub("\x1b\\[[0-9;]*m", "", reporter("text")(report, replace(style, verbose=not style.quiet)))
    found = re.findall(r"^  (?:error|warning|info) CL\d\d\d [a-z-]+:", text, re.MULTILINE)
    assert len(found) == len(report.findings) - free
    assert bool(free) == ("with nothing to change" in " ".join(text.split()))  # lines are broken to the width
    assert len(re.findall(r"^  error:", text, re.MULTILINE)) == len(report.errors)


@pytest.mark.slow
@thorough
@given(report=reports())
@example(report=full_report(targets=("- x", "t4")))  # a line that would begin a list
@example(report=full_report(targets=("10. x", "t4")))
def test_the_job_summary_holds_every_finding(report: Report) -> None:
    assert READERS["markdown"](github.summary(report)) == (len(report.findings), len(report.errors))
