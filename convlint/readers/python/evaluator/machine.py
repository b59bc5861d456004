"""The evaluator: runs bodies of modules, functions and classes on values that are known in part.

How a library uses it
---------------------
- `machine.call(value, args, keywords, node, file)` runs a function, method, class or whatever else can be called: a
  forward method is `machine.call(machine.attribute(instance, "forward"), [x], {}, node, file)`. `machine.no_call(node)`
  makes the `node` where no call is written. `machine.iterate(value)` gives items, or None where they are not known.
- What an object holds is read from it (`instance.attributes`, `instance.extra`), and changed through the heap alone:
  `machine.heap.put(instance, name, value)`, `machine.heap.edit(instance).extra = new`. An `extra` is replaced, never
  changed in its place. Where paths meet that each made an object of a framework's, `extra.either(other)` says what is
  true of both, or None.
- `machine.record(thing)` is the only way to keep something: what a call recorded is recorded again each time an equal
  call is answered from memory. So `thing` says nothing of the root, of `machine.conditions` and `machine.stack`: it
  comes back as Recorded(thing, conditions, stack), in the RootRun that run_root returns. The undecided tests are the
  texts in `conditions`, outermost first; `stack` are the calls, as Site(file, node). What depends on more than a call's
  arguments calls `machine.memory.spoil()`, and nothing that runs now is remembered.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from convlint.readers.python.evaluator import builtins_table, operations
from convlint.readers.python.evaluator.calls import Calls
from convlint.readers.python.evaluator.library import Library
from convlint.readers.python.evaluator.limits import (
    DEEPEST_VALUE,
    MOST_RECORDED,
    STEPS_OF_ANY_ROOT,
    STEPS_OF_FILE,
    STEPS_OF_NOTHING,
    STEPS_OF_ROOT,
    STEPS_OF_RUN,
)
from convlint.readers.python.evaluator.limits import Exhausted as Exhausted
from convlint.readers.python.evaluator.memory import DOOMED, CallMemory, Recorded
from convlint.readers.python.evaluator.modules import Modules
from convlint.readers.python.evaluator.paths import Choices, Scope
from convlint.readers.python.evaluator.state import Copying, Heap, HeapLayer, NotCopied
from convlint.readers.python.evaluator.values import (
    NONE,
    Class,
    Const,
    Entries,
    Function,
    Instance,
    Items,
    List,
    Name,
    Partial,
    Table,
    Tensor,
    Unknown,
    Value,
    unknown,
)
from convlint.readers.python.project import Project
from convlint.readers.python.source_file import SourceFile, is_guard

_NO_ARGUMENTS = ast.arguments([], [], None, [], [], None, [])


class CallSite(Struct, frozen=True):
    """A call of something in the source."""

    file: SourceFile
    node: ast.Call


class RootRun(Struct, frozen=True):
    """What evaluating a root gave, and functions in it that nobody is seen to call."""

    value: Value
    recorded: list[Recorded]
    besides: list[Value]


class Machine:
    """One run of the evaluator over the files of a project."""

    def __init__(self, project: Project, library: Library) -> None:
        self.project, self.library = project, library
        self.heap = Heap()
        self.heap.losing = self.lost
        self.modules = Modules(self, builtins_table.BUILTINS)
        self.calls, self.memory = Calls(self), CallMemory(self)
        self.call, self.apply = self.calls.call, self.calls.apply
        self.attribute, self.set_attribute = self.calls.attribute, self.calls.set_attribute
        self.iterate, self.extend = partial(operations.iterate, self), partial(operations.extend, self)
        self.as_entries, self.as_set = partial(operations.as_entries, self), partial(operations.as_set, self)
        self.put, self.update = partial(operations.put, self), partial(operations.update, self)
        self.choices = Choices()
        self.conditions: list[str] = []  # the undecided tests around what runs now
        self.modes: list[str] = []  # tests of `training`, which is decided, but holds in one mode of a network alone
        self.stack: list[CallSite] = []  # the calls that led there
        self.recorded: list[Recorded] = []
        self.doubts: list[object] = []  # loops, tries and ends of paths: nobody knows whether what runs now is reached
        self.skips: Callable[[Function], bool] | None = None  # functions that are not run, as they lead to nothing
        self.root = ""  # path:name of the root that runs
        self.steps = 0  # that are left
        self.remembered = 0  # steps of the root that memory saved: they count for the root, not for file and run
        self.height = 0  # frames of Python that calls stand on
        self.again = 0  # loops within one another that are run to see what they change
        self.active: dict[ast.AST, int] = {}  # functions that run
        self.left_of_run = STEPS_OF_RUN
        self.steps_of_file = STEPS_OF_FILE
        self.least_steps = STEPS_OF_NOTHING
        self.left_of_file: dict[str, int] = {}
        self.floor = 0  # of the steps, until something is recorded or found

    # Roots

    def run_module(self, path: str) -> Scope | None:
        """The variables of the module, whose body is run if it was not."""
        return self.modules.scope(path)

    def roots(self, path: str) -> list[Function | Class]:
        """The functions and classes that a file defines at its top, by their lines, and what a script does."""
        scope = self.modules.scope(path)
        if scope is None:
            return []
        found = {id(value.node): value for value in scope.variables.values()
                 if isinstance(value, (Function, Class)) and value.file.path == path}  # fmt: skip
        found.update((id(each), each) for each in self.scripts(path) if not _is_bare_call(each.node))
        return sorted(found.values(), key=lambda each: each.node.lineno)

    def scripts(self, path: str) -> list[Function]:
        """What a file does as a script, below its guards."""
        scope = self.modules.scope(path)
        if scope is None:
            return []
        guards = filter(is_guard, scope.file.tree.body)
        return [Function(_as_function(node), scope.file, scope, "__main__") for node in guards]

    def run_root(self, root: Function | Class, defaults: bool) -> RootRun:
        """Call it with parameters that nobody knows, or at their defaults.

        What it made can be looked at until the next root runs, which knows nothing of it.
        """
        path = root.file.path
        left = self.left_of_file.get(path, self.steps_of_file)
        self.start()
        if left <= 0:
            self.steps = -1
            return RootRun(unknown("limit"), [], [])
        self.steps = start = min(STEPS_OF_ROOT, left, self.left_of_run)
        self.floor = max(start - self.least_steps, 0)
        self.root = f"{path}:{root.name}"
        self.recorded, self.height, self.remembered = [], 0, 0
        self.heap.base.kept = 0
        self.heap.begin()
        begun = self.heap.layer
        frames: list[Scope] = []
        besides: list[Value] = []
        try:
            value = self.calls.without_caller(root, defaults, frames)
            self.lost(value)
        except (Exhausted, RecursionError):
            value = unknown("limit")
        try:
            for each in self._handed_out(frames, defaults):
                besides.append(each)
        except (Exhausted, RecursionError):
            self.steps = -1
        for layer in self.heap.layer.down(None):
            layer.kept = 0  # by paths that nobody waits for any longer
        self.heap.settle(begun)
        self.reset(self.heap.layer)
        self.floor = 0
        self.charge(path, max(start - self.steps - self.remembered, STEPS_OF_ANY_ROOT))
        recorded, self.recorded = self.recorded, []
        self.root = ""
        return RootRun(value, recorded, besides)

    def _handed_out(self, frames: list[Scope], defaults: bool) -> Iterator[Value]:
        """What functions give that these define for others to call, as a constructor of subnets is."""
        for frame in frames:
            for value in list(frame.variables.values()):
                if isinstance(value, Function) and value.scope is frame and value.node not in self.active:
                    found = self.calls.with_unknown(value, defaults, [])
                    self.lost(found)
                    yield found

    def charge(self, path: str, taken: int) -> None:
        """The file and the whole run have so many steps less."""
        self.left_of_file[path] = self.left_of_file.get(path, self.steps_of_file) - taken
        self.left_of_run -= taken

    def start(self) -> None:
        """Go back to what modules made."""
        self.reset(self.heap.base)
        self.heap.oldest, self.heap.changed, self.heap.class_changed = float("inf"), set(), False

    def reset(self, layer: HeapLayer) -> None:
        """Go back to that state, and forget where the evaluation stood."""
        self.heap.layer, self.heap.watched = layer, None
        self.conditions.clear()
        self.modes.clear()
        self.stack.clear()
        self.active.clear()
        self.doubts.clear()
        self.height = self.again = 0

    # Running

    def push(self, file: SourceFile, node: ast.Call) -> None:
        """A call of something in the source begins; `stack.pop()` ends it."""
        self.stack.append(CallSite(file, node))

    def step(self) -> None:
        """One statement, call or round of a loop."""
        self.steps -= 1
        if self.steps < self.floor:
            self.come_to_floor()

    def come_to_floor(self) -> None:
        """End here, or go on where something was recorded. Raises Exhausted."""
        if self.recorded:
            self.floor = 0
        if self.steps < self.floor:
            raise Exhausted

    def around(self) -> tuple[str, ...]:
        """The tests under which a network runs what runs now: those that are undecided, and those of its mode."""
        return (*self.conditions, *self.modes)

    def found(self) -> None:
        """Something was met that the run is for: it may go on as far from here."""
        if self.floor:
            self.floor = max(self.steps - STEPS_OF_NOTHING, 0)

    # What a library, and every other part, asks for

    def set_outside(self, receiver: Value, key: Value, value: Value, node: ast.AST, file: SourceFile) -> None:
        """`receiver.key = value` or `receiver[key] = value`, of what is not in the source: its library may know it."""
        if isinstance(receiver, Name):
            self.library.set_outside(self, receiver.name, key, value, node, file)

    def delete_attribute(self, receiver: Value, name: str) -> None:
        """`del receiver.name`."""
        if isinstance(receiver, (Instance, Class)) and name in receiver.cell.items:
            self.heap.remove(receiver, name)

    def truth(self, value: Value) -> bool | None:
        """Whether it is true; None where nobody knows."""
        if value.__class__ is Const:
            return bool(value.value)
        return None if value.__class__ is Unknown else operations.truth(self, value)

    def table(self, cell: Entries) -> Table:
        """A dict that holds this."""
        found = Table(self.heap, {})
        found.first = cell
        return found

    def sequence(self, kind: str, items: list[Value], *, complete: bool = True, why: str = "branch") -> Items:
        """A list, tuple or whatever else of that kind."""
        if kind in ("tuple", "range", "slice"):
            return Items(kind, items, complete=complete, why=why)
        return List(self.heap, kind, items, complete=complete, why=why)

    def record(self, thing: object) -> None:
        """Keep it for the root that runs now, and for each that is answered from memory."""
        if len(self.recorded) < MOST_RECORDED:
            self.recorded.append(Recorded(thing, tuple(self.conditions), tuple(self.stack), tuple(self.doubts)))

    def leaves_out(self, function: Function, given: Sequence[Value] = ()) -> bool:
        """Whether it is not run, as it leads to nothing: not where it is given functions, which it may run."""
        if self.skips is None or not self.skips(function):
            return False
        return not any(isinstance(each, (Function, Partial)) for each in given)

    def doomed(self, first: int, last: int) -> None:
        """What was recorded between these was so on a path that raises an error, or ends the program."""
        if first < last:
            self.recorded[first:last] = [Recorded(each.thing, each.conditions, each.stack, (*each.doubts, DOOMED))
                                         for each in self.recorded[first:last]]  # fmt: skip

    def lost(self, value: Value) -> None:
        """Nobody sees the value from now on."""
        if isinstance(value, (Instance, Tensor, Items, Table, Function, Partial)):
            self.library.escapes(self, value)

    def give_away(self, args: list[Value], keywords: dict[str, Value]) -> None:
        """Arguments go where nobody looks."""
        for value in (*args, *keywords.values()):
            self.lost(value)

    def copied(self, value: Value, *, deep: bool) -> Value:
        """copy.copy or copy.deepcopy."""
        if deep:
            try:
                return Copying(self.heap, None, {}, DEEPEST_VALUE * 100, DEEPEST_VALUE).copy(value)
            except NotCopied:
                return unknown("call")
        if isinstance(value, (Instance, List, Table)):
            cell: Any = value.cell
            return value.like(cell.copied())
        return value

    def part_of(self, value: Value) -> Value:
        """What an item of something that is not known is."""
        if isinstance(value, (Items, Table)):
            return unknown(value.why if not value.complete else "call")
        return unknown(value.why) if isinstance(value, Unknown) else unknown("call")

    def no_call(self, at: ast.AST) -> ast.Call:
        """A call that is not written as one, of a decorator or of what Python calls by itself, at the place of `at`."""
        if isinstance(at, ast.Call):
            return at
        name = ast.Name(id="", ctx=ast.Load())
        call = ast.Call(func=name, args=[], keywords=[])
        for node in (name, call):
            node.lineno, node.col_offset = getattr(at, "lineno", 1), getattr(at, "col_offset", 0)
            node.end_lineno, node.end_col_offset = getattr(at, "end_lineno", 1), getattr(at, "end_col_offset", 0)
        return call

    def entered(self, value: Value, file: SourceFile) -> Value:
        """What `with value as name` binds."""
        found = self._own(value, "__enter__", [], file)
        return found if found is not None else self.part_of(value)

    def left(self, value: Value, file: SourceFile) -> None:
        """The `with` of that value ends; what raised in it, if anything, nobody asks."""
        self._own(value, "__exit__", [NONE] * 3, file)

    def _own(self, value: Value, name: str, args: list[Value], file: SourceFile) -> Value | None:
        method = self.calls.method_of(value, name) if isinstance(value, Instance) else None
        if not isinstance(method, Function):
            return None
        return self.call(method, args, {}, self.no_call(method.node), file)


def _is_bare_call(script: ast.AST) -> bool:
    """Whether it is `main()` alone: what that constructs is known from the function itself."""
    body = getattr(script, "body", [])
    only = body[0] if len(body) == 1 else None
    call = only.value if isinstance(only, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.args and not call.keywords


def _as_function(guard: ast.If) -> ast.FunctionDef:
    """What stands below the guard of a script, which no import runs."""
    return ast.FunctionDef("__main__", _NO_ARGUMENTS, guard.body, [], lineno=guard.lineno, col_offset=guard.col_offset,
                           end_lineno=guard.end_lineno, end_col_offset=guard.end_col_offset)  # fmt: skip
