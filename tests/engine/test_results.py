"""What was found, in order, and one report on all networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_networks import checked, layer, rulebook

from convlint.engine.results import NetworkResult, assemble
from convlint.linting.one_input import Job
from convlint.linting.run import check_inputs
from convlint.model.layer import ConvLayer
from convlint.model.location import Location
from convlint.readers.inputs import file_input
from convlint.report import Finding, LayerReport, LayerTimes, Report, Severity
from convlint.rulebook.book import load_rulebook

BUILTIN = load_rulebook()


def report(*results: NetworkResult) -> Report:
    return assemble(results, (), BUILTIN, files=len(results))


def test_order_of_findings(tmp_path: Path) -> None:
    """By severity, then by what is lost, then by path and line; what has no price loses nothing."""
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
    expected = [(code, *place) for code in ("XY001", "XY002", "XY003", "XY000") for place in by_place]
    assert kinds == expected
    lost = [f.lost_us for f in found if f.lost_us is not None]
    assert len(lost) == 3
    assert lost == sorted(lost, reverse=True)


def named(
    name: str, severity: Severity, lost_us: float | None = None, path: str = "a", line: int | None = 1
) -> Finding:
    return Finding(
        rule=BUILTIN.rules[0].info, severity=severity, message="m", location=Location(path=path, line=line), layer=name,
        lost_us=lost_us,
    )  # fmt: skip


@pytest.mark.parametrize("order", [1, -1])
def test_the_gravest_come_first_then_what_loses_most(order: int) -> None:
    findings = [
        named("a", "error", 5.0), named("b", "error"), named("c", "error", line=2), named("d", "warning", 9.0),
        named("e", "warning", 8.0), named("f", "warning", 0.0, line=None), named("g", "warning"),
        named("h", "warning", path="b"), named("i", "info", 99.0),
    ]  # fmt: skip
    whole = report(result(findings=tuple(findings[::order])))
    assert "".join(finding.layer or "" for finding in whole.findings) == "abcdefghi"


def test_a_report_sums_its_networks_up() -> None:
    one, two = checked(BUILTIN, layer("a")), checked(BUILTIN, layer("b", C=62), path="b.yaml")
    whole = report(one, two)
    times = [entry.times["a100"] for each in (one, two) for entry in each.layers]
    assert whole.total is not None
    assert whole.total.times is not None
    assert None not in times
    for name in ("time_us", "after_us", "ideal_us"):
        assert getattr(whole.total.times, name) == pytest.approx(sum(getattr(each, name) for each in times))
    assert (whole.files, len(whole.layers), whole.total.gpu, whole.total.mode) == (2, 2, "a100", "training")
    assert whole.totals == (whole.total,)
    assert whole.total.time_us == whole.total.times.time_us
    assert whole.total.time_after_us == whole.total.times.after_us
    assert whole.total.lost_us == whole.total.times.time_us - whole.total.times.after_us
    assert whole.total.lost_us > 0
    unknown = report(one, checked(BUILTIN, layer("c", H=None))).total
    assert unknown is not None
    assert (unknown.times, unknown.time_us, unknown.time_after_us, unknown.lost_us, unknown.grade) == (None,) * 5


def test_what_all_findings_lose_is_what_the_report_says(tmp_path: Path) -> None:
    """NCHW and three channels: nothing is counted twice, nothing is hidden."""
    stem = "N: 256, C: 3, H: 224, W: 224, K: 64, kernel_size: 7, stride: 2, padding: 3"
    spec = f"version: 1\nlayers:\n  - {{ name: a, {stem}, dtype: fp16, layout: NCHW }}\n"
    (tmp_path / "net.yaml").write_text(spec)
    whole = check_inputs([file_input(str(tmp_path / "net.yaml"))], BUILTIN, Job())
    losses = [finding.lost_us for finding in whole.findings if finding.lost_us]
    assert len(losses) > 1
    assert whole.total is not None
    assert whole.total.lost_us == pytest.approx(sum(losses))
    assert 0 < (whole.total.lost_us or 0.0) < (whole.total.time_us or 0.0)


def of_layer(**times: tuple[float, float, float] | None) -> LayerReport:
    """A layer and its times on each GPU: now, after all advice, and in the ideal."""
    return LayerReport(
        layer=ConvLayer(name="a"),
        times={
            gpu: None if own is None else LayerTimes(time_us=own[0], after_us=own[1], ideal_us=own[2])
            for gpu, own in times.items()
        },
    )


def result(*layers: LayerReport, **parts: Any) -> NetworkResult:
    values: dict[str, Any] = {
        "path": "net.yaml", "labels": ("a100",), "mode": "training", "layers": layers, "findings": (), "skipped": (),
    }  # fmt: skip
    return NetworkResult(**values | parts)


@pytest.mark.parametrize(
    ("times", "sums", "letter"),
    [
        ([(100.0, 95.0, 90.0)], (100.0, 95.0), "A"),
        ([(100.0, 95.0, 89.0)], (100.0, 95.0), "B"),
        ([(100.0, 95.0, 90.0), (100.0, 70.0, 60.0)], (200.0, 165.0), "B"),  # of the sums
        ([(100.0, 95.0, 90.0), (900.0, 90.0, 9.0)], (1000.0, 185.0), "F"),
        ([(100.0, 95.0, 90.0), None], None, None),  # what is not known is not left out
        ([None], None, None),
        ([], None, None),
    ],
)
def test_the_grade_is_that_of_all_networks(
    times: list[Any], sums: tuple[float, float] | None, letter: str | None
) -> None:
    together = report(result(*(of_layer(a100=own) for own in times))).total
    apart = report(*(result(of_layer(a100=own)) for own in times)).total
    assert together is not None
    assert (apart is None) == (not times)
    for total in (together, apart):
        if total is not None:
            assert (total.time_us, total.time_after_us) == (sums or (None, None))
            assert total.grade == letter
            assert total.lost_us == (None if sums is None else sums[0] - sums[1])


@pytest.mark.parametrize(
    ("ratio", "letter"),
    [
        (1.0, "A"), (0.9, "A"), (0.8999, "B"), (0.75, "B"), (0.7499, "C"), (0.6, "C"), (0.5999, "D"), (0.4, "D"),
        (0.3999, "F"), (0.0, "F"),
    ],
)  # fmt: skip
def test_letters(ratio: float, letter: str) -> None:
    assert LayerTimes(time_us=1000.0, after_us=1.0, ideal_us=1000.0 * ratio).grade == letter


def test_what_takes_no_time_could_not_be_better() -> None:
    assert LayerTimes(time_us=0.0, after_us=0.0, ideal_us=0.0).grade == "A"


@given(st.floats(0.001, 1), st.floats(0.001, 1))
def test_grades_follow_the_ratio(one: float, two: float) -> None:
    worse, better = (LayerTimes(time_us=1.0, after_us=1.0, ideal_us=ratio).grade for ratio in sorted((one, two)))
    assert better <= worse


def test_totals_are_those_of_each_target_and_mode_in_order() -> None:
    """A spec of its own mode is added up in its own; the first total is that of the first input's."""
    whole = report(
        result(of_layer(t4=(9.0, 8.0, 7.0), a100=(5.0, 4.0, 3.0)), labels=("t4", "a100")),
        result(of_layer(t4=(1.0, 1.0, 1.0)), labels=("t4",), mode="inference"),
        result(of_layer(v100=(4.0, 4.0, 4.0), t4=(2.0, 2.0, 2.0)), labels=("v100", "t4")),
        result(of_layer(v100=(8.0, 8.0, 8.0)), labels=("v100",), mode="inference"),
    )
    assert whole.targets == ("t4", "a100", "v100")
    assert whole.mode == "training"
    assert [(total.gpu, total.mode, total.time_us) for total in whole.totals] == [
        ("t4", "training", 11.0), ("t4", "inference", 1.0), ("a100", "training", 5.0), ("v100", "training", 4.0),
        ("v100", "inference", 8.0),
    ]  # fmt: skip
    assert whole.total is not None
    assert (whole.total.gpu, whole.total.mode, whole.total.time_us) == ("t4", "training", 13.0)  # each on its first


def test_without_inputs_there_is_nothing_to_sum_up() -> None:
    empty = report()
    assert (empty.total, empty.totals, empty.targets) == (None, (), ())
    nothing = report(result(labels=()))
    assert (nothing.total, nothing.totals) == (None, ())
    without_layers = report(result(labels=("t4", "a100")))
    assert [(total.gpu, total.times) for total in without_layers.totals] == [("t4", None), ("a100", None)]
