"""Under what a statement runs: the tests around it, in a form that two of them can be held against each other."""

from __future__ import annotations

import ast
from typing import Literal

from msgspec import Struct

from convlint.readers.python.programs.unit import Unit

# Roots of names that mean one thing wherever they stand in a program.
_SHARED = {"args", "opt", "opts", "cfg", "config", "hparams", "params", "flags", "FLAGS", "self", "exp", "options"}
Kind = Literal["if", "loop", "try", "elsewhere"]


class Condition(Struct, frozen=True):
    """A test that holds (`truth`) or does not. `key` is equal for tests that have one outcome in a run.

    `elsewhere`: in a function that something else is given, to call it later or in another process. `soft` conditions
    hold in every run that trains on a GPU: they stand only for what they exclude.
    """

    kind: Kind
    key: str
    truth: bool = True
    text: str = ""
    soft: bool = False


Conditions = tuple[Condition, ...]


def tested(test: ast.expr, truth: bool, unit: Unit, owner: str) -> Conditions:
    """What holds in the branch of `test` that is taken for `truth`; `owner` is the function that it stands in."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return tested(test.operand, not truth, unit, owner)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if truth else ast.Or):
        return tuple(each for value in test.values for each in tested(value, truth, unit, owner))
    text = ast.unparse(test)
    for opposite, plain in ((" is not None", " is None"), (" != ", " == "), (" not in ", " in ")):
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and opposite in text:
            written = text if truth else text.replace(opposite, plain)
            return (_condition(text.replace(opposite, plain), not truth, written, unit, owner),)
    return (_condition(text, truth, text if truth else f"not ({text})", unit, owner),)


def _condition(normal: str, truth: bool, text: str, unit: Unit, owner: str) -> Condition:
    shared = normal.split(".")[0] in _SHARED and "." in normal
    soft = normal in ("torch.cuda.is_available()", "cuda.is_available()")
    return Condition("if", normal if shared or soft else f"{unit.path}:{owner}:{normal}", truth, text, soft)


def certain(conditions: Conditions) -> bool:
    """Whether every run of the program that trains on a GPU comes by."""
    return all(each.soft and (each.truth or each.text == "") for each in conditions)


def exclude(one: Conditions, other: Conditions) -> bool:
    """Whether no run can pass both, as far as that can be seen."""
    truths = {each.key: each.truth for each in one}
    return any(truths.get(each.key, each.truth) is not each.truth for each in other)


def implied(one: Conditions, other: Conditions) -> bool:
    """Whether a run that passes `other` passes `one`: all that `one` asks for is asked for there."""
    asked = {(each.key, each.truth) for each in other}
    return all(each.soft or (each.key, each.truth) in asked for each in one)


def together(one: Conditions, other: Conditions) -> bool:
    """Whether a run that passes one of them passes the other one too, in the same process."""
    elsewhere = [{each.key for each in both if each.kind == "elsewhere"} for both in (one, other)]
    return elsewhere[0] == elsewhere[1] and not exclude(one, other) and (implied(one, other) or implied(other, one))


def guard(conditions: Conditions) -> str:
    """The tests as written, for people."""
    return " and ".join(dict.fromkeys(each.text for each in conditions if each.text))
