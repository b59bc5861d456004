"""Tests after which a bias is known to be there, or to be that of no convolution: by the expression that has it."""

from __future__ import annotations

import ast

KINDS = "*"  # for the key: all that a test by the name of a class lets through
_OTHER_KIND = ("norm", "linear", "dense", "embedding", "lstm", "gru", "rnn")
_NOTHING: frozenset[str] = frozenset()


def key_of(holder: ast.expr) -> str:
    """What is the same for the same expression."""
    return ast.dump(holder)


def where_true(test: ast.expr) -> frozenset[str]:
    """The holders whose bias cannot fail where the test holds."""
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            return _NOTHING.union(*map(where_true, values))
        case ast.BoolOp(op=ast.Or(), values=values):
            return frozenset.intersection(*map(where_true, values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return where_false(operand)
        case ast.Compare(left=left, ops=[ast.IsNot() | ast.NotEq()], comparators=[ast.Constant(value=None)]):
            return _holder(left)
        case ast.Compare():
            return _by_name(test)
        case ast.Call(func=ast.Name(id="isinstance"), args=[holder, kinds]):
            return frozenset((key_of(holder),)) if _is_other(kinds) else _NOTHING
        case _:
            return _holder(test)


def where_false(test: ast.expr) -> frozenset[str]:
    """The holders whose bias cannot fail where the test does not hold."""
    match test:
        case ast.BoolOp(op=ast.Or(), values=values):
            return _NOTHING.union(*map(where_false, values))
        case ast.BoolOp(op=ast.And(), values=values):
            return frozenset.intersection(*map(where_false, values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return where_true(operand)
        case ast.Compare(left=left, ops=[ast.Is() | ast.Eq()], comparators=[ast.Constant(value=None)]):
            return _holder(left)
        case _:
            return _NOTHING


def names_other_kind(text: str) -> bool:
    """Whether the name of a class, or a part of it, is that of a layer with a bias that is no convolution."""
    name = text.lower()
    return "conv" not in name and any(kind in name for kind in _OTHER_KIND)


def _holder(value: ast.expr) -> frozenset[str]:
    """Of `m.bias` and `getattr(m, "bias", None)`."""
    match value:
        case ast.Attribute(value=holder, attr="bias"):
            return frozenset((key_of(holder),))
        case ast.Call(func=ast.Name(id="getattr"), args=[holder, ast.Constant(value="bias"), *_]):
            return frozenset((key_of(holder),))
        case _:
            return _NOTHING


def _by_name(test: ast.Compare) -> frozenset[str]:
    """Of tests such as `name.find("BatchNorm") != -1`, `"Norm" in name` and `type(m) is nn.Linear`."""
    match test:
        case ast.Compare(
            left=ast.Call(func=ast.Attribute(attr="find"), args=[ast.Constant(value=str(name))]),
            ops=[ast.NotEq() | ast.Gt() | ast.GtE()],
        ):
            return frozenset((KINDS,)) if names_other_kind(name) else _NOTHING
        case ast.Compare(left=ast.Constant(value=str(name)), ops=[ast.In()]):
            return frozenset((KINDS,)) if names_other_kind(name) else _NOTHING
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="type"), args=[holder]),
            ops=[ast.Is() | ast.Eq() | ast.In()],
            comparators=[kinds],
        ):
            return frozenset((key_of(holder),)) if _is_other(kinds) else _NOTHING
        case _:
            return _NOTHING


def _is_other(kinds: ast.expr) -> bool:
    """Whether a class, or each of several, has the name of a layer that is no convolution."""
    match kinds:
        case ast.Tuple(elts=each) | ast.List(elts=each) | ast.Set(elts=each):
            return bool(each) and all(map(_is_other, each))
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _is_other(left) and _is_other(right)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return names_other_kind(name)
        case _:
            return False
