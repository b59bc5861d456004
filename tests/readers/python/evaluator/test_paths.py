"""Tests that nobody can decide: both sides are run, and what they leave is joined."""

import pytest
from evaluated import attributes, plain, recorded, roots_of, variable

JOINED = [
    ("v = 1\n    if a: v = 2\n    return v", "?branch"),
    ("if a: v = 2\n    else: v = 2\n    return v", 2),
    ("if a: v = 2\n    return v", 2),  # reading it on the other path would be an error
    ("if a: raise E\n    return 1", 1),
    ("if a is None: return 1\n    return 2", "?branch"),
    ("if a: return 1\n    else: return 1", 1),
    ("v = 2 if a else 3\n    return v", "?branch"),
    ("v = 2 if a else 2\n    return v", 2),
    ("l = []\n    if a: l.append(1)\n    return len(l)", "?branch"),
    ("l = [1]\n    if a: l[0] = 2\n    return l", ["?branch"]),
    ("l = [1]\n    if a: l[0] = 2\n    else: l[0] = 2\n    return l", [2]),
    ("d = {'k': 1}\n    if a: d['k'] = 2\n    return d['k']", "?branch"),
    ("l = []\n    for i in range(3):\n        if a: continue\n        l.append(i)\n    return len(l)", "?branch"),
    ("v = 0\n    for i in range(3):\n        if a: break\n        v = i\n    return v", "?branch"),
    ("v = 5\n    for i in range(3):\n        if a: break\n    return v", 5),
    ("v = 3\n    for i in a:\n        v = 4\n    return v", "?parameter"),
    ("for i in a:\n        v = 4\n    return v", 4),
    ("v = 3\n    for i in a:\n        w = v\n        v = 4\n    return w", "?parameter"),
    ("l = [1]\n    for i in a: l.append(2)\n    return len(l)", "?parameter"),
    ("for i in a:\n        return 1\n    return 2", "?branch"),
    ("v = 1\n    while a: v = 2\n    return v", "?branch"),
    ("try:\n        v = g(1)\n    except E:\n        v = 2\n    return v", "?parameter"),
    ("try:\n        return 1\n    except E:\n        return 2", "?branch"),
    ("v = a or 3\n    return v", "?parameter"),
    ("v = None\n    return v or 3", 3),
    ("return a and False", False),
    ("return a == 1", "?parameter"),
    ("if a is None: a = 3\n    return a", "?parameter"),
    ("return a.b, a[0], a + 1, -a, a(), a.f()", ("?parameter",) * 6),
    ("return cfg.b, cfg['a'], cfg.a.b", ("?config",) * 3),
    ("return self.cfg.b", "?config"),
    ("x = [1]\n    g(x)\n    return x", [1, "..."]),
    ("x = [1, 2]\n    return x[a], x[:a]", ("?parameter", ["..."])),
    ("x = {'k': 1}\n    x[a] = 2\n    return x.get('k')", "?branch"),
    ("x = {'k': 1}\n    x.setdefault(a, 2)\n    return x.get('k')", 1),
    ("def h():\n        nonlocal v\n        v = 2\n    v = 1\n    if a: h()\n    return v", "?branch"),
]


@pytest.mark.parametrize(("body", "value"), JOINED)
def test_a_value_on_paths_that_nobody_can_choose(body: str, value: object) -> None:
    assert plain(roots_of(f"def f(a, cfg, self, g):\n    {body}")["f"].value) == value


def test_what_a_path_sets_of_an_object_does_not_reach_the_other() -> None:
    text = """
class A:
    def __init__(self, a):
        self.v = 1
        if a:
            self.v = 2
            self.w = [self.v]
        else:
            self.w = [self.v]
"""
    instance = roots_of(text)["A"].value
    assert {name: plain(value) for name, value in instance.attributes.items()} == {"v": "?branch", "w": ["?branch"]}  # type: ignore[union-attr]


def test_a_path_that_returns_from_the_constructor_leaves_what_it_set() -> None:
    text = """
class A:
    def __init__(self, a):
        self.v = 1
        if a:
            self.v = 2
            return
        self.w = 3
"""
    instance = roots_of(text)["A"].value
    assert attributes(instance) == {"v": "?branch", "w": "maybe 3"}


def test_what_a_method_changes_in_a_loop_is_unknown_in_its_first_round_too() -> None:
    text = """
import torch.nn as nn
class A:
    def __init__(self, n):
        self.planes = 3
        for i in range(n):
            self.add()
    def add(self):
        nn.Conv2d(self.planes, 64)
        self.planes = 64
"""
    assert recorded(text, "A") == [("Conv2d", "?parameter", 64)]


CONDITIONS = [
    ("if a > 3: nn.Conv2d(1)", [("a > 3",)]),
    ("if a > 3: pass\n    else: nn.Conv2d(1)", [("not (a > 3)",)]),
    ("if a:\n        if b: nn.Conv2d(1)\n    nn.Conv2d(2)", [("a", "b"), ()]),
    ("c = nn.Conv2d(1) if a else None", [("a",)]),
    ("if a is None: return\n    nn.Conv2d(1)", [("not (a is None)",)]),
    ("if a is None: raise E\n    nn.Conv2d(1)", [()]),
    ("for i in range(2):\n        if a: continue\n        nn.Conv2d(1)", [("not (a)",), ("not (a)",)]),
    ("try: g()\n    except E: nn.Conv2d(1)", [("except E",)]),
    ("try: g()\n    except E: pass\n    else: nn.Conv2d(1)", [("no exception",)]),
    (
        "try: g()\n    except E: return\n    except F: nn.Conv2d(1)\n    else: nn.Conv2d(2)\n    nn.Conv2d(3)",
        [("except F",), ("no exception",), ()],
    ),
    ("match a:\n        case 1: nn.Conv2d(1)", [("a == 1",)]),
    ("if True: nn.Conv2d(1)", [()]),
]


@pytest.mark.parametrize(("body", "conditions"), CONDITIONS)
def test_what_is_constructed_under_an_undecided_test_carries_it(body: str, conditions: list[object]) -> None:
    runs = roots_of(f"import torch.nn as nn\ndef f(a, b, g):\n    {body}")
    assert [each.conditions for each in runs["f"].recorded] == conditions


def test_the_calls_that_led_there_are_known() -> None:
    text = "import torch.nn as nn\ndef f(): return nn.Conv2d(1)\nclass A:\n    def __init__(self): f()\ndef g(): A()"
    found = roots_of(text)["g"].recorded
    assert [[site.node.lineno for site in each.stack] for each in found] == [[5, 4]]


def test_a_module_s_test_that_nobody_can_decide() -> None:
    assert plain(variable("import os\nif os.environ.get('A'):\n    x = 1\nelse:\n    x = 2")) == "?branch"


PREFIX = """
import contextlib
import contextlib as c
kept = {}
class Plain:
    mid = 64
class Empty: pass
class Watched:
    def __setattr__(self, name, value): object.__setattr__(self, name, 62)
class Answering:
    def __init__(self, slim):
        if slim: self.mid = 64
    def __getattr__(self, name): return 62
class Odd:
    mid = 64
    def __getattribute__(self, name): return 62
class Data:
    def __get__(self, of, kind): return 62
    def __set__(self, of, value): pass
class Described:
    mid = Data()
    def __init__(self): self.mid = 64
class Meta(type):
    def __call__(cls, *args, **kwargs):
        kwargs['mid'] = 62
        return super().__call__(*args, **kwargs)
class Made(metaclass=Meta):
    def __init__(self, mid=64): self.mid = mid
class Born:
    mid = 64
    def __new__(cls):
        found = super().__new__(cls)
        found.mid = 62
        return found
class Rooted:
    mid = 64
    def __init_subclass__(cls, mid=62): cls.mid = mid
class Below(Rooted): pass
class Chosen(Plain):
    import os
    if os.environ.get('A'): mid = 62
@contextlib.contextmanager
def quiet():
    try: yield
    except E: pass
"""

# of one path alone, or in the middle of a body: never what one of the executions contradicts
ONE_PATH = [
    ("kw = {}\n    if a: kw['mid'] = 62\n    return kw.get('mid', 64)", "?branch"),
    ("kw = {}\n    if a: kw['mid'] = 64\n    return kw.get('mid', 64)", 64),
    ("kw = {}\n    if a: kw['mid'] = 62\n    return kw['mid']", 62),
    ("kw = {}\n    if a: kw['mid'] = 62\n    return 62 if 'mid' in kw else 64", "?branch"),
    ("kw = {}\n    if a: kw['mid'] = 62\n    return kw.pop('mid', 64)", "?branch"),
    ("kw = {}\n    if a: kw['mid'] = 62\n    return kw.setdefault('mid', 64)", "?branch"),
    ("kw = {}\n    if a: kw['mid'] = 62\n    return len(kw), bool(kw)", ("?branch", "?branch")),
    ("kw = {}\n    if a: kw['mid'] = 62\n    m = 64\n    for m in kw.values(): pass\n    return m", "?branch"),
    ("kw = {}\n    if a: kw['mid'] = 62\n    def h(mid=64): return mid\n    return h(**kw)", "?caller"),
    ("kw = {}\n    if a: kw['mid'] = 62\n    return {'mid': 64, **kw}['mid']", "?branch"),
    ("kw = {}\n    if a: kw['mid'] = 62\n    n = {'mid': 64}\n    n.update(kw)\n    return n['mid']", "?branch"),
    ("kw = {}\n    if a: kw['mid'] = 62\n    return ({'mid': 64} | kw)['mid']", "?branch"),
    ("kw = {}\n    if a: kw['mid'] = 62\n    return dict(kw).get('mid', 64)", "?branch"),
    ("kw = {'mid': 62}\n    if a: del kw['mid']\n    return kw.get('mid', 64)", "?branch"),
    ("kw = {'mid': 62}\n    if a: kw.pop('mid')\n    return kw.get('mid', 64)", "?branch"),
    ("from collections import defaultdict\n    kw = defaultdict(lambda: 64)\n"
     "    if a: kw['m'] = 62\n    return kw['m']", "?branch"),
    ("kw = {'mid': 64}\n    a.narrow(kw)\n    return kw.get('mid', 64)", "?call"),
    ("o = Empty()\n    if a: o.mid = 62\n    return getattr(o, 'mid', 64)", "?branch"),
    ("o = Empty()\n    if a: o.mid = 62\n    return 62 if hasattr(o, 'mid') else 64", "?branch"),
    ("o = Empty()\n    if a: o.mid = 62\n    return o.mid", 62),
    ("o = Empty()\n    o.mid = 62\n    return getattr(o, 'mid', 64)", 62),
    ("o = Plain()\n    if a: o.mid = 62\n    return o.mid", "?branch"),
    ("o = Plain()\n    o.__dict__['mid'] = 62\n    return o.mid", 62),
    ("o = Plain()\n    o.mid = 64\n    vars(o)['mid'] = 62\n    return o.mid", 62),
    ("o = Plain()\n    o.mid = 64\n    o.__dict__.update(mid=62)\n    return o.mid", 62),
    ("o = Plain()\n    o.mid = 64\n    o.__dict__.update(a)\n    return o.mid", "?call"),
    ("o = Plain()\n    d = o.__dict__\n    o.mid = 62\n    return d.get('mid', 64)", 62),
    ("o = Plain()\n    o.mid = 64\n    del o.__dict__['mid']\n    return o.mid", 64),
    ("o = Plain()\n    object.__setattr__(o, 'mid', 62)\n    return o.mid", 62),
    ("o = Plain()\n    o.__setattr__('mid', 62)\n    return o.mid", 62),
    ("o = Plain()\n    o.mid = 64\n    setattr(o, a, 62)\n    return o.mid", "?call"),
    ("o = Plain()\n    o.mid = 64\n    for k, v in a.items(): setattr(o, k, v)\n    return o.mid", "?parameter"),
    ("o = Plain()\n    o.mid = 64\n    a(o)\n    return o.mid", "?call"),
    ("o = Watched()\n    o.mid = 64\n    return o.mid", 62),
    ("return Answering(a).mid", "?call"),
    ("return Odd().mid", "?call"),
    ("return Described().mid", "?call"),
    ("return Made().mid", 62),
    ("return Born().mid", 62),
    ("return Below.mid", 62),
    ("return Chosen.mid, Chosen().mid", ("?branch", "?branch")),
    ("mid = 64\n    try:\n        a.narrow()\n        mid = 62\n    except E: pass\n    return mid", "?branch"),
    ("mid = 64\n    try:\n        mid = 62\n"
     "        a.narrow()\n        mid = 64\n    except E: pass\n    return mid", "?branch"),
    ("o = Plain()\n    o.mid = 64\n    try:\n"
     "        a.b()\n        o.mid = 62\n    except E: pass\n    return o.mid", "?branch"),
    ("o = Empty()\n    o.mid = 64\n    try:\n        o.mid = 62\n"
     "        a.b()\n        o.mid = 64\n    except E: pass\n    return o.mid", "?branch"),
    ("mid = 64\n    try:\n        a.b()\n    except E: pass\n    else: mid = 62\n    return mid", "?branch"),
    ("kw = {}\n    try:\n        a.b()\n"
     "        kw['m'] = 62\n    except E: pass\n    return kw.get('m', 64)", "?branch"),
    ("mid = 64\n    with contextlib.suppress(E):\n        a.b()\n        mid = 62\n    return mid", "?branch"),
    ("mid = 64\n    with quiet():\n        a.b()\n        mid = 62\n    return mid", "?branch"),
    ("mid = 64\n    for i in range(3):\n        if a:\n"
     "            mid = 62\n            break\n    else: mid = 64\n    return mid", "?branch"),
    ("mid = 64\n    for i in a:\n        if i:\n"
     "            mid = 62\n            break\n    else: mid = 64\n    return mid", "?parameter"),
    ("mid = 64\n    i = 0\n    while i < 2:\n"
     "        i += 1\n        if i == 1 and a: break\n        mid = 62\n    return mid", "?branch"),
    ("mid = 64\n    while a: a = a.b\n    else: mid = 62\n    return mid", 62),
    ("kw = {}\n    try: a.b()\n    except E: pass\n    else: kw['m'] = 62\n    return kw.get('m', 64)", "?branch"),
    ("kw = {}\n    a and kw.update(mid=62)\n    return kw.get('mid', 64)", "?branch"),
    ("o = Empty()\n    o.mid = 64\n    a or setattr(o, 'mid', 62)\n    return o.mid", "?branch"),
    ("mid = 64\n    a and (mid := 62)\n    return mid", "?branch"),
    ("kw = {}\n    [kw.update(mid=62) for _ in range(a)]\n    return kw.get('mid', 64)", "?parameter"),
    ("kw = {}\n    [kw.update(mid=62) for i in (1, 2) if a]\n    return kw.get('mid', 64)", "?branch"),
    ("p, q = {}, {}\n    r = p if a else q\n    r['mid'] = 62\n    return p.get('mid', 64)", "?branch"),
    ("p, q = [1], [1]\n    r = p if a else q\n    r.append(62)\n    return len(p)", "?branch"),
    ("p, q = [1], [1]\n    r = p if a else q\n    p.append(62)\n    return len(r)", "?branch"),
    ("return [w for w in {64, 62}][0], sum({64, 62})", ("?branch", 126)),
    ("p = {}\n    q = p\n    q |= {'mid': 62}\n    return p.get('mid', 64)", 62),
    ("match a:\n        case [mid, 5]: pass\n        case _: mid = 62\n    return mid", "?branch"),
    ("mid = 64\n    match [62, 6]:\n        case [mid, 5]: pass\n    return mid", 64),
]  # fmt: skip


@pytest.mark.parametrize(("body", "value"), ONE_PATH)
def test_what_only_one_path_binds_is_no_value_of_the_other(body: str, value: object) -> None:
    assert plain(roots_of(f"{PREFIX}def f(a):\n    {body}")["f"].value) == value


MANAGED = """
import contextlib, threading, unittest, torch
from contextlib import contextmanager
from lib import ignoring, argscope
def make(): return contextlib.suppress(E)
def scoped(): return torch.device("cpu")
@contextmanager
def nested():
    with contextlib.suppress(E): yield
@contextmanager
def calm():
    with torch.no_grad(): yield
@contextmanager
def cleaning():
    try: yield
    except E:
        print(1)
        raise
class Suppressing(contextlib.suppress):
    def __init__(self): super().__init__(E)
class Short(contextlib.AbstractContextManager):
    __exit__ = lambda self, *a: True
class Passing:
    def __enter__(self): return self
    def __exit__(self, *a): return False
sup = contextlib.suppress(E)
"""
MANAGERS = [
    ("sup", "?branch"), ("make()", "?branch"), ("nested()", "?branch"), ("Suppressing()", "?branch"),
    ("Short()", "?branch"), ("ignoring(E)", "?branch"), ("contextlib.ExitStack() as s", "?branch"),
    ("unittest.TestCase().assertRaises(E)", "?branch"), ("a", "?branch"), ("open(a), ignoring(E)", "?branch"),
    ("contextlib.suppress(E) if a else contextlib.nullcontext()", "?branch"),
    ("scoped()", 62), ("calm()", 62), ("cleaning()", 62), ("Passing()", 62), ("open(a) as f", 62),
    ("torch.no_grad() if a else contextlib.nullcontext()", 62), ("a.scope()", 62), ("a.lock", 62),
    ("threading.Lock(), torch.device(a)", 62), ("argscope([a], b=1)", 62),
]  # fmt: skip


@pytest.mark.parametrize(("manager", "value"), MANAGERS)
def test_what_a_block_changes_is_sure_where_its_manager_lets_errors_through(manager: str, value: object) -> None:
    text = f"{MANAGED}def f(a):\n    mid = 64\n    with {manager}:\n        a.b()\n        mid = 62\n    return mid"
    assert plain(roots_of(text)["f"].value) == value


def test_a_block_that_returns_is_left_whatever_its_manager_does() -> None:
    text = f"{MANAGED}def f(a):\n    with ignoring(E):\n        return 62\n"
    assert plain(roots_of(text)["f"].value) == 62


OTHERS = """
class Property(type):
    @property
    def mid(cls): return 64
class Asked(type):
    def __getattribute__(cls, name): return 64
def changing(name, bases, held):
    held["mid"] = 64
    return type(name, bases, held)
class Naming:
    def __set_name__(self, owner, name): owner.mid = 64
class A(metaclass=Property): mid = 62
class B(metaclass=Asked): mid = 62
class C(metaclass=changing): mid = 62
class D:
    mid = 62
    other = Naming()
class E: mid = 62
type.__setattr__(E, "mid", 64)
class Object: pass
"""
CHANGED_ELSEWHERE = [
    ("return A.mid", "?call"), ("return B.mid", "?call"), ("return C.mid", "?caller"), ("return D.mid", "?caller"),
    ("return E.mid", 64),
    ("o = Object()\n    o.mid = 62\n    o.__dict__ = dict(o.__dict__, mid=64)\n    return o.mid", "?call"),
    ("mid = 62\n    def g():\n        nonlocal mid\n        mid = 64\n    a(g)\n    return mid", "?call"),
    ("d = [62]\n    a(lambda: d.append(64))\n    return d[-1]", "?call"),
    ("p, q = [62], [64]\n    l = p if a else q\n    l[0] = 63\n    return p[0]", "?branch"),
    ("p, q = [62], [62]\n    l = p if a else q\n    l[0] = 63\n    return p[0]", "?branch"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "value"), CHANGED_ELSEWHERE)
def test_what_changes_by_another_name_or_hand_is_not_said(body: str, value: object) -> None:
    assert plain(roots_of(f"{OTHERS}def f(a):\n    {body}")["f"].value) == value
