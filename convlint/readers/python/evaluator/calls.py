"""Calls of functions of the source: arguments bound to parameters, the body run in a scope of its own."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator.compiler import Code
from convlint.readers.python.evaluator.limits import DEEPEST, RECURSION
from convlint.readers.python.evaluator.paths import GOES_ON, RAISES, RETURNS
from convlint.readers.python.evaluator.scope import Scope
from convlint.readers.python.evaluator.values import NONE, Function, Items, Table, Unknown, Value, unknown

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine


def run(
    machine: Machine, function: Function, args: list[Value], keywords: dict[str, Value], exact: bool,
) -> Value:  # fmt: skip
    """What the function gives."""
    code = machine.code(function)
    height = machine.height + code.height
    active = machine.active.get(function.node, 0)
    if height > DEEPEST or (active >= RECURSION and _is_open(args, keywords, exact)):
        machine.journals.spoil()
        machine.give_away(args, keywords)
        return unknown("limit")
    scope = Scope(machine, function.file, function.scope, function)
    bind(scope.variables, code, function, args, keywords, exact)
    return enter(machine, scope, code, height)


def enter(machine: Machine, scope: Scope, code: Code, height: int) -> Value:
    """Run the body; its parameters are bound."""
    function = scope.function
    node: ast.AST = function.node if function is not None else ast.Pass()
    held, machine.height = machine.height, height
    mark = scope.under = len(machine.conditions)
    machine.active[node] = machine.active.get(node, 0) + 1
    if code.generator:
        scope.yields = []
    for trial in machine.journals.trials:
        trial.tallest = max(trial.tallest, height)
    try:
        machine.step()
        how = code.run(scope)
        if how == GOES_ON:
            scope.value = NONE
        if scope.leaving is not None:
            how = RETURNS if scope.leaving.settle(scope, alive=how != RAISES) else RAISES
    finally:
        machine.height = held
        del machine.conditions[mark:]
        machine.active[node] -= 1
    if scope.yields is not None:
        return Items("iterator", scope.yields, complete=machine.whole_yields(scope))
    return scope.value if how != RAISES else unknown("call")


def bind(
    variables: dict[str, Value], code: Code, function: Function, args: list[Value], keywords: dict[str, Value],
    exact: bool,
) -> None:  # fmt: skip
    """Give each parameter its argument, its default, or the unknown."""
    if function.bound is not None:
        args = [function.bound, *args]
    positional = code.positional
    for name, value in zip(positional, args, strict=False):
        variables[name] = value
    more: dict[str, Value] = {}
    for name, value in keywords.items():
        if name in code.names:
            variables[name] = value
        else:
            more[name] = value
    if len(variables) < len(positional) + len(code.keyword_only):
        _fill(variables, code, function, exact)
    if code.vararg:
        variables[code.vararg] = Items("tuple", args[len(positional) :], complete=exact, why="caller")
    if code.kwarg:
        variables[code.kwarg] = Table.of(more, complete=exact, why="caller")


def _fill(variables: dict[str, Value], code: Code, function: Function, exact: bool) -> None:
    without = len(code.positional) - len(function.defaults)
    for at, name in enumerate(code.positional):
        if name not in variables:
            known = exact and at >= without
            variables[name] = function.defaults[at - without] if known else unknown("call" if exact else "caller")
    for name in code.keyword_only:
        if name not in variables:
            value = function.kw_defaults.get(name) if exact else None
            variables[name] = value if value is not None else unknown("call" if exact else "caller")


def bind_unknown(variables: dict[str, Value], code: Code, function: Function, defaults: bool) -> None:
    """Give each parameter what nobody knows, or its default where there is one and `defaults`."""
    if function.bound is not None and code.positional:
        variables[code.positional[0]] = function.bound
    open_ = unknown("parameter")
    without = len(code.positional) - len(function.defaults)
    for at, name in enumerate(code.positional):
        if name not in variables:
            variables[name] = function.defaults[at - without] if defaults and at >= without else open_
    for name in code.keyword_only:
        variables[name] = function.kw_defaults.get(name, open_) if defaults else open_
    if code.vararg:
        variables[code.vararg] = Items("tuple", [], complete=defaults, why="parameter")
    if code.kwarg:
        variables[code.kwarg] = Table({}, complete=defaults, why="parameter")


def _is_open(args: list[Value], keywords: dict[str, Value], exact: bool) -> bool:
    return not exact or any(isinstance(value, Unknown) for value in (*args, *keywords.values()))
