"""The evaluator: runs the bodies of modules, functions and classes on partly known values.

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
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from convlint.model.source import StatedLiteral
from convlint.readers.python.evaluator import builtins_table, names_of, operations
from convlint.readers.python.evaluator.calls import Calls
from convlint.readers.python.evaluator.library import Library
from convlint.readers.python.evaluator.limits import (
    DEEPEST_VALUE,
    MOST_KINDS,
    MOST_PRESET,
    MOST_RECORDED,
    STEPS_OF_ANY_ROOT,
    STEPS_OF_FILE,
    STEPS_OF_NOTHING,
    STEPS_OF_RECORD,
    STEPS_OF_ROOT,
    STEPS_OF_RUN,
)
from convlint.readers.python.evaluator.limits import Exhausted as Exhausted
from convlint.readers.python.evaluator.memory import DOOMED, CallMemory, Recorded
from convlint.readers.python.evaluator.modules import Modules
from convlint.readers.python.evaluator.paths import Choices, Scope
from convlint.readers.python.evaluator.state import Copying, Heap, HeapLayer, NotCopied
from convlint.readers.python.evaluator.values import (
    NOTHING_STATED,
    Class,
    Const,
    Entries,
    Function,
    Instance,
    Items,
    List,
    Name,
    OneKind,
    Partial,
    Preset,
    Table,
    Tensor,
    Unknown,
    Value,
    another,
    reason,
    same,
    unknown,
)
from convlint.readers.python.project import Project
from convlint.readers.python.source_file import SourceFile, is_guard

_OF_TRAINING = re.compile("epoch|iter|step|batch", re.IGNORECASE)
_NO_ARGUMENTS = ast.arguments([], [], None, [], [], None, [])


class CallSite(Struct, frozen=True):
    """A call of something in the source."""

    file: SourceFile
    node: ast.Call


class RootRun(Struct, frozen=True):
    """The result of a root, its records, and the results of inner functions that no code is seen to call.

    `variables` are the values of its own variables at the end. It is `whole` if it ran to its end.
    """

    value: Value
    recorded: list[Recorded]
    besides: list[Value]
    variables: list[Value] = []
    whole: bool = True


class Machine:
    """One run of the evaluator over the files of a project. A root is what it runs without a caller."""

    def __init__(self, project: Project, library: Library) -> None:
        self.project, self.library = project, library
        self.heap = Heap()
        self.heap.losing, self.heap.choosing = self.lost, self._one_of_both
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
        self.decided: list[frozenset[StatedLiteral]] = []  # defaults that decided tests around what runs now
        self.stack: list[CallSite] = []  # the calls that led there
        self.recorded: list[Recorded] = []
        self.doubts: list[object] = []  # loops, `try` blocks and ended paths, which may keep a run from getting here
        self.skips: Callable[[Function], bool] | None = None  # whether a function is irrelevant, and need not be run
        # Methods of a class that code elsewhere may call, and that are worth running
        self.methods: Callable[[Class], Iterable[Function]] = lambda _: ()
        self.root = ""  # path:name of the root that runs
        self.steps = 0  # steps that are left
        self.remembered = 0  # steps of the root that memory saved: they count for the root, but took no time
        self.height = 0  # Python frames below the current call, estimated: past DEEPEST, calls are not followed
        self.again = 0  # nested loops that are run a second time for what their first round changed
        self.active: dict[ast.AST, int] = {}  # running functions, and how often each
        self.left_of_run = STEPS_OF_RUN
        self.steps_of_file = STEPS_OF_FILE
        self.least_steps = STEPS_OF_NOTHING
        self.left_of_file: dict[str, int] = {}
        self.floor = 0  # steps at which the root ends unless something was recorded
        self.recorded_at = 0  # steps that were left at the last record, without those that memory saved
        self.running: Function | Class | None = None  # the root that runs
        self.by_defaults_alone = False  # whether it runs with its defaults
        self.counted = False  # whether the command line says how often some loop of it runs

    # Roots

    def run_module(self, path: str) -> Scope | None:
        """Return the variables of the module, running its body if needed; None if it cannot be read."""
        return self.modules.scope(path)

    def roots(self, path: str) -> list[Function | Class]:
        """Return the functions and classes at the top level of a file, and the code of a script, by line."""
        scope = self.modules.scope(path)
        if scope is None:
            return []
        roots = {id(value.node): value for value in scope.variables.values()
                 if isinstance(value, (Function, Class)) and value.file.path == path}  # fmt: skip
        roots.update((id(script), script) for script in self.scripts(path) if not _is_bare_call(script.node))
        return sorted(roots.values(), key=lambda root: root.node.lineno)

    def scripts(self, path: str) -> list[Function]:
        """Return the code below `if __name__ == "__main__":`, as functions."""
        scope = self.modules.scope(path)
        if scope is None:
            return []
        guards = filter(is_guard, scope.file.tree.body)
        return [Function(_as_function(node), scope.file, scope, "__main__") for node in guards]

    def run_root(self, root: Function | Class, defaults: bool) -> RootRun:
        """Call a root with unknown parameters, or with their `defaults`.

        Objects that it created can be read until the next root runs, which starts from the state of the modules.
        """
        path = root.file.path
        steps_left = self.left_of_file.get(path, self.steps_of_file)
        self.start()
        if steps_left <= 0:
            self.steps = -1
            return RootRun(unknown("limit"), [], [], whole=False)
        self.steps = start = min(STEPS_OF_ROOT, steps_left, self.left_of_run)
        self.floor = max(start - self.least_steps, 0)
        self.root = f"{path}:{root.name}"
        self.recorded, self.height, self.remembered = [], 0, 0
        self.recorded_at, self.running = start, root
        self.by_defaults_alone, self.counted = defaults, False
        self.heap.base.kept = 0
        # The root's changes are undone by returning to the base layer: modules are run only once.
        self.heap.begin()
        begun = self.heap.layer
        frames: list[Scope] = []
        besides: list[Value] = []
        whole = True
        try:
            value = self.calls.without_caller(root, defaults, frames)
            self.lost(value)
        except (Exhausted, RecursionError):
            value, whole = unknown("limit"), False
        try:
            for result in chain(self._methods_of(value, frames, defaults), self._handed_out(frames, defaults)):
                self.lost(result)
                besides.append(result)
        except (Exhausted, RecursionError):
            whole = False
        self.heap.abandon(begun)
        # The result is read by the library before the next root, so that its layer stays.
        self.reset(self.heap.layer)
        self.floor, self.running = 0, None
        self.charge(path, max(start - self.steps - self.remembered, STEPS_OF_ANY_ROOT))
        recorded, self.recorded = self.recorded, []
        self.root = ""
        variables = [variable for frame in frames for variable in frame.variables.values()]
        return RootRun(value, recorded, besides, variables, whole)

    def _methods_of(self, value: Value, frames: list[Scope], defaults: bool) -> Iterator[Value]:
        """Yield the results of methods that were never called, of an object of the class that is the root."""
        cls = self.running
        own = isinstance(cls, Class) and isinstance(value, Instance) and value.cls is cls
        for method in self.methods(cls) if own and isinstance(cls, Class) else ():
            if method.node not in self.active:
                bound = {"static": None, "class": cls}.get(method.kind, value)
                yield self.calls.with_unknown(replace(method, bound=bound), defaults, frames)

    def _handed_out(self, frames: list[Scope], defaults: bool) -> Iterator[Value]:
        """Yield the results of inner functions that were never called, such as constructors handed to a library."""
        for frame in frames:
            for value in list(frame.variables.values()):
                if isinstance(value, Function) and value.scope is frame and value.node not in self.active:
                    yield self.calls.with_unknown(value, defaults, [])

    def charge(self, path: str, taken: int) -> None:
        """Subtract steps from those of the file and of the whole run."""
        self.left_of_file[path] = self.left_of_file.get(path, self.steps_of_file) - taken
        self.left_of_run -= taken

    def start(self) -> None:
        """Reset the state to that after the modules have run."""
        self.reset(self.heap.base)
        self.heap.oldest, self.heap.changed, self.heap.class_changed = float("inf"), set(), False

    def reset(self, layer: HeapLayer) -> None:
        """Reset the heap to a layer, and clear the position of the evaluation."""
        self.heap.layer, self.heap.watched = layer, None
        self.conditions.clear()
        self.modes.clear()
        self.decided.clear()
        self.stack.clear()
        self.active.clear()
        self.doubts.clear()
        self.height = self.again = 0

    # Running

    def push(self, file: SourceFile, node: ast.Call) -> None:
        """Begin a call of something in the source; `stack.pop()` ends it."""
        self.stack.append(CallSite(file, node))

    def step(self) -> None:
        """Count one statement, call or round of a loop. Raises Exhausted."""
        self.steps -= 1
        if self.steps < self.floor:
            self.come_to_floor()

    def come_to_floor(self) -> None:
        """Move the floor down if something was recorded. Raises Exhausted if no steps are left."""
        # What returns nothing tells no more than it records, and runs on long after its network is there.
        if self.recorded and (not isinstance(self.running, Function) or names_of.gives(self.running.node)):
            self.floor = 0
        if self.floor:
            more = self.least_steps + STEPS_OF_RECORD * len(self.recorded)
            self.floor = max(self.recorded_at - self.remembered - more, 0)
        # What a module itself defines or computes is needed by all that import it.
        if self.steps < self.floor and (self.running is not None or self.stack):
            raise Exhausted

    def around(self) -> tuple[str, ...]:
        """Return the tests under which a network runs the current code: undecided ones, and those of its mode."""
        return (*self.conditions, *self.modes)

    def is_called(self) -> bool:
        """Whether the current code is called by some other, which is not there to try it."""
        return bool(self.stack) and not any(
            site.node.lineno in lines for site in self.stack for lines in site.file.trials
        )

    def by_defaults(self) -> frozenset[StatedLiteral]:
        """Return the defaults of parameters that decided the tests around the current code."""
        return NOTHING_STATED.union(*self.decided)

    def counts_by_presets(self, numbers: Iterable[Value]) -> bool:
        """Whether a loop runs as often as the command line says by default: not where the result counts as stated.

        Nor is a loop of training unrolled, which constructs nothing.
        """
        presets = [value for value in numbers if value.__class__ is Preset]
        names = [literal.name for preset in presets for literal in preset.number.stated]
        if not presets or any(map(_OF_TRAINING.search, names)) or any(preset.value > MOST_PRESET for preset in presets):
            return False
        self.counted = self.memory.counted = True
        return self.by_defaults_alone and not self.heap.in_module

    def allow_more_steps(self) -> None:
        """Move the floor down, as something that the run looks for was found."""
        self.recorded_at = self.steps + self.remembered

    # Services for libraries and for the other parts

    def set_outside(self, receiver: Value, key: Value, value: Value, node: ast.AST, file: SourceFile) -> None:
        """Tell the library of `receiver.key = value` or `receiver[key] = value` outside the source."""
        if isinstance(receiver, Name):
            self.library.set_outside(self, receiver.name, key, value, node, file)

    def delete_attribute(self, receiver: Value, name: str) -> None:
        """Evaluate `del receiver.name`."""
        if isinstance(receiver, (Instance, Class)) and name in receiver.cell.items:
            self.heap.remove(receiver, name)

    def _one_of_both(self, values: tuple[Value, Value]) -> Value | None:
        """Return the value of a variable in which two paths differ; None if that is unknown."""
        first, second = values
        if isinstance(first, Name) and isinstance(second, Name) \
                and self.library.canonical(first.name) == self.library.canonical(second.name):  # fmt: skip
            return first
        return self.one_kind(values)

    def one_kind(self, values: Iterable[Value], why: str = "branch") -> OneKind | None:
        """Return one of several classes that the library says are alike; None if these are other values."""
        kinds: list[Name | Class | Partial] = []
        for value in values:
            for kind in value.kinds if isinstance(value, OneKind) else (value,):
                if not isinstance(kind, (Name, Class, Partial)) or not self._is_of_kind(kind):
                    return None
                if not any(same(kind, other) for other in kinds):
                    kinds.append(kind)
        return OneKind(why, tuple(kinds)) if 1 < len(kinds) <= MOST_KINDS else None

    def _is_of_kind(self, value: Value) -> bool:
        while isinstance(value, Partial):
            value = value.function
        name = self.library.subclass_of(value) if isinstance(value, Class) else None
        name = value.name if isinstance(value, Name) else name
        return name is not None and self.library.is_one_of_kinds(name)

    def truth(self, value: Value) -> bool | None:
        """Return the truth of a value; None if it is unknown."""
        if value.__class__ is Const:
            return bool(value.value)
        return None if value.__class__ is Unknown else operations.truth(self, value)

    def table(self, cell: Entries) -> Table:
        """Return a dict with that cell."""
        table = Table(self.heap, {})
        table.first = cell
        return table

    def sequence(self, kind: str, items: list[Value], *, complete: bool = True, why: str = "branch") -> Items:
        """Return a list, tuple, set, range or iterator of these items."""
        if kind in ("tuple", "range", "slice"):
            return Items(kind, items, complete=complete, why=why)
        return List(self.heap, kind, items, complete=complete, why=why)

    def record(self, thing: object) -> None:
        """Record a thing for the current root, and for each equal call that memory answers."""
        self.recorded_at = self.steps + self.remembered
        if len(self.recorded) < MOST_RECORDED:
            self.recorded.append(Recorded(thing, tuple(self.conditions), tuple(self.stack), tuple(self.doubts)))

    def leaves_out(self, function: Function, given: Sequence[Value] = ()) -> bool:
        """Whether a function is irrelevant and need not run; if it is `given` functions, it may call them, and runs."""
        if self.skips is None or not self.skips(function):
            return False
        return not any(isinstance(value, (Function, Partial)) for value in given)

    def doomed(self, first: int, last: int) -> None:
        """Mark the records between two indices as made on a path that raises, or ends the program."""
        if first < last:
            self.recorded[first:last] = [Recorded(item.thing, item.conditions, item.stack, (*item.doubts, DOOMED))
                                         for item in self.recorded[first:last]]  # fmt: skip

    def lost(self, value: Value, why: str = "call") -> None:
        """Tell the library that a value is no longer followed, as the code that gets it is unknown for that reason."""
        if isinstance(value, (Instance, Tensor, Items, Table, Function, Partial)):
            self.library.escapes(self, value, why)

    def give_away(self, values: Iterable[Value], why: str = "call") -> None:
        """Tell the library that arguments were given to code that is unknown for the reason `why`."""
        for value in values:
            self.lost(value, why)

    def copied(self, value: Value, *, deep: bool) -> Value:
        """Return the result of `copy.copy`, or of `copy.deepcopy` if `deep`."""
        if deep:
            try:
                return Copying(self.heap, None, {}, DEEPEST_VALUE * 100, DEEPEST_VALUE).copy(value)
            except NotCopied:
                return unknown("call")
        return another(value, value.cell.copied()) if isinstance(value, (Instance, List, Table)) else value

    def part_of(self, value: Value) -> Value:
        """Return an unknown item of a value, with the reason for which it is unknown."""
        if isinstance(value, (Items, Table)):
            return unknown(value.why if not value.complete else "call")
        return unknown(reason(value))

    def no_call(self, at: ast.AST) -> ast.Call:
        """Return a call node at the position of `at`, for calls that no code writes: decorators, `__len__`, ..."""
        if isinstance(at, ast.Call):
            return at
        name = ast.Name(id="", ctx=ast.Load())
        call = ast.Call(func=name, args=[], keywords=[])
        for node in (name, call):
            node.lineno, node.col_offset = getattr(at, "lineno", 1), getattr(at, "col_offset", 0)
            node.end_lineno, node.end_col_offset = getattr(at, "end_lineno", 1), getattr(at, "end_col_offset", 0)
        return call


def _is_bare_call(script: ast.AST) -> bool:
    """Whether a script is only `main()`: that function is a root itself."""
    match getattr(script, "body", []):
        case [ast.Expr(value=ast.Call(func=ast.Name(), args=[], keywords=[]))]:
            return True
    return False


def _as_function(guard: ast.If) -> ast.FunctionDef:
    """Return the code below the guard of a script as a function."""
    return ast.FunctionDef("__main__", _NO_ARGUMENTS, guard.body, [], lineno=guard.lineno, col_offset=guard.col_offset,
                           end_lineno=guard.end_lineno, end_col_offset=guard.end_col_offset)  # fmt: skip
