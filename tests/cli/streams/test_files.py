"""Outputs replace what they are meant to, whole and with its mode and links, and nothing else."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import convlint
from output_files import SPEC, content, prepared
from specs import GOOD

from convlint.cli.streams.files import replace_file
from convlint.errors import UsageError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return prepared(tmp_path, monkeypatch)


def test_mode_and_links_stay() -> None:
    Path("there.json").unlink()
    os.unlink("again.json")
    Path("there.json").write_text("old")
    for mode in (0o600, 0o640, 0o755):
        os.chmod("there.json", mode)
        assert convlint("check", "ok.yaml", "-o", "json=there.txt").code == 1
        assert stat.S_IMODE(os.stat("there.json").st_mode) == mode
    assert os.readlink("there.txt") == "there.json"
    assert Path("there.json").read_text().startswith('{"schema_version"')


def test_a_hard_link_holds() -> None:
    for text in ("longer than before", "short", ""):
        replace_file("there.json", text)
        assert Path("again.json").read_text() == text


def test_a_new_file_is_as_open_as_the_umask_says() -> None:
    for mask, mode in ((0o022, 0o644), (0o077, 0o600)):
        before = os.umask(mask)
        replace_file(f"new{mask}", "x")
        os.umask(before)
        assert stat.S_IMODE(os.stat(f"new{mask}").st_mode) == mode


def test_a_link_to_nothing_gets_its_target() -> None:
    replace_file("new1.json", "x")
    assert (os.readlink("new1.json"), Path("new.json").read_text()) == ("new.json", "x")
    os.symlink("no/where", "lost.json")
    assert convlint("check", "ok.yaml", "-o", "json=lost.json").code == 2


def test_bytes_and_long_names() -> None:
    replace_file("a" * 255, b"\x00\xff")
    assert Path("a" * 255).read_bytes() == b"\x00\xff"


def test_an_owner_that_cannot_be_kept_means_writing_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("shared.json").write_text("old, and longer")
    number = os.stat("shared.json").st_ino

    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    own = os.fstat

    def someone_elses(descriptor: int) -> os.stat_result:
        status = list(own(descriptor))
        status[4] += 1
        return os.stat_result(status)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fchown", refused)
        patched.setattr(os, "fstat", someone_elses)
        replace_file("shared.json", "new")
    assert (os.stat("shared.json").st_ino, Path("shared.json").read_text()) == (number, "new")
    assert not list(Path().glob(".convlint*"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_an_owner_is_kept_where_that_is_possible() -> None:
    Path("theirs.json").write_text("old")
    os.chown("theirs.json", 12345, 54321)
    os.chmod("theirs.json", 0o640)
    replace_file("theirs.json", "new")
    status = os.stat("theirs.json")
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (12345, 54321, 0o640)


@pytest.mark.parametrize("name", ["alone.txt", "there.json", "fresh.txt"])
@pytest.mark.parametrize("option", ["json", "baseline"])
def test_a_full_disk_leaves_what_was_there(name: str, option: str) -> None:
    """`there.json` has a second link and is written in place, `fresh.txt` does not exist."""
    if name != "fresh.txt":
        Path(name).write_text("as it was")
    before = content()
    given = ["-o", f"json={name}"] if option == "json" else ["-o", "json=/dev/null", "--write-baseline", name]
    many = SPEC + "".join(SPEC.splitlines()[-1].replace("name: a", f"name: a{i}") + "\n" for i in range(50))
    done = subprocess.run(
        [sys.executable, "-m", "convlint", "check", "-", "--isolated", *given],
        input=many, text=True, capture_output=True, env={**os.environ, "CONVLINT_NO_CACHE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
    )  # fmt: skip
    assert (done.returncode, f"{name} cannot be written: File too large" in done.stderr) == (2, True), done.stderr
    assert content() == before


def test_a_pipe_that_nobody_reads_does_not_hang() -> None:
    os.mkfifo("pipe")
    ran = convlint("check", "ok.yaml", "-o", "json=pipe")
    assert (ran.code, "pipe cannot be written: " in ran.err) == (2, True)


def test_a_nul_in_a_path_is_an_error() -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        replace_file("a\0b", "x")
    assert convlint("check", "ok.yaml", "-o", "json=a\0b").code == 2


@pytest.mark.parametrize("git", [True, False])
def test_a_link_that_leads_out_of_the_checkout_is_no_output(
    git: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger's branch may hold a link under the name that CI writes its report to."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".bashrc").write_text("mine\n")
    work = tmp_path / "work"
    work.mkdir()
    if git:
        (work / ".git").mkdir()
    (work / "net.yaml").write_text(GOOD)
    (work / "report").symlink_to(tmp_path / "home" / ".bashrc")
    (work / "folder").symlink_to(tmp_path / "home")
    (work / "inside").symlink_to("kept")
    (work / "kept").write_text("")
    monkeypatch.chdir(work)
    for file in ("report", "folder/.bashrc", "folder/new"):
        ran = convlint("check", "net.yaml", "--output", f"json={file}")
        assert ran.code == 2
        assert "leads out of" in ran.err
    assert (tmp_path / "home" / ".bashrc").read_text() == "mine\n"
    assert convlint("check", "net.yaml", "--output", "json=inside").code in (0, 1)
    assert (work / "inside").is_symlink()
    assert (work / "kept").read_text().startswith("{")
