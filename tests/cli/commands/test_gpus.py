"""`convlint gpus`: the table at any width, and one GPU with its sources."""

import re

import pytest
from checked_files import prepared
from command_line import convlint

from convlint.gpus.gpu import gpu_names

folder = pytest.fixture(autouse=True)(prepared)


def test_the_table_of_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    table = convlint("gpus")
    assert table.code == 0
    assert any(line.startswith("a100-80gb-sxm") for line in table.out.splitlines())
    assert len(table.out.splitlines()) == len(gpu_names()) + 3
    for width in (80, 100, 120, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        narrow = convlint("gpus").out
        assert max(map(len, narrow.splitlines())) <= width
        assert re.sub(r"\s+", " ", narrow) == re.sub(r"\s+", " ", table.out)
        assert set(gpu_names()) <= {line.partition(" ")[0] for line in narrow.splitlines()}
    one = convlint("gpus", "a100")
    assert one.code == 0
    assert "source:" in one.out
    assert "108" in one.out
