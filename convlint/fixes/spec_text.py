"""The edits of a spec's text after which single values of it are others, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial

from msgspec import Struct

from convlint.fixes import yaml_nodes as nodes
from convlint.fixes.change import Change
from convlint.fixes.document import Document, document_of
from convlint.fixes.edits import Edit
from convlint.fixes.forms import Data, Sides
from convlint.fixes.holders import Holder, decide
from convlint.fixes.inheritance import refuse_what_others_inherit
from convlint.fixes.placing import added, quotes
from convlint.fixes.settings import decide_settings
from convlint.fixes.shared_defaults import share
from convlint.fixes.sharing import Outcome, settle
from convlint.fixes.writing import missing_sides, node_edits, pinned, rendered, unwritable
from convlint.model.network import Network

_BEFORE_LAYERS = ("version", "target", "targets", "gpu", "mode", "runtime", "name", "description")
_RUNTIME = "runtime."


class Refusal(Struct, frozen=True):
    """A change that no edit makes, and why."""

    change: Change
    reason: str


class Edits(Struct, frozen=True):
    """What to change in the text, in order, and what cannot be changed there."""

    edits: tuple[Edit, ...]
    refused: tuple[Refusal, ...]


def spec_edits(text: str, network: Network, changes: Sequence[Change]) -> Edits:
    """The edits for `changes`. `network` is what the reader made of this text, without errors and without a batch.

    Offsets count the characters of `text`; a byte order mark at its beginning may be there or not.
    """
    tree = nodes.nodes_of(text)
    assert tree is not None  # the reader made a network of it
    return document_edits(text, document_of(tree, network), changes)


def document_edits(text: str, document: Document, changes: Sequence[Change]) -> Edits:
    """The edits for `changes` in the document that `text` is, which holds them afterwards."""
    reasons = _hand_out(document, changes)
    problem = partial(unwritable, text)
    decide_settings(document, problem)
    for holder in document.holders:
        if holder.changes:
            decide(holder, document.defaults, problem)
    refuse_what_others_inherit(document, problem)
    new_defaults = share(document, problem)
    outcome = settle(document.tree, document.all_holders, document.defaults, new_defaults, problem)
    refused = [Refusal(change, reason) for change in changes if (reason := _reason(document, change, reasons))]
    return Edits(edits=tuple(sorted(_edits(text, document, outcome, new_defaults))), refused=tuple(refused))


def _hand_out(document: Document, changes: Sequence[Change]) -> dict[Change, str]:
    """Gives each holder its changes; the reasons of those that no holder can have."""
    reasons: dict[Change, str] = {}
    asked: dict[Holder, dict[str, dict[int, Change]]] = {}
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
        first = asked.setdefault(holder, {}).setdefault(change.field, {}).setdefault(change.layer, change)
        if first.value != change.value:
            reasons[change] = f"{change.field} = {first.value} is asked for as well"
    for holder, fields in asked.items():
        for name, by_item in fields.items():
            values = {change.value for change in by_item.values()}
            if len(values) == 1 and len(by_item) == len(holder.items):
                holder.changes[name] = values.pop()
            else:
                holder.refused[name] = "other layers are aliases of the same text, and do not change alike"
    return reasons


def _reason(document: Document, change: Change, reasons: Mapping[Change, str]) -> str | None:
    if change in reasons:
        return reasons[change]
    if change.layer is None:
        return document.refused_settings.get(change.field.removeprefix(_RUNTIME))
    holder = document.items[change.layer]
    return holder.refused.get(change.field) if holder is not None else None


def _edits(text: str, document: Document, outcome: Outcome, new_defaults: Mapping[str, Data]) -> list[Edit]:
    as_json = document.tree.json
    found: dict[nodes.Node, Edit] = {}
    additions = outcome.added
    for node, data in outcome.says.items():
        found.update(node_edits(text, node, data, as_json=as_json))
        if isinstance(node, nodes.Mapping) and isinstance(data, Sides):
            sides = missing_sides(node, data)
            if sides:
                additions[node] = sides
    covered = {item for node in found if isinstance(node, nodes.Sequence) for item in _inside(node)}
    for alias in outcome.pinned:
        if alias not in found and alias not in covered:
            found[alias] = pinned(text, alias)
    edits = list(found.values())
    for mapping, new in additions.items():
        inner = quotes(mapping, otherwise=as_json)
        written = {key: rendered(data, as_json=inner) for key, data in new.items()}
        edits.append(added(text, mapping, written, as_json=inner))
    blocks = {"runtime": document.new_settings, "defaults": {} if document.defaults is not None else new_defaults}
    edits += _new_blocks(text, document, {name: block for name, block in blocks.items() if block})
    return edits


def _new_blocks(text: str, document: Document, blocks: Mapping[str, Mapping[str, Data]]) -> list[Edit]:
    """Whole blocks that the spec does not have, or has left empty."""
    root = document.tree.root
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
        edits.append(added(text, root, written, as_json=as_json, after=_BEFORE_LAYERS))
    return edits


def _inside(node: nodes.Node) -> list[nodes.Node]:
    if not isinstance(node, nodes.Sequence):
        return [node]
    return [inner for item in node.items for inner in _inside(item)]
