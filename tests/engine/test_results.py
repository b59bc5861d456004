"""What was found, in order, and one report on all networks."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_networks import checked, layer, rulebook

from convlint.engine.results import NetworkResult, assemble
from convlint.linting.one_input import Job
from convlint.linting.run import check_inputs
from convlint.readers.inputs import file_input
from convlint.report import Report
from convlint.rulebook.book import load_rulebook

BUILTIN = load_rulebook()


def report(*results: NetworkResult) -> Report:
    return assemble(results, (), BUILTIN, files=len(results))


def test_order_of_findings(tmp_path: Path) -> None:
    """Errors without a price, then by loss, then the rest by severity, path and line."""
    fix = '{ describe: "use C=64", set: { C: "64" } }'
    rules = rulebook(
        tmp_path,
        {"severity": "info", "check": "C % 8 == 0"},
        {"severity": "error", "check": "C % 8 == 0"},
        {"severity": "warning", "check": "C % 8 == 0", "loss": "fix", "fix": fix},
        {"severity": "warning", "check": "C % 8 == 0"},
    )
    small, large = layer("small", C=62, N=64), layer("large", C=62, N=512)
    found = report(checked(rules, small, path="b.yaml"), checked(rules, large + small, path="a.yaml")).findings
    kinds = [(f.rule.code, f.location.path, f.layer) for f in found]
    by_place = [("a.yaml", "large"), ("a.yaml", "small"), ("b.yaml", "small")]
    assert kinds[:3] == [("XY001", *place) for place in by_place]
    assert kinds[3] == ("XY002", "a.yaml", "large")
    assert {kind[0] for kind in kinds[4:6]} == {"XY002"}
    assert kinds[6:] == [(code, *place) for code in ("XY003", "XY000") for place in by_place]
    losses = [f.lost_us for f in found if f.lost_us is not None]
    assert losses == sorted(losses, reverse=True)


def test_a_report_sums_its_networks_up() -> None:
    one, two = checked(BUILTIN, layer("a")), checked(BUILTIN, layer("b", C=62), path="b.yaml")
    whole = report(one, two)
    assert one.time_us is not None
    assert two.time_us is not None
    assert whole.time_us == pytest.approx(one.time_us + two.time_us)
    assert (whole.files, len(whole.layers), whole.grade) == (2, 2, whole.grade)
    assert whole.grade in "ABCDF"
    unknown = report(one, checked(BUILTIN, layer("c", H=None)))
    assert (unknown.time_us, unknown.grade, unknown.lost_us) == (None, None, None)


def _report(spec: str, tmp_path: Path) -> Report:
    (tmp_path / "net.yaml").write_text(spec)
    return check_inputs([file_input(str(tmp_path / "net.yaml"))], BUILTIN, Job())


def test_two_flaws_of_a_layer_are_not_added_up(tmp_path: Path) -> None:
    """NCHW and three channels: mending one mends part of the other, and no network loses more than it takes."""
    stem = "N: 256, C: 3, H: 224, W: 224, K: 64, kernel_size: 7, stride: 2, padding: 3"
    layer = f"  - {{ name: a, {stem}, dtype: fp16, layout: NCHW }}\n"
    report = _report("version: 1\nlayers:\n" + layer, tmp_path)
    losses = [f.lost_us for f in report.findings if f.severity == "warning" and f.lost_us is not None]
    assert len(losses) > 1
    assert report.lost_us == pytest.approx(max(losses))
    assert report.time_us is not None
    assert report.lost_us is not None
    assert report.lost_us < report.time_us
