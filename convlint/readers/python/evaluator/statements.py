"""Compile statements to closures, each of which returns how it ends: it goes on, breaks, continues, returns, raises."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, TypeGuard

from convlint.readers.python.evaluator import names_of
from convlint.readers.python.evaluator.expressions import Compiler, Eval, Store, function_defaults
from convlint.readers.python.evaluator.limits import DEEPEST_CODE, ROUNDS
from convlint.readers.python.evaluator.managers import swallowing
from convlint.readers.python.evaluator.operations import binary, delete, equal, going_through
from convlint.readers.python.evaluator.paths import (
    BREAKS,
    CONTINUES,
    RAISES,
    RETURNED,
    RETURNS,
    LoopChanges,
    Negation,
    Run,
    Scope,
    Side,
    Test,
    doubtful,
    fork,
    is_unrolled,
    nothing,
    once,
    under,
    unrolled,
)
from convlint.readers.python.evaluator.values import (
    NONE,
    RECORD_MAKERS,
    Class,
    Const,
    Function,
    Instance,
    Items,
    List,
    Name,
    Partial,
    Table,
    Unknown,
    Value,
    all_true,
    any_true,
    defaults_in,
    make_options,
    reason,
    unknown,
)
from convlint.readers.python.source_file import SourceFile, dotted, last_name, unparsed
from convlint.readers.python.walking import every

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

Handler = tuple[Run, Store | None, str]  # its body, what binds the error, how the source names it
_KINDS = {
    "builtins.staticmethod": "static", "builtins.classmethod": "class", "builtins.property": "property",
    "functools.cached_property": "property", "torch.jit.unused": "", "abc.abstractproperty": "property",
}  # fmt: skip
_EXITS = frozenset({"sys.exit", "os._exit", "exit", "quit"})


class BodyCompiler(Compiler):
    """Compiles statements as well as expressions."""

    def statement(self, node: ast.stmt) -> Run | None:
        """Compile a statement; None if it does nothing."""
        make = _STATEMENTS.get(node.__class__)
        if make is None or self.depth >= DEEPEST_CODE:
            return None
        self.depth += 2
        self.deepest = max(self.deepest, self.depth)
        run = make(self, node)
        self.depth -= 2
        return run

    def block(self, nodes: Sequence[ast.stmt]) -> Run:
        """Compile a sequence of statements."""
        runs = [run for run in map(self.statement, nodes) if run is not None]
        if not runs:
            return nothing

        def run_block(scope: Scope) -> int | None:
            machine = scope.machine
            for run in runs:
                # Machine.step written out: this loop is the hottest of all.
                machine.steps -= 1
                if machine.steps < machine.floor:
                    machine.come_to_floor()
                how = run(scope)
                if how:
                    return how
            return None

        return run_block


class Code:
    """A compiled function: its parameters and its body, shared by all calls."""

    __slots__ = ("generator", "height", "keyword_only", "kwarg", "names", "positional", "run", "vararg")

    def __init__(self, node: names_of.Body, file: SourceFile) -> None:
        arguments = node.args
        self.positional = [arg.arg for arg in (*arguments.posonlyargs, *arguments.args)]
        self.keyword_only = [arg.arg for arg in arguments.kwonlyargs]
        self.vararg = arguments.vararg.arg if arguments.vararg else ""
        self.kwarg = arguments.kwarg.arg if arguments.kwarg else ""
        self.names = frozenset((*(arg.arg for arg in arguments.args), *self.keyword_only))
        body: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else list(node.body)
        names = names_of.BodyNames(body)
        own = {arg.arg for arg in names_of.parameters(node)} | (names.bound - names.declared)
        compiler = BodyCompiler(file, frozenset(own))
        if isinstance(node, ast.Lambda):
            self.run = _returning(compiler.expression(node.body))
            self.generator = False
        else:
            self.run = compiler.block(node.body)
            self.generator = names.yields
        # Each nested closure takes up to two Python frames; a call itself takes up to eight.
        self.height = 2 * compiler.deepest + 8


def _returning(value: Eval) -> Run:
    def run(scope: Scope) -> int:
        scope.heap.put(scope, RETURNED, value(scope))
        return RETURNS

    return run


# Assignments


def _bound_name(target: ast.expr) -> str:
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, ast.Attribute):
        return target.attr
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        return target.slice.value if isinstance(target.slice.value, str) else _bound_name(target.value)
    return ""


def _assign(compiler: BodyCompiler, node: ast.Assign) -> Run:
    """Compile `a = b = value`; `a, b = 1, 2` binds each literal to its own name."""
    stores = [compiler.store(target) for target in node.targets]
    first = node.targets[0]
    if isinstance(first, ast.Tuple) and isinstance(node.value, ast.Tuple) and len(first.elts) == len(node.value.elts) \
            and not any(isinstance(item, ast.Starred) for item in (*first.elts, *node.value.elts)):  # fmt: skip
        makes = [compiler.expression(value, _bound_name(target))
                 for target, value in zip(first.elts, node.value.elts, strict=True)]  # fmt: skip

        def make(scope: Scope) -> Value:
            return Items("tuple", [evaluate(scope) for evaluate in makes])
    else:
        make = compiler.expression(node.value, _bound_name(first))  # type: ignore[assignment]
    if len(stores) == 1:
        put = stores[0]
        return lambda scope: put(scope, make(scope))

    def run(scope: Scope) -> None:
        value = make(scope)
        for store in stores:
            store(scope, value)

    return run


def _annotated(compiler: BodyCompiler, node: ast.AnnAssign) -> Run | None:
    if node.value is None:
        return None
    put, make = compiler.store(node.target), compiler.expression(node.value, _bound_name(node.target))
    return lambda scope: put(scope, make(scope))


def _augmented(compiler: BodyCompiler, node: ast.AugAssign) -> Run:
    """Compile `a += value`, which changes a list in place."""
    target, reading = node.target, copy(node.target)
    reading.ctx = ast.Load()
    read, put = compiler.expression(reading), compiler.store(target)
    make, kind = compiler.expression(node.value, _bound_name(target)), node.op.__class__

    def run(scope: Scope) -> None:
        machine, current, value = scope.machine, read(scope), make(scope)
        if isinstance(current, (List, Table)) and _in_place(machine, kind, current, value, node):
            return
        # A number on the right shows that the left is one too, and no list, set or dict.
        of_numbers = isinstance(value, Const) and isinstance(value.value, (int, float)) and kind is not ast.Mult
        if isinstance(current, Unknown) and not of_numbers:
            machine.heap.changed_by_another_name()
        put(scope, binary(machine, kind, current, value, node))

    return run


def _in_place(machine: Machine, kind: type[ast.AST], current: List | Table, value: Value, node: ast.AST) -> bool:
    """Apply an operator that changes a list, set or dict in place; return whether it does."""
    if isinstance(current, Table):
        if kind is ast.BitOr:
            machine.update(machine.heap.edit(current.owner), value)
        return kind is ast.BitOr
    if kind is (ast.Add if current.kind == "list" else ast.BitOr):
        machine.extend(current, value)
        return True
    if kind is ast.Mult or current.kind in ("set", "array"):
        result = binary(machine, kind, current, value, node)
        cell = machine.heap.edit(current)
        if isinstance(result, Items):
            cell.items, cell.complete, cell.why = result.items[:], result.complete, result.why
        else:
            cell.complete = False
        return True
    return False


def _expression(compiler: BodyCompiler, node: ast.Expr) -> Run | None:
    if isinstance(node.value, ast.Constant):
        return None
    make = compiler.expression(node.value)
    ends = isinstance(node.value, ast.Call) and compiler.text(node.value.func) in _EXITS

    def run(scope: Scope) -> int | None:
        make(scope)
        return RAISES if ends else None

    return run


def _returned(compiler: BodyCompiler, node: ast.Return) -> Run:
    return _returning(compiler.expression(node.value) if node.value is not None else lambda _: NONE)


def _ending(how: int) -> Callable[[BodyCompiler, ast.stmt], Run]:
    return lambda _, __: lambda _: how


def _raised(compiler: BodyCompiler, node: ast.Raise) -> Run:
    """Compile a `raise`: of what is raised, only `SystemExit(main())` does something worth following."""
    exits = isinstance(node.exc, ast.Call) and compiler.text(node.exc.func) == "SystemExit"
    make = compiler.expression(node.exc) if node.exc is not None and exits else nothing

    def run(scope: Scope) -> int:
        make(scope)
        return RAISES

    return run


def _asserted(compiler: BodyCompiler, node: ast.Assert) -> Run:
    test = compiler.expression(node.test)
    return lambda scope: RAISES if scope.machine.truth(test(scope)) is False else None


def _deleted(compiler: BodyCompiler, node: ast.Delete) -> Run:
    runs = [_deletion(compiler, target) for target in node.targets]

    def run(scope: Scope) -> None:
        for deletion in runs:
            deletion(scope)

    return run


def _deletion(compiler: BodyCompiler, target: ast.expr) -> Callable[[Scope], None]:
    if isinstance(target, ast.Attribute):
        receiver, attr = compiler.expression(target.value), target.attr
        return lambda scope: scope.machine.delete_attribute(receiver(scope), attr)
    if isinstance(target, ast.Subscript):
        of, index = compiler.expression(target.value), compiler.expression(target.slice)
        return lambda scope: delete(scope.machine, of(scope), index(scope), target, scope.file)
    if isinstance(target, ast.Name):
        name = target.id
        return lambda scope: scope.heap.remove(scope, name) if name in scope.variables else None
    return nothing


# Branches


def _chosen(compiler: BodyCompiler, node: ast.If) -> Run:
    test, text = compiler.expression(node.test), Test(compiler.text(node.test))
    body, other = compiler.block(node.body), compiler.block(node.orelse)
    path = compiler.file.path
    sides = _side(path, node.orelse), _side(path, node.body)
    if_true, if_false = _learned(compiler, node.test)
    mode = text if names_of.asks_mode(node.test) else ""
    leaves = [bool(part) and isinstance(part[-1], (ast.Return, ast.Raise)) for part in (node.body, node.orelse)]
    body_fails, other_fails = _fails(node.body), _fails(node.orelse)
    last = node.orelse[0] if len(node.orelse) == 1 else None
    negated = Negation(f"not ({text})")
    text.place = negated.place = path, node.lineno, node.col_offset
    negated.last = compiler.text(last.test) if isinstance(last, ast.If) and not last.orelse else ""

    def taken(scope: Scope) -> int | None:
        if_true(scope)
        return body(scope)

    def left_out(scope: Scope) -> int | None:
        if_false(scope)
        return other(scope)

    def run(scope: Scope) -> int | None:
        value = test(scope)
        truth = scope.machine.truth(value)
        choices = scope.machine.choices
        if truth is None:
            asks_root = isinstance(value, Unknown) and value.why == "parameter" and not scope.machine.stack
            if not asks_root:  # a root's parameters are unknown, but its callers may know them
                choices.taken.update(sides)
            if body_fails:  # then the program goes on by the other side alone
                return under(scope, left_out, negated)
            if other_fails:
                return under(scope, taken, text)
            return fork(scope, taken, left_out, text, negated)
        choices.taken.add(sides[truth])
        choices.leave_out([sides[not truth]], scope.machine.is_called)
        side = body if truth else other
        defaults = defaults_in(value)
        if not mode and not defaults:
            return side(scope)
        modes, decided = scope.machine.modes, scope.machine.decided
        marks = len(modes), len(decided)
        modes += [mode] if mode else []
        decided += [defaults] if defaults else []
        how = side(scope)
        if not leaves[truth]:  # then all that follows runs in this mode alone
            del modes[marks[0] :], decided[marks[1] :]
        return how

    return run


def _fails(body: Sequence[ast.stmt]) -> bool:
    """Whether the statements only raise."""
    return bool(body) and all(isinstance(statement, ast.Raise) for statement in body)


Learn = Callable[[Scope], None]


def _learned(compiler: BodyCompiler, test: ast.expr) -> tuple[Learn, Learn]:
    """Compile what an undecided test reveals of a dict: a function for the path where it holds, one for the other."""
    match test:
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn() as op], comparators=[right]) if _is_plain(left, right):
            key, container = compiler.expression(left), compiler.expression(right)

            def there(scope: Scope) -> None:
                table, at = container(scope), key(scope)
                if _is_own(table) and isinstance(at, Const) and (at.value in table.cell.may or not table.complete):
                    value = table.items.get(at.value, unknown(table.why))
                    scope.heap.put(table.owner, at.value, value)

            def absent(scope: Scope) -> None:
                table, at = container(scope), key(scope)
                if _is_own(table) and isinstance(at, Const) and at.value in table.cell.may:
                    scope.heap.remove(table.owner, at.value)

            return (there, absent) if isinstance(op, ast.In) else (absent, there)
        case ast.Compare(left=ast.Subscript() as left, ops=[ast.Eq() | ast.NotEq() as op], comparators=[right]) \
                if _is_plain(left.value, left.slice, right):  # fmt: skip
            read, store, other = compiler.expression(left), compiler.store(left), compiler.expression(right)

            def is_equal(scope: Scope) -> None:
                value = other(scope)
                if isinstance(value, Const) and isinstance(read(scope), Unknown):
                    store(scope, value)

            return (is_equal, nothing) if isinstance(op, ast.Eq) else (nothing, is_equal)
    return nothing, nothing


def _is_own(value: Value) -> TypeGuard[Table]:
    """Whether the value is a dict created by the current root; those of modules are shared by all roots."""
    return isinstance(value, Table) and value.born > 0


def _is_plain(*nodes: ast.expr) -> bool:
    return all(isinstance(node, (ast.Name, ast.Constant)) for node in nodes)


def _side(path: str, body: Sequence[ast.stmt]) -> Side:
    return (path, body[0].lineno, body[-1].end_lineno or body[-1].lineno) if body else (path, 0, -1)


# match


def matched(compiler: BodyCompiler, node: ast.Match) -> Run:
    """Compile `match`: the first case that fits, or all that may fit, each on a path of its own."""
    subject = compiler.expression(node.subject)
    cases = [(item.pattern, {node.value: compiler.expression(node.value)
                             for node in every(item.pattern) if isinstance(node, ast.MatchValue)},
              compiler.expression(item.guard) if item.guard is not None else None,
              compiler.block(item.body), _test_of(node.subject, item.pattern)) for item in node.cases]  # fmt: skip
    sides = [_side(compiler.file.path, item.body) for item in node.cases]

    def case(scope: Scope, value: Value, at: int) -> int | None:
        if at == len(cases):
            return None
        pattern, values, guard, body, text = cases[at]
        captures: dict[str, Value] = {}
        fits = _fits(scope, pattern, value, values, captures)
        choices, is_called = scope.machine.choices, scope.machine.is_called
        if fits is False:
            choices.leave_out(sides[at : at + 1], is_called)
            return case(scope, value, at + 1)
        if fits or reason(value) != "parameter" or scope.machine.stack:  # callers may know a root's parameters
            choices.taken.add(sides[at])
        if fits and guard is None:
            choices.leave_out(sides[at + 1 :], is_called)
        # Without a sure match, the names may be bound to any part of the subject.
        bound = captures if fits else dict.fromkeys(names_of.BodyNames([pattern]).bound, unknown("branch"))

        def inside(inner: Scope) -> int | None:
            for name, part in bound.items():
                inner.heap.put(inner, name, part)
            truth = inner.machine.truth(guard(inner)) if guard is not None else True
            if truth is None:
                return fork(inner, body, lambda here: case(here, value, at + 1), text, f"not ({text})")
            return body(inner) if truth else case(inner, value, at + 1)

        if fits is None:
            return fork(scope, inside, lambda inner: case(inner, value, at + 1), text, f"not ({text})")
        return inside(scope)

    return lambda scope: case(scope, subject(scope), 0)


def _test_of(subject: ast.expr, pattern: ast.pattern) -> str:
    if isinstance(pattern, ast.MatchValue):
        return f"{unparsed(subject)[:60]} == {unparsed(pattern)[:60]}"
    return f"case {unparsed(pattern)[:60]}"


def _fits(
    scope: Scope, pattern: ast.pattern, value: Value, values: dict[ast.expr, Eval], captures: dict[str, Value],
) -> bool | None:  # fmt: skip
    """Whether the value matches the pattern; `captures` receives the names that the pattern binds."""
    match pattern:
        case ast.MatchValue():
            return equal(value, values[pattern.value](scope))
        case ast.MatchSingleton():
            return value.value is pattern.value if isinstance(value, Const) else equal(value, Const(pattern.value))
        case ast.MatchAs():
            fits = _fits(scope, pattern.pattern, value, values, captures) if pattern.pattern is not None else True
            if fits and pattern.name:
                captures[pattern.name] = value
            return fits
        case ast.MatchOr():
            return any_true([_fits(scope, inner, value, values, captures) for inner in pattern.patterns])
        case ast.MatchSequence() if isinstance(value, Items) and value.complete:
            if any(isinstance(inner, ast.MatchStar) for inner in pattern.patterns):
                return None
            if len(pattern.patterns) != len(value.items):
                return False
            pairs = zip(pattern.patterns, value.items, strict=True)
            return all_true([_fits(scope, inner, item, values, captures) for inner, item in pairs])
    return None


# with and try


def _within(compiler: BodyCompiler, node: ast.With | ast.AsyncWith) -> Run:
    parts: list[tuple[Eval, Callable[[Scope, Value], bool | None], Store | None]] = []
    for item in node.items:
        put = compiler.store(item.optional_vars) if item.optional_vars is not None else None
        parts.append((compiler.expression(item.context_expr), swallowing(compiler, item.context_expr), put))
    body = compiler.block(node.body)

    def run(scope: Scope) -> int | None:
        answers: list[bool | None] = []
        managers: list[Value] = []
        for make, swallows, bind in parts:
            managers.append(make(scope))
            answers.append(swallows(scope, managers[-1]))
            enter = own_method(scope, managers[-1], "__enter__")
            entered = scope.machine.part_of(managers[-1]) if enter is None else scope.machine.calls.ask(enter)
            if bind is not None:
                bind(scope, entered)
        answer = any_true(answers)
        handlers: list[Handler] = [] if answer is False else [(nothing, None, "what is suppressed")]
        how = attempt(scope, body, nothing, handlers, surely=answer is True)
        for value in reversed(managers):
            leave = own_method(scope, value, "__exit__")
            if leave is not None:
                scope.machine.calls.ask(leave, NONE, NONE, NONE)  # as if nothing was raised
        return how

    def own_method(scope: Scope, value: Value, name: str) -> Value | None:
        method = scope.machine.calls.method_of(value, name) if isinstance(value, Instance) else None
        return method if isinstance(method, Function) else None

    return run


def _attempted(compiler: BodyCompiler, node: ast.Try | ast.TryStar) -> Run:
    body, last = compiler.block(node.body), compiler.block(node.finalbody)
    orelse = compiler.block(node.orelse)
    handlers: list[Handler] = []
    for handler in node.handlers:
        text = f"except {compiler.text(handler.type)}" if handler.type is not None else "except"
        put = compiler.store_name(handler.name) if handler.name else None
        handlers.append((compiler.block(handler.body), put, text))
    imports = all(isinstance(statement, (ast.Import, ast.ImportFrom)) for statement in node.body)

    def run(scope: Scope) -> int | None:
        # `try: import a; except ImportError: a = None` is no doubt where the import succeeds.
        sure = imports and scope.machine.modules.succeeds(node.body, scope.file)
        how = attempt(scope, body, orelse, [] if sure else handlers)
        return last(scope) or how

    return run


def attempt(scope: Scope, body: Run, orelse: Run, handlers: list[Handler], *, surely: bool = True) -> int | None:
    """Run the body, and each handler from any point of the body.

    Without `surely`, it is unknown whether errors are handled, so that a body that leaves is assumed to leave.
    """
    if not handlers:
        return body(scope) or orelse(scope)
    heap = scope.heap
    before = heap.begin()
    outer = heap.watch()
    # Any statement of the body may be skipped by an error in front of it.
    how = doubtful(body)(scope)
    watched = heap.unwatch(outer)
    if how and not surely:
        heap.settle(before)
        return how

    def caught(at: int, inner: Scope) -> int | None:
        heap.interrupt(before, watched)
        run, put, _ = handlers[at]
        if put is not None:
            put(inner, unknown("call"))
        return run(inner)

    def rest(at: int, inner: Scope) -> int | None:
        if at == len(handlers):
            return how or orelse(inner)
        if how == RAISES and at + 1 == len(handlers):
            return caught(at, inner)
        goes_through = "no exception" if at + 1 == len(handlers) and orelse is not nothing else ""
        return fork(
            inner, lambda here: caught(at, here), lambda here: rest(at + 1, here), handlers[at][2], goes_through
        )

    result = rest(0, scope)
    heap.settle(before)
    return result


# Loops


def _iterated(compiler: BodyCompiler, node: ast.For | ast.AsyncFor) -> Run:
    over, put = compiler.expression(node.iter), compiler.store(node.target)
    body, orelse = compiler.block(node.body), compiler.block(node.orelse)
    changes, after = LoopChanges([*node.body, node.target]), _after_open(node, orelse)

    def run(scope: Scope) -> int | None:
        values = over(scope)
        items = scope.machine.iterate(values)
        open_ = scope.machine.part_of(values)

        def one_round(at: Scope) -> int | None:
            put(at, open_)
            return body(at)

        if items is None or not is_unrolled(scope, len(items)):
            why = values.why if isinstance(values, (Unknown, Items)) else "limit" if items else "call"
            return once(scope, changes, why, doubtful(one_round)) or after(scope)

        def rest(at: Scope) -> int | None:
            # The body may append to the list that it goes through.
            grown = isinstance(values, List) and values.complete and len(values.items) > ROUNDS
            return once(at, changes, "limit", doubtful(one_round)) or after(at) if grown else orelse(at)

        return unrolled(scope, going_through(scope.machine, values, items), put, body, rest, len(items))

    return run


def _after_open(node: ast.For | ast.AsyncFor | ast.While, orelse: Run) -> Run:
    """Compile the `else` of a loop with an unknown number of rounds, which a `break` may skip."""
    if node.orelse and any(isinstance(inner, ast.Break) for part in node.body for inner in every(part)):
        return lambda scope: fork(scope, orelse, nothing, "the loop does not break")
    return orelse


def _repeated(compiler: BodyCompiler, node: ast.While) -> Run:
    test = compiler.expression(node.test)
    body, orelse = compiler.block(node.body), compiler.block(node.orelse)
    changes, after = LoopChanges([*node.body, node.test]), _after_open(node, orelse)
    # `while True` ends by what its body does, which one round shows.
    endless = isinstance(node.test, ast.Constant)
    rest_of_rounds = body if endless else doubtful(body)

    def run(scope: Scope) -> int | None:
        machine = scope.machine
        truth = machine.truth(test(scope))

        def rounds() -> Iterator[Value]:
            nonlocal truth
            count = 0
            while truth and not endless and count < ROUNDS:
                yield NONE
                count += 1
                truth = machine.truth(test(scope))

        def rest(at: Scope) -> int | None:
            if truth is False:
                return orelse(at)
            return once(at, changes, "limit" if truth else "branch", rest_of_rounds) or after(at)

        return unrolled(scope, rounds(), lambda _, __: None, body, rest)

    return run


# Definitions of functions and classes, and their decorators


def _function(compiler: BodyCompiler, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Run:
    defaults = function_defaults(compiler, node.args)
    decorators = [(compiler.expression(decorator), decorator) for decorator in reversed(node.decorator_list)]
    put = compiler.store_name(node.name)

    def run(scope: Scope) -> None:
        function = Function(node, scope.file, _around(scope), node.name)
        function.defaults, function.kw_defaults = defaults(scope)
        value: Value = function
        for make, written in decorators:
            # `@x.setter` defines a function of the same name, which must not replace the property.
            if isinstance(written, ast.Attribute) and written.attr in ("setter", "getter", "deleter"):
                scope.heap.put(scope, f"{node.name}.{written.attr}", function)
                return
            value = _decorated(scope, make(scope), value, written)
        put(scope, value)

    return run


def _around(scope: Scope) -> Scope:
    """Return the scope in which an inner function looks up names: class scopes are skipped, as in Python."""
    while scope.of_class and scope.parent is not None:
        scope = scope.parent
    return scope


def _decorated(scope: Scope, decorator: Value, value: Value, written: ast.expr) -> Value:
    if dotted(getattr(written, "func", written)) == "gin.configurable":
        make_options(value.namespace.get("__init__") if isinstance(value, Class) else value)
    if isinstance(decorator, Name):
        if decorator.name in _KINDS and isinstance(value, Function):
            value.kind = _KINDS[decorator.name] or value.kind
        return value
    leaves_out = isinstance(decorator, Function) and scope.machine.leaves_out(decorator)
    if isinstance(decorator, (Function, Partial)) and not leaves_out:
        call = written if isinstance(written, ast.Call) else scope.machine.no_call(written)
        result = scope.machine.call(decorator, [value], {}, call, scope.file)
        # A class hides behind a function that makes its objects, or hands out the only one.
        if isinstance(result, Function) and (is_wrapper(result) or (isinstance(value, Class) and _passes_on(result))):
            return value
        if isinstance(result, (Function, Class, Partial)):
            return result
    return value


def is_wrapper(function: Function) -> bool:
    """Whether a function looks like another one on purpose, and passes its arguments on to it: checks, warnings."""
    decorators = getattr(function.node, "decorator_list", [])
    wraps = any(last_name(node.func if isinstance(node, ast.Call) else node) == "wraps" for node in decorators)
    return wraps and _passes_on(function)


def _passes_on(function: Function) -> bool:
    """Whether a wrapper passes its own `*args` and `**kwargs` on to another function unchanged."""
    node = function.node
    names = {arg.arg for arg in (node.args.vararg, node.args.kwarg) if arg is not None}
    if isinstance(node, ast.Lambda) or not names:
        return False
    within = list(names_of.within(node.body))
    if any(_sets_named(inner, names) for inner in within):
        return False
    passed = [call for call in within if isinstance(call, ast.Call) and _gets(call, names)]
    return bool(passed) and all(
        all(isinstance(arg, ast.Starred) or getattr(arg, "id", "") in ("self", "cls") for arg in call.args)
        and all(keyword.arg is None for keyword in call.keywords)
        for call in passed
    )


def _sets_named(node: ast.AST, names: set[str]) -> bool:
    """Whether the node sets a named entry: `kwargs["name"] = value`. A variable key usually renames an old keyword."""
    match node:
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(), ctx=ast.Store()):
            return name in names
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="update"), keywords=keywords):
            return name in names and bool(keywords)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="setdefault"), args=[ast.Constant(), *_]):
            return name in names
    return False


def _gets(call: ast.Call, names: set[str]) -> bool:
    values = [*(arg.value for arg in call.args if isinstance(arg, ast.Starred)),
              *(keyword.value for keyword in call.keywords if keyword.arg is None)]  # fmt: skip
    return bool(values) and all(getattr(value, "id", "") in names for value in values)


def _class(compiler: BodyCompiler, node: ast.ClassDef) -> Run:
    bases = [compiler.expression(base) for base in node.bases if not isinstance(base, ast.Starred)]
    keywords = {keyword.arg: compiler.expression(keyword.value) for keyword in node.keywords if keyword.arg is not None}
    decorators = [(compiler.expression(decorator), decorator) for decorator in reversed(node.decorator_list)]
    makers = [compiler.expression(getattr(decorator, "func", decorator)) for decorator in node.decorator_list]
    put = compiler.store_name(node.name)
    # A class body has no local variables in the sense of a function: names are looked up as in a module.
    inner = BodyCompiler(compiler.file)
    inner.depth = compiler.depth
    body = inner.block(node.body)
    compiler.deepest = max(compiler.deepest, inner.deepest + 2)

    def run(scope: Scope) -> None:
        machine = scope.machine
        cls = Class(machine.heap, node, scope.file, node.name, [base(scope) for base in bases])
        given = {name: make(scope) for name, make in keywords.items()}
        cls.meta = given.pop("metaclass", None)
        within = Scope(machine, scope.file, _around(scope), None)
        within.of_class = True
        body(within)
        cell = cls.first
        cell.items, cell.may = dict(within.variables), within.cell.may
        for member in cls.namespace.values():
            if isinstance(member, Function) and member.owner is None:
                member.owner = cls
        is_record = any(isinstance(maker := make(scope), Name) and maker.name in RECORD_MAKERS for make in makers)
        machine.calls.finish_class(cls, is_record=is_record)
        above, _ = machine.calls.find(cls, "__init_subclass__", cls)
        if isinstance(above, Function):
            machine.call(above.to(cls), [], given, machine.no_call(node), scope.file)
        value: Value = cls
        for make, written in decorators:
            value = _decorated(scope, make(scope), value, written)
        put(scope, value)

    return run


# Imports: a module of the repository is run when one of its names is read; any other is only a name


def _import(compiler: BodyCompiler, node: ast.Import) -> Run:
    names = [(alias.name, alias.asname is not None, compiler.store_name(alias.asname or alias.name.split(".")[0]))
             for alias in node.names]  # fmt: skip

    def run(scope: Scope) -> None:
        for name, has_alias, put in names:
            put(scope, scope.machine.modules.imported(name, scope.file, whole=has_alias))
        scope.machine.library.imported(scope.machine, node, scope.file)

    return run


def _import_from(compiler: BodyCompiler, node: ast.ImportFrom) -> Run:
    module, level = node.module or "", node.level
    names = [(alias.name, compiler.store_name(alias.asname or alias.name)) for alias in node.names if alias.name != "*"]
    star = any(alias.name == "*" for alias in node.names)

    def run(scope: Scope) -> None:
        modules = scope.machine.modules
        if star:
            modules.import_all(module, level, scope)
        for name, put in names:
            put(scope, modules.member_of(module, level, name, scope.file))
        scope.machine.library.imported(scope.machine, node, scope.file)

    return run


_STATEMENTS: Mapping[type[ast.AST], Callable[[BodyCompiler, Any], Run | None]] = {
    ast.Assign: _assign, ast.AnnAssign: _annotated, ast.AugAssign: _augmented, ast.Expr: _expression,
    ast.Return: _returned, ast.Raise: _raised, ast.Break: _ending(BREAKS), ast.Continue: _ending(CONTINUES),
    ast.Assert: _asserted, ast.If: _chosen, ast.Delete: _deleted, ast.With: _within, ast.AsyncWith: _within,
    ast.Try: _attempted, ast.TryStar: _attempted, ast.For: _iterated, ast.AsyncFor: _iterated, ast.While: _repeated,
    ast.FunctionDef: _function, ast.AsyncFunctionDef: _function, ast.ClassDef: _class, ast.Import: _import,
    ast.ImportFrom: _import_from, ast.Match: matched,
}  # fmt: skip
