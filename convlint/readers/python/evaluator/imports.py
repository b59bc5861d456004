"""Import statements: modules of the repository are run when a name of theirs is read, all else is a name."""

from __future__ import annotations

import ast

from convlint.readers.python.evaluator.compiler import Compiler
from convlint.readers.python.evaluator.paths import GOES_ON, Run
from convlint.readers.python.evaluator.scope import Scope


def plain(compiler: Compiler, node: ast.Import) -> Run:
    """`import a.b as c`."""
    names = [(each.name, each.asname) for each in node.names]
    stores = [compiler.store(_target(node, asname or name.split(".")[0])) for name, asname in names]

    def run(scope: Scope) -> int:
        for (name, asname), put in zip(names, stores, strict=True):
            put(scope, scope.machine.modules.imported(name, scope.file, whole=asname is not None))
        return GOES_ON

    return run


def from_module(compiler: Compiler, node: ast.ImportFrom) -> Run:
    """`from a import b as c`, `from .a import *`."""
    module, level = node.module or "", node.level
    names = [(each.name, compiler.store(_target(node, each.asname or each.name)))
             for each in node.names if each.name != "*"]  # fmt: skip
    star = any(each.name == "*" for each in node.names)

    def run(scope: Scope) -> int:
        modules = scope.machine.modules
        if star:
            modules.import_all(module, level, scope)
        for name, put in names:
            put(scope, modules.member_of(module, level, name, scope.file))
        return GOES_ON

    return run


def _target(node: ast.stmt, name: str) -> ast.Name:
    return ast.copy_location(ast.Name(name, ast.Store()), node)
