"""Edits of a spec's text: what changes where, in the style of the text; what cannot be edited, with the reason."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from convlint.files.located_yaml import flow
from convlint.files.patterns import pattern
from convlint.fixes import yaml_nodes as nodes
from convlint.fixes.document import (
    SHARED,
    Document,
    Holder,
    additions,
    decide,
    decide_settings,
    document_of,
    settle_defaults,
    share,
    shared_reason,
)
from convlint.fixes.edits import Edit, added, quotes
from convlint.fixes.forms import CHANGEABLE, Data, Sides, data_of, items_as
from convlint.fixes.plan import ValueChange
from convlint.model.network import Network
from convlint.readers.spec.fields import PADS

_PLAIN = pattern(r"[A-Za-z_][A-Za-z0-9_.-]*|[0-9]+")
_JSON_PLAIN = pattern(r"true|false|[0-9]+")


def node_edits(node: nodes.Node, new: Data, *, as_json: bool) -> Iterator[Edit]:
    """The edits after which a node says `new`. Sides of padding that it lacks are not added."""
    if new == data_of(node):
        return
    items = items_as(node, new) if isinstance(node, nodes.Sequence) else None
    if isinstance(node, nodes.Sequence) and items is not None:
        for item, data in zip(node.items, items, strict=True):
            yield from node_edits(item, data, as_json=as_json)
    elif isinstance(node, nodes.Mapping) and isinstance(new, Sides):
        for name, side in new.named:
            if name in node.own:
                yield from node_edits(node.own[name].value, side, as_json=as_json)
    elif isinstance(node, nodes.Scalar):
        yield Edit(node.start, node.end, _scalar(node, new, as_json))
    else:
        yield Edit(node.start, node.end, rendered(new, as_json=as_json))


def rendered(data: Data, *, as_json: bool) -> str:
    """A value in flow style."""
    if isinstance(data, tuple):
        return "[" + ", ".join(rendered(item, as_json=as_json) for item in data) + "]"
    if isinstance(data, Sides):
        pairs = ((json.dumps(name) if as_json else name, side) for name, side in data.named)
        return "{" + ", ".join(f"{name}: {side}" for name, side in pairs) + "}"
    if (_JSON_PLAIN if as_json else _PLAIN).fullmatch(data):
        return data
    return json.dumps(data) if data.isascii() else flow(data)


def _scalar(node: nodes.Scalar, new: Data, as_json: bool) -> str:
    """New text between the old quotes. A number that takes the place of a word (padding: "valid") has none."""
    if node.style and isinstance(new, str) and not (node.text.lower().strip() == "valid" and new.isdigit()):
        return node.style + new + node.style
    return rendered(new, as_json=as_json)


_BEFORE_LAYERS = ("version", "target", "targets", "gpu", "mode", "runtime", "name", "description")
_RUNTIME = "runtime."


class Edits(Struct, frozen=True):
    """The edits of a text, in order, and the changes that cannot be written, with the reason."""

    edits: tuple[Edit, ...]
    refused: Mapping[ValueChange, str]


def spec_edits(text: str, network: Network, changes: Sequence[ValueChange]) -> Edits:
    """The edits for `changes`. `network` is what the reader made of this text, without errors and without a batch.

    Offsets count the characters of `text`; a byte order mark at its beginning may be there or not.
    """
    root = nodes.nodes_of(text)
    assert root is not None  # the reader made a network of it
    return document_edits(document_of(text, root, network), changes)


def document_edits(document: Document, changes: Sequence[ValueChange]) -> Edits:
    """The edits for `changes` in a document, which holds them afterwards."""
    reasons = _hand_out(document, changes)
    decide_settings(document)
    for holder in document.holders:
        if holder.changes:
            decide(holder, document)
    new_defaults = share(document)
    agreed = settle_defaults(document)
    refused = {change: reason for change in changes if (reason := _reason(document, change, reasons))}
    return Edits(edits=tuple(sorted(_edits(document, agreed, new_defaults))), refused=refused)


def _hand_out(document: Document, changes: Sequence[ValueChange]) -> dict[ValueChange, str]:
    """Gives each holder its changes; returns the reasons of those that no holder can have."""
    reasons: dict[ValueChange, str] = {}
    by_holder: dict[Holder, dict[str, dict[int, ValueChange]]] = {}
    for change in changes:
        if change.layer is None:
            if not change.field.startswith(_RUNTIME):
                reasons[change] = f"{change.field} is no setting of the whole network"
            else:
                document.settings[change.field.removeprefix(_RUNTIME)] = change.value
            continue
        holder = document.items[change.layer] if 0 <= change.layer < len(document.items) else None
        if holder is None:
            reasons[change] = "there is no such layer"
            continue
        first = by_holder.setdefault(holder, {}).setdefault(change.field, {}).setdefault(change.layer, change)
        if first.value != change.value:
            reasons[change] = f"{change.field} = {first.value} is asked for as well"
    for holder, fields in by_holder.items():
        for name, by_item in fields.items():
            values = {change.value for change in by_item.values()}
            # Items that are aliases of one mapping are one text: it changes for all of them, or not at all.
            if len(values) == 1 and len(by_item) == len(holder.items):
                holder.changes[name] = values.pop()
            else:
                holder.refused[name] = shared_reason("the layer", holder.mapping.shared)
    return reasons


def _reason(document: Document, change: ValueChange, reasons: Mapping[ValueChange, str]) -> str | None:
    if change in reasons:
        return reasons[change]
    if change.layer is None:
        return document.refused_settings.get(change.field.removeprefix(_RUNTIME))
    return document.items[change.layer].refused.get(change.field)


def _edits(document: Document, agreed: Mapping[str, Data], new_defaults: Mapping[str, Data]) -> Iterator[Edit]:
    as_json, defaults = nodes.is_json(document.root), document.defaults
    new = {holder.mapping: additions(holder, defaults, agreed) for holder in document.all_holders}
    values = [
        (holder.mapping.merged[key].value, data) for holder in document.all_holders for key, data in holder.own.items()
    ]
    if defaults is not None:
        new[defaults] = dict(new_defaults)
        values += [(defaults.merged[key].value, data) for key, data in agreed.items()]
    for node, data in values:
        yield from node_edits(node, data, as_json=as_json)
        if isinstance(node, nodes.Mapping) and isinstance(data, Sides):
            new[node] = {name: side for name, side in data.named if name not in node.own}
    for mapping, keys in new.items():
        if keys:
            inner = quotes(mapping, otherwise=as_json)
            written = {key: rendered(data, as_json=inner) for key, data in keys.items()}
            yield added(document.text, mapping, written, as_json=inner)
    blocks = {"runtime": document.new_settings, "defaults": {} if defaults is not None else new_defaults}
    yield from _new_blocks(document, {name: block for name, block in blocks.items() if block})


def _new_blocks(document: Document, blocks: Mapping[str, Mapping[str, Data]]) -> list[Edit]:
    """Whole blocks that the spec does not have, or has left empty."""
    root = document.root
    as_json = quotes(root, otherwise=False)
    edits, written = [], {}
    for name, block in blocks.items():
        pairs = ((json.dumps(key) if as_json else key, rendered(data, as_json=as_json)) for key, data in block.items())
        value = "{" + ", ".join(f"{key}: {word}" for key, word in pairs) + "}"
        empty = root.own.get(name)
        if empty is None:
            written[name] = value
        else:
            space = " " if empty.value.start == empty.value.end else ""
            edits.append(Edit(empty.value.start, empty.value.end, space + value))
    if written:
        edits.append(added(document.text, root, written, as_json=as_json, after=_BEFORE_LAYERS))
    return edits


class SpecText:
    """A spec's text, parsed once for many questions, and the network read from it without errors or a batch."""

    def __init__(self, text: str, network: Network) -> None:
        self.text, self.network = text, network
        root = nodes.nodes_of(text)
        assert root is not None  # the reader made a network of it
        self._root = root
        self._whole = document_of(text, root, network)

    def edits(self, changes: Sequence[ValueChange]) -> Edits:
        """The edits that `spec_edits` makes of the text for these changes alone."""
        if not self.is_local(changes):
            return document_edits(document_of(self.text, self._root, self.network), changes)
        items = self._whole.items
        touched = list(dict.fromkeys(change.layer for change in changes if change.layer is not None))
        for position in touched:  # what was asked of them before
            items[position] = _unchanged(items[position])
        return document_edits(self._part([items[position] for position in touched]), changes)

    def cost(self, changes: Sequence[ValueChange]) -> int:
        """How many layers the edits of these changes have to look at."""
        return len(changes) if self.is_local(changes) else max(1, len(self._whole.items))

    def is_local(self, changes: Sequence[ValueChange]) -> bool:
        """Whether the edits depend on no mapping but those of the changes: neither defaults nor other layers."""
        return all(map(self._is_local, changes))

    def _is_local(self, change: ValueChange) -> bool:
        if change.layer is None:
            return True
        if not 0 <= change.layer < len(self._whole.items):
            return False
        holder, defaults = self._whole.items[change.layer], self._whole.defaults
        letters = (change.field, change.field + "_end") if change.field in PADS else (change.field,)
        for letter in CHANGEABLE.intersection(letters):
            if not holder.stating(letter) and (letter in SHARED or holder.drawing(letter, defaults)):
                return False
        return True

    def _part(self, holders: list[Holder]) -> Document:
        """The document as if these were all of its layers; enough for changes that are local."""
        runtime = None if self._whole.runtime is None else _unchanged(self._whole.runtime)
        return replace(self._whole, holders=holders, runtime=runtime, settings={}, refused_settings={}, new_settings={})


def _unchanged(holder: Holder) -> Holder:
    return replace(holder, changes={}, refused={}, own={}, drawn={}, new={})
