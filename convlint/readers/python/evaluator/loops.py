"""Loops: unrolled where what they go through is known, else run once for all rounds."""

from __future__ import annotations

import ast

from convlint.readers.python.evaluator.compiler import Compiler, Store
from convlint.readers.python.evaluator.limits import ROUNDS
from convlint.readers.python.evaluator.paths import BREAKS, CONTINUES, GOES_ON, RAISES, RETURNS, Loop, Run, fork, leave
from convlint.readers.python.evaluator.scope import Scope
from convlint.readers.python.evaluator.values import Items, Unknown, Value, unknown
from convlint.readers.python.evaluator.widening import Blur, blurring, unforeseen

MOST_AGAIN = 2  # loops within one another of which the body is run again for what its first round changed


def iterated(compiler: Compiler, node: ast.For | ast.AsyncFor) -> Run:
    """`for target in values: ...`."""
    over, put = compiler.expression(node.iter), compiler.store(node.target)
    body, orelse = compiler.block(node.body), compiler.block(node.orelse)
    blur = blurring(compiler, node.body, node.target)

    def run(scope: Scope) -> int:
        values = over(scope)
        items = scope.machine.iterate(values)
        if items is None or len(items) > ROUNDS:
            why = values.why if isinstance(values, (Unknown, Items)) else "limit" if items else "call"
            open_ = scope.machine.part_of(values)
            how = _once(scope, blur, why, lambda at: _assigned(at, put, open_, body))
        else:
            how = _unrolled(scope, items, put, body)
            if how == BREAKS:
                return GOES_ON
        return how or orelse(scope)

    return run


def _assigned(scope: Scope, put: Store, value: Value, body: Run) -> int:
    put(scope, value)
    return body(scope)


def _unrolled(scope: Scope, items: list[Value], put: Store, body: Run) -> int:
    """How the loop ends: BREAKS, or as its body did."""
    loop = Loop()
    scope.loops.append(loop)
    how = GOES_ON
    conditions = scope.machine.conditions
    mark = len(conditions)
    for item in items:
        scope.machine.step()
        put(scope, item)
        how = body(scope)
        if loop.again.journal is not None and loop.again.settle(scope, alive=_settled(scope, how, loop)):
            how = GOES_ON
        del conditions[mark:]
        if how == CONTINUES:
            how = GOES_ON
        if how:
            break
    scope.loops.pop()
    if loop.out.journal is not None and loop.out.settle(scope, alive=_leaves(scope, how, loop)):
        return GOES_ON
    return how


def _settled(scope: Scope, how: int, loop: Loop) -> bool:
    """Whether the path of this round goes on in the next; where others do, one that leaves is sent on its way."""
    if how in (GOES_ON, CONTINUES):
        return True
    if how in (RETURNS, BREAKS):
        leave(scope, how, loop.again)
    return False


def _leaves(scope: Scope, how: int, loop: Loop) -> bool:
    if how in (GOES_ON, BREAKS):
        return True
    if how == RETURNS:
        leave(scope, how, loop.out)
    return False


def repeated(compiler: Compiler, node: ast.While) -> Run:
    """`while test: ...`."""
    test = compiler.expression(node.test)
    body, orelse = compiler.block(node.body), compiler.block(node.orelse)
    blur = blurring(compiler, node.body, None)
    endless = isinstance(node.test, ast.Constant)

    def run(scope: Scope) -> int:
        machine = scope.machine
        truth = machine.truth(test(scope))
        rounds = 0
        while truth and not endless and rounds < ROUNDS:
            how = _unrolled(scope, [unknown("call")], lambda _, __: None, body)
            if how == BREAKS:
                return GOES_ON
            if how:
                return how
            rounds += 1
            truth = machine.truth(test(scope))
        if truth is False:
            return orelse(scope)
        return _once(scope, blur, "limit" if truth else "branch", body)

    return run


def _once(scope: Scope, blur: Blur, why: str, body: Run) -> int:
    """Run the body once for any number of rounds: what it changes is unknown before it, and so is whether it runs."""
    blur(scope, why)
    scope.open_yields = True
    machine = scope.machine
    if machine.again >= MOST_AGAIN:
        return _maybe(scope, body)
    variables, recorded = dict(scope.variables), len(machine.recorded)
    journal = machine.journals.begin()
    machine.again += 1
    how = _maybe(scope, body)
    machine.again -= 1
    more = unforeseen(scope, journal, why)
    if not more:
        machine.journals.end(journal)
        return how
    machine.journals.undo(journal)
    scope.variables = variables
    del machine.recorded[recorded:]
    for change in more:
        change()
    return _maybe(scope, body)


def _maybe(scope: Scope, body: Run) -> int:
    def one_round(at: Scope) -> int:
        loop = Loop()
        at.loops.append(loop)
        how = body(at)
        alive = how in (GOES_ON, BREAKS, CONTINUES)
        if loop.again.journal is not None or loop.out.journal is not None:
            if how == RETURNS:
                leave(at, how, loop.again if loop.again.journal is not None else loop.out)
            alive = loop.again.settle(at, alive=alive)
            alive = loop.out.settle(at, alive=alive)
            how = GOES_ON if alive else RAISES
        at.loops.pop()
        return GOES_ON if alive else how

    return fork(scope, one_round, lambda _: GOES_ON)
