"""Reads each format back with that format's own parser: how many findings and unread inputs it holds."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from xml.etree import ElementTree

import jsonschema
from checkout import ROOT
from lxml import etree
from markdown_it import MarkdownIt

SCHEMAS = ROOT / "tests" / "reporters" / "schemas"

_SARIF = jsonschema.Draft4Validator(json.loads((SCHEMAS / "sarif-2.1.0-rtm.5.json").read_text()))
_GITLAB = jsonschema.Draft4Validator(json.loads((SCHEMAS / "gitlab-codeclimate.json").read_text()))
_RDJSON = jsonschema.Draft4Validator(json.loads((SCHEMAS / "reviewdog-DiagnosticResult.json").read_text()))
_JUNIT = etree.XMLSchema(etree.parse(str(SCHEMAS / "junit-10.xsd")))

Counts = tuple[int, int]  # findings, unread inputs


def json_v3(text: str) -> Counts:
    document = json.loads(text)
    return len(document["findings"]), len(document["errors"])


def sarif(text: str) -> Counts:
    document = json.loads(text)
    _SARIF.validate(document)
    (run,) = document["runs"]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch(r"[A-Za-z0-9_.~/%:-]+", uri)
    return (
        sum("suppressions" not in result for result in run["results"]),
        len(run["invocations"][0]["toolExecutionNotifications"]),
    )


def gitlab(text: str) -> Counts:
    issues = json.loads(text)
    for issue in issues:
        _GITLAB.validate(issue)
        assert issue["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert re.match(r"(?!\./)|\./\s*::", issue["location"]["path"])
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)
    unread = sum(issue["check_name"] == "not-read" for issue in issues)
    return len(issues) - unread, unread


def rdjson(text: str) -> Counts:
    document = json.loads(text)
    _RDJSON.validate(document)
    unread = sum("code" not in diagnostic for diagnostic in document["diagnostics"])
    return len(document["diagnostics"]) - unread, unread


def junit(text: str) -> Counts:
    tree = etree.fromstring(text.encode())
    _JUNIT.assertValid(tree)
    root = ElementTree.fromstring(text)
    for key, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
        assert int(root.attrib[key]) == len(root.findall(f".//{tag}"))
    outputs = [*root.iter("failure"), *root.iter("system-out")]
    return sum(len((output.text or "").split("\n")) for output in outputs), len(root.findall(".//error"))


def workflow_commands(log: str) -> list[tuple[str, dict[str, str], str]]:
    """The commands that GitHub's runner reads in a log, by its rules: `::` at a line's start, `##[` anywhere."""
    commands = []
    for line in re.split(r"\r\n|\n|\r", log):
        assert "##[" not in line
        assert not re.search(r"##(vso|teamcity)\[", line)
        match = re.match(r"\s*::([^\s:]+)(?: (.*?))?::(.*)$", line)
        if match is not None:
            pairs = [pair.split("=", 1) for pair in (match[2] or "").split(",") if pair]
            properties = {key: _unescaped(value) for key, value in pairs}
            commands.append((match[1], properties, _unescaped(match[3])))
    return commands


def _unescaped(text: str) -> str:
    for code, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, char)
    return text


def github(text: str) -> Counts:
    commands = workflow_commands(text)
    assert {name for name, _, _ in commands} <= {"error", "warning", "notice"}
    allowed = {"file", "line", "endLine", "col", "endColumn", "title"}
    assert all(set(properties) <= allowed for _, properties, _ in commands)
    unread = sum(properties["title"].startswith("convlint: ") for _, properties, _ in commands)
    return len(commands) - unread, unread


def markdown(text: str) -> Counts:
    """Rendered as GitHub does it, there is one table, and besides it nothing but the tags written on purpose."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    assert {token.type for token in tokens if token.type.endswith("_open")} <= {
        "heading_open", "paragraph_open", "table_open", "thead_open", "tbody_open", "tr_open", "th_open", "td_open",
    }  # fmt: skip
    assert sum(token.type == "heading_open" for token in tokens) == 1
    children = [child for token in tokens for child in token.children or ()]
    kinds = {child.type for child in children}
    assert kinds <= {"text", "text_special", "html_inline", "strong_open", "strong_close", "em_open", "em_close"}
    assert {child.content for child in children if child.type == "html_inline"} <= {"<code>", "</code>", "<br>"}
    text_of = {"<code>": "\x01", "</code>": "\x02", "<br>": "\n"}
    rendered = "\n".join(
        "".join(text_of.get(child.content, child.content) for child in token.children or ()) for token in tokens
    )
    assert not re.search(r"\bwww\.", rendered, re.IGNORECASE)
    assert not re.search(r"[@#]\w|://", re.sub("\x01[^\x02]*\x02", "", rendered))
    body = text.split("\n|---|---|---|---|---|\n", 1)
    rows = [line for line in body[1].split("\n") if line.startswith("|")] if len(body) == 2 else []
    assert sum(token.type == "tr_open" for token in tokens) == len(rows) + bool(rows)
    cells = sum(token.type == "td_open" for token in tokens)
    assert cells == 5 * len(rows)
    unread = sum(row.startswith(("| not read |", "| incomplete |")) for row in rows)
    return len(rows) - unread, unread


READERS: Mapping[str, Callable[[str], Counts]] = {
    "json": json_v3,
    "sarif": sarif,
    "gitlab": gitlab,
    "rdjson": rdjson,
    "junit": junit,
    "github": github,
    "markdown": markdown,
}


def sarif_run(text: str) -> dict[str, Any]:
    return json.loads(text)["runs"][0]
