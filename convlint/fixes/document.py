"""A spec as a document to be edited: which node holds each value, and whether it may change there.

A value that an anchor or a merge key shares is never edited: whoever else reads it would change too. What layers draw
from the defaults changes there if all of them agree, otherwise in the layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from convlint.fixes import yaml_nodes as nodes
from convlint.fixes.forms import (
    CHANGEABLE,
    KEYS_OF,
    Data,
    No,
    data_of,
    is_same,
    letters_of,
    neutral,
    restated,
    setting_word,
    stated,
    together,
    unwritable,
)
from convlint.model.layer import ConvLayer
from convlint.model.network import Network
from convlint.readers.spec.fields import CANONICAL, COMPOSITES, PADS
from convlint.readers.spec.reader import ALIASES, SETTINGS
from convlint.readers.spec.shapes import same_sides

_INPUTS = ("inputs", "input", "from")
_DEPTH = ("D", "T", "Z", "StrideD", "PadD", "PadD_end", "DilD", "OutPadD")
_HEIGHT = ("H", "R", "P", "U", "PadH", "PadH_end", "DilH", "OutPadH")
_FAMILY: Mapping[str, str] = {letter: name for name in (*COMPOSITES, "padding") for letter in letters_of(name, 3)}
# Families whose letters are no keys, or set two values at once: they are added as a whole.
_NO_LETTERS = ("output_padding", "padding")


class Holder(Struct, eq=False, kw_only=True):
    """One mapping, and the items of `layers` that it is: several if some are aliases of it.

    `changes` are the wanted values by letter; `refused` gives the reasons of those that cannot be written. The others
    become values of keys: `own` of the mapping's own, `drawn` of the defaults', `new` of keys that are nowhere yet.
    """

    mapping: nodes.Mapping
    items: list[int]
    layers: list[ConvLayer]  # of those items; none where it is no convolution
    dims: int | None  # of the convolution; None of other operations, and where the items differ
    takes_N: bool = True  # whether an N stated there counts
    dims_read: set[int] = field(default_factory=set)  # with which it reads the defaults, convolution or not
    changes: dict[str, Any] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    own: dict[str, Data] = field(default_factory=dict)
    drawn: dict[str, Data] = field(default_factory=dict)
    new: dict[str, Data] = field(default_factory=dict)

    def refuse(self, letters: Iterable[str], reason: str) -> None:
        """Takes back changes."""
        for letter in letters:
            if self.changes.pop(letter, None) is not None:
                self.refused[letter] = reason

    def stating(self, letter: str) -> list[str]:
        """The keys of the mapping that set this letter."""
        entries, dims = self.mapping.merged, self.dims
        return [key for key in KEYS_OF[letter] if key in entries and letter in letters_of(CANONICAL[key], dims)]

    def drawing(self, letter: str, defaults: nodes.Mapping | None) -> list[str]:
        """The keys of the defaults that this letter comes from. What is no convolution takes no more than N."""
        if defaults is None or not (self.layers or letter == "N") or self.stating(letter):
            return []
        entries, dims = defaults.merged, self.dims
        keys = [key for key in KEYS_OF[letter] if key in entries and letter in letters_of(CANONICAL[key], dims)]
        if any(pad in self.mapping.merged for pad in PADS):
            same = {key for key in keys if CANONICAL[key] == "padding" and is_same(data_of(entries[key].value))}
            keys = [key for key in keys if key not in same]
        return keys


def decide(holder: Holder, document: Document) -> None:
    """Fills `own`, `drawn` and `new` from the changes; refuses those that cannot be written where they stand."""
    for pad in PADS:  # a fix that sets PadH means both sides, if both are the same now
        even = all(getattr(layer, pad) == getattr(layer, pad + "_end") for layer in holder.layers)
        if pad in holder.changes and even:
            holder.changes.setdefault(pad + "_end", holder.changes[pad])
    for letter in list(holder.changes):
        reason = _impossible(letter, holder)
        if reason:
            holder.refuse([letter], reason)
    # Without the letters that are in the way, the others may need other keys: each refusal starts anew.
    while (problem := _state(holder, document)) is not None:
        letters, reason = problem
        holder.refuse(letters, reason)


def _impossible(letter: str, holder: Holder) -> str | None:
    if letter not in CHANGEABLE:
        return f"{letter} is no value that can be changed"
    dims = holder.dims
    if dims is None:
        return "it is no convolution" if letter in _FAMILY else None
    if (dims < 3 and letter in _DEPTH) or (dims < 2 and letter in _HEIGHT):
        return f"a {dims}-D convolution has no {letter}"
    return None


Problem = tuple[list[str], str]


def _state(holder: Holder, document: Document) -> Problem | None:
    """One attempt to write all changes; the letters that prevent it with the reason, or None."""
    defaults = document.defaults
    own: dict[str, None] = {}
    drawn: dict[str, None] = {}
    absent = []
    for letter in holder.changes:
        keys = holder.stating(letter)
        own.update(dict.fromkeys(keys))
        if not keys:
            keys = holder.drawing(letter, defaults)
            drawn.update(dict.fromkeys(keys))
            if not keys:
                absent.append(letter)
    holder.own, holder.drawn = {}, {}
    for key in (*own, *drawn):
        mapping = holder.mapping if key in own else defaults
        assert mapping is not None  # the key is drawn from the defaults
        node, letters = mapping.merged[key].value, letters_of(CANONICAL[key], holder.dims)
        if key in drawn:
            letters = tuple(letter for letter in letters if not holder.stating(letter))
        new = _restated(key, data_of(node), holder, letters)
        reason = new.reason if isinstance(new, No) else _unwritable(mapping, key, new) or ""
        if key in own and not isinstance(new, No):
            reason = reason or unwritable(document.text, node, data_of(node), new) or ""
        if isinstance(new, No) or reason:
            return [letter for letter in letters_of(CANONICAL[key], holder.dims) if letter in holder.changes], reason
        (holder.own if key in own else holder.drawn)[key] = new
    return _added(holder, absent, defaults)


def shared_reason(what: str, shared: str) -> str:
    """Why something that is shared is not edited: an edit there would change whatever else reads it."""
    return f"{what} is shared through {shared}; edit it by hand"


def _unwritable(mapping: nodes.Mapping, key: str, new: Data) -> str | None:
    if new == data_of(mapping.merged[key].value):
        return None
    shared = nodes.shared_through(mapping, key)
    return shared_reason("the value", shared) if shared else None


def _restated(key: str, old: Data, holder: Holder, drawn: tuple[str, ...]) -> Data | No:
    if CANONICAL[key] == "padding" and is_same(old) and holder.layers and _follows(holder):
        return old
    return restated(key, old, holder.changes, drawn, holder.dims)


def _follows(holder: Holder) -> bool:
    """Whether `padding: same` gives the wanted sides once the other changes are made."""
    for layer in holder.layers:
        values = {name: holder.changes.get(name, getattr(layer, name)) for name in layer.__struct_fields__}
        pads = {letter: value for letter, value in holder.changes.items() if letter.startswith("Pad")}
        same_sides(values, layer.op, layer.dims)
        if any(values[letter] != value for letter, value in pads.items()):
            return False
    return True


def _added(holder: Holder, absent: list[str], defaults: nodes.Mapping | None) -> Problem | None:
    """Fills `new` for letters that nothing states."""
    holder.new = {}
    cut = _cut_off(holder, absent, defaults)
    if cut:
        return cut, "it comes from the layer before, and stated here it would cut the two apart"
    keys = {*holder.mapping.merged, *(defaults.merged if defaults is not None else ())}
    for letter in absent:
        if letter not in _FAMILY:
            holder.new[letter] = stated(letter, holder.changes[letter], None, holder.dims)
    for family in dict.fromkeys(_FAMILY[letter] for letter in absent if letter in _FAMILY):
        letters = letters_of(family, holder.dims)
        changed = [letter for letter in absent if letter in letters]
        values = {letter: int(holder.changes.get(letter, neutral(letter))) for letter in letters}
        by_axis = any(key in keys for letter in letters_of(family, 3) for key in KEYS_OF[letter])
        if not by_axis and (family in _NO_LETTERS or changed == list(letters)):
            holder.new[family] = together(family, values, len(letters) // (2 if family == "padding" else 1))
        elif family != "padding":
            holder.new.update({letter: str(values[letter]) for letter in changed})
        else:
            for begin in dict.fromkeys(letter.removesuffix("_end") for letter in changed):
                if values[begin] != values[begin + "_end"]:
                    return changed, f"{begin} pads both sides alike"
                holder.new[begin] = str(values[begin])
    return None


def _cut_off(holder: Holder, absent: list[str], defaults: nodes.Mapping | None) -> list[str]:
    """The letters that would cut the layer off: one that states all of its sizes reads no other layer."""
    sizes = [letter for letter in absent if letter in "CHW"]
    entries = holder.mapping.merged
    if not sizes or not holder.layers or min(holder.items) == 0 or any(key in entries for key in _INPUTS):
        return []
    names = {CANONICAL.get(key) for key in (*entries, *(defaults.merged if defaults is not None else ()), *sizes)}
    return sizes if names.issuperset("CW" if holder.dims == 1 else "CHW") else []


def effective(key: str, holder: Holder) -> Data | None:
    """The value that `key`, added to the mapping, must have so that only the layer's changes take effect.

    None if the layer has no such value, or no single key can express it.
    """
    name, dims = CANONICAL[key], holder.dims
    stating = holder.stating(name) if name in CHANGEABLE and name not in PADS else []
    if stating and name not in holder.changes and CANONICAL[stating[0]] == name:
        return data_of(holder.mapping.merged[stating[0]].value)
    values: dict[str, Any] = {}
    for letter in letters_of(name, dims):
        if letter in holder.changes:
            values[letter] = holder.changes[letter]
        elif holder.layers and hasattr(holder.layers[0], letter):
            values[letter] = getattr(holder.layers[0], letter)
    if dims is None or not values or None in values.values():
        return None
    if name in COMPOSITES or name == "padding":
        return together(name, values, dims)
    if name in PADS:
        begin, end = values.values()
        return str(begin) if begin == end else None
    return stated(key, values[name], None, dims)


_TAKES_N = ("input", "view", "linear", "reshape")  # kinds of operations that are no convolution and yet may state N


class Document(Struct, eq=False, kw_only=True):
    """The spec that `text` is: `items` are the mappings of `layers` by position, `holders` each of them once.

    `settings` are the changes of the runtime, by its own names; `new_settings` what its block has to say where the
    spec has none.
    """

    text: str
    root: nodes.Mapping
    items: list[Holder]
    holders: list[Holder]
    defaults: nodes.Mapping | None
    runtime: Holder | None
    settings: dict[str, Any] = field(default_factory=dict)
    refused_settings: dict[str, str] = field(default_factory=dict)
    new_settings: dict[str, Data] = field(default_factory=dict)

    @property
    def all_holders(self) -> list[Holder]:
        """The items' and that of the runtime."""
        return [*self.holders, *([self.runtime] if self.runtime is not None else ())]

    def shares(self, block: str) -> str:
        """What shares a block of the spec, whether it holds anything or not; empty if nothing does."""
        return nodes.reached_through(self.root, block) if block in self.root.merged else ""


def document_of(text: str, root: nodes.Mapping, network: Network) -> Document:
    """The spec with this text and root, of which the reader made `network`."""
    layers = nodes.behind(root.merged["layers"].value)
    shared = nodes.reached_through(root, "layers")
    holders: dict[nodes.Mapping, Holder] = {}
    items = []
    for number, (item, operation) in enumerate(zip(layers.items, network.operations, strict=True)):
        mapping = nodes.behind(item)
        mapping.shared = mapping.shared or shared  # whoever reads the list reads its layers
        holder = holders.get(mapping)
        if holder is None:
            holder = holders[mapping] = Holder(
                mapping=mapping, items=[], layers=[], dims=None, takes_N=operation.kind in _TAKES_N
            )
        if operation.layer is not None:
            layer = network.layers[operation.layer]
            holder.dims = layer.dims if not holder.items or holder.dims == layer.dims else None
            holder.layers.append(layer)
        holder.dims_read.add(operation.dims)
        holder.items.append(number)
        items.append(holder)
    runtime = _block(root, "runtime")
    return Document(
        text=text,
        root=root,
        items=items,
        holders=list(holders.values()),
        defaults=_block(root, "defaults"),
        runtime=Holder(mapping=runtime, items=[], layers=[], dims=None) if runtime is not None else None,
    )


def _block(root: nodes.Mapping, name: str) -> nodes.Mapping | None:
    block = nodes.behind(root.merged[name].value) if name in root.merged else None
    if not isinstance(block, nodes.Mapping):
        return None
    block.shared = block.shared or nodes.reached_through(root, name)  # the spec itself may be merged
    return block


def decide_settings(document: Document) -> None:
    """Decides the new values of the runtime's keys, or the content of a new block; refuses what cannot be written."""
    holder = document.runtime
    keys = {ALIASES.get(key.lower(), key.lower()): key for key in (holder.mapping.merged if holder is not None else ())}
    for name, value in document.settings.items():
        reason = None
        if name not in SETTINGS:
            reason = f"{name} is no setting of the runtime"
        elif name in keys:
            assert holder is not None  # it has the key
            key = keys[name]
            value_node = holder.mapping.merged[key].value
            old = data_of(value_node)
            new = setting_word(name, value, str(old))
            reason = _unwritable(holder.mapping, key, new) or unwritable(document.text, value_node, old, new)
            if reason is None:
                holder.own[key] = new
        elif shared := document.shares("runtime"):
            reason = shared_reason("the runtime", shared)
        else:
            (document.new_settings if holder is None else holder.new)[name] = setting_word(name, value, None)
        if reason is not None:
            document.refused_settings[name] = reason


SHARED = ("N", "dtype", "layout")  # what all convolutions lack goes to the defaults


def share(document: Document) -> dict[str, Data]:
    """Moves N, dtype and layout that all convolutions would get anew to the defaults, and returns those.

    An N goes to the inputs instead, if all convolutions have theirs from them.
    """
    convolutions = [holder for holder in document.holders if holder.layers]
    result: dict[str, Data] = {}
    for name in SHARED:
        values = {holder.new.get(name) for holder in convolutions}
        value = values.pop() if len(values) == 1 else None
        if value is None or document.shares("defaults"):  # then each layer states its own
            continue
        if not (name == "N" and _inputs_bring(int(str(value)), document)):
            result[name] = value
        for holder in convolutions:
            del holder.new[name], holder.changes[name]
    return result


def _inputs_bring(N: int, document: Document) -> bool:
    """Gives the inputs that state a batch the new one; returns whether all convolutions take theirs from them."""
    suffices = True
    for holder in document.holders:
        if not holder.layers and holder.takes_N and holder.stating("N"):
            holder.changes.setdefault("N", N)
            decide(holder, document)
            suffices = suffices and holder.changes.get("N") == N
    return suffices and all(layer.N is not None for holder in document.holders for layer in holder.layers)


def settle_defaults(document: Document) -> dict[str, Data]:
    """The keys of the defaults that change, with what they say then: those of which all layers want the same.

    What only some layers want they state themselves, which is refused where others read their mapping too.
    """
    while True:
        agreed = dict(_agreed(document))
        refusing = [
            (holder, new)
            for holder in document.holders
            if holder.mapping.shared and (new := additions(holder, document.defaults, agreed))
        ]
        if not refusing:
            return agreed
        for holder, new in refusing:
            keys = (*new, *(key for key in holder.drawn if key not in agreed))
            letters = [letter for key in keys for letter in letters_of(CANONICAL[key], holder.dims)]
            holder.refuse(
                [letter for letter in letters if not holder.stating(letter)],
                shared_reason("the layer", holder.mapping.shared),
            )
            decide(holder, document)


def _agreed(document: Document) -> Iterator[tuple[str, Data]]:
    dims_read = {dims for holder in document.holders for dims in holder.dims_read}
    for key, entry in document.defaults.merged.items() if document.defaults is not None else ():
        old = data_of(entry.value)
        new = [holder.drawn[key] for holder in document.holders if key in holder.drawn]
        if not new or (len(dims_read) > 1 and any(_is_longer(data, old) for data in new)):
            continue  # a list has one length, and layers of all dimensions read it
        values = {holder.drawn.get(key, old) for holder in document.holders if _draws(holder, key, document.defaults)}
        value = values.pop() if len(values) == 1 else old
        if value != old and unwritable(document.text, entry.value, old, value) is None:
            yield key, value


def _draws(holder: Holder, key: str, defaults: nodes.Mapping | None) -> bool:
    """Whether a value of the defaults has to stay for this layer; an input without changes follows any N."""
    if not holder.layers and key not in holder.drawn:
        return False
    return any(key in holder.drawing(letter, defaults) for letter in letters_of(CANONICAL[key], holder.dims))


def _is_longer(new: Data, old: Data) -> bool:
    """Whether a value becomes a list of a length that it did not have."""
    return isinstance(new, tuple) and not (isinstance(old, tuple) and len(old) == len(new))


def additions(holder: Holder, defaults: nodes.Mapping | None, agreed: Mapping[str, Data]) -> dict[str, Data]:
    """The keys that a mapping gets, with what they say, once the defaults have changed as `agreed`."""
    new: dict[str, Data] = {}
    for key, entry in defaults.merged.items() if defaults is not None and holder.drawn else ():
        old = data_of(entry.value)
        if agreed.get(key, old) != holder.drawn.get(key, agreed.get(key, old)):
            new |= _instead_of_default(key, holder)
    return new | holder.new


def _instead_of_default(key: str, holder: Holder) -> dict[str, Data]:
    letters = letters_of(CANONICAL[key], holder.dims)
    others = set(letters_of(CANONICAL[key], 3)).difference(letters)
    if any(name in holder.mapping.merged for letter in others for name in KEYS_OF[letter]):
        # Beside a letter of an axis that the layer does not have, the reader takes no key for all axes.
        alone = {letter: effective(letter, holder) for letter in letters if letter in CANONICAL}
        return {letter: data for letter, data in alone.items() if data is not None}
    if any(holder.stating(letter) for letter in letters):
        return {key: effective(key, holder) or holder.drawn[key]}
    return {key: holder.drawn[key]}
