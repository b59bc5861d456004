"""Arguments of a framework's function or class, by position or name, and the numbers among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from convlint.readers.python.evaluator.values import Const, Items, Tensor, Value
from convlint.readers.python.nn.flow import Flow, integer


class Arguments(NamedTuple):
    """What a call was given. Of a method, the object comes first."""

    args: Sequence[Value]
    keywords: Mapping[str, Value]

    def get(self, index: int, *names: str) -> Value | None:
        """The argument at that position, or by one of those names; None where it was not given."""
        if index < len(self.args):
            return self.args[index]
        for name in names:
            if name in self.keywords:
                return self.keywords[name]
        return None

    def rest(self, index: int, *names: str) -> list[Value] | None:
        """Sizes or axes that are given one by one, or as a list; None where they are not known to be complete."""
        first = self.get(index, *names)
        if isinstance(first, Items):
            return list(first.items) if first.complete else None
        if first is not None and index >= len(self.args):
            return [first]
        return list(self.args[index:])

    def tensors(self) -> list[Flow]:
        """All tensors among them, those in lists too."""
        found: list[Flow] = []
        collect(self.args, found)
        collect(list(self.keywords.values()), found)
        return found


def collect(values: Sequence[Value], into: list[Flow], depth: int = 0) -> None:
    """Add the tensors among `values` and in their lists."""
    for value in values:
        if isinstance(value, Tensor):
            into.append(value.data)
        elif isinstance(value, Items) and depth < 4:
            collect(value.items, into, depth + 1)


def axes(value: Value | None) -> tuple[int, ...] | None:
    """One axis or several; None where one is not known."""
    if isinstance(value, Items):
        found = [integer(each) for each in value.items]
        known = tuple(each for each in found if each is not None)
        return known if value.complete and len(known) == len(found) else None
    number = integer(value)
    return None if number is None else (number,)


def is_true(value: Value | None) -> bool | None:
    """Whether it is True or False; None where nobody knows."""
    if value is None:
        return False
    if isinstance(value, Const):
        return bool(value.value)
    return None


def numbers(value: Value | None, count: int) -> list[int | None]:
    """As many whole numbers, from one or a list of them."""
    if isinstance(value, Items):
        found = [integer(each) for each in value.items]
        return found if value.complete and len(found) == count else [None] * count
    return [integer(value)] * count
