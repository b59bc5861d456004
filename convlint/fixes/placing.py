"""Where a new key of a YAML mapping is inserted, in the style of its neighbours."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping

from convlint.files.located_yaml import LINE_BREAK
from convlint.fixes import yaml_nodes as nodes
from convlint.fixes.edits import Edit

_JOINER = re.compile(r"\s*,\s*")
_COLON = re.compile(r":[ \t]*")


def added(
    text: str, mapping: nodes.Mapping, new: Mapping[str, str], *, as_json: bool, after: Collection[str] | None = None
) -> Edit:
    """The edit that adds `new` (key -> value as it is written) after the last value that stands on its line.

    With `after`, it stands behind the last of these keys, or first. `as_json`: the keys are quoted.
    """
    # Behind a value on further lines, the new key would have to find where these end.
    entry = next(
        (entry for entry in reversed(mapping.entries) if _ends_plainly(entry.value) and _is_among(entry, after)), None
    )
    if mapping.flow:
        return _in_flow(text, mapping, entry, new, as_json)
    indent = " " * mapping.column
    if entry is None:  # the first key stands at the mapping's start
        newline = _newline(text, mapping.start)
        lines = "".join(f"{key}: {value}{newline}{indent}" for key, value in new.items())
        return Edit(mapping.start, mapping.start, lines)
    line_end = LINE_BREAK.search(text, entry.value.end)
    at = line_end.start() if line_end is not None else len(text)
    newline = _newline(text, at)
    return Edit(at, at, "".join(f"{newline}{indent}{key}: {value}" for key, value in new.items()))


def quotes(mapping: nodes.Mapping, *, otherwise: bool) -> bool:
    """Whether a mapping is written as JSON is; `otherwise` where it is empty."""
    if not mapping.flow or not mapping.entries:
        return mapping.flow and otherwise
    key = mapping.entries[-1].key
    return isinstance(key, nodes.Scalar) and key.style == '"'


def _ends_plainly(value: nodes.Node) -> bool:
    """Whether a value has characters, and nothing of it stands on further lines by its indent."""
    if isinstance(value, nodes.Scalar):
        return value.end > value.start and value.style not in ("|", ">")
    return isinstance(value, nodes.Alias) or value.flow


def _is_among(entry: nodes.MappingEntry, keys: Collection[str] | None) -> bool:
    return keys is None or nodes.behind(entry.key).text in keys


def _in_flow(
    text: str, mapping: nodes.Mapping, entry: nodes.MappingEntry | None, new: Mapping[str, str], as_json: bool
) -> Edit:
    first = mapping.entries[0] if mapping.entries else None
    colon = ": "
    if entry is not None and as_json:
        between = _COLON.fullmatch(text[entry.key.end : entry.value.start])
        colon = between[0] if between is not None else colon
    written = [f"{json.dumps(key) if as_json else key}{colon}{value}" for key, value in new.items()]
    if first is None:
        at = mapping.end - 1
        padding = " " if text[at - 1] in " \t" and text[mapping.start + 1 : at].strip(" \t") == "" else ""
        return Edit(at, at, ", ".join(written) + padding)
    if entry is None:
        at = mapping.start + 1
        return Edit(at, at, "".join(f"{pair}, " for pair in written))
    joiner = _joiner(text, mapping, entry)
    at = entry.value.end
    return Edit(at, at, "".join(joiner + pair for pair in written))


def _joiner(text: str, mapping: nodes.Mapping, entry: nodes.MappingEntry) -> str:
    """What separates the last entries, line break and indent with it, unless a comment ends the line."""
    place = mapping.entries.index(entry)
    before = mapping.entries[place - 1].value.end if place else mapping.start + 1
    between = text[before : entry.key.start]
    if place and _JOINER.fullmatch(between):
        joiner = between
    elif not place and between.strip() == "" and LINE_BREAK.search(between):
        joiner = "," + between
    else:
        return ", "
    if LINE_BREAK.search(joiner) and "#" in LINE_BREAK.split(text[entry.value.end : mapping.end], maxsplit=1)[0]:
        return ", "
    return joiner


def _newline(text: str, at: int) -> str:
    """The line break at a place, or the text's first."""
    found = LINE_BREAK.match(text, at) or LINE_BREAK.search(text)
    return found[0] if found is not None else "\n"
