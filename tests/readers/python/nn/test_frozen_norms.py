"""Which code holds norms in evaluation, so that a bias before them is not cancelled."""

import ast
from pathlib import Path

import pytest

from convlint.readers.python.evaluator.machine import Machine
from convlint.readers.python.imports import ProjectImports
from convlint.readers.python.nn.frameworks import Frameworks
from convlint.readers.python.nn.frozen_norms import FrozenNorms, freezes_norms
from convlint.readers.python.project import Project
from convlint.readers.python.source_file import SourceFile

PARTS = (
    "from torch import nn\nclass A(M):\n def __init__(self):\n"
    "  self.w = nn.Sequential(nn.Conv2d(8, 8, 1), nn.Dropout(0.1), nn.BatchNorm2d(8))\n  {}"
)
TRAIN = " def train(self, mode=True):\n  super().train(mode)\n"


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
        "def f(m):\n if isinstance(m, nn.BatchNorm2d): m.train(False)",
        "def f(m):\n if isinstance(m, nn.BatchNorm2d): m.train(mode=False)",
        "def f(m):\n if isinstance(m, nn.BatchNorm2d): m.training = False",
        "def f(x):\n seq = nn.Sequential(c, nn.BatchNorm2d(8))\n seq.eval()\n return seq(x)",
        "n = nn.BatchNorm2d(8) if kind else nn.BatchNorm2d(8).eval()",
        PARTS.format("self.w[2].eval()"),
        PARTS.format("self.w[-1].eval()"),
        PARTS.format("self.w[k].eval()"),
        PARTS.format("self.w[0].eval()\n  self.w = make()"),
        PARTS.format("self.w[3].eval()"),
        PARTS.format(
            "pass\n def train(self, mode=True):\n  super().train(mode)\n  self.w[1].eval()\n  self.w[2].eval()"
        ),
        "m = keras.Model(i, o)\nm.trainable = False",
        "bn = layers.BatchNormalization()\nx = bn(x)\nbn.trainable = 0",
        "for each in m.layers:\n each.trainable = False",
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
        "def f(m):\n if isinstance(m, nn.BatchNorm2d): m.train()",
        "def f(m):\n if isinstance(m, nn.BatchNorm2d): m.train(True)",
        "def f(m):\n if isinstance(m, nn.BatchNorm2d): m.training = True",
        "class A(M):\n def eval(self):\n  self.training = False\n def train(self, mode=True):\n  super().train(mode)",
        "def f(x):\n net = nn.Sequential(c, nn.BatchNorm2d(8))\n net.train()\n fit(net)\n net.eval()",
        "def f(x):\n net = nn.Sequential(c, nn.Dropout())\n net.eval()",
        "if m.eval('bn') and pd.eval(norm): pass",
        PARTS.format("self.w[0].eval()"),
        PARTS.format(f"pass\n{TRAIN}  self.w[1].eval()"),
        PARTS.format("self.w[1].eval()").replace(".w", ".norm"),
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
    frozen = FrozenNorms(Machine(project, Frameworks()), ProjectImports(project))
    assert not frozen.in_file(str(path))
    before = project.asked
    assert not any(frozen.in_file(str(path)) for _ in range(100))
    assert project.asked == before


FREEZES = "def freeze(net):\n for m in net.modules():\n  if isinstance(m, nn.BatchNorm2d): m.eval()\n"


@pytest.mark.parametrize(
    ("files", "held"),
    [
        ({"net.py": "", "train.py": "from net import Net\n" + FREEZES}, True),
        ({"net.py": "from base import freeze", "base.py": FREEZES}, True),
        (
            {
                "net.py": "from base import freeze",
                "base.py": "def fix(m):\n name = m.__class__.__name__\n if name.find('BatchNorm') != -1: m.eval()",
            },
            True,
        ),
        (
            {
                "net.py": "",
                "train.py": "import net\nfor name, m in f.named_modules():\n if 'bn' in name: m.train(False)",
            },
            True,
        ),
        (
            {
                "models/net.py": "class Net:\n pass\n",
                "models/__init__.py": "from .net import Net",
                "train.py": "from models import Net\n" + FREEZES,
            },
            True,
        ),
        ({"net.py": "", "other.py": "", "train.py": "from other import Net\n" + FREEZES}, False),
        ({"net.py": "", "tests/test_net.py": "from net import Net\n" + FREEZES}, False),
        ({"net.py": "", "train.py": "import net\nif args.norm == 'bn':\n model.eval()"}, False),
        ({"net.py": "", "train.py": "import net\nmodel.eval()"}, False),
    ],
)
def test_norms_that_another_file_holds(here: Path, files: dict[str, str], held: bool) -> None:
    for name, text in files.items():
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text(text)
    path = next(iter(files))
    project = Project(".", [path])
    assert FrozenNorms(Machine(project, Frameworks()), ProjectImports(project)).in_file(path) is held


def test_files_that_freeze_nothing_are_not_run(here: Path) -> None:
    """Among them may be all of a neighbour's repository."""
    (here / "net.py").write_text("class Net:\n pass\n")
    (here / "other.py").write_text("import large\nif args.norm == 'bn':\n model.eval()")
    (here / "large.py").write_text("x = 1\n")
    project = Project(".", ["net.py"])
    machine = Machine(project, Frameworks())
    assert not FrozenNorms(machine, ProjectImports(project)).in_file("net.py")
    assert set(machine.modules.scopes) == {"net.py"}
