"""The sandbox of an attack: a folder with innocent inputs, streams, the script, and a comparison of files."""

import atexit
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

FIRST, LAST = "a_first.yaml", "z_last.yaml"
NAMES = (FIRST, LAST)
# C=62 is no multiple of 8: a finding that is always there
INNOCENT = {
    name: (
        "version: 1\ntarget: [a100]\ndefaults: { N: 256, H: 56, W: 56, dtype: fp16, layout: NHWC }\nlayers:\n"
        f"  - {{ name: {name[2:-5]}, C: 62, K: 128, R: 3, S: 3, padding: 1, first: false }}\n"
    )
    for name in NAMES
}
_LARGE = 16 << 20
# what a console script is; the folder of this file, and not the current one, is where Python looks first
_SCRIPT = "import sys\nfrom convlint.__main__ import main\nif __name__ == '__main__':\n    sys.exit(main())\n"

Entry = tuple[object, ...]


def snapshot(folder: Path) -> dict[str, Entry]:
    """Kind, mode, link target and content of everything below `folder`; of large files, size and time."""
    found: dict[str, Entry] = {}
    for here, folders, files in os.walk(folder, followlinks=False):
        for name in (*folders, *files):
            path = os.path.join(here, name)
            with suppress(FileNotFoundError):  # gone since it was listed: an attack that replaces a file goes on
                found[os.path.relpath(path, folder)] = _entry(path)
    return found


def _entry(path: str) -> Entry:
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return "link", os.readlink(path)
    if not stat.S_ISREG(status.st_mode):
        return ("other", status.st_mode)
    if status.st_size > _LARGE:
        return "large", status.st_mode, status.st_size, status.st_mtime_ns
    mode = status.st_mode & 0o7777
    try:
        # it may be a pipe by now, which nobody writes to
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:
            content = hashlib.sha256(stream.read()).hexdigest()
    except OSError:
        content = f"unreadable, {status.st_size}, {status.st_mtime_ns}"
    return "file", mode, content


def changes(before: dict[str, Entry], after: dict[str, Entry], allowed: Iterable[str]) -> list[str]:
    """Paths that came, went or differ, but for those allowed (folders end in /) and Python's byte code."""
    permitted = set(allowed)
    below = tuple(path for path in permitted if path.endswith("/"))
    return sorted(
        path
        for path in before.keys() | after.keys()
        if before.get(path) != after.get(path)
        and path not in permitted
        and not f"{path}/".startswith(below or ("\0",))
        and "__pycache__" not in path
    )


def source(kind: bytes | str, folder: Path) -> tuple[int, ...]:
    """Standard input: the descriptor to read from, and the end that keeps it open."""
    if kind == "open":
        return os.pipe()
    (folder / "in").write_bytes(kind if isinstance(kind, bytes) else b"")
    return (os.open(folder / "in", os.O_RDONLY),)


def sink(kind: str, path: Path) -> tuple[int, ...]:
    """Standard output or error: a descriptor of the file, of what is always full, or of a pipe that nobody reads."""
    path.write_bytes(b"")
    if kind == "full":
        return (os.open("/dev/full", os.O_WRONLY),)
    if kind == "broken":
        reading, writing = os.pipe()
        os.close(reading)
        return (writing,)
    return (os.open(path, os.O_WRONLY),)


@cache
def shared() -> Path:
    """A folder for what all runs share: the cache of rules, the script."""
    folder = tempfile.mkdtemp(prefix="convlint-attack-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@cache
def script() -> Path:
    """The command, as a console script is."""
    path = shared() / "bin" / "convlint"
    path.parent.mkdir()
    path.write_text(_SCRIPT, encoding="utf-8")
    return path
