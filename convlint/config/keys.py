"""The keys of `[tool.convlint]`: what each takes, what it means, and how its value is checked.

Plain classes and named tuples: every run that has a config loads this.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from convlint.config.toml_source import Spot
from convlint.errors import shown, suggestion
from convlint.report import SEVERITIES, Severity

if TYPE_CHECKING:
    from convlint.config.path_patterns import PathPattern

Kind = Literal[
    "text", "texts", "mode", "fail-on", "percent", "folders", "patterns", "severities", "file-ignores", "layer-ignores"
]
MODES = ("training", "inference")
FAIL_ON = (*SEVERITIES, "never")
MOST_TEXT = 500


class KeyInfo:
    """One key: what it takes and, for `convlint config` and the schema, what it does."""

    __slots__ = ("kind", "meaning")

    def __init__(self, kind: Kind, meaning: str) -> None:
        self.kind, self.meaning = kind, meaning


KEYS: Mapping[str, KeyInfo] = {
    "extend": KeyInfo(
        "text", "A config to start from; this file's keys replace or, where they are lists of exceptions, join its own."
    ),
    "target": KeyInfo("texts", "GPUs to check for where an input names none itself."),
    "mode": KeyInfo("mode", "training (all three passes) or inference (only fprop), where an input does not say."),
    "select": KeyInfo("texts", "Only these rules: codes, names, prefixes such as CL1, or ALL."),
    "ignore": KeyInfo("texts", "Not these rules."),
    "extend-select": KeyInfo("texts", "These rules beside the default ones."),
    "severity": KeyInfo("severities", "Another severity for a rule."),
    "fail-on": KeyInfo("fail-on", "Least severity that fails: exit code 1."),
    "min-loss": KeyInfo(
        "percent", "Findings that lose less than this share of the network's time, in percent, do not fail."
    ),
    "rules": KeyInfo("folders", "Folders with rules of your own, relative to this file."),
    "include": KeyInfo("patterns", "Only these files, where a folder is checked."),
    "exclude": KeyInfo("patterns", "Not these files, where a folder is checked."),
    "per-file-ignores": KeyInfo("file-ignores", "Rules to silence in the files that a pattern matches."),
    "per-layer-ignores": KeyInfo(
        "layer-ignores", "Rules to silence in the layers that a pattern matches, with a reason."
    ),
}
# keys of one entry of per-layer-ignores, with their meaning; all but the last are required
LAYER_IGNORE_KEYS: Mapping[str, str] = {
    "layers": "Pattern for names of layers, such as stem or backbone.*.",
    "rules": "Codes or names of the rules to silence.",
    "reason": "Why; it stays visible in the JSON and SARIF reports.",
    "expires": "Last day on which this holds, as a date: 2026-12-31.",
}  # fmt: skip


class Word:
    """A rule or GPU that the config names, and where."""

    __slots__ = ("at", "text")

    def __init__(self, text: str, at: Spot) -> None:
        self.text, self.at = text, at


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


def read_value(kind: Kind, value: Any, at: Spot, folder: str) -> Any:
    """The value of a key, checked; paths in it are relative to `folder`. Raises UsageError with the place."""
    return _READERS[kind](value, at, folder)


def unknown_key(key: str, known: Mapping[str, object], at: Spot) -> None:
    """Raises UsageError, with a suggestion, where `key` is not known."""
    if key not in known:
        near = suggestion(key.replace("_", "-"), known)
        at.fail(f"unknown key {shown(key)!r}{near or '; known are ' + ', '.join(known)}")


def text_of(value: Any, at: Spot, _folder: str = "") -> str:
    """Text that is not empty and not endless."""
    if not isinstance(value, str):
        at.fail(f"must be text, not {_kind(value)}")
    if not value.strip() or len(value) > MOST_TEXT:
        at.fail(f"must be 1 to {MOST_TEXT} characters long")
    return value


def _texts(value: Any, at: Spot, _folder: str) -> tuple[Word, ...]:
    if isinstance(value, str):
        return (Word(text_of(value, at).strip(), at),)
    if not isinstance(value, list):
        at.fail(f"must be a list of texts, not {_kind(value)}")
    return tuple(Word(text_of(item, at.below(i)).strip(), at.below(i)) for i, item in enumerate(value))


def _choice(known: tuple[str, ...]) -> Callable[[Any, Spot, str], str]:
    def read(value: Any, at: Spot, _folder: str) -> str:
        text = text_of(value, at)
        if text not in known:
            at.fail(f"{shown(text)!r} is not one of {', '.join(known)}{suggestion(text, known)}")
        return text

    return read


def _percent(value: Any, at: Spot, _folder: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        at.fail(f"must be a number, not {_kind(value)}")
    if not 0 <= value <= 100:
        at.fail("must be from 0 to 100")
    return float(value)


def _folders(value: Any, at: Spot, folder: str) -> tuple[str, ...]:
    return tuple(os.path.normpath(os.path.join(folder, word.text)) for word in _texts(value, at, folder))


def _patterns(value: Any, at: Spot, folder: str) -> tuple[PathPattern, ...]:
    from convlint.config.path_patterns import PathPattern

    return tuple(PathPattern(folder, _pattern(word.text, word.at)) for word in _texts(value, at, folder))


def _pattern(text: str, at: Spot) -> str:
    from convlint.files.globs import refusal

    reason = refusal(text)
    if reason is not None:
        at.fail(reason)
    return text


def _severities(value: Any, at: Spot, folder: str) -> tuple[tuple[Word, Severity], ...]:
    read = _choice(SEVERITIES)
    entries = _table(value, at).items()
    return tuple((Word(key, at.below(key)), read(item, at.below(key), folder)) for key, item in entries)  # type: ignore[misc]


def _file_ignores(value: Any, at: Spot, folder: str) -> tuple[FileIgnore, ...]:
    from convlint.config.path_patterns import PathPattern

    return tuple(
        FileIgnore(
            pattern=PathPattern(folder, _pattern(text_of(key, at.below(key)), at.below(key))),
            rules=_texts(item, at.below(key), folder),
        )
        for key, item in _table(value, at).items()
    )


def _layer_ignores(value: Any, at: Spot, folder: str) -> tuple[LayerIgnore, ...]:
    if not isinstance(value, list):
        at.fail(f"must be tables, each under [[…{at.key[-1]}]], not {_kind(value)}")
    return tuple(_layer_ignore(_table(item, at.below(i)), at.below(i), folder) for i, item in enumerate(value))


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
        layers=_pattern(text_of(table["layers"], at.below("layers")), at.below("layers")),
        rules=_texts(table["rules"], at.below("rules"), folder),
        reason=text_of(table["reason"], at.below("reason")).strip(),
        expires=expires,
        at=at,
    )


def _table(value: Any, at: Spot) -> dict[str, Any]:
    if not isinstance(value, dict):
        at.fail(f"must be a table, not {_kind(value)}")
    return value


def _kind(value: Any) -> str:
    names = {str: "text", bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "a table"}
    return names.get(type(value), "a date or time")


_READERS: Mapping[Kind, Callable[[Any, Spot, str], Any]] = {
    "text": text_of,
    "texts": _texts,
    "mode": _choice(MODES),
    "fail-on": _choice(FAIL_ON),
    "percent": _percent,
    "folders": _folders,
    "patterns": _patterns,
    "severities": _severities,
    "file-ignores": _file_ignores,
    "layer-ignores": _layer_ignores,
}
