"""The engine on small networks and rules written for the purpose: precedence, joins, skips, targets, prices, order."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_networks import checked, codes, layer, rulebook

from convlint.engine.results import NetworkResult, assemble
from convlint.errors import RuleError
from convlint.linting.one_input import Job
from convlint.linting.run import check_inputs
from convlint.readers.inputs import file_input
from convlint.report import Finding, Report
from convlint.rulebook.book import load_rulebook

BUILTIN = load_rulebook()


# --- precedence


def test_the_specific_silences_the_general_on_its_own_layer_only(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"check": "C == 64", "yields_to": "[XY001]"}, {"check": "K == 64"}, {"check": "C == 64"})
    result = checked(rules, layer("both", C=8, K=8) + layer("one", C=8))
    assert sorted(codes(result)) == [("XY000", "one"), ("XY001", "both"), ("XY002", "both"), ("XY002", "one")]


def test_silencing_is_not_passed_on(tmp_path: Path) -> None:
    """What is itself silenced still silences: the same cause was named, by the most specific."""
    rules = rulebook(tmp_path, {"yields_to": "[XY001]"}, {"yields_to": "[XY002]"}, {"check": "C == 1"})
    assert codes(checked(rules, layer("a"))) == [("XY002", "a")]


@pytest.mark.parametrize(
    ("sizes", "speaks", "silent"),
    [
        ({"C": 62}, "CL102", ["CL201"]),
        ({"C": 3, "first": "true", "kernel_size": 7, "stride": 2, "H": 224, "W": 224}, "CL103", ["CL102", "CL201"]),
        ({"C": 62, "groups": 62, "K": 62}, None, ["CL601", "CL102", "CL201"]),
        ({"groups": 8, "C": 128, "K": 128}, "CL404", ["CL401"]),
    ],
)  # fmt: skip
def test_precedence_of_the_built_in_rules(sizes: dict[str, object], speaks: str | None, silent: list[str]) -> None:
    fired = {finding.rule.code for finding in checked(BUILTIN, layer("a", **sizes)).findings}
    assert speaks is None or speaks in fired
    assert not fired & set(silent)


# --- scopes and places


def test_a_network_rule_fires_once_at_its_setting(tmp_path: Path) -> None:
    rules = rulebook(
        tmp_path, {"scope": "network", "check": "runtime.cudnn_benchmark", "at": "runtime.cudnn_benchmark"}
    )
    (finding,) = checked(rules, layer("a") + layer("b"), top="runtime:\n  cudnn_benchmark: false\n").findings
    assert (finding.layer, finding.location.line, finding.location.column) == (None, 3, 20)


def test_an_edge_rule_sees_connected_layers_only(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"scope": "edge", "check": "C == arriving.C", "message": "{arriving.source}"})
    result = checked(rules, layer("a", K=32) + layer("b") + layer("c", C=32, H=None, W=None))
    assert [(finding.layer, finding.message) for finding in result.findings] == [("c", "b")]


def test_a_finding_points_at_the_first_place_that_holds(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"check": "C == 1 and K == 1", "at": "{ C: C > 1, K: K > 1 }"})
    text = "  - name: a\n    C: {}\n    H: 8\n    W: 8\n    K: {}\n    kernel_size: 1\n"
    assert [
        checked(rules, text.format(C, K)).findings[0].location.line for C, K in ((2, 2), (2, 1), (1, 2))
    ] == [4, 4, 7]  # fmt: skip


# --- skips


def test_what_is_lacking_is_named_and_never_passed(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"check": "N * P == 1"}, {"check": "runtime.cudnn >= '8'"}, {"check": "dtype == 'fp16'"})
    result = checked(rules, layer("a", N=None, H=None, dtype=None))
    assert [(skip.code, skip.layer, skip.needs) for skip in result.skipped] == [
        ("XY000", "a", ("N", "H")),
        ("XY001", "a", ("runtime.cudnn",)),
        ("XY002", "a", ("dtype",)),
    ]
    assert codes(result) == []


def test_what_settles_the_matter_without_the_unknown_is_no_skip(tmp_path: Path) -> None:
    rules = rulebook(
        tmp_path, {"when": "K == 1 and N > 3"}, {"check": "K == 64 or N > 3"}, {"check": "K == 1 and N > 3"}
    )
    result = checked(rules, layer("a", N=None))
    assert (codes(result), result.skipped) == ([("XY002", "a")], ())


def test_a_skip_is_counted_once_for_all_targets() -> None:
    one = checked(BUILTIN, layer("a", H=None), gpus="a100").skipped
    two = checked(BUILTIN, layer("a", H=None), gpus="a100 v100").skipped
    assert len({(skip.code, skip.layer) for skip in two}) == len(two) >= len(one) > 0


# --- targets


def test_each_target_has_its_own_findings() -> None:
    result = checked(BUILTIN, layer("a", C=62, dtype="fp16"), gpus="a100 p100")
    assert [(f.gpu, f.layer) for f in result.findings if f.rule.code == "CL102"] == [("a100", "a")]
    assert "p100" in {f.gpu for f in result.findings if f.rule.code == "CL701"}
    assert [list(report.estimates) for report in result.layers] == [["a100", "p100"]]


def test_what_no_gpu_changes_is_said_once(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {}, {"when": "gpu.sms > 0"})
    found = checked(rules, layer("a"), gpus="a100 v100").findings
    assert [(f.rule.code, f.gpu) for f in found] == [("XY000", None), ("XY001", "a100"), ("XY001", "v100")]


def test_times_are_those_of_the_first_target() -> None:
    both = checked(BUILTIN, layer("a"), gpus="v100 a100")
    assert both.time_us == checked(BUILTIN, layer("a"), gpus="v100").time_us
    assert both.time_us != checked(BUILTIN, layer("a"), gpus="a100").time_us


# --- reports


def report(*results: NetworkResult) -> Report:
    return assemble(results, (), BUILTIN, files=len(results))


def fingerprints(text: str, path: str = "net.yaml") -> list[tuple[str, str]]:
    return [(f.rule.code, f.fingerprint) for f in checked(BUILTIN, text, path=path).findings]


def test_fingerprints_survive_moved_lines() -> None:
    text = layer("a", C=62) + layer("b", C=62)
    found = fingerprints(text)
    assert found == fingerprints("\n# moved\n\n" + text)
    assert found == fingerprints(text.replace("C: 62", "C:   61"))
    assert len({print_ for _, print_ in found}) == len(found) > 2
    assert not set(found) & set(fingerprints(text, path="other.yaml"))


def test_fingerprints_follow_names_and_ordinals() -> None:
    text = layer("a", C=62) + layer("b", C=62)
    renamed = checked(BUILTIN, text.replace("name: a,", "name: c,"))
    old = {(f.rule.code, f.layer): f.fingerprint for f in checked(BUILTIN, text).findings if f.layer}
    new = {(f.rule.code, f.layer): f.fingerprint for f in renamed.findings if f.layer}
    assert all(new[key] == old[key] for key in new if key[1] == "b")
    assert not {new[key] for key in new if key[1] == "c"} & set(old.values())


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


def test_a_rule_that_divides_by_zero_is_a_defect_of_the_rule(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"check": "C // (K - 64) == 1"})
    with pytest.raises(RuleError, match="divides by zero") as caught:
        checked(rules, layer("a"))
    assert caught.value.path.endswith("0.yaml")


def finding_of(result: NetworkResult, code: str) -> Finding:
    return next(finding for finding in result.findings if finding.rule.code == code)


def test_inference_has_no_backward_passes() -> None:
    result = checked(BUILTIN, layer("a", C=62), mode="inference")
    estimate = result.layers[0].estimates["a100"]
    assert estimate is not None
    assert list(estimate.passes) == ["fprop"]
    assert "CL105" not in dict(codes(result))


def test_a_first_layer_has_no_dgrad() -> None:
    result = checked(BUILTIN, layer("a", C=3, first="true"))
    estimate = result.layers[0].estimates["a100"]
    assert estimate is not None
    assert list(estimate.passes) == ["fprop", "wgrad"]
    assert finding_of(result, "CL103").layer == "a"


# --- one batch for the network


def _report(spec: str, tmp_path: Path) -> Report:
    (tmp_path / "net.yaml").write_text(spec)
    return check_inputs([file_input(str(tmp_path / "net.yaml"))], BUILTIN, Job())


STAGE = """
version: 1
target: a100
defaults: { N: 8, dtype: fp16, layout: NHWC }
layers:
  - { name: a, C: 1024, H: 14, W: 14, K: 512, kernel_size: 1 }
  - { name: b, K: 512, kernel_size: 3, stride: 2, padding: 1 }
  - { name: c, K: 2048, kernel_size: 1 }
  - { name: d, K: 512, kernel_size: 1 }
"""


def test_batch_advice_is_given_once_and_pays(tmp_path: Path) -> None:
    """Layers want different batches, but a network has one: it is named where an image then takes less time."""
    found = [f for f in _report(STAGE, tmp_path).findings if f.rule.code == "CL301"]
    assert len(found) == 1
    assert found[0].severity == "warning"
    assert found[0].fix is not None
    N = int(found[0].fix.set["N"])
    assert 8 < N <= 16
    before, after = _report(STAGE, tmp_path).time_us, _report(STAGE.replace("N: 8", f"N: {N}"), tmp_path).time_us
    assert before is not None
    assert after is not None
    assert after / N < 0.95 * before / 8


def test_layers_of_another_batch_have_no_say(tmp_path: Path) -> None:
    """A spec may hold layers of several networks: each batch is weighed with the layers that share it."""
    alone = "version: 1\ntarget: a100\nmode: inference\nlayers:\n"
    common = "kernel_size: 3, padding: 1, dtype: fp16, layout: NHWC }\n"
    wave = f"  - {{ name: wave, N: 55, C: 4096, H: 16, W: 16, K: 256, {common}"
    big = f"  - {{ name: big, N: 256, C: 1024, H: 64, W: 64, K: 1024, {common}"
    for spec in (alone + wave, alone + wave + big):
        finding = next(f for f in _report(spec, tmp_path).findings if f.rule.code == "CL204")
        assert finding.fix is not None
        assert "N=54" in finding.fix.describe
        assert "N=108" in finding.fix.describe


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
