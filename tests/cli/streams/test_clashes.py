"""What no output may replace, and what may be written twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command_line import convlint
from output_files import content, prepared

pytestmark = [pytest.mark.slow, pytest.mark.contract]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return prepared(tmp_path, monkeypatch)


INPUT = "is an input"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        # inputs, however they were found and however the output is spelled
        ("check . -o json=ok.yaml", INPUT),
        ("check . -o json=nets/deep.yaml", INPUT),
        ("check -o json=ok.yaml", INPUT),
        ("check *.yaml -o json=ok.yaml", INPUT),
        ("check nets -o json=nets/deep.yaml", INPUT),
        ("check nets/** -o json=nets/deep.yaml", INPUT),
        ("check . -o text -o json=./nets/../ok.yaml", INPUT),
        ("check . -o json=here/ok.yaml", INPUT),
        ("check . -o json=hard.txt", "hard.txt is an input (ok.yaml); write json to another file"),
        ("check . -o json=soft.txt", "soft.txt is an input (ok.yaml)"),
        ("check . -o json=chain.txt", "chain.txt is an input (ok.yaml)"),
        ("check soft.txt -o json=ok.yaml", "ok.yaml is an input (soft.txt)"),
        ("check . --write-baseline ok.yaml", "ok.yaml is an input; write the new baseline to another file"),
        ("check shards -o json=shard.txt", "shard.txt is part of an input (shards/part-1.safetensors)"),
        ("check shards/m.safetensors.index.json -o json=shard.txt", "is part of an input"),
        ("check pkg.sub:Net -o json=sub.txt", INPUT),
        ("check pkg:Net -o json=init.txt", INPUT),
        ("estimate ok.yaml -o csv=hard.txt", INPUT),
        ("estimate ok.yaml -o text -o json=here/ok.yaml", INPUT),
        ("sweep ok.yaml -N 1,2 -o csv=soft.txt", INPUT),
        ("sweep ok.yaml -N 1,2 -o svg=soft.txt", INPUT),
        ("export ok.yaml -o hard.txt", INPUT),
        ("export ok.yaml -o ./ok.yaml", INPUT),
        ("export pkg.sub:Net -o sub.txt", INPUT),
        ("audit . -o json=ok.yaml", INPUT),
        ("audit nets -o json=nets/deep.yaml", INPUT),
        ("audit . -o json=hard.txt", "hard.txt is an input (ok.yaml); write json to another file"),
        ("audit soft.txt -o text=ok.yaml", "ok.yaml is an input (soft.txt)"),
        ("audit shards -o json=shard.txt", "shard.txt is part of an input (shards/part-1.safetensors)"),
        ("audit pkg.sub:Net -o json=sub.txt", INPUT),
        # configs, baselines, rules
        ("check . -o json=parent.conf", "parent.conf is a config in force"),
        ("check . -o json=grandparent.conf", "grandparent.conf is a config in force"),
        ("check . -o json=grand.txt", "grand.txt is a config in force (grandparent.conf)"),
        ("check . --config other.conf -o json=other.conf", "other.conf is a config in force"),
        ("layer -C 3 --config other.conf -o json=other.conf", "other.conf is a config in force"),
        ("check . -o json=convlint.toml", "by its name"),
        ("audit . -o json=grand.txt", "grand.txt is a config in force (grandparent.conf)"),
        ("check . --isolated -o json=convlint.toml", "by its name"),
        ("check . --baseline base.json -o json=base.json", "is the baseline"),
        ("check . --baseline base.json -o json=base.txt", "base.txt is the baseline (base.json)"),
        ("check . --baseline base.json --prune-baseline -o json=base.txt", "write to the same file"),
        ("check . --baseline base.json --write-baseline ./base.json -o json=base.json", "write to the same file"),
        ("check . -o json=b.json --write-baseline ./b.json", "json and the new baseline write to the same file"),
        ("check . --rules own -o json=own/rule.yaml", "own/rule.yaml is a"),
        ("check ok.yaml --rules own -o json=rule.txt", "rule.txt is a rule (own/rule.yaml)"),
        ("audit ok.yaml --rules own -o json=rule.txt", "rule.txt is a rule (own/rule.yaml)"),
        # each other
        ("check ok.yaml -o json=a.json -o sarif=a.json", "write to the same file"),
        ("check ok.yaml -o json=a.json -o sarif=./a.json", "json and sarif write to the same file: a.json and ./a.j"),
        ("check ok.yaml -o json=a.json -o sarif=here/a.json", "write to the same file"),
        ("check ok.yaml -o json=new.json -o sarif=new1.json", "write to the same file"),
        ("check ok.yaml -o json=there.json -o sarif=again.json", "write to the same file"),
        ("check ok.yaml -o json=there.json -o sarif=there.txt", "write to the same file"),
        ("layer -C 3 -o json=a.json -o sarif=./a.json", "write to the same file"),
        ("estimate ok.yaml -o json=a.json -o csv=./a.json", "write to the same file"),
        ("sweep ok.yaml -N 1,2 -o csv=a.csv -o svg=./a.csv", "write to the same file"),
        ("audit ok.yaml -o csv=a.x -o jsonl=./a.x", "csv and jsonl write to the same file"),
        ("audit ok.yaml -o csv=a.x -o json=a-layers.x", "csv and json write to the same file"),
        ("audit ok.yaml -o csv=a.x -o json=a-resume.sqlite", "write to the same file"),
        # what no report belongs into
        ("check ok.yaml -o json=m.onnx", "m.onnx is a model, by its name"),
        ("check ok.yaml -o json=weights.H5", "is a model, by its name"),
        ("check ok.yaml -o json=m.onnx.data", "is a model, by its name"),
        ("check ok.yaml -o json=model.txt", "model.txt is a model, by its name"),
        ("check ok.yaml -o json=code.py", "is source code or a config, by its name"),
        ("estimate ok.yaml -o json=m.onnx", "is a model, by its name"),
        ("export ok.yaml -o m.onnx", "is a model, by its name"),
        ("check ok.yaml -o json=nets", "is a folder"),
        ("check ok.yaml -o json=no/where", "there is no folder no"),
    ],
)
def test_nothing_is_destroyed(arguments: str, message: str) -> None:
    before = content()
    ran = convlint(*arguments.split())
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert content() == before


@pytest.mark.parametrize(
    ("summary", "message"),
    [("ok.yaml", "is an input"), ("soft.txt", "is an input (ok.yaml)"), ("./g.md", "write to the same file")],
)
def test_the_job_summary_is_an_output_too(summary: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", summary)
    before = content()
    ran = convlint("check", ".", "-o", "github", "-o", "markdown=g.md")
    assert (ran.code, ran.out, message in ran.err) == (2, "", True)
    assert content() == before


@pytest.mark.parametrize(
    "arguments",
    [
        "check . -o json=r.json -o sarif=r.sarif -o markdown=r.md -o junit=r.xml -o gitlab=g.json -o rdjson=rd.json",
        "check . --write-baseline base.json",
        "check . --baseline base.json --write-baseline base.json",
        "check . --baseline base.json --prune-baseline",
        "check . --baseline base.json -o json=there.json",
        "check ok.yaml -o json=/dev/null -o sarif=/dev/null -o text=/dev/stdout",
        "estimate ok.yaml -o json=r.json -o csv=r.csv",
        "export ok.yaml -o copy.yaml",
        "check ok.yaml -o json=made.onnx",
    ],
)
def test_what_is_no_clash_can_be_repeated(arguments: str) -> None:
    for _ in range(2):
        ran = convlint(*arguments.split())
        assert (ran.code in (0, 1, 3), "error:" in ran.err) == (True, False)
        if "made.onnx" in arguments:
            break


def test_the_shells_own_file_is_an_output_too() -> None:
    with open("all.txt", "w") as file:
        command = [sys.executable, "-m", "convlint", "check", "ok.yaml", "-o", "text", "-o", "json=here/all.txt"]
        done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, "standard output and json write to the same file" in done.stderr) == (2, True)
    assert Path("all.txt").read_text() == ""
