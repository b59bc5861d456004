"""Which code puts norms into evaluation, where they may stay: their statistics are constants then."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_Method = ast.FunctionDef | ast.AsyncFunctionDef


def freezes_norms(tree: ast.Module) -> bool:
    """Whether code puts norms into evaluation, and they may stay there."""
    return any(
        _holds(node) if isinstance(node, ast.ClassDef) else _evaluates_tested(node) for node in ast.walk(tree)
    )  # fmt: skip


def _holds(cls: ast.ClassDef) -> bool:
    """Whether a class evaluates parts of itself whatever its mode, or one that is a norm by its name."""
    evaluated = list(_evaluated([cls]))
    own = {each.attr for each in evaluated if isinstance(each, ast.Attribute) and _is_self(each.value)}
    if any(map(_is_norm, own)) or (evaluated and any(map(_overrides_train, cls.body))):
        return True
    return bool(own) and any(_makes_norm(node, own) for node in ast.walk(cls))


def _makes_norm(node: ast.AST, attributes: set[str]) -> bool:
    """Whether it sets one of these attributes of `self` to a norm."""
    match node:
        case ast.Assign(targets=[ast.Attribute(value=holder, attr=name)], value=ast.Call(func=function)):
            return name in attributes and _is_self(holder) and _names_norm([function])
        case _:
            return False


def _overrides_train(method: ast.stmt) -> bool:
    """Whether it is `train` of a module, and not what trains one."""
    if not isinstance(method, _Method) or method.name != "train":
        return False
    modes = any(each.arg == "mode" for each in (*method.args.args, *method.args.kwonlyargs))
    return modes or any(
        isinstance(node, ast.Call) and ast.unparse(node.func) in ("super().train", "nn.Module.train")
        for node in ast.walk(method)
    )


def _evaluates_tested(node: ast.AST) -> bool:
    """Whether what a test takes for a norm is evaluated."""
    match node:
        case ast.If(test=test, body=body):
            return _names_norm([test]) and _evaluates(body)
        case ast.ListComp(elt=elt, generators=loops) | ast.GeneratorExp(elt=elt, generators=loops):
            return _evaluates([elt]) and _names_norm(test for loop in loops for test in loop.ifs)
        case _:
            return False


def _evaluates(code: Iterable[ast.AST]) -> bool:
    return any(isinstance(each, ast.Name) for each in _evaluated(code))


def _names_norm(tests: Iterable[ast.expr]) -> bool:
    """By the name of a class: in isinstance(m, ...), type(m) or a text."""
    for test in tests:
        for node in ast.walk(test):
            match node:
                case ast.Constant(value=str(name)) | ast.Attribute(attr=name) | ast.Name(id=name) if _is_norm(name):
                    return True
                case _:
                    pass
    return False


def _is_norm(name: str) -> bool:
    return "norm" in name.lower() or "bn" in name.lower()


def _evaluated(code: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """What `.eval()` is called of."""
    for each in code:
        for node in ast.walk(each):
            match node:
                case ast.Call(func=ast.Attribute(value=holder, attr="eval"), args=[], keywords=[]):
                    yield holder
                case _:
                    pass


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
