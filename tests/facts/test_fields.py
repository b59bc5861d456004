"""A layer's own fields as rules read them."""

from __future__ import annotations

from layer_facts import facts

from convlint.facts.fields import NAMES, SIZES, values_of
from convlint.facts.unknown import UNKNOWN
from convlint.model.layer import ConvLayer


def test_fields_are_read_under_their_names() -> None:
    layer = ConvLayer(name="a", **{size: number for number, size in enumerate(SIZES, start=1)})  # type: ignore[arg-type]
    seen = dict(zip(NAMES, values_of(layer), strict=True))
    assert [seen[size] for size in SIZES] == list(range(1, len(SIZES) + 1))
    assert (seen["name"], seen["layout"], seen["bias"]) == ("a", "auto", None)


def test_what_nobody_gave_is_unknown() -> None:
    found = facts("name: a, C: 64")
    assert (found["C"], found["name"], found["groups"]) == (64, "a", 1)
    assert found["H"] is UNKNOWN
    assert found["dtype"] is UNKNOWN
