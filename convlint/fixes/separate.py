"""The edits of single changes, each as if there were no other: a text that is parsed once, and asked many times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from convlint.fixes import yaml_nodes as nodes
from convlint.fixes.change import Change
from convlint.fixes.document import Document, document_of
from convlint.fixes.forms import CHANGEABLE
from convlint.fixes.holders import Holder
from convlint.fixes.spec_text import Edits, document_edits
from convlint.model.network import Network
from convlint.readers.spec.fields import PADS

_SHARED = ("N", "dtype", "layout")  # what all convolutions lack goes to the defaults


class SpecText:
    """A spec's text and the network that was read from it, without errors and without a batch."""

    def __init__(self, text: str, network: Network) -> None:
        self.text, self.network = text, network
        tree = nodes.nodes_of(text)
        assert tree is not None  # the reader made a network of it
        self._tree = tree
        self._whole = document_of(tree, network)

    def edits(self, changes: Sequence[Change]) -> Edits:
        """The edits that `spec_edits` makes of the text for these changes alone."""
        if not self.is_local(changes):
            return document_edits(self.text, document_of(self._tree, self.network), changes)
        items = self._whole.items
        touched = list(dict.fromkeys(change.layer for change in changes if change.layer is not None))
        for position in touched:  # what was asked of them before
            items[position] = _unchanged(items[position])
        return document_edits(self.text, self._part([items[position] for position in touched]), changes)

    def cost(self, changes: Sequence[Change]) -> int:
        """How many layers have to be looked at for it."""
        return len(changes) if self.is_local(changes) else max(1, len(self._whole.items))

    def is_local(self, changes: Sequence[Change]) -> bool:
        """Whether what has to be written depends on nothing but the mappings in which the changes are."""
        return all(map(self._is_local, changes))

    def _is_local(self, change: Change) -> bool:
        if change.layer is None:
            runtime = self._whole.runtime
            return runtime is None or _is_its_own(runtime.mapping, runtime.mapping.found)
        if not 0 <= change.layer < len(self._whole.items):
            return False
        holder, defaults = self._whole.items[change.layer], self._whole.defaults
        letters = (change.field, change.field + "_end") if change.field in PADS else (change.field,)
        for letter in CHANGEABLE.intersection(letters):
            keys = holder.stating(letter)
            if not _is_its_own(holder.mapping, keys):
                return False
            if not keys and (letter in _SHARED or holder.drawing(letter, defaults)):
                return False
        return True

    def _part(self, holders: list[Holder]) -> Document:
        """The document as if these were all of its layers, for changes of nothing that others share."""
        whole = self._whole
        runtime = None if whole.runtime is None else _unchanged(whole.runtime)
        mappings = [holder.mapping for holder in (*holders, *([runtime] if runtime is not None else ()))]
        return Document(
            tree=nodes.Tree(root=self._tree.root, mappings=mappings, aliases=False),
            items=whole.items,
            holders=holders,
            defaults=whole.defaults,
            runtime=runtime,
        )


def _is_its_own(mapping: nodes.Mapping, keys: Iterable[str]) -> bool:
    """Whether nobody else reads a mapping, and these keys of it neither come from elsewhere nor are read there."""
    if mapping.sources or mapping.aliased:
        return False
    values = [mapping.found[key].value for key in keys]
    return not any(isinstance(value, nodes.Alias) or value.aliased for value in values)


def _unchanged(holder: Holder) -> Holder:
    return Holder(
        mapping=holder.mapping,
        items=holder.items,
        layers=holder.layers,
        dims=holder.dims,
        takes_N=holder.takes_N,
        dims_read=holder.dims_read,
    )
