"""Whether an edited module is the one that was meant: what stands in new text is compared node by node."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from convlint.fixes.python.lines import Lines

Value = int | bool | tuple[int, ...]


class Rewrites(NamedTuple):
    """What literals become, and which keywords calls get, by name."""

    literals: Mapping[ast.Constant, Value]
    keywords: Mapping[ast.Call, Mapping[str, Value]]


class Module(NamedTuple):
    """A syntax tree, and the text that it was parsed from."""

    tree: ast.Module
    lines: Lines


def same(old: Module, new: Module, rewrites: Rewrites) -> bool:
    """Whether two modules differ in nothing but what was to be rewritten."""
    wanted = len(rewrites.literals) + len(rewrites.keywords)
    comparison = _Comparison(rewrites)
    if not comparison.agree(old, new, _Texts(old.lines, new.lines)):
        return False
    return len(comparison.met) == wanted or _Comparison(rewrites).agree(old, new, None)


class _Texts(NamedTuple):
    """The text of both modules. Two statements of one kind that have one text are the same, wherever they stand."""

    old: Lines
    new: Lines

    def differing(self, old: list[ast.stmt], new: list[ast.stmt]) -> Iterator[tuple[ast.stmt, ast.stmt]]:
        for one, other in zip(old, new, strict=True):
            if type(one) is not type(other) or _text(self.old, one) != _text(self.new, other):
                yield one, other


class _Comparison:
    """Of two trees; `met` are the nodes that were to be rewritten and have been."""

    def __init__(self, rewrites: Rewrites) -> None:
        self.rewrites = rewrites
        self.met: set[ast.AST] = set()

    def agree(self, old: Module, new: Module, texts: _Texts | None) -> bool:
        """Whether all that has another text is as it was meant; without texts, whether all is."""
        pending: list[tuple[Any, Any]] = [(old.tree, new.tree)]
        while pending:
            one, other = pending.pop()
            if type(one) is not type(other):
                return False
            if isinstance(one, list):
                if len(one) != len(other):
                    return False
                by_text = texts is not None and one and isinstance(one[0], ast.stmt)
                pending += texts.differing(one, other) if texts and by_text else zip(one, other, strict=True)
            elif isinstance(one, ast.Constant) and one in self.rewrites.literals:
                if not self._became(one, other):
                    return False
            elif isinstance(one, ast.AST):
                fields = {name: (getattr(one, name, None), getattr(other, name, None)) for name in one._fields}
                if isinstance(one, ast.Call) and self.rewrites.keywords.get(one) and not self._gained(one, fields):
                    return False
                pending += fields.values()
            elif one != other:
                return False
        return True

    def _became(self, literal: ast.Constant, new: ast.Constant) -> bool:
        wanted = self.rewrites.literals[literal]
        self.met.add(literal)
        return type(new.value) is type(wanted) and new.value == wanted

    def _gained(self, call: ast.Call, fields: dict[str, tuple[Any, Any]]) -> bool:
        """Whether a call got its keywords behind all others, which alone are left in `fields`."""
        added = self.rewrites.keywords[call]
        self.met.add(call)
        before, after = fields["keywords"]
        gained = (after or [])[-len(added) :]
        fields["keywords"] = before, (after or [])[: -len(added)]
        return {each.arg: ast.unparse(each.value) for each in gained} == {
            name: repr(value) for name, value in added.items()
        }


def _text(lines: Lines, node: ast.stmt) -> str:
    """What a statement says, from its first decorator on."""
    decorators = getattr(node, "decorator_list", None)
    return lines.text[lines.offset(decorators[0] if decorators else node) : lines.end(node)]
