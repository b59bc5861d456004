"""Calls that are answered from memory: nobody can tell them from those that are evaluated again."""

from collections.abc import Callable
from typing import Any

import pytest
from evaluated import machine_of, plain

from convlint.readers.python.evaluator.machine import Machine, RootRun
from convlint.readers.python.evaluator.values import (
    Class,
    Const,
    Function,
    Instance,
    Items,
    List,
    Name,
    Partial,
    Table,
    Unknown,
    Value,
)

HEAD = (
    "import torch.nn as nn\nimport copy\nfrom functools import partial\nfrom collections import defaultdict\nONE = 1\n"
)
LONG = "for z in range(9): pass"  # enough steps to be worth remembering


def runs(text: str, *, remembers: bool, reverse: bool = False) -> tuple[Machine, dict[str, RootRun]]:
    """All roots of the text in turn, in a run with or without memory."""
    machine = machine_of(HEAD + text)
    if not remembers:
        machine.memory.evaluate = lambda what, call, run: run()  # type: ignore[method-assign]
    roots = machine.roots("m.py")
    found: dict[str, RootRun] = {}
    for root in reversed(roots) if reverse else roots:
        found[root.name] = machine.run_root(root, False)
    return machine, found


def seen(value: Any, known: dict[int, int] | None = None) -> Any:
    """The value as far as it goes, and which parts of it are one object."""
    known = {} if known is None else known
    if isinstance(value, (List, Table, Instance, Partial)):
        if id(value) in known:
            return f"again {known[id(value)]}"
        known[id(value)] = len(known)

    def inner(held: Value) -> Any:
        return seen(held, known)

    match value:
        case Const():
            return type(value.value).__name__, repr(value.value), sorted(map(repr, value.stated))
        case Unknown():
            return f"?{value.why}"
        case Items():
            return value.kind, value.complete, [inner(item) for item in value.items]
        case Table():
            return value.complete, {key: inner(item) for key, item in value.items.items()}
        case Instance():
            return value.cls.name, value.complete, {key: inner(held) for key, held in value.attributes.items()}
        case Partial():
            return inner(value.function), list(map(inner, value.args)), {k: inner(v) for k, v in value.keywords.items()}
        case Function():
            return value.name, inner(value.bound) if value.bound is not None else None
        case Name() | Class():
            return value.name
    return type(value).__name__


def told(run: RootRun) -> list[Any]:
    """What was recorded; the same by two calls under the same tests is kept once."""
    return sorted({(each.thing, each.conditions) for each in run.recorded}, key=repr)


RESNET = """
class Block(nn.Module):
    expansion = 4
    def __init__(self, inplanes, planes, stride=1, down=None):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 1)
        self.conv2 = nn.Conv2d(planes, planes * self.expansion, 3, stride)
        self.down = down
        self.stride = stride
class Net(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.inplanes = 64
        self.layer1 = self.make_layer(64, 3)
        self.layer2 = self.make_layer(128, 4, 2)
    def make_layer(self, planes, blocks, stride=1):
        down = None
        if stride != 1 or self.inplanes != planes * Block.expansion:
            down = nn.Sequential(nn.Conv2d(self.inplanes, planes * Block.expansion, 1, stride))
        layers = [Block(self.inplanes, planes, stride, down)]
        self.inplanes = planes * Block.expansion
        for i in range(1, blocks):
            layers.append(Block(self.inplanes, planes))
        return nn.Sequential(*layers)
def resnet(): return Net([3, 4])
def both(): return Net([3, 4]), Net([3, 4])
"""

NESTED = """
class Unit:
    def __init__(self, a, b=3):
        self.conv = nn.Conv2d(a, b)
        self.parts = [nn.Conv2d(b, b) for i in range(2)]
        self.act = self.go
    def go(self): return 1
class Stage:
    def __init__(self, n):
        self.units = [Unit(n), Unit(n), Unit(n, 5)]
        self.by = {'a': Unit(n), 'b': self.units[0]}
class Net:
    def __init__(self, deep):
        self.one = Stage(8)
        self.two = Stage(8)
        if deep: self.three = Stage(8)
def f(): return Net(1), Net(1)
"""

# Each with a function `f` at least
SNIPPETS = {
    "resnet": RESNET + "def f(): return resnet(), both()",
    "nested": NESTED,
    "one list twice": f"def g(a, b):\n    {LONG}\n    return [a, b, a is b]\n"
                      "def f():\n    l = []\n    return g(l, l), g([], []), g(l, l)",
    "lists apart first": f"def g(a, b):\n    {LONG}\n    return [a, b]\n"
                         "def f():\n    l, m = [], []\n    return g(l, m), g(l, l), g(m, l), l, m",
    "a list in a list twice": f"def g(a):\n    {LONG}\n    return a[0], a[1], a[0] is a[1]\n"
                              "def f():\n    l = []\n    return g([l, l]), g([[], []]), g([l, l])",
    "a module's list": f"L = [ONE]\ndef g(a):\n    {LONG}\n    return a, L, a is L\n"
        f"def f(): return g(L), g([ONE]), g([ONE]), g(L)",
    "a class that changes": f"class C: v = 1\ndef g():\n    {LONG}\n    return C.v\n"
                            "def f():\n    x = g()\n    C.v = 2\n    y = g()\n    C.v = 3\n    return x, y, g(), g()\n"
                            "def h(): return g()",
    "a class that a call within reads": f"class C: v = 1\ndef k():\n    {LONG}\n    return C.v\n"
        f"def g():\n    {LONG}\n    return k() + 1\ndef f():\n    x = g()\n    C.v = 5\n    return x, g(), k()",
    "another class that changes": f"class C: v = 1\nclass D: v = 1\ndef g():\n    {LONG}\n    return C.v\n"
        "def f():\n    x = g()\n    D.v = 5\n    return x, g(), D.v\ndef h(): return g()",
    "a method that is replaced": f"class C:\n    def m(self):\n        {LONG}\n        return 1\n"
        f"def g():\n    {LONG}\n    return C().m()\n"
        "def f():\n    x = g()\n    C.m = lambda self: 2\n    return x, g()\ndef h(): return g()",
    "an iterator of the caller": f"def g(a):\n    {LONG}\n    return list(a)\n"
        "def f():\n    a = iter([1, 2])\n    return g(a), g(a), g(iter([1, 2]))",
    "an iterator of the module": f"A = iter([1, 2, 3])\ndef g():\n    {LONG}\n    return next(A)\n"
        "def f(): return g(), g(), g()",
    "a module's object that changes": f"class C: pass\no = C()\no.v = [1]\ndef g():\n    {LONG}\n    return o.v\n"
                                      "def f():\n    x = g()\n    o.v = [2]\n    return x, g()\ndef h(): return g()",
    "changed in one path": f"class C: v = 1\ndef g():\n    {LONG}\n    return C.v\n"
                           "def f(p):\n    if p:\n        C.v = 2\n        x = g()\n    else: x = g()\n"
                           "    return x, g()\ndef h(): return g()",
    "a global": f"N = 1\ndef g():\n    {LONG}\n    return N\ndef h():\n    global N\n    N = 2\n"
                "def f():\n    x = g()\n    h()\n    return x, g()",
    "a class within": "def f():\n    x = 1\n    class B:\n        def __init__(self):\n"
                      f"            {LONG}\n            self.v = x\n"
                      "    p = B()\n    x = 2\n    return p, B()",
    "a class within that changes": f"def g(b):\n    {LONG}\n    return b.v\n"
                                   "def f():\n    class B: v = 1\n    x = g(B)\n    B.v = 2\n    return x, g(B)",
    "a class made by a call": f"def g():\n    {LONG}\n    class B: v = 1\n    return B\n"
                              "def f():\n    p, q = g(), g()\n    p.v = 2\n    return p.v, q.v, p is q",
    "an object of a class made by a call": f"def g():\n    {LONG}\n    class B: v = [1]\n    return B()\n"
                                           "def f():\n    p, q = g(), g()\n    p.v.append(2)\n    return p.v, q.v",
    "defaults of one lambda": f"fs = []\nfor i in range(3):\n    def g(k=i):\n        {LONG}\n        return k\n"
                              "    fs.append(g)\ndef f(): return [g() for g in fs], fs[0](), fs[2]()",
    "functions with defaults as arguments": "fs = []\nfor i in range(3):\n    fs.append(lambda k=i: k)\n"
                                            f"def h(g):\n    {LONG}\n    return g()\n"
                                                f"def f(): return [h(g) for g in fs]",
    "a default list": f"def g(n, l=[ONE]):\n    {LONG}\n    return l\ndef f():\n    x = g(ONE)\n    y = g(ONE)\n"
                      "    x.append(2)\n    return x, y, x is y, g(ONE)",
    "a defaultdict": f"def g(n):\n    {LONG}\n    d = defaultdict(lambda: [n])\n    d['a']\n    return d\n"
                     "def f():\n    p, q = g(ONE), g(ONE)\n    p['b'].append(2)\n    return p['b'], q['b'], p, q",
    "partials": f"def g(l, k=1):\n    {LONG}\n    return [l, k]\ndef h(m):\n    {LONG}\n    return m(k=2), m\n"
                "def f():\n    l = []\n    p, q = partial(g, l), partial(g, [])\n    return h(p), h(q), h(p), l",
    "a partial of the call": f"def g(n):\n    {LONG}\n    p = partial(len, [n])\n    return [p, p]\n"
                             "def f():\n    return g(ONE), g(ONE)",
    "closures": f"def g(n):\n    l = [n]\n    {LONG}\n    def h():\n        l.append(n)\n        return len(l)\n"
                "    return h\ndef f():\n    p, q = g(ONE), g(ONE)\n    return p(), p(), q()",
    "a counter": f"def g():\n    n = 0\n    def h():\n        nonlocal n\n        {LONG}\n        n += 1\n"
                 "        return n\n    return h\ndef f():\n    p = g()\n    return p(), p(), p()",
    "kwargs": f"def g(**k):\n    {LONG}\n    return k\ndef h(**k): return g(**k)\n"
              "def f():\n    p, q = h(a=ONE, b=[ONE]), h(a=ONE, b=[ONE])\n    p['a'] = 3\n"
                  "    p['b'].append(4)\n    return p, q",
    "order of keywords": f"def g(**k):\n    {LONG}\n    return list(k)\n"
        f"def f(): return g(a=ONE, b=ONE), g(b=ONE, a=ONE), g(a=ONE, b=ONE)",
    "a registry": "R = {}\ndef register(c):\n    R[c.__name__] = c\n    return c\n"
                  "@register\nclass A:\n    def __init__(self, n):\n        self.c = nn.Conv2d(n, n)\n"
                      "        self.n = [n]\n"
                  f"def build(name, n):\n    {LONG}\n    return R[name](n)\n"
                  "def f(p):\n    x = build('A', ONE)\n    if p: y = build('A', ONE)\n    return x, build('A', ONE)",
    "a generator under a test": f"def g(n):\n    {LONG}\n    for i in range(n): yield i\n"
                                "def f(p):\n    if p: x = list(g(ONE))\n    return list(g(ONE)), x\n"
                                "def h(): return list(g(ONE))",
    "loops within loops": "class A:\n    def __init__(self): self.n = 1\n    def go(self): self.n = 2\n"
                          "def g(k):\n    a = A()\n    for i in k:\n        nn.Conv2d(a.n)\n        a.go()\n"
                              "    return a.n\n"
                          "def f(p):\n    for i in p:\n        for j in p:\n            x = g(p)\n    return x, g(p)\n"
                          "def h(p): return g(p)",
    "numbers that are equal": f"def g(n):\n    {LONG}\n    return n\n"
                              "def f(): return g(ONE), g(1.0), g(True), g(0), g(False), g(0.0), g(-0.0), g(0.0), g('')",
    "copies": f"class C:\n    def __init__(self, n):\n        {LONG}\n        self.l = [n]\n"
        f"        self.f = lambda: n\n"
              "def f():\n    p = C(ONE)\n    q, r = copy.deepcopy(p), copy.copy(p)\n    q.l.append(2)\n"
              "    return p, q, r, C(ONE)",
    "an iterator": f"def g(n):\n    {LONG}\n    return iter([n, n + 1])\n"
                   "def f():\n    p, q = g(ONE), g(ONE)\n    return next(p), next(p), next(q)",
    "an argument that is kept": f"class C:\n    def __init__(self, l):\n        {LONG}\n        self.l = l\n"
                                "def f():\n    l, m = [ONE], [ONE]\n    p, q = C(l), C(m)\n    p.l.append(2)\n"
                                "    return p, q, l, m, p.l is l, q.l is m, C(l).l is l",
    "an argument that is changed": f"def g(l):\n    {LONG}\n    l.append(1)\n    return l\n"
                                   "def f():\n    l = []\n    g(l)\n    g([])\n    return g(l), g([]), l",
    "a function that calls itself": f"T = 3\ndef g(n, m):\n    {LONG}\n    return [g(n - ONE, m)] if n else []\n"
                                    "def f(p): return g(T, p), g(T - ONE, p), g(T, p)\n"
                                    "def h(p): return [g(T - ONE, p), g(T, p), g(T - ONE, p)]",
    "what a module made, changed": "class B: pass\nc = B()\nd = B()\nc.n = d.n = 1\n"
                                   f"def g(k):\n    {LONG}\n    return [k, d.n]\n"
                                   "def f():\n    c.n = 2\n    a = g(ONE), g(ONE)\n    d.n = 3\n    return a, g(ONE)\n"
                                   "def h(): return g(ONE), g(ONE)",
    "what a module made, changed on one path": f"class B: pass\nc = B()\nc.n = 1\ndef g(k):\n    {LONG}\n"
                                               "    return [k, c.n]\ndef f(p):\n    if p:\n        c.n = 2\n"
                                               "        x = g(ONE)\n    else:\n        x = g(ONE), g(ONE)\n"
                                               "    return x, g(ONE)\ndef h(): return g(ONE)",
    "an object that refers to itself": f"class C:\n    def __init__(self):\n        {LONG}\n        self.me = self\n"
                                       "        self.l = [self]\ndef f():\n    p, q = C(), C()\n    p.v = 1\n"
                                       "    return p, q, p.me is p, q.l[0] is q, p is q",
}  # fmt: skip


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", SNIPPETS)
def test_results_and_records_are_those_without_memory(name: str, reverse: bool) -> None:
    _, without = runs(SNIPPETS[name], remembers=False, reverse=reverse)
    _, found = runs(SNIPPETS[name], remembers=True, reverse=reverse)
    assert {root: seen(run.value) for root, run in found.items()} == \
        {root: seen(run.value) for root, run in without.items()}  # fmt: skip
    assert {root: told(run) for root, run in found.items()} == {root: told(run) for root, run in without.items()}


ANSWERED = [
    "a function that calls itself", "what a module made, changed", "resnet", "nested", "kwargs", "partials",
    "an iterator", "an argument that is kept", "lists apart first",
]  # fmt: skip


@pytest.mark.parametrize("name", ANSWERED)
def test_memory_answers(name: str) -> None:
    assert runs(SNIPPETS[name], remembers=True)[0].memory.hits


MAKES = f"def g(n):\n    {LONG}\n    if n > 9: nn.Conv2d(n)\n    nn.Conv2d(1)\n"
CONDITIONS: list[tuple[str, list[object]]] = [
    ("if p: g(ONE)\n    if q: g(ONE)", [("p",), ("q",)]),
    ("g(ONE)\n    if q: g(ONE)", [(), ("q",)]),
    ("if p: g(ONE)\n    g(ONE)", [("p",), ()]),
    ("if p: return\n    g(ONE)\n    if q: g(ONE)", [("not (p)",), ("not (p)", "q")]),
    ("if q: g(p)\n    else: g(p)", [("q", "n > 9"), ("q",), ("not (q)", "n > 9"), ("not (q)",)]),
]


@pytest.mark.parametrize(("body", "conditions"), CONDITIONS)
def test_an_equal_call_tells_the_tests_around_it(body: str, conditions: list[object]) -> None:
    machine, found = runs(f"{MAKES}def f(p, q):\n    {body}", remembers=True)
    assert machine.memory.hits
    assert [each.conditions for each in found["f"].recorded] == conditions


def test_an_equal_call_tells_the_calls_around_it() -> None:
    text = f"def g(n):\n    {LONG}\n    nn.Conv2d(n)\ndef h(n): g(n)\ndef f():\n    g(ONE)\n    h(1)\n    h(1)"
    first = HEAD.count("\n")
    recorded = runs(text, remembers=True)[1]["f"].recorded
    lines = [[site.node.lineno - first for site in each.stack] for each in recorded]
    assert lines == [[6], [7, 4], [8, 4]]


def test_another_root_tells_what_the_first_told() -> None:
    machine, found = runs(f"{MAKES}def e(p):\n    if p: g(ONE)\ndef f(p): g(ONE)", remembers=True)
    assert machine.memory.hits
    assert [each.conditions for each in found["e"].recorded] == [("p",)]
    assert [each.conditions for each in found["f"].recorded] == [()]


WRITES: list[tuple[str, str, str]] = [
    ("class C:\n    def __init__(self):\n        {long}\n        self.v = 1\ndef g(): return C()", "p.v = 2", "q.v"),
    ("def g():\n    {long}\n    return [1]", "p[0] = 2", "q[0]"),
    ("def g():\n    {long}\n    return [[1]]", "p[0][0] = 2", "q[0][0]"),
    ("def g():\n    {long}\n    return {{'a': 1}}", "p['a'] = 2", "q['a']"),
    ("def g():\n    {long}\n    return partial(len, [ONE])", "p.args[0].append(2)", "len([1])"),
    ("class C: pass\ndef g():\n    {long}\n    c = C()\n    c.l = [1]\n    return (c,)", "p[0].l.clear()", "q[0].l[0]"),
]
ORDERS: list[tuple[str, Callable[[str, str, str], str]]] = [
    (
        "written before the other is made",
        lambda write, read, _: f"p = g()\n    {write}\n    q = g()\n    return {read}",
    ),
    ("written behind", lambda write, read, _: f"p = g()\n    q = g()\n    {write}\n    return {read}"),
    ("the answer is written", lambda write, read, _: f"q = g()\n    p = g()\n    {write}\n    return {read}"),
    ("of three", lambda write, read, _: f"g()\n    p = g()\n    {write}\n    q = g()\n    return {read}"),
]


@pytest.mark.parametrize(("make", "write", "read"), WRITES)
@pytest.mark.parametrize("order", [each for _, each in ORDERS], ids=[name for name, _ in ORDERS])
def test_what_is_written_to_one_result_reaches_no_other(
    make: str, write: str, read: str, order: Callable[[str, str, str], str],
) -> None:  # fmt: skip
    text = f"{make.format(long=LONG)}\ndef f():\n    {order(write, read, '')}"
    machine, found = runs(text, remembers=True)
    assert machine.memory.hits
    assert plain(found["f"].value) == 1


def test_a_result_with_many_arguments_around_it() -> None:
    text = f"def g(l):\n    {LONG}\n    return [[i] for i in range(199)], l\n" \
           "def f():\n    return len(g([[i] for i in range(180) for j in range(9)])), " \
           "len(g([[i] for i in range(180) for j in range(9)]))"  # fmt: skip
    for remembers in (False, True):
        assert plain(runs(text, remembers=remembers)[1]["f"].value) == (2, 2)
