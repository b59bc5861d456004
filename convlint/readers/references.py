"""What names an object of the user's code: `package.module:name`, also called with literals: `m:Net(3, wide=True)`."""

from __future__ import annotations

import ast
import re
from typing import Any

from msgspec import Struct

from convlint.errors import InputFault, shown

MOST_TEXT = 2_000  # characters
_MOST_DEPTH = 50  # of brackets inside each other
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_LOOKS = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*(\(.*\)[\w.]*)?", re.DOTALL)


class Reference(Struct, frozen=True, kw_only=True):
    """An object of an importable module: its attributes in order, and the call that makes the network, if there is one.

    `then` are attributes of what the call returns.
    """

    module: str
    attributes: tuple[str, ...]
    called: bool = False
    arguments: tuple[Any, ...] = ()
    keywords: dict[str, Any] = {}
    then: tuple[str, ...] = ()


def looks_like_reference(text: str) -> bool:
    """Whether a word on the command line is written as a reference; what is between brackets may still be wrong."""
    return len(text) <= MOST_TEXT and _LOOKS.fullmatch(text) is not None


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
    """(the names after the dots, what they are asked of)."""
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
