"""Tells specs from the many other YAML and JSON files of a repository: one decision, each file opened once."""

from __future__ import annotations

import re
from itertools import islice
from typing import Literal

import yaml
from msgspec import Struct

from convlint.errors import InputFault
from convlint.files.bounded_file import open_regular
from convlint.files.located_yaml import MAX_BYTES, MAX_DEPTH, Loader, text_of

MOST_EVENTS = 200_000
_HEAD = 1 << 16  # bytes, which tell most files that are no spec
_LAYERS_KEY = re.compile(rb"""(?m)^[ \t]*+[{,]?[ \t]*+["']?layers["']?[ \t]*+:|["']layers["']\s*+:""")
_TOP_LAYERS = re.compile(r"""^["']?layers["']?[ \t]*:[ \t]*(?P<rest>[^\r\n]*)""", re.MULTILINE)
_CONTENT = re.compile(r"^[ \t]*([^ \t\r\n#])", re.MULTILINE)  # of the next line that holds something
_FLOW = re.compile(r"\s*\{")
_TOP_VERSION = re.compile(r"""^["']?version["']?[ \t]*:""", re.MULTILINE)


class Look(Struct, frozen=True, kw_only=True):
    """What a file is: a spec; none, although it speaks of layers; or something else altogether.

    `text` is a spec's, where it could be read: what could not is a spec for all that is known, and its reader's to
    report.
    """

    verdict: Literal["spec", "no spec", "foreign"]
    text: str | None = None


def look(path: str, *, named: bool = False, whole: bool = True) -> Look:
    """What the file at `path` is. One that is not `named` speaks of layers in its first 64 KiB, or is foreign.

    Without `whole` it is not read beyond those, and a file that does is taken for a spec.
    """
    try:
        with open_regular(path) as stream:
            head = b"" if named else stream.read(_HEAD)
            if not named and _LAYERS_KEY.search(head) is None:
                return Look(verdict="foreign")
            if not whole:
                return Look(verdict="spec")
            text = text_of(head + stream.read(MAX_BYTES + 1 - len(head)))
    except InputFault:
        return Look(verdict="spec")
    return Look(verdict="spec", text=text) if is_spec_text(text) else Look(verdict="no spec")


def is_spec_text(text: str) -> bool:
    """Whether the text has `layers:` at the top: a list, or anything at all beside `version:`."""
    if "layers" not in text or '"schema_version"' in text[:200]:  # a JSON report of convlint itself also has layers
        return False
    match = _TOP_LAYERS.search(text)
    if match is not None:
        rest = match["rest"].partition("#")[0].strip()
        below = _CONTENT.search(text, match.end() + 1) if not rest else None
        listed = rest[:1] in ("[", "*", "&") or (below is not None and below[1] == "-")
        return listed or _TOP_VERSION.search(text) is not None
    return _FLOW.match(text) is not None and _flow_spec(text)


def _flow_spec(text: str) -> bool:
    """Whether a text in flow style, as JSON is, has a list `layers` in its outermost mapping.

    What has more values before it, or nests deeper, than a spec may have is none.
    """
    depth = 0
    key: str | None = None  # in the outermost mapping: the key whose value comes next
    try:
        for event in islice(yaml.parse(text, Loader=Loader), MOST_EVENTS):
            if depth > MAX_DEPTH:
                return False
            opens = isinstance(event, yaml.CollectionStartEvent)
            if opens and depth == 1 and key == "layers":
                return isinstance(event, yaml.SequenceStartEvent)
            depth += opens - isinstance(event, yaml.CollectionEndEvent)
            if depth == 1 and isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent) and not opens:
                key = getattr(event, "value", "") if key is None else None
    except yaml.YAMLError:
        pass  # broken before any layers: not ours to report
    return False
