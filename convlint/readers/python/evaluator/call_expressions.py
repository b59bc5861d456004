"""Calls where they are written: their arguments, methods, and `super()`."""

from __future__ import annotations

import ast

from convlint.readers.python.evaluator.compiler import Compiler, Eval
from convlint.readers.python.evaluator.config_names import names_config
from convlint.readers.python.evaluator.scope import Scope
from convlint.readers.python.evaluator.values import Function, Module, Unknown, Value, unknown

_KEEPS_NAME = frozenset({"int", "round", "max", "min", "float", "abs", "tuple", "list", "sum", "set", "bool"})


def call(compiler: Compiler, node: ast.Call, name: str) -> Eval:
    """`function(...)`, with `receiver.method(...)` and `super().method(...)` as cases of their own."""
    func = node.func
    if isinstance(func, ast.Name) and not node.args and not node.keywords and func.id in ("globals", "locals"):
        return lambda scope: Module(scope.file.path) if func.id == "globals" else unknown("call")
    kept = name if isinstance(func, ast.Name) and func.id in _KEEPS_NAME else ""
    given = _arguments(compiler, node, kept)
    if isinstance(func, ast.Attribute):
        attr = func.attr
        after_super = after_super_call(compiler, func.value)
        if after_super is not None:

            def call_inherited(scope: Scope) -> Value:
                start, of = after_super(scope)
                args, keywords, exact = given(scope)
                return scope.machine.classes.call_inherited(start, of, attr, args, keywords, node, scope.file, exact)

            return call_inherited
        receiver = compiler.expression(func.value, name if attr in ("copy", "items", "values") else "")
        of_config = names_config(func.value)

        def call_method(scope: Scope) -> Value:
            machine, value = scope.machine, receiver(scope)
            args, keywords, exact = given(scope)
            if value.__class__ is Unknown:
                machine.give_away(args, keywords)
                return unknown("config") if of_config else value
            return machine.call_method(value, attr, args, keywords, node, scope.file, exact)

        return call_method
    function = compiler.expression(func)

    def run(scope: Scope) -> Value:
        value = function(scope)
        args, keywords, exact = given(scope)
        return scope.machine.call(value, args, keywords, node, scope.file, exact)

    return run


def _arguments(compiler: Compiler, node: ast.Call, name: str):  # type: ignore[no-untyped-def]
    """What evaluates the arguments of a call: positional ones, keywords, and whether these are all."""
    plain = [compiler.expression(arg, name) for arg in node.args if not isinstance(arg, ast.Starred)]
    named = [(keyword.arg, compiler.expression(keyword.value, keyword.arg)) for keyword in node.keywords if keyword.arg]
    if len(plain) == len(node.args) and len(named) == len(node.keywords):
        return lambda scope: ([arg(scope) for arg in plain], {key: value(scope) for key, value in named}, True)
    args = [(compiler.expression(arg.value if isinstance(arg, ast.Starred) else arg), isinstance(arg, ast.Starred))
            for arg in node.args]  # fmt: skip
    keywords = [(keyword.arg, compiler.expression(keyword.value, keyword.arg or "")) for keyword in node.keywords]

    def spread(scope: Scope) -> tuple[list[Value], dict[str, Value], bool]:
        machine, exact = scope.machine, True
        values: list[Value] = []
        for arg, starred in args:
            value = arg(scope)
            items = machine.iterate(value) if starred else [value]
            if items is None:
                exact = False
                break
            values += items
        pairs: dict[str, Value] = {}
        for key, make in keywords:
            value = make(scope)
            if key is not None:
                pairs[key] = value
                continue
            table = machine.items.as_table(value)
            exact = exact and table is not None and table.complete
            pairs.update((text, held) for text, held in (table.items if table else {}).items() if isinstance(text, str))
        return values, pairs, exact

    return spread


def after_super_call(compiler: Compiler, node: ast.expr):  # type: ignore[no-untyped-def]
    """What finds the class that `super()` starts behind, and the object, if this is such a call."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"):
        return None
    given = [compiler.expression(arg) for arg in node.args]

    def find(scope: Scope) -> tuple[Value, Value]:
        if len(given) == 2:
            return given[0](scope), given[1](scope)
        at: Scope | None = scope
        while at is not None:
            function = at.function
            if isinstance(function, Function) and function.owner is not None:
                first = next(iter(at.variables.values()), None)
                return function.owner, function.bound or first or unknown("call")
            at = at.parent
        return unknown("call"), unknown("call")

    return find
