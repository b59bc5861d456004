"""All rules together: none shares a code or a name, and each is found by both."""

from __future__ import annotations

import builtins
import errno
import marshal
import os
import shutil
import stat
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT
from msgspec.structs import replace
from rule_texts import RULE, edited, written

from convlint.files import cache as cache_files
from convlint.files.cache import packed, unpacked
from convlint.model.errors import RuleError
from convlint.rulebook import book
from convlint.rulebook.book import (
    Rulebook,
    builtin_folder,
    cached_rules,
    linked,
    load_rulebook,
    rule_files,
)
from convlint.rulebook.file import read_rule


def fill(folder: Path, *names: str, size: int = 0) -> str:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"#" * size)
    return str(folder)


def test_rules_are_all_yaml_files_below_a_folder_in_order(tmp_path: Path) -> None:
    names = ("b/x.yaml", "a.yml", "z.yaml", "b/c/y.yaml", "no.txt", "yaml", ".git/h.yaml", "__pycache__/p.yaml")
    found = [str(Path(path).relative_to(tmp_path)) for path in rule_files(fill(tmp_path, *names))]
    assert found == ["a.yml", "z.yaml", "b/x.yaml", "b/c/y.yaml"]


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    fill(tmp_path / "rules", "a.yaml")
    fill(tmp_path / "far", "b.yaml")
    (tmp_path / "rules" / "link").symlink_to(tmp_path / "far")
    (tmp_path / "rules" / "loop").symlink_to(tmp_path / "rules")
    assert [Path(path).name for path in rule_files(str(tmp_path / "rules"))] == ["a.yaml"]


@pytest.mark.parametrize(
    ("count", "name", "size", "message"),
    [
        (200, "{}.yaml", 0, None),
        (201, "{}.yaml", 0, "more than 200 rules"),
        pytest.param(5000, "{}.txt", 0, None, marks=pytest.mark.slow),
        pytest.param(5001, "{}.txt", 0, "more than 5,000 files and folders", marks=pytest.mark.slow),
        (4, "{}.yaml", 2**18, None),
        (4, "{}.yaml", 2**18 + 1, "more than 1 MiB"),
    ],
)
def test_a_folder_has_its_limits(count: int, name: str, size: int, message: str | None, tmp_path: Path) -> None:
    folder = fill(tmp_path, *(name.format(number) for number in range(count)), size=size)
    if message is None:
        assert len(rule_files(folder)) == (count if name.endswith("yaml") else 0)
        return
    with pytest.raises(RuleError, match=message):
        rule_files(folder)


def test_the_rules_that_ship_are_those_of_the_repository() -> None:
    held = {path.relative_to(ROOT / "rules") for path in (ROOT / "rules").rglob("*.yaml")}
    assert {Path(path).relative_to(builtin_folder()) for path in rule_files(builtin_folder())} == held


pytestmark = pytest.mark.slow

PATHS = rule_files(builtin_folder())[:2]
SOMEONE_ELSE = 54321


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache's folder; it holds nothing yet. The current folder is another one."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CONVLINT_NO_CACHE", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path / "cache" / "convlint"


@pytest.fixture
def filled(cache: Path) -> Path:
    """The file in a cache that would be used."""
    assert files_read() == len(PATHS)
    (file,) = cache.iterdir()
    assert files_read() == 0
    return file


def files_read(paths: list[str] = PATHS) -> int:
    """How many rule files it takes to load the rules; the rules are checked to be right, whatever the cache holds."""
    import convlint.rulebook.file

    whole = [convlint.rulebook.file.read_rule(path, built_in=True) for path in paths]
    read: list[str] = []
    original = convlint.rulebook.file.read_rule

    def counted(path: str, *, built_in: bool) -> Any:
        read.append(path)
        return original(path, built_in=built_in)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("convlint.rulebook.file.read_rule", counted)
        assert cached_rules(paths) == whole
    return len(read)


def forge(file: Path) -> None:
    """Puts rules that would silence everything into the cache, with the right key and checksum."""
    rules = [replace(rule, info=replace(rule.info, title="forged")) for rule in cached_rules(PATHS)]
    file.write_bytes(packed([book._plain(rule) for rule in rules], book._key(PATHS)))


def test_a_forged_file_would_be_believed_where_all_is_in_order(filled: Path) -> None:
    """What the tests below rest on: only the checks of owner and mode stand between such a file and its use."""
    forge(filled)
    assert [rule.info.title for rule in cached_rules(PATHS)] == ["forged"] * 2


def _link_folder(file: Path) -> None:
    file.parent.rename(file.parent.parent / "elsewhere")
    file.parent.symlink_to(file.parent.parent / "elsewhere", target_is_directory=True)


def _link_file(file: Path) -> None:
    elsewhere = file.parent.parent / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)


def _fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


def _folder_for_file(file: Path) -> None:
    file.unlink()
    file.mkdir(mode=0o700)


DOUBTS: dict[str, Callable[[Path], None]] = {
    "folder writable by all": lambda file: file.parent.chmod(0o777),
    "folder writable by all, sticky": lambda file: file.parent.chmod(0o1777),
    "folder writable by the group": lambda file: file.parent.chmod(0o770),
    "file writable by all": lambda file: file.chmod(0o602),
    "file writable by the group": lambda file: file.chmod(0o620),
    "folder above writable by all": lambda file: file.parent.parent.chmod(0o777),
    "folder of someone else": lambda file: os.chown(file.parent, SOMEONE_ELSE, -1),
    "file of someone else": lambda file: os.chown(file, SOMEONE_ELSE, -1),
    "folder above of someone else": lambda file: os.chown(file.parent.parent, SOMEONE_ELSE, -1),
    "second name": lambda file: os.link(file, file.parent.parent / "second"),
    "link for the folder": _link_folder,
    "link for the file": _link_file,
    "pipe": _fifo,
    "folder for the file": _folder_for_file,
    "too large": lambda file: os.truncate(file, 3 * 2**30),
}


@pytest.mark.parametrize("doubt", DOUBTS)
def test_in_doubt_there_is_no_cache(doubt: str, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "someone else" in doubt and os.geteuid() != 0:
        # only root can give files away; for others it is the user who changes
        monkeypatch.setattr(cache_files.os, "geteuid", lambda: SOMEONE_ELSE)
    forge(filled)
    DOUBTS[doubt](filled)
    assert files_read() == len(PATHS)


@pytest.mark.parametrize("doubt", ["pipe", "link for the file", "file writable by all", "too large"])
def test_a_doubtful_file_is_replaced_by_a_good_one(doubt: str, filled: Path) -> None:
    DOUBTS[doubt](filled)
    assert [files_read(), files_read()] == [len(PATHS), 0]
    assert stat.S_IMODE(filled.lstat().st_mode) == 0o600
    assert len(list(filled.parent.iterdir())) == 1


def test_a_link_is_replaced_and_what_it_points_to_is_left_alone(filled: Path) -> None:
    _link_file(filled)
    elsewhere = filled.resolve()
    elsewhere.write_bytes(b"mine")
    files_read()
    assert elsewhere.read_bytes() == b"mine"


def test_nothing_doubtful_reaches_the_unmarshaller(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def loads(_data: bytes) -> object:
        raise AssertionError("was called")

    content = filled.read_bytes()
    filled.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    monkeypatch.setattr(marshal, "loads", loads)
    assert files_read() == len(PATHS)


@pytest.mark.parametrize(
    "stored",
    [
        3, (), ("KEY",), ("KEY", 3), ("KEY", {}), ("KEY", []), ("KEY", [1, 2]), ("KEY", [{}, {}]),
        ("KEY", [{"path": PATHS[0]}, {"path": PATHS[1]}]), (["KEY"], []), ("KEY", [], []), None,
    ],
)  # fmt: skip
def test_only_rules_come_out_of_a_file_with_the_right_checksum(stored: object) -> None:
    data = marshal.dumps(stored)
    assert not book._are_plain(unpacked(cache_files._checksum(data) + data, "KEY"), PATHS)


def test_a_rule_with_a_field_of_another_kind_is_none() -> None:
    plain = [book._plain(rule) for rule in cached_rules(PATHS)]
    assert unpacked(packed(plain, "KEY"), "KEY") == plain
    assert unpacked(packed(plain, "KEY"), "OTHER") is None
    assert book._are_plain(plain, PATHS)
    assert not book._are_plain(plain, [PATHS[1], PATHS[0]])
    for name in plain[0]:
        assert not book._are_plain([{**plain[0], name: b"bytes"}, plain[1]], PATHS)


@pytest.mark.parametrize("call", ["makedirs", "open", "fstat", "replace", "stat", "getcwd"])
@pytest.mark.parametrize("code", [errno.EROFS, errno.ENOSPC, errno.EACCES, errno.EIO])
def test_no_failing_call_ends_the_run(call: str, code: int, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_args: object, **_options: object) -> None:
        raise OSError(code, os.strerror(code))

    class FailingOs:
        def __getattr__(self, name: str) -> Any:
            return refused if name == call else getattr(os, name)

    monkeypatch.setattr(cache_files, "os", FailingOs())
    assert files_read() == len(PATHS)
    if cache.exists():
        assert list(cache.iterdir()) == []


def test_a_disk_that_is_full_while_writing_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __init__(self, stream: Any) -> None:
            self.stream = stream

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            self.stream.close()

        def write(self, data: bytes) -> None:
            self.stream.write(data[:10])
            raise OSError(errno.ENOSPC, "No space left on device")

    class FullOs:
        def __getattr__(self, name: str) -> Any:
            return (lambda fd, mode: Full(builtins.open(fd, mode))) if name == "fdopen" else getattr(os, name)

    monkeypatch.setattr(cache_files, "os", FullOs())
    assert files_read() == len(PATHS)
    assert list(cache.iterdir()) == []


def test_a_cache_below_the_current_folder_is_not_trusted(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forge(filled)
    monkeypatch.chdir(filled.parent.parent.parent)
    assert files_read() == len(PATHS)
    monkeypatch.chdir(filled.parent.parent)
    assert files_read() == len(PATHS)


@pytest.mark.parametrize("home", [".", "sub", "", "/nonexistent\0", "/dev/null"])
@pytest.mark.parametrize("xdg", ["", "cache", "./cache", "../cache"])
def test_odd_environments(home: str, xdg: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "\0" in home:
        monkeypatch.delenv("HOME", raising=False)
        monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # a user without an entry
    else:
        monkeypatch.setenv("HOME", home)
    monkeypatch.setenv("XDG_CACHE_HOME", xdg)
    assert files_read() == len(PATHS)
    assert list(Path().iterdir()) == []
    assert not cache.exists()


def test_without_xdg_the_cache_is_in_the_home_folder(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = cache.parent.parent / "home"
    home.mkdir(mode=0o755)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    assert [files_read(), files_read()] == [len(PATHS), 0]
    assert stat.S_IMODE((home / ".cache" / "convlint").stat().st_mode) == 0o700
    monkeypatch.chdir(home.parent)
    assert files_read() == len(PATHS)  # a home below the current folder may have come with it


def test_an_open_umask_opens_nothing(cache: Path) -> None:
    before = os.umask(0)
    try:
        files_read()
    finally:
        os.umask(before)
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in cache.iterdir())


def test_the_command_says_nothing_about_it(filled: Path) -> None:
    filled.parent.chmod(0o777)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "convlint", "gpus"],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_the_cache_is_used_and_follows_every_change(cache: Path, tmp_path: Path) -> None:
    path = written(tmp_path, RULE)
    assert [files_read([path]), files_read([path])] == [1, 0]
    status = Path(path).stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert [files_read([path]), files_read([path])] == [1, 0]
    second = written(tmp_path, RULE.replace("XY100", "XY101"), "second.yaml")
    assert [files_read([path, second]), files_read([path, second])] == [2, 0]


def checked(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "little") + data


@pytest.mark.parametrize(
    "garbage",
    [
        b"", b"x", b"\x00" * 100, bytes(range(256)) * 8, checked(marshal.dumps(3)),
        checked(marshal.dumps(("key", []))), checked(marshal.dumps(([], 3, 4))),
    ],
)  # fmt: skip
def test_garbage_in_the_cache_costs_only_time(garbage: bytes, cache: Path) -> None:
    expected = [rule.info for rule in load_rulebook().rules]
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    for content in (garbage, whole[: len(whole) // 2], whole[:-1] + b"\x00" + whole[-1:]):
        file.write_bytes(content)
        assert [rule.info for rule in load_rulebook().rules] == expected
        assert len(file.read_bytes()) == len(whole)


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.delenv("CONVLINT_NO_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert load_rulebook().rules
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CONVLINT_NO_CACHE", "1")
    assert load_rulebook().rules
    assert not (tmp_path / "cache").exists()


def test_the_cache_looks_at_every_module_that_a_rule_is_compiled_with() -> None:
    """What reading a rule imports of the rulebook and of the table of quantities."""
    line = (
        "import sys, convlint.rulebook.file; print(*(getattr(m, '__file__', '') for m in list(sys.modules.values())))"
    )
    ran = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    folder = Path(book.__file__).parent
    rooms = (folder, folder.parent / "facts")
    needed = {Path(path) for path in ran.stdout.split() if Path(path).parent in rooms} - {Path(book.__file__)}
    needed = {path for path in needed if path.name not in ("__init__.py", "unknown.py")}
    watched = {Path(path).resolve() for path in book._compilers()}
    assert all(path.exists() for path in watched)
    assert needed <= watched


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="is not a folder of rules"):
        load_rulebook([str(tmp_path / "nowhere")])
    with pytest.raises(RuleError, match=r"holds no rule \(\*\.yaml\)"):
        load_rulebook([str(tmp_path)])
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(RuleError, match="not a regular file"):
        load_rulebook([str(tmp_path)])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (edited("name: odd-channels", "name: other"), "code XY100 is taken by"),
        (edited("code: XY100", "code: XY101"), "name odd-channels is taken by"),
        (edited("XY100", "CL102").replace("odd-channels", "other"), "code CL102 is taken by"),
        (edited("XY100", "XY101").replace("odd-channels", "channel-alignment"), "name channel-alignment is taken by"),
        (
            edited("XY100", "XY101").replace("odd-channels", "other") + "yields_to: [XY109]\n",
            "yields_to: no rule XY109",
        ),
    ],
)
def test_codes_and_names_are_used_once(other: str, message: str, tmp_path: Path) -> None:
    written(tmp_path, RULE, "a.yaml")
    path = written(tmp_path, other, "b.yaml")
    with pytest.raises(RuleError) as caught:
        load_rulebook([str(tmp_path)])
    assert message in caught.value.message
    assert caught.value.path == path
    assert caught.value.line is not None
    assert "yaml:" in caught.value.message or "did you mean" in caught.value.message


def test_a_rule_yields_to_a_code_or_a_name(tmp_path: Path) -> None:
    written(tmp_path, RULE + "yields_to: [CL102, first-layer-channels]\n")
    rule = load_rulebook([str(tmp_path)]).find("odd-channels")
    assert rule.yields_to == {"CL102", "CL103"}


def test_adding_a_rule_touches_one_file(tmp_path: Path) -> None:
    """A copy of the built-in folder with one more file in it holds one more rule, and no code names any rule."""
    folder = tmp_path / "rules"
    shutil.copytree(ROOT / "rules", folder)
    before = Rulebook(linked(map(read_rule, rule_files(str(folder)))))
    written(folder / "channels", RULE)
    after = Rulebook(linked(map(read_rule, rule_files(str(folder)))))
    assert [rule.info.code for rule in after.rules] == [*(rule.info.code for rule in before.rules), "XY100"]
    codes = {rule.info.code for rule in before.rules}
    for path in (ROOT / "convlint").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        quoted = [code for code in codes if f'"{code}"' in text or f"'{code}'" in text]
        assert not quoted, f"{path} hard-codes {quoted}"


def test_rules_are_found_by_code_and_name() -> None:
    rulebook = load_rulebook()
    assert rulebook.find("CL102") is rulebook.find("cl102") is rulebook.find("channel-alignment")
    assert rulebook.find("channel-alignment") is rulebook.find("Channel-Alignment")
    assert rulebook.find("CL1") is None
    assert "did you mean 'channel-alignment'?" in rulebook.suggestion("chanel-alignment")
