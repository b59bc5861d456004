"""Calls and attribute access: of functions, classes and objects of the source, and of what the library knows."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from convlint.model.location import Location
from convlint.readers.python.evaluator import builtin_types, builtins_table, names_of
from convlint.readers.python.evaluator.library import LibraryCall
from convlint.readers.python.evaluator.limits import DEEPEST, RECURSION
from convlint.readers.python.evaluator.paths import RAISES, RETURNED, RETURNS, YIELDED, KindTest, Scope, fork, gather
from convlint.readers.python.evaluator.statements import Code, is_wrapper
from convlint.readers.python.evaluator.values import (
    DICTS,
    ENUMS,
    FROM_ENVIRONMENT,
    NONE,
    RECORD_BASES,
    Class,
    Const,
    Function,
    Instance,
    Items,
    List,
    Module,
    Name,
    OneKind,
    OneOf,
    Partial,
    Table,
    Tensor,
    Unknown,
    Value,
    as_default,
    behind,
    derives,
    order_of,
    preset,
    reason,
    undecided,
    unknown,
)
from convlint.readers.python.source_file import SourceFile, unparsed
from convlint.readers.python.walking import every

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

_LIBRARY_FRAMES = 14  # Python frames that a library's own functions may put between two calls
_CHANGES_NAMES = frozenset({"update", "setdefault", "pop", "clear", "__setitem__", "popitem"})
# Values that an attribute keeps when unknown code gets the object: layers are rarely replaced
_LASTING = (Instance, Function, Class, Module)
# Packages whose functions read their arguments and change none of them
_HARMLESS = frozenset({"logging", "warnings", "logger", "os", "sys", "time", "re", "json", "numpy", "np", "random"})
_TUPLE, _LINEN = "typing.NamedTuple", "flax.linen.Module"
_MAKES_FIELDS = (_TUPLE, _LINEN, "equinox.Module", *RECORD_BASES)  # bases that make records of their classes
_PLAIN = RECORD_BASES | {"builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol", "typing.NamedTuple"}
_NAMES = ("__name__", "__qualname__")
_LITERALS = (ast.Constant, ast.UnaryOp)
_Shape = tuple[int, tuple[str, ...]]  # of a call: how many positional arguments it has, and the names of the others


class Calls:
    """Evaluates calls and attributes for one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._codes: dict[ast.AST, Code] = {}
        self._attributes: dict[tuple[Class, str], tuple[Value | None, bool]] = {}  # of classes that modules define
        self._callers: dict[ast.AST, tuple[Function | Class, set[_Shape]]] = {}  # of functions and records
        self._trying = False  # whether a OneOf is being tried: another one within is unknown, or tries would multiply

    # Calls

    def call(
        self, value: Value, args: list[Value], keywords: dict[str, Value], node: ast.Call, file: SourceFile
    ) -> Value:
        """Return the result of `value(*args, **keywords)`, where these are all of its arguments."""
        return self.apply(value, LibraryCall(node, file, args, keywords))

    def apply(self, value: Value, call: LibraryCall) -> Value:
        """Return the result of calling `value` with the arguments of `call`."""
        machine = self.machine
        match value:
            case Name():
                return self._call_name(value.name, call)
            case Function():
                if not self._trying:
                    for arg in (*call.args, *call.keywords.values()):
                        if arg.__class__ is OneOf:
                            return self._with_each(value, arg, call)
                return self._in_source(value, call)
            case Class():
                return self._in_source(value, call)
            case OneKind():
                return self._of_each_kind(value.kinds, call)
            case Partial():
                merged = {**value.keywords, **call.keywords} if value.keywords else call.keywords
                return self.apply(value.function, call.with_args([*value.args, *call.args], merged))
            case Instance():
                result = machine.library.call_instance(machine, value, call)
                if result is not None:
                    return result
                method = self.method_of(value, "__call__")
                if method is not None:
                    return self.apply(method, call)
        why = reason(value)
        self.into_unknown(call.values, why)
        return unknown(why)

    def ask(self, method: Value, *args: Value) -> Value:
        """Return the result of a bound method that the source defines but does not call itself, such as `__len__`.

        Unknown if it is no function of the source.
        """
        if not isinstance(method, Function):
            return unknown("call")
        return self.call(method, list(args), {}, self.machine.no_call(method.node), method.file)

    def _with_each(self, value: Function, choice: OneOf, call: LibraryCall) -> Value:
        """Run a function with each of several lists."""

        def run(items: Value) -> Value:
            args = [items if arg is choice else arg for arg in call.args]
            keywords = {name: items if arg is choice else arg for name, arg in call.keywords.items()}
            self._trying = True
            try:
                return self._in_source(value, call.with_args(args, keywords))
            finally:
                self._trying = False

        return self._either([(test, "", partial(run, items)) for test, items in choice.values], call.file)

    def _of_each_kind(self, kinds: Sequence[Value], call: LibraryCall) -> Value:
        """Call each of several classes."""
        tests = [f"{unparsed(call.node.func)[:60]} is kind {number}" for number in range(len(kinds))]
        calls = [partial(self.apply, kind, call) for kind in kinds]
        ways = zip(map(KindTest, tests), [KindTest(f"not ({test})") for test in tests], calls, strict=True)
        return self._either([*ways], call.file)

    def _either(self, ways: Sequence[tuple[str, str, Callable[[], Value]]], file: SourceFile) -> Value:
        """Run each of several ways from the same state, under its test or else the other one, and join the results."""
        (test, otherwise, run), *others = ways
        results: list[Value] = []

        def rest(_: Scope) -> None:
            if others:
                results.append(self._either(others, file))

        fork(Scope(self.machine, file, None, None), lambda _: results.append(run()), rest, test, otherwise)
        return results[0] if len(results) == 1 else self.machine.heap.joined(results[0], results[1])

    def into_unknown(self, values: Sequence[Value], why: str = "call") -> None:
        """Give arguments to code that is unknown for the reason `why`, and may change all of them."""
        self.machine.give_away(values, why)
        self._may_change(values)
        for value in values:
            thing = value.of if isinstance(value, Table) else value
            if isinstance(thing, Instance) and isinstance(thing.cls, Class):
                self.open_attributes(thing)

    def open_attributes(self, thing: Instance | Class) -> None:
        """Make the attributes unknown, as any may have been set; modules and methods are assumed to stay."""
        cell = self.machine.heap.edit(thing)
        names: dict[str, Value] = {}
        if isinstance(thing, Instance):
            cell.complete = False
            order = thing.cls.order if isinstance(thing.cls, Class) else None
            for base in order or ():
                names.update(base.namespace if isinstance(base, Class) else {})
        cell.items = {
            name: value if isinstance(value, _LASTING) else unknown("call")
            for name, value in (*sorted(names.items()), *cell.items.items())
            if name in cell.items or not (isinstance(value, _LASTING) or name.startswith("__"))
        }

    def _in_source(self, value: Function | Class, call: LibraryCall) -> Value:
        machine = self.machine
        machine.push(call.file, call.node)
        height = machine.height
        machine.height += _LIBRARY_FRAMES
        try:
            if machine.height > DEEPEST:
                machine.memory.spoil()
                return unknown("limit")

            if isinstance(value, Class):
                return machine.memory.evaluate(value, call, partial(self._create, value, call))
            run = partial(self.run, value, call.args, call.keywords, call.exact)
            # A bound method depends on its object, whose state is no part of memory's key.
            if value.bound is not None and not isinstance(value.bound, Class):
                return run()
            return machine.memory.evaluate(value, call, run)
        finally:
            machine.height = height
            machine.stack.pop()

    def _call_name(self, name: str, call: LibraryCall) -> Value:
        machine = self.machine
        # A bound method of a value outside the source is a partial of such a name.
        if name.startswith("convlint.method."):
            return self.call_method(call.args[0], name.split(".")[-1], call.with_args(call.args[1:], call.keywords))
        known = builtins_table.FUNCTIONS.get(name)
        if known is not None:
            result = known(machine, call)
            if result is not None:
                return result
        is_builtin = name.startswith("builtins.")
        if not is_builtin:
            answer = machine.library.call(machine, name, call)
            if answer is not None:
                return answer
            if builtins_table.is_config(name):
                return unknown("config")
        machine.give_away(call.values)
        if known is None and not is_builtin and name.split(".")[0] not in _HARMLESS:
            self._may_change(call.values)
        return undecided(*call.values)

    def _may_change(self, values: Sequence[Value]) -> None:
        """Make lists and dicts among the arguments of unknown code incomplete."""
        for value in values:
            self.machine.heap.soften(value, "call")
            if isinstance(value, Function) and value.scope.parent is not None:
                self._may_run(value)

    def _may_run(self, function: Function) -> None:
        """Make unknown what an inner function may change around it, as unknown code may call it."""
        scope, heap = function.scope, self.machine.heap
        names = names_of.OuterNames([function.node])
        for name in sorted(names.rebound & scope.variables.keys()):
            heap.put(scope, name, unknown("call"))
        for name in sorted(names.objects & scope.variables.keys()):
            heap.soften(scope.variables[name], "call")

    def call_method(self, receiver: Value, name: str, call: LibraryCall) -> Value:
        """Return the result of `receiver.name(...)`."""
        machine = self.machine
        match receiver:  # most often an object
            case Instance():
                attribute = self._of_instance(receiver, name)
                return self.apply(attribute, call) if attribute is not None else self._by_library(receiver, name, call)
            case Items() | Table() | Const():
                result = builtin_types.method(machine, receiver, name, call)
                if result is None:
                    machine.give_away(call.values)
                return result or undecided(*call.values)
            case Tensor():
                return self._by_library(receiver, name, call)
            case Module() if name in _CHANGES_NAMES and isinstance(
                machine.modules.member(receiver.path, name), Unknown
            ):
                machine.modules.put(receiver.path, unknown("call"), unknown("call"))  # globals().update(...)
                return unknown("call")
        return self.apply(self.attribute(receiver, name), call)

    def _by_library(self, receiver: Value, name: str, call: LibraryCall) -> Value:
        """Return the result of a method that the source does not define, as the library knows it."""
        machine, args = self.machine, call.args
        if isinstance(receiver, Instance) and name == "__setattr__" and len(args) == 2:
            return builtins_table.set_named(machine, receiver, args[0], args[1], plainly=True)
        result = builtin_types.of_items(machine, receiver, name, call)
        result = result or machine.library.method(machine, receiver, name, call)
        if result is None:
            machine.give_away(call.values)
            self._may_change(call.values)
        return result or unknown("call")

    # Functions of the source

    def code(self, function: Function) -> Code:
        """Return the compiled function."""
        code = self._codes.get(function.node)
        if code is None:
            code = self._codes[function.node] = Code(function.node, function.file)
        return code

    def run(self, function: Function, args: list[Value], keywords: dict[str, Value], exact: bool) -> Value:
        """Run a function of the source and return its result."""
        machine = self.machine
        if function.bound is not None:
            args = [function.bound, *args]
        values = [*args, *keywords.values()]
        if machine.skips is not None and machine.leaves_out(function, values):
            self.into_unknown(values)
            return unknown("call")
        code = self.code(function)
        height = machine.height + code.height
        active = machine.active.get(function.node, 0)
        if (function.defaults or function.kw_defaults or code.kwarg) and not active:
            self._callers.setdefault(function.node, (function, set()))[1].add((len(args), (*keywords,)))
        # With known arguments a recursion ends by itself; with unknown ones its test is never decided.
        is_open = active >= RECURSION and (not exact or any(isinstance(value, Unknown) for value in values))
        if height > DEEPEST or is_open:
            if height > DEEPEST:
                machine.memory.spoil()
            else:
                machine.memory.limited.add(function.node)
            self.into_unknown(values)
            return unknown("limit")
        scope = Scope(machine, function.file, function.scope, function)
        why = "call" if exact else "caller"
        self._bind(scope.first.items, code, function, args, keywords, complete=exact, missing=why, more="caller")
        return self.enter(scope, code, height)

    def defaults(self) -> tuple[frozenset[Location], frozenset[Location]]:
        """Return literals in defaults that some call overrides, and that some does not; unknown `**kwargs` do not."""
        places: dict[bool, set[Location]] = {True: set(), False: set()}
        for node, (called, shapes) in self._callers.items():
            if isinstance(called, Class):
                order, pairs = called.fields or [], [*names_of.annotated(called.node).items()]
            else:
                order, more = self.code(called).positional, names_of.asked_of(node, self.code(called).kwarg)
                pairs = [*names_of.defaults(called.node.args), *more]
            for name, default in pairs:
                at = order.index(name) if name in order else 10**9
                literals = [part for part in every(default) if isinstance(part, _LITERALS)] if default else []
                for overridden in {at < count or name in keywords for count, keywords in shapes}:
                    places[overridden].update(map(called.file.locate, literals))
        return frozenset(places[True]), frozenset(places[False])

    def enter(self, scope: Scope, code: Code, height: int) -> Value:
        """Run the body in a scope whose parameters are bound."""
        machine, function = self.machine, scope.function
        node: ast.AST = function.node if function is not None else ast.Pass()
        outer_height, machine.height = machine.height, height
        mark, modes, doubts = len(machine.conditions), len(machine.modes), len(machine.doubts)
        decided = len(machine.decided)
        machine.active[node] = machine.active.get(node, 0) + 1
        machine.memory.tallest = max(machine.memory.tallest, height)
        # A generator is run at once, to the end: its items are needed before its caller goes on anyway.
        yielded = List(machine.heap, "iterator", []) if code.generator else None
        if yielded is not None:
            scope.first.items[YIELDED] = yielded
        try:
            machine.step()
            how = code.run(scope)
            if scope.leaving:
                if how is None:
                    machine.heap.put(scope, RETURNED, NONE)
                how = RETURNS if gather(machine.heap, scope.leaving, alive=how != RAISES) else RAISES
        finally:
            machine.height = outer_height
            # An early return leaves its test on the list; it holds only up to the end of the function.
            del machine.conditions[mark:], machine.doubts[doubts:], machine.modes[modes:], machine.decided[decided:]
            machine.active[node] -= 1
        if yielded is not None:
            return yielded
        return scope.variables[RETURNED] if how == RETURNS else NONE if how is None else unknown("call")

    def _bind(
        self, variables: dict[str, Value], code: Code, function: Function, args: list[Value],
        keywords: dict[str, Value], *, complete: bool, missing: str, more: str,
    ) -> None:  # fmt: skip
        """Bind each parameter to its argument, or if the arguments are `complete` to its default.

        All others are unknown for the reason `missing`, and what `*args` and `**kwargs` hold for the reason `more`.
        """
        positional = code.positional
        variables.update(zip(positional, args, strict=False))
        others: dict[str, Value] = {}
        for name, value in keywords.items():
            (variables if name in code.names else others)[name] = value
        if len(variables) < len(positional) + len(code.keyword_only):
            without, otherwise = len(positional) - len(function.defaults), unknown(missing)
            defaults: dict[str, Value] = {}
            if complete:
                defaults = {**dict(zip(positional[without:], function.defaults, strict=True)), **function.kw_defaults}
            for name in (*positional, *code.keyword_only):
                if name not in variables:
                    variables[name] = defaults.get(name, otherwise)
        if code.vararg:
            variables[code.vararg] = Items("tuple", args[len(positional) :], complete=complete, why=more)
        if code.kwarg:
            variables[code.kwarg] = Table(self.machine.heap, others, complete=complete, why=more)

    def with_unknown(self, function: Function, defaults: bool, frames: list[Scope]) -> Value:
        """Call a function with unknown parameters, or with their `defaults`; append its scope to `frames`."""
        code = self.code(function)
        scope = Scope(self.machine, function.file, function.scope, function)
        frames.append(scope)
        args = [function.bound] if function.bound is not None and code.positional else []
        self._bind(
            scope.first.items, code, function, args, {}, complete=defaults, missing="parameter", more="parameter"
        )
        return self.enter(scope, code, code.height)

    # Attributes

    def _of_instance(self, instance: Instance, name: str) -> Value | None:
        """Return an attribute that was set on the object or by its class in the source; None if there is none."""
        cell, cls = instance.cell, instance.cls
        value: Value | None = cell.items.get(name)
        if not isinstance(cls, Class):
            return value
        if cls.intercepts or name in cls.described:
            return unknown("call")
        if value is not None and name not in cell.may:
            return value
        # Paths met where only one had set the attribute: on the other, the class's is read.
        class_value, certain = self.find(cls, name)
        if class_value is not None:
            inherited = self.bind(class_value, instance, cls)
            return inherited if value is None else self.machine.heap.joined(value, inherited)
        if value is not None:
            return value if self.find(cls, "__getattr__")[0] is None else unknown("call")
        return self._computed(instance, cls, name) if certain else unknown("call")

    def _computed(self, instance: Instance, cls: Class, name: str) -> Value | None:
        """Return the result of the source's `__getattr__`, which Python calls only for attributes that do not exist."""
        if name.startswith("__") or (name in builtin_types.METHODS_OF_DICT and derives(cls, DICTS)):
            return None
        method, _ = self.find(cls, "__getattr__")
        if method is None or self.machine.library.attribute(self.machine, instance, name) is not None:
            return None
        return self.ask(method.to(instance), Const(name)) if isinstance(method, Function) else unknown("call")

    def attribute(self, value: Value, name: str) -> Value:
        """Return `value.name`."""
        machine = self.machine
        match value:
            case Instance():
                return self._attribute(value, name)
            case Unknown():
                return unknown(value.why)
            case Name():
                return Name(f"{value.name}.{name}")
            case Module():
                return value if name == "__dict__" else machine.modules.member(value.path, name)
            case Class():
                return self._class_attribute(value, name)
            case Tensor():
                if (attribute := machine.library.attribute(machine, value, name)) is not None:
                    return attribute
            case Function():
                return Const(value.name) if name in _NAMES else unknown("call")
            case Partial():
                if name == "func":
                    return value.function
                return Table(machine.heap, value.keywords) if name == "keywords" else unknown("call")
            case Const() if name in ("real", "numerator", "value") and isinstance(value.value, int):
                return value
            case Table() if name not in builtin_types.METHODS_OF_DICT:
                return builtin_types.named(value, name)
        return Partial(Name(f"convlint.method.{name}"), [value], {})

    def _attribute(self, value: Instance, name: str) -> Value:
        machine = self.machine
        if name == "__class__":
            return value.cls
        if name == "__dict__":
            return Table(machine.heap, {}, of=value)
        attribute = self._of_instance(value, name) or machine.library.attribute(machine, value, name)
        if attribute is not None:
            return attribute
        if isinstance(value.cls, Class) and machine.library.subclass_of(value.cls) is None:
            return unknown("call")
        return Partial(Name(f"convlint.method.{name}"), [value], {})

    def set_attribute(self, receiver: Value, name: str, value: Value) -> None:
        """Evaluate `receiver.name = value`."""
        machine = self.machine
        if isinstance(receiver, Instance):
            if isinstance(receiver.cls, Class):
                # A descriptor's `__set__` may store the value anywhere.
                if name in receiver.cls.described:
                    machine.lost(value)
                    return
                setter = self.find(receiver.cls, f"{name}.setter")[0]
                own = self.find(receiver.cls, "__setattr__")[0]
                for method, args in ((own, [Const(name), value]), (setter, [value])):
                    if isinstance(method, Function):
                        self.ask(method.to(receiver), *args)
                        return
            self.set_plainly(receiver, name, value)
        elif isinstance(receiver, Class):
            known = self.find(receiver, name)[0] if isinstance(value, Function) and is_wrapper(value) else None
            machine.heap.put(receiver, name, known if isinstance(known, Function) else value)
        elif isinstance(receiver, Module):
            machine.modules.put(receiver.path, Const(name), value)
        elif isinstance(receiver, Table):
            machine.heap.put(receiver.owner, name, value)
        else:
            machine.lost(value)
            if isinstance(receiver, Tensor):
                machine.library.set_attribute(machine, receiver, name, value)
            if isinstance(receiver, Unknown):
                machine.heap.changed_by_another_name(attribute=True)

    def set_plainly(self, receiver: Instance, name: str, value: Value) -> None:
        """Evaluate `object.__setattr__(receiver, name, value)`."""
        if name == "__dict__":
            if value is not receiver:  # as dicts write whose items are their attributes
                self.open_attributes(receiver)
            return
        self.machine.heap.put(receiver, name, value)
        self.machine.library.set_attribute(self.machine, receiver, name, value)

    # Classes

    def finish_class(self, cls: Class, *, is_record: bool) -> None:
        """Complete a class whose body has run: the order of its bases, its fields and its enumeration members."""
        cls.order = order_of(cls)
        parents = [base for base in cls.order if isinstance(base, Class) and base is not cls]
        if cls.meta is None:
            cls.meta = next((base.meta for base in parents if base.meta is not None), None)
        own_names = {name for name, value in cls.namespace.items() if self._describes(value)}
        bases = [base.described - cls.namespace.keys() for base in parents]
        cls.described = frozenset(own_names).union(*bases)
        changed = names_of.set_on_class(cls.node, cls.file.content)
        # Creation of the class may change any of its plain attributes, in ways that are not followed.
        if names_of.changes_anything(self._makers(cls)):
            changed |= {name for name, value in cls.namespace.items() if not isinstance(value, Function)}
        for name in changed:
            if self.find(cls, name)[0] is not None:
                cls.namespace[name] = unknown("caller")
        cls.intercepts = self.find(cls, "__getattribute__")[0] is not None
        inherited = next((base.fields for base in parents if base.fields is not None), None)
        by_base = derives(cls, _MAKES_FIELDS)
        if is_record or by_base or inherited is not None:
            before = inherited or []
            own = names_of.annotated(cls.node) if is_record or by_base else {}
            cls.fields = [*before, *(name for name in own if name not in before)]
        if self.is_enum(cls):
            for name, value in list(cls.namespace.items()):
                if not name.startswith("_") and not isinstance(value, Function):
                    member = Instance(self.machine.heap, cls)
                    member.first.items = {"name": Const(name), "value": value}
                    cls.namespace[name] = member

    def _makers(self, cls: Class) -> list[ast.AST]:
        """Return the functions that take part in creating the class: of its metaclass, and `__set_name__`."""
        meta = cls.meta
        functions: list[Value | None] = [meta] if isinstance(meta, Function) else []
        if isinstance(meta, Class):
            functions += [self.find(meta, name)[0] for name in ("__new__", "__init__", "__prepare__")]
        functions += [self.find(value.cls, "__set_name__")[0] for value in cls.namespace.values()
                      if isinstance(value, Instance) and isinstance(value.cls, Class)]  # fmt: skip
        return [function.node for function in functions if isinstance(function, Function)]

    def _describes(self, value: Value) -> bool:
        if not isinstance(value, Instance):
            return False
        if isinstance(value.cls, Name):
            return value.cls.name == "builtins.property"
        return any(self.find(value.cls, name)[0] is not None for name in ("__get__", "__set__"))

    def is_enum(self, cls: Class) -> bool:
        """Whether the class is an enumeration."""
        return derives(cls, ENUMS)

    def find(self, cls: Class, name: str, after: Class | None = None) -> tuple[Value | None, bool]:
        """Return an attribute of the class and its bases, behind `after` if given, and whether it is certain.

        It is not certain if an unknown base may override it.
        """
        heap = self.machine.heap
        if after is not None or heap.in_module or heap.class_changed or cls.born > 0:
            return self._find(cls, name, after)
        result = self._attributes.get((cls, name))
        if result is None:
            result = self._attributes[cls, name] = self._find(cls, name, None)
        else:
            heap.reads.update(cls.order or (cls,))
        return result

    def forget_attributes(self) -> None:
        """Clear the cache of attributes, as a module has run and may have changed classes."""
        self._attributes = {}

    def _find(self, cls: Class, name: str, after: Class | None) -> tuple[Value | None, bool]:
        certain = True
        open_: Value | None = None  # that some paths alone bind, so that a base's is meant on the others
        for base in behind(cls, after):
            if isinstance(base, Class):
                cell = base.cell
                value = cell.items.get(name)
                if value is None:
                    continue
                if open_ is not None:
                    return unknown("branch"), certain  # one of both
                if name not in cell.may:
                    return (value if certain else None), certain
                open_ = value
            elif isinstance(base, Unknown):
                certain = False
            elif name == "__init__" and isinstance(base, Name) and self.machine.library.has(base.name):
                break  # the framework's class has one, which calls none behind it
        return (open_ if certain else None), certain

    def framework_base(self, cls: Class, after: Class | None = None) -> str:
        """Return the name of the first base outside the source, behind `after`; '' if there is none but `object`."""
        return next((of.name for of in behind(cls, after) if isinstance(of, Name) and of.name not in _PLAIN), "")

    def method_of(self, instance: Instance, name: str) -> Value | None:
        """Return the bound method that the source defines; None if it defines none."""
        if not isinstance(instance.cls, Class):
            return None
        value, _ = self.find(instance.cls, name)
        return self.bind(value, instance, instance.cls) if value is not None else None

    def bind(self, value: Value, instance: Instance | None, cls: Class) -> Value:
        """Bind a class attribute as reading it from an instance, or from the class itself, does."""
        if not isinstance(value, Function) or value.bound is not None or value.kind == "static":
            return value
        if value.kind == "class":
            return value.to(cls)
        # A function set on an object or added to a class later is not bound by Python's rules here.
        if instance is None or value.owner is None:
            return value
        method = value.to(instance)
        return self.ask(method) if value.kind == "property" else method

    def _class_attribute(self, cls: Class, name: str) -> Value:
        value, certain = self.find(cls, name)
        # Descriptors compute what is read: only their code knows the value.
        if name in cls.described or self._answered_by_meta(cls, name):
            return unknown("call")
        if value is not None:
            return self.bind(value, None, cls)
        if name in _NAMES:
            return Const(cls.name)
        if name == "__init__" and certain:
            return Partial(Name("convlint.init"), [cls], {})
        if name == "__dict__":
            return Table(self.machine.heap, cls.namespace, complete=False)
        if name == "__members__" and self.is_enum(cls):
            members = {key: value for key, value in cls.namespace.items() if isinstance(value, Instance)}
            return Table(self.machine.heap, members)
        return unknown("call")

    def _answered_by_meta(self, cls: Class, name: str) -> bool:
        """Whether a metaclass of the source overrides the attribute of the class."""
        if not isinstance(cls.meta, Class) or name.startswith("__"):
            return False
        own = self.find(cls.meta, name)[0]
        return self.find(cls.meta, "__getattribute__")[0] is not None \
            or (isinstance(own, Function) and own.kind == "property")  # fmt: skip

    def inherited(self, start: Value, of: Value, name: str) -> Value:
        """Return `super().name`, looked up behind the class `start`."""
        cls = of.cls if isinstance(of, Instance) else of
        if not isinstance(start, Class) or not isinstance(cls, Class):
            return unknown("call")
        value, _ = self.find(cls, name, start)
        if value is not None:
            return self.bind(value, of if isinstance(of, Instance) else None, cls)
        return Partial(Name(f"convlint.method.{name}"), [of], {})

    def call_inherited(self, start: Value, of: Value, name: str, call: LibraryCall) -> Value:
        """Return the result of `super().name(...)`, looked up behind the class `start`."""
        machine, args = self.machine, call.args
        cls = of.cls if isinstance(of, Instance) else of
        if not isinstance(start, Class) or not isinstance(cls, Class):
            machine.give_away(call.values)
            return unknown("call")
        # `super()` within a metaclass: its object is a class.
        if isinstance(of, Class) and isinstance(of.meta, Class) and start in (of.meta.order or ()):
            above, _ = self.find(of.meta, name, start)
            if isinstance(above, Function):
                return self.apply(above.to(of), call)
            return self.construct(of, call) if name == "__call__" else unknown("call")
        value, certain = self.find(cls, name, start)
        if value is not None:
            return self.apply(self.bind(value, of if isinstance(of, Instance) else None, cls), call)
        if name == "__new__":
            return Instance(machine.heap, args[0]) if args and isinstance(args[0], Class) else unknown("call")
        if not isinstance(of, Instance):
            return unknown("call")
        if name == "__init__":
            self.initialize(of, start, call, certain=certain)
            return NONE
        return self._by_library(of, name, call)

    def initialize(self, instance: Instance, after: Class | None, call: LibraryCall, *, certain: bool) -> None:
        """Run the `__init__` of a base that is not in the source, the first one behind `after`."""
        machine = self.machine
        if not isinstance(instance.cls, Class):
            return
        if not certain:
            machine.heap.edit(instance).complete = False
        base = self.framework_base(instance.cls, after)
        if base in DICTS:
            self._by_library(instance, "__init__", call)
        elif base and not machine.library.initialize(machine, instance, base, call):
            machine.give_away(call.values)
            machine.heap.edit(instance).complete = False
            for name in call.keywords:  # which may replace the value that the class has
                machine.heap.put(instance, name, unknown("call"))

    def _create(self, cls: Class, call: LibraryCall) -> Value:
        """Return the result of `cls(...)`, which a metaclass of the source may define."""
        if self.is_enum(cls):
            return self._member(cls, call.args)
        if isinstance(cls.meta, Unknown):
            self.machine.give_away(call.values)
            return unknown(cls.meta.why)
        method = self.find(cls.meta, "__call__")[0] if isinstance(cls.meta, Class) else None
        if isinstance(method, Function):
            return self.run(method.to(cls), call.args, call.keywords, call.exact)
        return self.construct(cls, call)

    def construct(self, cls: Class, call: LibraryCall) -> Value:
        """Return the result of `type.__call__(cls, ...)`: a new object whose `__init__` has run."""
        new = self.find(cls, "__new__")[0]
        instance: Value = Instance(self.machine.heap, cls)
        if isinstance(new, Function):
            instance = self.run(new, [cls, *call.args], call.keywords, call.exact)
        # Python calls `__init__` only if `__new__` gives an object of the class.
        if not isinstance(instance, Instance) or not isinstance(instance.cls, Class) \
                or cls not in (instance.cls.order or (instance.cls,)):  # fmt: skip
            return instance
        init, certain = self.find(instance.cls, "__init__")
        if isinstance(init, Function):
            self.run(init.to(instance), call.args, call.keywords, call.exact)
        elif init is not None or not certain:
            self.machine.heap.edit(instance).complete = False
            self.machine.give_away(call.values)
        else:
            self.initialize(instance, None, call, certain=certain)
            if cls.fields is not None:
                self._fill_fields(instance, cls, call)
        return instance

    def without_caller(self, root: Function | Class, defaults: bool, frames: list[Scope]) -> Value:
        """Call a root, a function or class without a known caller; append the scopes entered to `frames`."""
        if isinstance(root, Function):
            return self.with_unknown(root, defaults, frames)
        called = self.find(root.meta, "__call__")[0] if isinstance(root.meta, Class) else None
        if isinstance(called, Function):
            return self.with_unknown(called.to(root), defaults, frames)
        new = self.find(root, "__new__")[0]
        instance: Value = Instance(self.machine.heap, root)
        if isinstance(new, Function):
            instance = self.with_unknown(new.to(root), defaults, frames)
        if not isinstance(instance, Instance) or instance.cls is not root:
            return instance
        init, certain = self.find(root, "__init__")
        call = LibraryCall(self.machine.no_call(root.node), root.file, [], {}, defaults)
        if self.is_enum(root):
            return unknown("call")
        if isinstance(init, Function):
            self.with_unknown(init.to(instance), defaults, frames)
        elif root.fields is not None:
            return self._create(root, call)
        else:
            self.initialize(instance, None, call, certain=certain)
        return instance

    def _member(self, cls: Class, args: list[Value]) -> Value:
        for value in cls.namespace.values():
            if isinstance(value, Instance) and args and isinstance(args[0], Const):
                member_value = value.attributes.get("value")
                if isinstance(member_value, Const) and member_value.value == args[0].value:
                    return value
        return args[0] if args and isinstance(args[0], Instance) else unknown("call")

    def fields_of(self, instance: Instance) -> list[Value] | None:
        """Return the items of a loop over a named tuple; None if the object is none."""
        cls = instance.cls
        if not isinstance(cls, Class) or cls.fields is None or not derives(cls, (_TUPLE,)):
            return None
        return [instance.attributes.get(name, unknown("call")) for name in cls.fields]

    def members(self, cls: Class) -> list[Value] | None:
        """Return the items of a loop over an enumeration; None if the class is none."""
        return [value for value in cls.namespace.values() if isinstance(value, Instance)] if self.is_enum(cls) else None

    def _fill_fields(self, instance: Instance, cls: Class, call: LibraryCall) -> None:
        """Run the generated `__init__` of a dataclass or named tuple; and what Flax runs once its module is bound."""
        machine = self.machine
        fields = cls.fields or []
        if machine.stack:
            self._callers.setdefault(cls.node, (cls, set()))[1].add((len(call.args), (*call.keywords,)))
        given = call.keywords | dict(zip(fields, call.args, strict=False))
        validated = names_of.validated((base.node for base in cls.order or () if isinstance(base, Class)), fields)
        from_environment = derives(cls, FROM_ENVIRONMENT)
        for name in fields:
            default = as_default(self._field_default(cls, name, call.node) if call.exact else unknown("caller"))
            default = preset(default) if from_environment else default
            machine.heap.put(instance, name, unknown("call") if name in validated else given.get(name) or default)
        names = ("__post_init__", "setup") if derives(cls, (_LINEN,)) else ("__post_init__",)
        for name in names:
            if (after := self.method_of(instance, name)) is not None:
                machine.call(after, [], {}, call.node, cls.file)

    def _field_default(self, cls: Class, name: str, node: ast.Call) -> Value:
        match self.find(cls, name)[0]:
            case Partial(function=Name(name="convlint.field"), keywords={"default": default}):
                return default
            case Partial(function=Name(name="convlint.field"), keywords={"default_factory": make}):
                return self.machine.call(make, [], {}, node, cls.file)
            case None | Partial(function=Name(name="convlint.field")):
                return unknown("call")
            case default:
                return default
