"""What runs a network: settings are unknown until they are given, but for the one that frameworks turn on."""

from __future__ import annotations

import pytest

from convlint.model.runtime import Runtime
from convlint.model.version import Version


@pytest.mark.parametrize("name", [name for name in Runtime.__struct_fields__ if name not in ("tf32", "spans")])
def test_what_is_not_given_is_unknown(name: str) -> None:
    assert getattr(Runtime(), name) is None


def test_tf32_is_on_unless_it_is_turned_off() -> None:
    assert Runtime().tf32 is True


def test_places_are_no_part_of_it() -> None:
    placed = Runtime(cudnn=Version("8.9"), spans={"cudnn": (3, 1, 3, 6)})
    assert placed == Runtime(cudnn=Version("8.9")) != Runtime(cudnn=Version("8.8"))
    assert hash(placed) == hash(Runtime(cudnn=Version("8.9")))
