"""Sizes that torch.export writes as expressions over symbols, such as `Add(Mul(Integer(2), Symbol('s0')), Integer(1))`.

A few forms are computed by a parser of their own: nothing is ever evaluated as code, and no form grows without bound.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod

LONGEST = 2000  # characters
DEEPEST = 60
LARGEST = 2**62
MOST_TEXT = 500_000  # characters of all different expressions of one program

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]{1,18})|(?P<name>[A-Za-z_][\w.]*)|(?P<text>'[^'\\]*')|(?P<sign>//|[-+*%(),=]))"
)


class Sizes:
    """The values of symbols, and of the expressions over them that were met."""

    def __init__(self) -> None:
        self._symbols: dict[str, int] = {}
        self._known: dict[str, int | None] = {}
        self._read = 0

    def set(self, symbol: str, value: int) -> None:
        """Gives a symbol its value."""
        self._symbols[symbol] = value
        self._known.clear()

    def of(self, text: str) -> int | None:
        """The value of an expression, or None where it is not known."""
        if text not in self._known:
            self._read += min(len(text), LONGEST)
            self._known[text] = evaluate(text, self._symbols) if self._read <= MOST_TEXT else None
        return self._known[text]


class _Unknown(Exception):
    """The expression has no value that can be told here."""


def evaluate(text: str, symbols: Mapping[str, int]) -> int | None:
    """The value of an expression, or None where a symbol is not known or a form is not."""
    if len(text) > LONGEST:
        return None
    try:
        return _Expression(text, symbols).value()
    except _Unknown:
        return None


class _Expression:
    """One pass over the tokens of an expression."""

    def __init__(self, text: str, symbols: Mapping[str, int]) -> None:
        self.symbols = symbols
        self.tokens: list[tuple[str, str]] = []  # kind, text
        self.at = self.depth = 0
        end = len(text.rstrip())
        position = 0
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None or match.lastgroup is None:
                raise _Unknown
            self.tokens.append((match.lastgroup, match[match.lastgroup]))
            position = match.end()
        self.tokens.append(("end", ""))

    def value(self) -> int:
        result = self._sum()
        if self.tokens[self.at][0] != "end":
            raise _Unknown
        return result

    def _accept(self, *signs: str) -> str | None:
        kind, text = self.tokens[self.at]
        if kind == "sign" and text in signs:
            self.at += 1
            return text
        return None

    def _expect(self, sign: str) -> None:
        if self._accept(sign) is None:
            raise _Unknown

    def _sum(self) -> int:
        self.depth += 1
        if self.depth > DEEPEST:
            raise _Unknown
        result = self._product()
        while sign := self._accept("+", "-"):
            result = _compute("Add" if sign == "+" else "Sub", [result, self._product()])
        self.depth -= 1
        return result

    def _product(self) -> int:
        result = self._signed()
        while sign := self._accept("*", "//", "%"):
            result = _compute({"*": "Mul", "//": "FloorDiv", "%": "Mod"}[sign], [result, self._signed()])
        return result

    def _signed(self) -> int:
        negative = False
        while self._accept("-"):
            negative = not negative
        value = self._single()
        return -value if negative else value

    def _single(self) -> int:
        if self._accept("("):
            value = self._sum()
            self._expect(")")
            return value
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return int(text)
        if kind != "name":
            raise _Unknown
        if not self._accept("("):
            return self._symbol(text)
        return self._call(text.rsplit(".", 1)[-1])

    def _call(self, name: str) -> int:
        if name == "Symbol":
            kind, text = self.tokens[self.at]
            if kind != "text":
                raise _Unknown
            while self.tokens[self.at] != ("sign", ")"):  # what sympy assumes of it
                if self.tokens[self.at][0] == "end":
                    raise _Unknown
                self.at += 1
            self.at += 1
            return self._symbol(text[1:-1])
        values = [self._sum()]
        while self._accept(","):
            values.append(self._sum())
        self._expect(")")
        return values[0] if name == "Integer" and len(values) == 1 else _compute(name, values)

    def _symbol(self, name: str) -> int:
        if name not in self.symbols:
            raise _Unknown
        return self.symbols[name]


def _compute(name: str, values: list[int]) -> int:
    result: int | None = None
    if name == "Add":
        result = sum(values)
    elif name in {"Mul", "Mult"}:
        result = prod(values)
    elif name == "Max":
        result = max(values)
    elif name == "Min":
        result = min(values)
    elif len(values) == 2:
        first, second = values
        if name == "Sub":
            result = first - second
        elif name in {"FloorDiv", "CleanDiv", "PythonFloorDiv"} and second:
            result = first // second
        elif name in {"Mod", "PythonMod"} and second:
            result = first % second
    if result is None or abs(result) >= LARGEST:
        raise _Unknown
    return result
