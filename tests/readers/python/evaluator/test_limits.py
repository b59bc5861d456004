"""Files that would take for ever, or all memory, if somebody ran them."""

import time

import pytest
from evaluated import machine_of, plain, roots_of, variable

from convlint.readers.python.evaluator import limits

SECONDS = 5.0

HOSTILE = [
    ("x = len(range(10**9))", "?limit"),
    ("x = 'a' * 10**9", "?limit"),
    ("x = 2**10**9", "?limit"),
    ("x = 1 << 10**9", "?limit"),
    ("x = 9\nfor i in range(150): x = x * x", "?limit"),
    ("x = len([0] * 10**9)", "?limit"),
    ("x = len([1 for _ in [0] * 300])", 300),
    ("x = len([1 for _ in range(90) for _ in range(90)])", "?call"),
    ("x = '{:>999999999}'.format(1)", "?call"),
    ("x = '{:{}}'.format(1, 999999999)", "?call"),
    ("x = '%999999999d' % 1", "?limit"),
    ("x = '%*d' % (999999999, 1)", "?limit"),
    ("w = 999999999\nx = f'{1:{w}}'", "?limit"),
    ("x = 'a'.ljust(10**9)", "?call"),
    ("x = ('a' * 4000).replace('a', 'b' * 4000)", "?call"),
    ("x = round(5, -10**9)", "?call"),
    ("x = int('9' * 4000)", "?call"),
    ("x = 'a'\nfor i in range(100): x = x + x", "?limit"),
    ("x = [1]\nfor i in range(100): x = x + x\nx = len(x)", "?limit"),
    ("import re\nx = re.split('(a+)+$', 'a' * 40 + 'b')", "?call"),
    ("import re\nx = re.findall('(a|a)*b', 'a' * 100)", "?call"),
    ("import itertools\nx = len(list(itertools.product(*[range(100)] * 9)))", "?limit"),
    ("x = len([i for a in range(200) for b in range(200) for c in range(200) for i in range(200)])", "?call"),
    ("x = []\nx.append(x)\nx = x[0][0] is x", True),
    ("x = []\nx.append(x)\ny = []\ny.append(y)\nx = x == y", "?call"),
    ("x = {}\nx['a'] = x\nx = x['a'] is x", True),
    ("def f(): return f()\nx = f()", "?limit"),
    ("def f(n): return f(n + 1)\nx = f(0)", "?limit"),
    ("def f(n): return f(n + 1) + f(n + 2)\nx = f(0)", "?call"),
    ("def f():\n    while True:\n        yield 1\nx = len(f())", "?limit"),
    ("def f():\n    i = 0\n    while i < 10**9:\n        i += 1\n    return i\nx = f()", "?limit"),
    ("class A(A): pass\nx = 1", 1),
    ("class A: pass\nA.__getattr__ = A\nx = A().b", "?call"),
    ("class A:\n    def __iter__(self): return self\nx = list(A())", ["..."]),
    ("class A:\n    def __call__(self): return self()\nx = A()()", "?limit"),
    ("class A:\n    def __init__(self): self.a = A()\nx = A().b", "?call"),
    ("class A:\n    @property\n    def p(self): return self.p\nx = A().p", "?limit"),
    ("x = " + "+".join(["1"] * 200), "?limit"),
    ("x = " + "-" * 300 + "1", "?limit"),
    ("y = 1\nx = " + " and ".join(["y"] * 6000), "?call"),
    ("x = " + "[" * 150 + "]" * 150, None),
    ("x = 1\n" + "".join("    " * at + "if x:\n" for at in range(90)) + "    " * 90 + "x = 2", None),
    ("def f():\n    pass\n" + "@f\n" * 1000 + "def g(): pass\nx = 1", 1),
    ("from functools import partial\nf = len\nfor i in range(200): f = partial(f)\nx = f([])", None),
]


@pytest.mark.parametrize(("text", "value"), HOSTILE)
def test_hostile_text_ends_soon_in_a_value(text: str, value: object) -> None:
    start = time.process_time()
    found = variable(text)
    assert time.process_time() - start < SECONDS
    if value is not None:
        assert plain(found) == value


BRANCHING = "def f(a):\n" + "".join(f"    if a.b{at}: x{at} = {at}\n    else: x{at} = g(a)\n" for at in range(300))


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        BRANCHING,
        "def f(a):\n" + "".join("    " * at + f"    for i{at} in a:\n" for at in range(18)) + "    " * 19 + "g()",
        "def f(a):\n" + "".join("    " * at + f"    while a.b{at}:\n" for at in range(18)) + "    " * 19 + "g()",
        "\n".join(f"def f{at}(a):\n    return f{at + 1}(a) if a else f{at + 1}(a.b)" for at in range(30)),
        "def f(a):\n    if a: return f(a.b)\n    return f(a.c) + f(a.d)",
        "class A:\n    def __init__(self, n):\n        self.a = A(n)\n        self.b = A(n)\n        self.c = A(n)",
        "def f(a):\n    l = []\n    for i in range(200):\n        for j in range(200):\n"
        "            l.append([l, i, j])\n"
        "    return l",
        "def f(a):\n    l = [0]\n    for i in range(200):\n        l = [l, l]\n    return l\n"
        "def g(a): return f(1), f(1)",
        "def f(a):\n    for i in range(200):\n        if a: return i\n        if a.b: break",
    ],
)
def test_hostile_functions_end_soon(text: str) -> None:
    start = time.process_time()
    roots_of(text)
    roots_of(text, defaults=True)
    assert time.process_time() - start < 60


def test_modules_that_import_in_a_long_chain() -> None:
    files = {f"m{at}.py": f"from m{at + 1} import x" for at in range(300)} | {"m300.py": "x = 1"}
    start = time.process_time()
    assert plain(variable(files, path="m0.py")) in (1, "?call")
    assert time.process_time() - start < SECONDS


@pytest.mark.slow
def test_a_hundred_thousand_functions() -> None:
    text = "\n".join(f"def f{at}(a): return a + {at}" for at in range(60_000))
    machine = machine_of(text)
    start = time.process_time()
    for root in machine.roots("m.py"):
        machine.run_root(root, False)
    assert time.process_time() - start < 60


@pytest.mark.parametrize(("files", "steps"), [(0, 100_000), (1, 100_000), (30, 100_000), (60, 50_000), (5_000, 33_000)])
def test_many_files_share_the_steps_of_a_run(files: int, steps: int) -> None:
    assert limits.steps_of_file(files) == steps


def test_one_of_several_lists_within_the_trial_of_others_is_not_tried() -> None:
    functions = "".join(f"def f{at}(l): return f{at - 1}(T[a{at}])\n" for at in range(1, 18))
    begun = time.process_time()
    found = roots_of(f"T = {{'a': [62], 'b': [64], 'c': [60]}}\ndef f0(l): return l[0]\n{functions}")
    assert plain(found["f17"].value) == "?call"
    assert time.process_time() - begun < SECONDS


def test_a_try_that_binds_very_many_names_is_read_in_time() -> None:
    bound = "".join(f"    v{at} = {at}\n" for at in range(30_000))
    begun = time.process_time()
    assert plain(variable(f"import a\ntry:\n    a.b()\n{bound}except E: pass\nx = v7\n")) == 7
    assert time.process_time() - begun < SECONDS


LONG = "    for a in range(200):\n        for b in range(5): c = [a, b]\n" * 10


@pytest.mark.parametrize(
    ("body", "again", "whole"),
    [
        (f"    nn.Conv2d(3, 8, 3)\n{LONG}    nn.Conv2d(8, 8, 3)\n", 1, False),
        (f"    x = nn.Conv2d(3, 8, 3)\n{LONG}    nn.Conv2d(8, 8, 3)\n    return x\n", 2, True),
        ("    for i in range(200): nn.Conv2d(3, i, 3), [j for j in range(100)]\n    nn.Conv2d(8, 8, 3)\n", 201, True),
    ],
)
def test_a_script_ends_some_steps_after_the_last_record(body: str, again: int, whole: bool) -> None:
    run = roots_of(f"from torch import nn\ndef main():\n{body}")["main"]
    assert (len(run.recorded), run.whole) == (again, whole)


MUCH = "    for a in range(200):\n        for b in range(5): c = [a, b]\n" * 10
TRAINS = f"def train():\n{MUCH}train()\n"


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (TRAINS, False),
        (f"import torch\nx = torch.nn.Conv2d(3, 8, 3)\n{TRAINS}", True),
        ("".join(f"x{at} = {at}\n" for at in range(20_000)), True),
    ],
)
def test_a_module_that_constructs_nothing_ends_in_a_long_call(text: str, whole: bool) -> None:
    machine = machine_of({"m.py": f"import n\nx = n.c\n{text}", "n.py": text})
    machine.run_module("m.py")
    assert machine.modules.unfinished == (set() if whole else {"m.py", "n.py"})


def test_what_a_module_defines_behind_a_long_call_is_there() -> None:
    text = f"{TRAINS}n = 3\nfrom math import sqrt\ndef g():\n    return sqrt(16)\n"
    text += "class A:\n    width, height = n, 7\n"
    found = variable({"m.py": "import n\nx = n.g(), n.A.height, n.A.width, n.n\n", "n.py": text})
    assert plain(found) == (4.0, 7, "?call", "?call")
