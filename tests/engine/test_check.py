"""The engine on small networks and rules written for the purpose: precedence, joins, skips, targets, prices, order."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_networks import checked, codes, layer, rulebook

from convlint.engine.results import NetworkResult, assemble
from convlint.report import Finding, Report
from convlint.rulebook.book import load_rulebook

BUILTIN = load_rulebook()


# --- scopes and places


def test_a_network_rule_fires_once_at_its_setting(tmp_path: Path) -> None:
    rules = rulebook(
        tmp_path, {"scope": "network", "check": "runtime.cudnn_benchmark", "at": "runtime.cudnn_benchmark"}
    )
    (finding,) = checked(rules, layer("a") + layer("b"), top="runtime:\n  cudnn_benchmark: false\n").findings
    assert (finding.layer, finding.location.line, finding.location.column) == (None, 3, 20)


def test_a_finding_points_at_the_first_place_that_holds(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"check": "C == 1 and K == 1", "at": "{ C: C > 1, K: K > 1 }"})
    text = "  - name: a\n    C: {}\n    H: 8\n    W: 8\n    K: {}\n    kernel_size: 1\n"
    assert [
        checked(rules, text.format(C, K)).findings[0].location.line for C, K in ((2, 2), (2, 1), (1, 2))
    ] == [4, 4, 7]  # fmt: skip


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


@pytest.mark.parametrize(("layers", "priced"), [(1000, True), (1001, False)])
def test_a_fix_of_at_most_a_thousand_layers_is_priced(layers: int, priced: bool, tmp_path: Path) -> None:
    fix = '{ describe: "use C=64", set: { C: "64" } }'
    rules = rulebook(tmp_path, {"check": "C == 64", "loss": "fix", "fix": fix, "join": "{ share: any, message: m }"})
    (finding,) = checked(rules, "".join(layer(f"l{i}", C=62) for i in range(layers))).findings
    assert finding.fix is not None
    assert (finding.fix.time_change_us is not None) == priced
