"""The `match` statement: the case that fits, or all that may."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator import names_of
from convlint.readers.python.evaluator.expressions import Eval
from convlint.readers.python.evaluator.operations import equal
from convlint.readers.python.evaluator.paths import GOES_ON, Run, Scope, fork
from convlint.readers.python.evaluator.values import Const, Items, Value, unknown
from convlint.readers.python.walking import every

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.statements import BodyCompiler


def matched(compiler: BodyCompiler, node: ast.Match) -> Run:
    """The first case that fits, or all that may fit."""
    subject = compiler.expression(node.subject)
    cases = [(each.pattern, _values(compiler, each.pattern),
              compiler.expression(each.guard) if each.guard is not None else None,
              compiler.block(each.body), f"case {ast.unparse(each.pattern)[:60]}") for each in node.cases]  # fmt: skip

    def run(scope: Scope) -> int:
        return case(scope, subject(scope), 0)

    def case(scope: Scope, value: Value, at: int) -> int:
        if at == len(cases):
            return GOES_ON
        pattern, values, guard, body, text = cases[at]
        named: dict[str, Value] = {}
        fits = _fits(scope, pattern, value, values, named)
        if fits is False:
            return case(scope, value, at + 1)
        bound = named if fits else dict.fromkeys(names_of.bound([pattern]), unknown("branch"))

        def inside(inner: Scope) -> int:
            for name, held in bound.items():
                inner.heap.put(inner, name, held)
            truth = inner.machine.truth(guard(inner)) if guard is not None else True
            if truth is None:
                return fork(inner, body, lambda here: case(here, value, at + 1), text, f"not ({text})")
            return body(inner) if truth else case(inner, value, at + 1)

        if fits is None:
            return fork(scope, inside, lambda inner: case(inner, value, at + 1), text, f"not ({text})")
        return inside(scope)

    return run


def _values(compiler: BodyCompiler, pattern: ast.pattern) -> dict[ast.expr, Eval]:
    return {node.value: compiler.expression(node.value)
            for node in every(pattern) if isinstance(node, ast.MatchValue)}  # fmt: skip


def _fits(
    scope: Scope, pattern: ast.pattern, value: Value, values: dict[ast.expr, Eval], named: dict[str, Value],
) -> bool | None:  # fmt: skip
    """Whether the value has that form; `named` gets what names in it are bound to where it does."""
    match pattern:
        case ast.MatchValue():
            return equal(value, values[pattern.value](scope))
        case ast.MatchSingleton():
            return value.value is pattern.value if isinstance(value, Const) else equal(value, Const(pattern.value))
        case ast.MatchAs():
            fits = _fits(scope, pattern.pattern, value, values, named) if pattern.pattern is not None else True
            if fits and pattern.name:
                named[pattern.name] = value
            return fits
        case ast.MatchOr():
            found = [_fits(scope, each, value, values, named) for each in pattern.patterns]
            return True if True in found else None if None in found else False
        case ast.MatchSequence() if isinstance(value, Items) and value.complete:
            if any(isinstance(each, ast.MatchStar) for each in pattern.patterns):
                return None
            if len(pattern.patterns) != len(value.items):
                return False
            pairs = zip(pattern.patterns, value.items, strict=True)
            found = [_fits(scope, each, item, values, named) for each, item in pairs]
            return False if False in found else None if None in found else True
    return None
