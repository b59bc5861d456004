"""The nodes of a YAML text, the characters that each of them takes, and the anchors that share a node.

For text that `convlint.files.located_yaml` has parsed: hostile text was refused there. Aliases and merges stay visible
here, because an edit at an anchor would change everything that refers to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml
from msgspec import Struct, field

from convlint.files.located_yaml import Loader

BOM = "\ufeff"

# No node refers to its parent, so the tree has no cycles and the garbage collector need not track it. That matters
# for specs of many thousand layers.


class Scalar(Struct, eq=False, gc=False):
    """One word or number: `start` and `end` include its quotes, not its anchor; `style` is empty for plain text."""

    start: int
    end: int
    text: str
    style: str
    shared: str = ""  # the anchor in words, if an alias refers to it: "the YAML anchor &base in line 3"


class Sequence(Struct, eq=False, gc=False):
    """A list."""

    start: int
    end: int
    flow: bool
    items: list[Node] = field(default_factory=list)
    shared: str = ""


class Mapping(Struct, eq=False, gc=False):
    """A mapping: `own` is what it says itself, `merged` what it holds after merges, `entries` all in order, with <<."""

    start: int
    end: int
    flow: bool
    column: int  # of the keys, where it is no flow mapping
    entries: list[MappingEntry] = field(default_factory=list)
    own: dict[str, MappingEntry] = field(default_factory=dict)
    merged: dict[str, MappingEntry] = field(default_factory=dict)
    sources: list[Mapping] = field(default_factory=list)  # those merged, the stronger first
    shared: str = ""


class Alias(Struct, eq=False, gc=False):
    """`*name`, and the node that it stands for."""

    start: int
    end: int
    target: Scalar | Sequence | Mapping


Target = Scalar | Sequence | Mapping
Node = Scalar | Sequence | Mapping | Alias


class MappingEntry(Struct, eq=False, gc=False):
    """One key of a mapping and its value."""

    key: Scalar | Alias
    value: Node


def behind(node: Node | None) -> Any:
    """The node itself, or what an alias stands for."""
    return node.target if isinstance(node, Alias) else node


def reached_through(mapping: Mapping, key: str) -> str:
    """What shares the place where `key` gets its value: an anchor or a merge key; empty if nothing does."""
    entry = mapping.merged[key]
    merged = ""
    if mapping.own.get(key) is not entry:
        source = next(source for source in mapping.sources if source.merged.get(key) is entry)
        merged = source.shared or _MERGE_KEY
    return mapping.shared or merged or str(behind(entry.value).shared)


def shared_through(mapping: Mapping, key: str) -> str:
    """What shares the value of `key` or any part of it, as `reached_through`; for values that the reader has read."""
    return reached_through(mapping, key) or _shared_part(mapping.merged[key].value)


_MERGE_KEY = "a merge key (<<)"


def _shared_part(node: Node) -> str:
    target: Target = behind(node)
    if target.shared or isinstance(target, Scalar):
        return target.shared
    if isinstance(target, Mapping):
        if target.sources:
            return target.sources[0].shared or _MERGE_KEY
        return next(filter(None, (_shared_part(entry.value) for entry in target.entries)), "")
    return next(filter(None, map(_shared_part, target.items)), "")


def is_json(root: Mapping) -> bool:
    """Whether a document is written as JSON: its keys stand between double quotes."""
    return root.flow and bool(root.entries) and behind(root.entries[0].key).style == '"'


def nodes_of(text: str) -> Mapping | None:
    """The root of the one document in `text`, with offsets into it; None if that is no mapping."""
    root = _Builder(text).root
    return root if isinstance(root, Mapping) else None


class _Builder:
    """Builds the tree in one pass over the parser's events."""

    def __init__(self, text: str) -> None:
        body = text.lstrip(BOM)  # libyaml does not count a byte order mark that it swallows
        self.shift = len(text) - len(body)
        self.root: Node | None = None
        self.stack: list[Sequence | Mapping] = []
        self.keys: list[Scalar | Alias | None] = []  # per open collection: the key that waits for its value
        self.anchors: dict[str, tuple[Target, int]] = {}  # name -> node, line
        self.open_anchors: list[tuple[str | None, int]] = []
        # Only for these is the text scanned a second time: events of scalars begin at their anchor.
        decorated = [scalar for scalar in self._scalars(body) if scalar.end > scalar.start]
        if decorated:
            starts = dict(_scalar_tokens(body))
            for scalar in decorated:
                scalar.start = starts.get(scalar.end - self.shift, scalar.end - self.shift) + self.shift

    def _scalars(self, body: str) -> Iterator[Scalar]:
        """Builds the tree; yields the scalars that have an anchor or `!` before them, which events do not tell off."""
        shift, stack = self.shift, self.stack
        event: Any
        for event in yaml.parse(body, Loader=Loader):
            kind = type(event)
            if kind is yaml.ScalarEvent:
                start = event.start_mark.index
                scalar = Scalar(start + shift, event.end_mark.index + shift, event.value, event.style or "")
                if event.anchor is not None:
                    self.anchors[event.anchor] = scalar, event.start_mark.line + 1
                if event.anchor is not None or body[start : start + 1] == "!":
                    yield scalar
                self._put(scalar)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                # The event ends behind `{`, or where the first key begins, and so behind the anchor in either case.
                mark, flow = event.end_mark, bool(event.flow_style)
                start = mark.index + shift - flow
                if kind is yaml.MappingStartEvent:
                    mapping = Mapping(start, start, flow, mark.column)
                    mapping.merged = mapping.own
                    stack.append(mapping)
                else:
                    stack.append(Sequence(start, start, flow))
                self.keys.append(None)
                self.open_anchors.append((event.anchor, event.start_mark.line + 1))
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                node = stack.pop()
                self.keys.pop()
                node.end = event.end_mark.index + shift
                anchor, line = self.open_anchors.pop()
                if anchor is not None:
                    self.anchors[anchor] = node, line
                self._put(node)
            elif kind is yaml.AliasEvent:
                target, line = self.anchors[event.anchor]
                target.shared = f"the YAML anchor &{event.anchor} in line {line}"
                self._put(Alias(event.start_mark.index + shift, event.end_mark.index + shift, target))

    def _put(self, node: Node) -> None:
        if not self.stack:
            self.root = node
            return
        parent = self.stack[-1]
        if isinstance(parent, Sequence):
            parent.items.append(node)
            return
        key = self.keys[-1]
        if key is None:
            self.keys[-1] = node  # type: ignore[assignment]  # a key is a scalar: the parser refused others
            return
        self.keys[-1] = None
        entry = MappingEntry(key, node)
        parent.entries.append(entry)
        name: Scalar = behind(key)
        if name.text == "<<" and not name.style:
            _merge(parent, node)
        else:
            parent.own[name.text] = parent.merged[name.text] = entry


def _merge(mapping: Mapping, node: Node) -> None:
    """Takes over the keys that the mapping does not have; of several sources the first wins, as in the reader."""
    if mapping.merged is mapping.own:
        mapping.merged = dict(mapping.own)
    merged = behind(node)
    for item in merged.items if isinstance(merged, Sequence) else [merged]:
        source: Mapping = behind(item)
        mapping.sources.append(source)
        for name, entry in source.merged.items():
            mapping.merged.setdefault(name, entry)


def _scalar_tokens(body: str) -> Iterator[tuple[int, int]]:
    """Where each scalar ends, and where it starts without what stands before it."""
    token: Any
    for token in yaml.scan(body, Loader=Loader):
        if type(token) is yaml.ScalarToken:
            yield token.end_mark.index, token.start_mark.index
