"""Rules that speak another language beside English: their templates say both, as pairs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from convlint.files.languages.catalogue import Catalogue
from convlint.files.languages.pairs import english_of, other_of, pair
from convlint.rulebook.pieces import parts_of
from convlint.rulebook.rule import Case, FixSpec, Fragments, Join, Message, Rule, Template

_COMMA = "，"  # what joins fragments
_NOTHING: Mapping[str, Any] = {}


class Twofold(Template):
    """A template or fragments in English, and the same in another language."""

    __slots__ = ("_plain", "_words", "english", "other")

    def __init__(self, english: Message, other: Message, words: Callable[[str], str | None]) -> None:
        """`words` translates what names in the templates stand for, where that is one of the rule's own words."""
        super().__init__(())
        self.english, self.other, self._words = english, other, words
        self.names = english.names
        self._plain = [name for name in other.names if "." not in name]

    def render(self, values: Any, over: Mapping[str, Any] = _NOTHING) -> str:
        """Both texts under `values`, as a pair."""
        words = dict(over)
        for name in self._plain:
            value = over[name] if name in over else values[name]
            if isinstance(value, str) and (word := self._words(value)) is not None:
                words[name] = word
        return pair(english_of(self.english.render(values, over)), other_of(self.other.render(values, words)))


def texts_of(rule: Rule) -> Iterator[str]:
    """Every text of a rule in English: title, rationale, templates of messages and fixes, and words that fill them."""
    yield rule.info.title
    yield rule.info.rationale
    for judging in (rule, *([rule.in_source] if rule.in_source is not None else [])):
        messages = [case.message for case in judging.cases]
        messages += [judging.join.message] if judging.join is not None else []
        for message in messages:
            for template in (message,) if isinstance(message, Template) else (text for _, text in message.pieces):
                yield template_text(template)
        yield from (template_text(case.fix.describe) for case in judging.cases if case.fix is not None)
        shown = judging.names_in_messages()
        for name, expr in judging.decision.let:
            if expr.type == "text" and name in shown:
                yield from _chosen(ast.parse(expr.text, mode="eval").body)


def _chosen(tree: ast.expr) -> Iterator[str]:
    """The texts that an expression chooses from; what it compares with is none of them."""
    if isinstance(tree, ast.IfExp):
        yield from _chosen(tree.body)
        yield from _chosen(tree.orelse)
    elif isinstance(tree, ast.Constant) and isinstance(tree.value, str) and tree.value:
        yield tree.value


def template_text(template: Template) -> str:
    """A template as a rule's file has it."""
    shown = (part if isinstance(part, str) else _field(*part) for part in template.parts)
    return "".join(shown)


def _field(name: str, how: str) -> str:
    return f"{{{name}:{how}}}" if how else f"{{{name}}}"


def translated(rule: Rule, known: Catalogue) -> Rule:
    """The rule with every text that the catalogue has said in its language too."""
    return _Speaker(rule.info.code, known).rule(rule)


class _Speaker:
    def __init__(self, code: str, known: Catalogue) -> None:
        self.code, self.known = code, known

    def rule(self, rule: Rule) -> Rule:
        join: Join | None = rule.join
        return replace(
            rule,
            cases=tuple(map(self._case, rule.cases)),
            join=None if join is None else replace(join, message=self._message(join.message)),
            in_source=None if rule.in_source is None else self.rule(rule.in_source),
        )

    def _case(self, case: Case) -> Case:
        fix: FixSpec | None = case.fix
        if fix is not None:
            fix = replace(fix, describe=self._template(fix.describe))
        return replace(case, message=self._message(case.message), fix=fix)

    def _message(self, message: Message) -> Message:
        if isinstance(message, Template):
            return self._template(message)
        pieces = tuple((when, self._other(text) or text) for when, text in message.pieces)
        if all(new is old for (_, new), (_, old) in zip(pieces, message.pieces, strict=True)):
            return message
        otherwise = self._other(message.otherwise) or message.otherwise
        return Twofold(message, Fragments(pieces, otherwise, _COMMA), self._word)

    def _template(self, template: Template) -> Template:
        other = self._other(template)
        return template if other is None else Twofold(template, other, self._word)

    def _word(self, english: str) -> str | None:
        return self.known.of_rule(self.code, english) or self.known.sentence(english)

    def _other(self, template: Template) -> Template | None:
        text = self.known.of_rule(self.code, template_text(template))
        return None if text is None else Template(tuple(parts_of(text)))
