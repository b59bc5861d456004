"""Compile expressions to closures, once for each node, so that evaluating them again does not inspect the tree."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from operator import or_
from typing import Any

from convlint.readers.python.evaluator import names_of, operations
from convlint.readers.python.evaluator.library import LibraryCall
from convlint.readers.python.evaluator.limits import DEEPEST_CODE, LONGEST
from convlint.readers.python.evaluator.paths import YIELDED, LoopChanges, Scope, fork, nothing, once
from convlint.readers.python.evaluator.values import (
    NONE,
    NOTHING_STATED,
    Const,
    Deferred,
    Entries,
    Function,
    Instance,
    Items,
    List,
    Module,
    Name,
    Preset,
    Tensor,
    Unknown,
    Value,
    constants,
    defaults_in,
    literal,
    preset,
    stated_by,
    text_of,
    undecided,
    union,
    unknown,
)
from convlint.readers.python.source_file import SourceFile, last_name
from convlint.readers.python.walking import every

Eval = Callable[[Scope], Value]
Store = Callable[[Scope, Value], None]
_LONGEST_CONDITION = 80  # characters of a test that a report shows
_KEEPS_NAME = frozenset({"int", "round", "max", "min", "float", "abs", "tuple", "list", "sum", "set", "bool"})
# Methods of tensors, strings, dicts and loggers that change none of their arguments
_CHANGES_NONE = frozenset({
    "split", "chunk", "view", "reshape", "permute", "transpose", "expand", "repeat", "flatten", "unflatten", "sum",
    "mean", "index_select", "gather", "tile", "new_zeros", "new_ones", "new_full", "get", "format", "join", "index",
    "count", "startswith", "endswith", "debug", "info", "warning", "error", "log", "isdisjoint", "issubset",
})  # fmt: skip
# Functions and methods without side effects: a `test and isinstance(...)` needs no fork
_QUESTIONS = frozenset({
    "isinstance", "issubclass", "callable", "hasattr", "startswith", "endswith", "lower", "upper", "is_scripting",
    "is_tracing", "is_floating_point", "is_available", "is_compiling", "dim", "numel",
})  # fmt: skip
# Usual names of configs: an attribute or item of an unknown with such a name has `config` as its reason
_CONFIGS = frozenset({
    "args", "arg", "cfg", "cfgs", "conf", "config", "configs", "configuration", "flags", "FLAGS", "hparams", "hp",
    "hyp", "model_cfg", "opt", "options", "opts", "params", "yaml", "yaml_cfg",
})  # fmt: skip


class Compiler:
    """Compiles one body of a file. `own` are the local variables of a function; None for modules and classes."""

    def __init__(self, file: SourceFile, own: frozenset[str] | None = None) -> None:
        self.file, self.own = file, own
        self.depth = self.deepest = 0

    def expression(self, node: ast.expr, name: str = "") -> Eval:
        """Compile an expression; literals in it are bound to `name`."""
        make = _EXPRESSIONS.get(node.__class__)
        if make is None or self.depth >= DEEPEST_CODE:
            why = unknown("call" if make is None else "limit")
            return lambda _: why
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        compiled = make(self, node, name)
        self.depth -= 1
        return compiled

    def store(self, node: ast.expr) -> Store:
        """Compile the target of an assignment to a function that binds a value to it."""
        if self.depth >= DEEPEST_CODE:
            return lambda _, __: None
        self.depth += 1
        compiled = _store(self, node)
        self.depth -= 1
        return compiled

    def store_name(self, text: str) -> Store:
        """Compile the binding of a name, as by an assignment to it."""
        if self.own is None or text in self.own:
            return lambda scope, value: scope.heap.put(scope, text, value)

        def put_outside(scope: Scope, value: Value) -> None:
            at = scope.parent
            # A name that is neither local nor bound around is global.
            while at is not None and at.parent is not None and text not in at.variables:
                at = at.parent
            if at is not None:
                scope.heap.put(at, text, value)

        return put_outside

    def text(self, node: ast.expr) -> str:
        """Return the source text of a node on one line, shortened to what a report shows."""
        lines = self.file.content_lines[node.lineno - 1 : node.end_lineno]
        if not lines:
            return ""
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        text = " ".join(b" ".join(lines).decode("utf-8", "replace").split())
        return text if len(text) <= _LONGEST_CONDITION else text[: _LONGEST_CONDITION - 3] + "..."


# Names, attributes, items


def _constant(compiler: Compiler, node: ast.Constant, name: str) -> Eval:
    value: Value
    if isinstance(node.value, (int, float, str, bytes, type(None))):
        value = literal(compiler.file, node, node.value, name)
    else:
        value = unknown("call")
    return lambda _: value


def _name(compiler: Compiler, node: ast.Name, _: str) -> Eval:
    text = node.id
    if compiler.own is None:
        return lambda scope: scope.machine.modules.lookup(scope, text)

    def local(scope: Scope) -> Value:
        heap = scope.heap
        # Heap.read written out for the common case: variables are read more often than anything else.
        cell = scope.first if scope.born > heap.layer.start else heap.read(scope)
        value: Value | None = cell.items.get(text)
        if value is None or value.__class__ is Deferred:
            return scope.machine.modules.lookup(scope, text)
        return value

    def outside(scope: Scope) -> Value:
        at = scope.parent or scope
        if at.parent is None:  # of the module, nearly always
            cell = at.heap.read(at)
            value: Value | None = cell.items.get(text)
            if value is not None and value.__class__ is not Deferred and not cell.may:
                return value
        return scope.machine.modules.lookup(at, text)

    return local if text in compiler.own else outside


def _attribute(compiler: Compiler, node: ast.Attribute, _: str) -> Eval:
    text = node.attr
    after_super = _after_super_call(compiler, node.value)
    if after_super is not None:

        def inherited(scope: Scope) -> Value:
            start, of = after_super(scope)
            return scope.machine.calls.inherited(start, of, text)

        return inherited
    value = compiler.expression(node.value)
    holder, path = last_name(node.value), compiler.file.path

    def of_config(scope: Scope) -> Value:
        machine, receiver = scope.machine, value(scope)
        is_open = isinstance(receiver, Unknown)
        option = machine.library.option(holder, text, path) if is_open or receiver.__class__ is Name else None
        return option or (unknown("config") if is_open else machine.attribute(receiver, text))

    return of_config if holder in _CONFIGS else lambda scope: scope.machine.attribute(value(scope), text)


def _slice(compiler: Compiler, node: ast.Slice, _: str) -> Eval:
    ends = [
        compiler.expression(end) if end is not None else lambda _: NONE for end in (node.lower, node.upper, node.step)
    ]
    return lambda scope: Items("slice", [end(scope) for end in ends])


def _subscript(compiler: Compiler, node: ast.Subscript, name: str) -> Eval:
    value, of_config = compiler.expression(node.value, name), last_name(node.value) in _CONFIGS
    cuts = isinstance(node.slice, ast.Slice)
    index = _slice(compiler, node.slice, "") if isinstance(node.slice, ast.Slice) else compiler.expression(node.slice)

    def run(scope: Scope) -> Value:
        receiver, key = value(scope), index(scope)
        # The class of an object or tensor decides what a slice means; all others are cut here.
        if cuts and isinstance(key, Items) and not isinstance(receiver, (Instance, Tensor)):
            return operations.cut(scope.machine, receiver, key.items)
        if of_config and isinstance(receiver, Unknown):
            return unknown("config")
        return operations.get(scope.machine, receiver, key, node, scope.file)

    return run


# Calls


def _call(compiler: Compiler, node: ast.Call, name: str) -> Eval:
    func = node.func
    # A module's dict is the module itself here, so that items set in it are variables.
    if isinstance(func, ast.Name) and not node.args and not node.keywords and func.id in ("globals", "locals"):
        return lambda scope: Module(scope.file.path) if func.id == "globals" else unknown("call")
    literal_name = name if isinstance(func, ast.Name) and func.id in _KEEPS_NAME else ""
    arguments = _arguments(compiler, node, literal_name)
    if isinstance(func, ast.Attribute):
        attr = func.attr
        after_super = _after_super_call(compiler, func.value)
        if after_super is not None:

            def call_inherited(scope: Scope) -> Value:
                start, of = after_super(scope)
                call = LibraryCall(node, scope.file, *arguments(scope))
                return scope.machine.calls.call_inherited(start, of, attr, call)

            return call_inherited
        receiver = compiler.expression(func.value, name if attr in ("copy", "items", "values") else "")
        if attr == "save_hyperparameters":
            return lambda scope: _save_parameters(scope, receiver(scope), arguments(scope)[0])
        of_config = last_name(func.value) in _CONFIGS

        def call_method(scope: Scope) -> Value:
            machine, value = scope.machine, receiver(scope)
            args, keywords, *exact = arguments(scope)
            if value.__class__ is Unknown:
                handle = machine.give_away if attr in _CHANGES_NONE else machine.calls.into_unknown
                handle([*args, *keywords.values()])
                # The unknown receiver may be a list that also has another name here.
                if attr in names_of.CHANGERS:
                    machine.heap.changed_by_another_name()
                if attr in machine.library.of_unknown:
                    machine.library.method(machine, value, attr, LibraryCall(node, scope.file, args, keywords, *exact))
                return unknown("config") if of_config else value
            return machine.calls.call_method(value, attr, LibraryCall(node, scope.file, args, keywords, *exact))

        return call_method
    function = compiler.expression(func)

    def run(scope: Scope) -> Value:
        value = function(scope)
        return scope.machine.apply(value, LibraryCall(node, scope.file, *arguments(scope)))

    return run


def _save_parameters(scope: Scope, receiver: Value, args: Sequence[Value]) -> Value:
    """Evaluate Lightning's `self.save_hyperparameters()`: `self.hparams` holds the parameters of the constructor.

    Of those that it leaves out nobody asks there. An argument that is no name has the parameters itself.
    """
    machine, node = scope.machine, scope.function.node if scope.function is not None else None
    if args and text_of(args[0]) is None:
        machine.set_attribute(receiver, "hparams", args[0])
    elif node is not None:
        held, given, others = Entries({}), scope.variables, node.args.kwarg
        for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            value = given.get(arg.arg, unknown("call"))
            if value is not receiver:
                held.items[arg.arg] = value
        if others is not None:
            machine.update(held, given.get(others.arg, unknown("call")))
        machine.set_attribute(receiver, "hparams", machine.table(held))
    return NONE


def _arguments(compiler: Compiler, node: ast.Call, name: str) -> Callable[[Scope], tuple[Any, ...]]:
    """Compile the arguments of a call: the result gives positional ones, keywords, and whether these are all.

    Where that is the question of single names alone, these are its last part.
    """
    # Nearly all calls have no `*args` or `**kwargs`: these two closures are the fast ones.
    plain = [compiler.expression(arg, name) for arg in node.args if not isinstance(arg, ast.Starred)]
    named = [(keyword.arg, compiler.expression(keyword.value, keyword.arg)) for keyword in node.keywords if keyword.arg]
    if len(plain) == len(node.args) and len(named) == len(node.keywords):
        if not named:
            return lambda scope: ([arg(scope) for arg in plain], {}, True)
        return lambda scope: ([arg(scope) for arg in plain], {key: value(scope) for key, value in named}, True)
    args = [(compiler.expression(arg.value if isinstance(arg, ast.Starred) else arg), isinstance(arg, ast.Starred))
            for arg in node.args]  # fmt: skip
    keywords = [(keyword.arg, compiler.expression(keyword.value, keyword.arg or ""), _holder(keyword.value))
                for keyword in node.keywords]  # fmt: skip
    path = compiler.file.path

    def spread(scope: Scope) -> tuple[list[Value], dict[str, Value], bool, frozenset[str] | None]:
        machine, exact = scope.machine, True
        others: frozenset[Any] = frozenset()
        values: list[Value] = []
        for arg, starred in args:
            value = arg(scope)
            items = machine.iterate(value) if starred else [value]
            if items is None:
                exact = False
                break
            values += items
        pairs: dict[str, Value] = {}
        for key, make, holder in keywords:
            value = make(scope)
            if key is not None:
                pairs[key] = value
                continue
            table = machine.as_entries(value)
            exact = exact and table is not None and table.complete
            if table is None and holder in _CONFIGS:
                pairs = {**machine.library.options(holder, path), **pairs}
            if table is not None:
                others |= table.may
                pairs.update((text, item) for text, item in table.items.items()
                             if isinstance(text, str) and text not in table.may)  # fmt: skip
        return values, pairs, exact and not others, others if exact else None

    return spread


def _holder(node: ast.expr) -> str:
    """Return what the object is called whose attributes these are: `vars(args)`, `args.__dict__`; else ''."""
    match node:
        case ast.Call(func=ast.Name("vars"), args=[of]) | ast.Attribute(of, "__dict__"):
            return last_name(of)
    return ""


def _after_super_call(compiler: Compiler, node: ast.expr) -> Callable[[Scope], tuple[Value, Value]] | None:
    """Compile `super()`: the result gives the class behind which it looks, and the object; None for other calls."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"):
        return None
    args = [compiler.expression(arg) for arg in node.args]

    def find(scope: Scope) -> tuple[Value, Value]:
        if len(args) == 2:
            return args[0](scope), args[1](scope)
        at: Scope | None = scope
        while at is not None:
            function = at.function
            if isinstance(function, Function) and function.owner is not None:
                first = next(iter(at.variables.values()), None)
                return function.owner, function.bound or first or unknown("call")
            at = at.parent
        return unknown("call"), unknown("call")

    return find


# Functions, displays, comprehensions


def _lambda(compiler: Compiler, node: ast.Lambda, _: str) -> Eval:
    defaults = function_defaults(compiler, node.args)

    def run(scope: Scope) -> Value:
        function = Function(node, scope.file, scope, "<lambda>")
        function.defaults, function.kw_defaults = defaults(scope)
        return function

    return run


def function_defaults(
    compiler: Compiler, arguments: ast.arguments
) -> Callable[[Scope], tuple[list[Value], dict[str, Value]]]:
    """Compile the defaults of parameters; a literal there is bound to the parameter's name."""
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)
    plain = [_default(compiler, value, arg.arg) for arg, value in pairs]
    keyword_only = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    named = [(arg.arg, _default(compiler, value, arg.arg)) for arg, value in keyword_only if value is not None]
    return lambda scope: ([make(scope) for make in plain], {key: make(scope) for key, make in named})


def _default(compiler: Compiler, node: ast.expr, name: str) -> Eval:
    """Compile the default of a parameter; a literal is marked as a default, as callers may pass another."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str)):
        value = literal(compiler.file, node, node.value, name, default=True)
        return lambda _: value
    return compiler.expression(node, name)


def _display(compiler: Compiler, node: ast.List | ast.Tuple | ast.Set, name: str) -> Eval:
    kind = {ast.List: "list", ast.Tuple: "tuple", ast.Set: "set"}[node.__class__]
    parts = [(compiler.expression(item.value if isinstance(item, ast.Starred) else item, name),
              isinstance(item, ast.Starred)) for item in node.elts]  # fmt: skip
    plain = None if any(starred for _, starred in parts) else [make for make, _ in parts]
    # The two common displays get closures without a loop over parts.
    if plain is not None and kind == "tuple":
        return lambda scope: Items(kind, [make(scope) for make in plain])
    if plain is not None and kind == "list":
        return lambda scope: List(scope.heap, kind, [make(scope) for make in plain])

    def run(scope: Scope) -> Value:
        values: list[Value] = []
        complete, why = True, "branch"
        for make, starred in parts:
            value = make(scope)
            items = scope.machine.iterate(value) if starred else [value]
            if items is None and complete:
                complete, why = False, undecided(value).why
            values += items or []
        if kind == "set":
            return scope.machine.as_set(values, complete=complete)
        return scope.machine.sequence(kind, values, complete=complete, why=why)

    return run


def _table(compiler: Compiler, node: ast.Dict, name: str) -> Eval:
    """Compile `{key: value, **more}`; a literal among the values is bound to its key."""
    parts: list[tuple[Eval | None, Eval]] = []
    for key, value in zip(node.keys, node.values, strict=True):
        text = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else name
        parts.append((compiler.expression(key) if key is not None else None, compiler.expression(value, text)))

    def run(scope: Scope) -> Value:
        entries = Entries({})
        for make_key, make in parts:
            value = make(scope)
            if make_key is None:
                scope.machine.update(entries, value)
            else:
                operations.put_key(entries, make_key(scope), value)
        return scope.machine.table(entries)

    return run


def _comprehension(compiler: Compiler, node: Any, name: str) -> Eval:
    """Compile a comprehension or generator expression, which has a scope of its own."""
    first = compiler.expression(node.generators[0].iter, name)
    own = frozenset(names_of.BodyNames([part.target for part in node.generators]).bound)
    inner = Compiler(compiler.file, own)
    # A comprehension adds Python frames of its own when it runs.
    inner.depth = compiler.depth + 2
    make_key = inner.expression(node.key) if isinstance(node, ast.DictComp) else None
    make = inner.expression(node.value if isinstance(node, ast.DictComp) else node.elt, name)
    rounds = [(inner.store(part.target), inner.expression(part.iter),
               [(inner.expression(test), compiler.text(test)) for test in part.ifs])
              for part in node.generators]  # fmt: skip
    compiler.deepest = max(compiler.deepest, inner.deepest + 4)
    kind = {ast.ListComp: "list", ast.SetComp: "set", ast.GeneratorExp: "iterator"}.get(node.__class__, "dict")

    def run(outer: Scope) -> Value:
        machine = outer.machine
        scope = Scope(machine, outer.file, outer, None)
        collected, keyed = Items(kind, [], why="call"), Entries({}, why="call")

        def visit(level: int, values: Value) -> None:
            items = machine.iterate(values, ordered=kind != "set")
            if items is not None:
                visit_items(level, operations.going_through(machine, values, items, LONGEST + 1))
                return
            collected.complete, collected.why = False, values.why if isinstance(values, (Unknown, Items)) else "call"
            # Of unknown items, one round shows what the element constructs.
            once(scope, LoopChanges([]), collected.why, lambda _: visit_items(level, [unknown(collected.why)]))

        def visit_items(level: int, items: Iterable[Value]) -> None:
            store, _, tests = rounds[level]
            for item in items:
                machine.step()
                if len(collected.items) + len(keyed.items) >= LONGEST:
                    collected.complete = False
                    return
                store(scope, item)
                open_ = ""
                for test, text in tests:
                    truth = machine.truth(test(scope))
                    if truth is False:
                        break
                    open_ = open_ or (text if truth is None else "")
                else:
                    if open_:
                        collected.complete = False
                        fork(scope, lambda _: inside(level), nothing, open_)
                    else:
                        inside(level)

        def inside(level: int) -> None:
            if level + 1 < len(rounds):
                visit(level + 1, rounds[level + 1][1](scope))
            elif make_key is None:
                collected.items.append(make(scope))
            else:
                operations.put_key(keyed, make_key(scope), make(scope))

        visit(0, first(outer))
        if make_key is not None:
            keyed.complete, keyed.why = keyed.complete and collected.complete, collected.why
            return machine.table(keyed)
        if kind == "set" and collected.complete:
            return machine.as_set(collected.items)
        return List(machine.heap, kind, collected.items, complete=collected.complete, why=collected.why)

    return run


# Operators


def _binary(compiler: Compiler, node: ast.BinOp, name: str) -> Eval:
    left, right = compiler.expression(node.left, name), compiler.expression(node.right, name)
    kind = node.op.__class__
    return lambda scope: operations.binary(scope.machine, kind, left(scope), right(scope), node)


def _unary(compiler: Compiler, node: ast.UnaryOp, name: str) -> Eval:
    written, kind = node.operand, node.op.__class__
    # `-1` is one literal to a reader, who is shown it with its sign.
    if isinstance(written, ast.Constant) and type(written.value) in (int, float) and kind is ast.USub:
        negative = literal(compiler.file, node, -written.value, name)  # type: ignore[operator, arg-type]  # one literal
        return lambda _: negative
    operand = compiler.expression(node.operand, name)

    def run(scope: Scope) -> Value:
        value = operand(scope)
        if kind is ast.Not:
            truth = scope.machine.truth(value)
            return Const(not truth, stated_by(value)) if truth is not None else undecided(value)
        if isinstance(value, Const):
            return operations.computed(value.stated, operations.UNARY[kind], value.value) or unknown("call")
        if isinstance(value, Preset):
            return preset(operations.computed(value.number.stated, operations.UNARY[kind], value.number.value))
        return scope.machine.library.operator(scope.machine, value, NONE, node) or undecided(value)

    return run


def _acts(node: ast.expr) -> bool:
    """Whether an expression may have side effects."""
    return any(
        isinstance(part, ast.NamedExpr) or (isinstance(part, ast.Call) and last_name(part.func) not in _QUESTIONS)
        for part in every(node)
    )


def _boolean(compiler: Compiler, node: ast.BoolOp, name: str) -> Eval:
    """Compile `a and b` and `a or b`; an operand with side effects that may not run is a path of its own."""
    makes, until = [compiler.expression(value, name) for value in node.values], isinstance(node.op, ast.Or)
    texts = [compiler.text(value) for value in node.values]
    acts = [*accumulate(map(_acts, reversed(node.values)), or_)][::-1]  # of each: whether it or one behind it does

    def rest(scope: Scope, at: int) -> Value:
        value = makes[at](scope)
        truth = scope.machine.truth(value) if at + 1 < len(makes) else until
        if truth is until:
            return value
        if truth is not None:
            return rest(scope, at + 1)
        results: list[Value] = []
        # Most operands have no side effects, and a fork costs much more than their value.
        if acts[at + 1]:
            condition = f"not ({texts[at]})" if until else texts[at]
            fork(scope, lambda inner: results.append(rest(inner, at + 1)), nothing, condition)
        else:
            results.append(rest(scope, at + 1))
        # `unknown or True` is true, whatever the unknown is.
        other = results[0]
        if isinstance(other, Const) and other.value is until:
            return Const(until)
        # A size that is given otherwise only where it is 0: `d_ff or 4 * d_model`
        return value if until and isinstance(value, Preset) and value.value else undecided(value)

    return lambda scope: rest(scope, 0)


def _compare(compiler: Compiler, node: ast.Compare, _: str) -> Eval:
    first = compiler.expression(node.left)
    rest = [
        (kind.__class__, compiler.expression(value)) for kind, value in zip(node.ops, node.comparators, strict=True)
    ]

    def run(scope: Scope) -> Value:
        left, open_ = first(scope), None
        stated = left.stated if left.__class__ is Const else NOTHING_STATED
        for kind, make in rest:
            right = make(scope)
            if right.__class__ is Const and right.stated:
                stated = union(stated, right.stated)
            truth = operations.compare(scope.machine, kind, left, right)
            if truth is False:
                return Const(False, stated)
            if truth is None:
                open_ = undecided(left, right)
            left = right
        return Const(True, stated) if open_ is None else open_

    return run


def _choice(compiler: Compiler, node: ast.IfExp, name: str) -> Eval:
    """Compile `a if test else b`: one of both, or both joined."""
    test = compiler.expression(node.test)
    sides = compiler.expression(node.body, name), compiler.expression(node.orelse, name)
    text = compiler.text(node.test)
    mode = [text] if names_of.asks_mode(node.test) else []

    def run(scope: Scope) -> Value:
        tested = test(scope)
        truth = scope.machine.truth(tested)
        if truth is not None:
            # `self.training` is decided, but what runs here holds in one mode only: records say so.
            defaults = defaults_in(tested)
            if not mode and not defaults:
                return sides[not truth](scope)
            modes, decided = scope.machine.modes, scope.machine.decided
            marks = len(modes), len(decided)
            modes += mode
            decided.append(defaults)
            value = sides[not truth](scope)
            del modes[marks[0] :], decided[marks[1] :]
            return value
        both: list[Value] = []
        before = scope.heap.now
        fork(scope, lambda at: both.append(sides[0](at)), lambda at: both.append(sides[1](at)), text, f"not ({text})")
        return scope.heap.joined(both[0], both[1], before)

    return run


def _walrus(compiler: Compiler, node: ast.NamedExpr, _: str) -> Eval:
    make, store = compiler.expression(node.value, node.target.id), compiler.store(node.target)

    def run(scope: Scope) -> Value:
        value = make(scope)
        store(scope, value)
        return value

    return run


def _joined_text(compiler: Compiler, node: ast.JoinedStr, _: str) -> Eval:
    parts = [compiler.expression(part) for part in node.values]

    def run(scope: Scope) -> Value:
        values = [part(scope) for part in parts]
        plain_values = constants(values)
        if plain_values is None:
            return undecided(*values)
        return operations.constant("".join(map(str, plain_values)), stated_by(*values)) or unknown("limit")

    return run


def _formatted(compiler: Compiler, node: ast.FormattedValue, _: str) -> Eval:
    make = compiler.expression(node.value)
    spec = compiler.expression(node.format_spec) if node.format_spec is not None else None
    convert = {ord("r"): repr, ord("a"): ascii}.get(node.conversion)

    def run(scope: Scope) -> Value:
        value = make(scope)
        shape = spec(scope) if spec is not None else Const("")
        if not isinstance(value, Const) or not isinstance(shape, Const):
            return undecided(value, shape)
        text = str(shape.value)
        converted = convert(value.value) if convert else value.value
        # A format such as `f"{1:{width}}"` may ask for a gigabyte.
        if not operations.is_small_format(text):
            return unknown("limit")
        return operations.computed(value.stated, format, converted, text) or unknown("call")

    return run


def _awaited(compiler: Compiler, node: ast.Await | ast.Starred, name: str) -> Eval:
    return compiler.expression(node.value, name)


def _yielded(compiler: Compiler, node: ast.Yield | ast.YieldFrom, _: str) -> Eval:
    make = compiler.expression(node.value) if node.value is not None else lambda _: NONE
    delegates = isinstance(node, ast.YieldFrom)

    def run(scope: Scope) -> Value:
        value = make(scope)
        at: Scope | None = scope
        while at is not None and YIELDED not in at.variables:
            at = at.parent
        yielded = at.variables[YIELDED] if at is not None else None
        if isinstance(yielded, List):
            scope.machine.extend(yielded, value if delegates else Items("tuple", [value]))
        return unknown("call")

    return run


# Targets of assignments


def _store(compiler: Compiler, node: ast.expr) -> Store:
    if isinstance(node, ast.Name):
        return compiler.store_name(node.id)
    if isinstance(node, ast.Attribute):
        return _store_attribute(compiler, node)
    if isinstance(node, ast.Subscript):
        receiver, at, index = compiler.expression(node.value), node, compiler.expression(node.slice)
        return lambda scope, value: scope.machine.put(receiver(scope), index(scope), value, at, scope.file)
    if isinstance(node, (ast.Tuple, ast.List)):
        return _store_several(compiler, node)
    if isinstance(node, ast.Starred):
        return compiler.store(node.value)
    return lambda _, __: None


def _store_attribute(compiler: Compiler, node: ast.Attribute) -> Store:
    receiver, attr = compiler.expression(node.value), node.attr

    def put(scope: Scope, value: Value) -> None:
        of = receiver(scope)
        scope.machine.set_attribute(of, attr, value)
        # It may be of a module outside the source, such as `torch.backends.cudnn.benchmark`.
        scope.machine.set_outside(of, Const(attr), value, node, scope.file)

    return put


def _store_several(compiler: Compiler, node: ast.Tuple | ast.List) -> Store:
    targets = [compiler.store(target) for target in node.elts]
    star = next((at for at, target in enumerate(node.elts) if isinstance(target, ast.Starred)), None)

    def unpack(scope: Scope, value: Value) -> None:
        items = scope.machine.iterate(value)
        if items is None and isinstance(value, Items):
            value = unknown(value.why)
        if items is None or (len(items) != len(targets) if star is None else len(items) < len(targets) - 1):
            open_ = scope.machine.part_of(value)
            for put in targets:
                put(scope, open_)
            return
        if star is not None:
            after = len(targets) - star - 1
            end = len(items) - after
            items = [*items[:star], List(scope.heap, "list", items[star:end]), *items[end:]]
        for put, item in zip(targets, items, strict=True):
            put(scope, item)

    return unpack


_EXPRESSIONS: Mapping[type[ast.AST], Callable[[Compiler, Any, str], Eval]] = {
    ast.Constant: _constant, ast.Name: _name, ast.Attribute: _attribute, ast.Subscript: _subscript, ast.Call: _call,
    ast.Lambda: _lambda, ast.List: _display, ast.Tuple: _display, ast.Set: _display, ast.Slice: _slice,
    ast.Dict: _table, ast.ListComp: _comprehension, ast.SetComp: _comprehension, ast.GeneratorExp: _comprehension,
    ast.DictComp: _comprehension, ast.BinOp: _binary, ast.UnaryOp: _unary, ast.BoolOp: _boolean,
    ast.Compare: _compare, ast.IfExp: _choice, ast.NamedExpr: _walrus, ast.JoinedStr: _joined_text,
    ast.FormattedValue: _formatted, ast.Await: _awaited, ast.Starred: _awaited, ast.Yield: _yielded,
    ast.YieldFrom: _yielded,
}  # fmt: skip
