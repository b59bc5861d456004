"""Dicts and comprehensions."""

from __future__ import annotations

import ast
from typing import Any

from convlint.readers.python.evaluator import names_of
from convlint.readers.python.evaluator.compiler import Compiler, Eval
from convlint.readers.python.evaluator.limits import LONGEST
from convlint.readers.python.evaluator.scope import Scope
from convlint.readers.python.evaluator.values import Const, Items, Plain, Table, Unknown, Value, unknown


def table(compiler: Compiler, node: ast.Dict, name: str) -> Eval:
    """`{key: value, **more}`; a literal among the values is bound to its key."""
    parts: list[tuple[Eval | None, Eval]] = []
    for key, value in zip(node.keys, node.values, strict=True):
        text = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else name
        parts.append((compiler.expression(key) if key is not None else None, compiler.expression(value, text)))

    def run(scope: Scope) -> Value:
        found = Table({})
        for make_key, make in parts:
            value = make(scope)
            if make_key is None:
                more = scope.machine.items.as_table(value)
                if more is None:
                    found.complete = False
                    found.why = value.why if isinstance(value, Unknown) else "call"
                    found.items.clear()  # any of them may have been given anew
                else:
                    found.items.update(more.items)
                    found.complete = found.complete and more.complete
                continue
            put(found, make_key(scope), value)
        return found

    return run


def put(found: Table, key: Value, value: Value) -> None:
    """`found[key] = value`."""
    if isinstance(key, Const):
        found.items[key.value] = value
    else:
        found.complete = False
        if isinstance(key, Unknown):  # may be any key
            found.items.clear()


def comprehension(compiler: Compiler, node: Any, name: str) -> Eval:
    """`[a for b in c if d]` and the like: its names are its own."""
    first = compiler.expression(node.generators[0].iter, name)
    own = None
    if compiler.own is not None or len(node.generators):
        own = frozenset(names_of.bound([part.target for part in node.generators]))
    inner = Compiler(compiler.file, compiler.tables, own)
    inner.depth = compiler.depth + 2
    make_key = inner.expression(node.key) if isinstance(node, ast.DictComp) else None
    make = inner.expression(node.value if isinstance(node, ast.DictComp) else node.elt, name)
    rounds = [_round(inner, part, number) for number, part in enumerate(node.generators)]
    compiler.deepest = max(compiler.deepest, inner.deepest + 4)
    kind = {ast.ListComp: "list", ast.SetComp: "set", ast.GeneratorExp: "iterator"}.get(node.__class__, "")

    def run(outer: Scope) -> Value:
        machine = outer.machine
        scope = Scope(machine, outer.file, outer, None)
        found = Items(kind, [])
        keyed: dict[Plain, Value] = {}
        whole = [True]
        why = ["call"]

        def visit(level: int, values: Value) -> None:
            store, over, tests = rounds[level]
            items = machine.iterate(values)
            if items is None:
                whole[0] = False
                why[0] = values.why if isinstance(values, Unknown) else "call"
                items = [unknown(why[0])]
            for item in items:
                machine.step()
                store(scope, item)
                truths = []
                for test in tests:
                    truths.append(machine.truth(test(scope)))
                    if truths[-1] is False:
                        break
                if False in truths:
                    continue
                if None in truths:
                    whole[0] = False
                if level + 1 < len(rounds):
                    visit(level + 1, rounds[level + 1][1](scope))
                    continue
                if len(found.items) + len(keyed) >= LONGEST:
                    whole[0] = False
                    return
                if make_key is None:
                    found.items.append(make(scope))
                    continue
                key, value = make_key(scope), make(scope)
                if isinstance(key, Const):
                    keyed[key.value] = value
                else:
                    whole[0] = False
            del over

        visit(0, first(outer))
        if make_key is not None:
            return Table(keyed, complete=whole[0], why=why[0])
        found.complete, found.why = whole[0], why[0]
        if kind == "set" and found.complete:
            return machine.items.as_set(found.items)
        return found

    return run


def _round(compiler: Compiler, part: ast.comprehension, number: int) -> tuple[Any, Eval, list[Eval]]:
    over = compiler.expression(part.iter) if number else (lambda _: unknown("call"))
    return compiler.store(part.target), over, [compiler.expression(test) for test in part.ifs]
