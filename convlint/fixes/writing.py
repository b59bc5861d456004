"""What a node says instead, as edits of its own characters alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from convlint.files.flow_yaml import flow
from convlint.files.located_yaml import LINE_BREAK
from convlint.fixes import yaml_nodes as nodes
from convlint.fixes.edits import Edit
from convlint.fixes.forms import Data, Sides, data_of

_BLOCK = ("|", ">")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*|[0-9]+")
_JSON_PLAIN = re.compile(r"true|false|[0-9]+")


def unwritable(text: str, node: nodes.Node, old: Data, new: Data) -> str | None:
    """Why a node that says `old` cannot say `new` where it stands; None where it can."""
    if isinstance(node, nodes.Alias) or old == new:
        return None
    if isinstance(node, nodes.Scalar):
        return "it is written as a block of text" if node.style in _BLOCK else None
    if isinstance(node, nodes.Mapping):
        sides = dict(new.named) if isinstance(new, Sides) else {}
        for name, entry in node.own.items():
            if name in sides and data_of(entry.value) != sides[name] and _is_aliased(entry.value):
                return "an alias refers to a part of it"
        return None
    items = _items(node, new)
    if items is not None:
        for item, data in zip(node.items, items, strict=True):
            problem = unwritable(text, item, data_of(item), data)
            if data_of(item) != data and (problem or _is_aliased(item)):
                return problem or "an alias refers to a part of it"
        return None
    if any(map(_is_aliased, node.items)):
        return "an alias refers to a part of it"
    if not node.flow or "#" in text[node.start : node.end]:
        return "its list has another length, and is not written on one line"
    return None


def node_edits(text: str, node: nodes.Node, new: Data, *, as_json: bool) -> Iterator[tuple[nodes.Node, Edit]]:
    """The edits after which a node says `new`, each with the node that it replaces; sides it lacks are not added."""
    if new == data_of(node) and not isinstance(node, nodes.Alias):
        return
    items = _items(node, new) if isinstance(node, nodes.Sequence) else None
    if isinstance(node, nodes.Sequence) and items is not None:
        for item, data in zip(node.items, items, strict=True):
            if data != data_of(item):
                yield from node_edits(text, item, data, as_json=as_json)
    elif isinstance(node, nodes.Mapping) and isinstance(new, Sides):
        for name, side in new.named:
            if name in node.own and side != data_of(node.own[name].value):
                yield from node_edits(text, node.own[name].value, side, as_json=as_json)
    elif isinstance(node, nodes.Scalar):
        yield node, Edit(node.start, node.end, _scalar(node, new, as_json))
    else:
        yield node, Edit(node.start, node.end, rendered(new, as_json=as_json))


def missing_sides(node: nodes.Mapping, new: Sides) -> dict[str, Data]:
    """The sides that padding by name does not say itself, or says by a merge, and has to."""
    return {
        name: side
        for name, side in new.named
        if name not in node.own and (name not in node.found or data_of(node.found[name].value) != side)
    }


def pinned(text: str, alias: nodes.Alias) -> Edit:
    """The alias replaced by what it stood for."""
    target = alias.target
    source = text[target.start : target.end]
    if not isinstance(target, nodes.Scalar):
        source = rendered(data_of(target), as_json=False)
    elif LINE_BREAK.search(source):
        source = json.dumps(target.text)
    return Edit(alias.start, alias.end, source)


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


def _items(node: nodes.Sequence, new: Data) -> tuple[Data, ...] | None:
    """What each item of a list becomes; None where the list gets another shape."""
    if not isinstance(new, tuple) or len(new) != len(node.items):
        return None
    lists = [isinstance(nodes.behind(item), nodes.Sequence) for item in node.items]
    return new if lists == [isinstance(data, tuple) for data in new] else None


def _is_aliased(node: nodes.Node) -> bool:
    return not isinstance(node, nodes.Alias) and node.aliased
