"""Which code puts norms into evaluation, where they may stay: their statistics are constants then."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from convlint.readers.python.walking import every

_Method = ast.FunctionDef | ast.AsyncFunctionDef


def freezes_norms(tree: ast.Module) -> bool:
    """Whether code puts norms into evaluation, and they may stay there."""
    return any(
        _holds(node) if isinstance(node, ast.ClassDef) else _evaluates_tested(node) or _evaluates_made(node)
        for node in every(tree)
    )


def freezes_tested_norms(tree: ast.Module) -> bool:
    """Whether it puts the very module into evaluation that a test takes for a norm: what it does to any network."""
    tested = [node for node in every(tree) if _evaluates_tested(node)]
    ties = _ties(tree) if tested else {}
    return any(
        each.id in names or ties.get(each.id, set()) & names
        for node in tested
        for names in [_said(node)]
        for each in _evaluated([node])
        if isinstance(each, ast.Name)
    )


def _said(node: ast.AST) -> set[str]:
    """The names in a test, or in those of a comprehension."""
    match node:
        case ast.If(test=test):
            tests = [test]
        case ast.ListComp(generators=loops) | ast.GeneratorExp(generators=loops):
            tests = [test for loop in loops for test in loop.ifs]
        case _:
            tests = []
    return {each.id for test in tests for each in every(test) if isinstance(each, ast.Name)}


def _ties(tree: ast.Module) -> dict[str, set[str]]:
    """The names that stand for the name or the class of a module: `for name, m in ...`, `name = type(m).__name__`."""
    ties: dict[str, set[str]] = {}
    for node in every(tree):
        match node:
            case (
                ast.For(target=ast.Tuple(elts=[ast.Name(id=name), ast.Name(id=module)]))
                | ast.comprehension(target=ast.Tuple(elts=[ast.Name(id=name), ast.Name(id=module)]))
            ):
                ties.setdefault(module, set()).add(name)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _asks_class(value):
                for each in every(value):
                    if isinstance(each, ast.Name):
                        ties.setdefault(each.id, set()).add(name)
            case _:
                pass
    return ties


def _asks_class(value: ast.expr) -> bool:
    text = ast.unparse(value)
    return "__name__" in text or "__class__" in text or "type(" in text or "isinstance(" in text


def _evaluates_made(node: ast.AST) -> bool:
    """Whether a norm, or what holds one, is evaluated where it is made, or in the function that makes it."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call() as made)):
            return _constructs(made) and any(each is made for each in _evaluated([node]))
        case ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body):
            evaluated = {each.id for each in _evaluated(body) if isinstance(each, ast.Name)}
            return bool(evaluated) and not evaluated.isdisjoint(_made_in(node))
        case _:
            return False


def _made_in(function: ast.AST) -> set[str]:
    """The names that a function gives to what it makes with norms, and does not train."""
    made: set[str] = set()
    trained: set[str] = set()
    for node in every(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _constructs(value):
                made.add(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="train")) if _trains(node):
                trained.add(name)
            case _:
                pass
    return made - trained


def _constructs(value: ast.expr) -> bool:
    return any(isinstance(each, ast.Call) and _names_class(each.func) for each in every(value))


def _names_class(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name[:1].isupper() and _is_norm(name)


def _holds(cls: ast.ClassDef) -> bool:
    """Whether a class evaluates parts of itself whatever its mode, or one that is a norm by its name."""
    evaluated = list(_evaluated([cls]))
    own = {each.attr for each in evaluated if isinstance(each, ast.Attribute) and _is_self(each.value)}
    if any(map(_is_norm, own)) or (evaluated and any(map(_overrides_train, cls.body))):
        return True
    return bool(own) and any(_makes_norm(node, own) for node in every(cls))


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
        for node in every(method)
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
        for node in every(test):
            match node:
                case ast.Constant(value=str(name)) | ast.Attribute(attr=name) | ast.Name(id=name) if _is_norm(name):
                    return True
                case _:
                    pass
    return False


def _is_norm(name: str) -> bool:
    return "norm" in name.lower() or "bn" in name.lower()


def _evaluated(code: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """What is put into evaluation: by `.eval()`, `.train(False)` or `.training = False`.

    The last two count of parts alone: a module that writes them of itself says its own mode.
    """
    for each in code:
        for node in every(each):
            match node:
                case ast.Call(func=ast.Attribute(value=holder, attr="eval"), args=[], keywords=[]):
                    yield holder
                case (
                    ast.Call(
                        func=ast.Attribute(value=holder, attr="train"),
                        args=[ast.Constant(value=False)] | [],
                        keywords=[ast.keyword(arg="mode", value=ast.Constant(value=False))] | [],
                    )
                    | ast.Assign(
                        targets=[ast.Attribute(value=holder, attr="training")], value=ast.Constant(value=False)
                    )
                ) if not _is_self(holder) and not _trains(node):
                    yield holder
                case _:
                    pass


def _trains(node: ast.AST) -> bool:
    """Whether it is `.train()`."""
    return isinstance(node, ast.Call) and not node.args and not node.keywords


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
