"""Archives that two programs would read differently, or that cost more to open than they hold."""

import zipfile
from pathlib import Path
from typing import Any

import pytest

from convlint.model.errors import InputFault
from convlint.readers.bounded_zip import open_zip, read_member

pytestmark = pytest.mark.filterwarnings("ignore:Duplicate name")
ENTRY, END = b"PK\x01\x02", b"PK\x05\x06"


def archive(path: Path, members: dict[str, bytes], *, method: int = zipfile.ZIP_DEFLATED, extra: bytes = b"") -> Path:
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            info.extra, info.compress_type = extra, method
            file.writestr(info, content)
    return path


def patched(path: Path, signature: bytes, offset: int, value: bytes) -> Path:
    """The archive with bytes changed in the last record of that signature."""
    content = bytearray(path.read_bytes())
    at = content.rindex(signature) + offset
    content[at : at + len(value)] = value
    path.write_bytes(content)
    return path


def fault(path: Path, name: str = "a") -> str:
    with pytest.raises(InputFault) as caught, open_zip(str(path), ".keras") as opened:
        read_member(opened, name, 1000)
    return caught.value.message


def test_sound_members_are_read(tmp_path: Path) -> None:
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        path = archive(tmp_path / "a.zip", {"a": b"x" * 1000, "b": b""}, method=method)
        path.write_bytes(b"in front" + path.read_bytes())
        with open_zip(str(path), ".keras") as opened:
            assert read_member(opened, "a", 1000) == b"x" * 1000


def twice(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a", b"1")
        file.writestr("a", b"2")
    return path


def many(path: Path, count: int) -> Path:
    return archive(path, {str(number): b"" for number in range(count)})


CASES: dict[str, tuple[Any, str]] = {
    "two members of one name": (twice, "it has two members 'a'"),
    "two members in one place": (
        lambda path: patched(archive(path, {"a": b"1" * 9, "b": b"2"}), ENTRY, 42, bytes(4)), "in it overlap",
    ),
    "encrypted": (lambda path: patched(archive(path, {"a": b"1"}), ENTRY, 8, b"\x01"), "a in the archive is encrypted"),
    "lzma": (lambda path: archive(path, {"a": b"1"}, method=zipfile.ZIP_LZMA), "is packed by method 14"),
    "bzip2": (lambda path: archive(path, {"a": b"1"}, method=zipfile.ZIP_BZIP2), "is packed by method 12"),
    "too large": (lambda path: archive(path, {"a": b"1" * 1001}), "is 1,001 bytes large; the limit is 1,000"),
    "wrong sum": (lambda path: patched(archive(path, {"a": b"1"}), ENTRY, 16, b"\x01\x02\x03"), "cannot be unpacked"),
    "far away": (
        lambda path: patched(archive(path, {"a": b"1"}), ENTRY, 42, b"\xfe\xff\xff\xff"), "cannot be unpacked",
    ),
    "many members": (lambda path: many(path, 20_001), "it has more than 20,000 members"),
    "very many members": (lambda path: many(path, 90_000), "its table of contents is too large"),
    "long extra": (lambda path: archive(path, {"a": b"1"}, extra=bytes(4) * 300), "a member's entry adds 1,200 bytes"),
    "large directory": (
        lambda path: patched(archive(path, {"a": b"1"}), END, 12, b"\xff\xff\xff\x7f"), "not a .keras file",
    ),
    "a record in its own record": (
        lambda path: patched(archive(path, {"a": b"1"}), END, 16, END), "cannot be unpacked",
    ),
    "empty": (lambda path: path.write_bytes(b""), "no zip archive"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_what_is_refused(name: str, tmp_path: Path) -> None:
    make, words = CASES[name]
    path = tmp_path / "m.keras"
    make(path)
    assert words in fault(path)
