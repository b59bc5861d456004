"""Values as one line of YAML's flow style, in which every text reads back as it was and none of it reads as a command.

What is plain stays plain; text that a log, a terminal or a YAML parser would take for something else is written
between double quotes, with escapes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import yaml

# What is text to every YAML parser as it stands, and quickly told. All else is left to the library.
_PLAIN = re.compile(r"/?[A-Za-z_][A-Za-z0-9_]*(?:[ ./-][A-Za-z0-9_]+)*")
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_ODD = re.compile(r"[^ -~]|::|##")
_ESCAPED = re.compile(r'[^ -~]|["\\]')
_SHORT = {"\n": r"\n", "\t": r"\t", '"': r"\"", "\\": r"\\"}


def flow(value: Any) -> str:
    """One line of YAML for text, numbers, booleans, and lists and mappings of them."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _text(value) if isinstance(value, str) else str(value) if isinstance(value, int) else _by_library(value)


@lru_cache(maxsize=4096)
def _text(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    if _ODD.search(text):
        return '"' + _ESCAPED.sub(_escape, text).replace("##", r"\x23\x23") + '"'
    return _by_library(text)


def _by_library(value: Any) -> str:
    """As PyYAML writes it: quoted where it would not read back as it is."""
    written: str = yaml.safe_dump([value], default_flow_style=True, width=2**31)
    return written.strip()[1:-1]


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    if 0xD800 <= code <= 0xDFFF:  # half a character, which no parser reads
        code = 0xFFFD
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
