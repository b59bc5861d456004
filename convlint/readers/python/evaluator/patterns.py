"""The match statement: the first case that fits, or all that may fit."""

from __future__ import annotations

import ast

from convlint.readers.python.evaluator import names_of
from convlint.readers.python.evaluator.comparing import equal
from convlint.readers.python.evaluator.compiler import Compiler, Eval
from convlint.readers.python.evaluator.paths import GOES_ON, Run, fork
from convlint.readers.python.evaluator.scope import Scope
from convlint.readers.python.evaluator.values import Const, Items, Value, unknown
from convlint.readers.python.walking import every


def matched(compiler: Compiler, node: ast.Match) -> Run:
    """`match subject: case ...`."""
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
        fits = _fits(scope, pattern, value, values)
        if fits is False:
            return case(scope, value, at + 1)
        if fits is None:
            for name in names_of.bound([pattern]):
                scope.variables[name] = unknown("branch")
        if guard is not None:
            truth = scope.machine.truth(guard(scope))
            fits = False if truth is False else fits if truth else None
        if fits is None:
            return fork(scope, body, lambda inner: case(inner, value, at + 1), text, f"not ({text})")
        return body(scope) if fits else case(scope, value, at + 1)

    return run


def _values(compiler: Compiler, pattern: ast.pattern) -> dict[ast.expr, Eval]:
    return {node.value: compiler.expression(node.value)
            for node in every(pattern) if isinstance(node, ast.MatchValue)}  # fmt: skip


def _fits(scope: Scope, pattern: ast.pattern, value: Value, values: dict[ast.expr, Eval]) -> bool | None:
    """Whether the value has that form; names in it are bound where it does."""
    match pattern:
        case ast.MatchValue():
            return equal(value, values[pattern.value](scope))
        case ast.MatchSingleton():
            return value.value is pattern.value if isinstance(value, Const) else equal(value, Const(pattern.value))
        case ast.MatchAs():
            fits = _fits(scope, pattern.pattern, value, values) if pattern.pattern is not None else True
            if fits and pattern.name:
                scope.variables[pattern.name] = value
            return fits
        case ast.MatchOr():
            found = [_fits(scope, each, value, values) for each in pattern.patterns]
            return True if True in found else None if None in found else False
        case ast.MatchSequence() if isinstance(value, Items) and value.complete:
            if any(isinstance(each, ast.MatchStar) for each in pattern.patterns):
                return None
            if len(pattern.patterns) != len(value.items):
                return False
            pairs = zip(pattern.patterns, value.items, strict=True)
            found = [_fits(scope, each, item, values) for each, item in pairs]
            return False if False in found else None if None in found else True
    return None
