"""A program followed from its entry in the order of its statements, for what it sets on the way."""

from __future__ import annotations

import ast

from msgspec import Struct

from convlint.readers.python.programs.assignments import ANY, assignments, scoped
from convlint.readers.python.programs.bodies import calls_in, constants, exits, local_names
from convlint.readers.python.programs.conditions import Condition, Conditions, tested
from convlint.readers.python.programs.constants import given, known, literal
from convlint.readers.python.programs.events import Event, once
from convlint.readers.python.programs.relevance import Relevant
from convlint.readers.python.programs.skipped import Passed
from convlint.readers.python.programs.targets import Scope, Target, functions_given, runs_at_once, target
from convlint.readers.python.programs.unit import Function, Unit, Units, bindings

MOST_STEPS = 400_000  # statements of all programs
_DEEPEST = 30  # calls inside each other


class _Past(Struct):
    """What holds behind a block: how it ends (`return`, `raise`, or not), and what those that go on have passed."""

    end: str = ""
    conditions: Conditions = ()


class Walk:
    """Walks through the programs of a project, which share what a function or the import of a file does.

    `cut` tells whether they were longer than anybody follows.
    """

    def __init__(self, units: Units, relevant: Relevant) -> None:
        self._units, self._relevant = units, relevant
        self._steps, self._depth, self.cut = 0, 0, False
        self._modules: dict[str, tuple[Event, ...]] = {}
        self._locals: dict[int, frozenset[str]] = {}
        self._known: dict[object, tuple[Event, ...]] = {}
        self.passed = Passed()

    def events(self, entry: str) -> tuple[Event, ...]:
        """What a program sets, in the order of a run as far as it is known."""
        unit = self._units.get(entry)
        events = self._body(unit, "__main__") if unit is not None else []
        return once(events)

    def _module(self, path: str) -> tuple[Event, ...]:
        if path not in self._modules:
            self._modules[path] = ()  # of a file that imports itself in the end
            if self._relevant.module(path) and self._relevant.passes_on(path):
                inside = (Condition("if", f"{path}:import"),)  # of which nobody knows whether it always takes place
                near = self._units.imports.near(path)
                self._modules[path] = tuple(each.under(inside) for one in near for each in self._module(one))
                return self._modules[path]
            unit = self._units.get(path) if self._relevant.module(path) else None
            if unit is not None:
                self._modules[path] = tuple(
                    Event(each.name, each.value, each.at, each.conditions, imported=True)
                    for each in self._body(unit, path)
                )
        return self._modules[path]

    def _body(self, unit: Unit, name: str) -> list[Event]:
        names = constants(unit)
        names["__name__"] = name
        return self._block(
            unit.file.tree.body, Scope(unit=unit, owner="", names=names, types={}, local=frozenset()), ()
        )[0]

    def _function(self, found: Target, call: ast.Call | None, scope: Scope) -> tuple[Event, ...]:
        unit, function = found.unit, found.function
        if not self._relevant.function(unit, function):
            return ()
        values = given(function, call, scope.names, 1 if found.bound else 0)
        key = unit.path, function.lineno, tuple(sorted((name, repr(value)) for name, value in values.items()))
        if key in self._known or self._depth >= _DEEPEST:
            return self._known.get(key, ())
        self._known[key] = ()  # of a function that calls itself
        if id(function) not in self._locals:
            self._locals[id(function)] = frozenset(local_names(function))
        local = self._locals[id(function)]
        names = {name: value for name, value in constants(unit).items() if name not in local} | values
        inner = Scope(
            unit=unit, owner=f"{function.lineno}", names=names, types={}, local=local, cls=found.cls, home=found.home
        )
        self._depth += 1
        self._known[key] = tuple(self._block(function.body, inner, ())[0])
        self._depth -= 1
        return self._known[key]

    def _block(self, body: list[ast.stmt], scope: Scope, around: Conditions) -> tuple[list[Event], _Past]:
        found: list[Event] = []
        past: Conditions = ()
        for node in body:
            self._steps += 1
            if self._steps > MOST_STEPS:
                self.cut = True
                return found, _Past(conditions=past)
            events, after = self._statement(node, scope, (*around, *past))
            found += events
            past = (*past, *after.conditions)
            if after.end:
                return found, _Past(after.end, past)
        return found, _Past(conditions=past)

    def _statement(self, node: ast.stmt, scope: Scope, around: Conditions) -> tuple[list[Event], _Past]:
        match node:
            case ast.If():
                return self._if(node, scope, around)
            case ast.For() | ast.AsyncFor() | ast.While():
                return self._loop(node, scope, around), _Past()
            case ast.Try() | ast.TryStar():
                return self._try(node, scope, around)
            case ast.With() | ast.AsyncWith():
                found = [each for item in node.items for each in self._calls(item.context_expr, scope, around)]
                if scoped(node, scope.unit):
                    inside = Condition("if", f"{scope.unit.path}:{node.lineno}")
                    return [
                        Event(ANY, None, scope.unit.file.locate(node.items[0].context_expr), (*around, inside))
                    ], _Past()
                events, past = self._block(node.body, scope, around)
                return found + events, past
            case ast.Match():
                found = self._calls(node.subject, scope, around)
                for number, case in enumerate(node.cases):
                    one = Condition("if", f"{scope.unit.path}:{node.lineno}:{number}", text=ast.unparse(case.pattern))
                    found += self._block(case.body, scope, (*around, one))[0]
                return found, _Past()
            case ast.Import() | ast.ImportFrom():
                return self._import(node, scope, around), _Past()
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return [each for one in node.decorator_list for each in self._calls(one, scope, around)], _Past()
            case ast.ClassDef():
                return self._block([each for each in node.body if not isinstance(each, Function)], scope, around)
            case ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
                end = "raise" if isinstance(node, ast.Raise) else "return"
                return self._calls(node, scope, around), _Past(end)
        return self._plain(node, scope, around)

    def _plain(self, node: ast.stmt, scope: Scope, around: Conditions) -> tuple[list[Event], _Past]:
        found = self._calls(node, scope, around)
        at = scope.unit.file.locate
        if not self._relevant.between(scope.unit, node.lineno, node.end_lineno or node.lineno):
            return found, self._ending(node, scope)
        found += [
            Event(each.name, known(each.value, scope.names), at(node), around) for each in assignments(node, scope.unit)
        ]
        for name, value in bindings(node):
            one = target(value.func, scope) if isinstance(value, ast.Call) else None
            scope.types.pop(name, None)
            if one is not None and one.made is not None:
                scope.types[name] = one.made
        return found, self._ending(node, scope)

    def _ending(self, node: ast.stmt, scope: Scope) -> _Past:
        ends = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and exits(node.value, scope.unit)
        return _Past("raise" if ends else "")

    def _if(self, node: ast.If, scope: Scope, around: Conditions) -> tuple[list[Event], _Past]:
        found = self._calls(node.test, scope, around)
        decided = known(node.test, scope.names)
        if decided is not None:
            self.passed.branch(node.orelse if decided[0] else node.body, node.test, scope.unit)
            events, past = self._block(node.body if decided[0] else node.orelse, scope, around)
            return found + events, past
        sides = [tested(node.test, truth, scope.unit, scope.owner) for truth in (True, False)]
        results = [
            self._block(body, scope, (*around, *side))
            for body, side in zip((node.body, node.orelse), sides, strict=True)
        ]
        found += results[0][0] + results[1][0]
        ends = [past.end for _, past in results]
        if all(ends):
            return found, _Past("raise" if set(ends) == {"raise"} else "return")
        conditions: Conditions = ()
        for end, other in ((ends[0], sides[1]), (ends[1], sides[0])):
            if end:
                conditions += tuple(
                    Condition(each.kind, each.key, each.truth, "" if end == "raise" else each.text, end == "raise")
                    for each in other
                )
        if any(not each.soft for _, past in results for each in past.conditions if not past.end):
            conditions += (Condition("if", f"{scope.unit.path}:past {node.lineno}"),)
        return found, _Past(conditions=conditions)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, scope: Scope, around: Conditions) -> list[Event]:
        head = node.test if isinstance(node, ast.While) else node.iter
        found = self._calls(head, scope, around)
        endless = isinstance(node, ast.While) and literal(node.test) in ((True,), (1,))
        inside = () if endless else (Condition("loop", f"{scope.unit.path}:{node.lineno}"),)
        found += self._block(node.body, scope, (*around, *inside))[0]
        return found + self._block(node.orelse, scope, around)[0]

    def _try(self, node: ast.Try | ast.TryStar, scope: Scope, around: Conditions) -> tuple[list[Event], _Past]:
        key = f"{scope.unit.path}:{node.lineno}"
        inside = (Condition("try", key),) if node.handlers else ()
        found, past = self._block([*node.body, *node.orelse], scope, (*around, *inside))
        for handler in node.handlers:
            found += self._block(handler.body, scope, (*around, Condition("try", key, False)))[0]
        found += self._block(node.finalbody, scope, around)[0]
        return found, _Past("" if node.handlers else past.end, past.conditions)

    def _import(self, node: ast.Import | ast.ImportFrom, scope: Scope, around: Conditions) -> list[Event]:
        if not self._relevant.imports(scope.unit.path):
            return []
        resolve = self._units.imports.resolve
        if isinstance(node, ast.Import):
            paths = [resolve(each.name, scope.unit.path) for each in node.names]
        else:
            module = node.module or ""
            paths = [resolve(module, scope.unit.path, node.level)]
            paths += [
                resolve(f"{module}.{each.name}" if module else each.name, scope.unit.path, node.level)
                for each in node.names
            ]
        if self._depth >= _DEEPEST * 2:
            return []
        self._depth += 1
        events = [each for path in paths if path is not None for each in self._module(path)]
        self._depth -= 1
        return [each.under(around) for each in events]

    def _calls(self, node: ast.AST, scope: Scope, around: Conditions) -> list[Event]:
        """What the calls in a statement or an expression set."""
        found: list[Event] = []
        if not isinstance(node, ast.stmt | ast.expr) or not self._relevant.between(
            scope.unit, node.lineno, node.end_lineno or node.lineno
        ):
            return found
        for call in calls_in(node):
            found += [
                Event(each.name, known(each.value, scope.names), scope.unit.file.locate(call), around)
                for each in assignments(call, scope.unit)
            ]
            one = target(call.func, scope)
            if one is not None and one.function is not None:
                self.passed.call(call.func, scope.unit)
                found += [each.under(around) for each in self._function(one, call, scope)]
            at_once = runs_at_once(call, scope.unit)
            apart = () if at_once else (Condition("elsewhere", f"{scope.unit.path}:{call.lineno}:{call.col_offset}"),)
            for handed in functions_given(call, scope):
                found += [each.under((*around, *apart)) for each in self._function(handed, None, scope)]
        return found
