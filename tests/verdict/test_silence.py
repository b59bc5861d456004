"""What the user silences has no part in what is priced, joined and graded, whichever way it is silenced."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from command_line import convlint
from configured import write
from small_networks import layer, rulebook

from convlint.config.path_patterns import PathPattern
from convlint.engine.check import Target
from convlint.gpus.gpu import load_gpu
from convlint.linting.one_input import judged
from convlint.model.network import Network
from convlint.readers.spec.reader import read_spec
from convlint.report import Finding
from convlint.rulebook.book import Rulebook
from convlint.verdict.baseline import baseline_of, known_of
from convlint.verdict.select import Exemption
from convlint.verdict.silence import Silencer, Silencing

TODAY = date(2026, 1, 31)
ALL = frozenset({"XY000", "XY001"})


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def rules(tmp_path: Path) -> Rulebook:
    """XY000 wants C=1 and XY001 K=1 of every layer."""
    (tmp_path / "house").mkdir()
    return rulebook(tmp_path / "house", {}, {"check": "K == 1"})


def network(layers: str) -> Network:
    found, errors = read_spec(f"version: 1\nlayers:\n{layers}", "net.yaml")
    assert not errors
    assert found is not None
    return found


def silenced(spec: str, rules: Rulebook, **silencing: Any) -> tuple[list[tuple[str, str | None]], list[str]]:
    """(code and layer of what is left, how, with which reason and where the rest was silenced)."""
    known: dict[str, Any] = {"codes": ALL, "today": TODAY} | silencing
    targets = [Target(label="a100", gpu=load_gpu("a100"))]
    result = judged(network(spec), rules, targets, Silencing(**known))
    return (
        [(finding.rule.code, finding.layer) for finding in result.findings],
        [f"{one.by} {one.reason}: {one.finding.rule.code} {one.finding.layer}" for one in result.suppressed],
    )


def test_what_nobody_silences_is_left(rules: Rulebook) -> None:
    assert silenced(layer("a"), rules) == ([("XY000", "a"), ("XY001", "a")], [])
    assert Silencer(network(layer("a")), rules, Silencing(codes=ALL, today=TODAY)).is_idle
    assert judged(network(layer("a")), rules, [], None).suppressed == ()


def test_a_rule_that_is_not_selected_is_not_even_silenced(rules: Rulebook) -> None:
    assert silenced(layer("a"), rules, codes=frozenset({"XY001"})) == ([("XY001", "a")], [])


def test_the_first_that_covers_a_finding_gives_its_reason(rules: Rulebook, tmp_path: Path) -> None:
    codes = frozenset({"XY000"})
    entries = (
        Exemption(codes=codes, reason="of another file", files=PathPattern(str(tmp_path), "other.yaml")),
        Exemption(codes=codes, reason="of a layer", layers="stem"),
        Exemption(codes=codes, reason="of this file", files=PathPattern(str(tmp_path), "net.yaml")),
    )
    comment = " # convlint: ignore[XY001] -- said here\n"
    spec = layer("stem").replace("\n", comment) + layer("head")
    left, rest = silenced(spec, rules, exemptions=entries, known=known_of({}))
    assert left == [("XY001", "head")]
    assert rest == [
        "config of a layer: XY000 stem", "comment said here: XY001 stem", "config of this file: XY000 head",
    ]  # fmt: skip


def test_comments_and_the_config_go_before_the_baseline(rules: Rulebook) -> None:
    everything = found(layer("a"), rules)
    known = known_of(baseline_of(everything))
    spec = layer("a").replace("\n", " # convlint: ignore[XY000] -- said here\n")
    assert silenced(spec, rules, known=known) == ([], ["comment said here: XY000 a", "baseline : XY001 a"])


def found(spec: str, rules: Rulebook) -> tuple[Finding, ...]:
    targets = [Target(label="a100", gpu=load_gpu("a100"))]
    return judged(network(spec), rules, targets, Silencing(codes=ALL, today=TODAY)).findings


def test_the_last_day_is_the_callers(rules: Rulebook) -> None:
    spec = layer("a").replace("\n", " # convlint: ignore[ALL] until 2026-01-31\n")
    assert silenced(spec, rules)[0] == []
    assert len(silenced(spec, rules, today=date(2026, 2, 1))[0]) == 2


# --- what it means for prices, grades and other findings

SPEC = """\
version: 1
target: [a100]
defaults:
  N: 128
  dtype: fp16
  layout: NCHW{}
layers:
  - {{ name: a, C: 256, H: 28, W: 28, K: 256, R: 3, S: 3, padding: 1, first: false }}{}
  - {{ name: b, C: 256, H: 28, W: 28, K: 256, R: 3, S: 3, padding: 1, first: false }}{}
  - {{ name: odd, C: 250, H: 28, W: 28, K: 256, R: 3, S: 3, padding: 1, first: false }}
"""
MARK = " # convlint: ignore[CL401] -- the exporter wants it"


def checked(*options: str) -> dict[str, Any]:
    """The JSON report on net.yaml."""
    ran = convlint("check", "net.yaml", "-o", "json", *options)
    assert ran.code in (0, 1)
    report: dict[str, Any] = json.loads(ran.out)
    return report


def numbers(report: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """What the summary and each layer come to, and the findings with their prices."""
    shown = [report["summary"][name] for name in ("grade", "time_us", "lost_us", "time_after_us")]
    shown += [
        (one["name"], one["estimates"][0]["grade"], one["estimates"][0]["time_after_us"]) for one in report["layers"]
    ]
    return shown, [(one["code"], one["layer"], one["severity"], one["lost_us"]) for one in report["findings"]]


def test_every_way_to_silence_a_rule_comes_to_the_same() -> None:
    write("net.yaml", SPEC.format("", "", ""))
    plain = checked()
    assert {finding["code"] for finding in plain["findings"]} == {"CL401", "CL102"}
    assert plain["summary"]["time_after_us"] < 0.9 * plain["summary"]["time_us"]
    ignored = numbers(checked("--ignore", "CL401"))
    assert ignored[0] != numbers(plain)[0]
    assert [code for code, *_ in ignored[1]] == ["CL102"]
    for config in (
        'ignore = ["CL401"]\n',
        '[per-file-ignores]\n"net.yaml" = ["CL401"]\n',
        '[[per-layer-ignores]]\nlayers = "*"\nrules = ["CL401"]\nreason = "x"\n',
    ):
        write("convlint.toml", config)
        assert numbers(checked()) == ignored, config
    write("convlint.toml", "")
    write("net.yaml", SPEC.format(MARK, "", ""))
    assert numbers(checked()) == ignored
    write("net.yaml", SPEC.format("", "", "") + "# convlint: file-ignore[CL401]\n")
    assert numbers(checked()) == ignored


def test_what_the_baseline_holds_does_not_play() -> None:
    """What is new is priced as if nobody would ever mend the old, and no grade waits for that."""
    write("net.yaml", SPEC.format("", "", ""))
    plain = checked()
    assert convlint("check", "net.yaml", "--select", "CL401", "--write-baseline", "base.json").code == 0
    report = checked("--baseline", "base.json")
    assert report["summary"]["grade"] <= plain["summary"]["grade"]
    new = report["findings"]
    assert {finding["code"] for finding in new} == {each["code"] for each in plain["findings"]} - {"CL401"}
    assert report["summary"]["lost_us"] == pytest.approx(sum(finding["lost_us"] for finding in new), abs=0.01)
    assert report["summary"]["time_after_us"] > plain["summary"]["time_after_us"]


def test_with_everything_silenced_nothing_is_left_to_gain() -> None:
    write("net.yaml", SPEC.format("", "", ""))
    assert convlint("check", "net.yaml", "--write-baseline", "base.json").code == 0
    for options in (["--select", "CL501"], ["--baseline", "base.json"]):
        report = checked(*options)
        assert report["findings"] == []
        assert report["summary"]["time_after_us"] == report["summary"]["time_us"]
        assert report["summary"]["lost_us"] == 0


def test_a_comment_on_the_defaults_silences_what_points_at_its_line() -> None:
    """Whatever layer it is of; above its line does as well."""
    for spec in (
        SPEC.format(MARK, "", ""),
        SPEC.format("", "", "").replace("  layout", f" {MARK}\n  layout"),
        SPEC.format("", "", "").replace("  layout", f" {MARK}\n  # prose\n  layout"),
    ):
        write("net.yaml", spec)
        report = checked("--select", "CL102,CL401,CL9")
        assert {finding["code"] for finding in report["findings"]} == {"CL102"}
        assert [(one["code"], one["layer"], one["reason"]) for one in report["suppressed"]] == [
            ("CL401", name, "the exporter wants it") for name in ("a", "b", "odd")
        ]
    write("net.yaml", SPEC.format("", "", "").replace("dtype: fp16", "dtype: fp16" + MARK))
    found = [finding["code"] for finding in checked("--select", "CL401,CL9")["findings"]]
    assert sorted(found) == ["CL401", "CL901"]  # the finding does not point there


def test_of_a_joined_finding_the_layers_with_a_comment_leave() -> None:
    write("net.yaml", SPEC.format("", "", ""))
    (whole,) = checked("--select", "CL401,CL9")["findings"]
    write("net.yaml", SPEC.format("", MARK, ""))
    report = checked("--select", "CL401,CL9")
    (rest,) = report["findings"]
    assert (whole["layers"], rest["layers"]) == (["a", "b", "odd"], ["b", "odd"])
    assert 0 < rest["lost_us"] < whole["lost_us"]
    assert rest["fingerprints"] == whole["fingerprints"][1:]
    assert [(one["code"], one["layer"]) for one in report["suppressed"]] == [("CL401", "a")]
    after = {one["name"]: one["estimates"][0]["time_after_us"] for one in report["layers"]}
    now = {one["name"]: one["estimates"][0]["time_us"] for one in report["layers"]}
    assert after["a"] == now["a"]
    assert after["b"] < now["b"]
    write("net.yaml", SPEC.format("", MARK, MARK))
    (one,) = checked("--select", "CL401,CL9")["findings"]
    assert (one["layer"], one["layers"]) == ("odd", [])


# fp32 on a V100: CL401 and CL102 come to light only once CL106 is mended
HIDDEN = """\
version: 1
target: [v100]
layers:
  - {{ name: a, N: 128, C: 100, H: 56, W: 56, K: 128, R: 3, S: 3, padding: 1, stride: 2, dtype: fp32, layout: NCHW{} }}
"""


def test_what_an_old_finding_brings_to_light_is_old() -> None:
    write("net.yaml", HIDDEN.format(", first: false"))
    codes = {finding["code"]: finding["message"] for finding in checked()["findings"]}
    assert codes["CL401"].startswith("once CL106 is mended, ")
    assert convlint("check", "net.yaml", "--write-baseline", "base.json").code == 0
    written = Path("base.json").read_text()
    ran = convlint("check", "net.yaml", "--baseline", "base.json", "--prune-baseline", "-o", "json")
    assert (ran.code, ran.err) == (0, "")  # nothing new, and nothing that no longer occurs
    assert {entry["code"] for entry in json.loads(ran.out)["suppressed"]} == set(codes)
    assert Path("base.json").read_text() == written
    write("net.yaml", HIDDEN.format(", first: false").replace("fp32", "fp16"))
    gone = convlint("check", "net.yaml", "--baseline", "base.json").err
    assert "CL106 net.yaml a [v100]" in gone
    assert "CL401" not in gone


def test_a_comment_stays_in_use_where_the_baseline_hides_what_it_silences() -> None:
    write("net.yaml", HIDDEN.format(", first: false").rstrip("\n") + MARK + "\n")
    assert convlint("check", "net.yaml", "--write-baseline", "base.json").code == 0
    ran = convlint("check", "net.yaml", "--baseline", "base.json", "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    assert ("CL401", "the exporter wants it") in [
        (one["code"], one["reason"]) for one in json.loads(ran.out)["suppressed"]
    ]
