"""Zip archives by construction: cut, doubled, overlapping, encrypted, and bombs."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .seeds import archive, json_seed, keras, pt2

DEEP = "[" * 100_000 + "]" * 100_000


def containers(member: str, kind: str) -> Iterator[tuple[str, Callable[[], Any], bool]]:
    whole = pt2 if kind == "pt2" else keras
    document = "program.json" if kind == "pt2" else "config.json"
    valid = whole(json_seed(document))
    """What is wrong with the archive itself, or with the size of what is in it."""
    yield "empty_file", lambda: b"", False
    yield "no_zip", lambda: b"PK\x05\x06" * 30, False
    yield "no_members", lambda: archive({}), False
    for part in (3, 2):
        yield f"cut_to_one_{part}", lambda part=part: valid[: len(valid) // part], False
    yield "cut_at_the_end", lambda: valid[:-10], False
    yield "bomb", lambda: _bomb(member), True
    yield "not_json", lambda: whole(b"\x80\x04]q"), False
    yield "deep_json", lambda: whole(DEEP), False
    yield "duplicate_members", lambda: _twice(member, whole), False
    yield "overlapping_members", lambda: valid.replace(b"PK\x01\x02", b"PK\x01\x02", 1)[:-22] + valid[-60:], False
    yield "10000_members", lambda: archive({f"models/{i}.json": "" for i in range(10_000)}), True
    yield (
        "names_that_climb",
        lambda: archive({f"../../{member}": "{}", f"/{member}": "{}", f"::error::x/{member}": "{}"}),
        False,
    )
    yield (
        "encrypted",
        lambda: valid.replace(b"PK\x01\x02\x14\x03\x14\x00\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01\x00"),
        False,
    )
    yield "strange_method", lambda: valid.replace(b"\x08\x00", b"\x63\x00"), False
    yield "sparse_3_gb", lambda: sparse(3 << 30, valid), True
    for name, opened in {"lists": "[", "objects": '{"a":'}.items():
        yield f"64_mb_of_{name}", lambda opened=opened: whole(opened * ((60 << 20) // len(opened))), True
    yield "flat_2000000_values", lambda: whole("[" + "1," * 2_000_000 + "1]"), True
    yield "flat_1400000_objects", lambda: whole("[" + "{}," * 1_400_000 + "{}]"), True


def _twice(member: str, whole: Callable[[Any], bytes]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(whole("{}"))
        with zipfile.ZipFile(path, "a") as made, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made.writestr(member, "[]")

    return write


def _bomb(member: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made, made.open(member, "w") as stream:
            for _ in range(300):
                stream.write(bytes(1 << 20))

    return write


def sparse(size: int, start: bytes) -> Callable[[Path], None]:
    """A file of that size that takes no room beyond its start."""

    def write(path: Path) -> None:
        path.write_bytes(start)
        with path.open("r+b") as stream:
            stream.truncate(size)

    return write
