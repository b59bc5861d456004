"""Whether a norm stands behind a convolution, where Sequentials are made on conditions or lost from sight."""

from __future__ import annotations

from pathlib import Path

import pytest

from convlint.readers.python.nn.reading import read_layers
from convlint.readers.python.programs.closure import Imports
from convlint.readers.python.project import Project

HEAD = "from torch import nn\nfrom elsewhere import wrapped, known\n"


def follows(tmp_path: Path, text: str) -> list[bool | None]:
    path = tmp_path / "net.py"
    path.write_text(HEAD + text)
    layers = read_layers(Imports(Project(str(tmp_path), [str(path)])), [str(path)]).layers
    return [each.layer.norm_follows for each in layers]


def function(*lines: str, parameters: str = "n") -> str:
    return f"def make({parameters}):\n" + "".join(f"    {line}\n" for line in lines)


BLOCK = "net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((BLOCK, "if n:", "    net = wrapped(net)", "return net"), [True]),
        ((BLOCK, "return wrapped(net)"), [True]),
        ((f"if n:\n        {BLOCK}", f"else:\n        {BLOCK}", "return net"), [True, True]),
        (("net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())", "return wrapped(net)"), [False]),
        (("net = nn.Sequential(nn.Conv2d(3, 8, 3), wrapped(8))", "return wrapped(net)"), [None]),
        # changed after it was made
        ((BLOCK, "net[1] = nn.Identity()", "return wrapped(net)"), [None]),
        ((BLOCK, "net.insert(1, nn.ReLU())", "return wrapped(net)"), [None]),
        ((BLOCK, "net._modules['1'] = nn.Identity()", "return wrapped(net)"), [None]),
        ((BLOCK, "if n:", "    del net[1]", "return wrapped(net)"), [None]),
        ((BLOCK, "if n:", "    net = nn.Sequential(*[each for each in net if not isinstance(each, nn.BatchNorm2d)])",
          "return wrapped(net)"), [None]),
        ((BLOCK, "net.append(nn.ReLU())", "return wrapped(net)"), [True]),
        # the convolution is read elsewhere too, or may be
        (("conv = nn.Conv2d(3, 8, 3)", "net = nn.Sequential(conv, nn.BatchNorm2d(8))", "known.conv = conv",
          "return wrapped(net)"), [None]),
        (("conv = nn.Conv2d(3, 8, 3)", "net = conv", "if n:", "    net = nn.Sequential(conv, nn.BatchNorm2d(8))",
          "return wrapped(net)"), [None]),
        (("conv = nn.Conv2d(3, 8, 3)", "if n:", "    net = nn.Sequential(conv, nn.BatchNorm2d(8))",
          "    return wrapped(net)", "return wrapped(2)"), [None]),
        (("conv = nn.Conv2d(3, 8, 3)", "if n:", "    return wrapped(nn.Sequential(conv, nn.BatchNorm2d(8)))",
          "return wrapped(nn.Sequential(conv, nn.ReLU()))"), [None]),
        ((BLOCK, "known.first = net[0]", "return wrapped(net)"), [None]),
    ],
)  # fmt: skip
def test_a_sequential_that_goes_where_nobody_looks(
    tmp_path: Path, lines: tuple[str, ...], expected: list[bool | None]
) -> None:
    assert follows(tmp_path, function(*lines)) == expected


@pytest.mark.parametrize(
    ("add", "then", "expected"),
    [
        ("net.append(nn.BatchNorm2d(8))", "nn.ReLU()", None),
        ("net.add_module('bn', nn.BatchNorm2d(8))", "nn.ReLU()", None),
        ("net.add_module('0?', nn.BatchNorm2d(8))", "nn.ReLU()", None),
        ("net.append(nn.ReLU())", "nn.BatchNorm2d(8)", None),
        ("pass", "nn.BatchNorm2d(8)", True),
    ],
)
def test_a_part_that_only_one_path_adds_may_stand_between(
    tmp_path: Path, add: str, then: str, expected: bool | None
) -> None:
    lines = ("net = nn.Sequential(nn.Conv2d(3, 8, 3))", "if n:", f"    {add}", f"net.append({then})", "return net")
    network = """
class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.net = make(n)

    def forward(self, x):
        return self.net(x)
"""
    assert follows(tmp_path, function(*lines) + network) == [expected]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("nn.BatchNorm2d(8)", "nn.SyncBatchNorm(8)", True),
        ("nn.BatchNorm2d(8)", "nn.InstanceNorm2d(8)", True),
        ("nn.BatchNorm2d(8)", "nn.GroupNorm(2, 8)", None),
        ("nn.BatchNorm2d(8)", "nn.Identity()", None),
        ("nn.ReLU()", "nn.LeakyReLU(0.1)", False),
    ],
)
def test_one_of_two_layers(tmp_path: Path, first: str, second: str, expected: bool | None) -> None:
    body = (f"if n:\n        after = {first}", f"else:\n        after = {second}")
    assert follows(tmp_path, function(*body, "return nn.Sequential(nn.Conv2d(3, 8, 3), after)")) == [expected]


CALLED_BY_OTHERS = """
class Net(nn.Module):
    def __init__(self, n):
        super().__init__()

        def subnet(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3), nn.BatchNorm2d(b))

        {keeps}
"""


@pytest.mark.parametrize(
    ("keeps", "expected"),
    [
        ("self.make = subnet", [True]),
        ("self.net = wrapped(n, subnet)", [True]),
        ("self.net = wrapped(lambda n: subnet(n, n))", [True]),
        ("self.net = subnet(3, 8)", [True]),
        ("self.net = subnet(3, 8)[:1]", [None]),
    ],
)
def test_a_function_that_others_call(tmp_path: Path, keeps: str, expected: list[bool | None]) -> None:
    assert follows(tmp_path, CALLED_BY_OTHERS.format(keeps=keeps)) == expected
