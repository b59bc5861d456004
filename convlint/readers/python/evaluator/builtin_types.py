"""The built-in types: methods of strings, lists and dicts, patterns, the order of items, and `isinstance`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from convlint.readers.python.evaluator import operations
from convlint.readers.python.evaluator.library import LibraryCall
from convlint.readers.python.evaluator.limits import LONGEST
from convlint.readers.python.evaluator.operations import equal, has_key, merge, place_in, put_key, take_next
from convlint.readers.python.evaluator.values import (
    DEEPEST_EQUAL,
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
    Tensor,
    Unknown,
    Value,
    any_true,
    as_default,
    as_key,
    reason,
    stated_by,
    unknown,
)

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

# String methods whose results are no longer than the string
_TEXT_METHODS = frozenset({
    "capitalize", "casefold", "count", "endswith", "find", "index", "isalnum", "isalpha", "isdecimal", "isdigit",
    "isidentifier", "islower", "isnumeric", "isspace", "istitle", "isupper", "lower", "lstrip", "partition",
    "removeprefix", "removesuffix", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "split", "splitlines",
    "startswith", "strip", "swapcase", "title", "upper",
})  # fmt: skip
# String methods whose results are as long as an argument says
_PADDED = frozenset({"center", "ljust", "rjust", "zfill"})
_NUMBER_METHODS = frozenset({"bit_length", "is_integer", "bit_count", "conjugate"})
_PLAIN: dict[str, Callable[..., Any]] = {"tuple": tuple, "list": list}  # kinds of items that `plain` converts


def method(machine: Machine, receiver: Items | Table | Const, name: str, call: LibraryCall) -> Value | None:
    """Return the result of `receiver.name(...)`; None if it is unknown."""
    if isinstance(receiver, Items):
        return _list_method(machine, receiver, name, call)
    if isinstance(receiver, Table) and name not in METHODS_OF_DICT:
        return machine.apply(named(receiver, name), call)
    if isinstance(receiver, Table):
        return _dict_method(machine, receiver, name, call)
    return _text_method(machine, receiver, name, call)


def _text_method(machine: Machine, receiver: Const, name: str, call: LibraryCall) -> Value | None:
    if not call.exact:
        return None
    if name == "join":
        return _join(machine, receiver, call.args)
    text = receiver.value
    try:
        args = [plain(value) for value in call.args]
        keywords = {key: plain(value) for key, value in call.keywords.items()}
    except NotPlain:
        return None
    if isinstance(text, str):
        allowed = (
            name in _TEXT_METHODS
            or (name in _PADDED and all(not isinstance(arg, int) or arg <= LONGEST for arg in args))
            or (name == "format" and operations.is_small_format(text))
            or (name == "replace" and _replaces_little(text, args))
        )
    else:
        allowed = isinstance(text, (int, float)) and name in _NUMBER_METHODS
    if not allowed:
        return None
    try:
        result: Any = getattr(text, name)(*args, **keywords)
    except (TypeError, ValueError, LookupError, AttributeError, OverflowError, MemoryError):
        return None
    stated = stated_by(receiver, *call.args)
    # Of a longer result, the first items are known.
    if isinstance(result, (list, tuple)):
        items: list[Value] = [Const(item, stated) for item in result[:LONGEST]]
        kind = "list" if isinstance(result, list) else "tuple"
        return machine.sequence(kind, items, complete=len(result) <= LONGEST)
    return operations.constant(result, stated) or unknown("limit")


class NotPlain(Exception):
    """The value is no constant, and no tuple or list of them."""


def plain(value: Value) -> Any:
    """Return the Python value of a constant, or of a tuple or list of them. Raises NotPlain."""
    return _plain_within(value, [LONGEST], 0)


def _plain_within(value: Value, room: list[int], depth: int) -> Any:
    """Return the same for at most `room[0]` values: a list may hold another many times."""
    room[0] -= 1
    if isinstance(value, Const) and room[0] >= 0:
        return value.value
    if isinstance(value, Items) and value.complete and value.kind in _PLAIN and depth <= DEEPEST_EQUAL and room[0] >= 0:
        return _PLAIN[value.kind](_plain_within(item, room, depth + 1) for item in value.items)
    raise NotPlain


def _replaces_little(text: str, args: list[Any]) -> bool:
    new = args[1] if len(args) > 1 else ""
    return isinstance(new, str) and (len(text) + 1) * (len(new) + 1) <= LONGEST


def _join(machine: Machine, receiver: Const, args: list[Value]) -> Value | None:
    items = machine.iterate(args[0]) if len(args) == 1 else None
    texts = [item.value for item in items or () if isinstance(item, Const) and isinstance(item.value, str)]
    if items is None or len(texts) != len(items) or not isinstance(receiver.value, str):
        return None
    # Checked before the text is built, as it may not fit into memory.
    if sum(map(len, texts)) + len(receiver.value) * len(texts) > LONGEST:
        return unknown("limit")
    return Const(receiver.value.join(texts), stated_by(receiver, *items))


_CHANGES_LIST = frozenset({
    "add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "insert", "pop", "popleft", "remove",
    "reverse", "rotate", "sort", "update", "difference_update", "intersection_update", "symmetric_difference_update",
    "__setitem__", "__delitem__", "__iadd__",
})  # fmt: skip


def _list_method(machine: Machine, receiver: Items, name: str, call: LibraryCall) -> Value | None:
    args = call.args
    if name in _CHANGES_LIST and isinstance(receiver, List):
        machine.heap.edit(receiver)
        result = _changed_list(machine, receiver, name, call)
        if result is None:
            machine.heap.edit(receiver).complete = False
        return result or unknown("call")
    match name, args:
        case (("tolist" | "as_list"), []):
            return machine.sequence("list", receiver.items[:], complete=receiver.complete, why=receiver.why)
        case "astype", [Name(name=kind)] if receiver.kind == "array" and kind.startswith(("builtins.int", "numpy.int")):
            whole = [machine.call(Name("builtins.int"), [item], {}, call.node, call.file) for item in receiver.items]
            return machine.sequence("array", whole)
        case "copy", _:
            return machine.sequence(receiver.kind, receiver.items[:], complete=receiver.complete, why=receiver.why)
        case (("index" | "count"), [value]) if receiver.complete:
            same = [equal(item, value) for item in receiver.items]
            if None in same:
                return None
            if name == "count":
                return Const(same.count(True))
            return Const(same.index(True)) if True in same else None
        case "__len__", _ if receiver.complete:
            return Const(len(receiver.items))
        case "union", _ if receiver.kind == "set":
            more = [machine.iterate(arg) for arg in args]
            others = [item for items in more if items is not None for item in items]
            return machine.as_set([*receiver.items, *others], complete=receiver.complete and None not in more)
        case "__iter__", _:
            return receiver
        case "__next__", _:
            return take_next(machine, receiver)
    return None


def _changed_list(machine: Machine, receiver: List, name: str, call: LibraryCall) -> Value | None:
    args, cell = call.args, machine.heap.edit(receiver)
    match name, args:
        # These add to a list of which only some items are known; what follows needs all of them.
        case (("append" | "add" | "appendleft"), [value]):
            return _added(machine, cell, name, value)
        case (("extend" | "update"), [value]):
            machine.extend(receiver, value)
        case _ if not cell.complete:
            return None
        case "insert", [Const(value=int() as at), value]:
            cell.items.insert(at, value)
        case (("pop" | "popleft"), _):
            return _popped(cell, args[0] if args and name == "pop" else Const(-1 if name == "pop" else 0))
        case "clear", _:
            cell.items = []
        case "reverse", _:
            cell.items.reverse()
        case (("remove" | "discard"), [value]):
            same = [equal(item, value) for item in cell.items]
            if None in same:
                return None
            if True in same:
                del cell.items[same.index(True)]
        case "sort", _:
            order = ordered(machine, cell.items, call)
            if order is None:
                return None
            cell.items = order
        case _:
            return None
    return NONE


def _added(machine: Machine, cell: Items, name: str, value: Value) -> Value | None:
    if len(cell.items) >= LONGEST:
        machine.lost(value)
        return None
    if name == "appendleft":
        cell.items.insert(0, value)
    else:
        cell.items.append(value)
        # Merging a set takes time linear in its items: only where the new one may be among them.
        if cell.kind == "set" and not _is_new(cell.items, value):
            merge(machine, cell)
    return NONE


def _is_new(items: list[Value], last: Value) -> bool:
    """Whether the last item is a constant that equals none before it, so that the items still are a set."""
    return isinstance(last, Const) and not any(
        item.__class__ is not Const or item.value == last.value for item in items[:-1]
    )


def _popped(cell: Items, key: Value) -> Value | None:
    if not isinstance(key, Const) or not isinstance(key.value, int):
        return None
    at = place_in(cell.items, key)
    return cell.items.pop(at) if at is not None else unknown("call")


METHODS_OF_DICT = frozenset((*dir(dict), "move_to_end"))
_CHANGES_DICT = frozenset({"clear", "pop", "popitem", "setdefault", "update", "move_to_end", "__setitem__", "__ior__",
                           "__delitem__", "__init__"})  # fmt: skip


def of_items(machine: Machine, receiver: Value, name: str, call: LibraryCall) -> Value | None:
    """Return the result of a method of dict of an object that derives from it; None if it is unknown."""
    own = receiver if isinstance(receiver, Table) else operations.items_of(receiver)
    return _dict_method(machine, own, name, call) if own is not None else None


def named(receiver: Table, name: str) -> Value:
    """Return an attribute of a namespace, or of a dict whose items are its attributes: no other dict has such ones."""
    cell = receiver.cell
    value = receiver if name == "__dict__" else cell.items.get(name)
    return value if value is not None else unknown("call" if cell.complete else cell.why)


def _dict_method(machine: Machine, receiver: Table, name: str, call: LibraryCall) -> Value | None:
    if name in _CHANGES_DICT:
        result = _changed_dict(machine, receiver, name, call)
        if result is None:
            machine.heap.soften(receiver, "branch")
        return result or unknown("call")
    cell = receiver.cell
    if name in ("get", "__getitem__") and call.args:
        return _got(machine, cell, call, unknown("call") if name == "__getitem__" else NONE)
    if name == "copy":
        copy = cell.copied()
        # The copy of `obj.__dict__` is a plain dict, without what a library added.
        copy.also, copy.extra, copy.ordered = (), None, False
        return machine.table(copy)
    if name in ("keys", "values", "items"):
        listed: list[Value] = [*map(Const, cell.items)] if name == "keys" else [*cell.items.values()]
        if name == "items":
            listed = [Items("tuple", [Const(key), value]) for key, value in cell.items.items()]
        return List(machine.heap, "list", listed, complete=cell.complete and not cell.may, why=cell.why)
    if name == "__contains__" and call.args and isinstance(call.args[0], Const):
        there = has_key(cell, call.args[0].value)
        return Const(there) if there is not None else None
    return None


def _got(machine: Machine, cell: Entries, call: LibraryCall, absent: Value) -> Value:
    """Return `receiver.get(key, default)`: both values joined if the key may be missing."""
    key = as_key(call.args[0])
    default = call.args[1] if len(call.args) > 1 else call.keywords.get("default", absent)
    if not isinstance(key, Const):
        if cell.complete and not cell.items:
            return default
        why = reason(key)  # code that calls the result assumes that the key is there
        return (machine.one_kind(cell.items.values(), why) if cell.complete else None) or unknown(why)
    value = cell.items.get(key.value)
    if value is None and cell.complete and cell.why == "parameter" and isinstance(default, Const):
        # Of a root's `**kwargs`: a default as that of a parameter.
        return as_default(default)
    if value is None:
        return default if cell.complete else unknown(cell.why)
    # `d[key]` raises without the key: code that goes on had it.
    is_error = isinstance(default, Unknown) and default is absent
    return machine.heap.joined(value, default) if key.value in cell.may and not is_error else value


def _changed_dict(machine: Machine, receiver: Table, name: str, call: LibraryCall) -> Value | None:
    heap, owner, cell = machine.heap, receiver.owner, receiver.cell
    match name, call.args:
        case "pop", [key, *_]:
            result = _got(machine, cell, call, unknown("call"))
            if isinstance(key, Const):
                heap.remove(owner, key.value)
            elif cell.items or not cell.complete:
                heap.soften(receiver, "branch")
            return result
        case "setdefault", [Const() as key, *given]:
            default = given[0] if given else NONE
            result = cell.items.get(key.value) or (default if cell.complete else unknown(cell.why))
            if key.value in cell.may:
                result = heap.joined(result, default)
            if result is not cell.items.get(key.value) or key.value in cell.may:
                heap.put(owner, key.value, result)
            return result
        case "setdefault", [_, *_]:
            heap.edit(owner).complete = False  # another key may be there; those that are, stay what they are
            return unknown("call")
        case (("update" | "__init__"), args):
            mine, of = heap.edit(owner), receiver.of
            # `self.__dict__.update(kwargs)` may set any attribute.
            is_plain = of is not None and operations.items_of(of) is None
            if of is not None and is_plain and not (call.exact and all(isinstance(arg, Table) for arg in args)):
                machine.calls.open_attributes(of)
                return NONE
            for value in args:
                machine.update(mine, value)
            for keyword, value in call.keywords.items():
                put_key(mine, Const(keyword), value)
            if not call.exact:
                mine.complete, mine.why = False, "caller"
                mine.items = dict(call.keywords)
                mine.may = frozenset(mine.items)
            return NONE
        case "__setitem__", [key, value]:
            machine.put(receiver, key, value, call.node, call.file)
            return NONE
        case "clear", _:
            mine = heap.edit(owner)
            mine.items, mine.may, mine.complete = {}, frozenset(), True
            return NONE
        case "popitem", [] if cell.complete and not cell.may and cell.items and not call.keywords:
            last, value = heap.edit(owner).items.popitem()
            return Items("tuple", [Const(last), value])
    return None


def keys_of(machine: Machine, items: list[Value], call: LibraryCall) -> list[Value]:
    """Return the keys by which the items are ordered: the items, or the results of `key`."""
    key = call.keywords.get("key")
    if key is None or (isinstance(key, Const) and key.value is None):
        return items
    return [machine.call(key, [item], {}, call.node, call.file) for item in items]


def ordered(machine: Machine, items: list[Value], call: LibraryCall) -> list[Value] | None:
    """Return the items sorted by `key` and `reverse` of the call; None if their order is unknown."""
    reverse = call.keywords.get("reverse", Const(False))
    if not isinstance(reverse, Const) or not call.exact:
        return None
    try:
        keys = [plain(key) for key in keys_of(machine, items, call)]
        # Indices are sorted, so that the items keep their literals.
        places = sorted(range(len(items)), key=lambda at: keys[at], reverse=bool(reverse.value))
    except (NotPlain, TypeError):
        return None
    return [items[at] for at in places]


# Patterns

_LONGEST_PATTERN, _LONGEST_SEARCHED, _MOST_REPEATS = 100, 200, 2  # those that names of layers need are shorter


def matching(function: Callable[..., Any]) -> Callable[[Machine, LibraryCall], Value | None]:
    """Adapt a function of the module `re`, for known strings on which it cannot take long."""

    def run(machine: Machine, call: LibraryCall) -> Value | None:
        texts = [value.value for value in call.args if isinstance(value, Const) and isinstance(value.value, str)]
        if len(texts) != len(call.args) or call.keywords or not call.exact or len(texts) < 2:
            return None
        if not _is_harmless(texts[0]) or len(texts[-1]) > _LONGEST_SEARCHED:
            return None
        try:
            result = function(*texts)
        except (re.error, TypeError, ValueError, OverflowError, RecursionError, MemoryError):
            return None
        stated = stated_by(*call.args)
        if isinstance(result, str):
            return Const(result, stated) if len(result) <= LONGEST else None
        if not all(isinstance(part, str) for part in result):
            return None
        return machine.sequence("list", [Const(part, stated) for part in result[:LONGEST]])

    return run


def _is_harmless(pattern: str) -> bool:
    """Whether a pattern takes time polynomial in the length of the string: it has no repeat within a repeat."""
    repeats = len(re.findall(r"[*+?{]", pattern))
    return len(pattern) <= _LONGEST_PATTERN and repeats <= _MOST_REPEATS and not re.search(r"\)[*+?{]|\\[0-9]", pattern)


# isinstance

_CONVOLUTION = re.compile(r"torch\.nn\.Conv(?:Transpose)?[123]d")
_LAYER = re.compile(r"torch\.nn\.[A-Z]\w*")
# Layers of PyTorch that are a kind of no other public one; of those left out some are, as ReLU6 is a Hardtanh
_OF_ITS_OWN = re.compile(r"torch\.nn\.(?!Lazy|ReLU6|Upsampling|RNN|LSTM|GRU|NLLLoss|ZeroPad|Uninit)[A-Z]\w*")
_KINDS = {"list": "list", "List": "list", "tuple": "tuple", "Tuple": "tuple", "set": "set", "Set": "set",
          "frozenset": "set", "range": "range"}  # fmt: skip
_SEQUENCES = frozenset({"Iterable", "Sequence", "Collection", "Sized", "Container", "MutableSequence"})
_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,), "float": (float,), "str": (str,), "bool": (bool,), "bytes": (bytes,), "NoneType": (type(None),),
    "Number": (int, float), "Integral": (int,), "Real": (int, float), "string_types": (str,),
}  # fmt: skip


def is_instance(machine: Machine, value: Value, of: Value) -> bool | None:
    """Return `isinstance(value, of)`; None if it is unknown."""
    if isinstance(of, Items):
        truths = [is_instance(machine, value, cls) for cls in of.items]
        return any_true(truths if of.complete else [*truths, None])
    if isinstance(value, Unknown) or isinstance(of, Unknown):
        return None
    if isinstance(of, Class):
        return _is_of_class(value, of)
    return _is_of_name(machine, value, of.name) if isinstance(of, Name) else None


def _is_of_class(value: Value, of: Class) -> bool | None:
    if not isinstance(value, Instance):
        return None if isinstance(value, (Name, Tensor)) else False
    if not isinstance(value.cls, Class):
        return False
    order = value.cls.order or [value.cls]
    if any(base is of for base in order):
        return True
    return None if any(isinstance(base, Unknown) for base in order) else False


def _is_of_name(machine: Machine, value: Value, name: str) -> bool | None:
    last = name.rsplit(".", 1)[-1]
    if isinstance(value, Items) and value.kind == "array":
        return last == "ndarray"
    if name.startswith(("builtins.", "typing.", "collections.", "numbers.", "types.", "six.")):
        return _is_of_builtin(value, last)
    if isinstance(value, Instance) and isinstance(value.cls, Name):
        own = value.cls.name
        if own == name:
            return True
        if name == "torch.nn.Module":
            return True if own.startswith("torch.nn.") else None
        # Lazy layers turn into plain ones when they first run.
        if _CONVOLUTION.fullmatch(name) and own.startswith("torch.nn.") and "Lazy" not in own:
            return False  # no other layer of PyTorch is a kind of those
        return False if _OF_ITS_OWN.fullmatch(own) and _LAYER.fullmatch(name) else None
    if isinstance(value, Instance) and isinstance(value.cls, Class):
        order = value.cls.order or []
        if any(isinstance(base, Name) and base.name == name for base in order):
            return True
        if machine.library.subclass_of(value.cls) == name:
            return True
        outside = [base for base in order if isinstance(base, (Name, Unknown))]
        of_torch = all(isinstance(base, Name) and _OF_ITS_OWN.fullmatch(base.name) for base in outside)
        return False if not outside or (of_torch and _LAYER.fullmatch(name)) else None
    if isinstance(value, Tensor):
        return True if last == "Tensor" else None
    return False if isinstance(value, (Const, Items, Table, Function, Class, Module)) else None


def _is_of_builtin(value: Value, last: str) -> bool | None:
    if last == "object":
        return True
    if last == "Hashable":  # most objects are, unless a class says otherwise
        if isinstance(value, Table) or (isinstance(value, Items) and value.kind == "list"):
            return False
        return True if isinstance(value, (Const, Function, Class, Module)) else None
    if isinstance(value, Const):
        if last in _TYPES:
            return isinstance(value.value, _TYPES[last])
        return isinstance(value.value, (str, bytes)) if last in _SEQUENCES else False
    if isinstance(value, Items):
        if last in _KINDS:
            return value.kind == _KINDS[last]
        return last in ("Iterable", "Collection", "Sized", "Container") or (
            last in _SEQUENCES and value.kind != "iterator"
        )
    if isinstance(value, Table):
        return last in ("dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "Iterable", "Collection", "Sized")
    if isinstance(value, (Function, Partial)):
        return last in ("Callable", "FunctionType", "LambdaType", "function", "MethodType")
    if isinstance(value, Class):
        return last in ("type", "Callable", "Type")
    # No object is a number or string here; a name from outside the source may stand for a list or tuple.
    if isinstance(value, (Instance, Name, Tensor)):
        return False if last in _TYPES or (last in _KINDS and not isinstance(value, Name)) else None
    return None
