"""Evaluate training programs to find the settings they make, in order; functions that lead to none are skipped."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache

from msgspec.structs import replace

from convlint.model.location import Location
from convlint.readers.python.evaluator.library import Library, LibraryCall
from convlint.readers.python.evaluator.limits import STEPS_OF_ROOT
from convlint.readers.python.evaluator.machine import Machine
from convlint.readers.python.evaluator.memory import DOOMED, Recorded
from convlint.readers.python.evaluator.paths import Scope, Side, Test
from convlint.readers.python.evaluator.values import (
    NONE,
    Const,
    Function,
    Instance,
    Partial,
    Value,
    unknown,
)
from convlint.readers.python.imports import ProjectImports
from convlint.readers.python.programs.segments import Reach, Segment, called, parts
from convlint.readers.python.programs.settings import (
    NOBODY_KNOWS,
    SETS,
    Condition,
    Event,
    LiteralValue,
    Set,
    holding,
    may_set,
    once,
    set_by_call,
    set_by_name,
)
from convlint.readers.python.programs.unit import literal
from convlint.readers.python.project import Project
from convlint.readers.python.source_file import SourceFile, is_guard
from convlint.readers.python.walking import every

Place = tuple[str, int, int]  # path, line and column
Line = tuple[str, int]
_LARGE = 80  # files; in smaller repositories each import is evaluated, to know the tests around it


class Relevant:
    """The segments of some files that make settings or refer to one that does."""

    reach: Reach  # cuts the files

    def __init__(self, imports: ProjectImports) -> None:
        self._imports = imports
        self._files: set[str] = set()
        self._left_out: set[Line] = set()
        self._modules: set[str] = set()
        self._direct: set[str] = set()
        self._seen_from = cache(lambda path: frozenset(imports.closure(path).files))

    def search(self, files: Iterable[str]) -> None:
        """Search the files; before that, everything is skipped."""
        self._files = set(files)
        segments = [each for path in self._files for each in self.reach.segments(path)]
        found = self._setting(segments)
        self._left_out = {(each.path, each.line) for each in segments if each.kind == "function"}
        self._left_out -= {(each.path, each.line) for each in found}
        runs = [each for each in found if each.kind == "function" and (not each.is_method or each.name == "__init__")]
        names = {(each.cls or each.name).encode() for each in runs}
        self._modules = {
            each.path
            for each in segments
            if (each.kind != "function" and may_set(each.by_import))
            or (each.kind == "module" and not names.isdisjoint(called(each.by_import)))
        }
        self._direct = set(self._modules)
        importers: dict[str, list[str]] = {}
        for path in self._files:
            for each in self._imports.near(path):
                importers.setdefault(each, []).append(path)
        waiting = list(self._modules)
        while waiting:
            for path in importers.get(waiting.pop(), ()):
                if path not in self._modules:
                    self._modules.add(path)
                    waiting.append(path)

    def skips(self, function: Function) -> bool:
        """Whether a function cannot lead to a setting; an inner function is judged by its outer one."""
        path = function.file.path
        return path not in self._files or (path, function.node.lineno) in self._left_out

    def module(self, path: str) -> bool:
        """Whether importing a file can lead to a setting."""
        return path in self._modules

    def passes_on(self, path: str) -> bool:
        """Whether a file of a large repository makes no setting itself, but imports one that does."""
        return path not in self._direct and len(self._files) > _LARGE

    def _names_one(self, segment: Segment, defined: dict[bytes, set[str]], words: frozenset[bytes]) -> bool:
        """Whether words of a segment name a definition in its own file or in one that it imports."""
        return any(
            segment.path in defined[name] or not defined[name].isdisjoint(self._seen_from(segment.path))
            for name in defined.keys() & words
        )

    def _setting(self, segments: list[Segment]) -> list[Segment]:
        content = self._imports.project.content
        setting = {path for path in self._files if may_set(content(path) or b"")}
        found: list[Segment] = []
        rest: list[Segment] = []
        for each in segments:
            (found if each.path in setting and each.has(SETS) else rest).append(each)
        new, hops = found, 0
        # From the definitions with settings outwards, to all that name them, however indirectly.
        while new:
            functions: dict[bytes, set[str]] = {}  # by name: the files that define one
            classes: dict[bytes, set[str]] = {}
            for each in new:
                if each.kind == "class" or (each.is_method and (each.name == "__init__" or not hops)):
                    classes.setdefault(each.cls.encode(), set()).add(each.path)
                elif each.name and not each.is_method:
                    functions.setdefault(each.name.encode(), set()).add(each.path)
            methods = {each.name.encode() for each in new if each.is_method and each.name != "__init__"}
            names = {*methods, *functions, *classes}
            new = [
                each
                for each in rest
                if not names.isdisjoint(each.words)
                and (
                    not methods.isdisjoint(each.attributes)
                    or self._names_one(each, functions, each.words)
                    or self._names_one(each, classes, each.words if each.kind == "class" else each.called)
                )
            ]
            hops += 1
            chosen = set(new)
            rest = [each for each in rest if each not in chosen]
            found = found + new
        return found


# Functions that call their argument before they return
_AT_ONCE = frozenset({"fire.Fire", "absl.app.run", "typer.run", "tyro.cli", "asyncio.run", "tf.compat.v1.app.run"})
STEPS_OF_PROGRAM = 5_000  # statements and calls: most programs take some hundred
STEPS_WHERE_OWNED = 1_000
STEPS_OF_ALL = 400_000
_ELSEWHERE, SPAWNED = "elsewhere: ", "spawned: "
# Functions that run their argument in each of several processes
_SPAWN = frozenset({"torch.multiprocessing.spawn", "torch.multiprocessing.start_processes"})


class _Machine(Machine):
    """A machine that remembers which calls it followed."""

    def __init__(self, project: Project, library: Runs) -> None:
        super().__init__(project, library)
        self.followed: set[Place] = set()  # positions of the called names
        self.least_steps = STEPS_OF_ROOT
        self.heap.follows_aliases = False  # lists that others change decide no test around a setting

    def push(self, file: SourceFile, node: ast.Call) -> None:
        """Begin a call of something in the source, and remember it."""
        self.followed.add((file.path, node.func.lineno, node.func.col_offset))
        super().push(file, node)

    def _handed_out(self, frames: list[Scope], defaults: bool) -> Iterator[Value]:  # noqa: ARG002
        """Return nothing: settings in functions without a caller are found by their text instead."""
        return iter(())


class Runs(Library):
    """Evaluates the programs of a project; as the evaluator's library, it knows only what makes a setting."""

    def __init__(self, imports: ProjectImports, relevant: Relevant) -> None:
        self._imports, self._relevant = imports, relevant
        self.machine = _Machine(imports.project, self)
        self.machine.skips = relevant.skips
        self.machine.left_of_run = STEPS_OF_ALL
        self._made: dict[Event, Event] = {}
        self._handed: set[ast.AST] = set()
        self._of_handed: dict[object, list[Recorded]] = {}  # what functions set that something else was given
        self._by_import: dict[str, list[Recorded]] = {}

    def events(self, entry: str, files: Iterable[str], *, owned: bool) -> tuple[tuple[Event, ...], bool]:
        """Return the settings of a program in order of execution, and whether these are all.

        If the settings are `owned` by a library, fewer steps are spent, as the program cannot be complete anyway.
        """
        machine = self.machine
        machine.steps_of_file = STEPS_WHERE_OWNED if owned else STEPS_OF_PROGRAM
        machine.run_module(entry)
        recorded, whole = list(machine.modules.recorded.get(entry, ())), True
        for function in machine.scripts(entry):
            recorded += machine.run_root(function, defaults=False).recorded
            whole = whole and machine.steps >= 0
        machine.reset(machine.heap.base)
        return once(map(_event, recorded)), whole and machine.modules.unfinished.isdisjoint(files)

    def _record(self, machine: Machine, found: Iterable[Set], at: Location) -> bool:
        events = [Event(name, _plain(value), at) for name, value in found]
        for each in events:
            machine.record(self._made.setdefault(each, each))  # equal ones are one, as memory tells them apart
        return bool(events)

    # What the evaluator asks its library

    def call(self, machine: Machine, name: str, call: LibraryCall) -> Value | None:
        """Record a call that makes a setting; follow one that runs its argument at once."""
        at = call.file.locate(call.node)
        if self._record(machine, set_by_call(name, call.args if call.exact else (), call.keywords), at):
            return NONE
        if name in _AT_ONCE and call.args and isinstance(call.args[0], Function):
            return machine.calls.run(call.args[0], [], {}, exact=False)
        if name in _SPAWN:
            for each in call.values:
                self._run_apart(machine, each, SPAWNED)
            return unknown("call")
        return None

    def set_outside(
        self, machine: Machine, name: str, key: Value, value: Value, node: ast.AST, file: SourceFile
    ) -> None:
        """Record the assignment of a flag of PyTorch or of an environment variable."""
        found = list(set_by_name(name, key, value))
        if found:
            self._record(machine, found, file.locate(_statement(node, file)))

    def imported(self, machine: Machine, node: ast.Import | ast.ImportFrom, file: SourceFile) -> None:
        """Run an imported module that makes settings, and add its records here."""
        for path in dict.fromkeys(self._named(node, file.path)):
            found = self._set_by_import(path) if path != file.path and self._relevant.module(path) else []
            have = {(each.thing.name, each.thing.at) for each in machine.recorded if each.thing.imported}
            conditions, doubts = tuple(machine.conditions), tuple(machine.doubts)
            machine.recorded += [
                replace(each, conditions=conditions + each.conditions, doubts=doubts + each.doubts)
                for each in found
                if (each.thing.name, each.thing.at) not in have
            ]

    def _set_by_import(self, path: str) -> list[Recorded]:
        """Return the records of importing a module; one that only imports others need not be run."""
        found = self._by_import.get(path)
        if found is None and self._relevant.passes_on(path):
            self._by_import[path] = []  # of one that imports itself in the end
            near = [each for each in self._imports.near(path) if self._relevant.module(each)]
            below = (each for one in near for each in self._set_by_import(one))
            found = [replace(each, doubts=(path, *each.doubts)) for each in below]
        elif found is None:
            self.machine.run_module(path)
            if path not in self.machine.modules.recorded:
                return []  # it runs now, and imports the one that imports it
            recorded = self.machine.modules.recorded[path]
            found = [replace(each, thing=replace(each.thing, imported=True)) for each in recorded]
        self._by_import[path] = found
        return found

    def _named(self, node: ast.Import | ast.ImportFrom, path: str) -> Iterator[str]:
        resolve = self._imports.resolve
        names, level = [each.name for each in node.names], 0
        if isinstance(node, ast.ImportFrom):
            module, level = node.module or "", node.level
            names = [module, *(f"{module}.{name}".lstrip(".") for name in names)]
        yield from filter(None, (resolve(name, path, level) for name in names))

    def escapes(self, machine: Machine, value: Value, why: str = "call") -> None:  # noqa: ARG002
        """Run a function that was given to unknown code, which may call it later or in another process."""
        self._run_apart(machine, value, _ELSEWHERE)

    def _run_apart(self, machine: Machine, value: Value, how: str) -> None:
        while isinstance(value, Partial):
            value = value.function
        if not isinstance(value, Function) or value.node in self._handed or self._relevant.skips(value):
            return
        # What a method does depends on its object, so that its records cannot be reused.
        known = (value.node, value.bound, how) if not isinstance(value.bound, Instance) else None
        mark, conditions, doubts = len(machine.recorded), len(machine.conditions), len(machine.doubts)
        if known in self._of_handed:
            machine.recorded += [
                Recorded(each.thing, (*machine.conditions, *each.conditions), (), (*machine.doubts, *each.doubts))
                for each in self._of_handed[known]
            ]
            return
        self._handed.add(value.node)
        machine.conditions.append(f"{how}{value.file.path}:{value.node.lineno}")
        machine.calls.run(value, [], {}, exact=False)
        machine.conditions.pop()
        self._handed.discard(value.node)
        if known is not None and value.scope.parent is None:
            self._of_handed[known] = [
                Recorded(each.thing, each.conditions[conditions:], (), each.doubts[doubts:])
                for each in machine.recorded[mark:]
            ]


def _plain(value: Value) -> tuple[LiteralValue] | None:
    plain = value.value if isinstance(value, Const) else ()
    return (plain,) if isinstance(plain, bool | int | float | str | None) else None


def _event(recorded: Recorded) -> Event:
    """Convert a record to an event with the conditions around it."""
    conditions = [Condition("doomed" if each == DOOMED else "doubt", str(id(each))) for each in recorded.doubts]
    for text in recorded.conditions:
        apart = text.startswith((_ELSEWHERE, SPAWNED))
        place = text.place if isinstance(text, Test) else None
        conditions += (
            [Condition("elsewhere", text)] if apart else (replace(each, place=place) for each in holding(text))
        )
    event: Event = recorded.thing
    return replace(event, conditions=tuple(conditions))


def _statement(target: ast.AST, file: SourceFile) -> ast.stmt | ast.expr:
    """Return the assignment to which a target belongs."""
    statements: list[ast.stmt] = [*file.nodes[ast.Assign], *file.nodes[ast.AugAssign], *file.nodes[ast.AnnAssign]]
    line = getattr(target, "lineno", 0)
    for node in statements:
        if not node.lineno <= line <= (node.end_lineno or line):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]  # type: ignore[attr-defined]
        if any(each is target for one in targets for each in every(one)):
            return node
    return target  # type: ignore[return-value]


def stated(segment: Segment) -> list[tuple[str, Location]]:
    """Return the settings in the text of a segment, with their locations, whether or not it runs."""
    unit, found = segment.unit, []
    for node in parts(segment) if unit is not None else ():
        if unit is None or not isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
            continue
        at: ast.expr | ast.stmt = node
        sets: Iterable[Set] = ()
        if isinstance(node, ast.Call):
            args = [_of_literal(each) for each in node.args]
            keywords = {each.arg or "": _of_literal(each.value) for each in node.keywords}
            if isinstance(node.func, ast.Name) and node.func.id == "setattr" and len(args) == 3:
                sets = set_by_name(unit.full_name(node.args[0]), args[1], args[2])
            else:
                sets = set_by_call(unit.full_name(node.func), args, keywords)
        elif isinstance(node.ctx, ast.Store):
            key = Const(node.attr) if isinstance(node, ast.Attribute) else _of_literal(node.slice)
            sets, at = set_by_name(unit.full_name(node.value), key, NOBODY_KNOWS), _statement(node, unit.file)
        found += [(name, unit.file.locate(at)) for name, _ in sets]
    return found


def _of_literal(node: ast.expr) -> Value:
    found = literal(node)
    return Const(found[0]) if found is not None else NOBODY_KNOWS


_PATH = re.compile(r"[\w.:/]+")  # a string that a registry, or importlib, may take for a function
_SEPARATOR = re.compile(r"[.:/]")
_SETS_GLOBALS = re.compile(rb"(?<![\w.])(?:exec|execfile|globals|eval)\s*\(|\bsys\.modules\b|\bimport_module\b")


class UnreachedSettings:
    """Decides which settings of one program are in branches that are never taken."""

    def __init__(self, reached: Iterable[Segment], machine: _Machine, imports: ProjectImports, entry: str) -> None:
        self._reached, self._followed_calls, self._project = tuple(reached), machine.followed, imports.project
        self._left = [each for each in machine.choices.left if each[0] != entry or not self._is_guarded(each)]
        self._renamed = {
            each.attr
            for path in dict.fromkeys(each.path for each in self._reached)
            for each in imports.of(path)
            if each.name not in ("*", each.attr)
        }
        self._sure: dict[int, bool] = {}
        self._open = any(each.has(_SETS_GLOBALS) for each in self._reached)  # such code may rebind any name

    def never(self, segment: Segment, at: Location) -> bool:
        """Whether a place, which the evaluation did not reach, is in a branch that is never taken."""
        names = None if self._open else self._tested_around(at)
        return names is not None and not self._set_from_outside(names, segment) and self._as_followed(segment)

    def _is_guarded(self, side: Side) -> bool:
        """Whether a side of an `if` statement is the body of a script's guard."""
        return any(is_guard(node) and node.body[0].lineno == side[1] for node in self._conditions(side[0]))

    def _conditions(self, path: str) -> list[ast.If]:
        file = self._project.file(path)
        return file.nodes[ast.If] if file is not None else []

    def _tested_around(self, at: Location) -> frozenset[str] | None:
        """Return the names in the test of the left-out branch around a place; None if there is no such branch."""
        line = at.line or 0
        lines = {first for path, first, last in self._left if path == at.path and first <= line <= last}
        for node in self._conditions(at.path) if lines else ():
            if any(body and body[0].lineno in lines for body in (node.body, node.orelse)):
                return frozenset(each.id for each in every(node.test) if isinstance(each, ast.Name))
        return None

    def _set_from_outside(self, names: frozenset[str], segment: Segment) -> bool:
        """Whether other code assigns an attribute with the name of a module-level constant in the test."""
        if segment.kind == "module" or not names:
            return False  # its body has run before anybody can
        pattern = re.compile(rb"\.(?:%s)\s*=(?!=)" % b"|".join(re.escape(each.encode()) for each in sorted(names)))
        return any(pattern.search(each.content) for each in self._reached)

    def _as_followed(self, segment: Segment) -> bool:
        """Whether every possible call of a segment was followed; the body of a module runs once."""
        if segment.kind == "module":
            return True
        if segment.kind == "class" or segment.is_method or segment.handed_over or segment.name in self._renamed:
            return False
        if id(segment) not in self._sure:
            self._sure[id(segment)] = False  # of one that calls itself
            name = segment.name.encode()
            self._sure[id(segment)] = all(
                self._only_calls(each, segment) for each in self._reached if name in each.words
            )
        return self._sure[id(segment)]

    def _only_calls(self, segment: Segment, wanted: Segment) -> bool:
        """Whether a segment uses the name of `wanted` only in calls that were followed with known arguments."""
        nodes = list(parts(segment))
        calls = {id(node.func): node for node in nodes if isinstance(node, ast.Call)}
        return segment.unit is not None and all(
            self._followed(calls.get(id(node)), segment) for node in nodes if _means(node, wanted, segment)
        )

    def _followed(self, call: ast.Call | None, segment: Segment) -> bool:
        if call is None or (segment.path, call.func.lineno, call.func.col_offset) not in self._followed_calls:
            return False
        given: list[ast.expr] = [*call.args, *(each.value for each in call.keywords)]
        whatever = all(literal(each) is not None for each in given) and all(each.arg for each in call.keywords)
        return whatever or self._as_followed(segment)


def _means(node: ast.AST, wanted: Segment, segment: Segment) -> bool:
    """Whether a node of a segment may refer to `wanted`: it has its name, and does not surely mean something else."""
    match node:
        case ast.Constant(value=str(text)):
            ends = text.endswith(wanted.name) and _SEPARATOR.split(text)[-1] == wanted.name
            return ends and _PATH.fullmatch(text) is not None
        case ast.Name(id=wanted.name, ctx=ast.Load()) if wanted.name not in segment.local:
            named = segment.named(node)
        case ast.Attribute(attr=wanted.name):
            named = segment.named(node)
        case _:
            return False
    if named.unit is not None and named.node is not None:
        return named.unit.path == wanted.path and named.node.lineno == wanted.line
    return not (named.full or named.path)
