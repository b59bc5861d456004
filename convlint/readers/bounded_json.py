"""JSON from files that nobody vouches for: bounded before it is parsed, and every fault one clear error."""

from __future__ import annotations

import json
from typing import Any

from convlint.errors import InputFault

MOST_BYTES = 64 << 20
MOST_CONTAINERS = 1_500_000  # lists and objects: some 200 bytes of memory for three of text
MOST_VALUES = 6_000_000


def parse(content: bytes, what: str) -> Any:
    """The value that UTF-8 JSON `content` holds; `what` names it in errors. Raises InputFault."""
    if len(content) > MOST_BYTES:
        raise InputFault(f"{what} is larger than {MOST_BYTES >> 20} MiB")
    if content.count(b"[") + content.count(b"{") > MOST_CONTAINERS or content.count(b",") > MOST_VALUES:
        raise InputFault(f"{what} has more entries than any network that convlint can judge")
    try:
        return json.loads(content)
    except RecursionError:
        raise InputFault(f"{what} nests too deep") from None
    except ValueError as error:  # UnicodeDecodeError and integers of thousands of digits too
        raise InputFault(f"{what} is not valid JSON: {str(error)[:200]}") from None


def entry(value: Any, *keys: str | int) -> Any:
    """What stands at that place in nested lists and objects, or None."""
    for key in keys:
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and -len(value) <= key < len(value):
            value = value[key]
        else:
            return None
    return value
