"""Where a repository begins; of tests, documentation and other people's code in it nothing is said."""

import os
from pathlib import Path

import pytest
from command_line import convlint

from convlint.files.repository import from_checkout, is_quiet, root_of

NET = "from torch import nn\nn = nn.Sequential(nn.Conv2d(64, 60, 3), nn.BatchNorm2d(60))\n"


@pytest.mark.parametrize(
    ("path", "quiet"),
    [
        ("net.py", False), ("models/net.py", False), ("latest/net.py", False), ("attest.py", False),
        ("tests/net.py", True), ("a/Tests/net.py", True), ("docs/net.py", True), ("third_party/net.py", True),
        ("a/vendor/b/net.py", True), ("test_net.py", True), ("net_test.py", True), ("a/conftest.py", True),
        ("tests.py", True), ("tests", False),
    ],
)  # fmt: skip
def test_by_folder_and_name(path: str, quiet: bool) -> None:
    assert is_quiet(path) is quiet


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository that lies in a folder of tests, and has one."""
    found = tmp_path / "tests" / "project"
    (found / "tests").mkdir(parents=True)
    (found / ".git").mkdir()
    for path in (found / "net.py", found / "tests" / "net.py"):
        path.write_text(NET)
    return found


@pytest.mark.parametrize("here", [".", "../..", "/"])
def test_folders_above_the_repository_do_not_count(project: Path, monkeypatch: pytest.MonkeyPatch, here: str) -> None:
    monkeypatch.chdir(project / here)
    ran = convlint("check", str(project), "--fail-on", "never")
    assert "1 convolution in 2 Python files" in ran.out
    assert "not judged" not in ran.out
    ran = convlint("check", str(project / "tests" / "net.py"), "--fail-on", "info")
    assert "not judged: 1 Python file of tests, documentation or vendored code" in ran.out


def test_whoever_goes_into_a_folder_of_tests_is_told_of_them(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "tests")
    assert "1 convolution in 1 Python file" in convlint("check", "net.py").out


@pytest.mark.parametrize("marks", [(".git", "third_party/lib/.git"), ("setup.py", "third_party/lib/setup.py")])
@pytest.mark.parametrize("here", [".", ".."])
def test_vendored_code_that_is_a_repository_of_its_own_stays_vendored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marks: tuple[str, ...], here: str
) -> None:
    for mark in marks:
        (tmp_path / mark).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / mark).write_text("")
    monkeypatch.chdir(tmp_path / here)
    assert is_quiet(os.path.relpath(tmp_path / "third_party" / "lib" / "net.py"))
    assert not is_quiet(os.path.relpath(tmp_path / "net.py"))


def test_the_current_folder_is_the_repository_where_nothing_marks_one(here: Path) -> None:
    (here / "third_party" / "lib").mkdir(parents=True)
    (here / "third_party" / "lib" / "setup.py").write_text("")
    assert is_quiet("third_party/lib/net.py")


@pytest.mark.parametrize(
    ("path", "home", "root"),
    [
        ("net/tools", False, "."),
        (".", False, "."),
        ("net/tools", True, "net"),
        ("net/tools/train.py", True, "net"),
        ("net", True, "net"),
        (".", True, "."),
        ("../other", False, "../other"),
    ],
)
def test_the_root_of_what_has_no_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, *, home: bool, root: str
) -> None:
    """Whatever the current folder holds belongs together, unless it is somebody's home."""
    for name in ("here/net/tools/train.py", "here/net/lib/a.py", "other/b.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "here") if home else str(tmp_path))
    assert root_of(path) == root


def test_a_path_as_a_ci_service_knows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "svc" / "nets").mkdir(parents=True)
    (tmp_path / "svc" / "nets" / "a.yaml").touch()
    monkeypatch.chdir(tmp_path / "svc")
    monkeypatch.setenv("ROOT", str(tmp_path))
    assert from_checkout("nets/a.yaml", "ROOT") == os.path.join("svc", "nets", "a.yaml")
    assert from_checkout(str(tmp_path / "svc/nets/a.yaml"), "ROOT") == os.path.join("svc", "nets", "a.yaml")
    for other in ("package.module:Net", "<stdin>", "/nowhere/a.yaml"):  # no files of the checkout
        assert from_checkout(other, "ROOT") == other
    for root in (str(tmp_path / "svc"), str(tmp_path / "other"), "", "svc"):
        monkeypatch.setenv("ROOT", root)
        assert from_checkout("nets/a.yaml", "ROOT") == "nets/a.yaml"
