"""The tensors that a serialized Keras call reads: `["conv", 0, 0]` or a `__keras_tensor__`, at any depth."""

from __future__ import annotations

from convlint.readers.keras.shapes import Shape
from convlint.readers.untrusted.json_tree import Node
from convlint.readers.untrusted.limits import MOST_READS

DEEPEST = 100
_MOST_CALLS = 2**31  # of one layer; a larger number is no position

Reference = tuple[str, int, int]  # layer, which of its calls, which of its outputs


def references(node: Node | None) -> tuple[list[tuple[Reference, Shape | None]], int]:
    """The tensors, with the shapes that Keras noted, and how many values were looked at to find them.

    Both spellings of Keras 2 and 3. Raises InputFault.
    """
    found: list[tuple[Reference, Shape | None]] = []
    waiting = [] if node is None else [(node, 0)]
    visited = 0
    while waiting:
        inner, depth = waiting.pop()
        visited += 1
        if visited > MOST_READS or depth > DEEPEST:
            assert node is not None
            raise node.fault(f"holds more than {MOST_READS:,} values, or nests deeper than {DEEPEST} levels")
        if inner.is_object:
            if inner.value.get("class_name") == "__keras_tensor__":
                found.append(_tensor(inner))
            else:
                waiting += [(value, depth + 1) for _, value in reversed(list(inner.items())) if _may_hold(value)]
        elif _is_reference(inner.value):
            found.append((_reference(inner), None))
        elif inner.is_list:
            waiting += [(value, depth + 1) for value in reversed(inner.elements()) if _may_hold(value)]
    return found, visited


def _may_hold(node: Node) -> bool:
    return isinstance(node.value, (dict, list))


def _is_reference(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) in (3, 4)
        and isinstance(value[0], str)
        and type(value[1]) is int
        and type(value[2]) is int
    )


def _reference(node: Node) -> Reference:
    """A layer, which of its calls, and which of its outputs."""
    elements = node.elements(4)
    if len(elements) < 3:
        raise node.must_be("a layer, its call and its output")
    return elements[0].text(), elements[1].integer(0, _MOST_CALLS), elements[2].integer(0, _MOST_CALLS)


def _tensor(node: Node) -> tuple[Reference, Shape | None]:
    config = node.at("config")
    shape = config.get("shape")
    return _reference(config.at("keras_history")), shape.shape() if shape is not None else None
