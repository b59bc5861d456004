"""The text of a spec after changes, and the reasons for refused changes."""

from typing import Any

from read_specs import network

from convlint.fixes.edits import applied
from convlint.fixes.plan import ValueChange
from convlint.fixes.spec_text import Edits, spec_edits

Asked = tuple[int | None, str, Any]


def edits_of(text: str, *changes: Asked) -> Edits:
    return spec_edits(text, network(text), [ValueChange(*change) for change in changes])


def fixed(text: str, *changes: Asked) -> str:
    """The text after changes of which none is refused; it reads without errors."""
    found = edits_of(text, *changes)
    assert found.refused == {}
    after = applied(text, found.edits)
    network(after)
    return after


def refused(text: str, *changes: Asked) -> list[str]:
    """The reasons of the refusals, where every change is refused."""
    found = edits_of(text, *changes)
    assert found.edits == ()
    return [*found.refused.values()]


def one_layer(fields: str, *, dims: int = 2) -> str:
    """A spec of one convolution in flow style, with the given fields."""
    return f"version: 1\nlayers:\n  - {{ op: conv{dims}d, {fields} }}\n"


def fixed_layer(fields: str, *changes: tuple[str, Any], dims: int = 2) -> str:
    """What becomes of the fields of that one convolution."""
    after = fixed(one_layer(fields, dims=dims), *((0, name, value) for name, value in changes))
    start, end = one_layer("\0", dims=dims).split("\0")
    assert after.startswith(start)
    assert after.endswith(end)
    return after[len(start) : len(after) - len(end)]
