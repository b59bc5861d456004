"""`convlint config`: every setting in force for an input, and where it comes from."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from functools import reduce
from operator import getitem
from typing import Any, cast

from convlint.cli.streams.gate import write
from convlint.config.find import Config, Configs
from convlint.config.keys import KEYS, FileIgnore, LayerIgnore, ModelEntry, PathPattern, SourceConfig
from convlint.config.toml_source import Spot, Word
from convlint.files.languages import ENGLISH, VARIABLE, language_asked
from convlint.files.safe import clean, clean_path
from convlint.model.errors import InputFault, UsageError
from convlint.readers.inputs import decide

Given = str | float | list[str]  # of a setting, from the command line
DEFAULTS = {
    "target": "a100",
    "mode": "training",
    "fail-on": "warning",
    "min-loss": "0",
    "strict": "false",
    "lang": ENGLISH,
}
# lists of the config that the command line adds to instead of replacing them
_ADDED = ("ignore", "allow", "extend-select", "rules")


def run(path: str, file: str | None, given: Mapping[str, Given], *, isolated: bool) -> int:
    """Prints the settings for the input at `path`; `given` is the command line's, by key. Raises UsageError."""
    configs = Configs(file, isolated=isolated)
    config = configs.of(path) if decide(path).kind == "file" else configs.of_folder(os.getcwd())
    head = (
        "no config" if config.path is None else f"{clean_path(config.path)} ({'as given' if file else 'the closest'})"
    )
    write(sys.stdout, "\n".join([head, "", *lines(config, given), *_pinned(path, config, isolated=isolated)]))
    return 0


def _pinned(path: str, config: Config, *, isolated: bool) -> list[str]:
    """The versions that are pinned for the input, each with its place. Raises UsageError for a file that is named."""
    from convlint.config.environment import environment_in, environment_near

    where = "none" if isolated else "auto" if config.versions is None else config.versions.text
    if where == "none":
        return []
    if where == "auto":
        folder = path if os.path.isdir(path) else os.path.dirname(path)
        top = None if config.path is None else os.path.dirname(os.path.abspath(config.path))
        versions = environment_near(folder or os.curdir, top)
    else:
        try:
            versions = environment_in(where)
        except InputFault as fault:
            raise UsageError(f"versions: {where}: {fault.message}") from None
    rows = [(name, clean(pin.version), clean_path(pin.origin)) for name, pin in sorted(versions.pins.items())]
    sizes = [max((len(row[i]) for row in rows), default=0) for i in (0, 1)]
    pins = [f"  {name:<{sizes[0]}}  {version:<{sizes[1]}}  {origin}" for name, version, origin in rows]
    return [*(["", "pinned", *pins] if pins else []), *([""] if versions.notes else []), *map(clean, versions.notes)]


def lines(config: Config, given: Mapping[str, Given]) -> list[str]:
    """One line per setting, and for those that are tables one per entry."""
    rows = [row for key in KEYS for row in _with_given(key, given, config)]
    key_width, value_width = (max(len(row[i]) for row in rows) for i in (0, 1))
    value_width = min(value_width, 60)  # one long value does not push the places of all others off the screen
    return [f"{key:<{key_width}}  {value:<{value_width}}  {place}" for key, value, place in rows]


def _with_given(key: str, given: Mapping[str, Given], config: Config) -> Iterable[tuple[str, str, str]]:
    if key not in given:
        if "select" in given and key in ("ignore", "extend-select"):
            yield key, "-", "command line (--select)"
        elif key == "lang" and (language := language_asked(None)) is not None:
            yield key, language, VARIABLE
        else:
            yield from _rows(key, config)
        return
    value = given[key]
    text = ", ".join(value) if isinstance(value, list) else f"{value:g}" if isinstance(value, float) else value
    yield key, clean(text), "command line"
    if key in _ADDED and key in config.spots and "select" not in given:
        yield from (("", text, place) for _, text, place in _rows(key, config))


def _rows(key: str, config: Config) -> Iterable[tuple[str, str, str]]:
    spot = config.spots.get(key)
    if spot is None:
        yield key, DEFAULTS.get(key, "-"), "default"
        return
    origin = _line(spot)
    if key == "extend":
        yield key, clean(str(reduce(getitem, spot.key, cast(Any, spot.source.values)))), origin
        return
    value = getattr(config, key.replace("-", "_"))
    entries = list(_entries(value))
    if not entries:
        yield key, "(empty)", origin
    for number, (text, at) in enumerate(entries):
        yield key if number == 0 else "", clean(text), at or origin


def _entries(value: Any) -> Iterable[tuple[str, str]]:
    """(text, place if it has one of its own) of each entry; plain lists are one entry."""
    if isinstance(value, Word):
        yield value.text, ""
    elif isinstance(value, SourceConfig):
        for name, raw, at in value.written:
            yield f"{name} = {_toml(raw)}", _line(at)
    elif isinstance(value, dict):
        for name, (raw, at) in value.items():
            yield f"{name} = {_toml(raw)}", _line(at)
    elif not isinstance(value, tuple):
        yield _toml(value) if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value), ""
    elif value and isinstance(value[0], Word | str | PathPattern):
        yield ", ".join(item if isinstance(item, str) else item.text for item in value), ""
    else:
        for item in value:
            yield _entry(item)


def _entry(item: Any) -> tuple[str, str]:
    if isinstance(item, FileIgnore):
        rules = ", ".join(word.text for word in item.rules)
        return f"{item.pattern.text}: {rules}", _line(item.rules[0].at) if item.rules else ""
    if isinstance(item, LayerIgnore):
        until = "" if item.expires is None else f" until {item.expires.isoformat()}"
        rules = ", ".join(word.text for word in item.rules)
        return f"{item.layers}: {rules}{until} -- {item.reason}", _line(item.at)
    if isinstance(item, ModelEntry):
        return f"{item.name}: {item.model}", _line(item.at)
    word, severity = item
    return f"{word.text}: {severity}", _line(word.at)


def _line(at: Spot) -> str:
    place = at.place()
    return f"{clean_path(place.path)}:{place.line}"


def _toml(raw: object) -> str:
    if isinstance(raw, list):
        return ", ".join(map(str, raw))
    return str(raw).lower() if isinstance(raw, bool) else str(raw)
