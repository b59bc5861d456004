"""Modules of a repository that import from one another."""

import pytest
from evaluated import RecordingLibrary, machine_of, plain, roots_of, variable

from convlint.readers.python.evaluator.library import LibraryCall
from convlint.readers.python.evaluator.machine import Machine
from convlint.readers.python.evaluator.modules import Modules
from convlint.readers.python.evaluator.paths import Scope
from convlint.readers.python.evaluator.values import Value
from convlint.readers.python.project import Project

IMPORTS = [
    ({"m.py": "from a import v as x", "a.py": "v = 3"}, 3),
    ({"m.py": "import a\nx = a.v", "a.py": "v = 3"}, 3),
    ({"p/__init__.py": "from .b import *", "p/b.py": "v = 3", "m.py": "from p import v as x"}, 3),
    ({"p/__init__.py": "", "p/b.py": "v = 3", "m.py": "from p import b\nx = b.v"}, 3),
    ({"p/__init__.py": "", "p/b.py": "v = 3", "m.py": "import p.b\nx = p.b.v"}, 3),
    ({"p/__init__.py": "from . import b", "p/b.py": "v = 3", "m.py": "from p import b as c\nx = c.v"}, 3),
    ({"p/__init__.py": "", "p/b.py": "v = 3", "p/c.py": "from .b import v\n", "m.py": "from p.c import v as x"}, 3),
    (
        {
            "r/__init__.py": "",
            "r/p/__init__.py": "from .u import *",
            "r/p/u.py": "from r.p import b",
            "r/p/b.py": "v = 3",
            "m.py": "from r.p import b\nx = b.v",
        },
        3,
    ),
    ({"m.py": "from a import f\nw = 4\nx = f()", "a.py": "from m import w\ndef f(): return w"}, 4),
    ({"m.py": "from a import x", "a.py": "from b import x", "b.py": "from a import x"}, "?call"),
    ({"m.py": "from a import *", "a.py": "from b import *", "b.py": "from a import *\nx = 2"}, 2),
    ({"m.py": "from a import *\nx = v", "a.py": "from m import *\nv = 2"}, 2),
    ({"m.py": "try:\n    from a import x\nexcept ImportError:\n    x = 5", "a.py": "x = 3"}, 3),
    ({"m.py": "try:\n    from torch import x\nexcept ImportError:\n    x = 5"}, "torch.x"),
    ({"m.py": "try:\n    import apex\n    x = True\nexcept ImportError:\n    x = False"}, "?branch"),
    ({"m.py": "from a import x", "a.py": "x = ("}, "?call"),
    ({"m.py": "from .gone import x"}, "?call"),
    ({"m.py": "from gone import f as x"}, "gone.f"),
    ({"m.py": "import a.b.c as x"}, "a.b.c"),
    ({"m.py": "from a import f\nx = f()", "a.py": "def f():\n    from b import v\n    return v", "b.py": "v = 1"}, 1),
]


@pytest.mark.parametrize(("files", "value"), IMPORTS)
def test_an_import(files: dict[str, str], value: object) -> None:
    assert plain(variable(files)) == value


def test_modules_that_import_all_of_each_other_are_each_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[str] = []
    search = Modules.variable

    def counted(modules: Modules, scope: Scope, name: str) -> Value | None:
        searches.append(name)
        return search(modules, scope, name)

    names = [f"m{number}" for number in range(8)]
    files = {f"{name}.py": "".join(f"from {other} import *\n" for other in names if other != name) for name in names}
    files["m3.py"] += "v = 3\n"
    monkeypatch.setattr(Modules, "variable", counted)
    assert plain(variable({"m.py": "from m0 import *\nx = v, nowhere", **files})) == (3, "?call")
    assert searches.count("nowhere") < 20


def test_a_module_runs_when_a_name_of_it_is_read() -> None:
    machine = machine_of({"m.py": "from a import v\nfrom b import w\nx = v", "a.py": "v = 1", "b.py": "w = 1"})
    machine.run_module("m.py")
    assert sorted(machine.modules.scopes) == ["a.py", "m.py"]


CHANGED = [
    ("L = [1]\ndef g(): L.append(2)", "L", [1, "..."]),
    ("L = [1]\ndef g(): L.sort\n", "L", [1]),
    ("L = {'a': 1}\ndef g(k): L[k] = 2", "L['a']", "?caller"),
    ("L = 1\ndef g():\n    global L\n    L = 2", "L", "?caller"),
    ("L = [1]\ndef g():\n    L = []\n    L.append(2)", "L", [1]),
    ("class A: pass\nL = A()\nL.v = 1\ndef g(): L.v = 2", "L.v", 1),
]


@pytest.mark.parametrize(("text", "read", "value"), CHANGED)
def test_what_functions_of_a_module_change_is_unknown_to_functions(text: str, read: str, value: object) -> None:
    assert plain(roots_of(f"{text}\ndef f(): return {read}")["f"].value) == value


WRITES = [
    "from a import L\ndef f(): L.append(2)\ndef g(): return len(L)",
    "import a\ndef f(): a.L = [1, 2, 3]\ndef g(): return len(a.L)",
    "from a import C as D\ndef f(): D.L = [1, 2]\ndef g(): return len(D.L)",
    "from a import o\ndef f(): o.v = [1, 2]\ndef g(): return len(o.v)",
]


@pytest.mark.parametrize("text", WRITES)
@pytest.mark.parametrize("order", ["fg", "gf"])
def test_what_a_root_writes_does_not_reach_another(text: str, order: str) -> None:
    machine = machine_of({"m.py": text, "a.py": "L = [1]\nclass C: L = [1]\no = C()\no.v = [1]"})
    roots = {root.name: root for root in machine.roots("m.py")}
    found = {name: machine.run_root(roots[name], False).value for name in order}
    assert plain(found["g"]) == 1


def test_roots_are_a_file_s_own_functions_and_classes() -> None:
    machine = machine_of({"m.py": "from a import f\ndef h(): pass\nclass B: pass\ng = h", "a.py": "def f(): pass"})
    assert [root.name for root in machine.roots("m.py")] == ["h", "B"]


ROOTS = [
    ("def f(a, b=2, *c, d=3, **e): return a, b, c, d, e", False,
     ("?parameter",) * 2 + (("...",), "?parameter", {"...": 0})),
    ("def f(a, b=2, *c, d=3, **e): return a, b, c, d, e", True, ("?parameter", 2, (), 3, {})),
    ("def g(a=1, b=2): return a, b\ndef f(**k): return g(a=5, **k)", False, (5, "?caller")),
    ("def g(a=1, b=2): return a, b\ndef f(**k): return g(a=5, **k)", True, (5, 2)),
    ("def f(**k): return k.pop('a', 3), k.get('b'), 'c' in k", False, ("?parameter",) * 3),
    ("def f(**k): return k.pop('a', 3), k.get('b'), 'c' in k", True, (3, None, False)),
    ("def g(*a): return a\ndef f(*c): return g(1, *c)", False, (1, "...")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "defaults", "value"), ROOTS)
def test_parameters_of_a_root(text: str, defaults: bool, value: object) -> None:
    assert plain(roots_of(text, defaults=defaults)["f"].value) == value


CLASS = "class R:\n    N = 60\n    opts = {'w': 62}\n"


@pytest.mark.parametrize(
    ("files", "value"),
    [
        ({"m.py": "import c\nx = c.W, c.H", "c.py": "W = 3\nH = 4", "o.py": "import c\nc.W = 5"}, ("?caller", 4)),
        ({"m.py": "from p.c import W as x", "p/c.py": "W = 3", "o.py": "from p import c\nc.W *= 2"}, "?caller"),
        ({"m.py": "from c import W as x", "c.py": "W = 3\ndef f(c): return c.W == 5"}, 3),
        ({"m.py": "from c import W as x", "c.py": "W = 3", "o.py": "c = C()\nif c.W == 5: c.w = 4"}, 3),
    ],
)
def test_a_constant_of_a_module_that_another_sets_is_unknown(files: dict[str, str], value: object) -> None:
    assert plain(variable(files)) == value


@pytest.mark.parametrize(
    ("files", "value"),
    [
        ({"m.py": CLASS}, (60, 62)),
        ({"m.py": f"{CLASS}R.N = 61\n"}, (61, 62)),
        ({"m.py": f"{CLASS}def setup(args): R.N = args.n\n"}, ("?caller", 62)),
        ({"m.py": f"{CLASS}def setup(args): R.opts.update(vars(args))\n"}, (60, "?caller")),
        ({"m.py": f"{CLASS}def setup(args, R): R.N = args.n\n"}, (60, 62)),
        ({"m.py": f"{CLASS}if __name__ == '__main__':\n    R.N = 4\n"}, ("?caller", 62)),
        ({"m.py": CLASS, "a.py": "from m import R\nR.N = 4\n"}, ("?caller", 62)),
        ({"m.py": CLASS, "a.py": "import m\nm.R.opts['w'] = 4\n"}, (60, "?caller")),
        ({"m.py": CLASS, "a.py": "class R: pass\nR.N = 4\n"}, (60, 62)),
    ],
)
def test_an_attribute_of_a_class_that_other_code_sets_is_unknown(files: dict[str, str], value: object) -> None:
    given = {**files, "m.py": files["m.py"] + "def read(): return R.N, R.opts.get('w')\n"}
    assert plain(roots_of(given)["read"].value) == value


def test_a_module_runs_in_no_mode_of_the_network_that_imports_it() -> None:
    around: list[tuple[str, ...]] = []

    class Noting(RecordingLibrary):
        def call(self, machine: Machine, name: str, call: LibraryCall) -> Value | None:
            around.append(machine.around())
            return super().call(machine, name, call)

    importer = (
        "class A:\n    training = True\n    def f(self):\n        if self.training:\n            from a import v\n"
        "            note(v)\n"
    )
    files = {
        "m.py": f"from elsewhere import note\n{importer}A().f()",
        "a.py": "from elsewhere import note\nv = note(1)",
    }
    machine = Machine(Project("nowhere", list(files), {path: text.encode() for path, text in files.items()}), Noting())
    machine.run_module("m.py")
    assert around == [(), ("self.training",)]
