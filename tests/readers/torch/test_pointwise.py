"""The table of elementwise operators against what torch says of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cases import for_each

from convlint.readers.torch.kinds import VIEWED
from convlint.readers.torch.operators import VIEWS
from convlint.readers.torch.pointwise import POINTWISE, TAGGED, UNTAGGED


def overloads(name: str) -> list[Any]:
    """What torch has under a name of the tables, also in place."""
    found = [getattr(torch.ops.aten, each, None) for each in (name, f"{name}_")]
    return [getattr(packet, each) for packet in found if packet is not None for each in packet.overloads()]


@for_each("name", sorted(TAGGED))
def test_torch_tags_what_is_said_to_be_tagged(name: str) -> None:
    assert any(torch.Tag.pointwise in each.tags for each in overloads(name))


def test_what_torch_does_not_tag_is_known_to_it() -> None:
    assert TAGGED.isdisjoint(UNTAGGED)
    assert [name for name in sorted(UNTAGGED) if not overloads(name)] == []
    assert [name for name in UNTAGGED if any(torch.Tag.pointwise in each.tags for each in overloads(name))] == []


@pytest.mark.parametrize("name", ["max", "min", "softmax", "cumsum", "flip", "roll", "sort", "layer_norm", "glu"])
def test_what_mixes_elements_is_not_among_them(name: str) -> None:
    assert name not in POINTWISE


def aliases(name: str) -> list[Any]:
    """What the results of an operator may look into."""
    declared = [value.alias_info for each in overloads(name) for value in each._schema.returns]
    return [alias for alias in declared if alias is not None and not alias.is_write]


def test_views_are_what_torch_declares_to_be_views() -> None:
    assert [name for name in VIEWS if not aliases(name.removeprefix("aten::"))] == []


def test_whatever_networks_may_write_through_is_a_view() -> None:
    """An exported program does not say which operators are views: those that keep channels must not be missing."""
    for name in [*VIEWED, "slice", "narrow", "expand", "chunk", "split", "select", "permute", "transpose", "unbind"]:
        assert (f"aten::{name}" in VIEWS) == bool(aliases(name)), name
