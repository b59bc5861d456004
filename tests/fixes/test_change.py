"""Changes as keys."""

from __future__ import annotations

from convlint.fixes.change import Change


def test_equal_changes_are_one() -> None:
    one = Change(layer=1, field="K", value=64)
    wishes = {one: "CL102", Change(layer=1, field="K", value=64): "CL201", Change(layer=None, field="K", value=64): "-"}
    assert wishes == {one: "CL201", Change(layer=None, field="K", value=64): "-"}
