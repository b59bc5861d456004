"""Entries of a config that silence rules: in files, and in layers until a day."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from convlint.config.toml_source import Spot
from convlint.config.values import Word, kind_of, pattern_of, table_of, text_of, texts_of, unknown_key

if TYPE_CHECKING:
    from convlint.config.path_patterns import PathPattern

# keys of one entry of per-layer-ignores, with their meaning; all but the last are required
LAYER_IGNORE_KEYS: Mapping[str, str] = {
    "layers": "Pattern for names of layers, such as stem or backbone.*.",
    "rules": "Codes or names of the rules to silence.",
    "reason": "Why; it stays visible in the JSON and SARIF reports.",
    "expires": "Last day on which this holds, as a date: 2026-12-31.",
}  # fmt: skip


class FileIgnore(NamedTuple):
    """Rules that files matching `pattern` are not held to."""

    pattern: PathPattern
    rules: tuple[Word, ...]


class LayerIgnore(NamedTuple):
    """Rules that layers whose name matches `layers` are not held to, until the end of `expires`."""

    layers: str
    rules: tuple[Word, ...]
    reason: str
    expires: date | None
    at: Spot


def file_ignores(value: Any, at: Spot, folder: str) -> tuple[FileIgnore, ...]:
    """A table from patterns to rules."""
    from convlint.config.path_patterns import PathPattern

    return tuple(
        FileIgnore(
            pattern=PathPattern(folder, pattern_of(text_of(key, at.below(key)), at.below(key))),
            rules=texts_of(item, at.below(key), folder),
        )
        for key, item in table_of(value, at).items()
    )


def layer_ignores(value: Any, at: Spot, folder: str) -> tuple[LayerIgnore, ...]:
    """Tables, one for each entry."""
    if not isinstance(value, list):
        at.fail(f"must be tables, each under [[…{at.key[-1]}]], not {kind_of(value)}")
    return tuple(_layer_ignore(table_of(item, at.below(i)), at.below(i), folder) for i, item in enumerate(value))


def _layer_ignore(table: Mapping[str, Any], at: Spot, folder: str) -> LayerIgnore:
    for key in table:
        unknown_key(key, LAYER_IGNORE_KEYS, at.below(key))
    for key in list(LAYER_IGNORE_KEYS)[:-1]:
        if key not in table:
            at.fail(f"{key} is missing")
    expires = table.get("expires")
    if expires is not None and (not isinstance(expires, date) or isinstance(expires, datetime)):
        at.below("expires").fail("must be a date without quotes, such as 2026-12-31")
    return LayerIgnore(
        layers=pattern_of(text_of(table["layers"], at.below("layers")), at.below("layers")),
        rules=texts_of(table["rules"], at.below("rules"), folder),
        reason=text_of(table["reason"], at.below("reason")).strip(),
        expires=expires,
        at=at,
    )
