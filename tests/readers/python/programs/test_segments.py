from __future__ import annotations

from pathlib import Path

from training_scripts import LOOP, program, programs

from convlint.readers.python.programs.closure import Imports
from convlint.readers.python.programs.segments import segments
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
    units = Units(Imports(Project(str(tmp_path), ())))
    found = segments(units, "a.py", TEXT)
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
