"""Reads untrusted JSON within bounds of size and depth, and has the limits that all readers share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from convlint.files.patterns import pattern
from convlint.model.errors import InputFault, shown
from convlint.model.layer import ConvLayer

if TYPE_CHECKING:
    import json

# Limits on one input: far above what real networks have, and low enough that a hostile input takes neither minutes nor
# all memory in the steps after reading.
MOST_LAYERS = 10_000  # convolutions
MOST_SIZE = 2**31 - 1  # elements along one axis, strides, channels, groups
MOST_AXES = 16  # of one tensor
MOST_TEXT = 500  # characters of a name
MOST_READS = 100_000  # tensors that all operations read together
MOST_MESSAGES = 100  # errors that are reported
# Producers that are kept of one value. A long residual stream collects one per block, so that keeping all of them
# would take quadratic time and memory; the latest ones tell what a rule asks.
MOST_PRODUCERS = 64


_SIZES = ("N", "C", "D", "H", "W", "K", "Z", "P", "Q", "T", "R", "S", "StrideD", "U", "V", "PadD", "PadH", "PadW",
          "PadD_end", "PadH_end", "PadW_end", "DilD", "DilH", "DilW", "groups")  # fmt: skip
_sizes_of = attrgetter(*_SIZES)


def refuse_layers(count: int) -> None:
    """Raises InputFault for more than MOST_LAYERS convolutions."""
    if count > MOST_LAYERS:
        raise InputFault(f"has more than {MOST_LAYERS:,} convolutions, the limit for one input")


def refuse_sizes(layers: Sequence[ConvLayer]) -> None:
    """Raises InputFault for a layer with a size above 2^31, which some formats allow and no tensor has."""
    for layer in layers:
        for name, size in zip(_SIZES, _sizes_of(layer), strict=True):
            if size is not None and size > MOST_SIZE + 1:
                raise InputFault(f"layer {layer.name!r}: {name} is {size:,}, more than 2^31")


def capped(messages: Sequence[str]) -> list[str]:
    """The first MOST_MESSAGES messages, and how many more there are."""
    more = len(messages) - MOST_MESSAGES
    notice = "1 more error is not shown" if more == 1 else f"{more:,} more errors are not shown"
    return list(messages) if more <= 0 else [*messages[:MOST_MESSAGES], notice]


_LONGEST_PATH = 160  # characters of a place in a message
_LONGEST_NUMBER = 24  # digits in a message


class Node:
    """A value in a document, with its parent and its key there; the root's key is the name of the document.

    The place is put together only for an error, because most values have none.
    """

    __slots__ = ("_key", "_parent", "value")

    def __init__(self, value: Any, key: str | int, parent: Node | None = None) -> None:
        self.value, self._key, self._parent = value, key, parent

    @property
    def place(self) -> str:
        """The place of this value, such as `config.json: layers[3].config.strides`."""
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
        """An error on this value; `problem` continues its place, such as "must be a list"."""
        return InputFault(f"{self.place} {problem}")

    def must_be(self, wanted: str) -> InputFault:
        """The error that this value is not `wanted`."""
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
        """A string of at most so many characters; lone surrogates, which no encoding can write, become `?`."""
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
    """A value in an error message."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        if isinstance(value, int) and value.bit_length() > 4 * _LONGEST_NUMBER:  # str() takes quadratic time
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


MOST_BYTES = 32 << 20
MOST_WIDE_BYTES = 8 << 20  # Python stores each character of a text in four bytes if one of them needs that
MOST_CONTAINERS = 400_000  # lists and objects: three bytes of text, `[],`, take some 200 bytes of memory
MOST_VALUES = 800_000

_GONE = object()
_WIDE_ESCAPE = pattern(r"\\u(?!00)")  # an escape for a character beyond Latin-1


class NoJson(InputFault):
    """Text that is not JSON; `error` has the place."""

    def __init__(self, message: str, error: json.JSONDecodeError) -> None:
        self.error = error
        super().__init__(message)


def parse(content: bytes, what: str) -> Node:
    """The value in JSON `content`, which is UTF-8; `what` names the document in errors. Raises InputFault."""
    import json  # specs are YAML as a rule

    # All that can be counted in the bytes is refused before anything is decoded.
    if len(content) > MOST_BYTES:
        raise InputFault(f"{what} is larger than {MOST_BYTES >> 20} MiB")
    if content.count(b"[") + content.count(b"{") > MOST_CONTAINERS or content.count(b",") > MOST_VALUES:
        raise InputFault(f"{what} has more entries than any network that convlint can judge")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputFault(f"{what} is not valid JSON: byte {error.start:,} is not UTF-8") from None
    if len(content) > MOST_WIDE_BYTES and not (text.isascii() and _WIDE_ESCAPE.search(text) is None):
        raise InputFault(f"{what} is larger than {MOST_WIDE_BYTES >> 20} MiB, the limit for text beyond ASCII")
    del content  # frees its memory before the values take theirs
    try:
        return Node(json.loads(text, object_pairs_hook=_object, parse_constant=_no_number), what)
    except RecursionError:
        raise InputFault(f"{what} nests too deep") from None
    except json.JSONDecodeError as error:
        raise NoJson(f"{what} is not valid JSON: {str(error)[:200]}", error) from None
    except ValueError as error:  # a duplicate key, NaN, or an integer of thousands of digits
        raise InputFault(f"{what} is not valid JSON: {str(error)[:200]}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. Raises ValueError for duplicate keys: parsers differ on which counts, so one could hide the other."""
    members = dict(pairs)
    if len(members) != len(pairs):
        remaining = dict(members)
        twice = next(key for key, _ in pairs if remaining.pop(key, _GONE) is _GONE)
        raise ValueError(f"duplicate key {shown(twice)!r}")
    return members


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number")
