"""The named sizes that rules on taps, tiles and what arrives read: their values, and what they need to be known."""

from __future__ import annotations

import pytest
from layer_facts import facts

from convlint.rulebook.named_sizes import NUMBER, ROOTS, TEXT, TRUTH
from convlint.rulebook.vocabulary import GPU_NAMES, VOCABULARY


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("dead_taps", ("H", "W", "R", "S")), ("spatial_filter", ("R", "S")), ("padded", ()), ("has_output", ("H", "W")),
        ("fitting_PadH_end", ("H", "R")), ("fitting_DilW", ("W", "S")), ("live_PadW", ("W", "S")),
        ("even_OutPadH", ("R",)), ("groups_divide", ("C", "K")), ("matches_arriving", ()), ("filter_size", ()),
    ],
)  # fmt: skip
def test_what_a_user_can_give_so_that_it_is_known(name: str, needs: tuple[str, ...]) -> None:
    found = facts("groups: 2")
    if name == "even_OutPadH":
        found = facts("op: conv_transpose, stride: 2, H: 4")
    assert found.needs(frozenset((name,))) == needs


def test_every_name_has_its_type_and_those_that_can_be_unknown_say_what_they_need() -> None:
    for names, kind in ((NUMBER, "number"), (TEXT, "text"), (TRUTH, "truth")):
        assert {VOCABULARY[name] for name in names} == {kind}
    tiles = {name for name in (*NUMBER, *TEXT) if name.startswith("tile_")}
    assert ROOTS.keys() >= {*NUMBER, *TRUTH} - tiles
    assert tiles <= GPU_NAMES
    assert not GPU_NAMES & ({*NUMBER, *TEXT, *TRUTH} - tiles)
    found = facts("groups: 2")
    for name in (*NUMBER, *TEXT, *TRUTH):
        found[name]  # every one has a function
