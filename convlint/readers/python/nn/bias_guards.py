"""Tests after which a bias is known to be there, or to be that of no convolution: by the expression that has it."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from convlint.readers.python.walking import every

_OTHER_KIND = ("norm", "linear", "dense", "embedding", "lstm", "gru", "rnn")
# the name of one class, as against that of several: BatchNorm2d, and neither LINEAR_LAYERS nor norm_layer
_CLASS = re.compile(r"_?([A-Z][a-z]*)*(Norm|Linear|Dense|Embedding|LSTM|GRU|RNN)([1-3][dD]|Base|Bag|Cell)?")


class Known(NamedTuple):
    """What holds from here on, until any of `names` is set again.

    Without `by`, the bias of `holder` cannot fail. With both, the variable `by` has the name of the holder's class;
    without a holder, that variable is known to have the name of another kind of layer.
    """

    holder: str
    names: frozenset[str]
    by: str = ""


Facts = frozenset[Known]
_NOTHING: Facts = frozenset()


def cannot_fail(holder: ast.expr, there: Facts) -> bool:
    """Whether the bias of this expression is there, or is no convolution's."""
    if not there:
        return False
    key = ast.dump(holder)
    asked = {"", *(each.by for each in there if not each.holder)}
    return any(each.holder == key and each.by in asked for each in there)


def class_named(statement: ast.stmt) -> Facts:
    """What `name = m.__class__.__name__` says."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if (holder := _with_class_name(value)) is not None:
            return frozenset((Known(ast.dump(holder), names_in(holder) | {name}, name),))
        case _:
            return _NOTHING


def names_in(node: ast.AST, *, stored: bool = False) -> frozenset[str]:
    """The variables and attributes that code has, or no more than those that it sets or deletes."""
    return frozenset(
        each.id if isinstance(each, ast.Name) else each.attr
        for each in every(node)
        if isinstance(each, (ast.Name, ast.Attribute)) and not (stored and isinstance(each.ctx, ast.Load))
    )


def without(there: Facts, names: frozenset[str]) -> Facts:
    """What still holds where these were set."""
    return frozenset(each for each in there if each.names.isdisjoint(names)) if there and names else there


def names_other_kind(text: str) -> bool:
    """Whether the name of a class, or a part of it, is that of a layer with a bias that is no convolution."""
    name = text.lower()
    return "conv" not in name and any(kind in name for kind in _OTHER_KIND)


class Guards(NamedTuple):
    """What tests say in a file that sets these `variables`: none of them is taken for a class."""

    variables: frozenset[str]

    def where_true(self, test: ast.expr) -> Facts:
        """What is known where the test holds."""
        match test:
            case ast.BoolOp(op=ast.And(), values=values):
                return _NOTHING.union(*map(self.where_true, values))
            case ast.BoolOp(op=ast.Or(), values=values):
                return frozenset.intersection(*map(self.where_true, values))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.where_false(operand)
            case ast.Compare(left=left, ops=[ast.IsNot() | ast.NotEq()], comparators=[ast.Constant(value=None)]):
                return _asked(left)
            case ast.Compare():
                return self._by_name(test)
            case ast.Call(func=ast.Name(id="isinstance"), args=[holder, kinds]):
                return _known(holder) if self._is_other(kinds) else _NOTHING
            case _:
                return _asked(test)

    def where_false(self, test: ast.expr) -> Facts:
        """What is known where the test does not hold."""
        match test:
            case ast.BoolOp(op=ast.Or(), values=values):
                return _NOTHING.union(*map(self.where_false, values))
            case ast.BoolOp(op=ast.And(), values=values):
                return frozenset.intersection(*map(self.where_false, values))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.where_true(operand)
            case ast.Compare(left=left, ops=[ast.Is() | ast.Eq()], comparators=[ast.Constant(value=None)]):
                return _asked(left)
            case _:
                return _NOTHING

    def _by_name(self, test: ast.Compare) -> Facts:
        """Of tests such as `name.find("BatchNorm") != -1`, `"Norm" in name` and `type(m) is nn.Linear`."""
        match test:
            case ast.Compare(
                left=ast.Call(func=ast.Attribute(value=text, attr="find"), args=[ast.Constant(value=str(name))]),
                ops=[ast.NotEq() | ast.Gt() | ast.GtE()],
            ):
                return _says(text) if names_other_kind(name) else _NOTHING
            case ast.Compare(left=ast.Constant(value=str(name)), ops=[ast.In()], comparators=[text]):
                return _says(text) if names_other_kind(name) else _NOTHING
            case ast.Compare(
                left=ast.Call(func=ast.Name(id="type"), args=[holder]),
                ops=[ast.Is() | ast.Eq() | ast.In()],
                comparators=[kinds],
            ):
                return _known(holder) if self._is_other(kinds) else _NOTHING
            case _:
                return _NOTHING

    def _is_other(self, kinds: ast.expr) -> bool:
        """Whether a class, or each of several, has the name of a layer that is no convolution."""
        match kinds:
            case ast.Tuple(elts=each) | ast.List(elts=each) | ast.Set(elts=each):
                return bool(each) and all(map(self._is_other, each))
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return self._is_other(left) and self._is_other(right)
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                return False
            case ast.Attribute(attr=name) | ast.Name(id=name):
                return name not in self.variables and names_other_kind(name) and bool(_CLASS.fullmatch(name))
            case _:
                return False


def _known(holder: ast.expr) -> Facts:
    return frozenset((Known(ast.dump(holder), names_in(holder)),))


def _asked(value: ast.expr) -> Facts:
    """Of `m.bias` and `getattr(m, "bias", None)`."""
    match value:
        case ast.Attribute(value=holder, attr="bias"):
            return _known(holder)
        case ast.Call(func=ast.Name(id="getattr"), args=[holder, ast.Constant(value="bias"), *_]):
            return _known(holder)
        case _:
            return _NOTHING


def _says(text: ast.expr) -> Facts:
    """Of the name of a class, or of a variable that may have it."""
    holder = _with_class_name(text)
    if holder is not None:
        return _known(holder)
    return frozenset((Known("", frozenset((text.id,)), text.id),)) if isinstance(text, ast.Name) else _NOTHING


def _with_class_name(value: ast.expr) -> ast.expr | None:
    """Of `m.__class__.__name__` and `type(m).__name__` m."""
    match value:
        case ast.Attribute(value=ast.Attribute(value=holder, attr="__class__"), attr="__name__" | "__qualname__"):
            return holder
        case ast.Attribute(value=ast.Call(func=ast.Name(id="type"), args=[holder]), attr="__name__" | "__qualname__"):
            return holder
        case ast.Call(func=ast.Name(id="str"), args=[value]):
            return _with_class_name(value)
        case _:
            return None
