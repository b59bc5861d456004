"""SARIF: rules described, places, suppressed findings, fixes, and the limit of the site."""

from typing import Any

import pytest
from parsed import sarif, sarif_run
from reports import ALIGNMENT, RULES, finding, full_report, many, priced, rendered

from convlint.model.location import Location, TextEdit
from convlint.model.report import Fix, RuleInfo, Source, Suppressed


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
    assert results[0]["partialFingerprints"] == {"convlint/v1": full_report().findings[3].fingerprint}


def test_sarif_properties_hold_the_price() -> None:
    prices = {
        "advised": True, "lost_us": 48.0, "lost_alone_us": 0.25, "lost_capacity_us": 12.5, "lost_percent": 1.48,
        "pays_with": ("CL401",),
    }  # fmt: skip
    report = full_report(findings=(priced(gpu="a100", **prices), priced()), suppressed=())
    known, unknown = (result["properties"] for result in sarif_run(rendered("sarif", report))["results"])
    assert known == {
        "gpu": "a100", "advised": True, "lostUs": 48.0, "lostAloneUs": 0.25, "lostCapacityUs": 12.5,
        "lostPercent": 1.48, "paysWith": ["CL401"],
    }  # fmt: skip
    assert unknown == {
        "gpu": None, "advised": False, "lostUs": None, "lostAloneUs": None, "lostCapacityUs": None,
        "lostPercent": None, "paysWith": [],
    }  # fmt: skip


def test_sarif_says_what_could_not_be_read() -> None:
    (invocation,) = sarif_run(rendered("sarif", full_report()))["invocations"]
    assert invocation["executionSuccessful"] is False
    (notification,) = invocation["toolExecutionNotifications"]
    assert notification["message"]["text"] == "H is not a whole number: 1.5"
    assert notification["locations"][0]["physicalLocation"]["region"] == {"startLine": 3, "startColumn": 7}
    assert sarif_run(rendered("sarif", full_report(errors=())))["invocations"][0]["executionSuccessful"] is True


@pytest.mark.slow
def test_sarif_beyond_25000_results_keeps_the_gravest_and_says_so() -> None:
    run = sarif_run(rendered("sarif", many(25_003)))
    assert len(run["results"]) == 25_000
    levels = [result["level"] for result in run["results"]]
    assert levels.count("error") == 8334
    assert levels == sorted(levels, key=["error", "warning", "note"].index)
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["message"]["text"].startswith("3 results left out")


def edit(path: str, *place: int, text: str) -> TextEdit:
    line, column, end_line, end_column = place
    return TextEdit(path=path, line=line, column=column, end_line=end_line, end_column=end_column, text=text)


def test_sarif_fixes_by_file() -> None:
    edits = (
        edit("a b.yaml", 3, 5, 3, 7, text="64"),
        edit("./c.yaml", 1, 1, 2, 1, text=""),
        edit("a b.yaml", 9, 4, 9, 4, text="\r\n  K: 🙂"),
    )
    fix = Fix(describe="use K=64", safety="unsafe", set={"K": 64}, edits=edits, edits_safety="unsafe")
    one = finding(ALIGNMENT, "m", Location(path="a b.yaml", line=3), "x", fix=fix)
    old = Suppressed(finding=one, reason="", by="baseline")
    text = rendered("sarif", full_report(findings=(one,), suppressed=(old,)))
    assert sarif(text)[0] == 1
    shown, suppressed = sarif_run(text)["results"]
    assert shown["fixes"] == [
        {
            "description": {"text": "use K=64 (changes the network)"},
            "artifactChanges": [
                {
                    "artifactLocation": {"uri": "a%20b.yaml", "uriBaseId": "%SRCROOT%"},
                    "replacements": [
                        {
                            "deletedRegion": {"startLine": 3, "startColumn": 5, "endLine": 3, "endColumn": 7},
                            "insertedContent": {"text": "64"},
                        },
                        {
                            "deletedRegion": {"startLine": 9, "startColumn": 4, "endLine": 9, "endColumn": 4},
                            "insertedContent": {"text": "\r\n  K: 🙂"},
                        },
                    ],
                },
                {
                    "artifactLocation": {"uri": "c.yaml", "uriBaseId": "%SRCROOT%"},
                    "replacements": [
                        {"deletedRegion": {"startLine": 1, "startColumn": 1, "endLine": 2, "endColumn": 1}}
                    ],
                },
            ],
            "properties": {"safety": "unsafe"},
        }
    ]
    assert "fixes" not in suppressed
    ascii_text = rendered("sarif", full_report(findings=(one,), suppressed=()), unicode=False)
    assert ascii_text.isascii()
    assert sarif_run(ascii_text)["results"][0]["fixes"] == shown["fixes"]
