"""A project as most are: a network in Python, an entry in pyproject.toml, and no spec."""

from pathlib import Path

NET = """\
from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Conv2d(64, width, 3, padding=1), nn.Conv2d(width, 256, 3, padding=1)

    def forward(self, x):
        return self.second(self.first(x).relu())


def net():
    return Net(60)
"""
ENTRY = """\
[project]
name = "mynet"
version = "1.0"

[[tool.convlint.models]]
name = "net"
model = "mynet.net:net"
inputs = "64x64x56x56:channels_last"
channels_last = true
autocast = "fp16"
runtime = { compile = true }  # the training script calls torch.compile
"""


def torch_project(folder: Path) -> None:
    """Writes it into `folder`."""
    (folder / "mynet").mkdir()
    (folder / "mynet" / "__init__.py").touch()
    (folder / "mynet" / "net.py").write_text(NET)
    (folder / "pyproject.toml").write_text(ENTRY)
