"""What a module's variable holds after its body has run."""

import pytest
from evaluated import plain, roots_of, stated, variable

from convlint.readers.python.evaluator.values import Items

EXPRESSIONS = [
    ("3 * 4 + 1", 13),
    ("7 // 2, 7 % 2, 7 / 2, 2 ** 5, -3, 1 << 4", (3, 1, 3.5, 32, -3, 16)),
    ("'a' + 'b' * 2", "abb"),
    ("f'{1 + 1}_{\"a\"!r}_{3:02d}'", "2_'a'_03"),
    ("'%d-%s' % (3, 'a')", "3-a"),
    ("'{}x{k}'.format(3, k=4)", "3x4"),
    ("[1, *[2, 3], 4]", [1, 2, 3, 4]),
    ("{**{'a': 1}, 'b': 2}", {"a": 1, "b": 2}),
    ("[i * 2 for i in range(4) if i % 2]", [2, 6]),
    ("{k: v + 1 for k, v in {'a': 1}.items()}", {"a": 2}),
    ("[(i, j) for i in range(2) for j in range(i)]", [(1, 0)]),
    ("sum(i for i in (1, 2))", 3),
    ("[1, 2, 3][-1], [1, 2, 3][1:], (1, 2, 3)[::-1]", (3, [2, 3], (3, 2, 1))),
    ("'abc'[1], 'abc'[-2:]", ("b", "bc")),
    ("1 < 2 < 3, 1 < 3 < 2", (True, False)),
    ("None is None, 1 is not None, [] is None", (True, True, False)),
    ("3 in [1, 2], 'a' in {'a': 1}, 'b' in 'abc', 2 not in (1,)", (False, True, True, True)),
    ("0 or 'a', 1 and 2, None or [], not 0", ("a", 2, [], True)),
    ("1 if [] else 2", 2),
    ("(y := 5) + y", 10),
    ("max(3, 5), min([4, 2]), abs(-2), round(2.6), int('7'), float(2), bool(0)", (5, 2, 2, 3, 7, 2.0, False)),
    ("max([(1, 'a'), (2, 'b')], key=lambda p: -p[0])", (1, "a")),
    ("len([1, 2]), len('abc'), len({'a': 1})", (2, 3, 1)),
    ("list(zip([1, 2], 'ab')), list(enumerate('ab', 1))", ([(1, "a"), (2, "b")], [(1, "a"), (2, "b")])),
    ("sorted([3, 1, 2], reverse=True), list(reversed([1, 2]))", ([3, 2, 1], [2, 1])),
    ("list(map(lambda v: v * 2, [1, 2])), list(filter(None, [0, 1]))", ([2, 4], [1])),
    ("dict(a=1), dict([('b', 2)]), set([1, 1])", ({"a": 1}, {"b": 2}, [1])),
    ("'a_b'.split('_'), 'A'.lower(), '-'.join(['a', 'b']), 'abc'.startswith('ab')", (["a", "b"], "a", "a-b", True)),
    ("isinstance(1, int), isinstance('a', (int, str)), isinstance([1], tuple)", (True, True, False)),
    ("any([0, 1]), all([1, 0]), divmod(7, 2)", (True, False, (3, 1))),
    ("(lambda a, b=2: a + b)(1)", 3),
    ("{'a': 1}.get('b', 3), {'a': 1}.pop('a'), [3, 1].index(1)", (3, 1, 1)),
    ("open('f')", "?call"),
    ("[1, 2][5], {'a': 1}['b'], 1 / 0, 'a' + 1", ("?call", "?call", "?limit", "?limit")),
    ("type(3) is int, callable(len)", (True, "?call")),
    ("1j, ...", ("?call", "?call")),
]

BODIES = [
    ("a, (b, *c) = 1, (2, 3, 4)\nx = a, b, c", (1, 2, [3, 4])),
    ("a = [1]\nb = a\nb += [2]\nx = a", [1, 2]),
    ("a = (1,)\nb = a\nb += (2,)\nx = a", (1,)),
    ("x = []\nfor i in range(3):\n    if i == 1: continue\n    x.append(i)\nelse:\n    x.append('e')", [0, 2, "e"]),
    ("for x in range(9):\n    if x == 4: break\nelse:\n    x = 'e'", 4),
    ("x = 0\nwhile x < 5: x += 2", 6),
    ("x = {}\nx['a'] = 1\nx.setdefault('a', 2)\nx.setdefault('b', 2)\ndel x['a']", {"b": 2}),
    ("x = [3, 1]\nx.sort()\nx.insert(0, 9)\nx.extend((4,))\nx[1] = 'n'", [9, "n", 3, 4]),
    ("def f(a, *b, c=3, **d): return a, b, c, d\nx = f(1, 2, c=4, e=5)", (1, (2,), 4, {"e": 5})),
    ("def f(a, b): return a - b\nx = f(*[3], **{'b': 1})", 2),
    ("def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += 1\n        return n\n    g()\n"
     "    return g()\nx = f()", 2),
    ("def f(n): return 1 if n == 0 else n * f(n - 1)\nx = f(5)", 120),
    ("def f():\n    yield 1\n    yield from (2, 3)\nx = list(f())", [1, 2, 3]),
    ("def twice(f):\n    def g(v): return f(f(v))\n    return g\n@twice\ndef f(v): return v + 1\nx = f(1)", 3),
    ("import functools\n@functools.wraps(1)\ndef f(v): return v + 1\nx = f(1)", 2),
    ("from functools import partial, reduce\nx = partial(max, 3)(2), reduce(lambda a, b: a * b, [2, 3])", (3, 6)),
    ("import math\nx = math.ceil(2.1), math.sqrt(16)", (3, 4.0)),
    ("from collections import OrderedDict as O\nx = O([('a', 1)])", {"a": 1}),
    ("from collections import namedtuple\nP = namedtuple('P', 'a b')\na, b = P(1, b=2)\n"
     "x = a, b, P(3, 4).b", (1, 2, 4)),
    ("from collections import defaultdict\nd = defaultdict(list)\nd['a'].append(1)\nx = d", {"a": [1]}),
    ("import copy\na = [[1]]\nb = copy.deepcopy(a)\nb[0].append(2)\nx = a", [[1]]),
    ("import itertools\nx = list(itertools.chain([1], (2,))), list(itertools.repeat(3, 2))", ([1, 2], [3, 3])),
    ("from torch.nn.modules.utils import _pair, _triple\nx = _pair(3), _triple([1, 2, 3])", ((3, 3), (1, 2, 3))),
    ("from timm.layers import to_2tuple\nx = to_2tuple(0.5), to_2tuple((7, 7))", ((0.5, 0.5), (7, 7))),
    ("import re\nx = re.split(r'(\\d.*)', 'c24')[:2]", ["c", "24"]),
    ("match 3:\n    case 1 | 2: x = 'a'\n    case int(): x = 'b'\n    case _: x = 'c'", "?branch"),
    ("match 3:\n    case 1 | 2: x = 'a'\n    case n if n > 2: x = n", 3),
    ("match (1, 2):\n    case (1, b): x = b", 2),
    ("try:\n    x = 1\nexcept ValueError:\n    x = 2\nfinally:\n    y = 3", "?branch"),
    ("try:\n    x = 1\nexcept ValueError:\n    raise\n", 1),
    ("with open('f') as f:\n    x = 3", 3),
    ("x = globals()['f'](2)\ndef f(v): return v", "?call"),
    ("def f(v): return v\nx = globals()['f'](2)", 2),
    ("len = 3\nx = len", 3),
    ("import torch\nimport torch.nn as nn\nfrom torch.nn import Conv2d as C\nx = torch.nn.Conv2d, nn.Linear, C",
     ("torch.nn.Conv2d", "torch.nn.Linear", "torch.nn.Conv2d")),
    ("torch = {'nn': 1}\nx = torch['nn']", 1),
    ("def f():\n    return 1\n    raise E\nx = f()", 1),
    ("def f(a):\n    assert a\n    return 1\nx = f(0)", "?call"),
]  # fmt: skip

CLASSES = [
    ("class A:\n    n = 3\n    def __init__(self, v): self.v = v\n    def f(self): return self.v * self.n\n"
     "x = A(2).f()", 6),
    ("class A:\n    def f(self): return 1\nclass B(A):\n    def f(self): return super().f() + 1\nx = B().f()", 2),
    ("class A:\n    def f(self): return 1\nclass B(A):\n    def f(self): return super(B, self).f() + 1\n"
     "x = B().f()", 2),
    ("class A:\n    def f(self): return 'A'\nclass B(A): pass\nclass C(A):\n    def f(self): return 'C'\n"
     "class D(B, C): pass\nx = D().f()", "C"),
    ("class A:\n    @property\n    def p(self): return 4\n    @staticmethod\n    def s(v): return v\n    @classmethod\n"
     "    def c(cls): return cls.__name__\nx = A().p, A.s(1), A.c(), A().c()", (4, 1, "A", "A")),
    ("class A:\n    @property\n    def p(self): return self.q\n    @p.setter\n    def p(self, v): self.q = v + 1\n"
     "a = A()\na.p = 3\nx = a.p", 4),
    ("class A:\n    def __call__(self, v): return v + 1\nx = A()(1)", 2),
    ("class A:\n    def __getitem__(self, i): return i\n    def __len__(self): return 7\nx = A()[3], len(A())", (3, 7)),
    ("from dataclasses import dataclass, field\n@dataclass\nclass A:\n    a: int\n    b: int = 2\n"
     "    c: list = field(default_factory=list)\nv = A(1)\nx = v.a, v.b, v.c", (1, 2, [])),
    ("from typing import NamedTuple\nclass A(NamedTuple):\n    a: int\n    b: int = 2\nx = list(A(1))", [1, 2]),
    ("import dataclasses as d\n@d.dataclass(frozen=True, slots=True)\nclass A:\n    a: int\n    b: tuple = (2, 3)\n"
     "@d.dataclass(kw_only=True)\nclass B:\n    a: A = d.field(default_factory=lambda: A(1))\n    n: int = 4\n"
     "x = B(n=5).n, B().a.b, B(a=A(6)).a.a", (5, (2, 3), 6)),
    *((f"{imports}\n{head}:\n    a: int = 2\n    b: list = {field}(default_factory=list)\n"
       f"    c: int = {field}(default=3)\nx = A(a=7).a, A().a, A(b=[1]).b, A().b, A(c=8).c, A().c",
       (7, 2, [1], [], 8, 3))
      for imports, head, field in (
          ("import attrs", "@attrs.frozen\nclass A", "attrs.field"),
          ("import attr", "@attr.s(auto_attribs=True)\nclass A", "attr.ib"),
          ("from attr import define, field", "@define(slots=False)\nclass A", "field"),
          ("import msgspec", "class A(msgspec.Struct, frozen=True)", "msgspec.field"),
          ("from pydantic import BaseModel, Field", "class A(BaseModel)", "Field"),
          ("from pydantic import BaseModel, Field\nclass Base(BaseModel):\n    n: int = 1", "class A(Base)", "Field"),
          ("from pydantic import Field\nfrom pydantic.dataclasses import dataclass", "@dataclass\nclass A", "Field"),
          ("from flax import struct", "@struct.dataclass\nclass A", "struct.field"),
      )),
    ("from pydantic import BaseModel, Field\nclass A(BaseModel):\n    a: int = Field(2, ge=1)\n"
     "    b: int = Field(...)\nx = A().a, A(a=3).a, A().b", (2, 3, "?call")),
    # what a method computes of a field is not followed
    ("from pydantic import BaseModel, field_validator\nclass A(BaseModel):\n    a: int = 2\n    b: int = 3\n"
     "    @field_validator('a')\n    def round(cls, v): return v * 8\nx = A(a=4).a, A(b=4).b", ("?call", 4)),
    ("import pydantic\nclass A(pydantic.BaseModel):\n    a: int = 2\n    @pydantic.model_validator(mode='before')\n"
     "    def change(cls, v): return {'a': 8}\nx = A(a=4).a", "?call"),
    # the environment decides what nobody gives
    ("from pydantic_settings import BaseSettings\nclass A(BaseSettings):\n    a: int = 2\nx = A(a=3).a, A().a",
     (3, "?config")),
    # a constructor that nobody knows may take what it is given for the value of the class
    ("from known import Config\nclass A(Config):\n    a = 2\n    b = 3\nx = A(a=4).a, A(a=4).b", ("?call", 3)),
    ("import enum\nclass E(enum.Enum):\n    A = 1\n    B = 2\n"
     "x = E.A == E.A, E.A == E.B, E.B.value, E['B'].name, E(1).name",
     (True, False, 2, "B", "A")),
    # members as keys: numbers and strings too count as those, others as nothing else
    ("import enum\nclass E(enum.Enum):\n    A = 1\n    B = enum.auto()\nd = {E.A: 3, E.B: 4}\n"
     "x = d[E.A], d[E.B], d.get(E.B), E.A in d, 1 in d, len(d)", (3, 4, 4, True, False, 2)),
    ("import enum\nclass E(enum.IntEnum):\n    A = 1\n    B = 2\nclass F(str, enum.Enum):\n    A = 'a'\n    B = 'b'\n"
     "d = {E.A: 3, F.A: 4}\nd[F.B] = 5\nx = d[E.A], d[1], d['a'], d[F.B], E.B == 2, F.B != 'b', F.A == 'b', E.B in d",
     (3, 3, 4, 5, True, False, False, False)),
    ("import enum\nclass E(enum.IntEnum):\n    A = enum.auto()\n    B = enum.auto()\nd = {E.A: 3, E.B: 4}\n"
     "x = d[E.B]", 4),
    ("class A: pass\nx = hasattr(A(), 'y'), getattr(A(), 'y', 5)", (False, 5)),
    ("class A: pass\na = A()\nsetattr(a, 'y', 4)\nx = a.y, getattr(a, 'y')", (4, 4)),
    ("class A: pass\nclass B(A): pass\n"
     "x = isinstance(B(), A), isinstance(A(), B), issubclass(B, A)", (True, False, True)),
    ("from collections.abc import Hashable\ndef f(): pass\n"
     "x = [isinstance(v, Hashable) for v in (1, 'a', None, f, [], {})]",
     [True, True, True, True, False, False]),
    ("from typing import Hashable\nclass A: pass\nx = isinstance(A(), Hashable)", "?call"),
    ("class A(A): pass\nx = A().f", "?call"),
    ("class A:\n    k = 2\n    l = [k]\nx = A.k, A.l", (2, [2])),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), EXPRESSIONS)
def test_an_expression(text: str, value: object) -> None:
    assert plain(variable(f"x = {text}")) == value


@pytest.mark.parametrize(("text", "value"), [*BODIES, *CLASSES])
def test_a_body(text: str, value: object) -> None:
    assert plain(variable(text)) == value


STATED = [
    ("x = 64", [(64, "x", 1)]),
    ("a = 64\nx = a * 2", [(2, "x", 2), (64, "a", 1)]),
    ("def f(width=32): return width\nx = f()", [(32, "width", 1)]),
    ("def f(width=32): return width\nx = f(width=16)", [(16, "width", 2)]),
    ("def f(width=32): return width\nx = f(16)", [(16, "", 2)]),
    ("c = {'chs': 24}\nx = c['chs']", [(24, "chs", 1)]),
    ("c = dict(chs=24)\nx = c['chs']", [(24, "chs", 1)]),
    ("c = [8, 16]\nx = c[1]", [(16, "c", 1)]),
    ("a, b = 8, 16\nx = b", [(16, "b", 1)]),
    ("x = int(8 * 1.5)", [(1.5, "x", 1), (8, "x", 1)]),
    ("x = max(8, 16)", [(16, "x", 1), (8, "x", 1)]),
    ("class A:\n    expansion = 4\nx = 2 * A.expansion", [(2, "x", 3), (4, "expansion", 2)]),
    ("x = -1", [(-1, "x", 1)]),
    ("x = len([1, 2])", []),
    ("x = 0\nfor i in range(3): x += i", [(0, "x", 1), (3, "", 2)]),
    ("x = int('c24'[1:])", [("c24", "x", 1)]),
]


@pytest.mark.parametrize(("text", "expected"), STATED)
def test_a_value_knows_the_literals_that_it_comes_from(text: str, expected: list[object]) -> None:
    assert stated(variable(text)) == expected


def test_a_value_remembers_no_more_than_sixteen_literals() -> None:
    assert len(stated(variable("x = " + " + ".join(str(1000 + at) for at in range(40))))) == 16


def test_a_literal_of_a_test_is_quiet() -> None:
    value = variable({"tests/test_a.py": "x = 3"}, path="tests/test_a.py")
    assert [each.quiet for each in value.stated] == [True]  # type: ignore[union-attr]


GIVEN = [
    "l = [1]\n    l.extend(more)\n    return l",
    "l = [1]\n    l += more\n    return l",
    "l = {1}\n    l.update(more)\n    return l",
    "return [1, *more]",
    "return list(zip([1, 2], more))",
    "return list(map(str, [1, 2], more))",
    "return sorted([3, a])",
    "return sorted(more)",
]


@pytest.mark.parametrize("body", GIVEN)
def test_a_list_of_more_than_is_known_says_for_whose_sake(body: str) -> None:
    value = roots_of(f"def f(a, *more):\n    {body}")["f"].value
    assert isinstance(value, Items)
    assert (value.complete, value.why) == (False, "parameter")
