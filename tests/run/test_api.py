"""`convlint.lint`: the same report as the command line, and a package that is fast to import."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import convlint as run
from specs import BAD, GOOD

import convlint
from convlint.model.errors import UsageError
from convlint.reporters import Style, reporter


@pytest.fixture(autouse=True)
def _here(here: Path) -> None:
    Path("bad.yaml").write_text(BAD)
    Path("net").mkdir()
    Path("net/good.yaml").write_text(GOOD)
    Path("net/broken.yaml").write_text("version: 1\nlayers: [")
    Path("net/convlint.toml").write_text('target = ["t4"]\n')


@pytest.mark.parametrize(
    ("arguments", "paths", "options"),
    [
        (["bad.yaml"], "bad.yaml", {}),
        (["bad.yaml", "net"], ["bad.yaml", Path("net")], {}),
        ([], [], {}),
        (["bad.yaml", "--gpu", "t4", "--gpu", "h100"], ["bad.yaml"], {"gpu": ["t4", "h100"]}),
        (
            ["bad.yaml", "--select", "CL102", "--mode", "inference"],
            "bad.yaml",
            {"select": "CL102", "mode": "inference"},
        ),
        (["bad.yaml", "--ignore", "CL102", "--batch", "3"], Path("bad.yaml"), {"ignore": ("CL102",), "batch": 3}),
        (["net", "--isolated", "--jobs", "2"], "net", {"isolated": True, "jobs": 2}),
        (["bad.yaml", "--config", "net/convlint.toml"], "bad.yaml", {"config": Path("net/convlint.toml")}),
        (["nowhere.yaml"], "nowhere.yaml", {}),
    ],
)
def test_the_report_is_that_of_the_command_line(
    arguments: list[str], paths: object, options: dict[str, object]
) -> None:
    report = convlint.lint(paths, **options)  # type: ignore[arg-type]
    printed = run("check", *arguments, "-o", "json").out
    assert json.loads(reporter("json")(report, Style())) == json.loads(printed)


def test_the_report_knows_the_baseline() -> None:
    found = convlint.lint("bad.yaml").findings
    run("check", "bad.yaml", "--write-baseline", "base.json")
    report = convlint.lint("bad.yaml", baseline=Path("base.json"))
    assert report.findings == ()
    assert found
    assert {entry.finding.fingerprint for entry in report.suppressed} == {finding.fingerprint for finding in found}


def test_what_is_read_is_of_the_exported_kinds() -> None:
    report = convlint.lint("bad.yaml")
    assert isinstance(report, convlint.Report)
    assert all(isinstance(finding, convlint.Finding) for finding in report.findings)
    assert all(isinstance(entry.layer, convlint.ConvLayer) for entry in report.layers)
    assert report.findings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gpu": "h1000"}, "unknown GPU 'h1000'"),
        ({"select": "CL1O2"}, "did you mean 'CL102'"),
        ({"mode": "trainig"}, "did you mean 'training'"),
        ({"config": "nowhere.toml"}, "does not exist"),
        ({"baseline": "nowhere.json"}, "does not exist"),
    ],
)
def test_wrong_options_are_usage_errors(options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        convlint.lint("bad.yaml", **options)  # type: ignore[arg-type]


def test_what_is_not_there_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Lint'"):
        _ = convlint.Lint


def test_importing_loads_nothing() -> None:
    code = "import sys, typing; before = set(sys.modules); import convlint; print(sorted(set(sys.modules) - before))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['convlint']"
