"""The project's own samples end to end: every format at once, a baseline, several processes."""

import json
import shutil
from pathlib import Path

import pytest
from checkout import ROOT
from command_line import convlint

from convlint.reporters import REPORTERS

pytestmark = [pytest.mark.slow, pytest.mark.contract]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    shutil.copytree(ROOT / "sample_configs", "sample_configs")


def test_every_format_at_once() -> None:
    outputs = [argument for name in REPORTERS for argument in ("--output", f"{name}=out.{name}")]
    ran = convlint("check", "sample_configs", *outputs)
    assert (ran.code, ran.out, ran.err) == (1, "", "")
    texts = {name: Path(f"out.{name}").read_text() for name in REPORTERS}
    report = json.loads(texts["json"])
    assert report["complete"] is True
    assert report["summary"]["files"] == len(list(Path("sample_configs").glob("*.yaml")))
    results = json.loads(texts["sarif"])["runs"][0]["results"]
    assert len(results) == len(report["findings"]) + len(report["suppressed"])
    assert len(json.loads(texts["gitlab"])) == len(report["findings"])
    assert all("internal error" not in text for text in texts.values())


def test_the_adoption_story() -> None:
    outputs = ("sarif=a.sarif", "junit=b.xml", "text")
    call = ["check", "sample_configs/bad.yaml", *(f"--output={output}" for output in outputs)]
    assert convlint(*call).code == 1
    assert Path("a.sarif").stat().st_size > 0
    assert Path("b.xml").stat().st_size > 0
    assert convlint(*call, "--write-baseline", "base.json").code == 0
    assert convlint(*call, "--baseline", "base.json").code == 0
    spec = Path("sample_configs/bad.yaml")
    sizes = "N: 256, C: 62, H: 56, W: 56, K: 126, R: 3, S: 3, padding: 1"
    new = f"  - {{ name: brand_new, {sizes}, dtype: fp16, layout: NHWC }}\n"
    spec.write_text(spec.read_text().rstrip("\n") + "\n" + new)
    ran = convlint(*call, "--baseline", "base.json", "--output", "json=c.json")
    assert ran.code == 1
    findings = json.loads(Path("c.json").read_text())["findings"]
    assert {finding["layer"] for finding in findings if finding["severity"] != "info"} == {"brand_new"}


def test_the_report_does_not_depend_on_the_processes() -> None:
    one = convlint("check", "sample_configs", "-o", "json")
    assert one == convlint("check", "sample_configs", "-o", "json", "--jobs", "3")
    assert one == convlint("check", *sorted(map(str, Path("sample_configs").glob("*.yaml"))), "-o", "json")
