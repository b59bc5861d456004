"""What cells hold on each of two paths, and where these have met."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from convlint.readers.python.evaluator.state import Copying, Heap, NotCopied
from convlint.readers.python.evaluator.values import NONE, Const, Items, List, Name, Table, Tensor, Value, unknown

ONE, TWO, THREE = Const(1), Const(2), Const(3)
BRANCH, CALL, CONFIG = unknown("branch"), unknown("call"), unknown("config")
Change = Callable[[Heap, Any], None]


def met(heap: Heap, thing: Any, first: Change, second: Change) -> Any:
    """What the object holds where two paths meet that changed it so."""
    base = heap.begin()
    first(heap, thing)
    one, heap.layer = heap.layer, heap.layer_on(base)
    second(heap, thing)
    heap.meet(one, base)
    return heap.read(thing)


def put(key: str, value: Value) -> Change:
    return lambda heap, thing: heap.put(thing, key, value)


def removed(key: str) -> Change:
    return lambda heap, thing: heap.remove(thing, key)


def nothing(_: Heap, __: Any) -> None:
    return None


def shown(value: Value) -> object:
    return value.value if isinstance(value, Const) else f"?{value.why}" if hasattr(value, "why") else value


TABLES: list[tuple[Change, Change, dict[str, object], set[str]]] = [
    (nothing, nothing, {"a": 1}, set()),
    (put("a", TWO), nothing, {"a": "?branch"}, set()),
    (put("a", TWO), put("a", Const(2)), {"a": 2}, set()),
    (put("a", TWO), put("a", THREE), {"a": "?branch"}, set()),
    (put("b", TWO), nothing, {"a": 1, "b": 2}, {"b"}),
    (nothing, put("b", TWO), {"a": 1, "b": 2}, {"b"}),
    (removed("a"), nothing, {"a": 1}, {"a"}),
    (removed("a"), removed("a"), {}, set()),
    (put("a", CONFIG), put("a", ONE), {"a": "?config"}, set()),
    (put("a", CONFIG), put("a", CALL), {"a": "?call"}, set()),  # as the path says that goes on
    (put("a", BRANCH), put("a", CALL), {"a": "?call"}, set()),
    (put("a", CALL), put("a", BRANCH), {"a": "?call"}, set()),
]


@pytest.mark.parametrize(("first", "second", "held", "may"), TABLES)
def test_what_a_dict_holds_where_paths_meet(
    first: Change, second: Change, held: dict[str, object], may: set[str],
) -> None:  # fmt: skip
    heap = Heap()
    cell = met(heap, Table(heap, {"a": ONE}), first, second)
    assert {key: shown(value) for key, value in cell.items.items()} == held
    assert cell.may == may


def added(*values: Value) -> Change:
    def change(heap: Heap, thing: Any) -> None:
        heap.edit(thing).items += values

    return change


LISTS: list[tuple[Change, Change, list[object], bool]] = [
    (nothing, nothing, [1], True),
    (added(TWO), nothing, [1, 2], False),
    (nothing, added(TWO, THREE), [1, 2, 3], False),
    (added(TWO), added(TWO), [1, 2], True),
    (added(TWO), added(THREE), [1, "?branch"], True),
    (added(TWO), added(THREE, ONE), [1, 3, 1, 2], False),
]


@pytest.mark.parametrize(("first", "second", "held", "complete"), LISTS)
def test_what_a_list_holds_where_paths_meet(
    first: Change, second: Change, held: list[object], complete: bool,
) -> None:  # fmt: skip
    heap = Heap()
    cell = met(heap, List(heap, "list", [ONE]), first, second)
    assert [shown(value) for value in cell.items] == held
    assert cell.complete is complete


def test_lists_that_get_another_name_in_each_round_of_a_loop_are_forgotten_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heap, forgotten = Heap(), list[Any]()
    names, first, second = Table(heap, {}), List(heap, "list", [ONE]), List(heap, "list", [TWO, THREE])
    for _ in range(5):
        met(heap, names, put("x", first), put("x", second))
    monkeypatch.setattr(heap, "soften", lambda thing, _: forgotten.append(thing))
    heap.changed_by_another_name()
    assert len(forgotten) == 2


def test_a_path_sees_nothing_of_the_other() -> None:
    heap = Heap()
    thing = Table(heap, {"a": ONE})
    base = heap.begin()
    heap.put(thing, "a", TWO)
    assert thing.items["a"] is TWO
    heap.layer = heap.layer_on(base)
    assert thing.items["a"] is ONE


def test_what_a_path_made_keeps_its_cell_to_itself() -> None:
    heap = Heap()
    heap.begin()
    thing = Table(heap, {"a": ONE})
    heap.put(thing, "a", TWO)
    assert heap.layer.cells == {}
    assert thing.first.items["a"] is TWO


def test_a_state_that_is_kept_is_not_changed_by_who_goes_on() -> None:
    heap = Heap()
    thing = Table(heap, {"a": ONE})
    base = heap.begin()
    heap.put(thing, "a", TWO)
    kept = heap.keep()
    heap.layer = heap.layer_on(base)
    heap.put(thing, "a", THREE)
    heap.settle(base)
    heap.layer = heap.release(kept)
    assert thing.items["a"] is TWO


def test_a_settled_path_leaves_no_layer() -> None:
    heap = Heap()
    thing = Table(heap, {"a": ONE})
    base = heap.begin()
    heap.settle(base)
    assert heap.layer is base
    heap.begin()
    heap.put(thing, "a", TWO)
    heap.settle(base)
    assert heap.layer is base
    assert thing.items["a"] is TWO


def test_what_a_module_made_is_noted_where_a_path_changes_it() -> None:
    heap = Heap()
    heap.in_module = True
    thing, other = Table(heap, {"a": ONE}), Table(heap, {"a": ONE})
    heap.in_module = False
    base = heap.begin()
    assert heap.changed == set()
    heap.put(thing, "a", TWO)
    assert heap.changed == {thing}
    heap.oldest = float("inf")
    assert other.items["a"] is ONE
    assert heap.oldest == float("inf")
    assert thing.items["a"] is TWO
    assert heap.oldest == thing.born, "what is read of it is no longer what the module made"
    heap.layer = base
    assert thing.items["a"] is ONE


def test_what_a_try_set_is_old_or_new_in_its_handler() -> None:
    heap = Heap()
    thing = Table(heap, {"a": ONE, "b": ONE})
    before = heap.begin()
    outer = heap.watch()
    heap.put(thing, "a", TWO)
    heap.put(thing, "c", TWO)
    heap.interrupt(before, heap.unwatch(outer))
    cell = heap.read(thing)
    assert {key: shown(value) for key, value in cell.items.items()} == {"a": "?branch", "b": 1, "c": 2}
    assert cell.may == {"c"}


class Data:
    """What a library keeps of a tensor."""

    def __init__(self) -> None:
        self.copies = 0

    def copied(self, _: dict[int, Any]) -> Data:
        self.copies += 1
        return Data()


def test_copies_of_what_is_young_keep_what_is_one_object() -> None:
    heap = Heap()
    old = List(heap, "list", [ONE])
    start = heap.time
    young = List(heap, "list", [old])
    whole = Items("tuple", [young, young, old, Name("n"), NONE])
    copy = Copying(heap, start, {}, 10, 10).copy(whole)
    assert isinstance(copy, Items)
    assert copy.items[0] is copy.items[1] is not young
    assert copy.items[2] is old
    assert copy.items[3:] == whole.items[3:]


def test_an_equal_call_makes_another_tensor() -> None:
    heap, tensor = Heap(), Tensor(Data())
    assert Copying(heap, 0, {}, 10, 10).copy(tensor) is not tensor
    assert Copying(heap, 0, {id(tensor): tensor}, 10, 10).copy(tensor) is tensor
    assert Copying(heap, None, {}, 10, 10).copy(tensor) is tensor, "copy.deepcopy of a tensor is read by the same"


def test_what_is_too_deep_or_too_much_has_no_copy() -> None:
    heap = Heap()
    deep: Value = List(heap, "list", [])
    for _ in range(5):
        deep = List(heap, "list", [deep])
    many = List(heap, "list", [List(heap, "list", []) for _ in range(5)])
    for value in (deep, many):
        assert Copying(heap, 0, {}, 10, 10).copy(value) is not value
    with pytest.raises(NotCopied):
        Copying(heap, 0, {}, 10, 3).copy(deep)
    with pytest.raises(NotCopied):
        Copying(heap, 0, {}, 3, 10).copy(many)
