"""Records that are equal wherever they were written."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from convlint.model.equality import equal_without
from convlint.model.layer import ConvLayer


@equal_without("line")
class Noted(Struct, frozen=True, kw_only=True):
    text: str
    line: int = 0


def test_a_field_that_is_left_out_makes_no_difference() -> None:
    one = Noted(text="a", line=1)
    assert one == Noted(text="a", line=2)
    assert not one != Noted(text="a", line=2)  # noqa: SIM202 - not the method of `==`
    assert len({one, Noted(text="a", line=2), Noted(text="b", line=1)}) == 2
    assert one != Noted(text="b", line=1)
    assert one != "a"


def test_where_a_layer_is_written_is_no_part_of_what_it_is() -> None:
    layer = ConvLayer(name="a", C=3, K=64, layout="NHWC", spans={"C": (1, 2, 1, 3)})
    elsewhere = replace(layer, spans={})
    assert (layer, hash(layer)) == (elsewhere, hash(elsewhere))
    assert layer != replace(layer, C=4)
    assert hash(layer) != hash(replace(layer, C=4))
