"""Texts that a report can show in another language: an English sentence with the template and values it is made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

_FIELD = re.compile(r"\{([^{}]*)\}")
COMMA = ", "  # between the fragments of a rule's message
_MOST_KNOWN = 1024  # templates kept split: every finding is rendered, and most of them from few templates
_NO_VALUES: Mapping[str, str] = {}


class Text(str):
    """An English sentence that keeps its template, and the values in it as they are printed.

    It is compared, sorted, hashed and printed as its English, so only what translates a report looks at the parts.
    `values` are by the field of the template, such as `time:+.0f`; they may be texts themselves. `code` is that of the
    rule whose template it is, empty for a sentence of the program. Slicing, `replace` and f-strings give plain strings,
    which stay English.
    """

    __slots__ = ("code", "template", "values")
    template: str
    values: Mapping[str, str]
    code: str

    def __new__(cls, template: str, /, **values: object) -> Text:
        """The sentence with `values` for the names in it."""
        fields = _fields(template) if values else ()
        return cls.of(template, {field: printed(values[name], form) for field, name, form in fields})

    @classmethod
    def of(cls, template: str, values: Mapping[str, str] = _NO_VALUES, code: str = "") -> Text:
        """A text from values that are printed already, by field."""
        text = super().__new__(cls, fill(template, values))
        text.template, text.values, text.code = template, values, code
        return text

    def __add__(self, other: str, /) -> Text:
        return Text.of("{0}{1}", {"0": self, "1": other}) if other else self

    def __radd__(self, other: str, /) -> Text:
        return Text.of("{0}{1}", {"0": other, "1": self}) if other else self

    def __reduce__(self) -> tuple[Any, ...]:  # findings travel between processes
        return Text.of, (self.template, self.values, self.code)


class Blank(str):
    """Stands in a text for what is only known later: a type of its own, since names in inputs may be any string."""

    __slots__ = ()


@lru_cache(_MOST_KNOWN)
def _split(template: str) -> tuple[str, ...]:
    """What stands between the fields, and the fields, by turns."""
    return tuple(_FIELD.split(template))


@lru_cache(_MOST_KNOWN)
def _fields(template: str) -> tuple[tuple[str, str, str], ...]:
    """Each field as it stands in the template, its name, and its format."""
    return tuple((field, *field.partition(":")[::2]) for field in _split(template)[1::2])


def printed(value: object, form: str = "") -> str:
    """The value as a template shows it. A text stays one, and so does a blank."""
    return value if isinstance(value, Text | Blank) else format(value, form)


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with the printed values, by field."""
    if not values:
        return template
    parts = list(_split(template))
    parts[1::2] = [values[field] for field in parts[1::2]]
    return "".join(parts)


def joined(separator: str, parts: Sequence[str]) -> str:
    """The parts with the separator between them, which is translated where it is a text."""
    if len(parts) < 2:
        return "".join(parts) if not parts else parts[0]
    fields = {str(number): part for number, part in enumerate(parts)}
    return Text.of("{between}".join(f"{{{field}}}" for field in fields), {**fields, "between": separator})


def mapped(text: str, change: Callable[[str], str]) -> str:
    """The text with every value in it changed, however deep it stands."""
    if not isinstance(text, Text):
        return change(text)
    return Text.of(text.template, {field: mapped(value, change) for field, value in text.values.items()}, text.code)


def filled(text: str, values: Mapping[Blank, str]) -> str:
    """The text with `values` in place of its blanks."""
    return mapped(text, lambda part: values.get(part, part) if isinstance(part, Blank) else part)
