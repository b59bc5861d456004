"""GitLab's code quality report."""

import json

from msgspec.structs import replace
from reports import ALIGNMENT, finding, full_report, rendered

from convlint.model.location import Location


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


def test_gitlab_says_what_is_lost() -> None:
    one = finding(ALIGNMENT, "m", Location(path="a.yaml"), "x", lost_us=48.0, lost_percent=2.5, pays_with=("CL401",))
    (issue,) = json.loads(rendered("gitlab", full_report(findings=(one,), errors=())))
    assert issue["description"].startswith("x: m - lost: 48 us, 2.5 % of the convolutions")
    assert "CL401" in issue["description"]
