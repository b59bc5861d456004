"""How a file is cut into segments, and which of them a program may reach."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cases import slow_contract
from checkout import ROOT
from training_scripts import LOOP, program, programs

from convlint.readers.python.imports import ProjectImports
from convlint.readers.python.programs.running import Relevant, Runs
from convlint.readers.python.programs.segments import Reach, segments
from convlint.readers.python.programs.unit import Units
from convlint.readers.python.project import Project

TEXT = b'''import a
x = 1


@register
def first(
    y,
):
    """Text
at the margin.
    """
    return y


class Net(Base):
    k = 2

    @property
    def size(self):
        def inner():
            pass
        return 3

    z = 4

if x:
    def guarded():
        pass
'''


def test_a_file_is_cut_by_indentation(tmp_path: Path) -> None:
    imports = ProjectImports(Project(str(tmp_path), ()))
    found = segments(Units(imports, Runs(imports, Relevant(imports)).machine), "a.py", TEXT)
    assert [(each.name, each.kind, each.line) for each in found] == [
        ("", "module", 0),
        ("first", "function", 6),
        ("Net", "class", 15),
        ("size", "function", 19),
    ]
    assert found[1].handed_over
    assert not found[3].handed_over
    assert b"guarded" in found[0].words  # what could be of two is of the module
    assert b"import" not in found[0].words
    assert b"inner" in found[3].words
    assert b"z" in found[2].words
    assert sum(len(each.lines) for each in found) == len(TEXT.splitlines())


SHARED = {
    "a.py": "def one(): two()\ndef two(): pass\ndef three(): pass\nclass Net:\n    def go(self): three()\n",
    "b.py": "import a\ndef run(): later()\nnet = a.Net\n",
    "c.py": "def later(): pass\ndef unused(): pass\n",
    "e1.py": "import a, b\na.one()\n",
    "e2.py": "import a, b, c\nb.run()\n",
    "e3.py": "import a, b, c\nnet.go()\n",
    "e4.py": "import a\n",
}


@pytest.mark.parametrize("order", [("e1.py", "e2.py", "e3.py", "e4.py"), ("e4.py", "e3.py", "e2.py", "e1.py")])
def test_programs_that_share_imports_reach_what_they_reach_alone(order: tuple[str, ...]) -> None:
    project = Project("nowhere", list(SHARED), {path: text.encode() for path, text in SHARED.items()})
    imports = ProjectImports(project)
    units = Units(imports, Runs(imports, Relevant(imports)).machine)
    reach, reached = Reach(units), {}
    for entry in order:
        reached[entry] = {(part.path, part.name) for part in reach.of(imports.closure(entry).files)}
        assert reached[entry] == {(part.path, part.name) for part in Reach(units).of(imports.closure(entry).files)}
    modules = {entry: {(path, "") for path in imports.closure(entry).files} for entry in order}
    assert {entry: reached[entry] - modules[entry] for entry in order} == {
        "e1.py": {("a.py", "one"), ("a.py", "two"), ("a.py", "Net")},
        "e2.py": {("a.py", "Net"), ("b.py", "run"), ("c.py", "later")},
        "e3.py": {("a.py", "Net"), ("a.py", "go"), ("a.py", "three")},
        "e4.py": set(),
    }


def test_names_that_mean_each_other_end(tmp_path: Path) -> None:
    text = LOOP + "a = b\nb = a\na.x = 1\na.b.setup()\n" + 'if __name__ == "__main__":\n    train()\n'
    assert program(tmp_path, text).cudnn_benchmark is False


def test_files_that_import_each_other_end(tmp_path: Path) -> None:
    files = {
        "p/__init__.py": "from .one import f\n",
        "p/one.py": "from .two import g\nimport torch\ntorch.backends.cudnn.benchmark = True\ndef f():\n    g()\n",
        "p/two.py": "from .one import f\ndef g():\n    f()\n",
        "train.py": LOOP + "from p import f\nf()\n" + 'if __name__ == "__main__":\n    train()\n',
    }
    (found,) = programs(tmp_path, files)
    assert found.cudnn_benchmark is True
    assert set(found.closure) == set(files)


HEAD = """
import torch
import torch.nn as nn
from torchvision import datasets
"""
STEPS = """
def {name}(data):
    model = nn.Conv2d(3, 8, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for image, label in torch.utils.data.DataLoader(data):
        model(image).sum().backward()
        optimizer.step()
"""
GUARD = "if __name__ == '__main__':\n"
OTHER = LOOP + GUARD + "    train()\n"


class TestWhatShowsOneSize:
    """It must lie on the program's own way, and names must lead there."""

    @pytest.mark.parametrize(
        "entry",
        [
            # another `train`, never called, of which only the name is said
            "from lib import helper\nfrom torchvision import datasets\n"
            "def check(model):\n    model.train()\n    held = datasets.CIFAR10('d', train=False)\n"
            + GUARD
            + "    check(helper)",
            # a loop of its own that nothing calls
            HEAD + "import lib\n" + STEPS.format(name="fit") + GUARD + "    print(lib.helper)",
            # a loop that is run, over data from below the guard of another file
            HEAD + "import lib\n" + STEPS.format(name="fit") + GUARD + "    fit(lib.helper)",
        ],
        ids=["same-name", "not-called", "other-guard"],
    )
    def test_other_files_show_nothing(self, tmp_path: Path, entry: str) -> None:
        files = {"run.py": entry, "lib.py": "def helper():\n    pass\n" + OTHER}
        found = [each for each in programs(tmp_path, files) if each.path.endswith("run.py")]
        assert [(each.fixed_input_size, each.evidence) for each in found if each.fixed_input_size is not None] == []

    @pytest.mark.parametrize(
        ("entry", "lib"),
        [
            ("from lib import train\n" + GUARD + "    train()\n", LOOP),
            ("import lib\n" + GUARD + "    lib.train()\n", LOOP),
            ("from lib import *\n" + GUARD + "    train()\n", LOOP),
            ("def main():\n    from lib import train as run\n    run()\n" + GUARD + "    main()\n", LOOP),
            ("import lib\nloops = {'cifar': lib.train}\n" + GUARD + "    loops['cifar']()\n", LOOP),
            ("import torch\nimport lib\n" + GUARD + "    torch.multiprocessing.spawn(lib.train, nprocs=2)\n", LOOP),
            (
                "from lib import Fit\n" + GUARD + "    Fit().run()\n",
                LOOP + "class Base:\n    def run(self):\n        train()\nclass Fit(Base):\n    pass\n",
            ),
            (
                HEAD + "from lib import data\n" + STEPS.format(name="fit") + GUARD + "    fit(data)\n",
                "from torchvision import datasets\ndata = datasets.SVHN('d', split='train')\n",
            ),
        ],
        ids=["from", "module", "star", "local", "table", "handed-over", "inherited", "module-level"],
    )
    def test_names_lead_there(self, tmp_path: Path, entry: str, lib: str) -> None:
        found = program(tmp_path, {"run.py": entry, "lib.py": lib})
        assert found.fixed_input_size is True
        assert {at.path for _, at in found.evidence} == {"lib.py"}

    def test_what_is_only_said_may_speak_against_it(self, tmp_path: Path) -> None:
        lib = "from torchvision import datasets\ndef photos():\n    return datasets.ImageFolder('d')\n"
        entry = "import lib\n" + LOOP + "make = getattr(lib, 'photos')\n" + GUARD + "    train()\n"
        assert program(tmp_path, {"run.py": entry, "lib.py": lib}).fixed_input_size is None


SHOW = """
import sys
from pathlib import Path
from training_scripts import program

(found,) = [program(Path(sys.argv[1]), sys.stdin.read())]
print([each.at.line for each in found.settings], [at.line for _, at in found.evidence])
"""


@slow_contract
def test_the_order_does_not_depend_on_how_python_hashes(tmp_path: Path) -> None:
    names = ("alpha", "beta", "gamma", "delta", "epsilon")
    train = LOOP[LOOP.index("def train") :]
    loops = "".join(train.replace("train(", f"{name}(", 1) for name in names)
    methods = "".join(f"    def set_{name}(self):\n        torch.backends.cudnn.benchmark = self.x\n" for name in names)
    calls = "".join(f"    {name}()\n    thing.set_{name}()\n" for name in names)
    text = f"{LOOP}{loops}\nclass Thing:\n    x = 1\n{methods}\ndef main(thing):\n{calls}    train()\n"
    text += "\nif __name__ == '__main__':\n    main(eval('Thing')())\n"
    outputs = []
    for seed in "1", "2", "3":
        paths = os.pathsep.join((str(ROOT), str(ROOT / "tests" / "helpers")))
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": paths}
        ran = subprocess.run(
            (sys.executable, "-c", SHOW, str(tmp_path)),
            input=text, env=environment, capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        outputs.append(ran.stdout)
    assert outputs[0].count(", ") > 8
    assert outputs[1:] == outputs[:1] * 2
