"""Decide whether a context manager swallows errors of its block, which makes what the block does uncertain."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator import names_of
from convlint.readers.python.evaluator.expressions import Compiler
from convlint.readers.python.evaluator.values import (
    Class,
    Function,
    Instance,
    List,
    Name,
    Partial,
    Unknown,
    Value,
    any_true,
    unknown,
)
from convlint.readers.python.source_file import last_name
from convlint.readers.python.walking import every

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.paths import Scope

Answer = bool | None  # whether it swallows errors; None if unknown
_SWALLOWING = frozenset({"contextlib.suppress", "convlint.method.suppress"})
_OPEN = frozenset({"contextlib.ExitStack", "contextlib.AsyncExitStack"})
# Methods of unknown objects that swallow errors; all other managers from methods are mostly scopes and locks
_SWALLOWING_METHODS = frozenset({"assertRaises", "assertRaisesRegex", "raises", "suppress", "ignored", "ignoring"})
# Packages whose managers swallow no errors: scopes, devices, locks, files and pools
_PASSAGES = """
    torch torchvision torchaudio tensorflow tensorflow_addons tensorpack tf_slim sonnet keras keras_core paddle jax flax
    haiku mxnet gluoncv mindspore oneflow chainer theano lasagne numpy cupy accelerate deepspeed transformers diffusers
    lightning pytorch_lightning mmcv mmengine fvcore detectron2 timm apex horovod onnx onnxruntime tensorrt builtins
    contextlib warnings threading multiprocessing concurrent asyncio io os tempfile gzip bz2 lzma zipfile tarfile
    decimal socket sqlite3 subprocess urllib requests PIL h5py tqdm abc typing time cProfile
"""
_PASSING = frozenset(_PASSAGES.split())
_PASSING_NAMES = re.compile(r"scope|lock|mutex|device|no_grad|autocast|timer|profile|strategy|nullcontext|open$", re.I)
_DEEPEST = 3  # nested functions that return the manager of another


def swallowing(compiler: Compiler, node: ast.expr) -> Callable[[Scope, Value], Answer]:
    """Compile a function that tells whether the manager that an expression gives swallows errors."""
    match node:
        case ast.Call(func=(ast.Name() | ast.Attribute()) as written):
            evaluate = compiler.expression(written)
            return lambda scope, value: _of_call(scope, written, evaluate(scope), value, 0)
        case ast.IfExp(body=first, orelse=second):
            if_true, if_false = swallowing(compiler, first), swallowing(compiler, second)
            return lambda scope, value: any_true((if_true(scope, value), if_false(scope, value)))
        case ast.NamedExpr(value=inner):
            return swallowing(compiler, inner)
    return lambda scope, value: False if _passes(node) else _of_value(scope, value)


def _passes(written: ast.expr) -> bool:
    """Whether the last part of a name says that it is a scope or a lock."""
    return _PASSING_NAMES.search(last_name(written)) is not None


def _of_call(scope: Scope, written: ast.expr, function: Value, value: Value, depth: int) -> Answer:
    match function:
        case Name(name=name):
            return False if _passes(written) else _of_name(name)
        case Partial(function=inner):
            return _of_call(scope, written, inner, value, depth)
        case Function():
            if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in every(function.node)):
                return _of_generator(function, depth)
            return _of_value(scope, value) if isinstance(value, Instance) else _of_returned(function, depth)
        case Unknown() if isinstance(written, ast.Attribute):
            return None if written.attr in _SWALLOWING_METHODS else False
        case Unknown():
            return False if _passes(written) else None
    return _of_value(scope, value)


def _of_name(name: str) -> Answer:
    if name in _SWALLOWING:
        return True
    if name.startswith("convlint.method."):
        return None if name.rpartition(".")[2] in _SWALLOWING_METHODS else False
    return None if name in _OPEN or name.partition(".")[0] not in _PASSING else False


def _of_value(scope: Scope, value: Value) -> Answer:
    match value:
        case Instance(cls=Class() as cls):
            calls = scope.machine.calls
            leave = calls.method_of(value, "__exit__") or calls.method_of(value, "__aexit__")
            if isinstance(leave, Function):
                return _of_exit(leave)
            bases = [base for base in cls.order or () if not isinstance(base, Class)]
            answers = [_of_name(base.name) if isinstance(base, Name) else None for base in bases]
            return None if leave is not None else any_true(answers)
        case Instance(cls=Name(name=name)) | Name(name=name):
            return _of_name(name)
        case Unknown() | List() | Partial():
            return None
    return False


def _of_exit(leave: Function) -> Answer:
    """Whether `__exit__` may return something true, by which it swallows the error."""
    return not all(node is None or (isinstance(node, ast.Constant) and not node.value) for node in _results(leave))


def _of_generator(function: Function, depth: int) -> Answer:
    """Whether a `contextlib.contextmanager` has a `try` around its `yield` that catches what the block raises."""
    answers: list[Answer] = [False]
    for node in every(function.node):
        # contextlib raises the block's error at the `yield`.
        if isinstance(node, (ast.Try, ast.TryStar)) and _yields(node.body):
            # A `return` in a `finally` drops the error as well.
            handled = any(not isinstance(handler.body[-1], ast.Raise) for handler in node.handlers)
            answers.append(handled or any(isinstance(last, ast.Return) for last in names_of.within(node.finalbody)))
        elif isinstance(node, (ast.With, ast.AsyncWith)) and _yields(node.body):
            answers += [_written(function, item.context_expr, depth) for item in node.items]
    return any_true(answers)


def _yields(body: list[ast.stmt]) -> bool:
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in names_of.within(body))


def _of_returned(function: Function, depth: int) -> Answer:
    """Whether a function returns a manager that swallows errors."""
    results = _results(function)
    if not results:
        return None
    return any_true([_written(function, node, depth) if node is not None else False for node in results])


def _results(function: Function) -> list[ast.expr | None]:
    """Return the expressions whose values a function returns; None for a bare `return`."""
    node = function.node
    if isinstance(node, ast.Lambda):
        return [node.body]
    return [statement.value for statement in names_of.within(node.body) if isinstance(statement, ast.Return)]


def _written(function: Function, node: ast.expr, depth: int) -> Answer:
    """Whether a manager that a function's body names swallows errors."""
    if not isinstance(node, ast.Call) or depth >= _DEEPEST:
        return False if _passes(node) else None
    return _of_call(function.scope, node.func, _evaluated(function.scope, node.func), unknown("call"), depth + 1)


def _evaluated(scope: Scope, node: ast.expr) -> Value:
    if isinstance(node, ast.Name):
        return scope.machine.modules.lookup(scope, node.id)
    return scope.machine.attribute(_evaluated(scope, node.value), node.attr) if isinstance(node, ast.Attribute) \
        else unknown("call")  # fmt: skip
