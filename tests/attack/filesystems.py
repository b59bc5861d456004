"""Hostile file systems: planted or unusable caches, and inputs that are not regular files."""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from .configs import NO_FILES, sparse
from .contract import Attack, command, run
from .sandbox import FIRST, INNOCENT

READ = frozenset({0, 1, 3})


def attacks() -> Iterator[Attack]:
    """All of them."""
    yield from _caches()
    yield from _inputs()


def _caches() -> Iterator[Attack]:
    """A cache of rules that cannot be used, or that somebody else has put there: the report stays the same."""
    for name, make in {
        "no_folder": lambda path: path.write_text("a file"), "full": lambda path: path.symlink_to("/dev/full"),
        "in_proc": lambda path: path.symlink_to("/proc/self/fd"), "loop": lambda path: path.symlink_to(path.name),
        "read_only": lambda path: path.mkdir(mode=0o500), "in_null": lambda path: path.symlink_to("/dev/null"),
    }.items():  # fmt: skip
        yield _cached(f"cache_{name}", partial(at, "cache", make))
    for name, spoil in {
        **NO_FILES, "sparse_3_gb": sparse, "garbage": lambda path: path.write_bytes(os.urandom(50_000)),
        "flipped": lambda path: path.write_bytes(_flipped(_SEED.read())),
        "cut": lambda path: path.write_bytes(_SEED.read()[:-100]),
        "no_rules": lambda path: path.write_bytes(_SEED.read().replace(b"channel-alignment", b"channel-alignmenT")),
        "any_mode": lambda path: (path.write_bytes(_SEED.read()), path.chmod(0o777), path.parent.chmod(0o777)),
    }.items():  # fmt: skip
        yield _cached(f"cache_planted_{name}", partial(_planted, spoil))


def _cached(name: str, make: Callable[[Path], object]) -> Attack:
    env = {"XDG_CACHE_HOME": "{work}/cache"}
    return Attack(name=name, make=make, env=env, exits=frozenset({1}), outputs=("cache/",))


def _inputs() -> Iterator[Attack]:
    """Inputs that are no plain files, far down, many, or changing while they are read."""
    for suffix in (".yaml", ".onnx", ".pt2", ".keras", ".safetensors", ".safetensors.index.json", ".pt"):
        for name, make in NO_FILES.items():
            path = f"m_{name}{suffix}"
            yield Attack(
                name=f"input_{name}{suffix}", make=partial(at, path, make), inputs=(path,), exits=frozenset({3})
            )
    for name, make in {"deep": _deep, "many": _many, "loops": _loops, "unreadable": _unreadable}.items():
        yield command(f"folder_{name}", "check", "-o", "json", ".", make=make, exits=READ)
    changing = ("racing.yaml", "racing.new")
    yield Attack(name="replaced_while_read", make=_racing, inputs=changing[:1], outputs=changing, exits=READ)
    yield Attack(name="path_too_long", inputs=("a" * 5000 + ".yaml", "/".join("a" * 5000)), exits=frozenset({3}))


class _Seed:
    """The cache that a run of the real thing leaves; read once."""

    content: bytes | None = None
    name = "rules"

    def read(self) -> bytes:
        if self.content is None:
            with tempfile.TemporaryDirectory() as folder:
                run(Attack(name="fills the cache", argv=("check", FIRST), env={"XDG_CACHE_HOME": folder}), Path(folder))
                kept = [path for path in (Path(folder) / "convlint").rglob("*") if path.is_file()]
                self.content, self.name = (kept[0].read_bytes(), kept[0].name) if kept else (b"", "rules")
        return self.content


_SEED = _Seed()


def _flipped(content: bytes) -> bytes:
    made = bytearray(content)
    for at in range(0, len(made), 97):
        made[at] ^= 0x55
    return bytes(made)


def at(name: str, make: Callable[[Path], object], folder: Path) -> None:
    """Makes something of that name."""
    make(folder / name)


def _planted(spoil: Callable[[Path], object], folder: Path) -> None:
    """Something in the place of the cache's own file, which only its owner should be able to write."""
    _SEED.read()
    place = folder / "cache" / "convlint"
    place.mkdir(parents=True)
    spoil(place / _SEED.name)


def _deep(folder: Path) -> None:
    """As deep as a path may be long."""
    deepest = folder / "/".join(["d"] * 900)
    deepest.mkdir(parents=True)
    for place in (deepest, *list(deepest.parents)[:800:200]):
        (place / "net.yaml").write_text(INNOCENT[FIRST], encoding="utf-8")


def _many(folder: Path) -> None:
    for number in range(1000):
        (folder / f"f{number}.yaml").write_text("jobs: []\n", encoding="utf-8")


def _loops(folder: Path) -> None:
    for number in range(10):
        (folder / f"l{number}").symlink_to(".")
        (folder / f"l{number}.yaml").symlink_to(f"l{(number + 1) % 10}.yaml")
    os.mkfifo(folder / "fifo.yaml")
    (folder / "folder.yaml").mkdir()


def _unreadable(folder: Path) -> None:
    (folder / "closed.yaml").write_text(INNOCENT[FIRST], encoding="utf-8")
    (folder / "closed.yaml").chmod(0)


def _racing(folder: Path) -> None:
    """One file that another process keeps replacing: a spec, a FIFO, nothing."""
    path, new = folder / "racing.yaml", folder / "racing.new"
    path.write_text(INNOCENT[FIRST], encoding="utf-8")

    def replace() -> None:
        deadline = time.monotonic() + 1.5
        while time.monotonic() < deadline and folder.exists():
            try:
                for make in (
                    lambda: new.write_text(INNOCENT[FIRST] * 2),
                    lambda: os.mkfifo(new),
                    lambda: new.write_text(""),
                ):
                    make()
                    new.replace(path)
                    time.sleep(0.0005)
            except OSError:
                return

    threading.Thread(target=replace, daemon=True).start()
