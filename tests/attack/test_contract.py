"""Tests of the contract: it names each kind of breach, and none where all is well."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from .contract import Attack, Outcome, breaches, hold
from .sandbox import FIRST, LAST, NAMES, changes, snapshot
from .streams import stream_problems

REPORT = json.dumps({"layers": [{"path": name} for name in NAMES], "findings": [{"path": name} for name in NAMES]})
BARE = Outcome(code=1, out=REPORT, err="", cpu_s=0.2, mb=25, stopped="", signalled=False, orphans=(), changed=())


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (replace(BARE, code=4), "exit 4"),
        (replace(BARE, code=-6), "exit -6"),
        (replace(BARE, cpu_s=2.3), "s of CPU"),
        (replace(BARE, mb=226), "226 MB"),
        (replace(BARE, stopped="stopped after 60 s"), "stopped"),
        (replace(BARE, orphans=("sleep 1000",)), "left running: sleep 1000"),
        (replace(BARE, changed=("a.yaml",)), "a.yaml changed"),
        (replace(BARE, err="Traceback (most recent call last):"), "stderr: 'Traceback'"),
        (replace(BARE, out=""), "no JSON report"),
        (
            replace(BARE, out=json.dumps({"layers": [{"path": LAST}, {"path": FIRST}], "findings": []})),
            "innocent inputs",
        ),
        (replace(BARE, out=REPORT.replace(LAST, "other")), "innocent inputs"),
    ],
)
def test_breaches_are_named(outcome: Outcome, words: str) -> None:
    found = breaches(Attack(name="x"), outcome, BARE)
    assert any(words in breach for breach in found), found


def test_no_breach_where_all_is_well() -> None:
    assert breaches(Attack(name="x", exits=frozenset({1})), BARE, BARE) == []


@pytest.mark.parametrize(
    "text", ["::error::x", "a\n  ::stop-commands::x", "a ##vso[task]", "\x1b[31m", "a\rb", "\u202e", "\u2028"]
)
def test_what_may_not_stand_on_a_stream(text: str) -> None:
    assert stream_problems(text)
    assert stream_problems(text, github=True)


def test_the_format_for_github_may_hold_its_own_commands() -> None:
    assert stream_problems("::warning file=a.yaml,line=5::x\n", github=True) == []
    assert stream_problems("::warning file=a.yaml,line=5::x\n")
    assert stream_problems("a :: b, std::vector, ## heading\n") == []


def test_every_change_to_a_folder_is_seen(tmp_path: Path) -> None:
    for name in ("same", "mode", "content", "gone", "link", "output"):
        (tmp_path / name).write_text("a", encoding="utf-8")
    before = snapshot(tmp_path)
    (tmp_path / "mode").chmod(0o600)
    (tmp_path / "content").write_text("b", encoding="utf-8")
    (tmp_path / "output").write_text("b", encoding="utf-8")
    (tmp_path / "gone").unlink()
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("same")
    (tmp_path / "new").mkdir()
    assert changes(before, snapshot(tmp_path), ["output"]) == ["content", "gone", "link", "mode", "new"]
    assert changes(before, snapshot(tmp_path), ["output", "new/"]) == ["content", "gone", "link", "mode"]


SPENDS = {
    "cpu": "x = 0\nwhile True: x += 1",
    "memory": "x = [bytearray(1 << 20) for _ in range(5000)]",
    "children": "import subprocess, sys\nsubprocess.run([sys.executable, '-I', '-c', 'x = bytearray(900 << 20)'])",
    "orphan": "import subprocess\nsubprocess.Popen(['sleep', '60'])",
}


@pytest.mark.parametrize("what", SPENDS)
def test_what_a_process_spends_is_measured(what: str, tmp_path: Path) -> None:
    """A site customisation stands for a defect: it runs inside the command."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(SPENDS[what], encoding="utf-8")
    path = os.pathsep.join([str(tmp_path / "site"), str(Path(__file__).parents[2])])
    _, found = hold(Attack(name=what, env={"PYTHONPATH": path}), tmp_path)
    words = {"cpu": "of CPU", "memory": "MB", "children": "MB", "orphan": "left running"}[what]
    assert any(words in breach for breach in found), found
