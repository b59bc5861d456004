"""Runs `convlint sweep` as the tests of its tables and images do."""

import pytest
from command_line import Ran, convlint

# the layer of the guide's Figure 4, but for its batch
FIG4 = ["-C", "4096", "-H", "16", "-W", "16", "-K", "256", "-R", "3", "-S", "3", "--pad", "1",
        "--dtype", "fp16", "--layout", "NHWC", "--gpu", "a100"]  # fmt: skip


def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting from the environment that changes what is printed."""
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


def sweep(*arguments: str) -> Ran:
    return convlint("sweep", *arguments)
