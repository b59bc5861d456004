"""Compares what reading random constructors of networks says with what running them does.

`python -m attack.constructors` runs it from the folder of the tests.

Each program builds convolutions in ways that Python allows: keys and attributes that one path alone binds, `try`,
loops with `else`, aliases, metaclasses. It is run with PyTorch on the meta device for several choices of what its
reader cannot know, and what it constructed is held against what reading its source says. A width that reading states
of a place without a condition, and that a run contradicts, is wrong. Exit code 1 where any is.

As jedi's `sith.py`, which attacks real files with random questions (davidhalter/jedi on GitHub).
"""

from __future__ import annotations

import argparse
import ast
import random
import sys
import textwrap
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any
from unittest import mock

from convlint.model.source import SourceLayer
from convlint.readers.python.imports import ProjectImports
from convlint.readers.python.nn import merging
from convlint.readers.python.nn.reading import read_layers
from convlint.readers.python.project import Project

PATH = "/constructors/net.py"
RUNS = 6  # choices of the parameters for each program
DEADLINE = 40_000  # lines that one run of a program may execute
DEADLINE_OF_CALL = 100  # lines that a call of `helper` counts as: Python ends tracing where recursion is too deep
WIDTHS = (8, 16, 24, 32, 40, 48, 62, 64, 96, 128)
KEYS = ("mid", "out", "wide")
LETTERS = ("C", "K", "groups", "bias")
Width = tuple[int, int, int, bool]  # C, K, groups, bias


class Late(BaseException):
    """A run has executed all lines that it may; no handler of a program catches it."""


class Slim:
    """An object unknown to the reader: it raises, changes its argument, or does nothing."""

    def __init__(self, seed: int) -> None:
        self.refusal: type[Exception] = ValueError
        self.raises, self.changes = seed % 2 == 0, seed % 3 == 0

    def check(self) -> None:
        """May refuse."""
        if self.raises:
            raise self.refusal

    def narrow(self, thing: Any) -> None:
        """May change a dict, a list or an object."""
        if not self.changes:
            return
        if isinstance(thing, dict):
            thing["mid"] = 62
        elif isinstance(thing, list):
            thing.append(62)
        else:
            thing.mid = 62


@dataclass
class Choice:
    """Arguments of a program's `main`."""

    flag: bool
    count: int
    name: str
    slim: Slim
    extra: dict[str, int]

    @classmethod
    def of(cls, seed: int) -> Choice:
        """One of many."""
        chance = random.Random(seed)
        extra = {key: chance.choice(WIDTHS) for key in KEYS if chance.random() < 0.4}
        return cls(chance.random() < 0.5, chance.randrange(4), chance.choice("abc"), Slim(chance.randrange(60)), extra)


@dataclass
class Built:
    """One convolution as it was constructed: its line, its width, and the functions and classes that were at it."""

    line: int
    width: Width
    names: frozenset[str]


@dataclass
class Body:
    """What the statements of one function can see: expressions of numbers, and names of dicts, lists and functions."""

    numbers: list[str]
    tables: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    of_self: bool = False
    depth: int = 0
    loops: int = 0
    returns: bool = False

    def inner(self) -> Body:
        """The names of an inner block; names bound there are not visible after it."""
        return Body(
            [*self.numbers], [*self.tables], [*self.lists], self.of_self, self.depth + 1, self.loops, self.returns
        )


class Writer:
    """Writes one random program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.number = 0
        self.classes: list[str] = []

    def program(self) -> str:
        """The whole of it."""
        classes = [self._class(name) for name in ("First", "Second", "Third")[: self.random.randrange(1, 4)]]
        return "\n".join([HEADER, *classes, self._function(), self._main()])

    # Names and numbers

    def _new(self, prefix: str) -> str:
        self.number += 1
        return f"{prefix}{self.number}"

    def _pick(self, *options: str) -> str:
        return self.random.choice(options)

    def _width(self) -> str:
        return str(self.random.choice(WIDTHS))

    def _unknown(self) -> str:
        return self._pick("flag", "flag", "count > 1", "not flag", "name == 'a'", "name in ('a', 'b')", "count")

    def _test(self, body: Body) -> str:
        if self.random.random() < 0.75:
            return self._unknown()
        return self._pick(
            f"{self._number(body)} > 40", "True", "WIDE", f"{self._number(body)} % 16 == 0", "'b' in NAMES"
        )

    def _number(self, body: Body) -> str:
        """An expression of a width."""
        chance = self.random.random()
        if chance < 0.3:
            return self._width()
        if chance < 0.55 and body.numbers:
            return self.random.choice(body.numbers)
        key, width = self.random.choice(KEYS), self._width()
        options = [
            f"BASE * {self._pick('1', '2')}",
            f"scaled({width})",
            f"SIZES['{self._pick('s', 'm')}']",
            "Config.mid",
            f"({width} if {self._unknown()} else {self._width()})",
            "max(16, Config().out)",
            f"lifted({width})",
        ]
        if body.tables:
            table = self.random.choice(body.tables)
            options += [
                f"{table}.get('{key}', {width})",
                f"{table}['{key}'] if '{key}' in {table} else {width}",
                f"{table}.pop('{key}', {width})",
                f"{table}.setdefault('{key}', {width})",
                f"8 * (len({table}) + 1)",
                f"dict({table}).get('{key}', {width})",
                f"mid_of(**{table})",
                f"({{'{key}': {width}, **{table}}})['{key}']",
            ] * 2
        if body.lists:
            held = self.random.choice(body.lists)
            options += [
                f"{held}[-1]",
                f"{held}[0]",
                f"max({held})",
                f"8 * len({held})",
                f"last({held}[:2])",
                f"[x for x in {held} if x > 8 or flag][-1]",
                f"sum({held}[:1])",
            ]
        if body.of_self:
            options += [
                f"getattr(self, '{key}', {width})",
                f"self.{key} if hasattr(self, '{key}') else {width}",
                "self.base",
                f"self.__dict__.get('{key}', {width})",
                "self.double",
                "self.pick()",
            ] * 2
        return f"({self.random.choice(options)})"

    # Statements

    def block(self, body: Body, least: int = 1, most: int = 2) -> list[str]:
        """Some statements."""
        found: list[str] = []
        for _ in range(self.random.randint(least, most)):
            found += self._statement(body)
        return found

    def _statement(self, body: Body) -> list[str]:
        makers: list[Callable[[Body], list[str]]] = [
            self._conv, self._conv, self._conv, self._trap, self._trap,
            self._assigned, self._assigned, self._container, self._changed_table,
            self._changed_list, self._walrus, self._alias, self._short, self._helped,
        ]  # fmt: skip
        if body.depth < 2:
            makers += [self._if, self._if, self._for, self._while, self._try, self._try, self._suppressed, self._match,
                       self._closure, self._if]  # fmt: skip
        if body.of_self:
            makers += [self._attribute, self._attribute, self._attribute]
        if body.loops:
            makers.append(lambda _: [f"if {self._unknown()}: {self._pick('break', 'continue')}"])
        if body.returns and body.depth == 0:
            makers.append(lambda _: [f"if {self._unknown()}: return"])
        return self.random.choice(makers)(body)

    def _conv(self, body: Body) -> list[str]:
        more = self._pick(
            "", "", ", bias=False", ", bias=flag", f", bias={self._pick('True', 'WIDE')}", ", groups=1", ", groups=2"
        )
        kept = "KEPT.append"
        layer = f"nn.Conv2d({self._number(body)}, {self._number(body)}, 3{more})"
        if body.of_self and self.random.random() < 0.4:
            return [f"self.{self._new('conv')} = {layer}"]
        if self.random.random() < 0.12:
            return [f"KEPT.extend([nn.Conv2d(8, x, 1) for x in ({self._number(body)}, {self._width()})])"]
        if self.random.random() < 0.15:
            return [f"{kept}(Block({self._number(body)}, mid={self._number(body)}))"]
        if body.tables and self.random.random() < 0.15:
            return [f"{kept}(Block({self._number(body)}, **{self.random.choice(body.tables)}))"]
        if self.random.random() < 0.15:
            return [f"{kept}(conv3x3({self._number(body)}, {self._number(body)}))"]
        return [f"{kept}({layer})"]

    def _trap(self, body: Body) -> list[str]:
        """A width that something changes on one path alone, and a convolution that has it."""
        first, second = self._width(), self._width()
        name, other, either = self._new("w"), self._new("u"), self._new("v")
        kinds = [
            ([f"{name} = {first}"], f"{name} = {second}", name),
            ([f"{name} = {{}}"], f"{name}.update(mid={second})", f"{name}.get('mid', {first})"),
            ([f"{name} = {{}}"], f"{name}['mid'] = {second}", f"mid_of(**{name})"),
            ([f"{name}, {other} = {{}}, {{}}", f"{either} = {name} if flag else {other}"],
             f"{either}.update(mid={second})", f"{name}.get('mid', {first})"),
            ([f"{name}, {other} = [{first}], [{first}]", f"{either} = {name} if flag else {other}"],
             f"{either}.append({second})", f"{name}[-1]"),
            ([f"{name} = [{first}]"], f"{name}.append({second})", f"{name}[-1]"),
        ]  # fmt: skip
        if body.of_self:
            kinds.append(([f"self.{name} = {first}"], f"setattr(self, '{name}', {second})", f"self.{name}"))
            kinds.append(([], f"setattr(self, '{name}', {second})", f"getattr(self, '{name}', {first})"))
            kinds.append(([], f"self.__dict__.update({name}={second})", f"getattr(self, '{name}', {first})"))
        before, effect, read = self.random.choice(kinds)
        ways = [
            [f"if {self._unknown()}: {effect}"],
            ["try:", "    slim.check()", f"    {effect}", "except Refused: pass"],
            ["try:", f"    {effect}", "    slim.check()", "except Refused: pass", f"else: {effect}"],
            ["try:", "    slim.check()", "except Refused: pass", f"else: {effect}"],
            [
                f"with {self._pick('contextlib.suppress(Refused)', 'quiet()', 'Quiet()')}:",
                "    slim.check()",
                f"    {effect}",
            ],
            ["for _ in (1, 2):", f"    if {self._unknown()}: break", f"else: {effect}"],
            ["for x in (1, 2):", f"    if x == 1 and {self._unknown()}: break", f"    {effect}"],
            ["for _ in range(count):", f"    {effect}"],
            ["for x in extra.values():", "    if x > 40: break", f"else: {effect}"],
            ["match name:", f"    case 'a': {effect}"],
        ]
        if "=" not in effect.partition("(")[0]:
            ways += [[f"{self._unknown()} {self._pick('and', 'or')} {effect}"], [f"[{effect} for _ in range(count)]"]]
        return [*before, *self.random.choice(ways), f"KEPT.append(nn.Conv2d({self._width()}, {read}, 1))"]

    def _assigned(self, body: Body) -> list[str]:
        if body.numbers and self.random.random() < 0.5:
            names = [name for name in body.numbers if name.isidentifier()]
            if names:
                return [f"{self.random.choice(names)} = {self._number(body)}"]
        name = self._new("w")
        lines = [f"{name} = {self._number(body)}"]
        body.numbers.append(name)
        return lines

    def _container(self, body: Body) -> list[str]:
        if self.random.random() < 0.5:
            name = self._new("kw")
            held = ", ".join(f"'{key}': {self._width()}" for key in KEYS if self.random.random() < 0.4)
            body.tables.append(name)
            return [f"{name} = {{{held}}}"]
        name = self._new("ws")
        body.lists.append(name)
        return [f"{name} = [{self._width()}, {self._number(body)}]"]

    def _changed_table(self, body: Body) -> list[str]:
        if not body.tables:
            return self._container(body)
        table, key, number = self.random.choice(body.tables), self.random.choice(KEYS), self._number(body)
        return [self._pick(
            f"{table}['{key}'] = {number}", f"{table}.update({key}={number})", f"{table} |= {{'{key}': {number}}}",
            f"{table}.pop('{key}', None)", f"{table}.setdefault('{key}', {number})", f"narrow({table}, {number})",
            f"if '{key}' in {table}: del {table}['{key}']", f"{table}.update(extra)", f"slim.narrow({table})",
            f"{table} = {{**{table}, '{key}': {number}}}", f"{table} = dict({table}, {key}={number})",
            f"[{table}.update({key}=w) for w in range(8, 8 * count, 8)]", f"{table}[name] = {number}",
        )]  # fmt: skip

    def _changed_list(self, body: Body) -> list[str]:
        if not body.lists:
            return self._container(body)
        held, number = self.random.choice(body.lists), self._number(body)
        return [self._pick(
            f"{held}.append({number})", f"{held}[0] = {number}", f"{held} += [{number}]",
            f"{held}.extend([{number}, 16])",
            f"{held}.insert(0, {number})", f"{held}.reverse()", f"grown({held})", f"slim.narrow({held})",
            f"{held} = {held}[:2] + [{number}]", f"{held}[1:] = [{number}]", f"{held}.sort()", f"{held} *= 2",
            f"{held} = [x for x in {held} if x != {number}] or [8]", f"{held} = sorted(set({held}))",
            f"{held} = list({held})", f"{held}.extend(extra.values())",
        )]  # fmt: skip

    def _attribute(self, body: Body) -> list[str]:
        key, number = self.random.choice(KEYS), self._number(body)
        return [self._pick(
            f"self.{key} = {number}", f"self.{key} = {number}", f"setattr(self, '{key}', {number})",
            f"self.__dict__['{key}'] = {number}", f"vars(self)['{key}'] = {number}", f"self.narrowed({number})",
            f"object.__setattr__(self, '{key}', {number})", f"self.__dict__.update({key}={number})",
            f"self.__setattr__('{key}', {number})", f"super().__setattr__('{key}', {number})",
            f"self.__dict__.pop('{key}', None)", f"if hasattr(self, '{key}'): del self.{key}", "slim.narrow(self)",
            "for k, v in extra.items(): setattr(self, k, v)", f"type(self).base = {number}",
            f"self.__dict__.setdefault('{key}', {number})", f"narrowed({number}, self)",
        )]  # fmt: skip

    def _walrus(self, body: Body) -> list[str]:
        name = self._new("w")
        number = self._number(body)
        inner = body.inner()
        inner.numbers.append(name)
        lines = [f"if ({name} := {number}) > {self._width()}:", *self._in(inner)]
        body.numbers.append(name)
        return lines

    def _alias(self, body: Body) -> list[str]:
        if not body.tables:
            return self._container(body)
        first, second, name = self.random.choice(body.tables), self.random.choice(body.tables), self._new("kw")
        body.tables.append(name)
        return [f"{name} = {self._pick(first, f'{first} if {self._unknown()} else {second}', f'{first} or {second}')}"]

    def _short(self, body: Body) -> list[str]:
        effect = self._changed_table(body) if not body.of_self or self.random.random() < 0.5 else self._attribute(body)
        try:
            ast.parse(effect[0], mode="eval")
        except SyntaxError:
            return effect  # a statement
        return [f"{self._unknown()} {self._pick('and', 'or')} {effect[0]}"]

    def _helped(self, body: Body) -> list[str]:
        return [
            self._pick(
                f"KEPT.append({self._pick('Plain', 'Metal', 'Born', 'Wrapped', 'Below')}())",
                "helper(flag, slim)",
                f"KEPT.append(Metal(mid={self._number(body)}))",
                f"KEPT.append(Wrapped({self._number(body)}))",
                f"KEPT.append(Plain({self._number(body)}))",
                "Config.mid",
                f"KEPT.append(Lazy().build({self._number(body)}))",
                f"KEPT.append(Watched({self._number(body)}))",
                "KEPT.append(Described())",
                "KEPT.append(Answering(flag))",
            )
        ]

    def _in(self, body: Body) -> list[str]:
        return ["    " + line for line in self.block(body)]

    def _if(self, body: Body) -> list[str]:
        lines = [f"if {self._test(body)}:", *self._in(body.inner())]
        if self.random.random() < 0.25:
            lines += [f"elif {self._test(body)}:", *self._in(body.inner())]
        if self.random.random() < 0.4:
            lines += ["else:", *self._in(body.inner())]
        return lines

    def _for(self, body: Body) -> list[str]:
        inner = body.inner()
        inner.loops += 1
        name = self._new("w")
        over = self._pick(
            f"({self._width()}, {self._width()})",
            "range(8, 8 * count + 8, 8)",
            "extra.values()",
            "WIDTHS",
            *(f"list({held})" for held in body.lists),
            *(f"list({held}.values())" for held in body.tables),
        )
        inner.numbers.append(name)
        lines = [f"for {name} in {over}:", *self._in(inner)]
        return lines + (["else:", *self._in(body.inner())] if self.random.random() < 0.3 else [])

    def _while(self, body: Body) -> list[str]:
        inner = body.inner()
        inner.loops += 1
        name = self._new("n")
        top = self._pick("2", "3", "count", "2")
        lines = [f"{name} = 0", f"while {name} < {top}:", f"    {name} += 1", *self._in(inner)]
        return lines + (["else:", *self._in(body.inner())] if self.random.random() < 0.3 else [])

    def _try(self, body: Body) -> list[str]:
        inner = body.inner()
        raising = self._pick("slim.check()", "slim.check()", "refuse(slim)", "if flag: raise Refused", "extra['mid']")
        lines = [
            "try:",
            *self._in(inner),
            f"    {raising}",
            *self._in(inner),
            f"except {self._pick('Exception', '(Refused, KeyError)')}:",
        ]
        lines += self._in(body.inner()) if self.random.random() < 0.6 else ["    pass"]
        if self.random.random() < 0.3:
            lines += ["else:", *self._in(body.inner())]
        if self.random.random() < 0.2:
            lines += ["finally:", *self._in(body.inner())]
        return lines

    def _suppressed(self, body: Body) -> list[str]:
        inner = body.inner()
        kind = self._pick("contextlib.suppress(Refused)", "quiet()", "Quiet()")
        return [f"with {kind}:", *self._in(inner), "    slim.check()", *self._in(inner)]

    def _match(self, body: Body) -> list[str]:
        lines = [f"match {self._pick('name', 'count', '[8, count]')}:"]
        for case in self.random.sample(["'a'", "1", "'b' | 'c'", "[8, w0]", "int() if flag"], 2):
            inner = body.inner()
            if "w0" in case:
                inner.numbers.append("(8 + 8 * w0)")
            lines += [f"    case {case}:", *("    " + line for line in self._in(inner))]
        if self.random.random() < 0.6:
            lines += ["    case _:", *("    " + line for line in self._in(body.inner()))]
        return lines

    def _closure(self, body: Body) -> list[str]:
        names = [name for name in body.numbers if name.isidentifier() and name[0] == "w" and name[1:].isdigit()]
        name = self._new("inner")
        if not names:
            return self._assigned(body)
        changed = self.random.choice(names)
        lines = [
            f"def {name}(x={self._number(body)}):",
            f"    nonlocal {changed}",
            f"    {changed} = {self._pick('x', self._width())}",
        ]
        within = Body(["x"], [*body.tables], [*body.lists], body.of_self, 3)
        lines += ["    " + line for line in self.block(within, 1, 2)]
        return [
            *lines,
            self._pick(
                f"{name}()",
                f"if {self._unknown()}: {name}()",
                f"{name}({self._width()})",
                f"{self._unknown()} and {name}()",
            ),
        ]

    # Functions and classes

    def _indented(self, lines: Iterable[str], by: int = 4) -> str:
        return textwrap.indent("\n".join(lines), " " * by)

    def _function(self) -> str:
        body = Body(["w0"], ["kw0"], ["ws0"], returns=True)
        kw = ", ".join(f"'{key}': {self._width()}" for key in KEYS if self.random.random() < 0.4)
        lines = [
            f"w0, kw0, ws0 = {self._width()}, {{{kw}}}, [{self._width()}, {self._width()}]",
            "count, name, extra = 2, 'a', {}",
            *self.block(body, 3, 6),
        ]
        return f"def helper(flag, slim):\n{self._indented(lines)}\n"

    def _class(self, name: str) -> str:
        base = self.random.choice(["nn.Module", *self.classes])
        self.classes.append(name)
        defaults = [
            f"    {key} = {self._width()}" for key in ("base", *KEYS) if key == "base" or self.random.random() < 0.3
        ]
        if self.random.random() < 0.3:
            defaults += ["    if WIDE:", f"        {self.random.choice(KEYS)} = {self._width()}"]
        body = Body(["planes", "mid0"], [], [], of_self=True, returns=True)
        lines = [
            "super().__init__(planes, flag, count, name, slim, extra)" if base != "nn.Module" else "super().__init__()",
            *self.block(body, 3, 7),
        ]
        later = Body([], [], [], of_self=True, returns=True)
        built = ["w0 = self.base", *self.block(Body(["w0"], [], [], of_self=True), 1, 3)] if later.of_self else []
        return "\n".join([
            f"class {name}({base}):", *defaults,
            f"    def __init__(self, planes, flag, count, name, slim, extra, mid0={self._width()}):",
            self._indented(lines, 8),
            "    def narrowed(self, width):", f"        self.{self.random.choice(KEYS)} = width",
            "    def pick(self):",
            f"        return {self._pick('self.base', f'getattr(self, {self.random.choice(KEYS)!r}, 24)')}",
            "    @property", "    def double(self):", "        return 2 * self.base",
            f"    def later_{name.lower()}(self, flag, count, name, slim, extra):", self._indented(built, 8), "",
        ])  # fmt: skip

    def _main(self) -> str:
        body = Body(["w0"], ["kw0", "extra"] if self.random.random() < 0.3 else ["kw0"], ["ws0"], returns=True)
        lines = [f"w0, kw0, ws0 = {self._width()}, {{}}, [{self._width()}, {self._width()}]", *self.block(body, 2, 5)]
        for name in self.classes:
            made = self._new("net")
            lines += [f"{made} = {name}({self._number(body)}, flag, count, name, slim, extra)", f"KEPT.append({made})"]
            if self.random.random() < 0.5:
                lines += [f"{made}.{self.random.choice(KEYS)} = {self._width()}"] if self.random.random() < 0.5 else []
                lines += [f"{made}.later_{name.lower()}(flag, count, name, slim, extra)"]
        return f"def main(flag, count, name, slim, extra):\n{self._indented([*lines, 'return nn.ModuleList(KEPT)'])}\n"


HEADER = """
import contextlib
import functools
from dataclasses import dataclass
import torch
from torch import nn

class Refused(Exception): pass
KEPT = []
BASE, WIDE = 32, True
SIZES = {'s': 16, 'm': 48}
NAMES = ('a', 'b')
WIDTHS = [24, 40]

@dataclass
class Config:
    mid: int = 48
    out: int = 64

def scaled(width, by=1.0):
    return int(width * by)
def last(widths):
    return widths[-1]
def mid_of(mid=64, **others):
    return mid
def narrow(table, width):
    table['mid'] = width
def grown(widths, by=8):
    widths.append(widths[-1] + by)
def narrowed(width, of):
    of.mid = width
def refuse(slim):
    slim.check()
def conv3x3(first, second, groups=1):
    return nn.Conv2d(first, second, 3, groups=groups, bias=False)
@contextlib.contextmanager
def quiet():
    try:
        yield
    except Exception:
        pass
class Quiet:
    def __enter__(self): return self
    def __exit__(self, kind, *_): return kind is not None and issubclass(kind, Exception)
def changing(function):
    @functools.wraps(function)
    def run(*args, **kwargs):
        kwargs['by'] = 0.5
        return function(*args, **kwargs)
    return run
@changing
def lifted(width, by=1.0):
    return int(width * by)
def marked(cls):
    cls.mid = 62
    return cls

class Block(nn.Module):
    def __init__(self, planes, mid=64, out=128, wide=96):
        super().__init__()
        self.first = nn.Conv2d(planes, mid, 1)
        self.second = nn.Conv2d(mid, out, 3, bias=False)
        self.third = nn.Conv2d(out, wide, 1)
class Plain(nn.Module):
    mid = 64
    def __init__(self, planes=16):
        super().__init__()
        self.first = nn.Conv2d(planes, self.mid, 1)
class Meta(type):
    def __call__(cls, *args, **kwargs):
        kwargs['mid'] = 62
        return super().__call__(*args, **kwargs)
class Metal(nn.Module, metaclass=Meta):
    def __init__(self, mid=64):
        super().__init__()
        self.first = nn.Conv2d(8, mid, 1)
class Born(nn.Module):
    mid = 64
    def __new__(cls):
        found = super().__new__(cls)
        found.__dict__['mid'] = 62
        return found
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(8, self.mid, 1)
@marked
class Wrapped(nn.Module):
    mid = 64
    def __init__(self, planes=16):
        super().__init__()
        self.first = nn.Conv2d(planes, self.mid, 1)
class Rooted(nn.Module):
    mid = 64
    def __init_subclass__(cls, mid=62):
        cls.mid = mid
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(8, self.mid, 1)
class Below(Rooted): pass
class Lazy:
    def build(self, planes=16):
        return nn.Conv2d(planes, self.mid, 1)
    @property
    def mid(self):
        return 40
class Watched(nn.Module):
    def __setattr__(self, name, value):
        super().__setattr__(name, 62 if name == 'mid' else value)
    def __init__(self, mid=64):
        super().__init__()
        self.mid = mid
        self.first = nn.Conv2d(8, self.mid, 1)
class Data:
    def __get__(self, of, kind=None): return 62
    def __set__(self, of, value): pass
class Described(nn.Module):
    mid = Data()
    def __init__(self):
        super().__init__()
        self.mid = 64
        self.first = nn.Conv2d(8, self.mid, 1)
class Answering:
    def __init__(self, flag):
        if flag:
            self.mid = 64
        self.first = nn.Conv2d(8, self.mid, 1)
    def __getattr__(self, name):
        return 62
"""


def built(text: str, choice: Choice) -> list[Built]:
    """The convolutions that one run of the program constructs, in their order, up to where it raises."""
    import torch
    from torch.nn.modules import conv

    found: list[Built] = []
    plain, left = conv._ConvNd.__init__, [DEADLINE]

    def recording(self: Any, *args: Any, **kwargs: Any) -> None:
        plain(self, *args, **kwargs)
        found.append(_built_at(sys._getframe(2), self))

    def spend(lines: int) -> None:
        left[0] -= lines
        if left[0] < 0:
            raise Late

    def counting(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            spend(1)
        return counting if frame.f_code.co_filename == PATH else None

    def helping(*args: Any) -> None:
        spend(DEADLINE_OF_CALL)
        plain_helper(*args)

    space: dict[str, Any] = {"__name__": __name__}
    exec(compile(text, PATH, "exec", dont_inherit=True), space)
    refusal = choice.slim.refusal = space["Refused"]
    plain_helper, space["helper"] = space.get("helper"), helping
    conv._ConvNd.__init__ = recording  # type: ignore[method-assign]
    before = sys.gettrace()
    try:
        with torch.device("meta"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of layers without channels, which PyTorch allows
            sys.settrace(counting)
            space["main"](choice.flag, choice.count, choice.name, choice.slim, choice.extra)
    except (ArithmeticError, AttributeError, IndexError, KeyError, NameError, RuntimeError, TypeError, ValueError,
            Late, refusal):  # fmt: skip
        pass  # a program may end where it likes: what it had constructed until then counts
    finally:
        sys.settrace(before)
        conv._ConvNd.__init__ = plain  # type: ignore[method-assign]
    return found


def _built_at(frame: FrameType | None, layer: Any) -> Built:
    line, names = 0, set[str]()
    while frame is not None:
        if frame.f_code.co_filename == PATH:
            line = line or frame.f_lineno
            names.add(frame.f_code.co_name)
            if "self" in frame.f_locals:
                names.add(type(frame.f_locals["self"]).__name__)
        frame = frame.f_back
    width = layer.in_channels, layer.out_channels, layer.groups, layer.bias is not None
    return Built(line, width, frozenset(names))


@dataclass
class Verdict:
    """The result of one program: places that a run constructed, those with known C and K, and contradictions."""

    sites: int
    known: int
    wrong: list[str]


def judged(text: str, seed: int) -> Verdict:
    """Run and read the program."""
    runs = [built(text, Choice.of(seed * RUNS + run)) for run in range(RUNS)]
    project = Project("/constructors", [PATH], {PATH: text.encode()})
    layers: dict[int, list[SourceLayer]] = defaultdict(list)
    with mock.patch.object(merging, "_merged", list):  # what each root says, one by one
        read = read_layers(ProjectImports(project), [PATH])
    for each in read.layers:
        layers[each.layer.locate().line or 0].append(each)
    lines = sorted({each.line for run in runs for each in run})
    known = sum(any(each.layer.C is not None and each.layer.K is not None for each in layers[line]) for line in lines)
    wrong = [found for line in lines for run in runs for found in _contradicted(layers[line], run, line)]
    return Verdict(len(lines), known, list(dict.fromkeys(wrong)))


def _besides(layer: SourceLayer, layers: list[SourceLayer], of: Built) -> list[SourceLayer]:
    """What else was read there of a root that this was built in: equal calls of several roots are told of one."""
    names = [(other, other.root.rpartition(":")[2]) for other in layers if other is not layer]
    return [other for other, name in names if name in of.names or name[:1].isupper()]  # frames name no class


def _contradicted(layers: list[SourceLayer], run: list[Built], line: int) -> Iterable[str]:
    """What a run says against the records of a place."""
    here = [each for each in run if each.line == line]
    for each in here:
        if layers and not any(_agrees(layer, each.width) for layer in layers):
            yield f"line {line}: a run has {each.width}, reading {', '.join(map(_said, layers))}"
    for layer in layers:
        if layer.condition or layer.certainty != "stated" or layer.replaced:
            continue
        name = layer.root.rpartition(":")[2]
        under = [each for each in here if name in each.names]
        if any(_agrees(layer, each.width) for each in under):
            continue
        if any(not any(_agrees(other, each.width) for other in _besides(layer, layers, each)) for each in under):
            yield f"line {line}: {name} has {under[0].width}, reading without a condition {_said(layer)}"


def _agrees(record: SourceLayer, width: Width) -> bool:
    said = tuple(getattr(record.layer, letter) for letter in LETTERS)
    loose = [letter in record.unknown or value is None for letter, value in zip(LETTERS, said, strict=True)]
    return all(unsure or value == real for unsure, value, real in zip(loose, said, width, strict=True))


def _said(record: SourceLayer) -> str:
    values = " ".join(f"{letter}={getattr(record.layer, letter)}" for letter in LETTERS)
    return f"[{values} {record.certainty} {record.condition!r} {record.root.rpartition(':')[2]}]"


def attacked(seeds: Iterable[int], told: Callable[[str], None] = print) -> Verdict:
    """All programs of these seeds together."""
    whole = Verdict(0, 0, [])
    for seed in seeds:
        verdict = judged(Writer(seed).program(), seed)
        whole.sites += verdict.sites
        whole.known += verdict.known
        for each in verdict.wrong:
            whole.wrong.append(f"seed {seed}, {each}")
            told(whole.wrong[-1])
    return whole


def main() -> int:
    """Run what is asked for and print the counts."""
    parser = argparse.ArgumentParser(prog="attack.constructors", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--count", type=int, default=900, help="programs (%(default)s)")
    parser.add_argument("--start", type=int, default=0, help="the first seed (%(default)s)")
    parser.add_argument("--show", action="store_true", help="print the programs")
    asked = parser.parse_args()
    seeds = range(asked.start, asked.start + asked.count)
    if asked.show:
        for seed in seeds:
            text = Writer(seed).program()
            print("\n".join(f"{number:4} {line}" for number, line in enumerate(text.split("\n"), 1)))
    found = attacked(seeds)
    share = 100 * found.known / max(found.sites, 1)
    print(f"{asked.count} programs, {found.sites} places, {share:.1f} % known, {len(found.wrong)} wrong")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
