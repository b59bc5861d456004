"""References to objects of Python modules, such as `package.module:Net(50)`, read without running anything."""

from __future__ import annotations

import ast
from typing import Any

from msgspec import Struct

from convlint.files.patterns import pattern
from convlint.model.errors import InputFault, shown
from convlint.readers.inputs import MOST_TEXT

_MOST_DEPTH = 50  # opening brackets of one kind; deep nesting exhausts the stack of Python's parser
_MODULE = pattern(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


class Reference(Struct, frozen=True, kw_only=True):
    """A reference to an object of an importable module: `attributes` lead to it, from the module on.

    `called`: it is called with `arguments` and `keywords`, and `then` are attributes of the result.
    """

    module: str
    attributes: tuple[str, ...]
    called: bool = False
    arguments: tuple[Any, ...] = ()
    keywords: dict[str, Any] = {}
    then: tuple[str, ...] = ()


def parse_reference(text: str) -> Reference:
    """Reads `package.module:name`, `…:name.inner`, `…:name(1, "a", wide=True)`. Raises InputFault."""
    module, colon, expression = text.strip().partition(":")
    module, expression = module.strip(), expression.strip()
    if len(text) > MOST_TEXT:
        raise InputFault(f"{shown(text)!r} is longer than {MOST_TEXT:,} characters")
    if not colon or not _MODULE.fullmatch(module) or not expression:
        raise InputFault(f"{shown(text)!r} is not package.module:name, with literal arguments where it is called")
    if max(map(expression.count, "([{")) > _MOST_DEPTH:
        raise InputFault(f"{shown(text)!r} has too many brackets")
    try:
        node = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputFault(f"{shown(expression)!r} is no Python expression") from None
    then, inner = _attributes(node)
    if isinstance(inner, ast.Call):
        before, base = _attributes(inner.func)
        if isinstance(base, ast.Name):
            arguments = tuple(_literal(argument) for argument in inner.args)
            keywords = {_keyword(keyword): _literal(keyword.value) for keyword in inner.keywords}
            return Reference(
                module=module, attributes=(base.id, *before), called=True, arguments=arguments, keywords=keywords,
                then=then,
            )  # fmt: skip
    elif isinstance(inner, ast.Name):
        return Reference(module=module, attributes=(inner.id, *then))
    raise InputFault(f"{shown(expression)!r} is neither a name nor a name that is called once with literals")


def _attributes(node: ast.expr) -> tuple[tuple[str, ...], ast.expr]:
    """The attributes at the end of an expression, in order, and the expression before them."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return tuple(reversed(names)), node


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Starred):
        raise InputFault(f"{ast.unparse(node)[:60]!r}: arguments are written out, not spread")
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise InputFault(
            f"{ast.unparse(node)[:60]!r} is no literal: arguments are numbers, texts, True, False, None, lists, dicts"
        ) from None


def _keyword(keyword: ast.keyword) -> str:
    if keyword.arg is None:
        raise InputFault(f"'**{ast.unparse(keyword.value)[:60]}': arguments are written out, not spread")
    return keyword.arg
