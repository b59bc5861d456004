"""Tests that nobody can decide: both sides are run, and what they leave is joined."""

from __future__ import annotations

import pytest
from evaluated import plain, recorded, roots_of, variable

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
    assert {name: plain(value) for name, value in instance.attributes.items()} == {"v": "?branch", "w": 3}  # type: ignore[union-attr]


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
    ("match a:\n        case 1: nn.Conv2d(1)", [("case 1",)]),
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
