"""Reads untrusted YAML into values with their positions, within limits, and writes values as YAML on one line.

Built on PyYAML's events rather than its constructor: these have positions, and nothing is expanded or made of tags.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from msgspec import Struct

from convlint.files.bounded_file import open_regular
from convlint.files.libraries import late_patterns_of
from convlint.files.patterns import pattern
from convlint.model.errors import InputFault
from convlint.model.location import Span

with late_patterns_of("yaml"):  # those of its loader in Python take a tenth of a small check, and are hardly ever used
    import yaml

MAX_BYTES = 4 * 2**20  # a layer takes about 100
MAX_DEPTH = 32  # a spec has some six levels
MAX_VALUES = 400_000  # keys count too; each takes some 250 bytes of memory
MAX_MERGED_KEYS = 200  # a layer has some sixty; without a bound, merges of merges grow quadratically
MAX_MERGED_VALUES = 100_000  # of a whole file: few bytes can ask for many merges
MAX_DIRECTIVES = 20  # lines that begin with %; libyaml compares each %TAG with all before it

LINE_BREAK = pattern("\r\n|[\n\r\x85\u2028\u2029]")  # as libyaml counts lines in its marks
_DIRECTIVE = pattern("(?:^|(?<=[\n\r\x85\u2028\u2029]))%")

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Value(Struct, eq=False):
    """A scalar (text), a list of Values or a dict of Values, with its span in the file."""

    data: Any
    span: Span
    plain: bool = False  # an unquoted scalar: may be a number, a boolean or null
    key_span: Span | None = None  # of the key, where this is a mapping's value

    @property
    def kind(self) -> str:
        """What this is, for an error message."""
        if isinstance(self.data, dict):
            return "a mapping"
        if isinstance(self.data, list):
            return "a list"
        return "nothing" if self.is_null else "a value"

    @property
    def is_null(self) -> bool:
        """Whether this is YAML's null, also where the value is left empty."""
        return self.plain and self.data in ("", "~", "null", "Null", "NULL")


def fault(message: str, span: Span | None) -> InputFault:
    """An InputFault at `span`."""
    return InputFault(message, line=span[0] if span else None, column=span[1] if span else None)


def read_text(path: str) -> str:
    """The file's text ("-" is standard input). Raises InputFault, with a position where there is one."""
    try:
        if path == "-":
            raw = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            status = os.stat(path)
            if stat.S_ISDIR(status.st_mode):
                raise InputFault("is a directory, not a file")
            if not stat.S_ISREG(status.st_mode):
                raise InputFault("is not a regular file (a pipe, socket or device)")
            with open_regular(path) as file:  # checked again: by now it may be a pipe, which would block
                raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise InputFault(f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return text_of(raw)


def may_share(text: str) -> bool:
    """Whether anchors or merge keys may share values in it, as far as its characters tell."""
    return "*" in text or "<<" in text


def text_of(raw: bytes) -> str:
    """The text of a file, given its first MAX_BYTES + 1 bytes. Raises InputFault."""
    if len(raw) > MAX_BYTES:
        raise InputFault(f"is larger than {MAX_BYTES // 2**20} MiB, the limit for a spec")
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputFault("is UTF-16 or UTF-32; save it as UTF-8", line=1, column=1)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = _end_of(raw[: error.start].decode("utf-8-sig", "replace"))
        raise InputFault(
            f"is not UTF-8: byte 0x{raw[error.start]:02x}; save it as UTF-8", line=line, column=column
        ) from error


def parse(text: str) -> Value | None:
    """The one document in `text`, or None where there is nothing. Raises InputFault at the first defect."""
    if text.count("%") > MAX_DIRECTIVES:
        lines = list(islice(_DIRECTIVE.finditer(text), MAX_DIRECTIVES + 1))
        if len(lines) > MAX_DIRECTIVES:
            line, column = _end_of(text[: lines[-1].start()])
            raise InputFault(f"has more than {MAX_DIRECTIVES} lines that begin with %", line=line, column=column)
    try:
        return _build(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(part for part in (error.problem, error.context) if part)
        # libyaml reads ahead, and may meet its own limit before our MAX_DEPTH; the Python loader gives our message.
        if "maximum nesting depth" in problem and Loader is not yaml.SafeLoader:
            return _build(text, yaml.SafeLoader)
        if mark and "cannot start any token" in problem and text.split("\n")[mark.line][mark.column :][:1] == "\t":
            problem += " (a tab: YAML is indented with spaces)"
        raise InputFault(
            f"is not valid YAML: {problem}",
            line=mark.line + 1 if mark else None,
            column=mark.column + 1 if mark else None,
        ) from error
    except yaml.reader.ReaderError as error:  # its position counts bytes, and its character may be part of one
        before = text.encode("utf-8", "replace")[: error.position].decode("utf-8", "ignore")
        line, column = _end_of(before)
        raise InputFault(
            f"is not valid YAML: character U+{ord(text[len(before)]):04X} is not allowed", line=line, column=column
        ) from error
    except yaml.YAMLError as error:
        raise InputFault(f"is not valid YAML: {error}") from error


def _end_of(text: str) -> tuple[int, int]:
    """The line and column of the end of `text`."""
    lines = LINE_BREAK.split(text)
    return len(lines), len(lines[-1]) + 1


class _Document:
    """A document that is built from events with a stack rather than by recursion. Its methods raise InputFault."""

    def __init__(self) -> None:
        self.root: Value | None = None
        self.open: list[tuple[Value, str | None]] = []  # collections that have not ended, and their anchors
        self.keys: list[Value | None] = []  # per open collection: the key that waits for its value
        self.anchors: dict[str, Value | None] = {}  # None: still being built
        self.count = self.merged = 0

    def take(self, event: Any) -> None:
        """Takes an event; many of a large document are scalars, which come first."""
        kind = type(event)
        if kind is yaml.ScalarEvent:
            value = Value(event.value, _span_of(event), plain=event.implicit[0])
            if event.tag is not None and not (event.implicit[0] or event.implicit[1]):
                raise fault(f"tags such as {event.tag} are not allowed", value.span)
            if event.anchor is not None:
                self.anchors[event.anchor] = value
            self._add(value)
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            self._begin(event, {} if kind is yaml.MappingStartEvent else [])
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            value, anchor = self.open.pop()
            self.keys.pop()
            value.span = (*value.span[:2], *_span_of(event)[2:])
            if anchor is not None:
                self.anchors[anchor] = value
            self._add(value)
        elif kind is yaml.AliasEvent:
            target = self.anchors.get(event.anchor)
            if target is None:
                problem = "refers to itself" if event.anchor in self.anchors else "has no anchor"
                raise fault(f"alias *{event.anchor} {problem}", _span_of(event))
            self._add(Value(target.data, _span_of(event), plain=target.plain))
        elif kind is yaml.DocumentStartEvent and self.root is not None:
            raise fault("a spec is one YAML document; this starts another", _span_of(event))

    def _begin(self, event: Any, data: dict[str, Value] | list[Value]) -> None:
        line, column, *_ = _span_of(event)
        value = Value(data, (line, column, line, column + 1))
        if not event.implicit:
            raise fault(f"tags such as {event.tag} are not allowed", value.span)
        if len(self.open) >= MAX_DEPTH:
            raise fault(f"nested deeper than {MAX_DEPTH} levels", value.span)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        if self.open and self.keys[-1] is None and isinstance(self.open[-1][0].data, dict):
            raise fault("a key must be a plain word", value.span)
        self.open.append((value, event.anchor))
        self.keys.append(None)

    def _add(self, value: Value) -> None:
        """Adds a value to the collection around it, or in a mapping the key of the next."""
        self.count += 1
        if self.count > MAX_VALUES:
            raise fault(f"more than {MAX_VALUES:,} values", value.span)
        if not self.open:
            self.root = value
            return
        around = self.open[-1][0].data
        if isinstance(around, list):
            around.append(value)
        elif (key := self.keys[-1]) is None:
            if not isinstance(value.data, str):
                raise fault("a key must be a plain word", value.span)
            self.keys[-1] = value
        else:
            self.keys[-1] = None
            if key.data == "<<" and key.plain:
                self.merged += _merged_keys(value)
                if self.merged > MAX_MERGED_VALUES:
                    raise fault(f"<< merges more than {MAX_MERGED_VALUES:,} values in all", value.span)
                _merge(around, value)
            else:
                _into_mapping(around, key, value)


def _build(text: str, loader: Any = None) -> Value | None:
    """The document. Raises InputFault and YAMLError."""
    document = _Document()
    for event in iter((loader or Loader)(text).get_event, None):  # as yaml.parse does, which asks twice
        document.take(event)
    return None if document.root is None or document.root.is_null else document.root


def _span_of(event: Any) -> Span:
    start, end = event.start_mark, event.end_mark
    return start.line + 1, start.column + 1, end.line + 1, end.column + 1


def _into_mapping(mapping: dict[str, Value], key: Value, value: Value) -> None:
    """Adds a value under its key. Raises InputFault for duplicates."""
    name: str = key.data
    existing = mapping.get(name)
    if existing is not None and existing.key_span is not None:
        raise fault(f"duplicate key {_short(name)}; first given on line {existing.key_span[0]}", key.span)
    value.key_span = key.span
    mapping[name] = value


def _merged_keys(value: Value) -> int:
    """How many keys a merge looks at; counted because a few bytes can merge the same mapping very often."""
    sources = value.data if isinstance(value.data, list) else [value]
    return sum(len(source.data) if isinstance(source.data, dict) else 1 for source in sources)


def _merge(mapping: dict[str, Value], value: Value) -> None:
    """YAML 1.1's merge key. The mapping's own keys win, so merged ones have no key span and may be overwritten."""
    for source in value.data if isinstance(value.data, list) else [value]:
        if not isinstance(source.data, dict):
            raise fault("<< must name a mapping", source.span)
        if len(source.data) > MAX_MERGED_KEYS:
            raise fault(f"<< merges more than {MAX_MERGED_KEYS} keys", source.span)
        for name, entry in source.data.items():
            if name not in mapping:
                merged = Value(entry.data, entry.span, plain=entry.plain)
                mapping[name] = merged


def _short(name: str) -> str:
    return repr(name if len(name) <= 40 else name[:37] + "...")


# Text that every YAML parser reads as text without quotes; for all other text PyYAML decides, which is slower.
_PLAIN = pattern(r"/?[A-Za-z_][A-Za-z0-9_]*(?:[ ./-][A-Za-z0-9_]+)*")
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_ODD = pattern(r"[^ -~]|::|##")
_ESCAPED = pattern(r'[^ -~]|["\\]')
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
    """The value as PyYAML writes it, quoted where it would not read back the same."""
    written: str = yaml.safe_dump([value], default_flow_style=True, width=2**31)
    return written.strip()[1:-1]


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    if 0xD800 <= code <= 0xDFFF:  # a lone surrogate, which no parser accepts
        code = 0xFFFD
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
