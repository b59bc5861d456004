"""The heap of the evaluator: what each object holds on each path, as layers of changed cells.

A fork puts a new layer on top, so that starting a path costs nothing. A layer from which another path still starts is
never changed. `meet` joins two paths into one layer: what both agree on is known, and a key that only one has may be
present. An object created above a layer is known to no other path, so that its only cell is in the object itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from convlint.readers.python.evaluator.values import (
    DEEPEST_EQUAL,
    Cell,
    Class,
    Const,
    Entries,
    Function,
    Instance,
    Items,
    List,
    Module,
    Name,
    Object,
    Partial,
    Preset,
    Table,
    Tensor,
    Unknown,
    Value,
    another,
    preset,
    same,
    union,
    unknown,
)


class HeapLayer(Struct, eq=False):
    """The cells that one path changed, of objects older than `start`; all others are as in `parent`.

    `kept` counts the waiting states that stand on this layer: it must not be changed while there are any.
    """

    parent: HeapLayer | None
    start: int
    kept: int = 0
    cells: dict[Any, Cell] = {}

    def down(self, to: HeapLayer | None) -> Iterator[HeapLayer]:
        """Yield the layer and those below it, down to `to`, which is excluded."""
        at: HeapLayer | None = self
        while at is not None and at is not to:
            yield at
            at = at.parent

    def began(self, base: HeapLayer) -> int:
        """Return the `start` of the layer right above `base`, when this path and others began; else its own."""
        return next((layer.start for layer in self.down(base) if layer.parent is base), self.start)


class Heap:
    """All cells of a run, and the layer of the current path.

    Objects that modules create have negative times: they are older than all paths, whichever path ran the module.
    """

    def __init__(self) -> None:
        self.base = self.layer = HeapLayer(None, _FIRST_TIME)  # holds what modules create
        self.time = 0
        self.module_time = _FIRST_TIME
        self.in_module = False
        self.changed: set[Any] = set()  # objects of modules that paths of this root changed
        self.reads: set[Any] = set()  # objects of modules that were read since the current call began
        self.class_changed = False  # whether `changed` has a class
        self.oldest = float("inf")  # birth of the oldest object changed since the current call began
        self.watched: dict[tuple[Any, Any], int] | None = None  # changes within a `try`, and how often each
        self.losing: Callable[[Value], None] = lambda _: None  # called with values that no path keeps
        self.choosing: Callable[[tuple[Value, Value]], Value | None] = lambda _: None  # in which two paths differ
        self.follows_aliases = True
        self._loose = List(self, "list", [])  # objects whose names may refer to others too, since paths met

    def layer_on(self, parent: HeapLayer) -> HeapLayer:
        """Return a new layer on top of another."""
        return HeapLayer(parent, self.now)

    @property
    def now(self) -> int:
        """The creation time of the newest object."""
        return self.module_time if self.in_module else self.time

    # Cells

    def read(self, thing: Any) -> Any:
        """Return the cell of the object on the current path; it must not be changed."""
        at: Any = self.layer
        born = thing.born
        if born > at.start:
            return thing.first
        if born < 0:
            self.reads.add(thing)
            if thing not in self.changed:
                return thing.first
            self.oldest = min(self.oldest, born)  # what was read depends on more than it was called with
        while born <= at.start:
            cell = at.cells.get(thing)
            if cell is not None:
                return cell
            at = at.parent
        return thing.first

    def edit(self, thing: Any, key: Any = None) -> Any:
        """Return the object's cell for a change on this path; `key` is the entry that changes, None for all."""
        if thing.born < self.oldest:
            self.oldest = thing.born
        if self.watched is not None:
            self.watched[thing, key] = self.watched.get((thing, key), 0) + 1
        layer = self.layer
        if thing.born > layer.start:
            cell = thing.first
        else:
            cell = layer.cells.get(thing)
            if cell is None:
                cell = layer.cells[thing] = self.read(thing).copied()
                if thing.born < 0:
                    self.changed.add(thing)
                    self.class_changed = self.class_changed or isinstance(thing, Class)
        if cell.also:
            others, cell.also = cell.also, ()
            for other in others:
                self._forget(other)
        return cell

    def put(self, thing: Any, key: Any, value: Value) -> None:
        """Set an entry of the object's cell."""
        cell = thing.first
        born = thing.born
        # Whatever Heap.edit would do, for most changes nothing.
        if born <= self.layer.start or born < self.oldest or self.watched is not None or cell.also:
            cell = self.edit(thing, key)
        cell.items[key] = value
        if cell.may and key in cell.may:
            cell.may = cell.may - {key}

    def remove(self, thing: Any, key: Any) -> None:
        """Remove an entry of the object's cell."""
        cell = self.edit(thing, key)
        cell.items.pop(key, None)
        cell.may = cell.may - {key}

    def soften(self, thing: Any, why: str) -> None:
        """Make the content of a list or dict incomplete, for the reason `why`."""
        if isinstance(thing, (List, Table)) and thing.complete:
            cell = self.edit(thing.owner if isinstance(thing, Table) else thing)
            cell.complete, cell.why = False, why
            if isinstance(cell, Entries):
                cell.items, cell.may = {}, frozenset()

    def _forget(self, thing: Any) -> None:
        """Make every item of a list or dict unknown."""
        cell = thing.cell if isinstance(thing, (List, Table)) else None
        if cell is None or not (cell.complete or (cell.items and isinstance(thing, List))):
            return
        self.soften(thing, "branch")
        if isinstance(thing, List) and thing.items:
            self.edit(thing).items = []

    def changed_by_another_name(self, *, attribute: bool = False) -> None:
        """Handle a change of an unknown object, which may be any loose one; lists and dicts have no `attribute`."""
        # The program reader turns this off: such changes decide no test around a setting.
        for thing in self._loose.items if self.follows_aliases else ():
            # In a long run nearly all were forgotten before, and there are hundreds of them.
            if thing.__class__ is List:
                cell = thing.cell
                if not attribute and (cell.complete or cell.items):
                    self._forget(thing)
            elif thing.__class__ is Table and (thing.of is not None if attribute else thing.cell.complete):
                self._forget(thing)

    def _set(self, layer: HeapLayer, thing: Any, cell: Cell) -> None:
        if thing.born > layer.start:
            thing.first = cell
        else:
            layer.cells[thing] = cell

    # Paths

    def begin(self) -> HeapLayer:
        """Begin a path on the current state; return the layer from which other paths can begin too."""
        before = self.layer
        self.layer = self.layer_on(before)
        return before

    def keep(self) -> HeapLayer:
        """Return the current state for a path that goes on later; the caller must continue on another layer."""
        for layer in self.layer.down(None):
            layer.kept += 1
        return self.layer

    def settle(self, base: HeapLayer) -> None:
        """Merge the changes of the current path since `base` into `base`, unless another state stands on it."""
        layer = self.layer
        if layer is base or base.kept:
            return
        # The common cases first: forks end millions of times in a run.
        if layer.parent is base and not layer.kept and not layer.cells:  # nearly always
            self.layer = base
        elif not any(below.kept for below in layer.down(base)):
            for thing, cell in _changes(self.layer, base).items():
                self._set(base, thing, cell)
            self.layer = base

    def abandon(self, base: HeapLayer) -> None:
        """Settle on `base` even if states wait: those of an exhausted run are never gathered."""
        for layer in self.layer.down(None):
            layer.kept = 0
        self.settle(base)

    def release(self, state: HeapLayer) -> HeapLayer:
        """Release a kept state, and return it."""
        for layer in state.down(None):
            layer.kept -= 1
        return state

    def go_on(self, state: HeapLayer) -> None:
        """Continue with a kept state alone."""
        self.layer = self.layer_on(state) if state.kept else state

    def meet(self, other: HeapLayer, base: HeapLayer | None = None) -> None:
        """Join another path into the current one: what both agree on is known.

        `base` is the layer from which both began, if the caller knows it.
        """
        current = self.layer
        if base is not None and current.parent is base and other.parent is base:  # nearly always
            self._join(base, current.cells, other.cells, min(current.start, other.start))
            return
        below = set(map(id, current.down(None)))
        base = next(layer for layer in other.down(None) if id(layer) in below)
        starts = [path.began(base) for path in (current, other) if path is not base]
        if starts:
            self._join(base, _changes(current, base), _changes(other, base), min(starts))

    def _join(self, base: HeapLayer, first: dict[Any, Cell], second: dict[Any, Cell], start: int) -> None:
        target = self.layer = self.layer_on(base) if base.kept else base
        if not first and not second:
            return
        joining = _Joining(self, base, start, first, second)
        # Joined cells are stored after all are computed, as each is computed from both paths' cells.
        joined: list[tuple[Any, Cell]] = []
        for thing in dict.fromkeys((*first, *second)):
            if thing.born > start:  # made on one of the paths
                thing.first = first.get(thing) or second[thing]
            else:
                joined.append((thing, joining.cells(*joining.both(thing, thing))))
        self.layer = target
        for thing, cell in joined:
            self._set(target, thing, cell)
        self._end(joining)

    def joined(self, first: Value, second: Value, since: int | None = None) -> Value:
        """Return the value of an expression that is `first` on one path and `second` on the other.

        Objects created `since` the paths began have no other name: `{} if test else None`.
        """
        joining = _Joining(self, self.layer, self.time if since is None else since, {}, {})
        value = joining.value(first, second)
        self._end(joining)
        return value

    def _end(self, joining: _Joining) -> None:
        before = self.oldest
        for thing, others in joining.also:
            self.edit(thing).also += others
        if joining.loose:
            cell = self.edit(self._loose)
            cell.items = list(dict.fromkeys((*cell.items, *joining.loose)))  # paths of a loop meet again and again
            self.oldest = min(before, *(thing.born for thing in joining.loose if thing.born > 0), self.time)
        for value in joining.lost:
            self.losing(value)

    def changed_since(self, before: HeapLayer) -> list[tuple[Any, Any, Any]]:
        """Return the objects that changed since a state, each with its cell then and now."""
        here, self.layer = self.layer, before
        start = here.began(before)
        changes = [(thing, self.read(thing), cell)
                   for thing, cell in _changes(here, before).items() if thing.born <= start]  # fmt: skip
        self.layer = here
        return changes

    # Attempts: a handler runs from any point of the body

    def watch(self) -> dict[tuple[Any, Any], int] | None:
        """Begin the body of a `try`; return what `unwatch` needs."""
        outer, self.watched = self.watched, {}
        return outer

    def unwatch(self, outer: dict[tuple[Any, Any], int] | None) -> dict[tuple[Any, Any], int]:
        """End the body of a `try`; return what it changed, and how often."""
        watched, self.watched = self.watched or {}, outer
        if outer is not None:
            for key, times in watched.items():
                outer[key] = outer.get(key, 0) + times
        return watched

    def interrupt(self, before: HeapLayer, watched: dict[tuple[Any, Any], int]) -> None:
        """Continue from any point between a state and the current one, as a handler does.

        What was set once has its old or its new value; what was set more often is unknown.
        """
        after = self.layer
        joining = _Joining(self, after, self.time, {}, {})
        start = after.began(before)
        unsure: dict[Any, set[Any]] = {}  # keys of each, joined at once
        for (thing, key), times in watched.items():
            young = thing.born > start
            new = self.read(thing)
            self.layer = before
            old = new if young else self.read(thing)
            self.layer = after
            if isinstance(new, Items):
                cell = self.edit(thing)
                cell.complete, cell.why = False, "branch"
            elif key is None:
                if not young:
                    cell = self.edit(thing)
                    cell.complete, cell.may = False, frozenset(cell.items)
                    cell.items = {name: value if old.items.get(name) is value else unknown("branch")
                                  for name, value in cell.items.items()}  # fmt: skip
            elif key in new.items or key in old.items:
                cell = self.edit(thing, key)
                values = [version.items[key] for version in (old, new) if key in version.items]
                known = times == 1 and (young or values[0] is not values[-1] or len(values) == 1)
                cell.items[key] = joining.value(values[0], values[-1]) if known else unknown("branch")
                if len(values) == 1 or key in old.may or key in new.may:
                    unsure.setdefault(thing, set()).add(key)
        for thing, keys in unsure.items():
            cell = self.edit(thing)
            cell.may = cell.may | keys
        self._end(joining)


_FIRST_TIME = -(10**12)
_NEVER_LOST = frozenset((Const, Preset, Unknown))  # values that no library follows


def _changes(layer: HeapLayer, base: HeapLayer) -> dict[Any, Cell]:
    """Return the cells that a path has changed since `base`."""
    cells: dict[Any, Cell] = {}
    for below in layer.down(base):
        for thing, cell in below.cells.items():
            cells.setdefault(thing, cell)
    return cells


class _Joining(Struct, eq=False):
    """The join of two paths with these changed cells, on the layer `base` from which both began."""

    heap: Heap
    base: HeapLayer
    start: int
    first: dict[Any, Cell]
    second: dict[Any, Cell]
    joins: dict[tuple[int, int], Value] = {}  # objects joined already, by the identities of both
    lost: list[Value] = []
    loose: list[Any] = []
    also: list[tuple[Any, tuple[Any, ...]]] = []

    def both(self, left: Any, right: Any) -> tuple[Any, Any]:
        """Return the cell of an object on the first path, and that of another on the second."""
        heap = self.heap
        here, heap.layer = heap.layer, self.base
        pair = self.first.get(left) or heap.read(left), self.second.get(right) or heap.read(right)
        heap.layer = here
        return pair

    def cells(self, first: Any, second: Any, depth: int = 0) -> Any:
        """Join the cells of one object."""
        if isinstance(first, Items):
            return self._items(first, second, depth)
        # In a Sequential, a part that only one path added changes what every later part means.
        if first.ordered and first.items.keys() != second.items.keys():
            joined = Entries(_parts(first.items, second.items), complete=False, why=first.why)
        else:
            joined = self._entries(first, second, depth)
        joined.extra = first.extra if first.extra is not None else second.extra
        joined.complete = joined.complete and (first.extra is second.extra or bool(first.extra == second.extra))
        joined.default, joined.ordered, joined.also = first.default, first.ordered, first.also + second.also
        return joined

    def _entries(self, first: Entries, second: Entries, depth: int) -> Entries:
        complete = first.complete and second.complete
        left, right = first.items, second.items
        joined = Entries(left.copy(), complete=complete, why=second.why if first.complete else first.why)
        both = joined.items
        for key, value in right.items():
            other = left.get(key)
            if other is not value:
                both[key] = value if other is None else self.value(other, value, depth + 1)
        joined.may = first.may | second.may if first.may or second.may else first.may
        if len(both) == len(left) == len(right):
            return joined
        only = left.keys() ^ right.keys()
        joined.may |= only
        for key in only:
            if not (second if key in left else first).complete:  # where it may be there as well
                both[key] = self.value(both[key], unknown("branch"), depth + 1)
        return joined

    def _items(self, first: Items, second: Items, depth: int) -> Items:
        left, right = first.items, second.items
        if len(left) == len(right) and first.kind != "iterator":
            pairs = zip(left, right, strict=True)
            items = [self.value(mine, theirs, depth + 1) for mine, theirs in pairs]
            return Items(first.kind, items, complete=first.complete and second.complete, why=first.why)
        shorter, longer = sorted((left, right), key=len)
        both = longer[:]
        if longer[: len(shorter)] != shorter:  # values are equal where they are one: nearly always, one path added some
            known = {id(item) for item in longer}
            both += [item for item in shorter if id(item) not in known]
        why = first.why if not first.complete else second.why if not second.complete else "branch"
        return Items(first.kind, both, complete=False, why=why)

    def value(self, first: Value, second: Value, depth: int = 0) -> Value:
        """Join two values of one variable."""
        if first is second:
            return first
        kind = first.__class__
        # Any reason tells a user more than "branch" does.
        if kind is Unknown and second.__class__ is Unknown:
            return first if first.why != "branch" else second  # type: ignore[union-attr]
        joined = self._value(first, second, depth) if kind is second.__class__ else None
        joined = joined or self.heap.choosing((first, second))
        if joined is not None:
            return joined
        values = first, second
        self.lost += [value for value in values if value.__class__ not in _NEVER_LOST]
        for value in values:
            kind = value.__class__
            if (kind is List or kind is Table) and value.born <= self.start:  # type: ignore[union-attr]
                self.loose.append(value)
            if kind is Unknown and value.why != "branch":  # type: ignore[union-attr]
                return value
        return unknown("branch")

    def _value(self, first: Any, second: Any, depth: int) -> Value | None:
        if depth > DEEPEST_EQUAL:
            return None
        match first:
            case Const():
                if first.value.__class__ is second.value.__class__ and first.value == second.value:
                    return Const(first.value, union(first.stated, second.stated))
                return None
            case Function() | Name() | Module() | Partial():
                return first if same(first, second) else None
            case Instance():
                return self._instance(first, second)
            case Preset():
                number = self._value(first.number, second.number, depth)
                return number and preset(number)
            case Class() | Unknown():
                return None
            case List() | Table():
                return self._object(first, second, depth)
            case Items():
                alike = first.kind == second.kind and first.complete and second.complete
                if alike and len(first.items) == len(second.items):
                    return self._items(first, second, depth)
        return None

    def _object(self, first: Any, second: Any, depth: int) -> Value | None:
        """Join two distinct lists or dicts of the same shape into a new one; None if they differ."""
        key = id(first), id(second)
        if key in self.joins:
            return self.joins[key]
        cell, other = self.both(first, second)
        if not (cell.complete and other.complete) or getattr(first, "of", None) or getattr(second, "of", None):
            return None
        if isinstance(first, List):
            if cell.kind != other.kind or cell.kind == "iterator" or len(cell.items) != len(other.items):
                return None
        elif cell.items.keys() != other.items.keys() or cell.may or other.may:
            return None
        joined = self.joins[key] = another(first, cell)  # known before its items are joined, which may hold it
        joined.first = self.cells(cell, other, depth + 1)
        older = tuple(value for value in (first, second) if 0 < value.born <= self.start)
        self.also += [(joined, older), *((value, (joined,)) for value in older)] if older else []
        return joined

    def _instance(self, first: Instance, second: Instance) -> Value | None:
        """Join two objects of a framework's classes into one, if their descriptions allow it."""
        cell, other = self.both(first, second)
        either = getattr(cell.extra, "either", None)
        if either is None or cell.items or other.items or not (isinstance(first.cls, Name) and cell.extra is not None):
            return None
        extra = either(other.extra)
        return Instance(self.heap, first.cls, extra) if extra is not None and isinstance(second.cls, Name) else None


def _parts(first: dict[Any, Value], second: dict[Any, Value]) -> dict[Any, Value]:
    """Join the ordered parts of a container that differ between two paths.

    An unknown part is put wherever the parts diverge, so that no layer is taken for the neighbour of another.
    """
    both: dict[Any, Value] = {}
    order = list(second)
    for name, value in first.items():
        if len(both) >= len(order) or order[len(both)] != name or second[name] is not value:
            break
        both[name] = value
    for side in (first, second, {}):
        rest = [(name, value) for name, value in side.items() if both.get(name) is not value]
        for name, value in (("?", unknown("branch")), *rest):
            key = name
            while key in both:
                key += "?"
            both[key] = value
    return both


# Copies


_SHARED = frozenset((Const, Preset, Unknown, Name, Module))


class NotCopied(Exception):
    """The value cannot be copied: it is a closure, or too large."""


class Copying:
    """Deep copies of objects younger than `start`; with None, of all but functions and classes.

    `places` has replacements for objects by their identity.
    """

    def __init__(self, heap: Heap, start: int | None, places: dict[int, Value], most: int, deepest: int) -> None:
        self.heap, self.start, self.done, self.depth = heap, start, dict(places), 0
        self.most, self.deepest = most + len(places), deepest

    def _young(self, thing: Object) -> bool:
        return self.start is not None and thing.born > self.start

    def copy(self, value: Value) -> Value:
        """Return the copy. Raises NotCopied."""
        kind = value.__class__
        if kind in _SHARED:
            return value
        if isinstance(value, Class):
            if self._young(value):
                raise NotCopied  # each call has a class of its own
            return value
        known = self.done.get(id(value))
        if known is not None:
            return known
        if self.start is not None and isinstance(value, (List, Table, Instance)) and value.born <= self.start:
            return value
        self.depth += 1
        if self.depth > self.deepest or len(self.done) > self.most:
            raise NotCopied
        result = self._new(value)
        self.depth -= 1
        return result

    def _new(self, value: Any) -> Value:
        copy = self.copy
        if isinstance(value, (List, Table, Instance)):
            cell: Any = value.cell.copied()
            if isinstance(value, Instance):
                copy(value.cls)
            result = self.done[id(value)] = another(value, cell)
            if isinstance(cell, Items):
                cell.items = [item if item.__class__ in _SHARED else copy(item) for item in cell.items]
            else:
                cell.items = {key: item if item.__class__ in _SHARED else copy(item)
                              for key, item in cell.items.items()}  # fmt: skip
                cell.default = copy(cell.default) if cell.default is not None else None
            return result
        match value:
            case Items():
                items = [copy(item) for item in value.items]
                if all(new is old for new, old in zip(items, value.items, strict=True)):
                    return value
                return Items(value.kind, items, complete=value.complete, why=value.why)
            case Tensor():
                if self.start is None:
                    return value
                tensor = self.done[id(value)] = Tensor(value.data.copied(self.done))
                return tensor
            case Partial():
                function, args = copy(value.function), [copy(arg) for arg in value.args]
                keywords = {name: copy(arg) for name, arg in value.keywords.items()}
                pairs = zip((function, *args, *keywords.values()),
                            (value.function, *value.args, *value.keywords.values()), strict=True)  # fmt: skip
                if all(new is old for new, old in pairs):
                    return value
                partial = self.done[id(value)] = Partial(function, args, keywords)
                return partial
            case Function():
                if self._young(value.scope):
                    raise NotCopied  # a closure over what the call bound
                return value if value.bound is None or isinstance(value.bound, Class) else value.to(copy(value.bound))
        return value  # type: ignore[no-any-return]
