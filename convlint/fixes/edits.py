"""Edits of a text: where a new key goes, applying edits, their lines and columns, and the unified diff."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from convlint.files.located_yaml import LINE_BREAK
from convlint.files.patterns import pattern
from convlint.fixes import yaml_nodes as nodes
from convlint.model.location import TextEdit


class Edit(Struct, frozen=True, order=True, gc=False):
    """`new` takes the place of the characters from `start` up to `end`; where both are equal, it is inserted there."""

    start: int
    end: int
    new: str


def applied(text: str, edits: Iterable[Edit]) -> str:
    """The text after all edits. Raises ValueError where two overlap, insert at one place, or leave the text."""
    parts: list[str] = []
    done, inserted = 0, -1
    for edit in sorted(edits):
        if not done <= edit.start <= edit.end <= len(text):
            raise ValueError(f"an edit of {edit.start} to {edit.end} overlaps another or leaves the text")
        if edit.start == edit.end:
            if edit.start == inserted:
                raise ValueError(f"two edits insert at {inserted}")
            inserted = edit.start
        parts += (text[done : edit.start], edit.new)
        done = edit.end
    return "".join([*parts, text[done:]])


# Line breaks of YAML that others take for a part of the line.
_OTHER_BREAK = pattern("\r(?!\n)|[\x85\u2028\u2029]")


class Places:
    """The lines of one text, without a byte order mark."""

    def __init__(self, text: str) -> None:
        self.are_plain = _OTHER_BREAK.search(text) is None  # whether all who read the text count the same lines
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def text_edit(self, edit: Edit, path: str) -> TextEdit:
        """An edit of the text, which is that of the file at `path`."""
        line, column = self._place(edit.start)
        end_line, end_column = self._place(edit.end)
        return TextEdit(path=path, line=line, column=column, end_line=end_line, end_column=end_column, text=edit.new)

    def _place(self, at: int) -> tuple[int, int]:
        line = bisect_right(self._starts, at)
        return line, at - self._starts[line - 1] + 1


CONTEXT = 3  # lines around a change
# Lines that an edit puts in, or takes out, in one place: a bound keeps the diff linear, and edits are short.
_FARTHEST = 40

Run = tuple[int, int, int, int]  # lines that differ: of the old text from, to (excluded); of the new one
_NO_NEWLINE = "\\ No newline at end of file\n"


def unified(before: str, after: str, path: str) -> list[str]:
    """The diff's lines, each with its line break; none where the texts are the same. Takes time linear in both."""
    old, new = _lines(before), _lines(after)
    runs = list(_runs(old, new))
    if not runs:
        return []
    lines = [f"--- {path}\n", f"+++ {path}\n"]
    for hunk in _hunks(runs):
        first, last = hunk[0], hunk[-1]
        start, begin = max(0, first[0] - CONTEXT), max(0, first[2] - CONTEXT)
        stop, end = min(len(old), last[1] + CONTEXT), min(len(new), last[3] + CONTEXT)
        lines.append(f"@@ -{_range(start, stop)} +{_range(begin, end)} @@\n")
        at = start
        for old_from, old_to, new_from, new_to in hunk:
            lines += [_line(" ", text) for text in old[at:old_from]]
            lines += [_line("-", text) for text in old[old_from:old_to]]
            lines += [_line("+", text) for text in new[new_from:new_to]]
            at = old_to
        lines += [_line(" ", text) for text in old[at:stop]]
    return lines


def _lines(text: str) -> list[str]:
    """By line feeds alone, as `patch` has it."""
    *lines, rest = text.split("\n")
    return [f"{line}\n" for line in lines] + ([rest] if rest else [])


def _line(sign: str, text: str) -> str:
    return f"{sign}{text}" if text.endswith("\n") else f"{sign}{text}\n{_NO_NEWLINE}"


def _range(start: int, stop: int) -> str:
    """Counted from 1; of no lines, the one before."""
    if stop - start == 1:
        return f"{start + 1}"
    return f"{start + 1 if stop > start else start},{stop - start}"


def _runs(old: Sequence[str], new: Sequence[str]) -> Iterator[Run]:
    i = j = 0
    while i < len(old) or j < len(new):
        if i < len(old) and j < len(new) and old[i] == new[j]:
            i, j = i + 1, j + 1
            continue
        first, begin = i, j
        while (met := _meeting(old, new, i, j)) is None:
            i, j = i + 1, j + 1
        i, j = met
        yield first, i, begin, j


def _meeting(old: Sequence[str], new: Sequence[str], i: int, j: int) -> tuple[int, int] | None:
    """Where both texts go on alike near `i` and `j`: replaced lines are tried first, then added or removed ones."""
    if i >= len(old) or j >= len(new):
        return len(old), len(new)
    for more in range(1, _FARTHEST):
        for k, m in ((i + more, j + more), (i, j + more), (i + more, j)):
            if _alike(old, new, k, m):
                return k, m
    return None


def _alike(old: Sequence[str], new: Sequence[str], k: int, m: int) -> bool:
    """Whether both end there, or have the same line."""
    if k >= len(old) or m >= len(new):
        return k == len(old) and m == len(new)
    return old[k] == new[m]


def _hunks(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """Runs whose context meets stand in one hunk."""
    hunk = [runs[0]]
    for run in runs[1:]:
        if run[0] - hunk[-1][1] > 2 * CONTEXT:
            yield hunk
            hunk = []
        hunk.append(run)
    yield hunk


_JOINER = pattern(r"\s*,\s*")
_COLON = pattern(r":[ \t]*")


def added(
    text: str, mapping: nodes.Mapping, new: Mapping[str, str], *, as_json: bool, after: Collection[str] | None = None
) -> Edit:
    """The edit that adds `new` (key -> value as it is written) after the last value that stands on its line.

    With `after`, it stands behind the last of these keys, or first. `as_json`: the keys are quoted.
    """
    # Behind a value on further lines, the new key would have to find where these end.
    entries = [entry for entry in mapping.entries if after is None or nodes.behind(entry.key).text in after]
    entry = next((entry for entry in reversed(entries) if _ends_plainly(entry.value)), None)
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
    match = LINE_BREAK.match(text, at) or LINE_BREAK.search(text)
    return match[0] if match is not None else "\n"
