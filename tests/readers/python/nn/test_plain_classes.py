"""Classes that are not run by themselves, since their file makes them with everything known."""

from __future__ import annotations

from pathlib import Path

import pytest

from convlint.readers.python.nn import roots
from convlint.readers.python.nn.reading import LayersRead, read_layers
from convlint.readers.python.programs.closure import Imports
from convlint.readers.python.project import Project

HEAD = "import torch\nfrom torch import nn\nfrom torch.nn import Conv2d, BatchNorm2d\n\n"
BLOCK = """class Block(nn.Module):
    def __init__(self, C, K, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(C, K, 3, stride, 1)
        self.norm = nn.BatchNorm2d(K)

    def forward(self, x):
        return self.norm(self.conv(x))


"""
NET = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = Block(64, 128, 2), Block(128, 62)

    def forward(self, x):
        return self.two(self.one(x))
"""


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The roots that were run, by name."""
    names: list[str] = []
    real = roots._run

    def run(machine, library, root, *rest, **options):  # type: ignore[no-untyped-def]
        names.append(root.name)
        return real(machine, library, root, *rest, **options)

    monkeypatch.setattr(roots, "_run", run)
    return names


def read(folder: Path, **files: str) -> LayersRead:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(HEAD + text)
    paths = [str(folder / f"{name}.py") for name in files]
    return read_layers(Imports(Project(str(folder), paths)), paths)


def widths(read: LayersRead) -> list[tuple[int | None, int | None, int | None, bool | None]]:
    return [(each.layer.C, each.layer.K, each.layer.U, each.layer.norm_follows) for each in read.layers]


def test_what_the_file_makes_of_a_class_is_enough(tmp_path: Path, ran: list[str]) -> None:
    found = read(tmp_path, net=BLOCK + NET)
    assert ran == ["Net"]
    assert widths(found) == [(64, 128, 2, True), (128, 62, 1, True)]
    assert (found.constructions, found.known) == (1, 1)


def test_a_class_that_nothing_makes_is_run(tmp_path: Path, ran: list[str]) -> None:
    found = read(tmp_path, net=BLOCK)
    assert ran == ["Block", "Block"]  # with parameters that nobody knows, and at their defaults
    assert [each.layer.norm_follows for each in found.layers] == [True]


def test_one_that_is_made_in_another_file_is_run(tmp_path: Path, ran: list[str]) -> None:
    """Files may be read by several processes, of which none knows what the others saw."""
    read(tmp_path, block=BLOCK, net="from block import Block\n\n" + NET)
    assert "Block" in ran


OTHERS = (
    "def make(C, K):\n    return nn.Conv2d(C, K, 3)\n\n\nclass Base(nn.Module):\n    pass\n\n\nregister = print\n\n\n"
)
START = "super().__init__()\n        self.conv"


@pytest.mark.parametrize(
    "changed",
    [
        (START, START.replace("self.conv", "if K > 8:\n            K = 8\n        self.conv")),
        ("return self.norm(self.conv(x))", "return self.conv(x) if self.training else self.norm(self.conv(x))"),
        ("nn.Conv2d(C, K, 3, stride, 1)", "make(C, K)"),
        ("class Block", "@register\nclass Block"),
        ("Block(nn.Module)", "Block(Base)"),
        ("stride=1):", "stride=1, **more):"),
        ("self.norm = nn.BatchNorm2d(K)", "self.norm = nn.Sequential(*[nn.BatchNorm2d(K) for _ in range(2)])"),
    ],
    ids=["decides", "decides in forward", "calls", "is decorated", "has another base", "takes anything", "lists"],
)
def test_a_class_that_does_more_is_run(tmp_path: Path, ran: list[str], changed: tuple[str, str]) -> None:
    assert changed[0] in BLOCK
    read(tmp_path, net=OTHERS + BLOCK.replace(*changed) + NET)
    assert "Block" in ran


def test_a_class_that_is_made_with_a_width_that_nobody_knows_is_run(tmp_path: Path, ran: list[str]) -> None:
    made = NET.replace("Block(64, 128, 2), Block(128, 62)", "Block(width, 128, 2), Block(128, width)")
    read(tmp_path, net=BLOCK + made.replace("(self):", "(self, width):"))
    assert ran.count("Block") == 2


def test_a_class_with_a_width_by_default_is_run(tmp_path: Path, ran: list[str]) -> None:
    found = read(tmp_path, net=BLOCK.replace("C, K, stride=1", "C=62, K=64, stride=1") + NET)
    assert ran.count("Block") == 2
    assert (62, 64, 1, True) in widths(found)


def test_a_class_that_is_made_on_a_condition_is_run(tmp_path: Path, ran: list[str]) -> None:
    made = NET.replace("(self):", "(self, deep):").replace("        self.one", "        if deep:\n            self.one")
    read(tmp_path, net=BLOCK + made)
    assert ran.count("Block") == 2


def test_a_class_whose_layers_no_forward_pass_runs_is_run(tmp_path: Path, ran: list[str]) -> None:
    read(tmp_path, net=BLOCK + NET[: NET.index("    def forward")])
    assert ran.count("Block") == 2
