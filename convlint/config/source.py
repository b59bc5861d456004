"""How Python source is read: `[tool.convlint.source]`, each value checked and with its place."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from convlint.config.toml_source import Spot
from convlint.config.values import Word, table_of, text_of, texts_of, unknown_key
from convlint.errors import shown

SOURCE_KEYS: Mapping[str, str] = {
    "input": "Shape of the images that models get, such as 3x224x224 or, with a batch, 16x3x224x224.",
    "entry": "Scripts that train, where convlint does not tell by itself, relative to this file.",
}
MOST_SIZE = 2**31 - 1
_SHAPE = re.compile(r"[0-9]+(?:\s*[x×*]\s*[0-9]+)*")
_AXES = (3, 4)  # with and without a batch; images alone


class SourceConfig(NamedTuple):
    """What the table says: the shape of an input (None: nothing), and the paths of scripts that train."""

    input: tuple[int, ...] | None = None
    entry: tuple[Word, ...] = ()
    written: tuple[tuple[str, Any, Spot], ...] = ()  # as written, and where


def source_of(value: Any, at: Spot, folder: str) -> SourceConfig:
    """A table; `folder` is the config's. Raises UsageError with the place of what is wrong."""
    table = table_of(value, at)
    for key in table:
        unknown_key(key, SOURCE_KEYS, at.below(key))
    return SourceConfig(
        input=_shape(table["input"], at.below("input")) if "input" in table else None,
        entry=tuple(_script(word, folder) for word in texts_of(table.get("entry", []), at.below("entry"))),
        written=tuple((key, item, at.below(key)) for key, item in table.items()),
    )


def _shape(value: Any, at: Spot) -> tuple[int, ...]:
    text = text_of(value, at).strip()
    sizes = tuple(map(int, re.findall("[0-9]+", text))) if _SHAPE.fullmatch(text) else ()
    if len(sizes) not in _AXES:
        at.fail(f"{shown(text)!r} is no shape of images: write it like 3x224x224 or 16x3x224x224")
    if not all(0 < size <= MOST_SIZE for size in sizes):
        at.fail(f"{shown(text)!r}: sizes are from 1 to {MOST_SIZE:,}")
    return sizes


def _script(word: Word, folder: str) -> Word:
    path = os.path.normpath(os.path.join(folder, word.text))
    if not word.text.endswith((".py", ".ipynb")):
        word.at.fail(f"{shown(word.text)!r} is no Python script")
    return Word(path, word.at)
