"""Tells specs from the many other YAML and JSON files of a repository, without reading all of each."""

from __future__ import annotations

import re
from itertools import islice

import yaml

from convlint.errors import InputFault
from convlint.files.located_yaml import MAX_DEPTH, Loader, read_text

MOST_EVENTS = 200_000
SUFFIXES = (".yaml", ".yml", ".json")
_TOP_LAYERS = re.compile(r"""^["']?layers["']?[ \t]*:[ \t]*(?P<rest>[^\r\n]*)""", re.MULTILINE)
_CONTENT = re.compile(r"^[ \t]*([^ \t\r\n#])", re.MULTILINE)  # of the next line that holds something
_FLOW = re.compile(r"\s*\{")
_TOP_VERSION = re.compile(r"""^["']?version["']?[ \t]*:""", re.MULTILINE)


def is_spec(path: str) -> bool:
    """Whether the file has `layers:` at the top: a list, or anything at all beside `version:`.

    True also where it cannot be read: that is for the reader to report.
    """
    try:
        text = read_text(path)
    except InputFault:
        return True
    return is_spec_text(text)


def is_spec_text(text: str) -> bool:
    """The same for the text of a file."""
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
