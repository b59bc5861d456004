"""Functions and classes where they are defined, and what decorators make of them."""

from __future__ import annotations

import ast

from convlint.readers.python.evaluator.compiler import Compiler
from convlint.readers.python.evaluator.expressions import function_defaults
from convlint.readers.python.evaluator.paths import GOES_ON, Run
from convlint.readers.python.evaluator.scope import Scope
from convlint.readers.python.evaluator.values import Class, Function, Name, Partial, Value

_KINDS = {
    "builtins.staticmethod": "static", "builtins.classmethod": "class", "builtins.property": "property",
    "functools.cached_property": "property", "torch.jit.unused": "", "abc.abstractproperty": "property",
}  # fmt: skip
_RECORDS = frozenset({"dataclasses.dataclass", "attr.s", "attrs.define", "attr.dataclass", "attr.attrs"})


def function(compiler: Compiler, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Run:
    """`def name(...): ...`."""
    defaults = function_defaults(compiler, node.args)
    decorators = [(compiler.expression(each), each) for each in reversed(node.decorator_list)]
    put = compiler.store(ast.copy_location(ast.Name(node.name, ast.Store()), node))

    def run(scope: Scope) -> int:
        found = Function(node, scope.file, _around(scope), node.name)
        found.defaults, found.kw_defaults = defaults(scope)
        value: Value = found
        for make, written in decorators:
            if isinstance(written, ast.Attribute) and written.attr in ("setter", "getter", "deleter"):
                scope.variables[f"{node.name}.{written.attr}"] = found
                return GOES_ON
            value = _decorated(scope, make(scope), value, written)
        put(scope, value)
        return GOES_ON

    return run


def _around(scope: Scope) -> Scope:
    """The scope that a function within this one looks names up in: a class's is not seen from its methods."""
    while scope.of_class and scope.parent is not None:
        scope = scope.parent
    return scope


def _decorated(scope: Scope, decorator: Value, value: Value, written: ast.expr) -> Value:
    if isinstance(decorator, Name):
        if decorator.name in _KINDS and isinstance(value, Function):
            value.kind = _KINDS[decorator.name] or value.kind
        return value
    if isinstance(decorator, (Function, Partial)):
        call = written if isinstance(written, ast.Call) else scope.machine.no_call(written)
        found = scope.machine.call(decorator, [value], {}, call, scope.file)
        if isinstance(found, Function) and _wraps(found):
            return value  # it looks like the original on purpose: checks, warnings, older names of arguments
        if isinstance(found, (Function, Class, Partial)):
            return found
    return value


def _wraps(function: Function) -> bool:
    """Whether it is a wrapper made with functools.wraps."""
    made_by = [
        each.func if isinstance(each, ast.Call) else each for each in getattr(function.node, "decorator_list", [])
    ]
    return any(getattr(each, "attr", getattr(each, "id", "")) == "wraps" for each in made_by)


def class_(compiler: Compiler, node: ast.ClassDef) -> Run:
    """`class Name(Base): ...`."""
    bases = [compiler.expression(base) for base in node.bases if not isinstance(base, ast.Starred)]
    decorators = [(compiler.expression(each), each) for each in reversed(node.decorator_list)]
    put = compiler.store(ast.copy_location(ast.Name(node.name, ast.Store()), node))
    inner = Compiler(compiler.file, compiler.tables)
    inner.depth = compiler.depth
    body = inner.block(node.body)
    compiler.deepest = max(compiler.deepest, inner.deepest + 2)

    def run(scope: Scope) -> int:
        machine = scope.machine
        found = Class(node, scope.file, node.name, [base(scope) for base in bases])
        within = Scope(machine, scope.file, _around(scope), None)
        within.of_class = True
        within.variables = found.namespace
        body(within)
        found.namespace = within.variables
        for member in found.namespace.values():
            if isinstance(member, Function) and member.owner is None:
                member.owner = found
        machine.classes.finish(found, is_record=any(_is_record(make(scope)) for make, _ in decorators))
        value: Value = found
        for make, written in decorators:
            value = _decorated(scope, make(scope), value, written)
        put(scope, value)
        return GOES_ON

    return run


def _is_record(value: Value) -> bool:
    return isinstance(value, Name) and value.name in _RECORDS
