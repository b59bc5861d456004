"""Unified diffs, as patch reads them."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from convlint.fixes.diff import unified

OLD = "".join(f"line {n}\n" for n in range(1, 21))


def test_no_change_no_diff() -> None:
    assert unified(OLD, OLD, "x") == []
    assert unified("", "", "x") == []


def test_hunks_have_context_and_join_where_it_meets() -> None:
    new = OLD.replace("line 3\n", "third\n").replace("line 10\n", "tenth\n").replace("line 18\n", "eighteenth\nmore\n")
    assert unified(OLD, new, "net.yaml") == [
        "--- net.yaml\n", "+++ net.yaml\n",
        "@@ -1,13 +1,13 @@\n", " line 1\n", " line 2\n", "-line 3\n", "+third\n",
        *(f" line {n}\n" for n in range(4, 10)), "-line 10\n", "+tenth\n", *(f" line {n}\n" for n in range(11, 14)),
        "@@ -15,6 +15,7 @@\n", *(f" line {n}\n" for n in range(15, 18)),
        "-line 18\n", "+eighteenth\n", "+more\n", " line 19\n", " line 20\n",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\nb", "a\nc"),
        ("a\nb\n", "a\nb"),
        ("a\r\nb\r\n", "a\r\nc\r\n"),
        ("", "a\n"),
        ("a\n", ""),
        ("a\n\n\n", "b\n\n\n\n"),
    ],
)
def test_patch_reads_it(old: str, new: str, tmp_path: Path) -> None:
    assert patched(old, new, tmp_path) == new


def test_the_end_without_a_line_break_is_said() -> None:
    assert unified("a", "b\n", "x")[3:] == ["-a\n\\ No newline at end of file\n", "+b\n"]


@pytest.mark.slow
def test_patch_reads_any(tmp_path: Path) -> None:
    rng = random.Random(5)
    for _ in range(60):
        old = [f"{rng.choice('abcd')}\n" for _ in range(rng.randrange(40))]
        new = list(old)
        for _ in range(rng.randrange(6)):
            at = rng.randrange(len(new) + 1)
            new[at : at + rng.randrange(2)] = [f"{rng.choice('abcdef')}\n"] * rng.randrange(3)
        assert patched("".join(old), "".join(new), tmp_path) == "".join(new)


def test_long_files_may_change_everywhere() -> None:
    old = "".join(f"  - {{ name: l{n}, K: {60 + n % 7} }}\n" for n in range(20_000))
    lines = unified(old, old.replace("K: 6", "K: 16"), "x")
    assert sum(line.startswith("+  ") for line in lines) == 20_000


def patched(old: str, new: str, folder: Path) -> str:
    """What git makes of `old` by the diff."""
    (folder / "x").write_bytes(old.encode())
    diff = "".join(unified(old, new, "x"))
    if not diff:
        return old
    command = ["git", "-c", "core.autocrlf=false", "apply", "-p0", "--whitespace=nowarn", "-"]
    subprocess.run(command, input=diff.encode(), cwd=folder, check=True)
    done = folder / "x"
    return done.read_bytes().decode() if done.exists() else ""
