"""What was found, in order, and one report on all networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_networks import checked, layer, rulebook

from convlint.engine.results import NetworkResult, assemble
from convlint.linting.one_input import Job
from convlint.linting.run import check_inputs
from convlint.model.location import Location
from convlint.readers.inputs import file_input
from convlint.report import Finding, Report, Severity
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


def result(**parts: Any) -> NetworkResult:
    values: dict[str, Any] = {
        "path": "net.yaml", "labels": ("a100",), "mode": "training", "layers": (), "findings": (), "skipped": (),
        "time_us": 100.0, "attainable_us": 90.0, "losses": {}, "source_lines": None,
    }  # fmt: skip
    return NetworkResult(**values | parts)


def found(name: str, severity: Severity = "warning", *, gpu: str | None = "a100") -> Finding:
    rule = BUILTIN.rules[0].info
    return Finding(
        rule=rule, severity=severity, message="m", location=Location(path="net.yaml"), layer=name, gpu=gpu,
        fingerprint=name,
    )  # fmt: skip


LOSSES = {"one": ((0, 5.0), (1, 2.0)), "two": ((0, 3.0), (1, 4.0)), "free": ()}


@pytest.mark.parametrize(
    ("findings", "lost_us"),
    [
        ([], 0.0),
        ([found("one")], 7.0),
        ([found("one"), found("two")], 9.0),  # of each layer the largest
        ([found("one", "error"), found("two", "info")], 7.0),
        ([found("one", "info")], 0.0),
        ([found("one", gpu="t4")], 0.0),
        ([found("one", gpu=None)], 0.0),
        ([found("free"), found("without a price")], 0.0),
    ],
)
def test_what_a_network_loses(findings: list[Finding], lost_us: float) -> None:
    assert result(findings=tuple(findings), losses=LOSSES).lost_us("a100") == lost_us


@pytest.mark.parametrize(
    ("times", "time_us", "letter"),
    [
        ([(100.0, 90.0)], 100.0, "A"),
        ([(100.0, 89.0)], 100.0, "B"),
        ([(100.0, 90.0), (100.0, 60.0)], 200.0, "B"),  # of the sums
        ([(100.0, 90.0), (None, None)], None, None),
        ([], None, None),
    ],
)
def test_the_grade_is_that_of_all_networks(times: list[Any], time_us: float | None, letter: str | None) -> None:
    whole = report(*(result(time_us=time, attainable_us=best) for time, best in times))
    assert (whole.time_us, whole.grade) == (time_us, letter)
    assert (whole.lost_us is None) == (time_us is None)


def test_targets_are_those_of_all_networks_in_order() -> None:
    whole = report(result(labels=("t4", "a100")), result(labels=("v100", "t4")))
    assert whole.targets == ("t4", "a100", "v100")
    assert [total.gpu for total in whole.totals] == ["t4", "a100", "v100"]
    assert {total.time_us for total in whole.totals} == {None}  # without layers there is nothing to sum up
