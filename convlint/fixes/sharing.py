"""Which value changes where: at an anchor or in the defaults where all that use it agree, else where it is used.

What is one number for several layers stays so as long as they want the same. Where they do not, the layer in whose
own mapping the value stands gets it there, and the others state what they keep or want themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct, field

from convlint.fixes import yaml_nodes as nodes
from convlint.fixes.document import Holder, effective
from convlint.fixes.forms import KEYS_OF, Data, Unwritable, data_of, letters_of
from convlint.fixes.placing import Foreign, foreign_references
from convlint.readers.spec.fields import CANONICAL

# Who uses an entry, and what it wants there (None: what it says now).
_Use: TypeAlias = "tuple[Holder | None, Data | None]"


class SharingEdits(Struct):
    """What nodes say instead; the aliases that take over what they stood for; the keys that mappings get."""

    says: dict[nodes.Node, Data] = field(default_factory=dict)
    pinned: list[nodes.Alias] = field(default_factory=list)
    added: dict[nodes.Mapping, dict[str, Data]] = field(default_factory=dict)


def settle(
    tree: nodes.YamlTree,
    holders: Sequence[Holder],
    defaults: nodes.Mapping | None,
    shared: dict[str, Data],
    unwritable: Unwritable,
) -> SharingEdits:
    """Everything that has to be written for what the holders have to say. `shared` is added to the defaults."""
    sharing = _Sharing(holders, defaults, unwritable)
    if defaults is not None and shared:
        sharing.outcome.added[defaults] = dict(shared)
    sharing.collect()
    sharing.values(foreign_references(tree, sharing.uses) if tree.aliases else Foreign())
    sharing.additions(tree)
    return sharing.outcome


class _Sharing:
    def __init__(self, holders: Sequence[Holder], defaults: nodes.Mapping | None, unwritable: Unwritable) -> None:
        self.holders, self.defaults, self.unwritable = holders, defaults, unwritable
        self.dims = {dims for holder in holders for dims in holder.dims_read}
        self.outcome = SharingEdits()
        self.uses: dict[nodes.MappingEntry, list[_Use]] = {}
        self.owners: dict[nodes.MappingEntry, Holder] = {}  # in whose own mapping an entry stands
        self.draws: dict[Holder, list[str]] = {}  # keys of the defaults that a holder draws and someone changes
        self.now: dict[nodes.MappingEntry, Data] = {}  # what entries say in the end, where that is new

    def collect(self) -> None:
        """Who uses which entry. What stands at one layer and is used by no other is written at once."""
        for holder in self.holders:
            mapping = holder.mapping
            for key, entry in mapping.found.items():
                wanted = holder.said.get(key)
                if wanted is not None and wanted == data_of(entry.value):
                    wanted = None
                is_own = mapping.found is mapping.own or mapping.own.get(key) is entry
                value = entry.value
                if is_own and not mapping.aliased and not isinstance(value, nodes.Alias) and not value.aliased:
                    if wanted is not None:
                        self.outcome.says[value] = wanted
                    continue
                self.uses.setdefault(entry, []).append((holder, wanted))
                if is_own:
                    self.owners[entry] = holder
        for key, entry in self.defaults.found.items() if self.defaults is not None else ():
            uses = self.uses.setdefault(entry, [])
            if any(key in holder.drawn for holder in self.holders):
                uses += self._drawn(key, entry)
            else:
                uses.append((None, None))

    def _drawn(self, key: str, entry: nodes.MappingEntry) -> Iterator[_Use]:
        old = data_of(entry.value)
        if len(self.dims) > 1 and any(_is_longer(holder.drawn.get(key), old) for holder in self.holders):
            yield None, None  # a list has one length, and is read by all
        for holder in self.holders:
            if not holder.layers and key not in holder.drawn:
                continue
            letters = letters_of(CANONICAL[key], holder.dims)
            if any(key in holder.drawing(letter, self.defaults) for letter in letters):
                self.draws.setdefault(holder, []).append(key)
                wanted = holder.drawn.get(key)
                yield holder, None if wanted == old else wanted

    def values(self, foreign: Foreign) -> None:
        """What each shared value becomes, and what stands instead of aliases to it."""
        targets: dict[nodes.Target, list[nodes.MappingEntry]] = {}
        for entry in self.uses:
            targets.setdefault(nodes.behind(entry.value), []).append(entry)
        for target, entries in targets.items():
            if any(wanted is not None for entry in entries for _, wanted in self.uses[entry]):
                self._value(target, entries, foreign)

    def _value(self, target: nodes.Target, entries: list[nodes.MappingEntry], foreign: Foreign) -> None:
        old = data_of(target)
        aliases = foreign.aliases.get(target, [])
        wanted = {data for entry in entries for data in self._wanted(entry, old)}
        if aliases or target in foreign.direct:
            wanted.add(old)
        value = old
        if len(wanted) == 1:
            (value,) = wanted
        elif target not in foreign.direct:
            value = next((self._of_owner(entry, old, old) for entry in entries if entry.value is target), old)
        if value != old and self.unwritable(target, old, value) is not None:
            value = old
        if value != old:
            self.outcome.says[target] = value
            self.outcome.pinned += aliases
        for entry in entries:
            now = value
            if entry.value is not target:
                asked = self._wanted(entry, old)
                now = asked.pop() if len(asked) == 1 else self._of_owner(entry, old, value)
                if now != value:
                    self.outcome.says[entry.value] = now
            if now != old:
                self.now[entry] = now

    def _wanted(self, entry: nodes.MappingEntry, old: Data) -> set[Data]:
        return {old if wanted is None else wanted for _, wanted in self.uses[entry]}

    def _of_owner(self, entry: nodes.MappingEntry, old: Data, otherwise: Data) -> Data:
        owner = self.owners.get(entry)
        for holder, wanted in self.uses[entry] if owner is not None else ():
            if holder is owner:
                return old if wanted is None else wanted
        return otherwise

    def additions(self, tree: nodes.YamlTree) -> None:
        """The keys that layers get beside what they merge and what the defaults say, in the order of the text."""
        by_mapping = {holder.mapping: holder for holder in self.holders}
        added = self.outcome.added
        handed_on: dict[nodes.Mapping, dict[str, Data]] = {}  # new keys of a mapping, its own and those it merges
        for mapping in tree.mappings:
            incoming = _merged(mapping, handed_on) if mapping.sources else {}
            holder = by_mapping.get(mapping)
            own = dict(added.get(mapping, ()))
            if holder is not None:
                own |= self._added(holder, incoming)
                if own:
                    added[mapping] = own
            if own or incoming:
                handed_on[mapping] = {**incoming, **own}

    def _added(self, holder: Holder, incoming: dict[str, Data]) -> dict[str, Data]:
        mapping, own = holder.mapping, {}
        if mapping.found is not mapping.own:
            for key, entry in mapping.found.items():
                now, wanted = incoming.get(key, self.now.get(entry)), holder.said.get(key)
                if key not in mapping.own and (now is not None or wanted is not None):
                    old = data_of(entry.value)
                    if (old if now is None else now) != (old if wanted is None else wanted):
                        own[key] = old if wanted is None else wanted
        for key in self.draws.get(holder, ()):
            own |= self._instead_of_default(key, holder, incoming)
        for key, data in holder.new.items():
            if incoming.get(key) != data:
                own[key] = data
        for key, data in incoming.items():
            if key not in mapping.found and key not in own and key not in holder.drawn:
                kept = effective(key, holder) if key in CANONICAL else None
                if kept is not None and kept != data:
                    own[key] = kept
        return own

    def _instead_of_default(self, key: str, holder: Holder, incoming: dict[str, Data]) -> dict[str, Data]:
        assert self.defaults is not None
        entry = self.defaults.found[key]
        old = data_of(entry.value)
        now, wanted = incoming.get(key, self.now.get(entry, old)), holder.drawn.get(key, old)
        if now == wanted:
            return {}
        letters = letters_of(CANONICAL[key], holder.dims)
        others = set(letters_of(CANONICAL[key], 3)).difference(letters)
        if any(name in holder.mapping.found for letter in others for name in KEYS_OF[letter]):
            alone = {letter: effective(letter, holder) for letter in letters if letter in CANONICAL}
            return {letter: data for letter, data in alone.items() if data is not None}
        if any(holder.stating(letter) for letter in letters):
            wanted = effective(key, holder) or wanted
        return {key: wanted}


def _is_longer(new: Data | None, old: Data) -> bool:
    """Whether a value becomes a list of a length that it did not have."""
    return isinstance(new, tuple) and not (isinstance(old, tuple) and len(old) == len(new))


def _merged(mapping: nodes.Mapping, handed_on: dict[nodes.Mapping, dict[str, Data]]) -> dict[str, Data]:
    """The new keys that a mapping merges: of several sources the first that has a key counts, as in the reader."""
    if not any(source in handed_on for source in mapping.sources):
        return {}
    incoming: dict[str, Data] = {}
    before = set(mapping.own)
    for source in mapping.sources:
        new = handed_on.get(source, {})
        incoming.update((key, data) for key, data in new.items() if key not in before)
        before.update(source.found, new)
    return incoming
