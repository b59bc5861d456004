"""Keys that a layer must not get because others merge it, and would have them too."""

from __future__ import annotations

from convlint.fixes import yaml_nodes as nodes
from convlint.fixes.document import Document
from convlint.fixes.forms import Unwritable, data_of, is_same, letters_of
from convlint.fixes.holders import Holder, decide
from convlint.readers.spec.fields import CANONICAL

_OF_CONVOLUTIONS = ("dtype", "layout")  # which no other operation has a use for


def refuse_what_others_inherit(document: Document, unwritable: Unwritable) -> None:
    """Takes back changes that add to a layer what a layer merging it does not have, and is not to get.

    What such a layer has, it can state itself; for what it lacks there is no word.
    """
    new = {letter for holder in document.holders for letter in _new_letters(holder)}
    if not new:
        return
    by_mapping = {holder.mapping: holder for holder in document.holders}
    lacking: dict[nodes.Mapping, set[str]] = {}  # letters that those merging a mapping lack, and are to lack
    for mapping in reversed(document.tree.mappings):
        below = lacking.get(mapping, set())
        holder = by_mapping.get(mapping)
        if holder is not None:
            clash = below.intersection(_new_letters(holder))
            if clash:
                holder.refuse(clash, "a layer that merges this one would get it too")
                decide(holder, document.defaults, unwritable)
            if mapping.sources:
                below = below.union(letter for letter in new if _lacks(holder, letter, document.defaults))
        for source in mapping.sources:
            lacking.setdefault(source, set()).update(below)


def _new_letters(holder: Holder) -> list[str]:
    keys = (*holder.new, *holder.drawn)  # what is drawn from the defaults may have to be stated, too
    return [letter for key in keys for letter in letters_of(CANONICAL[key], holder.dims)]


def _lacks(holder: Holder, letter: str, defaults: nodes.Mapping | None) -> bool:
    stating = holder.stating(letter)
    if any(is_same(data_of(holder.mapping.found[key].value)) for key in stating if CANONICAL[key] == "padding"):
        return True  # beside padding: same no number can stand
    if letter in holder.changes or stating or holder.drawing(letter, defaults):
        return False
    return bool(holder.layers) or not (letter in _OF_CONVOLUTIONS or (letter == "N" and not holder.takes_N))
