"""Values of a config, checked one by one: texts, lists of them, tables; what is wrong is said with its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from convlint.config.toml_source import Spot
from convlint.errors import shown, suggestion

MOST_TEXT = 500
_T = TypeVar("_T", bound=str)


class Word:
    """A rule or GPU that the config names, and where."""

    __slots__ = ("at", "text")

    def __init__(self, text: str, at: Spot) -> None:
        self.text, self.at = text, at


def unknown_key(key: str, known: Mapping[str, object], at: Spot) -> None:
    """Raises UsageError, with a suggestion, where `key` is not known."""
    if key not in known:
        near = suggestion(key.replace("_", "-"), known)
        at.fail(f"unknown key {shown(key)!r}{near or '; known are ' + ', '.join(known)}")


def text_of(value: Any, at: Spot, _folder: str = "") -> str:
    """Text that is not empty and not endless."""
    if not isinstance(value, str):
        at.fail(f"must be text, not {kind_of(value)}")
    if not value.strip() or len(value) > MOST_TEXT:
        at.fail(f"must be 1 to {MOST_TEXT} characters long")
    return value


def texts_of(value: Any, at: Spot, _folder: str = "") -> tuple[Word, ...]:
    """One text, or a list of them."""
    if isinstance(value, str):
        return (Word(text_of(value, at).strip(), at),)
    if not isinstance(value, list):
        at.fail(f"must be a list of texts, not {kind_of(value)}")
    return tuple(Word(text_of(item, at.below(i)).strip(), at.below(i)) for i, item in enumerate(value))


def choice_of(value: Any, at: Spot, known: Sequence[_T]) -> _T:
    """One of the words that are `known`."""
    text = text_of(value, at)
    found = next((word for word in known if word == text), None)
    if found is None:
        at.fail(f"{shown(text)!r} is not one of {', '.join(known)}{suggestion(text, known)}")
    return found


def pattern_of(text: str, at: Spot) -> str:
    """A pattern for paths or names that can be tried in no time."""
    from convlint.files.globs import refusal

    reason = refusal(text)
    if reason is not None:
        at.fail(reason)
    return text


def table_of(value: Any, at: Spot) -> dict[str, Any]:
    """A table."""
    if not isinstance(value, dict):
        at.fail(f"must be a table, not {kind_of(value)}")
    return value


def kind_of(value: Any) -> str:
    """What a value is, in words."""
    names = {str: "text", bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "a table"}
    return names.get(type(value), "a date or time")
