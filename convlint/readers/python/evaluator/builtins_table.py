"""Functions of Python's builtins and standard library, by full name; a result of None means that it is unknown."""

from __future__ import annotations

import ast
import builtins
import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from convlint.readers.python.evaluator.builtin_types import (
    METHODS_OF_DICT,
    NotPlain,
    is_instance,
    keys_of,
    matching,
    of_items,
    ordered,
    plain,
)
from convlint.readers.python.evaluator.library import LibraryCall
from convlint.readers.python.evaluator.limits import LONGEST
from convlint.readers.python.evaluator.names_of import bound_in_functions
from convlint.readers.python.evaluator.operations import binary, computed, get, has_key, of_presets, put_key, take_next
from convlint.readers.python.evaluator.values import (
    DICTS,
    FIELDS,
    NONE,
    Class,
    Const,
    Entries,
    Function,
    Instance,
    Items,
    List,
    Module,
    Name,
    Partial,
    Table,
    Unknown,
    Value,
    all_true,
    any_true,
    constants,
    reason,
    same,
    stated_by,
    text_of,
    undecided,
    union,
    unknown,
    without_presets,
)

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

Known = Callable[["Machine", LibraryCall], "Value | None"]
BUILTINS = frozenset(dir(builtins)) | {"reveal_type"}
_LONGEST_NUMBER = 1000  # digits
_CONFIGS = (
    "json.load", "yaml.", "omegaconf.", "hydra.", "argparse.", "absl.flags", "toml", "configparser.", "os.environ",
    "os.getenv", "click.", "mmengine.Config", "mmcv.Config", "yacs.", "ml_collections.",
)  # fmt: skip


def is_config(name: str) -> bool:
    """Whether the result of a function comes from a file, the command line or the environment."""
    return name.startswith(_CONFIGS)


def _why(value: Value) -> str:
    return undecided(value).why


def _first(machine: Machine, call: LibraryCall, *, ordered: bool = True) -> list[Value] | None:
    """Return the items of the first argument; None if they are unknown."""
    return machine.iterate(call.args[0], ordered=ordered) if call.args else None


# Numbers


def _plain(function: Callable[..., Any]) -> Known:
    """Adapt a function from plain values to a plain value."""

    def run(_: Machine, call: LibraryCall) -> Value | None:
        raw, named = constants(call.args), constants([*call.keywords.values()])
        if not call.exact or raw is None or named is None:
            return None
        options = dict(zip(call.keywords, named, strict=True))
        # int() takes quadratic time in the digits, and raises past 4,300.
        if any(isinstance(value, str) and len(value) > _LONGEST_NUMBER for value in raw):
            return None
        if function is round and any(isinstance(value, int) and abs(value) > _LONGEST_NUMBER for value in raw[1:]):
            return None  # it computes that power of ten
        return computed(stated_by(*call.values), lambda: function(*raw, **options))

    return of_presets(run)


def _known_truth(truth: bool | None) -> Value | None:
    return Const(truth) if truth is not None else None


def _truth(machine: Machine, call: LibraryCall) -> Value | None:
    return _known_truth(machine.truth(call.args[0]) if len(call.args) == 1 else False)


def _folded(kind: type[ast.AST], start: int, *, array: bool = False) -> Known:
    """Return `sum` or `math.prod`, or those of NumPy: an operator folded over the items."""

    def run(machine: Machine, call: LibraryCall) -> Value | None:
        items = getattr(_array(machine, call), "items", None) if array else _first(machine, call, ordered=False)
        if items is None:
            return None
        result = call.args[1] if len(call.args) > 1 else call.keywords.get("start", Const(start))
        for item in items:
            result = binary(machine, kind, result, item, call.node)
        return result

    return run


def _extreme(*, largest: bool) -> Known:
    def run(machine: Machine, call: LibraryCall) -> Value | None:
        items = _first(machine, call, ordered=False) if len(call.args) == 1 else call.args
        if items is None or not call.exact:
            return None
        if not items:
            return call.keywords.get("default")
        key_values = keys_of(machine, items, call)
        try:
            # Keys are compared as Python values: an order of unknown ones would be a guess.
            keys = [plain(key) for key in key_values]
            best = items[(max if largest else min)(range(len(items)), key=lambda place: keys[place])]
        except (NotPlain, TypeError, ValueError):
            return None
        if isinstance(best, Const) and key_values is items:
            return Const(best.value, stated_by(best, *(item for item in items if item is not best)))
        return best

    return of_presets(run)


def _operated(*kinds: type[ast.AST]) -> Known:
    """Return an operator as a function; of several operators, the function gives a tuple of their results."""

    def run(machine: Machine, call: LibraryCall) -> Value | None:
        if len(call.args) != 2:
            return None
        results = [binary(machine, kind, call.args[0], call.args[1], call.node) for kind in kinds]
        return results[0] if len(results) == 1 else Items("tuple", results)

    return run


def _logic(decide: Callable[[list[bool | None]], bool | None]) -> Known:
    def run(machine: Machine, call: LibraryCall) -> Value | None:
        items = _first(machine, call, ordered=False) if len(call.args) == 1 else None
        if items is None:
            return None
        return _known_truth(decide([machine.truth(item) for item in items]))

    return run


# Lists, dicts and iterators


def _len(machine: Machine, call: LibraryCall) -> Value | None:
    match call.args:
        case [Const(value=str() | bytes() as text, stated=stated)]:
            return Const(len(text), stated)
        case [Instance() as instance] if (method := machine.calls.method_of(instance, "__len__")) is not None:
            return machine.call(method, [], {}, call.node, call.file)
    items = _first(machine, call, ordered=False) if len(call.args) == 1 else None
    return Const(len(items)) if items is not None else None


def _range(machine: Machine, call: LibraryCall) -> Value | None:
    if machine.counts_by_presets(call.args):
        call = call.with_args(without_presets(call.args), call.keywords)
    numbers = [value.value for value in call.args if isinstance(value, Const) and isinstance(value.value, int)]
    if len(numbers) != len(call.args) or not 1 <= len(numbers) <= 3 or not call.exact or numbers[2:] == [0]:
        return None
    # The range itself takes no memory, whatever its length; `len` would overflow.
    over = range(*numbers)
    if over[LONGEST:]:
        return Items("range", [], complete=False, why="limit")
    # Numbers exist because the range goes as far as they do, but are made of its start and step.
    end = call.args[min(len(call.args), 2) - 1]
    bounds = frozenset(replace(literal, bound=True) for literal in stated_by(end))
    stated = union(stated_by(*(value for value in call.args if value is not end)), bounds)
    return Items("range", [Const(number, stated) for number in over])


def _cast(kind: str) -> Known:
    def run(machine: Machine, call: LibraryCall) -> Value | None:
        if not call.args:
            return machine.sequence(kind, [])
        value = call.args[0]
        items = machine.iterate(value, ordered=kind != "set")
        if items is None:
            # What is known of an incomplete list is kept: its widths may be the ones that matter.
            known = value.items[:] if isinstance(value, Items) else []
            return machine.sequence(kind, known, complete=False, why=_why(value))
        if len(items) > LONGEST:
            return None
        return machine.as_set(items) if kind == "set" else machine.sequence(kind, items)

    return run


def _array(machine: Machine, call: LibraryCall) -> Value | None:
    """Return an array of NumPy of whole numbers, in one dimension."""
    items = _first(machine, call) if len(call.args) == 1 and not call.keywords else None
    whole = items and all(isinstance(item, Const) and item.value.__class__ is int for item in items)
    return machine.sequence("array", items) if items and whole else None


def _to_tuple(count: int) -> Known:
    """Return PyTorch's `_pair` or timm's `to_2tuple`: a tuple as it is, and a number `count` times."""

    def run(machine: Machine, call: LibraryCall) -> Value | None:
        value = call.args[0] if call.exact and len(call.args) == 1 else None
        if isinstance(value, Const) and isinstance(value.value, int | float):
            return machine.sequence("tuple", [value] * count)
        return _cast("tuple")(machine, call) if isinstance(value, Items) else None

    return run


def _deque(machine: Machine, call: LibraryCall) -> Value | None:
    """Evaluate `collections.deque`; one with a `maxlen` drops items, which is not followed."""
    bound = call.args[1] if len(call.args) > 1 else call.keywords.get("maxlen", NONE)
    return _cast("list")(machine, call) if isinstance(bound, Const) and bound.value is None else None


def _entries(machine: Machine, call: LibraryCall, args: list[Value]) -> Entries:
    entries = Entries({})
    if args:
        machine.update(entries, args[0])
    entries.items.update(call.keywords)
    if not call.exact:
        entries.complete, entries.why = False, "caller"
    return entries


def _of_dict(name: str) -> Known:
    def run(machine: Machine, call: LibraryCall) -> Value | None:
        return of_items(machine, call.args[0], name, call.with_args(call.args[1:], call.keywords))

    return run


def _default_dict(machine: Machine, call: LibraryCall) -> Value | None:
    entries = _entries(machine, call, call.args[1:])
    entries.default = call.args[0] if call.args else None
    return machine.table(entries)


def _from_keys(machine: Machine, call: LibraryCall) -> Value | None:
    keys = _first(machine, call)
    if keys is None:
        return None
    entries = Entries({})
    for key in keys:
        put_key(entries, key, call.args[1] if len(call.args) > 1 else NONE)
    return machine.table(entries)


def _all_items(machine: Machine, call: LibraryCall) -> list[list[Value]] | None:
    """Return the items of each argument; None if those of one are unknown."""
    lists: list[list[Value]] = []
    for value in call.args:
        items = machine.iterate(value)
        if items is None:
            return None
        lists.append(items)
    return lists if call.exact else None


def _rows(machine: Machine, call: LibraryCall) -> list[tuple[Value, ...]] | None:
    """Return the rows of `zip`; `zip(*[iter(a)] * 2)` takes both items of a row from one iterator."""
    first = call.args[0] if call.args else None
    if isinstance(first, List) and first.kind == "iterator" and all(arg is first for arg in call.args):
        items = machine.iterate(first)
        columns = [items[at :: len(call.args)] for at in range(len(call.args))] if items is not None else None
    else:
        columns = _all_items(machine, call)
    return list(itertools.islice(zip(*columns, strict=False), LONGEST)) if columns is not None else None


def _iterator(machine: Machine, call: LibraryCall, items: list[Value] | None) -> List:
    """Return an iterator over these items; over unknown ones where they are None."""
    if items is not None:
        return List(machine.heap, "iterator", items)
    why = next((_why(arg) for arg in call.args if _why(arg) != "call"), "call")
    return List(machine.heap, "iterator", [], complete=False, why=why)


def _lazily(
    take: Callable[[Machine, LibraryCall], Any], give: Callable[[Any], list[Value]] = lambda items: items
) -> Known:
    """Return a function that gives an iterator over what `give` makes of what `take` finds; None is unknown."""

    def run(machine: Machine, call: LibraryCall) -> Value:
        taken = take(machine, call)
        return _iterator(machine, call, give(taken) if taken is not None else None)

    return run


def _tuples(rows: Iterable[Iterable[Value]]) -> list[Value]:
    return [Items("tuple", list(row)) for row in rows]


def _enumerate(machine: Machine, call: LibraryCall) -> list[Value] | None:
    items = _first(machine, call)
    start = call.args[1] if len(call.args) > 1 else call.keywords.get("start", Const(0))
    if items is None or not isinstance(start, Const) or not isinstance(start.value, int):
        return None
    return _tuples((Const(start.value + at), item) for at, item in enumerate(items))


def _map(machine: Machine, call: LibraryCall) -> Value | None:
    if len(call.args) < 2:
        return None
    function, rest = call.args[0], call.with_args(call.args[1:], {})
    rows = _rows(machine, rest)
    items = [machine.call(function, list(row), {}, call.node, call.file) for row in rows] if rows is not None else None
    return _iterator(machine, rest, items)


def _filter(machine: Machine, call: LibraryCall) -> Value | None:
    items = machine.iterate(call.args[1]) if len(call.args) == 2 else None
    if items is None:
        return _iterator(machine, call, None)
    # `filter(None, items)` keeps the items that are true.
    plain = isinstance(call.args[0], Const)
    truths = [machine.truth(item if plain else machine.call(call.args[0], [item], {}, call.node, call.file))
              for item in items]  # fmt: skip
    # An item whose test is unknown may be in the result.
    kept = [item for item, truth in zip(items, truths, strict=True) if truth is not False]
    return List(machine.heap, "iterator", kept, complete=None not in truths)


def _sorted(machine: Machine, call: LibraryCall) -> Value | None:
    items = _first(machine, call, ordered=False)
    result = ordered(machine, items, call) if items is not None else None
    if result is None:
        why = undecided(*call.args[:1], *(items or [])).why
        return machine.sequence("list", items or [], complete=False, why=why)
    return machine.sequence("list", result)


def _iter(machine: Machine, call: LibraryCall) -> Value | None:
    match call.args:
        case [Items(kind="iterator") as value]:
            return value
        case [value]:
            return _iterator(machine, call, machine.iterate(value))
    return _iterator(machine, call, None)


def _next(machine: Machine, call: LibraryCall) -> Value | None:
    value = call.args[0] if call.args else unknown("call")
    if isinstance(value, Items):
        if value.complete and not value.items and len(call.args) > 1:
            return call.args[1]
        return take_next(machine, value)
    if isinstance(value, Instance):
        method = machine.calls.method_of(value, "__next__")
        return machine.call(method, [], {}, call.node, call.file) if method is not None else None
    return None


_chain = _lazily(_all_items, lambda lists: [item for items in lists for item in items])


def _chained(machine: Machine, call: LibraryCall) -> Value | None:
    outer = _first(machine, call)
    return _chain(machine, call.with_args(outer, {})) if outer is not None else _iterator(machine, call, None)


def _repeat(machine: Machine, call: LibraryCall) -> Value | None:
    times = call.args[1] if len(call.args) > 1 else call.keywords.get("times")
    if isinstance(times, Const) and isinstance(times.value, int) and times.value <= LONGEST:
        return _iterator(machine, call, [call.args[0]] * max(times.value, 0))
    return List(machine.heap, "iterator", call.args[:1], complete=False, why="limit")


def _product(machine: Machine, call: LibraryCall) -> Value | None:
    lists = _all_items(machine, call)
    if lists is None or call.keywords:
        return _iterator(machine, call, None)
    # Computed before the product itself, which may not fit into memory.
    if math.prod(max(len(items), 1) for items in lists) > LONGEST:
        return List(machine.heap, "iterator", [], complete=False, why="limit")
    return _iterator(machine, call, _tuples(itertools.product(*lists)))


def _accumulate(machine: Machine, call: LibraryCall) -> list[Value] | None:
    items, initial = _first(machine, call), call.keywords.get("initial", NONE)
    if items is None or not isinstance(initial, Const):
        return None
    results: list[Value] = [] if initial.value is None else [initial]
    for item in items:
        if not results:
            results.append(item)
        elif len(call.args) > 1:
            results.append(machine.call(call.args[1], [results[-1], item], {}, call.node, call.file))
        else:
            results.append(binary(machine, ast.Add, results[-1], item, call.node))
    return results


def _islice(machine: Machine, call: LibraryCall) -> list[Value] | None:
    ends: list[Any] = [value.value for value in call.args[1:] if isinstance(value, Const)]
    items = _first(machine, call)
    if items is None or len(ends) + 1 != len(call.args) or not all(end is None or isinstance(end, int) for end in ends):
        return None
    # Of an iterator, islice takes a part, and the rest stays for the next reader.
    value, over = call.args[0], slice(*ends) if ends and 0 not in ends[2:] else slice(0)
    if isinstance(value, List) and value.kind == "iterator" and over.stop is not None:
        machine.heap.edit(value).items = items[over.stop :]
    return items[over]


# Objects


def _is_class(value: Value) -> bool | None:
    """Whether it is a class; None for names of libraries, which may be, and for what is unknown."""
    return None if isinstance(value, (Unknown, Name)) else isinstance(value, Class)


def _issubclass(_: Machine, call: LibraryCall) -> Value | None:
    match call.args:
        case [Class(order=order), of]:
            classes = of.items if isinstance(of, Items) else [of]
            if any(same(base, cls) for base in order or () for cls in classes):
                return Const(True)
            return Const(False) if all(isinstance(base, Class) for base in order or ()) else None
    return None


def _has(machine: Machine, value: Value, name: str) -> bool | None:
    """Whether `value.name` exists; None if it is unknown."""
    if isinstance(value, Instance):
        cell = value.cell
        if isinstance(value.cls, Class) and machine.calls.find(value.cls, "__getattribute__")[0] is not None:
            return None
        if name in cell.items and name not in cell.may:
            return True
        if isinstance(value.cls, Class):
            attribute, certain = machine.calls.find(value.cls, name)
            if attribute is not None:
                return True
            # A base outside the source may have any attribute.
            names = any(isinstance(base, Name) for base in value.cls.order or ())
            computed = machine.calls.find(value.cls, "__getattr__")[0] is not None
            all_known = certain and cell.complete and not names and not computed and name not in cell.may
            return False if all_known else None
        return True if machine.library.attribute(machine, value, name) is not None else None
    if isinstance(value, Class):
        attribute, certain = machine.calls.find(value, name)
        if attribute is not None:
            return None if name in value.cell.may else True
        all_known = certain and all(isinstance(base, Class) for base in value.order or [value])
        # Every class has special attributes that its source does not define.
        return False if all_known and not name.startswith("__") else None
    if isinstance(value, Table):
        return True if name in METHODS_OF_DICT else has_key(value.cell, name)
    if isinstance(value, Module):
        return True if not isinstance(machine.modules.member(value.path, name), Unknown) else None
    return None


def _hasattr(machine: Machine, call: LibraryCall) -> Value | None:
    name = text_of(call.args[1]) if len(call.args) == 2 else None
    if name is None:
        return None
    value, exists = call.args[0], _has(machine, call.args[0], name)
    # A layer of the library has attributes that the source never sets, such as `in_channels`.
    if exists is None and isinstance(value, Instance) and name not in value.cell.may:
        exists = True if machine.library.attribute(machine, value, name) is not None else None
    return _known_truth(exists)


def _getattr(machine: Machine, call: LibraryCall) -> Value | None:
    name = text_of(call.args[1]) if len(call.args) >= 2 else None
    if name is None:
        return _one_named(machine, call)
    value = call.args[0]
    if len(call.args) > 2:
        there = _has(machine, value, name)
        if there is False:
            return call.args[2]
        if there is None:
            attribute = machine.attribute(value, name)
            # Any name of such an object gives a method: that it exists is not known.
            if isinstance(attribute, (Partial, Name)) and isinstance(value, Instance):
                return unknown("call")
            may_lack = isinstance(value, (Instance, Class)) and name in value.cell.may
            return machine.heap.joined(attribute, call.args[2]) if may_lack else attribute
    return machine.attribute(value, name)


def _one_named(machine: Machine, call: LibraryCall) -> Value | None:
    """Return one of the kinds that `getattr(nn, f"Conv{dims}d")` may be."""
    text = call.node.args[1] if len(call.node.args) == len(call.args) == 2 else None
    if not isinstance(text, ast.JoinedStr) or not isinstance(call.args[0], Name):
        return None
    parts = [part.value if isinstance(part, ast.Constant) else None for part in text.values]
    for unknown_part in (r"\d", r"(?:Transpose)?\d?"):
        pattern = re.compile("".join(unknown_part if part is None else re.escape(str(part)) for part in parts))
        kinds = machine.library.kinds(call.args[0].name, pattern)
        if kinds:
            return machine.one_kind(map(Name, kinds), reason(call.args[1]))
    return None


_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")


def _eval(machine: Machine, call: LibraryCall) -> Value | None:
    """Return what a text that is a name means in its module, as of a class that a config chooses."""
    text = text_of(call.args[0]) if len(call.args) == 1 and not call.keywords else None
    scope = machine.modules.scope(call.file.path)
    if text is None or scope is None or _DOTTED.fullmatch(text) is None:
        return None
    head, *rest = text.split(".")
    if head in bound_in_functions(call.file.tree):
        return None
    value = machine.modules.lookup(scope, head)
    for name in rest:
        value = machine.attribute(value, name)
    return value


def set_named(machine: Machine, receiver: Value, key: Value, value: Value, *, plainly: bool = False) -> Value:
    """Evaluate `setattr(receiver, key, value)`; `plainly` as `object.__setattr__` does."""
    name = text_of(key)
    if name is not None and plainly and isinstance(receiver, Instance):
        machine.calls.set_plainly(receiver, name, value)
    elif name is not None:
        machine.set_attribute(receiver, name, value)
    elif isinstance(receiver, (Instance, Class)):
        machine.lost(value)
        machine.calls.open_attributes(receiver)
    return NONE


def _setattr(*, plainly: bool) -> Known:
    def run(machine: Machine, call: LibraryCall) -> Value | None:
        if len(call.args) != 3:
            return None
        machine.set_outside(call.args[0], call.args[1], call.args[2], call.node, call.file)
        return set_named(machine, call.args[0], call.args[1], call.args[2], plainly=plainly)

    return run


def _delattr(machine: Machine, call: LibraryCall) -> Value | None:
    name = text_of(call.args[1]) if len(call.args) == 2 else None
    if name is not None:
        machine.delete_attribute(call.args[0], name)
    return NONE


def _type(_: Machine, call: LibraryCall) -> Value | None:
    match call.args:
        case [Instance() as value]:
            return value.cls
        case [Const() as value]:
            return Name(f"builtins.{type(value.value).__name__}")
        case [Items() as value]:
            return Name(f"builtins.{value.kind}")
        case [Table()]:
            return Name("builtins.dict")
    return None


def _new(machine: Machine, call: LibraryCall) -> Value | None:
    cls = call.args[0] if call.args else None
    return Instance(machine.heap, cls) if isinstance(cls, Class) else None


def _type_called(machine: Machine, call: LibraryCall) -> Value | None:
    """Evaluate `type.__call__(cls, ...)`, which metaclasses call."""
    if not call.args or not isinstance(call.args[0], Class):
        return None
    return machine.calls.construct(call.args[0], call.with_args(call.args[1:], dict(call.keywords)))


def _callable(_: Machine, call: LibraryCall) -> Value | None:
    match call.args:
        case [Function() | Class() | Partial()]:
            return Const(True)
        case [Const() | Items() | Table() | Module()]:
            return Const(False)
    return None


def _marked(kind: str) -> Known:
    def run(machine: Machine, call: LibraryCall) -> Value | None:
        if len(call.args) != 1 or call.keywords:
            # `property(getter, setter)` is a descriptor, whose values are not computed.
            return Instance(machine.heap, Name("builtins.property")) if kind == "property" else None
        value = call.args[0] if call.args else None
        if isinstance(value, Function):
            value.kind = kind
        return value

    return run


def _vars(machine: Machine, call: LibraryCall) -> Value | None:
    return machine.attribute(call.args[0], "__dict__") if call.args else None


# functools, collections, dataclasses, operator, re


def _partial(_: Machine, call: LibraryCall) -> Value | None:
    if not call.args or not call.exact:
        return None
    return Partial(call.args[0], call.args[1:], dict(call.keywords))


def _reduce(machine: Machine, call: LibraryCall) -> Value | None:
    items = machine.iterate(call.args[1]) if len(call.args) >= 2 else None
    rest = [*call.args[2:3], *(items or [])]
    if items is None or not rest:
        return None
    result = rest[0]
    for item in rest[1:]:
        result = machine.call(call.args[0], [result, item], {}, call.node, call.file)
    return result


def _same(_: Machine, call: LibraryCall) -> Value | None:
    """Return the argument itself, as for `functools.lru_cache(f)`; `lru_cache(maxsize=1)` returns this function."""
    if len(call.args) == 1 and isinstance(call.args[0], (Function, Class, Partial, Instance)):
        return call.args[0]
    # `@lru_cache(maxsize=8)`: the call gives the decorator, which gives the function.
    return Name("convlint.same")


def _named_tuple(machine: Machine, call: LibraryCall) -> Value | None:
    if len(call.args) < 2 or not isinstance(call.args[0], Const):
        return None
    fields = call.args[1]
    if isinstance(fields, Const) and isinstance(fields.value, str):
        names = fields.value.replace(",", " ").split()
    else:
        name_values = [item.items[0] if isinstance(item, Items) and item.items else item
                       for item in machine.iterate(fields) or []]  # fmt: skip
        texts = [text_of(item) for item in name_values]
        names = [text for text in texts if text is not None]
        if len(names) != len(texts):
            return None
    defaults = machine.iterate(call.keywords["defaults"]) if "defaults" in call.keywords else []
    # Python raises here as well.
    if not names or defaults is None or len(defaults) > len(names):
        return None
    name = str(call.args[0].value)
    node = ast.ClassDef(name=name, bases=[], keywords=[], body=[], decorator_list=[], lineno=1, col_offset=0)
    cls = Class(machine.heap, node, call.file, name, [Name("typing.NamedTuple")])
    cls.fields = names
    cls.order = [cls, *cls.bases]
    cls.namespace.update(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    return cls


def _as_dict(machine: Machine, call: LibraryCall) -> Value | None:
    value = call.args[0] if call.args else None
    return Table(machine.heap, value.attributes, complete=value.complete) if isinstance(value, Instance) else None


def _replaced(machine: Machine, call: LibraryCall) -> Value | None:
    if not call.args or not isinstance(call.args[0], Instance) or not call.exact:
        return None
    copy = machine.copied(call.args[0], deep=False)
    for name, value in call.keywords.items():
        machine.heap.put(copy, name, value)
    return copy


def _item(machine: Machine, call: LibraryCall) -> Value | None:
    if len(call.args) != 2:
        return None
    at = ast.copy_location(ast.Subscript(call.node, call.node, ast.Load()), call.node)
    return get(machine, call.args[0], call.args[1], at, call.file)


def _module(machine: Machine, call: LibraryCall) -> Value | None:
    name = text_of(call.args[0]) if call.args else None
    # A relative name depends on an argument `package`.
    if name is not None and not name.startswith("."):
        return machine.modules.imported(name, call.file, whole=True)
    return None


_OF_MATH = (
    "ceil", "floor", "sqrt", "log", "log2", "log10", "exp", "gcd", "fabs", "trunc", "isclose", "sin", "cos", "tan",
    "isqrt", "hypot", "degrees", "radians", "copysign", "fmod", "pow",
)  # fmt: skip

FUNCTIONS: Mapping[str, Known] = {
    **{f"builtins.{item.__name__}": _plain(item) for item in (int, float, str, round, abs, ord, chr, hex, bin, repr)},
    "numpy.array": _array, "numpy.asarray": _array,
    **{f"math.{name}": _plain(getattr(math, name)) for name in _OF_MATH},
    **{f"{module}.{name}": _plain(getattr(math, name))
       for module in ("numpy", "np") for name in ("ceil", "floor", "sqrt", "log2", "log", "exp")},
    "builtins.pow": _operated(ast.Pow), "math.prod": _folded(ast.Mult, 1), "numpy.int": _plain(int),
    "numpy.sum": _folded(ast.Add, 0, array=True), "numpy.prod": _folded(ast.Mult, 1, array=True),
    "builtins.sum": _folded(ast.Add, 0), "builtins.bool": _truth, "builtins.max": _extreme(largest=True),
    "builtins.min": _extreme(largest=False), "builtins.divmod": _operated(ast.FloorDiv, ast.Mod),
    "builtins.all": _logic(all_true), "builtins.any": _logic(any_true),
    "builtins.len": _len, "builtins.range": _range, "builtins.list": _cast("list"), "builtins.tuple": _cast("tuple"),
    **{f"builtins.dict.{name}": _of_dict(name) for name in METHODS_OF_DICT if name != "__class__"},
    "builtins.set": _cast("set"), "builtins.frozenset": _cast("set"), "builtins.dict.fromkeys": _from_keys,
    **{name: lambda machine, call: machine.table(_entries(machine, call, call.args))
       for name in (*DICTS, "typing.OrderedDict", "types.SimpleNamespace", "argparse.Namespace", "addict.Dict")},
    "builtins.enumerate": _lazily(_enumerate), "builtins.zip": _lazily(_rows, _tuples),
    "builtins.map": _map, "builtins.filter": _filter, "builtins.sorted": _sorted,
    "builtins.reversed": _lazily(_first, lambda items: items[::-1]), "builtins.iter": _iter,
    "builtins.next": _next, "collections.defaultdict": _default_dict, "collections.deque": _deque,
    **{f"torch.nn.modules.utils.{name}": _to_tuple(count)
       for count, name in enumerate(("_single", "_pair", "_triple", "_quadruple"), start=1)},
    **{f"timm.{module}.to_{count}tuple": _to_tuple(count)
       for module in ("layers", "layers.helpers", "models.layers", "models.layers.helpers") for count in (1, 2, 3, 4)},
    "torch.Size": _cast("tuple"), "itertools.chain": _chain, "itertools.chain.from_iterable": _chained,
    "itertools.repeat": _repeat, "itertools.product": _product, "itertools.accumulate": _lazily(_accumulate),
    "itertools.islice": _lazily(_islice),
    "itertools.pairwise": _lazily(_first, lambda items: _tuples(itertools.pairwise(items))),
    "inspect.isclass": lambda _, call: _known_truth(_is_class(call.args[0]) if len(call.args) == 1 else None),
    "builtins.isinstance":
        lambda machine, call: _known_truth(is_instance(machine, *call.args) if len(call.args) == 2 else None),
    "builtins.issubclass": _issubclass, "builtins.hasattr": _hasattr,
    "builtins.getattr": _getattr, "builtins.setattr": _setattr(plainly=False), "builtins.delattr": _delattr,
    "builtins.object.__setattr__": _setattr(plainly=True), "builtins.type.__setattr__": _setattr(plainly=True),
    "builtins.object.__new__": _new, "builtins.type.__call__": _type_called,
    "torch.nn.Module.__setattr__": _setattr(plainly=True), "builtins.type": _type, "builtins.callable": _callable,
    "builtins.vars": _vars, "builtins.eval": _eval,
    "builtins.staticmethod": _marked("static"), "builtins.classmethod": _marked("class"),
    "builtins.property": _marked("property"), **dict.fromkeys(("builtins.print", "warnings.warn"), lambda _, __: NONE),
    "typing.cast": lambda _, call: call.args[1] if len(call.args) == 2 else None,
    "copy.copy": lambda machine, call: machine.copied(call.args[0], deep=False) if call.args else None,
    "copy.deepcopy": lambda machine, call: machine.copied(call.args[0], deep=True) if call.args else None,
    "functools.partial": _partial, "functools.reduce": _reduce, "convlint.same": _same,
    "functools.wraps": lambda _, __: Name("convlint.same"),
    **dict.fromkeys((
        "functools.lru_cache", "functools.cache", "torch.jit.script", "torch.jit.script_if_tracing",
        "torch.jit.ignore", "torch.jit.export", "torch.jit.unused", "torch.compile",
    ), _same),
    "torch.no_grad": lambda machine, call: _same(machine, call) if call.args else None,
    "collections.namedtuple": _named_tuple, "dataclasses.asdict": _as_dict, "dataclasses.replace": _replaced,
    **dict.fromkeys(FIELDS, lambda _, call: Partial(
        Name("convlint.field"), [], dict(zip(("default",), call.args, strict=False)) | call.keywords)),
    "operator.add": _operated(ast.Add), "operator.mul": _operated(ast.Mult), "operator.sub": _operated(ast.Sub),
    "operator.floordiv": _operated(ast.FloorDiv), "operator.getitem": _item,
    "operator.itemgetter":
        lambda _, call: Partial(Name("convlint.itemgetter"), call.args[:], {}) if len(call.args) == 1 else None,
    "convlint.itemgetter": lambda machine, call: _item(machine, call.with_args(call.args[::-1], {})),
    "importlib.import_module": _module, "re.split": matching(re.split), "re.findall": matching(re.findall),
    "re.sub": matching(re.sub),
}  # fmt: skip
