"""The pieces of a rule file: keys, texts, choices, expressions and messages, each checked as it is read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from msgspec.structs import replace

from convlint.errors import RuleError, shown, suggestion
from convlint.facts.quantity import Type
from convlint.files.located_yaml import Value
from convlint.rulebook.expr import Expr, ExprError, compile_expr
from convlint.rulebook.rule import Fragments, Message, Template
from convlint.rulebook.vocabulary import VOCABULARY, names_of, places_of

_FIELD = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.]*)(?::([,.0-9]{0,4}[fd%]?))?\}")

MAX_FRAGMENTS = 12


class Pieces:
    """One rule file being read; every method raises RuleError at the place of the defect.

    `names` is what expressions and messages may use, `read` what of the vocabulary they did use.
    """

    def __init__(self, path: str, document: Value) -> None:
        self.path = path
        self.document = document
        self.top: dict[str, Value] = document.data
        self.reads("layer")

    def reads(self, scope: str) -> None:
        """From here on it reads what rules of this scope may, and points where they may."""
        self.vocabulary, self.places = names_of(scope), places_of(scope)
        self.names: dict[str, Type] = dict(self.vocabulary)
        self.read: set[str] = set()

    def fail(self, message: str, value: Value | None = None) -> NoReturn:
        """Raises RuleError where `value` stands, or at the file's start."""
        span = (value or self.document).span
        raise RuleError(message, path=self.path, line=span[0], column=span[1])

    def keys(self, mapping: Mapping[str, Value], known: tuple[str, ...], where: str) -> None:
        """No key but the known ones."""
        for key, value in mapping.items():
            if key not in known:
                line, column, *_ = value.key_span or value.span
                message = f"unknown key {shown(key)!r} in {where}{suggestion(key, known)}"
                if "given" in known and key in VOCABULARY:
                    message += "; the layer of a failing example stands under given"
                raise RuleError(message, path=self.path, line=line, column=column)

    def mapping(self, key: str, required: tuple[str, ...]) -> dict[str, Value]:
        """The mapping under `key`, with exactly the required keys."""
        value = self.top[key]
        if not isinstance(value.data, dict):
            self.fail(f"{key} is a mapping", value)
        self.keys(value.data, required, key)
        for name in required:
            if name not in value.data:
                self.fail(f"{key} needs {name}", value)
        data: dict[str, Value] = value.data
        return data

    def entries(self, key: str, what: str) -> dict[str, Value]:
        """The mapping under `key` with keys of the author's choice; empty where there is none."""
        value = self.top.get(key)
        if value is None:
            return {}
        if not isinstance(value.data, dict):
            self.fail(f"{key} must map {what}", value)
        data: dict[str, Value] = value.data
        return data

    def items(self, key: str) -> list[Value]:
        """The list under `key`, or the one thing there; empty where there is none."""
        value = self.top.get(key)
        if value is None:
            return []
        return value.data if isinstance(value.data, list) else [value]

    def text(self, key: str) -> str:
        """The text under `key`."""
        return self.text_of(self.top[key], key)

    def text_of(self, value: Value, what: str) -> str:
        """The text of `value`, which must not be empty."""
        if not isinstance(value.data, str) or value.is_null or not value.data.strip():
            kind = "empty" if isinstance(value.data, str) and not value.is_null else value.kind
            self.fail(f"{what}: must be text, not {kind}", value)
        return value.data.strip()

    def choice(
        self,
        key: str,
        options: tuple[str, ...],
        default: str | None = None,
        *,
        mapping: Mapping[str, Value] | None = None,
    ) -> str:
        """One of `options` under `key`, or the default."""
        value = (self.top if mapping is None else mapping).get(key)
        if value is None and default is not None:
            return default
        if value is None:
            self.fail(f"{key} is missing")
        text = self.text_of(value, key)
        if text not in options:
            self.fail(f"{key}: {shown(text)!r} is not one of {', '.join(options)}{suggestion(text, options)}", value)
        return text

    def optional_expr(self, key: str, wanted: Type) -> Expr | None:
        """The compiled expression under `key`, or None."""
        return self.expr(self.top[key], wanted, key) if key in self.top else None

    def expr(self, value: Value, wanted: Type | None, what: str) -> Expr:
        """The compiled expression of the type wanted; of its names, those of the vocabulary."""
        text = self.text_of(value, what)
        try:
            compiled = compile_expr(text, self.names)
        except ExprError as error:
            self.fail(f"{what}: {error.message}", value)
        if wanted is not None and compiled.type != wanted:
            self.fail(f"{what}: {shown(text)} is a {compiled.type}, a {wanted} belongs here", value)
        names = frozenset(name for name in compiled.names if name in self.vocabulary)
        self.read.update(names)
        return replace(compiled, names=names)

    def message(self, value: Value, names: Mapping[str, Type], what: str) -> Message:
        """A text, or a list of {when, text} whose texts that hold are joined by commas; without `when` one holds."""
        if not isinstance(value.data, list):
            return self.template(value, names, what)
        if not 1 <= len(value.data) <= MAX_FRAGMENTS:
            self.fail(f"{what}: a list holds 1 to {MAX_FRAGMENTS} fragments, not {len(value.data)}", value)
        pieces = []
        for item in value.data:
            if not isinstance(item.data, dict):
                self.fail(f"{what}: each fragment is a mapping of when and text", item)
            self.keys(item.data, ("when", "text"), f"a fragment of {what}")
            if "text" not in item.data:
                self.fail(f"{what}: a fragment needs text", item)
            when = self.expr(item.data["when"], "truth", f"{what}: when") if "when" in item.data else None
            pieces.append((when, self.template(item.data["text"], names, f"{what}: text")))
        return Fragments(tuple(pieces), Template((self.text("title"),)))

    def template(self, value: Value, names: Mapping[str, Type], what: str) -> Template:
        """A message: its parts are text, or (name, format)."""
        text = self.text_of(value, what)
        parts: list[Any] = []
        end = 0
        for match in _FIELD.finditer(text):
            name, form = match.group(1), match.group(2) or ""
            parts.append(text[end : match.start()])
            if name not in names:
                self.fail(f"{what}: unknown name {name!r} in a message{suggestion(name, names)}", value)
            if form and names[name] != "number":
                self.fail(f"{what}: {name} is no number and takes no format", value)
            if not _formats(form):
                self.fail(f"{what}: {form!r} is no format for a number; write .0f or .1f", value)
            if name in self.vocabulary:
                self.read.add(name)
            parts.append((name, form))
            end = match.end()
        parts.append(text[end:])
        if any("{" in part or "}" in part for part in parts if isinstance(part, str)):
            self.fail(f"{what}: a message holds {{names}} only", value)
        return Template(tuple(part for part in parts if part))


def parts_of(text: str) -> Iterator[str | tuple[str, str]]:
    """The parts of a template that is known to be sound: texts, and (name, format)."""
    end = 0
    for match in _FIELD.finditer(text):
        yield from filter(None, (text[end : match.start()],))
        yield match.group(1), match.group(2) or ""
        end = match.end()
    yield from filter(None, (text[end:],))


def _formats(form: str) -> bool:
    """Whether any number, whole or not, can be shown in this format."""
    try:
        return bool(format(1, form) and format(1.5, form))
    except ValueError:
        return False
