"""The evaluator: runs bodies of modules, functions and classes on values that are known in part.

How a library uses it
---------------------
- `machine.call(value, args, keywords, node, file)` runs a function, method, class or whatever else can be called: a
  forward method is `machine.call(machine.attribute(instance, "forward"), [x], {}, node, file)`. `machine.no_call(node)`
  makes the `node` where no call is written. `machine.iterate(value)` gives items, or None where they are not known.
- `machine.record(thing)` is the only way to keep something: what a call recorded is recorded again each time an equal
  call is answered from memory. So `thing` says nothing of the root, of `machine.conditions` and `machine.stack`: it
  comes back as Recorded(thing, conditions, stack), in the RootRun that run_root returns. The undecided tests are the
  texts in `conditions`, outermost first; `stack` are the calls, as Site(file, node).
- An answer from memory is a copy of the result, so that a later change of it stays its own. `Instance.extra` and
  `Tensor.data` are shared between copies, unless they have a method `copied(copy)` that gives a new one, in which
  `copy` gives the copy of a Value. Before the library changes an Instance, Items or Table that it did not just make, it
  calls `machine.touch(value)`: paths that nobody can choose between are each run from the same state. An `extra` is
  replaced, never changed in its place: `machine.touch(instance); instance.extra = new`. Where paths meet that each
  made an object of a framework's, `extra.either(other)` says what is true of both, or None.
- What depends on more than a call's arguments, such as a count over the whole run, is no business of a call; a library
  that cannot help it calls `machine.journals.spoil()`, and nothing that runs now is remembered.
"""

from __future__ import annotations

import ast

from msgspec import Struct

from convlint.readers.python.evaluator import (
    comparing,
    copying,
    generators,
    iterating,
    module_body,
    root_run,
    uncalled,
    unwritten,
)
from convlint.readers.python.evaluator.choosing import Choices
from convlint.readers.python.evaluator.classes import Classes
from convlint.readers.python.evaluator.compiler import Code
from convlint.readers.python.evaluator.dispatch import Dispatch
from convlint.readers.python.evaluator.exhausted import Exhausted as Exhausted
from convlint.readers.python.evaluator.items import ItemAccess
from convlint.readers.python.evaluator.journal import Changing, Journals
from convlint.readers.python.evaluator.library import Call, Library
from convlint.readers.python.evaluator.limits import (
    MOST_RECORDED,
    STEPS_OF_FILE,
    STEPS_OF_NOTHING,
    STEPS_OF_RUN,
)
from convlint.readers.python.evaluator.memory import Memory, Recorded
from convlint.readers.python.evaluator.modules import Modules
from convlint.readers.python.evaluator.root_run import RootRun as RootRun
from convlint.readers.python.evaluator.scope import Scope
from convlint.readers.python.evaluator.standard import BUILTINS
from convlint.readers.python.evaluator.syntax import TABLES
from convlint.readers.python.evaluator.values import (
    Class,
    Const,
    Function,
    Instance,
    Items,
    Table,
    Tensor,
    Unknown,
    Value,
    unknown,
)
from convlint.readers.python.project import Project
from convlint.readers.python.source_file import SourceFile


class Site(Struct, frozen=True):
    """A call of something in the source."""

    file: SourceFile
    node: ast.Call


class Machine:
    """One run of the evaluator over the files of a project."""

    def __init__(self, project: Project, library: Library) -> None:
        self.project, self.library = project, library
        self.journals = Journals()
        self.modules = Modules(self, BUILTINS)
        self.classes, self.items = Classes(self), ItemAccess(self)
        self.memory, self.dispatch = Memory(self), Dispatch(self)
        self.choices = Choices()
        self.conditions: list[str] = []  # the undecided tests around what runs now
        self.stack: list[Site] = []  # the calls that led there
        self.recorded: list[Recorded] = []
        self.root = ""  # path:name of the root that runs
        self.steps = 0  # that are left
        self.remembered = 0  # steps of the root that memory saved: they count for the root, not for file and run
        self.height = 0  # frames of Python that calls stand on
        self.again = 0  # loops within one another that are run to see what they change
        self.active: dict[ast.AST, int] = {}  # functions that run
        self.left_of_run = STEPS_OF_RUN
        self.steps_of_file = STEPS_OF_FILE
        self.left_of_file: dict[str, int] = {}
        self.floor = 0  # of the steps, until something is recorded or found
        self._codes: dict[ast.AST, Code] = {}

    # Running

    def run_module(self, path: str) -> Scope | None:
        """The variables of the module, whose body is run if it was not."""
        return self.modules.scope(path)

    def roots(self, path: str) -> list[Function | Class]:
        """The functions and classes that a file defines at its top, by the order of their lines."""
        return uncalled.defined(self, path)

    def run_root(self, root: Function | Class, defaults: bool) -> RootRun:
        """Call it with parameters that nobody knows, or at their defaults; what it changes is undone."""
        return root_run.run(self, root, defaults)

    def run_body(self, scope: Scope) -> bool:
        """Run a module's body as if nothing else ran; whether it came to its end."""
        return module_body.run(self, scope)

    def push(self, file: SourceFile, node: ast.Call) -> None:
        """A call of something in the source begins; `stack.pop()` ends it."""
        self.stack.append(Site(file, node))

    def step(self) -> None:
        """One statement, call or round of a loop."""
        self.steps -= 1
        if self.steps < self.floor:
            if self.recorded:
                self.floor = 0
            if self.steps < self.floor:
                raise Exhausted

    def found(self) -> None:
        """Something was met that the run is for: it may go on as far from here."""
        if self.floor:
            self.floor = max(self.steps - STEPS_OF_NOTHING, 0)

    def code(self, function: Function) -> Code:
        """The function made ready to run."""
        found = self._codes.get(function.node)
        if found is None:
            found = self._codes[function.node] = Code(function.node, function.file, TABLES)
        return found

    # What a library, and every other part, asks for

    def call(
        self, value: Value, args: list[Value], keywords: dict[str, Value], node: ast.Call, file: SourceFile,
        exact: bool = True,
    ) -> Value:  # fmt: skip
        """What `value(*args, **keywords)` gives."""
        return self.dispatch.call(value, args, keywords, node, file, exact)

    def call_method(
        self, receiver: Value, name: str, args: list[Value], keywords: dict[str, Value], node: ast.Call,
        file: SourceFile, exact: bool = True,
    ) -> Value:  # fmt: skip
        """What `receiver.name(*args, **keywords)` gives."""
        return self.dispatch.call_method(receiver, name, args, keywords, node, file, exact)

    def attribute(self, value: Value, name: str) -> Value:
        """`value.name`."""
        return self.dispatch.attribute(value, name)

    def set_attribute(self, receiver: Value, name: str, value: Value) -> None:
        """`receiver.name = value`."""
        self.dispatch.set_attribute(receiver, name, value)

    def delete_attribute(self, receiver: Value, name: str) -> None:
        """`del receiver.name`."""
        if isinstance(receiver, Instance):
            self.touch(receiver)
            receiver.attributes.pop(name, None)

    def iterate(self, value: Value) -> list[Value] | None:
        """The items that a loop goes through; None where they are not known."""
        return iterating.iterate(self, value)

    def parts(self, value: Instance) -> list[Value] | None:
        """What a container of a framework holds, in order."""
        return self.library.items(self, value)

    def truth(self, value: Value) -> bool | None:
        """Whether it is true; None where nobody knows."""
        if value.__class__ is Const:
            return bool(value.value)
        return comparing.truth(self, value)

    def record(self, thing: object) -> None:
        """Keep it for the root that runs now, and for each that is answered from memory."""
        if len(self.recorded) < MOST_RECORDED:
            self.recorded.append(Recorded(thing, tuple(self.conditions), tuple(self.stack)))

    def touch(self, value: Changing) -> None:
        """`value` is about to change."""
        self.journals.touch(value)

    def lost(self, value: Value) -> None:
        """Nobody sees the value from now on."""
        if isinstance(value, (Instance, Tensor, Items, Table)):
            self.library.escapes(self, value)

    def give_away(self, args: list[Value], keywords: dict[str, Value]) -> None:
        """Arguments go where nobody looks."""
        for value in (*args, *keywords.values()):
            self.lost(value)

    def copied(self, value: Value, *, deep: bool) -> Value:
        """copy.copy or copy.deepcopy."""
        return copying.copied(value, deep=deep)

    def part_of(self, value: Value) -> Value:
        """What an item of something that is not known is."""
        if isinstance(value, (Items, Table)):
            return unknown(value.why if not value.complete else "call")
        return unknown(value.why) if isinstance(value, Unknown) else unknown("call")

    def library_call(
        self, node: ast.Call, file: SourceFile, args: list[Value], keywords: dict[str, Value] | None = None,
        exact: bool = True,
    ) -> Call:  # fmt: skip
        """A call as a library is asked about it."""
        return Call(node=node, file=file, args=args, keywords=keywords or {}, exact=exact)

    def no_call(self, at: ast.AST) -> ast.Call:
        """A call that is not written as one, at the place of `at`."""
        return unwritten.no_call(at)

    def entered(self, value: Value, file: SourceFile) -> Value:
        """What `with value as name` binds."""
        method = self.classes.method_of(value, "__enter__") if isinstance(value, Instance) else None
        if isinstance(method, Function):
            return self.call(method, [], {}, self.no_call(method.node), file)
        return self.part_of(value)

    def yields(self, scope: Scope, values: list[Value] | None) -> None:
        """The generator whose body runs gives these; None: nobody knows how many."""
        generators.yields(self, scope, values)

    def whole_yields(self, scope: Scope) -> bool:
        """Whether all that a generator gives is known."""
        return not scope.open_yields
