"""Operators, comparisons, subscripts and iteration on values. A truth or a list of items is None if it is unknown."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from convlint.model.source import StatedLiteral
from convlint.readers.python.evaluator.library import LibraryCall
from convlint.readers.python.evaluator.limits import LONGEST, MOST_BITS, ROUNDS
from convlint.readers.python.evaluator.values import (
    DEEPEST_EQUAL,
    DICTS,
    NOTHING_STATED,
    Class,
    Const,
    Entries,
    Function,
    Instance,
    Items,
    List,
    Module,
    Name,
    OneOf,
    Partial,
    Preset,
    Table,
    Tensor,
    Unknown,
    Value,
    all_true,
    any_true,
    as_key,
    constants,
    derives,
    plain_member,
    preset,
    reason,
    same,
    stated_by,
    text_of,
    undecided,
    union,
    unknown,
    without_presets,
)
from convlint.readers.python.project import FRAMEWORKS
from convlint.readers.python.source_file import SourceFile, unparsed

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

_MOST_LISTS = 8  # of a OneOf: a function is run with each
# Parts of names that stand for data and not for code: `torch.version.cuda` may be None.
_SETTINGS = frozenset({"version", "backends", "cuda", "__version__", "environ", "config", "flags"})
_KNOWN = FRAMEWORKS | {"builtins", "functools", "math", "collections", "operator"}


# Plain values: no result may exceed its limit, as `9 ** 9 ** 9` would

_NUMBERS = {Const, Preset}
_PLAIN_TYPES = (int, float, str, bytes, bool, type(None))
_LONG_WIDTH = re.compile(r"\d{4}|\*")

_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitOr: operator.or_, ast.BitAnd: operator.and_, ast.BitXor: operator.xor,
}  # fmt: skip
_ORDERS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
# `~True` on a bool itself is deprecated.
UNARY: dict[type[ast.AST], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: lambda value: ~operator.index(value),
}  # fmt: skip


def computed(stated: frozenset[StatedLiteral], operation: Callable[..., Any], *args: Any) -> Const | None:
    """Return the result of an operation on plain values, computed from the literals `stated`.

    None if the operation raises, or if its result is no plain value within the limits.
    """
    try:
        return constant(operation(*args), stated)
    except (ArithmeticError, TypeError, ValueError, AttributeError, LookupError, MemoryError):
        return None


def of_presets(
    function: Callable[[Machine, LibraryCall], Value | None],
) -> Callable[[Machine, LibraryCall], Value | None]:
    """Return a function of numbers, which also computes with those that the user may set."""

    def run(machine: Machine, call: LibraryCall) -> Value | None:
        if Preset not in map(type, call.args):
            return function(machine, call)
        return preset(function(machine, call.with_args(without_presets(call.args), call.keywords)))

    return run


def constant(value: Any, stated: frozenset[StatedLiteral]) -> Const | None:
    """Return the constant of a value; None if it is not plain, or exceeds the limits."""
    if (
        type(value) not in _PLAIN_TYPES
        or (isinstance(value, (str, bytes)) and len(value) > LONGEST)
        or (type(value) is int and value.bit_length() > MOST_BITS)
    ):
        return None
    return Const(value, stated)


def is_small_format(text: str) -> bool:
    """Whether a format string states no width of four digits or more, and takes no width from an argument."""
    return not _LONG_WIDTH.search(text) and not re.search(r"\{[^{}]*\{", text)


def _small(kind: type[ast.AST], left: Any, right: Any) -> bool:
    """Whether the result is small enough to be computed."""
    # `"%999999999d" % 1` would fill the memory.
    if kind is ast.Mod and isinstance(left, (str, bytes)):
        return is_small_format(left if isinstance(left, str) else left.decode("latin-1"))
    if kind is ast.Mult and (isinstance(left, (str, bytes)) or isinstance(right, (str, bytes))):
        text, times = (left, right) if isinstance(left, (str, bytes)) else (right, left)
        return isinstance(times, int) and len(text) * max(times, 0) <= LONGEST
    if not isinstance(left, int) or not isinstance(right, int):
        return True
    if kind is ast.Pow:
        return abs(right) <= MOST_BITS and left.bit_length() * abs(right) <= MOST_BITS
    if kind is ast.LShift:
        return right <= MOST_BITS
    return True


# Operators on all values


def binary(machine: Machine, kind: type[ast.AST], left: Value, right: Value, node: ast.AST) -> Value:
    """Return the result of a binary operator."""
    if left.__class__ is Const and right.__class__ is Const:
        return _plain(kind, left.value, right.value, union(left.stated, right.stated))
    if (left.__class__ is Preset or right.__class__ is Preset) and {left.__class__, right.__class__} <= _NUMBERS:
        first, second = without_presets((left, right))
        return preset(binary(machine, kind, first, second, node))
    if isinstance(left, (Tensor, Instance)) or isinstance(right, (Tensor, Instance)):
        result = machine.library.operator(machine, left, right, node)
        if result is not None:
            return result
    elif kind is ast.Mod and isinstance(left, Const) and isinstance(left.value, str):
        return _formatted(left, right)
    elif isinstance(left, Items) or isinstance(right, Items):
        if any(isinstance(side, Items) and side.kind == "array" for side in (left, right)):
            return _by_item(machine, kind, left, right, node)
        return _sequences(machine, kind, left, right)
    elif isinstance(left, Table) and isinstance(right, Table) and kind is ast.BitOr:
        merged = left.cell.copied()
        machine.update(merged, right)
        return machine.table(merged)
    return unknown(reason(left, right))


def _plain(kind: type[ast.AST], left: Any, right: Any, stated: frozenset[StatedLiteral]) -> Value:
    operation = _OPERATORS.get(kind)
    if operation is None or not _small(kind, left, right):
        return unknown("limit")
    return computed(stated, operation, left, right) or unknown("limit")


def _formatted(left: Const, right: Value) -> Value:
    values = right.items if isinstance(right, Items) and right.kind == "tuple" else [right]
    plain_values = constants(values)
    if plain_values is None:
        return unknown(reason(*values))
    return _plain(ast.Mod, left.value, tuple(plain_values), stated_by(left, *values))


def _by_item(machine: Machine, kind: type[ast.AST], left: Value, right: Value, node: ast.AST) -> Value:
    """Return the result of an operator on arrays of NumPy, of one length, or on one and a number."""
    length = next(len(side.items) for side in (left, right) if isinstance(side, Items) and side.kind == "array")
    mine, its = (side.items if isinstance(side, Items) else [side] * length for side in (left, right))
    if len(mine) != len(its) or not all(isinstance(item, Const) for item in (*mine, *its)):
        return unknown(reason(left, right))
    pairs = zip(mine, its, strict=True)
    return machine.sequence("array", [binary(machine, kind, first, second, node) for first, second in pairs])


def _sequences(machine: Machine, kind: type[ast.AST], left: Value, right: Value) -> Value:
    match left, right:
        case (Items() as items, other) | (other, Items() as items) if kind is ast.Mult:
            return _repeated(machine, items, other)
        case Items(), Items():
            complete, why = left.complete and right.complete, right.why if left.complete else left.why
            if kind is ast.Add and len(left.items) + len(right.items) <= LONGEST:
                return machine.sequence(left.kind, [*left.items, *right.items], complete=complete, why=why)
            sets = complete and kind in (ast.Sub, ast.BitAnd, ast.BitXor, ast.BitOr)
            return _sets(machine, kind, left, right) if sets else unknown("limit")
        # `[3, 4] + config.widths` still begins with what is known.
        case (Items() as items, Unknown(why=why)) | (Unknown(why=why), Items() as items) if kind is ast.Add:
            return machine.sequence(items.kind, items.items[:], complete=False, why=why)
    return unknown(reason(left, right))


def _repeated(machine: Machine, items: Items, times: Value) -> Value:
    if isinstance(times, Preset) and machine.counts_by_presets([times]):
        times = times.number
    number = times.value if isinstance(times, Const) and isinstance(times.value, int) else None
    if number is not None and len(items.items) * number <= LONGEST:
        repeated = items.items * max(number, 0)
        return machine.sequence(items.kind, repeated, complete=items.complete, why=items.why)
    why = "limit" if number is not None else reason(times)
    return machine.sequence(items.kind, items.items[:], complete=False, why=why)


def _sets(machine: Machine, kind: type[ast.AST], left: Items, right: Items) -> Value:
    mine, theirs = constants(left.items), constants(right.items)
    if mine is None or theirs is None:
        return unknown("call")
    keep = _OPERATORS[kind](set(mine), set(theirs))
    pairs = zip((*mine, *theirs), (*left.items, *right.items), strict=True)
    return machine.as_set([item for value, item in pairs if value in keep])


# Truth and comparisons


def is_something(name: Name) -> bool:
    """Whether the name must be of a function, class or module, which is true and not None."""
    parts = name.name.split(".")
    if not _SETTINGS.isdisjoint(parts):
        return False
    last = parts[-1]
    return parts[0] in _KNOWN or (last[:1].isupper() and not last.isupper())


def truth(machine: Machine, value: Value) -> bool | None:
    """Return the truth of a value that is no constant."""
    match value:
        case Unknown() | Tensor():
            return None
        case Items():
            return True if value.kind == "iterator" else bool(value.items) if value.complete else None
        case Table():
            cell = value.cell
            return True if cell.items.keys() - cell.may else None if cell.may or not cell.complete else False
        case Name():
            return True if is_something(value) else None
        case Instance():
            return _truth_of_instance(machine, value)
    return True


def _truth_of_instance(machine: Machine, value: Instance) -> bool | None:
    for name in ("__bool__", "__len__"):
        method = machine.calls.method_of(value, name)
        if method is not None:
            result = machine.calls.ask(method)
            return bool(result.value) if isinstance(result, Const) else None
    own = items_of(value)
    if own is not None:
        return truth(machine, own)
    parts = machine.library.items(machine, value)
    if parts is not None:
        return bool(parts)
    return None if isinstance(value.cls, Name) and not is_something(value.cls) else True


def compare(machine: Machine, kind: type[ast.AST], left: Value, right: Value) -> bool | None:
    """Return the truth of a comparison: `left < right`, `left in right`, `left is right`."""
    if Preset in (left.__class__, right.__class__) and (_counts_to(left, right) or _counts_to(right, left)):
        left, right = without_presets((left, right))
    if kind is ast.NotIn or kind is ast.In:
        result = _contains(machine, right, left)
    elif kind is ast.Is or kind is ast.IsNot:
        result = _identical(left, right)
    elif kind is ast.Eq or kind is ast.NotEq:
        result = equal(left, right)
    else:
        return _ordered(_ORDERS[kind], left, right)
    return not result if result is not None and kind in (ast.NotIn, ast.IsNot, ast.NotEq) else result


def _counts_to(number: Value, end: Value) -> bool:
    """Whether a number counts the rounds of a loop up to a Preset, and is compared with that: `i == depth - 1`."""
    if not isinstance(end, Preset) or number.__class__ is not Const:
        return False
    ends = {literal.at for literal in end.number.stated}
    return any(literal.bound and literal.at in ends for literal in number.stated)


def _identical(left: Value, right: Value) -> bool | None:
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return None
    if isinstance(left, Const) and isinstance(right, Const):
        if left.value is None or right.value is None or isinstance(left.value, bool) or isinstance(right.value, bool):
            return left.value is right.value
        return equal(left, right)
    if isinstance(left, Const) or isinstance(right, Const):
        # `torch.version.cuda is None`: a name that stands for data may be None.
        other = right if isinstance(left, Const) else left
        return None if isinstance(other, Name) and not is_something(other) else False
    if isinstance(left, (List, Table, Instance)) and isinstance(right, (List, Table, Instance)) \
            and (left.cell.also or right.cell.also):  # fmt: skip
        return None
    if isinstance(left, (Items, Table, Instance, Tensor)) or isinstance(right, (Items, Table, Instance, Tensor)):
        plain = all(isinstance(value, Items) and not isinstance(value, List) for value in (left, right))
        return None if plain else left is right or same(left, right)  # equal tuples may be one or two
    return equal(left, right)


def equal(left: Value, right: Value, depth: int = 0) -> bool | None:
    """Whether both are equal."""
    if isinstance(left, (Unknown, Tensor)) or isinstance(right, (Unknown, Tensor)) or depth > DEEPEST_EQUAL:
        return None
    if isinstance(left, Const) and isinstance(right, Const):
        return left.value == right.value
    if left is right or same(left, right):
        return True
    match left, right:
        case (Items(kind="array"), _) | (_, Items(kind="array")):
            return None
        case Items(), Items():
            return _equal_items(left, right, depth)
        case Table(), Table():
            return _equal_tables(left.cell, right.cell, depth)
        case Name(), Name():
            return None if left.name.split(".")[-1] == right.name.split(".")[-1] else False
        case (Instance(), _) | (_, Instance()) | (Partial(), _) | (_, Partial()):
            return _equal_instances(left, right)
        case (Class() | Function() | Module(), _) | (_, Class() | Function() | Module()):
            return False
        case (Name(), _) | (_, Name()):
            return None
    return False


def _equal_tables(left: Entries, right: Entries, depth: int) -> bool | None:
    if not (left.complete and right.complete) or left.may or right.may:
        return None
    if left.items.keys() != right.items.keys():
        return False
    return all_true([equal(value, right.items[key], depth + 1) for key, value in left.items.items()])


def _equal_instances(left: Value, right: Value) -> bool | None:
    """Whether two objects are equal: members of an enumeration only if they are the same."""
    if isinstance(left, Instance) and isinstance(right, Instance) and left.cls is right.cls:
        names = left.attributes.get("name"), right.attributes.get("name")
        if all(isinstance(name, Const) for name in names) and isinstance(left.cls, Class) and left.cls.fields is None:
            return False if left.attributes.get("value") is not None else None
    if (isinstance(left, Const) and left.value is None) or (isinstance(right, Const) and right.value is None):
        return False
    left, right = plain_member(left), plain_member(right)
    return left.value == right.value if isinstance(left, Const) and isinstance(right, Const) else None


def _equal_items(left: Items, right: Items, depth: int) -> bool | None:
    if left.kind != right.kind and {left.kind, right.kind} <= {"list", "tuple", "set"}:
        return False
    if not left.complete or not right.complete or left.kind == "set":
        return None
    if len(left.items) != len(right.items):
        return False
    return all_true([equal(first, second, depth + 1) for first, second in zip(left.items, right.items, strict=True)])


def _contains(machine: Machine, container: Value, part: Value) -> bool | None:
    if isinstance(part, Unknown):
        return False if isinstance(container, (Items, Table)) and container.complete and not container.items else None
    match container:
        case Items():
            truths = [equal(item, part) for item in container.items]
            if not container.complete:
                return None
            if container.kind == "iterator":
                machine.heap.edit(container).complete = False  # the test consumes it up to the item
            return any_true(truths)
        case Table() if isinstance(key := as_key(part), Const):
            return has_key(container.cell, key.value)
        case Const(value=str() as text) if isinstance(part, Const) and isinstance(part.value, str):
            return part.value in text
        case Instance():
            method = machine.calls.method_of(container, "__contains__")
            if method is not None:
                return machine.truth(machine.calls.ask(method, part))
            own = items_of(container)
            return _contains(machine, own, part) if own is not None else None
    return None


def has_key(cell: Entries, key: object) -> bool | None:
    """Whether a dict has a key."""
    if key in cell.items:
        return None if key in cell.may else True
    return False if cell.complete else None


def _ordered(order: Callable[[Any, Any], Any], left: Value, right: Value) -> bool | None:
    mine: Any
    theirs: Any
    if isinstance(left, Items) and isinstance(right, Items):
        mine, theirs = constants(left.items), constants(right.items)
        comparable = left.complete and right.complete and left.kind == right.kind != "set"
        if not comparable or mine is None or theirs is None:
            return None
    elif isinstance(left, Const) and isinstance(right, Const):
        mine, theirs = left.value, right.value
    else:
        return None
    result = computed(NOTHING_STATED, order, mine, theirs)
    return bool(result.value) if result is not None else None


# Items


def get(machine: Machine, receiver: Value, key: Value, node: ast.Subscript, file: SourceFile) -> Value:
    """Return `receiver[key]`."""
    match receiver:
        case Unknown():
            return unknown(receiver.why)
        case Items():
            return _item(machine, receiver, key)
        case Table():
            return _item_at_key(machine, receiver, key, node, file)
        case Const(value=str() as text) if isinstance(key, Const) and isinstance(key.value, int):
            at = place_in(text, key)
            return Const(text[at], receiver.stated) if at is not None else unknown("call")
        case Name():
            return receiver if receiver.name.startswith(("typing", "builtins", "collections")) else unknown("call")
        case Module() if isinstance(key, Const) and isinstance(key.value, str):  # globals()["name"]
            return machine.modules.member(receiver.path, key.value)
        case Class():
            if machine.calls.is_enum(receiver):
                return receiver.namespace.get(text_of(key) or "", unknown("call"))
            return receiver  # a generic one with its parameters
        case Instance():
            return _of_instance(machine, receiver, key, node, file)
    return _by_library(machine, receiver, "__getitem__", [key], node, file)


def _item(machine: Machine, receiver: Items, key: Value) -> Value:
    if not isinstance(key, Const):
        why = reason(key)
        return (machine.one_kind(receiver.items, why) if receiver.complete else None) or unknown(why)
    if not receiver.complete:
        return unknown(receiver.why)
    at = place_in(receiver.items, key)
    return receiver.items[at] if at is not None else unknown("call")


def place_in(items: Sequence[object], key: Value) -> int | None:
    """Return the index that a key is, if there is such an item; None otherwise."""
    at = key.value if isinstance(key, Const) else None
    return at if isinstance(at, int) and -len(items) <= at < len(items) else None


def _item_at_key(machine: Machine, receiver: Table, key: Value, node: ast.Subscript, file: SourceFile) -> Value:
    """Return a dict's item; a key that may be missing is assumed present, as reading it would raise otherwise."""
    cell, key = receiver.cell, as_key(key)
    if isinstance(key, Unknown):
        return (machine.one_kind(cell.items.values(), key.why) if cell.complete else None) or _one_of(cell, key, node)
    if not isinstance(key, Const):
        return unknown("call")
    item = cell.items.get(key.value)
    if item is not None:
        return item if cell.default is None or key.value not in cell.may else unknown("branch")
    # Reading a missing key of a defaultdict adds it.
    if cell.default is not None and cell.complete:
        value = machine.call(cell.default, [], {}, machine.no_call(node), file)
        machine.heap.put(receiver.owner, key.value, value)
        return value
    return unknown("call" if cell.complete else cell.why)


def _one_of(cell: Entries, key: Unknown, node: ast.Subscript) -> Unknown:
    """Return the item of a dict of lists at an unknown key: one of those lists, if they are few."""
    known = cell.complete and not cell.may and cell.default is None and 1 <= len(cell.items) <= _MOST_LISTS
    if not known or not all(isinstance(value, Items) and value.complete and value.kind in ("list", "tuple")
                            for value in cell.items.values()):  # fmt: skip
        return unknown(key.why)
    text = unparsed(node.slice)[:60]
    return OneOf(key.why, [(f"{text} == {name!r}", value) for name, value in cell.items.items()])


def items_of(value: Value) -> Table | None:
    """Return the items of an object whose class derives from dict, which are kept among its attributes."""
    if isinstance(value, Instance) and isinstance(value.cls, Class) and derives(value.cls, DICTS):
        return Table(value.heap, {}, of=value)
    return None


def _of_instance(machine: Machine, receiver: Instance, key: Value, node: ast.Subscript, file: SourceFile) -> Value:
    method = machine.calls.method_of(receiver, "__getitem__")
    if method is not None:
        return machine.call(method, [key], {}, machine.no_call(node), file)
    own = items_of(receiver)
    if own is not None:
        return _item_at_key(machine, own, key, node, file)
    item = _by_library(machine, receiver, "__getitem__", [key], node, file)
    if not isinstance(item, Unknown):
        return item
    items = machine.library.items(machine, receiver)
    return _item(machine, Items("tuple", items), key) if items is not None else item


def _by_library(
    machine: Machine, receiver: Value, name: str, args: list[Value], node: ast.AST, file: SourceFile
) -> Value:
    call = LibraryCall(machine.no_call(node), file, args, {})
    return machine.library.method(machine, receiver, name, call) or unknown("call")


def cut(machine: Machine, receiver: Value, bounds: list[Value]) -> Value:
    """Return `receiver[low:high:step]` for these three bounds, each of which may be None."""
    ends: list[int | None] = []
    for end in bounds:
        value = end.value if isinstance(end, Const) else None
        if not isinstance(end, Const) or not (value is None or isinstance(value, int)):
            if isinstance(receiver, Items):
                return machine.sequence(receiver.kind, [], complete=False, why=reason(end))
            return unknown(reason(end))
        ends.append(value if isinstance(value, int) else None)
    if ends[2] == 0:
        return unknown("call")
    if isinstance(receiver, Items):
        if not receiver.complete:
            return machine.sequence(receiver.kind, receiver.items[:], complete=False, why=receiver.why)
        kind = "list" if receiver.kind in ("range", "iterator") else receiver.kind
        return machine.sequence(kind, receiver.items[slice(*ends)])
    if isinstance(receiver, Const) and isinstance(receiver.value, str):
        return Const(receiver.value[slice(*ends)], receiver.stated)
    return unknown(reason(receiver))


def put_key(cell: Entries, key: Value, value: Value) -> None:
    """Set an item in a cell that may be changed."""
    key = as_key(key)
    if isinstance(key, Const):
        cell.items[key.value] = value
        cell.may = cell.may - {key.value}
    else:
        cell.complete = False
        if isinstance(key, Unknown):  # may be any key
            cell.items, cell.may = {}, frozenset()


def put(machine: Machine, receiver: Value, key: Value, value: Value, node: ast.AST, file: SourceFile) -> None:
    """Evaluate `receiver[key] = value`."""
    heap = machine.heap
    match receiver:
        case List():
            cell, at = heap.edit(receiver), place_in(receiver.items, key)
            if cell.complete and at is not None:
                cell.items[at] = value
            else:
                cell.complete = False
        # `self.__dict__[key] = value` sets an attribute, past any `__setattr__`.
        case Table() if receiver.of is not None:
            name = text_of(key)
            if name is not None:
                machine.calls.set_plainly(receiver.of, name, value)
            else:
                machine.calls.open_attributes(receiver.of)
        case Table() if isinstance(constant := as_key(key), Const):
            heap.put(receiver, constant.value, value)
        case Table():
            put_key(heap.edit(receiver), key, value)
        case Module():  # globals()["name"] = value
            machine.modules.put(receiver.path, key, value)
        case Instance():
            method = machine.calls.method_of(receiver, "__setitem__")
            if method is not None:
                machine.call(method, [key, value], {}, machine.no_call(node), file)
            elif items_of(receiver) is not None:
                put_key(heap.edit(receiver), key, value)
            else:
                _by_library(machine, receiver, "__setitem__", [key, value], node, file)
        case Tensor():
            machine.lost(value)
            _by_library(machine, receiver, "__setitem__", [key, value], node, file)
        case _:
            machine.lost(value)
            machine.set_outside(receiver, key, value, node, file)
            if isinstance(receiver, Unknown):
                heap.changed_by_another_name()


def delete(machine: Machine, receiver: Value, key: Value, node: ast.AST, file: SourceFile) -> None:
    """Evaluate `del receiver[key]`."""
    receiver = items_of(receiver) or receiver
    if isinstance(receiver, Table):
        if isinstance(key, Const):
            machine.heap.remove(receiver.owner, key.value)
        else:
            cell = machine.heap.edit(receiver.owner)
            cell.complete, cell.may = False, frozenset(cell.items)
    elif isinstance(receiver, List):
        cell, at = machine.heap.edit(receiver), place_in(receiver.items, key)
        if cell.complete and at is not None:
            del cell.items[at]
        else:
            cell.complete = False
    elif isinstance(receiver, Instance):
        _by_library(machine, receiver, "__delitem__", [key], node, file)
    elif isinstance(receiver, Unknown):
        machine.heap.changed_by_another_name()


# Iteration


def iterate(machine: Machine, value: Value, *, ordered: bool = True) -> list[Value] | None:
    """Return the items of a loop over the value; None if they are unknown.

    With `ordered`, the order must be known too, which that of a set is not. An iterator is exhausted by this.
    """
    match value:
        case List(kind="iterator"):
            cell = machine.heap.edit(value)
            items, cell.items = cell.items, []
            return items if cell.complete else None
        case Items():
            loose = ordered and value.kind == "set" and len(value.items) > 1  # texts: another order in each process
            return value.items[:] if value.complete and not loose else None
        case Table():
            cell = value.cell
            return [Const(key) for key in cell.items] if cell.complete and not cell.may else None
        case Const() if isinstance(value.value, str):
            return [Const(character, value.stated) for character in value.value] if len(value.value) <= ROUNDS else None
        case Instance():
            fields = machine.calls.fields_of(value)
            if fields is not None:
                return fields
            method = machine.calls.method_of(value, "__iter__")
            if not isinstance(method, Function):
                own = items_of(value)
                return iterate(machine, own) if own is not None else machine.library.items(machine, value)
            iterator = machine.calls.ask(method)
            return iterator.items[:] if isinstance(iterator, Items) and iterator.complete else None
        case Class():
            return machine.calls.members(value)
    return None


def going_through(machine: Machine, value: Value, items: list[Value], most: int = ROUNDS) -> Iterator[Value]:
    """Yield the items of a loop over a list or iterator, which the rounds may change; `items` are those left now.

    Of a list that the rounds make grow, at most `most` items are yielded.
    """
    if not isinstance(value, List) or value.kind not in ("list", "iterator"):
        yield from items
        return
    if value.kind == "iterator":
        machine.heap.edit(value).items = items[:]
        while value.complete and value.items:
            yield take_next(machine, value)
        return
    at = 0
    # Read anew in each round, as the body may append to the list.
    while at < min(len(current := value.items if value.complete else items), most):
        yield current[at]
        at += 1


def take_next(machine: Machine, receiver: Items) -> Value:
    """Remove and return the next item of an iterator."""
    if not receiver.complete or not receiver.items:
        return unknown(receiver.why if not receiver.complete else "call")
    if receiver.kind != "iterator" or not isinstance(receiver, List):
        return unknown("call")
    return machine.heap.edit(receiver).items.pop(0)  # type: ignore[no-any-return]


def extend(machine: Machine, given: List, value: Value) -> None:
    """Evaluate `given += value` for a list or set."""
    items = machine.iterate(value, ordered=given.kind != "set")
    cell = machine.heap.edit(given)
    if items is None or not cell.complete or len(cell.items) + len(items) > LONGEST:
        cell.complete = False
        cell.why = undecided(value).why if items is None else cell.why
    cell.items += (items or [])[:LONGEST]
    if cell.kind == "set":
        merge(machine, cell)


def merge(machine: Machine, cell: Items) -> None:
    """Merge the equal items of a set's cell that may be changed."""
    merged = machine.as_set(cell.items)
    cell.items, cell.complete = merged.items, cell.complete and merged.complete


def as_entries(machine: Machine, value: Value) -> Entries | None:
    """Return the entries of `**value` or `dict(value)`; None if they are unknown."""
    own = items_of(value) or value
    if isinstance(own, Table):
        return own.cell
    pairs = machine.iterate(value) if isinstance(value, Items) else None
    if pairs is None:
        return None
    entries = Entries({})
    for pair in pairs:
        both = machine.iterate(pair)
        if both is None or len(both) != 2:
            return None
        put_key(entries, both[0], both[1])
    return entries


def update(machine: Machine, cell: Entries, value: Value) -> None:
    """Evaluate `cell.update(value)` for a cell that may be changed."""
    more = as_entries(machine, value)
    if more is None:
        more = Entries({}, complete=False, why=reason(value))
    if not more.complete:
        cell.complete, cell.why = False, more.why
        cell.items, cell.may = {}, frozenset()  # any of them may have been given anew
    for key, new in more.items.items():
        before = cell.items.get(key)
        if key not in more.may:
            put_key(cell, Const(key), new)
        elif before is not None:
            cell.items[key] = machine.heap.joined(before, new)
        else:
            cell.items[key], cell.may = new, cell.may | {key}


def as_set(machine: Machine, items: list[Value], *, complete: bool = True) -> List:
    """Return a set of these items; equal constants share one item, with the literals of all."""
    distinct: list[Value] = []
    at: dict[object, int] = {}
    for item in items:
        if isinstance(item, Const):
            if item.value in at:
                before = distinct[at[item.value]]
                if isinstance(before, Const):
                    distinct[at[item.value]] = Const(before.value, union(before.stated, item.stated))
                continue
            at[item.value] = len(distinct)
        distinct.append(item)
    # An unknown item may equal a known one: how many there are is unknown then.
    all_known = complete and not any(isinstance(item, Unknown) for item in items)
    return List(machine.heap, "set", distinct, complete=all_known)
