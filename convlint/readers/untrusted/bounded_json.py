"""JSON from files that nobody vouches for: bounded before it is parsed, and every fault one clear error."""

from __future__ import annotations

import json
import re
from typing import Any

from convlint.errors import InputFault, shown
from convlint.readers.untrusted.json_tree import Node

MOST_BYTES = 32 << 20
MOST_WIDE_BYTES = 8 << 20  # one character beyond Latin-1 makes every byte of its text take four
MOST_CONTAINERS = 400_000  # lists and objects: some 200 bytes of memory for three of text
MOST_VALUES = 800_000

_GONE = object()
_WIDE_ESCAPE = re.compile(r"\\u(?!00)")


class NoJson(InputFault):
    """Text that is no JSON; `error` says where."""

    def __init__(self, message: str, error: json.JSONDecodeError) -> None:
        self.error = error
        super().__init__(message)


def parse(content: bytes, what: str) -> Node:
    """The value that UTF-8 JSON `content` holds; `what` names it in errors. Raises InputFault."""
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
    del content  # its memory is needed for what it holds
    try:
        return Node(json.loads(text, object_pairs_hook=_object, parse_constant=_no_number), what)
    except RecursionError:
        raise InputFault(f"{what} nests too deep") from None
    except json.JSONDecodeError as error:
        raise NoJson(f"{what} is not valid JSON: {str(error)[:200]}", error) from None
    except ValueError as error:  # integers of thousands of digits too
        raise InputFault(f"{what} is not valid JSON: {str(error)[:200]}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without duplicate keys: readers differ on which of two counts, so one could hide the other."""
    members = dict(pairs)
    if len(members) != len(pairs):
        remaining = dict(members)
        twice = next(key for key, _ in pairs if remaining.pop(key, _GONE) is _GONE)
        raise ValueError(f"duplicate key {shown(twice)!r}")
    return members


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number")
