"""Names, literals, attributes, items, calls: the expressions that most of a program is made of."""

from __future__ import annotations

import ast
from typing import Any

from convlint.readers.python.evaluator.call_expressions import after_super_call
from convlint.readers.python.evaluator.compiler import Compiler, Eval
from convlint.readers.python.evaluator.config_names import names_config
from convlint.readers.python.evaluator.scope import Scope
from convlint.readers.python.evaluator.stated import literal
from convlint.readers.python.evaluator.values import (
    NONE,
    Const,
    Deferred,
    Function,
    Instance,
    Items,
    Tensor,
    Unknown,
    Value,
    unknown,
)

# An attribute or item of something unknown with one of these names is unknown because a config is


def constant(compiler: Compiler, node: ast.Constant, name: str) -> Eval:
    """A literal."""
    value: Value
    if isinstance(node.value, (int, float, str, bytes, type(None))):
        value = literal(compiler.file, node, node.value, name)
    else:
        value = unknown("call")
    return lambda _: value


def negative(compiler: Compiler, node: ast.UnaryOp, name: str) -> Eval | None:
    """`-1`: one literal, as people read it."""
    operand = node.operand
    if isinstance(operand, ast.Constant) and type(operand.value) in (int, float) and isinstance(node.op, ast.USub):
        number: Any = operand.value
        value = literal(compiler.file, node, -number, name)
        return lambda _: value
    return None


def name(compiler: Compiler, node: ast.Name, _: str) -> Eval:
    """A variable."""
    text = node.id
    if compiler.own is not None and text not in compiler.own:

        def outer(scope: Scope) -> Value:
            return scope.machine.modules.lookup(scope.parent or scope, text)

        return outer

    def local(scope: Scope) -> Value:
        found = scope.variables.get(text)
        if found is None or found.__class__ is Deferred:
            return scope.machine.modules.lookup(scope, text)
        return found

    return local


def attribute(compiler: Compiler, node: ast.Attribute, _: str) -> Eval:
    """`value.name`."""
    text = node.attr
    after_super = after_super_call(compiler, node.value)
    if after_super is not None:

        def inherited(scope: Scope) -> Value:
            start, of = after_super(scope)
            return scope.machine.classes.inherited(start, of, text)

        return inherited
    value = compiler.expression(node.value)
    of_config = names_config(node.value)

    def run(scope: Scope) -> Value:
        receiver = value(scope)
        if of_config and isinstance(receiver, Unknown):
            return unknown("config")
        return scope.machine.attribute(receiver, text)

    return run


def subscript(compiler: Compiler, node: ast.Subscript, name: str) -> Eval:
    """`value[index]`."""
    value, of_config = compiler.expression(node.value, name), names_config(node.value)
    if isinstance(node.slice, ast.Slice):
        ends = [compiler.expression(end) if end is not None else None
                for end in (node.slice.lower, node.slice.upper, node.slice.step)]  # fmt: skip

        def cut(scope: Scope) -> Value:
            receiver = value(scope)
            low, high, step = (end(scope) if end is not None else None for end in ends)
            if isinstance(receiver, (Instance, Tensor)):
                index = Items("slice", [low or NONE, high or NONE, step or NONE])
                return scope.machine.items.get(receiver, index, node, scope.file)
            return scope.machine.items.cut(receiver, low, high, step)

        return cut
    index = compiler.expression(node.slice)

    def run(scope: Scope) -> Value:
        receiver, key = value(scope), index(scope)
        if of_config and isinstance(receiver, Unknown):
            return unknown("config")
        return scope.machine.items.get(receiver, key, node, scope.file)

    return run


def slice_(compiler: Compiler, node: ast.Slice, _: str) -> Eval:
    """`low:high:step` among other indices."""
    ends = [compiler.expression(end) if end is not None else None for end in (node.lower, node.upper, node.step)]
    return lambda scope: Items("slice", [end(scope) if end is not None else NONE for end in ends])


def lambda_(compiler: Compiler, node: ast.Lambda, _: str) -> Eval:
    """A function without a name."""
    defaults = function_defaults(compiler, node.args)

    def run(scope: Scope) -> Value:
        function = Function(node, scope.file, scope, "<lambda>")
        function.defaults, function.kw_defaults = defaults(scope)
        return function

    return run


def function_defaults(compiler: Compiler, arguments: ast.arguments):  # type: ignore[no-untyped-def]
    """What evaluates the defaults of parameters; a literal there is bound to the parameter's name."""
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)
    plain = [_default(compiler, value, arg.arg) for arg, value in pairs]
    keyword_only = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    named = [(arg.arg, _default(compiler, value, arg.arg)) for arg, value in keyword_only if value is not None]
    return lambda scope: ([make(scope) for make in plain], {key: make(scope) for key, make in named})


def _default(compiler: Compiler, node: ast.expr, name: str) -> Eval:
    """The default of a parameter; a number that stands there itself is known as that."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        value = literal(compiler.file, node, node.value, name, default=True)
        return lambda _: value
    return compiler.expression(node, name)


def display(compiler: Compiler, node: ast.List | ast.Tuple | ast.Set, name: str) -> Eval:
    """`[a, *b]`, `(a, b)`, `{a, b}`."""
    kind = {ast.List: "list", ast.Tuple: "tuple", ast.Set: "set"}[node.__class__]
    parts = [(compiler.expression(item.value if isinstance(item, ast.Starred) else item, name),
              isinstance(item, ast.Starred)) for item in node.elts]  # fmt: skip
    if not any(starred for _, starred in parts):
        makes = [make for make, _ in parts]
        return lambda scope: Items(kind, [make(scope) for make in makes])

    def run(scope: Scope) -> Value:
        found, complete = [], True
        for make, starred in parts:
            value = make(scope)
            items = scope.machine.iterate(value) if starred else [value]
            complete = complete and items is not None
            found += items or []
        return Items(kind, found, complete=complete)

    return run


def text_of(value: Value) -> str | None:
    """The text that it is, if it is one."""
    return value.value if isinstance(value, Const) and isinstance(value.value, str) else None
