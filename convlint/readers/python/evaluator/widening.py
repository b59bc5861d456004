"""What a loop changes that is run once for any number of rounds: unknown before its body runs."""

from __future__ import annotations

import ast
from collections.abc import Callable

from convlint.readers.python.evaluator import names_of
from convlint.readers.python.evaluator.compiler import Compiler, Eval
from convlint.readers.python.evaluator.joining import same
from convlint.readers.python.evaluator.journal import Journal
from convlint.readers.python.evaluator.scope import Scope
from convlint.readers.python.evaluator.values import NONE, Instance, Items, Table, Value, unknown

Blur = Callable[[Scope, str], None]


def blurring(compiler: Compiler, body: list[ast.stmt], target: ast.expr | None) -> Blur:
    """What makes unknown all that the body assigns or changes by name."""
    made: list[tuple[set[str], dict[str, Eval], set[str], set[tuple[str, str]]]] = []

    def make() -> tuple[set[str], dict[str, Eval], set[str], set[tuple[str, str]]]:
        names = names_of.bound([*body, target] if target is not None else body)
        objects, attributes = names_of.changed(body)
        read = objects | {text for text, _ in attributes}
        return names, {text: compiler.expression(ast.Name(text, ast.Load())) for text in read}, objects, attributes

    def blur(scope: Scope, why: str) -> None:
        if not made:
            made.append(make())
        names, reads, objects, attributes = made[0]
        for text in names:
            if text in scope.variables:
                scope.variables[text] = unknown(why)
        for text in objects:
            soften(scope, reads[text](scope), why)
        for text, attr in attributes:
            thing = reads[text](scope)
            if isinstance(thing, Instance) and attr in thing.attributes:
                _blur_attribute(scope, thing, attr, why)

    return blur


def _blur_attribute(scope: Scope, thing: Instance, attr: str, why: str) -> None:
    held = thing.attributes[attr]
    if isinstance(held, (Items, Table)):
        soften(scope, held, why)
        return
    scope.machine.journals.touch(thing)
    thing.attributes[attr] = unknown(why)


def soften(scope: Scope, thing: Value, why: str, *, keep: bool = False) -> None:
    """Nobody knows from now on what else the list or dict holds; with `keep`, what it holds is known to stay."""
    if isinstance(thing, (Items, Table)) and thing.complete:
        scope.machine.journals.touch(thing)
        thing.complete, thing.why = False, why
        if isinstance(thing, Table) and not keep:
            thing.items = {}


def unforeseen(scope: Scope, journal: Journal, why: str) -> list[Callable[[], None]]:
    """What makes unknown the rest that one round has changed, such as an attribute that a method sets."""
    found: list[Callable[[], None]] = []
    for thing, held in journal.saved.values():
        if isinstance(thing, Instance):
            found += [
                lambda thing=thing, name=name: _blur_attribute(scope, thing, name, why)  # type: ignore[misc]
                for name, value in held[0].items()
                if not same(value, thing.attributes.get(name, unknown("branch")))
            ]
        elif isinstance(thing, (Items, Table)) and held[1] and (not thing.complete or len(thing.items) != len(held[0])):
            keep = isinstance(thing, Table) and all(
                same(value, thing.items.get(key, NONE)) for key, value in held[0].items()
            )
            found.append(lambda thing=thing, keep=keep: soften(scope, thing, why, keep=keep))  # type: ignore[misc]
    return found
