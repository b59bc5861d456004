"""The named sizes that rules on taps, tiles and what arrives read: their values, and what they need to be known."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convlint.engine.facts import LayerFacts
from convlint.engine.target_facts import TargetFacts
from convlint.estimate import estimate_layer
from convlint.files.located_yaml import parse
from convlint.gpus.gpu import load_gpu
from convlint.model.geometry import transposed_output_size
from convlint.readers.spec.reader import read_fragment
from convlint.rulebook.named_sizes import NUMBER, ROOTS, TEXT, TRUTH
from convlint.rulebook.unknown import UNKNOWN
from convlint.rulebook.vocabulary import GPU_NAMES, VOCABULARY


def facts(*layers: str, gpu: str = "a100") -> LayerFacts:
    """What rules read of the last of `layers`."""
    parsed = parse("version: 1\nlayers:\n" + "".join(f"  - {{ {layer} }}\n" for layer in layers))
    assert parsed is not None
    network, errors = read_fragment(parsed, "net.yaml")
    assert network is not None
    assert not errors, errors
    shared = TargetFacts(gpu, load_gpu(gpu), network.runtime, "training")
    last = len(network.layers) - 1
    edge = next((edge for edge in network.edges if edge.consumer == last), None)
    producers = tuple(network.layers[index] for index in edge.producers) if edge else ()
    layer = network.layers[last]
    return LayerFacts(shared, layer, edge, producers, estimate_layer(layer, shared.gpu, shared.runtime, "training"))


DEAD = "H: 16, W: 16, R: 3, S: 3, dilation: 24, padding: 24"
TINY = "H: 2, W: 2, R: 5, S: 5, padding: 2"
THREE = "D: 4, H: 32, W: 32, T: 3, R: 3, S: 3, dilation: 6, padding: 6"
UP = "op: conv_transpose, H: 32, W: 32, R: 3, S: 4, stride: 2, padding: 1"
CASES: list[tuple[str, dict[str, Any]]] = [
    (DEAD, {"fitting_DilH": 15, "fitting_PadH": 15, "fitting_PadH_end": 15, "fitting_DilD": 1, "fitting_PadD": 0}),
    (DEAD, {"live_R": 1, "live_PadH": 0, "live_PadH_end": 0, "live_T": 1, "live_PadD": 0}),
    (TINY, {"live_R": 3, "live_PadW": 1, "live_PadW_end": 1, "spatial_filter": True, "padded": True}),
    # uneven: one tap above is dead, none below
    ("H: 8, W: 8, R: 3, S: 3, padding: [5, 0, 0, 0]", {"live_PadH": 5, "live_PadH_end": 0, "has_output": True}),
    (THREE, {"live_T": 1, "live_PadD": 0, "fitting_DilD": 3, "fitting_PadD": 3, "fitting_DilH": 6, "fitting_PadW": 6}),
    (THREE, {"filter_size": "3x3x3", "dilation_size": "6x6x6", "stride_size": "1x1x1", "input_size": "4x32x32"}),
    (THREE + ", C: 3", {"input_shape": "C=3, D=4, H=32, W=32", "padding_sizes": "PadD=6, PadH=6, PadW=6"}),
    ("H: 9, W: 8, R: 3, S: 5, stride: [2, 1], padding: [1, 2]", {"filter_size": "3x5", "stride_size": "2x1"}),
    ("H: 9, W: 8, R: 3, S: 5, padding: [1, 2]", {"padding_sizes": "PadH=1, PadW=2", "input_size": "9x8"}),
    ("dims: 1, W: 8, S: 5, C: 4", {"filter_size": "1x5", "input_shape": "C=4, W=8", "spatial_filter": True}),
    ("H: 9, S: 5", {"filter_size": "?x5", "input_size": "9x?", "input_shape": "C=?, H=9, W=?"}),
    ("R: 1, S: 1, H: 4, W: 4", {"spatial_filter": False, "padded": False, "has_output": True}),
    ("R: 5, S: 5, H: 4, W: 9", {"has_output": False}),
    # known as soon as one decides it
    ("R: 3, H: 4, W: 4", {"spatial_filter": True, "has_output": UNKNOWN}),
    ("R: 1, H: 4, W: 4", {"spatial_filter": UNKNOWN}),
    ("C: 8, K: 12, groups: 4", {"groups_divide": True}),
    ("C: 8, K: 13, groups: 4", {"groups_divide": False}),
    ("C: 9, groups: 4", {"groups_divide": False}),
    ("C: 8, groups: 4", {"groups_divide": UNKNOWN}),
    ("K: 8", {"groups_divide": True, "matches_arriving": True, "arriving_shape": "C=?, H=?, W=?"}),
    (UP, {"even_PadH": 2, "even_PadH_end": 2, "even_OutPadH": 1, "even_PadW": 1, "even_OutPadW": 0}),
    (UP + ", output_padding: 1", {"even_PadH": 1, "even_PadH_end": 1, "even_OutPadH": 0, "even_OutPadW": 1}),
    ("op: conv_transpose, R: 3, S: 3, stride: 2", {"even_PadH": 1, "even_OutPadH": 1}),
    ("op: conv_transpose, S: 3, stride: 2", {"even_PadH": UNKNOWN, "even_PadW": 1}),
]


@pytest.mark.parametrize(("layer", "expected"), CASES)
def test_sizes_of_one_layer(layer: str, expected: dict[str, Any]) -> None:
    found = facts(layer)
    for name, value in expected.items():
        assert found[name] is value if value is UNKNOWN else found[name] == value, name


BEFORE = "name: a, C: 3, H: 32, W: 32, K: 64, kernel_size: 3"


@pytest.mark.parametrize(
    ("layer", "matches", "arriving"),
    [
        ("K: 8, kernel_size: 1", True, "C=64, H=30, W=30"),
        ("input: a, C: 64, H: 30, W: 30", True, "C=64, H=30, W=30"),
        ("input: a, C: 32, H: 30, W: 30", False, "C=64, H=30, W=30"),
        ("input: a, C: 64, H: 31, W: 30", False, "C=64, H=30, W=30"),
        ("input: a, C: 64, H: 30, W: 29", False, "C=64, H=30, W=30"),
    ],
)
def test_what_arrives(layer: str, matches: bool, arriving: str) -> None:
    found = facts(BEFORE, f"name: b, {layer}")
    assert (found["matches_arriving"], found["arriving_shape"]) == (matches, arriving)


def test_what_arrives_is_unknown_where_its_producer_has_no_size() -> None:
    found = facts("name: a, C: 3, K: 64, kernel_size: 3", "name: b, input: a, C: 64, K: 8")
    assert found["matches_arriving"] is UNKNOWN
    assert found["arriving_shape"] == "C=64, H=?, W=?"


# what lies along the columns and rows of the output matrix: (pass, transposed) -> (columns, rows)
SIDES = {
    ("fprop", False): ("K", "N"), ("fprop", True): ("K", "N"), ("dgrad", False): ("C", "N"),
    ("dgrad", True): ("C", "N"), ("wgrad", False): ("K", "C"), ("wgrad", True): ("C", "K"),
}  # fmt: skip


@pytest.mark.parametrize(("which", "transposed"), SIDES)
def test_the_sides_of_a_tile(which: Any, transposed: bool) -> None:
    op = "op: conv_transpose, " if transposed else ""
    found = facts(f"{op}N: 9, C: 1000, H: 14, W: 14, K: 72, R: 3, S: 3, padding: 1, dtype: fp16, layout: NHWC")
    found["tiles_worst"] = found.pass_view(which)
    m, n = found["tiles_worst"].tile_m, found["tiles_worst"].tile_n
    columns, rows = SIDES[which, transposed]
    channels = {"C": 1000, "K": 72, "N": 9 * 14 * 14}
    assert (found["tile_columns"], found["tile_rows"]) == (columns, rows)
    sides = {columns: n, rows: m}
    assert (found["tile_C"], found["tile_K"]) == (sides.get("C", 0), sides.get("K", 0))
    for name, side in (("column", columns), ("row", rows)):
        size, length = channels[side], sides[side]
        assert found[f"tile_{name}_fill"] == pytest.approx(size / (-(-size // length) * length))
    above, below = found["tile_batch_above"], found["tile_batch_below"]
    if rows != "N":
        assert (above, below) == (0, 0)
    else:
        assert below * 196 <= 9 * 196 // m * m < (below + 1) * 196
        assert (above - 1) * 196 < -(-9 * 196 // m) * m <= above * 196


def test_tiles_are_unknown_without_a_prediction_or_where_no_pass_has_the_flaw() -> None:
    unpredicted = facts("C: 64, K: 72, R: 3, S: 3, dtype: fp16")
    tiles = [name for name in VOCABULARY if name.startswith("tile_")]
    assert len(tiles) == 8
    assert all(unpredicted[name] is UNKNOWN for name in tiles)
    assert unpredicted.needs(frozenset(tiles)) == ("N", "H", "W")
    memory_bound = facts("N: 1, C: 8, H: 4, W: 4, K: 8, R: 1, S: 1, dtype: fp16")
    assert memory_bound["tiles_worst"].tile_efficiency == 1
    assert memory_bound["tile_row_fill"] is UNKNOWN


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


sizes = st.integers(1, 40)


@given(
    size=sizes, taps=st.integers(1, 7), stride=st.integers(1, 4), dilation=st.integers(1, 30), pad=st.integers(0, 60)
)
def test_changed_filters_keep_the_output_and_have_no_dead_taps(
    size: int, taps: int, stride: int, dilation: int, pad: int
) -> None:
    found = facts(
        f"H: {size}, W: 64, R: {taps}, S: 1, stride: [{stride}, 1], dilation: {dilation}, padding: [{pad}, 0]"
    )
    if not found["has_output"] or found["live_R"] == 0:
        return

    def changed(taps: int, dilation: int, begin: int, end: int) -> LayerFacts:
        step = f"stride: [{stride}, 1], dilation: {dilation}"
        return facts(f"H: {size}, W: 64, R: {taps}, S: 1, {step}, padding: [{begin}, {end}, 0, 0]")

    begin, end = found["live_PadH"], found["live_PadH_end"]
    if min(begin, end) >= 0:
        live = changed(found["live_R"], dilation, begin, end)
        assert (live["P"], live["dead_taps"]) == (found["P"], 0)
    fitting, begin, end = (found[f"fitting_{name}"] for name in ("DilH", "PadH", "PadH_end"))
    assert fitting <= dilation
    if fitting >= 1 and min(begin, end) > 0:
        fits = changed(taps, fitting, begin, end)
        assert (fits["P"], fits["dead_taps"]) == (found["P"], 0)


@given(size=sizes, taps=st.integers(1, 9), stride=st.integers(2, 4), pad=st.integers(0, 3), extra=st.integers(0, 1))
def test_even_filters_keep_the_output(size: int, taps: int, stride: int, pad: int, extra: int) -> None:
    found = facts(
        f"op: conv_transpose, H: {size}, W: 8, R: {taps}, S: {stride}, stride: {stride}, padding: [{pad}, 0],"
        f" output_padding: [{extra}, 0]"
    )
    raised = -(-taps // stride) * stride
    kept = transposed_output_size(
        size, stride=stride, pad=found["even_PadH"] + found["even_PadH_end"], dilation=1, taps=raised,
        output_padding=found["even_OutPadH"],
    )  # fmt: skip
    assert kept == found["P"]
