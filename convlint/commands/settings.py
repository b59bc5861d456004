"""`convlint config`: every setting in force for an input, and where it comes from."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from convlint.commands.output import write
from convlint.config import Config, Configs
from convlint.config_keys import KEYS, FileIgnore, LayerIgnore, Word
from convlint.path_patterns import PathPattern
from convlint.reporters.safe import clean, clean_path

DEFAULTS = {"target": "a100", "mode": "training", "fail-on": "warning", "min-loss": "0"}


def run(path: str, file: str | None, *, isolated: bool) -> int:
    """Prints the settings for the input at `path`. Raises UsageError for a config that is wrong."""
    config = Configs(file, isolated=isolated).of(path)
    write(sys.stdout, "\n".join(lines(config, "command line" if file else "closest upward")))
    return 0


def lines(config: Config, found: str) -> list[str]:
    """One line per setting, and for those that are tables one per entry."""
    head = "no config: the defaults hold" if config.path is None else f"{clean_path(config.path)} ({found})"
    rows = [row for key in KEYS for row in _rows(key, config)]
    key_width, value_width = (max(len(row[i]) for row in rows) for i in (0, 1))
    value_width = min(value_width, 60)
    return [head, "", *(f"{key:<{key_width}}  {value:<{value_width}}  {place}" for key, value, place in rows)]


def _rows(key: str, config: Config) -> Iterable[tuple[str, str, str]]:
    spot = config.spots.get(key)
    if spot is None:
        yield key, DEFAULTS.get(key, "-"), "default"
        return
    place = spot.place()
    origin = f"{clean_path(place.path)}:{place.line}"
    if key == "extend":
        yield key, clean(str(_raw(spot.source.values, spot.key))), origin
        return
    value = getattr(config, key.replace("-", "_"))
    entries = list(_entries(value))
    if not entries:
        yield key, "(empty)", origin
    for number, (text, at) in enumerate(entries):
        yield key if number == 0 else "", clean(text), at or origin


def _entries(value: Any) -> Iterable[tuple[str, str]]:
    """(text, place if it has one of its own) of each entry; plain lists are one entry."""
    if not isinstance(value, tuple):
        yield f"{value:g}" if isinstance(value, float) else str(value), ""
    elif value and isinstance(value[0], Word | str | PathPattern):
        yield ", ".join(item if isinstance(item, str) else item.text for item in value), ""
    else:
        for item in value:
            yield _entry(item)


def _entry(item: Any) -> tuple[str, str]:
    if isinstance(item, FileIgnore):
        return f"{item.pattern.text}: {', '.join(word.text for word in item.rules)}", _place(item.rules[0]) if item.rules else ""
    if isinstance(item, LayerIgnore):
        until = "" if item.expires is None else f" until {item.expires.isoformat()}"
        place = item.at.place()
        rules = ", ".join(word.text for word in item.rules)
        return f"{item.layers}: {rules}{until} -- {item.reason}", f"{clean_path(place.path)}:{place.line}"
    word, severity = item
    return f"{word.text}: {severity}", _place(word)


def _place(word: Word) -> str:
    place = word.at.place()
    return f"{clean_path(place.path)}:{place.line}"


def _raw(values: Any, key: Iterable[str | int]) -> Any:
    for part in key:
        values = values[part]
    return values
