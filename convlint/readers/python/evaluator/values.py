"""The values of the evaluator: constants, collections, functions, classes, objects, and the unknown.

A mutable value is an Object, a reference to a cell; the heap (`state.py`) knows what the cell holds on the current
path. All other values are immutable.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from convlint.model.source import StatedLiteral
from convlint.readers.python.evaluator.limits import MOST_STATED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from convlint.readers.python.evaluator.state import Heap
    from convlint.readers.python.source_file import SourceFile

Plain = int | float | str | bytes | bool | None
NOTHING_STATED: frozenset[StatedLiteral] = frozenset()
_LONGEST_TEXT = 200  # characters of a text that a report may show


# Values are compared by identity: `eq=False`


class Unknown(Struct, eq=False):
    """A value that is known only when the program runs. `why` is one of `REASONS`."""

    why: str


class OneOf(Unknown):
    """One of several known lists, each with the test that selects it: `table[name]` for an unknown `name`.

    A function that is given one is run with each of them. All other code treats it as unknown.
    """

    values: list[tuple[str, Value]]


class OneKind(Unknown):
    """One of several classes that a library says are alike: `nn.Conv2d if flat else nn.Conv3d`.

    `kinds` are classes of the library, classes of the source derived from those, or partials. A call runs each. All
    other code treats it as unknown.
    """

    kinds: tuple[Name | Class | Partial, ...]


class Preset(Unknown):
    """A number that the user may set on the command line; `number` is its default.

    Arithmetic computes with it, layers are as large as it says, and with defaults loops run as often. All other code,
    tests too, treats it as unknown.
    """

    number: Const

    @property
    def value(self) -> int | float:
        """The default itself."""
        return self.number.value  # type: ignore[return-value]  # `preset` makes these alone


class Deferred(Unknown):
    """A name bound by an import whose module has not been run yet. Reading the variable resolves it."""

    path: str
    name: str


class Const(Struct, eq=False):
    """A number, string, bool or None, and the literals that it was computed from."""

    value: Plain
    stated: frozenset[StatedLiteral] = NOTHING_STATED


class Items:
    """A tuple, range or slice; also the content of a List's cell.

    If it is not `complete`, items may have been added or changed, for the reason `why`, and `items` are only some that
    it may hold.
    """

    __slots__ = ("also", "complete", "items", "kind", "why")

    def __init__(self, kind: str, items: list[Value], *, complete: bool = True, why: str = "branch") -> None:
        self.kind, self.items, self.complete, self.why = kind, items, complete, why
        self.also: tuple[Any, ...] = ()  # other objects that this one may be, once paths have met

    def copied(self) -> Items:
        """Return a copy."""
        copy = Items(self.kind, self.items[:], complete=self.complete, why=self.why)
        copy.also = self.also
        return copy


class Entries(Struct, eq=False):
    """The content of the cell of a dict, an object, a class or a scope.

    Keys in `may` are present on some paths only; all others in `items` are present. If it is not `complete`, keys
    that it lacks may be present too. `extra` is the library's description of an object; if `ordered`, the order of
    the items matters, as in a Sequential.
    """

    items: dict[Any, Value]
    complete: bool = True
    why: str = "branch"
    may: frozenset[Any] = frozenset()
    default: Value | None = None  # what a defaultdict calls
    extra: Any = None
    ordered: bool = False
    also: tuple[Any, ...] = ()  # as of Items

    def copied(self) -> Entries:
        """Return a copy with items of its own."""
        return replace(self, items=self.items.copy())


Cell = Items | Entries


class Object:
    """A mutable value. `born` is its creation time; `first` is its cell as the path that created it has it."""

    __slots__ = ()
    heap: Heap
    first: Any
    born: int

    def _begin(self, heap: Heap, cell: Cell) -> None:
        self.heap, self.first = heap, cell  # type: ignore[misc]  # slots of each kind
        if heap.in_module:
            heap.module_time = self.born = heap.module_time + 1  # type: ignore[misc]
        else:
            heap.time = self.born = heap.time + 1  # type: ignore[misc]

    @property
    def cell(self) -> Any:
        """Its content on the current path; to be changed through Heap.edit and Heap.put only."""
        heap = self.heap
        return self.first if self.born > heap.layer.start else heap.read(self)

    @property
    def items(self) -> Any:
        """The items of its cell on the current path."""
        return self.cell.items

    @property
    def complete(self) -> bool:
        """Whether it has no other items than these."""
        return self.cell.complete  # type: ignore[no-any-return]

    @property
    def why(self) -> str:
        """The reason for which it may have other items."""
        return self.cell.why  # type: ignore[no-any-return]


class List(Object, Items):  # type: ignore[override]  # an Items to all who read it
    """A list, set, iterator, or array of NumPy."""

    __slots__ = ("born", "first", "heap")

    def __init__(
        self, heap: Heap, kind: str, items: list[Value], *, complete: bool = True, why: str = "branch",
    ) -> None:  # fmt: skip
        self._begin(heap, Items(kind, items, complete=complete, why=why))

    also = ()

    @property
    def kind(self) -> str:  # type: ignore[override]
        """`list`, `set`, `iterator` or `array`."""
        return str(self.first.kind)


class Table(Object):
    """A dict. For `obj.__dict__`, `of` is the object whose attributes it holds."""

    __slots__ = ("born", "first", "heap", "of")

    def __init__(
        self, heap: Heap, items: Mapping[Any, Value], *, complete: bool = True, why: str = "branch",
        of: Instance | None = None,
    ) -> None:  # fmt: skip
        self._begin(heap, Entries(dict(items), complete=complete, why=why))
        self.of = of

    @property
    def owner(self) -> Object:
        """The value that owns the cell."""
        return self.of if self.of is not None else self

    @property
    def cell(self) -> Entries:
        """Its cell on the current path."""
        return self.heap.read(self.owner)  # type: ignore[no-any-return]


class Function(Struct, eq=False):
    """A function or lambda of the source; `bound` is its self or cls, `owner` the class that defines it.

    `kind` is set by its decorator: `static`, `class` or `property`, otherwise empty.
    """

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    file: SourceFile
    scope: Any
    name: str
    defaults: list[Value] = []
    kw_defaults: dict[str, Value] = {}
    bound: Value | None = None
    owner: Class | None = None
    kind: str = ""

    def to(self, bound: Value) -> Function:
        """Return the function bound to an object or class."""
        return replace(self, bound=bound)


class Class(Object):
    """A class of the source; `bases` are classes of the source, names of frameworks, or unknown.

    `fields` are those of a dataclass or named tuple, which make its __init__; `meta` is its metaclass. `described` are
    the attributes whose values are descriptors: objects with `__get__` or `__set__`.
    """

    __slots__ = (
        "bases", "born", "described", "fields", "file", "first", "heap", "intercepts", "meta", "name", "node", "order",
    )  # fmt: skip
    namespace: dict[str, Value] = Object.items  # type: ignore[assignment]  # its own attributes

    def __init__(self, heap: Heap, node: ast.ClassDef, file: SourceFile, name: str, bases: list[Value]) -> None:
        self._begin(heap, Entries({}))
        self.node, self.file, self.name, self.bases = node, file, name, bases
        self.fields: list[str] | None = None
        self.order: list[Value] | None = None  # in which attributes are looked up
        self.meta: Value | None = None
        self.described: frozenset[str] = frozenset()
        self.intercepts = False  # whether its `__getattribute__` computes all attributes


class Instance(Object):
    """An object of a class of the source, or of a framework's (`cls` is its Name then).

    `extra` is the description of it by the package `nn`: a convolution, a container, ...
    """

    __slots__ = ("born", "cls", "first", "heap")
    attributes: dict[str, Value] = Object.items  # type: ignore[assignment]  # some were set on other paths only

    def __init__(self, heap: Heap, cls: Class | Name, extra: Any = None) -> None:
        self._begin(heap, Entries({}))
        self.cls, self.first.extra = cls, extra

    @property
    def extra(self) -> Any:
        """The library's description of it."""
        return self.heap.read(self).extra


def another(thing: List | Table | Instance, cell: Any) -> List | Table | Instance:
    """Return a new list, dict or object like `thing`, with that cell."""
    result = thing.__class__.__new__(thing.__class__)
    result._begin(thing.heap, cell)  # the constructors would make a cell that nobody needs
    if isinstance(result, Instance):
        result.cls = thing.cls  # type: ignore[union-attr]
    elif isinstance(result, Table):
        result.of = None
    return result


class Name(Struct, eq=False):
    """Something of a library by its full name, aliases resolved: `torch.nn.Conv2d`; modules too."""

    name: str


class Module(Struct, eq=False):
    """A module of the repository."""

    path: str


class Partial(Struct, eq=False):
    """functools.partial of something."""

    function: Value
    args: list[Value]
    keywords: dict[str, Value]


class Tensor(Struct, eq=False):
    """A tensor of the forward pass: its shape as far as known, and what it comes from, as the package `nn` keeps it."""

    data: Any


Value = Unknown | Const | Items | Table | Function | Class | Instance | Name | Module | Partial | Tensor

# `weight` is that of a functional convolution whose weight has an unknown shape.
REASONS = ("config", "parameter", "branch", "call", "limit", "caller", "weight")

# The unknown for a reason: one object for each
# Shared, so that a comparison by identity is enough where paths meet.
unknown = {why: Unknown(why) for why in REASONS}.__getitem__
NONE = Const(None)


def undecided(*values: Value) -> Unknown:
    """Return the unknown result of an operation on these values, with the reason of the first unknown one."""
    for value in values:
        if isinstance(value, Unknown) or (isinstance(value, (Items, Table)) and not value.complete):
            return unknown(value.why)
        if isinstance(value, Table) and value.cell.may:
            return unknown("branch")
    return unknown("call")


def reason(*values: Value) -> str:
    """Return the reason of the first unknown value; `call` if there is none."""
    for value in values:
        if isinstance(value, Unknown):
            return value.why
    return "call"


def any_true(truths: Collection[bool | None]) -> bool | None:
    """Whether any of the truths holds, each of which may be unknown."""
    return True if True in truths else None if None in truths else False


def all_true(truths: Collection[bool | None]) -> bool | None:
    """Whether all of the truths hold, each of which may be unknown."""
    return False if False in truths else None if None in truths else True


def without_presets(values: Iterable[Value]) -> list[Value]:
    """Return the values, with the defaults of those that the user may set."""
    return [value.number if isinstance(value, Preset) else value for value in values]


def preset(value: Value | None) -> Value:
    """Return what was computed from a Preset as one; unknown if it is no number."""
    if isinstance(value, Const) and value.value.__class__ in (int, float):
        return Preset("config", value)
    return unknown("config")


def as_default(value: Value) -> Value:
    """Return a constant with its literals marked as a default, instead of which callers may give another."""
    if isinstance(value, Const):
        return Const(value.value, frozenset([replace(literal, default=True) for literal in value.stated]))
    return value


def make_options(function: Value | None) -> None:
    """Make the defaults of a function those of options, as a file may say what no caller gives."""
    if isinstance(function, Function):
        function.defaults = [_of_option(default) for default in function.defaults]
        function.kw_defaults = {name: _of_option(default) for name, default in function.kw_defaults.items()}


def _of_option(default: Value) -> Value:
    return preset(default) if isinstance(default, Const) else default


def constants(values: list[Value]) -> list[Plain] | None:
    """Return the Python values of constants; None if any value is no constant."""
    plain = [value.value for value in values if isinstance(value, Const)]
    return plain if len(plain) == len(values) else None


def text_of(value: Value | None) -> str | None:
    """Return the string that the value is; None for any other value."""
    return value.value if isinstance(value, Const) and isinstance(value.value, str) else None


# Literals, and the union of those that a value was computed from


def literal(file: SourceFile, node: ast.expr, value: Plain, name: str, *, default: bool = False) -> Const:
    """Return the constant at `node`, which is bound to `name` there or is the `default` of that parameter."""
    # A long text cannot be shown, and bytes are no size of a layer: neither is worth remembering.
    if isinstance(value, bytes) or (isinstance(value, str) and len(value) > _LONGEST_TEXT):
        return Const(value)
    trial = any(node.lineno in lines for lines in file.trials)
    stated = StatedLiteral(
        at=file.locate(node), value=value, name=name, default=default, quiet=file.is_quiet, trial=trial
    )
    return Const(value, frozenset((stated,)))


def union(first: frozenset[StatedLiteral], second: frozenset[StatedLiteral]) -> frozenset[StatedLiteral]:
    """Return the union of both, cut to MOST_STATED; of more, those that come first in their files."""
    if not second or first is second:
        return first
    if not first:
        return second
    both = first | second
    if len(both) <= MOST_STATED:
        return both
    return frozenset(sorted(both, key=place_of)[:MOST_STATED])


def stated_by(*values: Value) -> frozenset[StatedLiteral]:
    """Return the literals that the values were computed from."""
    literals = NOTHING_STATED
    for value in values:
        if value.__class__ is Const:
            literals = union(literals, value.stated)
    return literals


def defaults_in(value: Value) -> frozenset[StatedLiteral]:
    """Return those of its literals that are defaults of parameters."""
    stated = value.stated if value.__class__ is Const else None
    return frozenset([item for item in stated if item.default]) if stated else NOTHING_STATED


def place_of(stated: StatedLiteral) -> tuple[str, int, int, str, bool, bool]:
    """Return the key by which literals are sorted: the order of a set differs from process to process."""
    return stated.at.path, stated.at.line or 0, stated.at.column or 0, stated.name, stated.default, stated.bound


def same(first: Value, second: Value, depth: int = 0) -> bool:
    """Whether both are the same object, or are equal and immutable."""
    if first is second:
        return True
    if first.__class__ is not second.__class__ or depth > DEEPEST_EQUAL:
        return False
    match first, second:
        case Const(), Const():
            return first.value.__class__ is second.value.__class__ and first.value == second.value
        case Function(), Function():
            return first.node is second.node and first.scope is second.scope and first.bound is second.bound
        case Name(), Name():
            return first.name == second.name
        case Module(), Module():
            return first.path == second.path
        # Two reads of `obj.__dict__` are two Tables of one object.
        case Table(), Table():
            return first.of is not None and first.of is second.of
        case Partial(), Partial():
            return (
                same(first.function, second.function, depth + 1)
                and len(first.args) == len(second.args)
                and all(same(left, right, depth + 1) for left, right in zip(first.args, second.args, strict=True))
                and first.keywords.keys() == second.keywords.keys()
                and all(same(value, second.keywords[key], depth + 1) for key, value in first.keywords.items())
            )
    return False


DEEPEST_EQUAL = 6  # of lists within lists


_LONGEST_ORDER = 64  # hostile source may nest bases without end


def order_of(cls: Class) -> list[Value]:
    """Return the method resolution order (C3); if there is none, as of unknown bases, the bases depth first."""
    chains = [
        base.order if isinstance(base, Class) and base is not cls and base.order else [base] for base in cls.bases
    ]
    chains.append([base for base in cls.bases if base is not cls])
    order: list[Value] = [cls]
    while any(chains) and len(order) < _LONGEST_ORDER:
        chains = [chain for chain in chains if chain]
        head = next((chain[0] for chain in chains
                     if not any(same(chain[0], base) for other in chains for base in other[1:])),
                    chains[0][0])  # fmt: skip
        if head is not cls:
            order.append(head)
        chains = [[base for base in chain if not same(base, head)] for chain in chains]
    return order


def derives(cls: Class, bases: Collection[str]) -> bool:
    """Whether one of the classes of libraries that it derives from is among `bases`."""
    return any(isinstance(base, Name) and base.name in bases for base in cls.order or ())


# Decorators and bases that make the `__init__` of a class from its annotated names, and default values of those
RECORD_MAKERS = frozenset({
    "dataclasses.dataclass", "attr.s", "attr.attrs", "attr.dataclass", "attr.define", "attr.frozen", "attr.mutable",
    "attrs.define", "attrs.frozen", "attrs.mutable", "pydantic.dataclasses.dataclass", "flax.struct.dataclass",
    "chex.dataclass",
})  # fmt: skip
FROM_ENVIRONMENT = frozenset({"pydantic_settings.BaseSettings", "pydantic.BaseSettings"})
RECORD_BASES = frozenset({"pydantic.BaseModel", "pydantic.main.BaseModel", "msgspec.Struct", "sqlmodel.SQLModel"})
RECORD_BASES |= FROM_ENVIRONMENT
FIELDS = (
    "dataclasses.field", "attr.ib", "attr.field", "attrs.field", "pydantic.Field", "msgspec.field", "flax.struct.field",
)  # fmt: skip
ENUMS = frozenset({"enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag", "enum.IntFlag"})
_OF_PLAIN_VALUES = frozenset({"builtins.int", "builtins.str", "enum.IntEnum", "enum.StrEnum", "enum.IntFlag"})


def plain_member(value: Value) -> Value:
    """Return a member of an enumeration of numbers or strings as what it counts as; any other value itself."""
    if isinstance(value, Instance) and isinstance(value.cls, Class) and derives(value.cls, _OF_PLAIN_VALUES):
        return value.attributes.get("value", value) if derives(value.cls, ENUMS) else value
    return value


def as_key(value: Value) -> Value:
    """Return the constant that stands for a value as a key of a dict; the value itself if it has none.

    That of a member of an enumeration whose number or string is not known is a text with the names of both.
    """
    if isinstance(value, Instance) and isinstance(value.cls, Class) and derives(value.cls, ENUMS):
        plain, name = plain_member(value), text_of(value.attributes.get("name"))
        return plain if isinstance(plain, Const) or name is None else Const(f"{value.cls.name}.{name}")
    return value


# Classes of libraries whose objects are dicts
DICTS = frozenset({"builtins.dict", "typing.Dict", "collections.OrderedDict", "easydict.EasyDict", "munch.Munch"})


def behind(cls: Class, after: Class | None) -> list[Value]:
    """Return the classes that attributes are looked for in, behind `after` if it is among them."""
    order = cls.order or [cls]
    return order[order.index(after) + 1 :] if after in order else order
