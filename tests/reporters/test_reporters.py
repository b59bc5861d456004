"""What each machine-readable format says, and the limits of the sites that read them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from parsed import READERS, sarif_run, workflow_commands
from reports import ALIGNMENT, FEW_OUTPUTS, LINES, MISMATCH, RULES, at, finding, full_report

from convlint.model.layer import ConvLayer
from convlint.model.location import Location
from convlint.report import Fix, InputError, LayerReport, Report, RuleInfo, Skipped, Source
from convlint.reporters import REPORTERS, Style, github, reporter


def rendered(name: str, report: Report, **style: Any) -> str:
    return reporter(name)(report, Style(**style))


def many(count: int) -> Report:
    """Infos, then warnings, then errors: the gravest come last."""
    rules = (FEW_OUTPUTS, ALIGNMENT, MISMATCH)
    findings = tuple(
        finding(rules[3 * i // count], f"message {i}", at(6, "62"), f"layer{i}", fingerprint=str(i))
        for i in range(count)
    )
    return full_report(findings=findings, suppressed=(), errors=())


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


# JSON, the contract


def test_json_keys_are_the_contracts() -> None:
    document = json.loads(rendered("json", full_report()))
    assert list(document) == [
        "schema_version", "convlint", "complete", "targets", "mode", "summary", "layers", "findings", "skipped",
        "suppressed", "errors",
    ]  # fmt: skip
    assert document["summary"] == {
        "files": 2, "layers": 4, "errors": 1, "warnings": 4, "infos": 1, "skipped": 3, "grade": "C",
        "time_us": 9102.5, "lost_us": 258.25,
    }  # fmt: skip
    assert list(document["layers"][0]) == [
        "name", "path", "line", "column", "op", "N", "C", "H", "W", "K", "P", "Q", "R", "S", "U", "V", "PadH", "PadW",
        "DilH", "DilW", "groups", "dtype", "layout", "estimates",
    ]  # fmt: skip
    (estimate,) = document["layers"][0]["estimates"]
    assert list(estimate) == ["gpu", "grade", "time_us", "passes"]
    assert list(estimate["passes"]) == ["fprop", "wgrad"]
    assert estimate["passes"]["fprop"] == {
        "gemm": {"M": 3211264, "N": 64, "K": 147, "batch": 1}, "flops": 60423143424, "bytes": 488000000,
        "arithmetic_intensity": 123.8, "tile": [128, 64], "split_k": 1, "tiles": 25088, "waves": 116.148,
        "tile_efficiency": 1.0, "wave_efficiency": 0.9927, "time_us": 406.25, "tflops": 148.7, "bound_by": "memory",
    }  # fmt: skip
    assert document["findings"][0] == {
        "code": "CL103", "name": "first-layer-channels", "severity": "warning",
        "message": "C=3 leaves most of each vector empty; C=4 has its own kernels", "layer": "stem",
        "path": "nets/spec.yaml", "line": 5, "column": 22, "end_line": 5, "end_column": 23, "gpu": None,
        "lost_us": 210.25, "lost_percent": 2.31,
        "fix": {"describe": "use C=4, zero-filled", "safety": "safe", "set": {"C": 4}, "time_change_us": -210.25},
        "source": {"document": "convolutional-layers-guide", "section": "4.4.3 Channels In And Out"},
        "fingerprint": "CL103-stem",
    }  # fmt: skip
    assert document["findings"][4]["layer"] is None
    assert document["findings"][5]["fix"] is None
    assert document["skipped"][0] == {"code": "CL402", "layer": "conv2", "path": "nets/spec.yaml", "needs": ["dtype"]}
    assert document["suppressed"][0] == {
        "code": "CL102", "layer": "head", "path": "nets/spec.yaml", "line": 8, "reason": "classes",
    }  # fmt: skip
    assert document["errors"] == [
        {"path": "nets/other.yaml", "line": 3, "column": 7, "message": "H is not a whole number: 1.5"}
    ]
    assert document["complete"] is False


def test_json_of_what_is_unknown() -> None:
    bare = LayerReport(layer=ConvLayer(name="x", path="m", PadH=None, PadW=None), estimates={"a100": None})
    report = full_report(layers=(bare,), grade=None, time_us=None, lost_us=float("nan"))
    document = json.loads(rendered("json", report))
    (layer,) = document["layers"]
    assert [layer[key] for key in ("line", "column", "N", "P", "PadH", "dtype")] == [None] * 6
    assert layer["layout"] == "auto"
    assert layer["estimates"] == [{"gpu": "a100", "grade": None, "time_us": None, "passes": {}}]
    assert [document["summary"][key] for key in ("grade", "time_us", "lost_us")] == [None] * 3


def test_json_adds_keys_only_for_3d_and_asymmetric_layers() -> None:
    volume = ConvLayer(name="v", dims=3, D=8, T=3, Z=8, PadD=1, PadD_end=1)
    uneven = ConvLayer(name="u", PadH=0, PadH_end=1, PadW=1, PadW_end=1)
    report = full_report(layers=(LayerReport(layer=volume), LayerReport(layer=uneven)))
    first, second = json.loads(rendered("json", report))["layers"]
    assert {key: first[key] for key in ("D", "T", "Z", "StrideD", "PadD", "DilD")} == {
        "D": 8, "T": 3, "Z": 8, "StrideD": 1, "PadD": 1, "DilD": 1,
    }  # fmt: skip
    assert "PadH_end" not in first
    assert second["PadH_end"] == 1
    assert "PadW_end" not in second
    assert "D" not in second


# SARIF


def test_sarif_lists_every_rule_described() -> None:
    bare = RuleInfo(
        code="XX001", name="own", title="", severity="info", rationale="", source=Source(document="d", section="")
    )
    report = full_report(rules=(*RULES, bare), findings=(finding(bare, "m", Location(path="a")),), suppressed=())
    driver = sarif_run(rendered("sarif", report))["tool"]["driver"]
    assert [rule["id"] for rule in driver["rules"]] == [rule.code for rule in (*RULES, bare)]
    for rule in driver["rules"]:
        texts = [rule["shortDescription"]["text"], rule["fullDescription"]["text"], *rule["help"].values()]
        assert all(text.strip() for text in texts)
        assert max(map(len, texts[:2])) <= 1024
        assert len(rule["properties"]["tags"]) <= 10
    levels = {rule["id"]: rule["defaultConfiguration"]["level"] for rule in driver["rules"]}
    assert (levels["CL001"], levels["CL102"], levels["XX001"]) == ("error", "warning", "note")


def test_sarif_places() -> None:
    def region(**place: Any) -> dict[str, Any]:
        one = finding(ALIGNMENT, "m", Location(**place), "x")
        (result,) = sarif_run(rendered("sarif", full_report(findings=(one,), suppressed=())))["results"]
        physical: dict[str, Any] = result["locations"][0]["physicalLocation"]
        return physical["artifactLocation"] | physical["region"]

    base = {"uriBaseId": "%SRCROOT%"}
    assert region(path="./a b/ü#?.yaml") == base | {"uri": "a%20b/%C3%BC%23%3F.yaml", "startLine": 1}
    assert region(path="nets\\a.yaml")["uri"] == "nets/a.yaml"
    assert region(path="/tmp/a.yaml") == {"uri": "file:///tmp/a.yaml", "startLine": 1}
    assert region(path="c:/a.yaml")["uri"] == "file:///c%3A/a.yaml"
    assert region(path="a", line=3) == base | {"uri": "a", "startLine": 3}
    whole = {"line": 3, "column": 2, "end_line": 3, "end_column": 4}
    wanted = {"uri": "a", "startLine": 3, "startColumn": 2, "endLine": 3, "endColumn": 4}
    assert region(path="a", **whole) == base | wanted
    assert "endLine" not in region(path="a", **(whole | {"end_column": 1}))


def test_sarif_keeps_suppressed_findings_with_their_reason() -> None:
    results = sarif_run(rendered("sarif", full_report()))["results"]
    assert [result.get("suppressions") for result in results[-3:]] == [
        None,
        [{"kind": "inSource", "justification": "classes"}],
        [{"kind": "external", "justification": ""}],
    ]
    assert results[0]["partialFingerprints"] == {"convlint/v1": "CL001-conv3"}


def test_sarif_says_what_could_not_be_read() -> None:
    (invocation,) = sarif_run(rendered("sarif", full_report()))["invocations"]
    assert invocation["executionSuccessful"] is False
    (notification,) = invocation["toolExecutionNotifications"]
    assert notification["message"]["text"] == "H is not a whole number: 1.5"
    assert notification["locations"][0]["physicalLocation"]["region"] == {"startLine": 3, "startColumn": 7}
    assert sarif_run(rendered("sarif", full_report(errors=())))["invocations"][0]["executionSuccessful"] is True


def test_sarif_beyond_25000_results_keeps_the_gravest_and_says_so() -> None:
    run = sarif_run(rendered("sarif", many(25_003)))
    assert len(run["results"]) == 25_000
    levels = [result["level"] for result in run["results"]]
    assert levels.count("error") == 8334
    assert levels == sorted(levels, key=["error", "warning", "note"].index)
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["message"]["text"].startswith("3 results left out")


# GitHub


def test_github_annotation() -> None:
    commands = workflow_commands(rendered("github", full_report()))
    assert commands[0] == (
        "error", {"file": "nets/other.yaml", "line": "3", "col": "7", "title": "convlint: not read"},
        "H is not a whole number: 1.5",
    )  # fmt: skip
    assert commands[2][0] == "warning"
    assert commands[2][1] == {
        "file": "nets/spec.yaml", "line": "5", "endLine": "5", "col": "22", "endColumn": "23",
        "title": "CL103 first-layer-channels",
    }  # fmt: skip
    assert commands[2][2].split("\n")[1] == "Lost: 210 us, 2.3 % of the network"
    assert commands[-1][0] == "notice"


def test_github_escapes() -> None:
    one = finding(ALIGNMENT, "100%\nnot::this", Location(path="a,b:c%.yaml"), "x")
    text = rendered("github", full_report(findings=(one,), errors=()))
    assert text.split("\n")[0] == (
        "::warning file=a%2Cb%3Ac%25.yaml,title=CL102 channel-alignment::x: 100%25 not::this"
    )


def test_github_leaves_what_exceeds_ten_of_a_type_to_the_summary() -> None:
    report = many(36)
    text = rendered("github", report)
    names = [name for name, _, _ in workflow_commands(text)]
    assert names == ["error"] * 10 + ["warning"] * 10 + ["notice"] * 10
    assert "6 more not annotated" in text
    assert "more not annotated" not in rendered("github", many(30))
    assert READERS["markdown"](github.summary(report)) == (36, 0)


def test_github_unread_inputs_come_before_errors() -> None:
    errors = tuple(InputError(path="x", message=str(i)) for i in range(9))
    commands = workflow_commands(rendered("github", replace(many(9), errors=errors)))
    assert [properties["title"].startswith("convlint") for name, properties, _ in commands if name == "error"] == (
        [True] * 9 + [False]
    )


# GitLab


def test_gitlab_fingerprints_are_unique_and_free_of_lines() -> None:
    report = full_report()
    twice = replace(report, findings=report.findings[:2] * 2)
    issues = json.loads(rendered("gitlab", twice))
    assert len({issue["fingerprint"] for issue in issues}) == 5
    moved = tuple(replace(f, location=replace(f.location, line=99, end_line=99)) for f in twice.findings)
    later = json.loads(rendered("gitlab", replace(twice, findings=moved)))
    assert [issue["fingerprint"] for issue in later] == [issue["fingerprint"] for issue in issues]
    assert later[1]["location"] == {"path": "nets/spec.yaml", "lines": {"begin": 99}}


def test_gitlab_severities_and_places() -> None:
    one = finding(ALIGNMENT, "m", Location(path="./m.onnx"), "x")
    issues = json.loads(rendered("gitlab", full_report(findings=(one, *full_report().findings[3:]))))
    assert [issue["severity"] for issue in issues] == ["blocker", "major", "critical", "major", "minor"]
    assert issues[1]["location"] == {"path": "m.onnx", "lines": {"begin": 1}}


# JUnit


def test_junit_has_a_suite_per_file_and_a_case_per_layer() -> None:
    plain = LayerReport(layer=ConvLayer(name="fine", path="nets/spec.yaml"))
    unknown = Skipped(code="CL203", layer="unknown", path="nets/spec.yaml", needs=("H", "W"))
    report = full_report()
    report = replace(report, layers=(*report.layers, plain), skipped=(*report.skipped, unknown))
    root = ElementTree.fromstring(rendered("junit", report))
    assert [suite.attrib["name"] for suite in root] == ["nets/spec.yaml", "nets/other.yaml"]
    assert (root.attrib["tests"], root.attrib["failures"], root.attrib["errors"]) == ("8", "4", "1")
    outcomes = {case.attrib["name"]: [child.tag for child in case] for case in root[0]}
    assert outcomes == {
        "stem": ["failure"], "conv2": ["failure"], "conv3": ["failure"], "head": ["system-out"], "fine": [],
        "(network)": ["failure"], "unknown": ["skipped"],
    }  # fmt: skip
    assert root[0].attrib["skipped"] == "1"
    skipped = root.find(".//skipped")
    assert skipped is not None
    assert skipped.attrib["message"] == "CL203 needs H, W"


# rdjson


def test_rdjson_columns_are_bytes_of_utf8() -> None:
    line = "名: {C: 62}"
    place = Location(path="p", line=1, column=8, end_line=1, end_column=10)
    report = full_report(findings=(finding(ALIGNMENT, "m", place),), sources={"p": (line,)})
    diagnostic = json.loads(rendered("rdjson", report))["diagnostics"][-1]
    assert diagnostic["location"]["range"] == {"start": {"line": 1, "column": 10}, "end": {"line": 1, "column": 12}}
    assert line.encode()[9:11] == b"62"
    elsewhere = json.loads(rendered("rdjson", replace(report, sources={})))["diagnostics"][-1]
    assert elsewhere["location"]["range"]["start"] == {"line": 1, "column": 8}
    assert json.loads(rendered("rdjson", full_report()))["diagnostics"][1]["severity"] == "WARNING"


# Markdown


@pytest.mark.parametrize("unicode", [True, False])
def test_markdown_fits_a_comment_and_says_what_is_left_out(unicode: bool) -> None:
    text = rendered("markdown", many(5_000), unicode=unicode)
    assert 60_000 < len(text.encode()) <= 65_536
    kept, _ = READERS["markdown"](text)
    assert f"*{5_000 - kept} rows left out" in text
    assert "left out" not in rendered("markdown", many(10), unicode=unicode)
    assert "| 🔴 error |" in text or not unicode


def test_the_job_summary_fits() -> None:
    text = github.summary(many(12_000))
    assert 900_000 < len(text.encode()) <= 1024 * 1024
    assert "rows left out" in text


def test_markdown_shows_names_as_they_are() -> None:
    fix = Fix(describe="torch.backends.cudnn.benchmark = True", safety="safe", set={})
    one = finding(ALIGNMENT, "C=62 (|x|) <b>", at(6, "62"), "block*_1", fix=fix)
    text = rendered("markdown", full_report(findings=(one,), errors=()))
    assert (
        "<code>block&#42;&#95;1</code> C=62 (&#124;x&#124;) &#60;b&#62;<br>Fix: torch.backends.cudnn.benchmark = True"
        in text
    )


def test_headlines() -> None:
    assert rendered("markdown", full_report()).startswith("### ❌ convlint: incomplete")
    assert rendered("markdown", full_report(errors=())).startswith("### ⚠️ convlint: 6 findings")
    clean = full_report(errors=(), findings=())
    assert rendered("markdown", clean).startswith("### ✅ convlint: nothing found")


def test_source_lines_of_the_sample_are_what_locations_point_at() -> None:
    for one in full_report().findings:
        place = one.location
        assert place.line is not None
        assert place.column is not None
        assert LINES[place.line - 1][place.column - 1 :][:1].isalnum()
