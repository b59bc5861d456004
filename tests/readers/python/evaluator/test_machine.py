"""What is evaluated is what Python makes of it: each snippet is run by both."""

from typing import Any

import pytest
from evaluated import plain, variable

# Snippets that leave a value in x, with an empty line between them
NUMBERS = r"""
x = +True

x = ~6

x = ~True

x = -(2 ** 5)

x = 7 // 2, -7 // 2, 7 % -3, 7.5 // 2

x = divmod(17, 5)

x = 3 < 5 <= 5 < 9

x = 1 == True, 1 == 1.0

import math
x = math.ceil(2.1), math.floor(-2.1), math.sqrt(16)

import math
x = math.log2(8), math.gcd(12, 18), math.prod([2, 3, 4]), math.pow(2, 3)

from functools import reduce
x = reduce(lambda a, b: a * b, [1, 2, 3, 4]), reduce(lambda a, b: a + b, [1], 5)

from functools import partial
a = partial(max, 3)
x = a(5), a(1)

x = (5).bit_length(), (2.0).is_integer()

a, (b, *c), d = 1, (2, 3, 4), 5
x = a, b, c, d

x = 10 ** 3, 2 ** -1, 2 << 3, 9 >> 1, 6 & 3, 6 | 3, 6 ^ 3, 7 / 2, 6 / 2

x = 1e3, 0x10, 1_000, 1j.imag if False else 2

x = int(8 * 1.25 + 0.5), int(-2.5), round(-2.5), 7 // 2.0, -3 % 5

a = 1,
x = a

x: int = 3

x = 1 if True else 1 / 0

x = 0.1 + 0.2, 1e400, -1 ** 2, (-8) ** 2

x = round(7 / 8) * 8, max(8, int(37 + 4) // 8 * 8)
"""
TEXTS = r"""
x = "a" < "b", "a" in "abc", "d" not in "abc"

x = abs(-3), round(2.5), round(3.14159, 2), int(3.9), int("12"), float("1.5"), int("ff", 16)

x = str(12), repr("a"), chr(65), ord("A"), hex(255), bin(5)

import re
x = re.split("_", "a_b"), re.findall("[0-9]+", "a1b22"), re.sub("a", "b", "aac")

x = "abc".upper(), " a ".strip(), "abc".replace("b", "x")

x = "a,b".partition(","), "abc".find("c"), "abc".startswith(("x", "a"))

x = 0 or "" or None or 4, 1 and 2 and 0, not 0

a = "x"
a += "y"
x = a
"""
LISTS = r"""
x = (1, 2) < (1, 3), [1] == [1], (1,) == [1]

x = [1, 2, 1].count(1), [1, True, 2].count(1)

x = [4, 5, 6].index(5)

x = (1, 2, 3).__len__()

x = [1, 2, 3].copy()

a = [1, 2, 3, 2]
a.remove(2)
x = a

a = [3, 1, 2]
a.sort()
x = a

a = [3, 1, 2]
a.sort(reverse=True)
x = a

a = ["bb", "a", "ccc"]
a.sort(key=len)
x = a

a = [3, 1, 2]
a.reverse()
x = a

a = [1]
a.insert(0, 5)
x = a

a = [1, 2, 3]
b = a.pop(0)
x = a, b

a = [1, 2, 3]
b = a.pop()
x = a, b

a = [1, 2, 3]
a.clear()
x = a

a = [1, 2, 3]
del a[1]
x = a

a = [1, 2, 3, 4]
a[-1] = 9
x = a

a = [1, 2]
a += (3, 4)
x = a

a = [1, 2]
a *= 2
x = a

a = [1, 2]
b = a
a += [3]
x = b

a = (1, 2)
b = a
a += (3,)
x = a, b

a = {}
a["k"] = 1
a.update(b=2)
x = a

x = sorted([3, 1, 2], key=lambda a: -a)

x = sorted([(1, "b"), (1, "a")])

x = list(reversed([1, 2, 3]))

x = max([1, 5, 3]), min(4, 2), max("a", "bcd", key=len), max([], default=7)

x = min([[3, 1], [2, 9]])

x = sum([1, 2, 3]), sum([1, 2], 10), sum([[1], [2]], [])

x = any([0, 1]), all([1, 0]), any([]), all([])

x = bool([]), bool([0]), bool(""), bool({})

x = list(range(10, 0, -3))

x = range(10)[2:5][1], range(10)[-1]

x = 3 in range(5), 7 in range(5)

import operator
x = operator.add(1, 2), operator.mul(3, 4), operator.sub(5, 1), operator.floordiv(7, 2), operator.getitem([1, 2], 1)

x = "{}-{b}".format(1, b=2), "7".zfill(3), "ab".center(6, "*"), "a".isdigit(), "12".isdigit()

x = "a" * 3, [0] * 3, 3 * (1,), [1] + [2], (1,) + (2,)

x = [a for a in range(10) if a % 2 if a > 3]

x = [(a, b) for a in range(2) for b in range(a, 2)]

x = [y := 5, y ** 2]

x = (lambda *a, k=1, **kw: (a, k, kw))(1, 2, k=3, z=4)

x = 5 if [] else 6

a = b = [1]
a.append(2)
x = b

a = [1, 2, 3]
a[0], a[1] = a[1], a[0]
x = a

a = [[0] * 2] * 2
a[0][0] = 1
x = a

a = [[0] * 2 for _ in range(2)]
a[0][0] = 1
x = a

import copy
a = [[1]]
b = copy.copy(a)
c = copy.deepcopy(a)
a[0].append(2)
x = b, c

x = isinstance(3.0, int), isinstance(None, type(None)), isinstance([], tuple)

x = [1, 2, 3][-2:], [1, 2, 3][::2], (1, 2, 3)[5:], [1, 2, 3][:-1]

x = all(isinstance(a, int) for a in [1, 2]), any(a > 1 for a in (1, 2))

x = ["a", "b"] == list("ab"), "ab" == "a" "b"

x = [None] * 2, None is None, None == 0

x = sum(x for x in [1, 2]), x if False else 1

a = [1, 2]
b = a[:]
b.append(3)
x = a, b

a = [1, 2, 3]
x = a[len(a) - 1], a[a[0]]

x = [1, [2, [3]]][1][1][0]

x = [1, 2] < [1, 2, 0], (1, "a") < (1, "b"), max((1, 2), (1, 3))

x = list(range(3)) + list(range(2))[::-1]

x = [a for a in [[1, 2], [3]] for a in a]
"""
SETS = r"""
a = {1, 2}
a.discard(5)
x = sorted(a)

x = "a-b-c".split("-"), "a b".split(), "x".join("ab"), "abc"[::-1], "abc"[1:], "%d-%s" % (1, "a"), f"{3:02d}{'a'!r}"

x = sorted({a % 3 for a in range(9)})

a = {1, 2}
a |= {3}
x = sorted(a)

a = {1, 2}
a -= {1}
x = sorted(a)

a = {1, 2}
a.add(2)
a.add(3)
x = sorted(a), len(a)

x = "%s" % 3, "%5.2f" % 3.14159, "%d%%" % 5, f"{3.14159:.2f}", f"{'a':>3}"

x = len({1, 1.0, True}), {True: 1, 1: 2}
"""
DICTS = r"""
x = {"a": 1} == {"a": 1}, {"a": 1} == {"a": 2}, {"a": 1} == {"b": 1}

a = {"a": 1, "b": 2}
b = a.pop("a")
x = a, b

a = {"a": 1}
b = a.pop("z", 7)
x = a, b

a = {"a": 1}
b = a.popitem()
x = a, b

a = {"a": 1}
b = a.setdefault("a", 3), a.setdefault("c", 4)
x = a, b

a = {"a": 1}
a.clear()
x = a

a = {"a": 1}
a.__setitem__("b", 2)
x = a

a = {"a": 1}
x = a.__contains__("a"), "b" in a

a = {"a": 1, "b": 2}
del a["a"]
x = a

a = {"a": 1} | {"b": 2}
x = a

a = {"a": 1}
a |= {"a": 3}
x = a

a = {"a": 1}
x = {**a, "b": 2}

a = dict([("a", 1), ("b", 2)])
x = a

a = dict(a=1, b=2)
x = list(a), list(a.items()), list(a.values()), list(a.keys())

a = dict.fromkeys("ab", 3)
x = a

x = len("abc"), len([1, 2]), len({1: 2}), len(range(0, 10, 3))

import operator
x = sorted({"a": 2, "b": 1}.items(), key=operator.itemgetter(1))

from collections import defaultdict
a = defaultdict(list)
a["k"].append(1)
x = a["k"], len(a)

from collections import defaultdict
a = defaultdict(int)
a["k"] += 2
x = a["k"], a["z"], len(a)

from collections import deque
a = deque([1, 2])
a.appendleft(0)
b = a.popleft()
x = b, list(a)

from collections import namedtuple
P = namedtuple("P", ["a", "b"], defaults=[5])
p = P(1)
x = p.b

x = isinstance(3, int), isinstance(True, int), isinstance("a", (int, str))

x = isinstance([], list), isinstance((), (list, tuple)), isinstance({}, dict)

x = type(3) is int, type("a") == str, type([]) is list, type({}) is dict, type(True) is int

x = list({"b": 1, "a": 2}), sorted({"b": 1, "a": 2}), max({"b": 1, "a": 2}), {"b": 1, "a": 2}.get("c", 0)

a = {1: "a", 1.0: "b"}
x = a, len(a)
"""
ITERATORS = r"""
x = list(zip([1, 2], "ab"))

x = list(map(lambda a, b: a + b, [1, 2], [3, 4]))

x = list(filter(None, [0, 1, 2]))

x = list(filter(lambda a: a > 1, [0, 1, 2]))

x = list(enumerate("ab", 1)), list(enumerate("ab", start=2))

import itertools
x = list(itertools.chain([1], [2, 3]))

import itertools
x = list(itertools.chain.from_iterable([[1], [2, 3]]))

import itertools
x = list(itertools.repeat(4, 3))

import itertools
x = list(itertools.product([1, 2], "ab"))

import itertools
x = list(itertools.accumulate([1, 2, 3]))

import itertools
x = list(itertools.accumulate([1, 2, 3], lambda a, b: a * b))

import itertools
x = list(itertools.accumulate([1, 2, 3], initial=10))

import itertools
x = list(itertools.islice([1, 2, 3, 4], 2))

import itertools
x = list(itertools.islice([1, 2, 3, 4], 1, 3)), list(itertools.islice([1, 2, 3, 4], 1, None, 2))

import itertools
x = list(itertools.pairwise([1, 2, 3]))

import itertools
a = iter([1, 2, 3, 4])
b = list(itertools.islice(a, 2))
x = b, list(a)

a = iter([1, 2, 3, 4])
x = list(zip(a, a))

a = iter([1, 2, 3])
b = next(a)
x = b, list(a)

a = iter([1, 2, 3])
b = list(a)
x = b, list(a)

a = iter([1, 2, 3])
b = sum(a)
x = b, list(a)

a = iter([1, 2, 3])
b, *c = a
x = b, c, list(a)

a = (i * 2 for i in range(3))
b = tuple(a)
x = b, tuple(a)

a = (i * 2 for i in range(3))
b = max(a)
x = b, tuple(a)

a = map(str, [1, 2])
b = "".join(a)
x = b, list(a)

a = zip([1, 2], [3, 4])
b = dict(a)
x = b, list(a)

a = enumerate("ab")
b = [c for c in a]
x = b, list(a)

a = iter([1, 2, 3])
x = [c for c in a if c < next(a, 9)]

a = iter(range(6))
x = [(b, next(a)) for b in a]

x = next(iter([]), 5)

a = iter([1])
b = next(a, 0)
x = b, next(a, 0)

import operator
x = list(map(operator.itemgetter(1), [(1, 2), (3, 4)]))

x = {a: b for a, b in zip("ab", [1, 2])}

x = list(dict(zip("ab", (1, 2))).items())[0][1]

x = (i for i in [1]).__next__()

x = list(map(int, "1 2 3".split())), [int(a) for a in "12"]

x = list(zip(*[(1, 2), (3, 4)]))

x = [list(a) for a in zip(*[iter([1, 2, 3, 4])] * 2)]

x = dict(zip("ab", map(lambda a: a * 2, range(2))))
"""
STATEMENTS = r"""
try: a = [1][5]
except IndexError: x = "index"

try: a = {}["k"]
except KeyError: x = "key"

x = 0
for i in range(5):
    if i == 3: break
    x += i
else: x = 100

x = 0
while x < 10:
    x += 3
    if x == 6: continue

match 5:
    case 1 | 5: x = "hit"
    case _: x = "miss"

match ("a", 3):
    case ("a", n) if n > 5: x = 1
    case ("a", n): x = n

match True:
    case True: x = "t"
    case _: x = "o"

match 1:
    case True: x = "t"
    case _: x = "o"

match None:
    case None: x = "none"
    case _: x = "o"

a = [1, 2, 3]
for i, v in enumerate(a): a[i] = v * 2
x = a

a = {"a": 1}
for k, v in list(a.items()): a[k + k] = v
x = a

a = [1, 2, 3, 4]
for v in a:
    if v == 2: a.remove(v)
x = a

a = [3]
for v in a:
    if v: a.append(v - 1)
x = a
"""
FUNCTIONS = r"""
def f(a, b=2, *c, d=4, **e): return a, b, c, d, e
x = f(1), f(1, 3, 5, d=6, z=7), f(*[1, 2, 3], **{"d": 9})

def f():
    yield 1
    yield from [2, 3]
x = list(f()), [*f()]

def f(n): return 1 if n < 2 else n * f(n - 1)
x = f(5)

def f():
    n = 0
    def g():
        nonlocal n
        n += 1
        return n
    g(); return g()
x = f()

n = 0
def f():
    global n
    n += 5
f(); x = n

def f(a=[]):
    a.append(1); return len(a)
x = f(), f(), f([])
"""
CLASSES = r"""
class A:
    n = 0
    def __enter__(self): A.n += 1; return self
    def __exit__(self, *a): A.n += 10; return True
with A() as a: raise ValueError
x = A.n

class A:
    k = 3
    @property
    def p(self): return self.k + 1
    @staticmethod
    def s(a): return a
    @classmethod
    def c(cls, a): return cls.k + a
class B(A):
    k = 5
    @property
    def p(self): return super().p * 2
x = A().p, B().p, A.s(1), B.c(1), B().c(2)

class A:
    def __getattr__(self, name): return name + "!"
x = A().foo

class A:
    def __init__(self): self.it = 0
    def __iter__(self): return self
    def __next__(self):
        self.it += 1
        return self.it
a = A(); x = next(a), next(a)

import dataclasses
@dataclasses.dataclass
class D:
    a: int
    b: int = 3
    c: list = dataclasses.field(default_factory=list)
d = D(1); e = dataclasses.replace(d, a=7); x = d.a, d.b, d.c, e.a, dataclasses.asdict(d)["b"]

from enum import Enum
class E(Enum):
    A = 1
    B = "b"
x = E.A.value, E["B"].value, E(1).name, [e.value for e in E]
"""
# What is not followed: nobody knows it then, and no value is a wrong one
OF_ATTRIBUTES = r"""
from types import SimpleNamespace
a = SimpleNamespace(w=16, name="net")
a.w += 8
x = a.w, a.name, vars(a)["w"], hasattr(a, "w"), hasattr(a, "h"), getattr(a, "h", 3), a.__dict__["name"]

from argparse import Namespace
a = Namespace(**{"w": 16})
setattr(a, "h", 4)
x = a.w, a.h, sorted(vars(a))

class Named(dict):
    def __getattr__(self, name):
        return self[name]
a = Named({"w": 16, "inner": Named(h=3)})
x = a.w, a["w"], a.inner.h, len(a), "w" in a, "h" in a

class Named(dict):
    def __getattr__(self, name):
        return self[name]
a = Named({"w": 16, "inner": Named(h=3)})
del a["inner"]
x = list(a), a.get("h", 5), a.pop("w"), a

class Named(dict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name)
    def __setattr__(self, name, value):
        self[name] = value
a = Named()
a.w = 16
a["h"] = a.w // 2
x = a.h, [key for key in a], dict(a)

class Named(dict):
    def __init__(self, *args, **kwargs):
        super(Named, self).__init__(*args, **kwargs)
        self.__dict__ = self
a = Named({"w": 16}, h=2)
x = a.w * a.h, [(k, v) for k, v in a.items()]

class Named(dict):
    __getattr__ = dict.get
    __setattr__ = dict.__setitem__
a = Named(w=16)
a.h = 2
x = a.w, a["h"]

class Named(dict):
    def __init__(self, given):
        super().__init__()
        for key, value in given.items():
            self[key] = Named(value) if isinstance(value, dict) else value
    __getattr__ = dict.__getitem__
a = Named({"w": 16, "inner": {"h": 2}})
x = a.inner.h, a.w

from collections import OrderedDict
class Registry(OrderedDict):
    def register(self, name):
        def take(thing):
            self[name] = thing
            return thing
        return take
    def first(self):
        return list(self.values())[0]
known = Registry()
@known.register("net")
def f():
    return 3
x = known["net"](), known.first()(), list(known.keys()), bool(known)

class Sizes(dict):
    def __getitem__(self, key):
        return super().__getitem__(key) * 2
a = Sizes(w=8)
a.update(h=3)
x = a["w"], a["h"], a.pop("h")

class Named(dict):
    pass
a = Named()
a[8] = "w"
x = bool(Named())
"""

ARRAYS = r"""
import numpy as np
a = np.array([64, 128, 256])
x = int(a[1]), len(a), [int(b) for b in a[1:]], a.tolist(), int(a[-1] // 2)

import numpy as np
a = np.array([64, 128]) * 2
b = 2 * np.array((3, 4))
x = a.tolist(), b.tolist(), (a + b).tolist(), (a // 64 - 1).tolist(), (a + [1, 2]).tolist()

import numpy as np
a = np.array([64, 100]) / 8
x = a.tolist(), a.astype(int).tolist(), a.astype(np.int64).tolist(), [int(b) for b in a]

import numpy as np
a = b = np.array([4, 8])
a *= 2
a += 1
x = b.tolist()

import numpy as np
x = int(np.sum([64, 128])), int(np.prod((3, 4))), int(np.sum(np.array([4, 8]) // 2))
"""

NOT_FOLLOWED = r"""
import numpy as np
x = np.sum([[3, 4], [5, 6]]).tolist(), np.sum([3, 4], axis=0).tolist(), np.prod([3, 4], 0).tolist()

import numpy as np
x = isinstance(np.array([3]), np.ndarray), isinstance(np.array([3]), list)

import numpy as np
x = bool((np.array([3, 4]) == np.array([3, 5])).any())

import numpy as np
x = np.array([[3, 4]]).tolist(), np.array([3, 4.5]).tolist(), np.array([3], dtype=float).tolist()

import numpy as np
x = np.array([3, 4])[[1]].tolist(), (np.array([3, 4]) + np.array([1])).tolist()

x = {1, 2} == {2, 1}

a = [1, 2, 3, 4]
del a[1:3]
x = a

a = [1, 2, 3, 4]
a[1:3] = [9]
x = a

x = sorted(["b", "A", "c"], key=str.lower)

import itertools
x = list(itertools.product([0, 1], repeat=2))

a = iter([1, 2, 3])
b = 2 in a
x = b, list(a)

from collections import OrderedDict
a = OrderedDict([("a", 1)])
a["b"] = 2
a.move_to_end("a")
x = list(a)

from collections import OrderedDict
a = OrderedDict(a=1, b=2)
b = a.popitem(last=False)
x = b

from collections import deque
a = deque([1, 2, 3], maxlen=2)
x = list(a)

from collections import deque
a = deque([1, 2, 3], 2)
x = list(a)

from collections import deque
a = deque([1, 2, 3])
a.rotate(1)
x = list(a)

from collections import namedtuple
P = namedtuple("P", "a b")
p = P(1, b=2)
x = p.a, p[1], tuple(p), len(p)

from collections import namedtuple
P = namedtuple("P", "a b")
p = P(1, 2)._replace(a=9)
x = p.a, p.b

from collections import namedtuple
P = namedtuple("P", "a b")
x = P(1, 2)._asdict()["b"]

x = callable(len), callable(3)

x = hasattr([], "append"), hasattr(3, "foo")

x = {1, 2} | {3}, {1, 2} & {2}, {1, 2} - {2}, {1, 2} ^ {2, 3}

x = sorted({1, 2}.union([5])), sorted({1, 2}.intersection([2])), sorted({1, 2}.difference([2]))

x = {1}.issubset({1, 2}), {1, 2}.issuperset({1})

x = {1} <= {1, 2}, {1, 2} < {1, 2}

x = slice(1, 3), [1, 2, 3, 4][slice(1, 3)]

a = [0, 1, 2, 3, 4, 5]
a[::2] = [9, 9, 9]
x = a

a = list("abc")
a[1:1] = "xy"
x = a

x = [*range(3), *"ab"], {*[1], 2} == {1, 2}, (*[1], 2)

x = str.join("-", ["a", "b"]), list.index([3, 4], 4), dict.get({"a": 1}, "a"), str.lower("A")

x = tuple(a for a in [1, 2]), list(tuple([1])), set("aab") == {"a", "b"}, frozenset([1]) == {1}

try: a = int("a")
except ValueError: x = "value"
else: x = 1

match [1, 2, 3]:
    case [a, *b]: x = a, b

match {"k": 5, "z": 1}:
    case {"k": v, **rest}: x = v, rest

match "abc":
    case [*_]: x = "sequence"
    case str(): x = "str"

match 5:
    case int(n): x = n
    case _: x = 0

class A:
    def __init__(self): self.a = 1
    def __len__(self): return 4
    def __getitem__(self, i): return i * 2
    def __call__(self, b): return b + self.a
    def __contains__(self, b): return b == 3
    def __eq__(self, other): return True
    def __add__(self, other): return 7
    def __bool__(self): return False
    def __iter__(self): return iter([4, 5])
o = A(); x = len(o), o[3], o(4), 3 in o, 4 in o, o + 1, bool(o), list(o), o == 9, not o

class A:
    def __radd__(self, other): return other * 2
    def __iadd__(self, other): self.n = other; return self
o = A(); b = 5 + o; o += 8; x = b, o.n

class A:
    def __init__(self): self.it = 0
    def __iter__(self): return self
    def __next__(self):
        self.it += 1
        if self.it > 3: raise StopIteration
        return self.it
x = list(A())

from types import SimpleNamespace
n = SimpleNamespace(a=1); n.b = 2; x = n.a, n.b

x = getattr("abc", "upper")(), getattr(3, "nothing", 4)

a = {(1, 2): "t", 1: "one", True: "yes"}
x = a[(1, 2)], a[1]

x = "a\tb".expandtabs(), "aXb".swapcase(), "a b".title(), "abc".index("b"), "aab".rfind("a"), "a\nb".splitlines()
"""
_ALL = (NUMBERS, TEXTS, LISTS, SETS, DICTS, ITERATORS, STATEMENTS, FUNCTIONS, CLASSES, OF_ATTRIBUTES, ARRAYS)


def snippets(text: str) -> list[str]:
    return [each.strip("\n") for each in text.split("\n\n")]


def pythons(text: str) -> Any:
    """What Python leaves in x."""
    names: dict[str, Any] = {"__name__": "m"}
    exec(compile(text, "m.py", "exec", dont_inherit=True), names)
    return names["x"]


def disagree(mine: Any, its: Any) -> bool:
    """Whether something that is known is another than Python's: a `1.0` for a `1` too, and another order."""
    if isinstance(mine, str) and (mine.startswith(("?", "a ", "an "))):
        return False
    if isinstance(its, (set, frozenset)):
        its, mine = sorted(its), sorted(mine) if isinstance(mine, list) and "..." not in mine else mine
    if isinstance(mine, (list, tuple, dict)) and "..." in mine:
        return False
    if type(mine) is not type(its):
        return True
    if isinstance(its, (list, tuple)):
        return len(mine) != len(its) or any(map(disagree, mine, its))
    if isinstance(its, dict):
        return list(mine) != list(its) or any(disagree(mine[key], its[key]) for key in its)
    return bool(mine != its)


def is_known(value: Any) -> bool:
    parts = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return not (isinstance(value, str) and value.startswith(("?", "..."))) and all(map(is_known, parts))


@pytest.mark.parametrize("text", [each for part in _ALL for each in snippets(part)])
def test_gives_what_python_gives(text: str) -> None:
    found = plain(variable(text))
    assert is_known(found), found
    assert not disagree(found, pythons(text)), found


@pytest.mark.parametrize("text", snippets(NOT_FOLLOWED))
def test_what_is_not_followed_is_not_known(text: str) -> None:
    found = plain(variable(text))
    assert not disagree(found, pythons(text)), found


@pytest.mark.parametrize(("mine", "its"), [(1, 1.0), ([1, 2], [2, 1]), ({"a": 1}, {"a": 2}), ((1,), [1]), ("a", "b")])
def test_a_wrong_value_disagrees(mine: Any, its: Any) -> None:
    assert disagree(mine, its)
