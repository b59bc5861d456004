"""Values of parsed JSON that know where they stand: each is asked for as what it must be, or refused with its path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from convlint.errors import InputFault, shown
from convlint.readers.untrusted.limits import MOST_AXES, MOST_SIZE, MOST_TEXT

_LONGEST_PATH = 160  # characters in a message
_LONGEST_NUMBER = 24


class Node:
    """A value and its place: the key under which its parent holds it; the root's key names the document."""

    __slots__ = ("_key", "_parent", "value")

    def __init__(self, value: Any, key: str | int, parent: Node | None = None) -> None:
        self.value, self._key, self._parent = value, key, parent

    @property
    def place(self) -> str:
        """Where this stands, such as `config.json: layers[3].config.strides`."""
        steps: list[str] = []
        node = self
        while node._parent is not None:
            steps.append(_step(node._key))
            node = node._parent
        path = "".join(reversed(steps)).removeprefix(".")
        if len(path) > _LONGEST_PATH:
            path = f"{path[: _LONGEST_PATH // 2]}…{path[-_LONGEST_PATH // 2 :]}"
        root = str(node._key)
        return f"{root}: {path}" if path else root

    def fault(self, problem: str) -> InputFault:
        """The error that this value `problem`, such as "must be a list"."""
        return InputFault(f"{self.place} {problem}")

    def must_be(self, wanted: str) -> InputFault:
        """The error that something else stands here."""
        return self.fault(f"must be {wanted}, not {described(self.value)}")

    @property
    def is_object(self) -> bool:
        """Whether this is a JSON object."""
        return isinstance(self.value, dict)

    @property
    def is_list(self) -> bool:
        """Whether this is a JSON list."""
        return isinstance(self.value, list)

    def at(self, key: str) -> Node:
        """The member of an object. Raises InputFault where there is none."""
        members = self._members()
        if key not in members:
            raise self.fault(f"has no {shown(key)}")
        return Node(members[key], key, self)

    def get(self, *keys: str) -> Node | None:
        """The member of an object below those keys, or None where one is absent or null."""
        node = self
        for key in keys:
            value = node._members().get(key)
            if value is None:
                return None
            node = Node(value, key, node)
        return node

    def items(self) -> Iterator[tuple[str, Node]]:
        """The members of an object, in the order of the file."""
        return ((key, Node(value, key, self)) for key, value in self._members().items())

    def elements(self, most: int | None = None) -> list[Node]:
        """The elements of a list, at most so many."""
        if not isinstance(self.value, list):
            raise self.must_be("a list")
        if most is not None and len(self.value) > most:
            raise self.fault(f"has {len(self.value):,} elements; the limit is {most:,}")
        return [Node(value, index, self) for index, value in enumerate(self.value)]

    def text(self, most: int = MOST_TEXT) -> str:
        """A string of at most so many characters; what no encoding can write is replaced."""
        value = self.value
        if not isinstance(value, str):
            raise self.must_be("text")
        if len(value) > most:
            raise self.fault(f"is longer than {most:,} characters")
        return value if value.isascii() else value.encode("utf-8", "replace").decode()

    def boolean(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            raise self.must_be("true or false")
        return self.value

    def integer(self, low: int = 1, high: int = MOST_SIZE) -> int:
        """A whole number within bounds."""
        if type(self.value) is not int or not low <= self.value <= high:
            raise self.must_be(f"{low} to {_bound(high)}")
        return self.value

    def integers(self, count: int, low: int = 1) -> list[int]:
        """One number for each of `count` axes; a single number stands for all of them."""
        if not isinstance(self.value, list):
            return [self.integer(low)] * count
        if len(self.value) != count:
            raise self.fault(f"must be one number or {count}, not {len(self.value)}")
        return [element.integer(low) for element in self.elements()]

    def shape(self) -> tuple[int | None, ...]:
        """The sizes of a tensor, null for what is unknown."""
        sizes = self.elements(MOST_AXES)
        return tuple(None if size.value is None else size.integer() for size in sizes)

    def _members(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise self.must_be("an object")
        return self.value


def described(value: Any) -> str:
    """A value in the words of an error message."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        if isinstance(value, int) and value.bit_length() > 4 * _LONGEST_NUMBER:
            return "a number of very many digits"
        return str(value)
    if isinstance(value, str):
        return repr(shown(value))
    return "a list" if isinstance(value, list) else "an object"


def _bound(high: int) -> str:
    return "2^31 - 1" if high == MOST_SIZE else f"{high:,}"


def _step(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if key.isidentifier() and len(key) <= 40 else f"[{shown(key)!r}]"
