"""Which code holds norms in evaluation, so that a bias before them is not cancelled."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from convlint.readers.python.nn.frozen_norms import FrozenNorms
from convlint.readers.python.nn.held_norms import freezes_norms
from convlint.readers.python.project import Project
from convlint.readers.python.source_file import SourceFile


@pytest.mark.parametrize(
    "code",
    [
        "class A(M):\n def train(self, mode=True):\n  super().train(mode)\n  self._freeze()\n"
        " def _freeze(self):\n  for m in self.parts(): m.eval()",
        "class A(M):\n def train(self, on=True):\n  super().train(on)\n  self.n.eval()",
        "class A(M):\n def __init__(self):\n  self.bn1.eval()",
        "class A(M):\n def __init__(self):\n  self.n = nn.BatchNorm2d(8)\n  self.n.eval()",
        "def set_bn_eval(m):\n if isinstance(m, nn.modules.batchnorm._BatchNorm): m.eval()",
        "def f(m):\n if m.__class__.__name__.find('BatchNorm') != -1:\n  m.eval()",
        "def f(ms):\n for m in ms:\n  if isinstance(m, (nn.Dropout, nn.SyncBatchNorm)):\n   m.eval()",
        "[m.eval() for m in ms if isinstance(m, nn.BatchNorm2d)]",
    ],
)
def test_norms_that_are_held(code: str) -> None:
    assert freezes_norms(ast.parse(code))


@pytest.mark.parametrize(
    "code",
    [
        "net.eval()",
        "def train(net):\n net.train()\n net.eval()",
        "class T:\n def train(self):\n  self.model.train()\n  self.model.eval()",
        "class T:\n def fit(self, mode):\n  self.model.eval()",
        "class A(M):\n def train(self, mode=True):\n  super().train(mode)",
        "class A(M):\n def __init__(self):\n  self.n = nn.BatchNorm2d(8)\n  self.teacher.eval()",
        "def f(m):\n if isinstance(m, nn.BatchNorm2d): m.weight.requires_grad = False",
        "def f(m):\n if isinstance(m, nn.Dropout): m.eval()",
        "if m.eval('bn') and pd.eval(norm): pass",
    ],
)
def test_norms_that_are_not(code: str) -> None:
    assert not freezes_norms(ast.parse(code))


class _Counting(Project):
    asked = 0

    def file(self, path: str) -> SourceFile | None:
        self.asked += 1
        return super().file(path)


def test_a_file_is_looked_through_once(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text("from nets import Base\nclass Net(Base):\n pass\n")
    project = _Counting(str(tmp_path), [str(path)])
    frozen = FrozenNorms(project)
    assert not frozen.in_file(str(path))
    before = project.asked
    assert not any(frozen.in_file(str(path)) for _ in range(100))
    assert project.asked == before
