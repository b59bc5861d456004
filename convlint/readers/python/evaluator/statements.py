"""Assignments and the statements that choose what runs next."""

from __future__ import annotations

import ast

from convlint.readers.python.evaluator.compiler import Compiler, Store, nothing
from convlint.readers.python.evaluator.paths import BREAKS, CONTINUES, GOES_ON, RAISES, RETURNS, Run
from convlint.readers.python.evaluator.scope import Scope
from convlint.readers.python.evaluator.values import NONE, Items, Value, unknown


def store(compiler: Compiler, node: ast.expr) -> Store:
    """What binds a value to a target."""
    if isinstance(node, ast.Name):
        return _name(compiler, node.id)
    if isinstance(node, ast.Attribute):
        receiver, attr = compiler.expression(node.value), node.attr
        return lambda scope, value: scope.machine.set_attribute(receiver(scope), attr, value)
    if isinstance(node, ast.Subscript):
        receiver, at = compiler.expression(node.value), node
        index = compiler.expression(node.slice)
        return lambda scope, value: scope.machine.items.put(receiver(scope), index(scope), value, at, scope.file)
    if isinstance(node, (ast.Tuple, ast.List)):
        return _several(compiler, node)
    if isinstance(node, ast.Starred):
        return compiler.store(node.value)
    return lambda _, __: None


def _name(compiler: Compiler, text: str) -> Store:
    if compiler.own is not None and text not in compiler.own:

        def put_outside(scope: Scope, value: Value) -> None:
            at = scope.parent
            while at is not None and at.parent is not None and text not in at.variables:
                at = at.parent
            if at is not None:
                scope.machine.journals.touch(at)
                at.variables[text] = value

        return put_outside

    def put(scope: Scope, value: Value) -> None:
        scope.variables[text] = value

    return put


def _several(compiler: Compiler, node: ast.Tuple | ast.List) -> Store:
    targets = [compiler.store(target) for target in node.elts]
    star = next((at for at, target in enumerate(node.elts) if isinstance(target, ast.Starred)), None)

    def unpack(scope: Scope, value: Value) -> None:
        items = scope.machine.iterate(value)
        if items is None and isinstance(value, Items):
            value = unknown(value.why)
        if items is None or (len(items) != len(targets) if star is None else len(items) < len(targets) - 1):
            open_ = scope.machine.part_of(value)
            for put in targets:
                put(scope, open_)
            return
        if star is not None:
            after = len(targets) - star - 1
            end = len(items) - after
            items = [*items[:star], Items("list", items[star:end]), *items[end:]]
        for put, item in zip(targets, items, strict=True):
            put(scope, item)

    return unpack


def _bound_name(target: ast.expr) -> str:
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, ast.Attribute):
        return target.attr
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        return target.slice.value if isinstance(target.slice.value, str) else _bound_name(target.value)
    return ""


def assign(compiler: Compiler, node: ast.Assign) -> Run:
    """`a = b = value`; `a, b = 1, 2` binds each literal to its own name."""
    stores = [compiler.store(target) for target in node.targets]
    first = node.targets[0]
    if isinstance(first, ast.Tuple) and isinstance(node.value, ast.Tuple) and len(first.elts) == len(node.value.elts) \
            and not any(isinstance(item, ast.Starred) for item in (*first.elts, *node.value.elts)):  # fmt: skip
        makes = [compiler.expression(value, _bound_name(target))
                 for target, value in zip(first.elts, node.value.elts, strict=True)]  # fmt: skip

        def make(scope: Scope) -> Value:
            return Items("tuple", [each(scope) for each in makes])
    else:
        make = compiler.expression(node.value, _bound_name(first))  # type: ignore[assignment]
    if len(stores) == 1:
        put = stores[0]

        def run_one(scope: Scope) -> int:
            put(scope, make(scope))
            return GOES_ON

        return run_one

    def run(scope: Scope) -> int:
        value = make(scope)
        for each in stores:
            each(scope, value)
        return GOES_ON

    return run


def annotated(compiler: Compiler, node: ast.AnnAssign) -> Run:
    """`a: int = value`."""
    if node.value is None:
        return nothing
    put, make = compiler.store(node.target), compiler.expression(node.value, _bound_name(node.target))

    def run(scope: Scope) -> int:
        put(scope, make(scope))
        return GOES_ON

    return run


def augmented(compiler: Compiler, node: ast.AugAssign) -> Run:
    """`a += value`: a list is changed in its place."""
    target = node.target
    reading: ast.expr
    if isinstance(target, ast.Name):
        reading = ast.copy_location(ast.Name(target.id, ast.Load()), target)
    elif isinstance(target, ast.Attribute):
        reading = ast.copy_location(ast.Attribute(target.value, target.attr, ast.Load()), target)
    else:
        reading = ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
    read, put = compiler.expression(reading), compiler.store(target)
    make, kind = compiler.expression(node.value, _bound_name(target)), node.op.__class__

    def run(scope: Scope) -> int:
        machine, held, value = scope.machine, read(scope), make(scope)
        if isinstance(held, Items) and held.kind == "list" and kind is ast.Add:
            machine.items.extend(held, value)
            return GOES_ON
        put(scope, machine.items.binary(kind, held, value, node))
        return GOES_ON

    return run


def expression(compiler: Compiler, node: ast.Expr) -> Run | None:
    """An expression for its effect."""
    if isinstance(node.value, ast.Constant):
        return None
    make = compiler.expression(node.value)

    def run(scope: Scope) -> int:
        make(scope)
        return GOES_ON

    return run


def returned(compiler: Compiler, node: ast.Return) -> Run:
    """`return value`."""
    make = compiler.expression(node.value) if node.value is not None else lambda _: NONE

    def run(scope: Scope) -> int:
        scope.value = make(scope)
        return RETURNS

    return run


def ending(how: int) -> Run:
    """`raise`, `break`, `continue`."""
    return lambda _: how


def raised(_: Compiler, __: ast.Raise) -> Run:
    """`raise`: nobody goes on from there."""
    return ending(RAISES)


def broken(_: Compiler, __: ast.Break) -> Run:
    """`break`."""
    return ending(BREAKS)


def continued(_: Compiler, __: ast.Continue) -> Run:
    """`continue`."""
    return ending(CONTINUES)


def asserted(compiler: Compiler, node: ast.Assert) -> Run:
    """`assert test`: what fails it ends there."""
    test = compiler.expression(node.test)

    def run(scope: Scope) -> int:
        return RAISES if scope.machine.truth(test(scope)) is False else GOES_ON

    return run


def deleted(compiler: Compiler, node: ast.Delete) -> Run:
    """`del value[index]`, `del value.name`."""
    runs: list[Run] = []
    for target in node.targets:
        if isinstance(target, (ast.Attribute, ast.Subscript)):
            runs.append(_deletion(compiler, target))

    def run(scope: Scope) -> int:
        for each in runs:
            each(scope)
        return GOES_ON

    return run


def _deletion(compiler: Compiler, target: ast.Attribute | ast.Subscript) -> Run:
    receiver = compiler.expression(target.value)
    if isinstance(target, ast.Attribute):
        attr = target.attr

        def delete_attribute(scope: Scope) -> int:
            scope.machine.delete_attribute(receiver(scope), attr)
            return GOES_ON

        return delete_attribute
    index = compiler.expression(target.slice)

    def delete_item(scope: Scope) -> int:
        scope.machine.items.delete(receiver(scope), index(scope), target, scope.file)
        return GOES_ON

    return delete_item
