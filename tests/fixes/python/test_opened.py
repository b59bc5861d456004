"""A file is opened once, and a reason stands for one that cannot be."""

from __future__ import annotations

from convlint.fixes.python.opened import Sources

FILES = {"net.py": b"from torch import nn\n", "broken.py": b"def f(:\n"}


def test_each_file_is_opened_once() -> None:
    asked: list[str] = []

    def read(path: str) -> bytes | None:
        asked.append(path)
        return FILES.get(path)

    sources = Sources(read)
    first = sources.of("net.py")
    assert not isinstance(first, str)
    assert first[0].raw == FILES["net.py"]
    assert sources.of("net.py") is first
    assert sources.of("gone.py") == sources.of("gone.py") == "the file cannot be read"
    assert sources.of("broken.py") == "not Python: invalid syntax (<unknown>, line 1)"
    assert asked == ["net.py", "gone.py", "broken.py"]
