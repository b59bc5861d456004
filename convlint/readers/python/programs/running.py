"""Evaluate training programs to find the settings they make, in order; functions that lead to none are skipped."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from itertools import accumulate

from msgspec.structs import replace

from convlint.model.grouping import grouped
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
from convlint.readers.python.programs.segments import Reach, Reached, Segment, called, parts
from convlint.readers.python.programs.settings import (
    NOBODY_KNOWS,
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
        segments = [segment for path in self._files for segment in self.reach.segments(path)]
        setters = self._setting(segments)
        self._left_out = {(segment.path, segment.line) for segment in segments if segment.kind == "function"}
        self._left_out -= {(segment.path, segment.line) for segment in setters}
        runs = [part for part in setters if part.kind == "function" and (not part.is_method or part.name == "__init__")]
        names = {(segment.cls or segment.name).encode() for segment in runs}
        self._modules = {
            segment.path
            for segment in segments
            if (segment.kind != "function" and may_set(segment.by_import))
            or (segment.kind == "module" and not names.isdisjoint(called(segment.by_import)))
        }
        self._direct = set(self._modules)
        importers = grouped((other, path) for path in self._files for other in self._imports.near(path))
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
        result: list[Segment] = []
        rest: list[Segment] = []
        for segment in segments:
            (result if segment.path in setting and holds_setting(segment) else rest).append(segment)
        new, hops = result, 0
        # From the definitions with settings outwards, to all that name them, however indirectly.
        while new:
            functions: dict[bytes, set[str]] = {}  # by name: the files that define one
            classes: dict[bytes, set[str]] = {}
            for segment in new:
                if segment.kind == "class" or (segment.is_method and (segment.name == "__init__" or not hops)):
                    classes.setdefault(segment.cls.encode(), set()).add(segment.path)
                elif segment.name and not segment.is_method:
                    functions.setdefault(segment.name.encode(), set()).add(segment.path)
            methods = {segment.name.encode() for segment in new if segment.is_method and segment.name != "__init__"}
            names = {*methods, *functions, *classes}
            new = [
                segment
                for segment in rest
                if not names.isdisjoint(segment.words)
                and (
                    not methods.isdisjoint(segment.attributes)
                    or self._names_one(segment, functions, segment.words)
                    or self._names_one(segment, classes, segment.words if segment.kind == "class" else segment.called)
                )
            ]
            hops += 1
            chosen = set(new)
            rest = [segment for segment in rest if segment not in chosen]
            result = result + new
        return result


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
        self._event_once: dict[Event, Event] = {}
        self._handed: set[ast.AST] = set()
        self._of_handed: dict[object, list[Recorded]] = {}  # records of functions that were passed to other code
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
        for function in self._commands(files):
            how = f"{SPAWNED}{function.file.path}:{function.node.lineno}"
            records = machine.run_root(function, defaults=False).recorded
            recorded += [replace(record, conditions=(how, *record.conditions)) for record in records]
            whole = whole and machine.steps >= 0
        machine.reset(machine.heap.base)
        return once(map(_event, recorded)), whole and machine.modules.unfinished.isdisjoint(files)

    def _commands(self, files: Iterable[str]) -> Iterator[Function]:
        """Yield the functions of which a command line runs one, as far as they may lead to a setting."""
        for command in (part for path in files for part in self._relevant.reach.segments(path) if part.is_command):
            scope = self.machine.run_module(command.path)
            function = scope.variables.get(command.name) if scope is not None else None
            if isinstance(function, Function) and not self._relevant.skips(function):
                yield function

    def _record(self, machine: Machine, sets: Iterable[Set], at: Location) -> bool:
        events = [Event(name, _plain(value), at) for name, value in sets]
        for event in events:
            machine.record(self._event_once.setdefault(event, event))  # equal ones are one, as memory tells them apart
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
            for value in call.values:
                self._run_apart(machine, value, SPAWNED)
            return unknown("call")
        return None

    def set_outside(
        self, machine: Machine, name: str, key: Value, value: Value, node: ast.AST, file: SourceFile
    ) -> None:
        """Record the assignment of a flag of PyTorch or of an environment variable."""
        sets = list(set_by_name(name, key, value))
        if sets:
            self._record(machine, sets, file.locate(_statement(node, file)))

    def imported(self, machine: Machine, node: ast.Import | ast.ImportFrom, file: SourceFile) -> None:
        """Run an imported module that makes settings, and add its records here."""
        for path in dict.fromkeys(self._imported_files(node, file.path)):
            records = self._set_by_import(path) if path != file.path and self._relevant.module(path) else []
            have = {(record.thing.name, record.thing.at) for record in machine.recorded if record.thing.imported}
            conditions, doubts = tuple(machine.conditions), tuple(machine.doubts)
            machine.recorded += [
                replace(record, conditions=conditions + record.conditions, doubts=doubts + record.doubts)
                for record in records
                if (record.thing.name, record.thing.at) not in have
            ]

    def _set_by_import(self, path: str) -> list[Recorded]:
        """Return the records of importing a module; one that only imports others need not be run."""
        records = self._by_import.get(path)
        if records is None and self._relevant.passes_on(path):
            self._by_import[path] = []  # for one that imports itself indirectly
            near = [other for other in self._imports.near(path) if self._relevant.module(other)]
            below = (record for other in near for record in self._set_by_import(other))
            records = [replace(record, doubts=(path, *record.doubts)) for record in below]
        elif records is None:
            self.machine.run_module(path)
            if path not in self.machine.modules.recorded:
                return []  # it runs now, and imports the one that imports it
            recorded = self.machine.modules.recorded[path]
            records = [replace(record, thing=replace(record.thing, imported=True)) for record in recorded]
        self._by_import[path] = records
        return records

    def _imported_files(self, node: ast.Import | ast.ImportFrom, path: str) -> Iterator[str]:
        resolve = self._imports.resolve
        names, level = [alias.name for alias in node.names], 0
        if isinstance(node, ast.ImportFrom):
            module, level = node.module or "", node.level
            names = [module, *(f"{module}.{name}".lstrip(".") for name in names)]
        # The packages above a module run before it.
        names = [part for name in names for part in accumulate(name.split("."), "{}.{}".format)]
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
                Recorded(record.thing, (*machine.conditions, *record.conditions), (), (*machine.doubts, *record.doubts))
                for record in self._of_handed[known]
            ]
            return
        self._handed.add(value.node)
        machine.conditions.append(f"{how}{value.file.path}:{value.node.lineno}")
        machine.calls.run(value, [], {}, exact=False)
        machine.conditions.pop()
        self._handed.discard(value.node)
        if known is not None and value.scope.parent is None:
            self._of_handed[known] = [
                Recorded(record.thing, record.conditions[conditions:], (), record.doubts[doubts:])
                for record in machine.recorded[mark:]
            ]


def _plain(value: Value) -> tuple[LiteralValue] | None:
    plain = value.value if isinstance(value, Const) else ()
    return (plain,) if isinstance(plain, bool | int | float | str | None) else None


def _event(recorded: Recorded) -> Event:
    """Convert a record to an event with the conditions around it."""
    conditions = [Condition("doomed" if doubt == DOOMED else "doubt", str(id(doubt))) for doubt in recorded.doubts]
    for text in recorded.conditions:
        apart = text.startswith((_ELSEWHERE, SPAWNED))
        place = text.place if isinstance(text, Test) else None
        conditions += (
            [Condition("elsewhere", text)] if apart else (replace(test, place=place) for test in holding(text))
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
        if any(inner is target for other in targets for inner in every(other)):
            return node
    return target  # type: ignore[return-value]


def holds_setting(segment: Segment) -> bool:
    """Whether a segment may make a setting, by its text."""
    return segment.once(_may_set)


def _may_set(segment: Segment) -> bool:
    return may_set(segment.content)


def stated(segment: Segment) -> list[tuple[str, Location]]:
    """Return the settings in the text of a segment, with their locations, whether or not it runs."""
    unit, settings = segment.unit, []
    for node in parts(segment) if unit is not None else ():
        if unit is None or not isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
            continue
        at: ast.expr | ast.stmt = node
        sets: Iterable[Set] = ()
        if isinstance(node, ast.Call):
            args = [_of_literal(argument) for argument in node.args]
            keywords = {keyword.arg or "": _of_literal(keyword.value) for keyword in node.keywords}
            if isinstance(node.func, ast.Name) and node.func.id == "setattr" and len(args) == 3:
                sets = set_by_name(unit.full_name(node.args[0]), args[1], args[2])
            else:
                sets = set_by_call(unit.full_name(node.func), args, keywords)
        elif isinstance(node.ctx, ast.Store):
            key = Const(node.attr) if isinstance(node, ast.Attribute) else _of_literal(node.slice)
            sets, at = set_by_name(unit.full_name(node.value), key, NOBODY_KNOWS), _statement(node, unit.file)
        settings += [(name, unit.file.locate(at)) for name, _ in sets]
    return settings


def _of_literal(node: ast.expr) -> Value:
    value = literal(node)
    return Const(value[0]) if value is not None else NOBODY_KNOWS


_PATH = re.compile(r"[\w.:/]+")  # a string that a registry, or importlib, may take for a function
_SEPARATOR = re.compile(r"[.:/]")
_SETS_GLOBALS = re.compile(rb"(?<![\w.])(?:exec|execfile|globals|eval)\s*\(|\bsys\.modules\b|\bimport_module\b")
_WORDS_FOR_GLOBALS = frozenset((b"exec", b"execfile", b"globals", b"eval", b"modules", b"import_module"))


def _sets_globals(segment: Segment) -> bool:
    """Whether _SETS_GLOBALS is found in a segment, after a faster look at its words."""
    return not _WORDS_FOR_GLOBALS.isdisjoint(segment.words) and segment.has(_SETS_GLOBALS)


class UnreachedSettings:
    """Decides which settings of one program are in branches that are never taken."""

    def __init__(self, reached: Reached, machine: _Machine, imports: ProjectImports, entry: str) -> None:
        self._reached, self._followed_calls, self._imports = reached, machine.followed, imports
        self._left = [side for side in machine.choices.left if side[0] != entry or not self._is_guarded(side)]
        self._sure: dict[int, bool] = {}
        self._open = bool(reached.having(_sets_globals))  # such code may rebind any name

    @cached_property
    def _renamed(self) -> set[str]:
        """What is imported under another name."""
        return {
            binding.attr
            for path in dict.fromkeys(segment.path for segment in self._reached)
            for binding in self._imports.of(path)
            if binding.name not in ("*", binding.attr)
        }

    def never(self, segment: Segment, at: Location) -> bool:
        """Whether a place, which the evaluation did not reach, is in a branch that is never taken."""
        names = None if self._open else self._tested_around(at)
        return names is not None and not self._set_from_outside(names, segment) and self._as_followed(segment)

    def _is_guarded(self, side: Side) -> bool:
        """Whether a side of an `if` statement is the body of a script's guard."""
        return any(is_guard(node) and node.body[0].lineno == side[1] for node in self._conditions(side[0]))

    def _conditions(self, path: str) -> list[ast.If]:
        file = self._imports.project.file(path)
        return file.nodes[ast.If] if file is not None else []

    def _tested_around(self, at: Location) -> frozenset[str] | None:
        """Return the names in the test of the left-out branch around a place; None if there is no such branch."""
        line = at.line or 0
        lines = {first for path, first, last in self._left if path == at.path and first <= line <= last}
        for node in self._conditions(at.path) if lines else ():
            if any(body and body[0].lineno in lines for body in (node.body, node.orelse)):
                return frozenset(inner.id for inner in every(node.test) if isinstance(inner, ast.Name))
        file = self._imports.project.file(at.path) if lines else None
        for match in file.nodes[ast.Match] if file is not None else ():
            if any(case.body[0].lineno in lines for case in match.cases):
                return frozenset(inner.id for inner in every(match.subject) if isinstance(inner, ast.Name))
        return None

    def _set_from_outside(self, names: frozenset[str], segment: Segment) -> bool:
        """Whether other code assigns an attribute with the name of a module-level constant in the test."""
        if segment.kind == "module" or not names:
            return False  # its body runs before other code can set anything
        pattern = re.compile(rb"\.(?:%s)\s*=(?!=)" % b"|".join(re.escape(name.encode()) for name in sorted(names)))
        return any(pattern.search(other.content) for other in self._reached)

    def _as_followed(self, segment: Segment) -> bool:
        """Whether every possible call of a segment was followed; the body of a module runs once."""
        if segment.kind == "module":
            return True
        if segment.kind == "class" or segment.is_method or segment.handed_over or segment.name in self._renamed:
            return False
        if id(segment) not in self._sure:
            self._sure[id(segment)] = False  # for one that calls itself
            name = segment.name.encode()
            self._sure[id(segment)] = all(
                self._only_calls(other, segment) for other in self._reached if name in other.words
            )
        return self._sure[id(segment)]

    def _only_calls(self, segment: Segment, target: Segment) -> bool:
        """Whether a segment uses the name of `target` only in calls that were followed with known arguments."""
        nodes = list(parts(segment))
        calls = {id(node.func): node for node in nodes if isinstance(node, ast.Call)}
        return segment.unit is not None and all(
            self._followed(calls.get(id(node)), segment) for node in nodes if _means(node, target, segment)
        )

    def _followed(self, call: ast.Call | None, segment: Segment) -> bool:
        if call is None or (segment.path, call.func.lineno, call.func.col_offset) not in self._followed_calls:
            return False
        given: list[ast.expr] = [*call.args, *(keyword.value for keyword in call.keywords)]
        whatever = all(literal(value) is not None for value in given) and all(keyword.arg for keyword in call.keywords)
        return whatever or self._as_followed(segment)


def _means(node: ast.AST, target: Segment, segment: Segment) -> bool:
    """Whether a node of a segment may refer to `target`: it has its name, and does not surely mean something else."""
    match node:
        case ast.Constant(value=str(text)):
            ends = text.endswith(target.name) and _SEPARATOR.split(text)[-1] == target.name
            return ends and _PATH.fullmatch(text) is not None
        case ast.Name(id=target.name, ctx=ast.Load()) if target.name not in segment.local:
            meaning = segment.resolve(node)
        case ast.Attribute(attr=target.name):
            meaning = segment.resolve(node)
        case _:
            return False
    if meaning.unit is not None and meaning.node is not None:
        return meaning.unit.path == target.path and meaning.node.lineno == target.line
    return not (meaning.full or meaning.path)
