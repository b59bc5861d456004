"""Changes of the `runtime` block of a spec."""

from __future__ import annotations

from convlint.fixes.document import Document
from convlint.fixes.forms import Unwritable, data_of
from convlint.fixes.words import setting_word
from convlint.readers.spec.runtime import ALIASES, SETTINGS


def decide_settings(document: Document, unwritable: Unwritable) -> None:
    """Says what the runtime's keys become, or what a new block holds; refuses what cannot be written."""
    holder = document.runtime
    keys = {ALIASES.get(key.lower(), key.lower()): key for key in (holder.mapping.found if holder is not None else ())}
    for name, value in document.settings.items():
        reason = None
        if name not in SETTINGS:
            reason = f"{name} is no setting of the runtime"
        elif holder is None:
            if document.can_get("runtime"):
                document.new_settings[name] = setting_word(name, value, None)
            else:
                reason = "an alias refers to the empty runtime"
        elif name not in keys:
            holder.new[name] = setting_word(name, value, None)
        else:
            key = keys[name]
            entry = holder.mapping.found[key]
            old = data_of(entry.value)
            new = setting_word(name, value, str(old))
            if holder.mapping.own.get(key) is entry:
                reason = unwritable(entry.value, old, new)
            if reason is None:
                holder.said[key] = new
        if reason is not None:
            document.refused_settings[name] = reason
