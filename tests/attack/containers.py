"""Hostile zip archives: truncated, with duplicate or overlapping members, encrypted, and zip bombs."""

import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .seeds import archive, json_seed, keras, pt2

DEEP = "[" * 100_000 + "]" * 100_000


def containers(member: str, kind: str) -> Iterator[tuple[str, Callable[[], Any], bool]]:
    """What is wrong with the archive itself, or with the size of what is in it; whether that needs much."""
    whole, document = (pt2, "program.json") if kind == "pt2" else (keras, "config.json")
    valid = whole(json_seed(document))
    climbing = {f"../../{member}": "{}", f"/{member}": "{}", f"::error::x/{member}": "{}"}
    small: dict[str, Callable[[], Any]] = {
        "empty_file": lambda: b"",
        "no_zip": lambda: b"PK\x05\x06" * 30,
        "no_members": lambda: archive({}),
        "cut_to_one_3": lambda: valid[: len(valid) // 3],
        "cut_to_one_2": lambda: valid[: len(valid) // 2],
        "cut_at_the_end": lambda: valid[:-10],
        "not_json": lambda: whole(b"\x80\x04]q"),
        "deep_json": lambda: whole(DEEP),
        "duplicate_members": lambda: _twice(member, whole),
        "overlapping_members": lambda: valid.replace(b"PK\x01\x02", b"PK\x01\x02", 1)[:-22] + valid[-60:],
        "names_that_climb": lambda: archive(climbing),
        # bit 0 of the flags in the central directory
        "encrypted": lambda: valid.replace(b"PK\1\2\x14\3\x14\0\0\0", b"PK\1\2\x14\3\x14\0\1\0"),
        "strange_method": lambda: valid.replace(b"\x08\x00", b"\x63\x00"),
    }
    large: dict[str, Callable[[], Any]] = {
        "bomb": lambda: _bomb(member),
        "10000_members": lambda: archive({f"models/{i}.json": "" for i in range(10_000)}),
        "sparse_3_gb": lambda: sparse(3 << 30, valid),
        "64_mb_of_lists": lambda: whole("[" * (60 << 20)),
        "64_mb_of_objects": lambda: whole('{"a":' * ((60 << 20) // 5)),
        "flat_2000000_values": lambda: whole("[" + "1," * 2_000_000 + "1]"),
        "flat_1400000_objects": lambda: whole("[" + "{}," * 1_400_000 + "{}]"),
    }
    yield from ((name, make, False) for name, make in small.items())
    yield from ((name, make, True) for name, make in large.items())


def _twice(member: str, whole: Callable[[Any], bytes]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(whole("{}"))
        with zipfile.ZipFile(path, "a") as made, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made.writestr(member, "[]")

    return write


# helpers/archives.py has one too, but `python -m attack` does not have the helpers on its path
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
