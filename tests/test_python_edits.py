"""Findings on a live model, as edits of its source: the edited model still runs, and the findings are gone."""

import json
from pathlib import Path

import pytest
from command_line import convlint as run
from sarif_fixes import applied

import convlint
from convlint.fixes.edits import Edit
from convlint.fixes.plan import EditPlanner, wishes
from convlint.fixes.python.source import applied_to_bytes
from convlint.fixes.python_text import PythonEditor, PythonEdits
from convlint.model.report import Finding
from convlint.readers import ReadOptions
from convlint.readers.inputs import decide
from convlint.readers.reading import Reading

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("here")]

NET = """\
# coding: latin-1
from torch import nn


class Block(nn.Module):
    def __init__(self, größe=3):
        super().__init__()
        self.conv = nn.Conv2d(252, 252, größe, padding=1)
        self.norm = {norm}

    def forward(self, x):
        return x + self.norm(self.conv(x)).relu()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(
            128,
            252,
            kernel_size=3,  # 252
        )
        self.norm = nn.GroupNorm(4, 252)
        self.blocks = nn.Sequential(Block(), Block(), Block())
        self.head = nn.Conv2d(252, 64, 1)

    def forward(self, x):
        return self.head(self.blocks(self.norm(self.stem(x)))).mean((2, 3))
"""
INPUTS = {"": "32x128x56x56:fp16:channels_last"}
RULES = ("CL101", "CL102", "CL506")


def findings(rules: tuple[str, ...]) -> list[Finding]:
    report = convlint.lint("net:Net", inputs=INPUTS, gpu="a100", select=rules, isolated=True)
    assert report.errors == ()
    return list(report.findings)


def edits(found: list[Finding]) -> PythonEdits:
    network, errors = Reading().read(decide("net:Net"), ReadOptions(inputs=INPUTS))
    assert errors == ()
    assert network is not None
    plan = EditPlanner(network).plan(wishes(found))
    assert plan.refused == ()
    return PythonEditor(network, lambda path: Path(path).read_bytes()).edits(plan.sets)


def edited(found: list[Finding]) -> bytes:
    """The module with all edits that the findings carry."""
    carried = {
        Edit(each.start, each.end, each.new) for finding in found if finding.fix for each in finding.fix.code_edits
    }
    return applied_to_bytes(Path("net.py").read_bytes(), carried)


def test_the_edited_model_runs_without_the_findings() -> None:
    Path("net.py").write_bytes(NET.format(norm="nn.BatchNorm2d(252)").replace("\n", "\r\n").encode("latin-1"))
    before = Path("net.py").read_bytes()
    found = findings(RULES)
    assert found
    made = edits(found)
    assert made.refused == {}
    after = applied_to_bytes(before, made.edits["net.py"])
    assert edited(found) == after
    Path("net.py").write_bytes(after)
    assert findings(RULES) == []
    wanted = (
        before.replace(b"252", b"256").replace(b"# 256", b"# 252").replace(b", padding=1)", b", padding=1, bias=False)")
    )
    assert after == wanted


def test_a_norm_of_its_own_keeps_the_width_and_loses_the_bias() -> None:
    Path("net.py").write_bytes(
        NET.format(norm="norm(252)").replace("class Net", "norm = nn.BatchNorm2d\n\n\nclass Net").encode("latin-1")
    )
    found = findings(RULES)
    made = edits(found)
    assert {field for _, field in made.refused} == {"C", "K"}
    assert {"net.py:9: which sizes `norm` takes is not known"} == set(made.refused.values())
    after = applied_to_bytes(Path("net.py").read_bytes(), made.edits["net.py"])
    assert edited(found) == after
    assert {finding.rule.code: finding.fix.no_edit for finding in found if finding.fix} == {
        "CL102": "net.py:9: which sizes `norm` takes is not known", "CL506": "",
    }  # fmt: skip
    Path("net.py").write_bytes(after)
    assert {finding.rule.code for finding in findings(RULES)} == {"CL102"}


def test_sarif_carries_the_edits_by_columns() -> None:
    source = "\ufeff" + NET.format(norm='{"größe": nn.BatchNorm2d(252)}["größe"]').removeprefix("# coding: latin-1\n")
    Path("net.py").write_bytes(source.replace("\n", "\r\n").encode())
    before = Path("net.py").read_bytes()
    shapes = [part for name, shape in INPUTS.items() for part in ("--input", f"{name}={shape}" if name else shape)]
    ran = run("check", "net:Net", "--isolated", "--gpu", "a100", "--select", ",".join(RULES), *shapes, "-o", "sarif")
    results = json.loads(ran.out)["runs"][0]["results"]
    fixes = [fix for result in results for fix in result.get("fixes", ())]
    assert {fix["properties"]["safety"] for fix in fixes} == {"unsafe"}
    carried = [finding.fix for finding in findings(RULES) if finding.fix is not None]
    expected = [
        applied_to_bytes(before, {Edit(each.start, each.end, each.new) for each in fix.code_edits}) for fix in carried
    ]
    assert len(expected) > 1
    assert sorted(applied(before, fix) for fix in fixes) == sorted(expected)
