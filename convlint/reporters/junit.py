"""JUnit XML: a suite per file, a test case per layer; errors and warnings fail it, infos are its output.

Cleaned text holds no character that XML 1.0 forbids.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree as Xml

from convlint.files.languages import plural
from convlint.files.safe import clean, clean_path
from convlint.model.grouping import grouped
from convlint.model.report import Finding, Report
from convlint.reporters import Reporter, Style
from convlint.reporters.words import advice, behind, fault, headline, lost, place, place_of

_NETWORK = "(network)"
_COUNTED = {
    "tests": "testcase", "failures": "testcase/failure", "errors": "testcase/error", "skipped": "testcase/skipped",
}  # fmt: skip

Key = tuple[str, str | None]


def render(report: Report, style: Style) -> str:
    """The report as test results: what could not be read is an error, what could not be checked is skipped."""
    several_targets = len(report.targets) > 1
    cases: dict[str, dict[str | None, list[Finding]]] = {}
    for entry in report.layers:
        cases.setdefault(entry.layer.path, {}).setdefault(entry.layer.name, [])
    for finding in report.findings:
        cases.setdefault(finding.location.path, {}).setdefault(finding.layer, []).append(finding)
    skipped: dict[Key, dict[str, tuple[str, ...]]] = {}
    for skip in report.skipped:
        cases.setdefault(skip.path, {}).setdefault(skip.layer, [])
        skipped.setdefault((skip.path, skip.layer), {})[skip.code] = skip.needs
    errors = grouped((error.path, error) for error in report.errors)
    root = Xml.Element("testsuites", name="convlint")
    for path in dict.fromkeys((*cases, *errors)):
        suite = Xml.SubElement(root, "testsuite", name=clean_path(path))
        for layer, findings in cases.get(path, {}).items():
            _case(suite, path, layer, findings, skipped.get((path, layer), {}), several_targets)
        for error in errors.get(path, []):
            where = place(path, error.line, error.column)
            case = Xml.SubElement(suite, "testcase", name=where, classname=clean_path(path))
            Xml.SubElement(case, "error", type="not-read", message=clean(error.message)).text = fault(error)
        for key, counted in _COUNTED.items():
            suite.set(key, str(len(suite.findall(counted))))
    for key in ("tests", "failures", "errors"):
        root.set(key, str(len(root.findall(f"testsuite/{_COUNTED[key]}"))))
    Xml.indent(root, " ")
    body = Xml.tostring(root, encoding="unicode" if style.unicode else "us-ascii")
    text = body if isinstance(body, str) else body.decode("ascii").split("?>\n", 1)[-1]
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _case(
    suite: Xml.Element,
    path: str,
    layer: str | None,
    findings: list[Finding],
    skipped: dict[str, tuple[str, ...]],
    several_targets: bool,
) -> None:
    """Adds one layer's test case.

    A layer of which only some rules could not be checked is not skipped when others found something.
    """
    name = _NETWORK if layer is None else clean(layer)
    case = Xml.SubElement(suite, "testcase", name=name, classname=clean_path(path))
    failures = [finding for finding in findings if finding.severity != "info"]
    infos = [finding for finding in findings if finding.severity == "info"]
    if failures:
        codes = ", ".join(dict.fromkeys(f"{finding.rule.code} {finding.rule.name}" for finding in failures))
        worst = "error" if any(finding.severity == "error" for finding in failures) else "warning"
        message = f"{plural(len(failures), 'finding')}: {clean(codes)}"
        failure = Xml.SubElement(case, "failure", type=worst, message=message)
        failure.text = "\n".join(_lines(failures, several_targets))
    elif skipped:
        needs = [f"{code} needs {', '.join(values)}" for code, values in skipped.items()]
        Xml.SubElement(case, "skipped", message=clean("; ".join(needs)))
    if infos:
        Xml.SubElement(case, "system-out").text = "\n".join(_lines(infos, several_targets))


def _lines(findings: Iterable[Finding], several_targets: bool) -> Iterable[str]:
    """One line per finding: place, severity, rule, message, price and fix."""
    for finding in findings:
        line = f"{place_of(finding.location)}: {finding.severity} {headline(finding, several_targets)}"
        if library := behind(finding):
            line += f"; library: {library}"
        if price := lost(finding):
            line += f"; lost: {price}"
        if finding.fix is not None:
            line += f"; fix: {advice(finding.fix)}"
        yield line


REPORTER = Reporter(render=render)
