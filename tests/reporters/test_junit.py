"""JUnit: a suite for each file."""

from xml.etree import ElementTree

from msgspec.structs import replace
from reports import full_report, rendered

from convlint.model.layer import ConvLayer
from convlint.model.report import LayerReport, SkippedRule


def test_junit_has_a_suite_per_file_and_a_case_per_layer() -> None:
    plain = LayerReport(layer=ConvLayer(name="fine", path="nets/spec.yaml"))
    unknown = SkippedRule(code="CL203", layer="unknown", path="nets/spec.yaml", needs=("H", "W"))
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
    assert skipped.attrib["message"] == "CL203 needs H, W"
