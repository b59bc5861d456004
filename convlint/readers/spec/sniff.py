"""Tells specs from the other YAML and JSON files of a repository, opening each file once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Literal

import yaml
from msgspec import Struct

from convlint.files.bounded_file import open_regular
from convlint.files.located_yaml import MAX_BYTES, MAX_DEPTH, Loader, text_of
from convlint.model.errors import InputFault
from convlint.readers.spec.fields import CANONICAL

MOST_EVENTS = 200_000  # of YAML's parser; a spec has its version and its first layer long before
_HEAD = 1 << 16  # bytes at the beginning, by which most files are ruled out without being read further
_LAYERS_KEY = re.compile(rb"""(?m)^[ \t]*+[{,]?[ \t]*+["']?layers["']?[ \t]*+:|["']layers["']\s*+:""")
_VERSION_KEY = re.compile(rb"""version["']?[ \t]*:[ \t]*["']?1\b""")
_VERSION_1 = re.compile(r"""^[ \t{]*["']?version["']?[ \t]*:[ \t]*["']?1["']?[ \t]*([,#}]|$)""", re.MULTILINE)
_LAYERS = re.compile(r"""^["']?layers["']?[ \t]*:""", re.MULTILINE)
_ALIAS = "*"
_FILTER = ("C", "K", "R", "S", "kernel_size")
_TELLING = frozenset(key for key, name in CANONICAL.items() if name in _FILTER) | {"<<"}


class Look(Struct, frozen=True, kw_only=True):
    """The decision on a file: a spec; no spec, although it has a key `layers`; or foreign.

    `text` is the spec's. It is None where the file could not be read, which counts as a spec so that its reader reports
    the error.
    """

    verdict: Literal["spec", "no spec", "foreign"]
    text: str | None = None


def look(path: str, *, named: bool = False, whole: bool = True) -> Look:
    """Decides on the file at `path`. Unless it is `named` by the user, it needs a key `layers` in its first 64 KiB.

    Without `whole` it is read no further, and a file with that key counts as a spec.
    """
    head = b""
    try:
        with open_regular(path) as stream:
            head = b"" if named else stream.read(_HEAD)
            if not named and _LAYERS_KEY.search(head) is None:
                return Look(verdict="foreign")
            if not whole:
                return Look(verdict="spec")
            text = text_of(head + stream.read(MAX_BYTES + 1 - len(head)))
    except InputFault:  # an unreadable file is worth an error only if it was named, or begins like a spec
        return Look(verdict="spec" if named or _VERSION_KEY.search(head) else "foreign")
    return Look(verdict="spec", text=text) if is_spec_text(text) else Look(verdict="no spec")


def is_spec_text(text: str) -> bool:
    """Whether the text has `version: 1` and a layer that looks like a convolution.

    False where more values come before these, or they are nested deeper, than in any spec. In broken YAML both keys at
    the beginning of a line are enough, so that the reader reports the error.
    """
    if "layers" not in text or "version" not in text:
        return False
    version = layer = False
    try:
        for path, value in _values(text):
            version = version or (path == ("version",) and value == "1")
            layer = layer or _tells(path, value)
            if version and layer:
                return True
    except yaml.YAMLError:
        return (layer or _LAYERS.search(text) is not None) and _VERSION_1.search(text) is not None
    return False


def _tells(path: tuple[str, ...], value: str) -> bool:
    """Whether a value at this path shows a spec: a key of a convolution in a layer or in the defaults, or an alias."""
    where, *inside = path
    if where == "layers":
        return inside[1] in _TELLING if len(inside) == 2 else value == _ALIAS and len(inside) < 2
    return where == "defaults" and len(inside) == 1 and inside[0] in _TELLING


def _values(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each value of the first document with the keys that lead to it; list items and keys that are no text are ""."""
    keys: list[str | None] = []  # for each open collection: the key whose value comes next, None where a key does
    around: list[tuple[bool, bool]] = []  # for each open collection: whether it is a list, and whether it is a key
    for event in islice(yaml.parse(text, Loader=Loader), MOST_EVENTS):
        if isinstance(event, yaml.CollectionEndEvent):
            keys.pop()
            _, is_key = around.pop()
            if not keys:
                return
        elif isinstance(event, yaml.NodeEvent):
            value = _ALIAS if isinstance(event, yaml.AliasEvent) else str(getattr(event, "value", ""))
            opens = isinstance(event, yaml.CollectionStartEvent)
            is_key = bool(keys) and keys[-1] is None
            if is_key:
                keys[-1] = "" if opens else value
            elif keys:
                yield tuple(key or "" for key in keys), value
            if opens:
                listed = isinstance(event, yaml.SequenceStartEvent)
                around.append((listed, is_key))
                keys.append("" if listed else None)
                if len(keys) > MAX_DEPTH:
                    return
                continue
        else:
            continue
        if keys and not is_key and not around[-1][0]:
            keys[-1] = None
