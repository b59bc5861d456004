"""with and try."""

from __future__ import annotations

import ast

from convlint.readers.python.evaluator.compiler import Compiler, Eval, Store
from convlint.readers.python.evaluator.paths import GOES_ON, RAISES, Run, fork
from convlint.readers.python.evaluator.scope import Scope
from convlint.readers.python.evaluator.statements import ending
from convlint.readers.python.evaluator.values import unknown


def within(compiler: Compiler, node: ast.With | ast.AsyncWith) -> Run:
    """`with value as name: ...`."""
    parts: list[tuple[Eval, Store | None]] = []
    for item in node.items:
        put = compiler.store(item.optional_vars) if item.optional_vars is not None else None
        parts.append((compiler.expression(item.context_expr), put))
    body = compiler.block(node.body)

    def run(scope: Scope) -> int:
        for make, bind in parts:
            value = make(scope)
            if bind is not None:
                bind(scope, scope.machine.entered(value, scope.file))
        return body(scope)

    return run


def attempted(compiler: Compiler, node: ast.Try | ast.TryStar) -> Run:
    """`try: ...`: the body, then each handler as a path that may be taken, then what is done in any case."""
    body, orelse, last = compiler.block(node.body), compiler.block(node.orelse), compiler.block(node.finalbody)
    handlers: list[tuple[Run, Store | None, str]] = []
    for handler in node.handlers:
        text = f"except {compiler.text(handler.type)}" if handler.type is not None else "except"
        put = compiler.store(ast.copy_location(ast.Name(handler.name, ast.Store()), handler)) if handler.name else None
        handlers.append((compiler.block(handler.body), put, text))
    imports = all(isinstance(each, (ast.Import, ast.ImportFrom)) for each in node.body)

    def run(scope: Scope) -> int:
        how = body(scope)
        if how == GOES_ON:
            how = orelse(scope)
        if not (imports and scope.machine.modules.succeeds(node.body, scope.file)):
            for each, put, text in handlers:
                if how == RAISES:
                    how = _caught(scope, each, put)
                    continue
                ended = how
                how = fork(scope, lambda at, each=each, put=put: _caught(at, each, put), ending(ended), text)  # type: ignore[misc]
        final = last(scope)
        return final or how

    return run


def _caught(scope: Scope, body: Run, put: Store | None) -> int:
    if put is not None:
        put(scope, unknown("call"))
    return body(scope)
