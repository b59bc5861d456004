"""Every name that a rule may read, with its type and meaning; and where a rule may point and what its fix may set."""

from __future__ import annotations

from collections.abc import Mapping

from convlint.facts.layer import OF_SOURCE as _OF_SOURCE
from convlint.facts.layer import QUANTITIES
from convlint.facts.quantity import Type
from convlint.facts.sizes import SIZES

MEANINGS: Mapping[str, str] = {name: quantity.meaning for name, quantity in QUANTITIES.items()}
VOCABULARY: Mapping[str, Type] = {name: quantity.type for name, quantity in QUANTITIES.items()}
# names whose value depends on the target
GPU_NAMES = frozenset(name for name, quantity in QUANTITIES.items() if quantity.gpu)
# names whose values tell layers of equal fields apart
OWN_NAMES = frozenset(name for name, quantity in QUANTITIES.items() if quantity.own)

# what rules on source code read beside them; each scope what is its own
SOURCE_MEANINGS: Mapping[str, str] = {name: quantity.meaning for name, quantity in _OF_SOURCE.items()}
OF_SOURCE: Mapping[str, Type] = {name: quantity.type for name, quantity in _OF_SOURCE.items()}
_SUBJECTS: Mapping[str, tuple[str, ...]] = {
    "construction": ("source.",), "width": ("source.", "width."), "program": ("program.",),
}  # fmt: skip

# what a rule of scope `suppression` reads, and nothing else; it judges one rule that a comment or the config silences
SUPPRESSION_MEANINGS: Mapping[str, str] = {
    "suppression.text": "the suppression as it was written, without its reason",
    "suppression.rule": "the code or name in it",
    "suppression.reason": "its reason (empty: none)",
    "suppression.problem": "why it cannot be read or names no rule (empty: nothing is wrong)",
    "suppression.expires": "its last day (empty: none)",
    "suppression.known": "it can be read and names a rule",
    "suppression.used": "it silences a finding, or its rule could not be checked here",
    "suppression.expired": "its last day is over",
}
SUPPRESSION: Mapping[str, Type] = {
    name: "truth" if name.split(".")[1] in ("known", "used", "expired") else "text" for name in SUPPRESSION_MEANINGS
}

_RUNTIME = tuple(name for name in VOCABULARY if name.startswith("runtime."))
_OTHER_PLACES = ("dtype", "layout", "bias", "copies_input", "name", "input", "layer", "target", "mode", "runtime")
PLACES: tuple[str, ...] = (*SIZES, *_OTHER_PLACES, *_RUNTIME)
SETTABLE: Mapping[str, Type] = {
    **dict.fromkeys(SIZES, "number"),
    "dtype": "text",
    "layout": "text",
    "bias": "truth",
    "copies_input": "truth",
    **{name: VOCABULARY[name] for name in _RUNTIME if VOCABULARY[name] != "version"},
}
# places of a program, beside its settings: the script, and what its rules are about
_OF_PROGRAM = (
    "program", "program.conflict", "program.evidence", "program.autotune_disabled", "program.backward_in_autocast",
    "program.autocast_around_loss",
)  # fmt: skip


def names_of(scope: str) -> Mapping[str, Type]:
    """What a rule of this scope may read."""
    if scope == "suppression":
        return SUPPRESSION
    own = _SUBJECTS.get(scope)
    if own is None:
        return VOCABULARY
    return {**VOCABULARY, **{name: kind for name, kind in OF_SOURCE.items() if name.startswith(own)}}


def places_of(scope: str) -> tuple[str, ...]:
    """Where a rule of this scope may point."""
    if scope == "program":
        return (*_OF_PROGRAM, *_RUNTIME)
    return (*PLACES, "width") if scope == "width" else PLACES
