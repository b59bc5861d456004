"""Sizes as a message prints them, and whether they agree with each other and with what arrives."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from layer_facts import facts

from convlint.facts.layer import LayerFacts
from convlint.facts.quantity import UNKNOWN
from convlint.facts.sizes import NAMES, SIZES, values_of
from convlint.model.layer import ConvLayer, Mode, transposed_output_size


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


SHAPES: list[tuple[str, dict[str, Any]]] = [
    ("C: 64, K: 96, groups: 4", {"C_group": 16, "K_group": 24, "depthwise": False}),
    ("C: 64, K: 128, groups: 64", {"C_group": 1, "K_group": 2, "depthwise": True}),
    ("K: 128, groups: 64", {"C_group": UNKNOWN, "K_group": 2, "depthwise": False}),
    ("R: 3, S: 5, dilation: [2, 3]", {"extent_R": 5, "extent_S": 13, "extent_T": 1}),
    ("S: 5, dilation: [2, 3]", {"extent_R": UNKNOWN, "extent_S": 13}),
    ("N: 2, C: 3, H: 8, W: 9, K: 4, R: 3, S: 3", {"NPQ": 2 * 6 * 7, "dead_taps": 0}),
    ("C: 3, H: 8, W: 9, K: 4, R: 3, S: 3", {"NPQ": UNKNOWN}),
    # of 3x3 taps 18 apart on 16x16, all but the middle one read padding
    ("H: 16, W: 16, R: 3, S: 3, dilation: 18, padding: 18", {"dead_taps": 8, "live_R": 1, "live_S": 1}),
    # every tap of a transposed convolution reads input
    ("op: conv_transpose, H: 2, W: 2, R: 9, S: 9, padding: 4", {"live_R": 9, "dead_taps": 0, "transposed": True}),
    ("op: conv_transpose, R: 9", {"live_R": 9, "live_S": UNKNOWN, "dead_taps": UNKNOWN}),
    ("H: 1, W: 1, R: 1, S: 1", {"pointwise_map": True, "connected": False}),
    ("H: 2, W: 1, R: 1, S: 1", {"pointwise_map": False}),
    ("W: 1, R: 1, S: 1", {"pointwise_map": UNKNOWN}),  # may be squeeze-and-excite's
    ("W: 1, R: 3, S: 3", {"pointwise_map": False}),
]
THREE = "D: 4, H: 32, W: 32, T: 3, R: 3, S: 3, dilation: 6, padding: 6"
SIZES_SHOWN: list[tuple[str, dict[str, Any]]] = [
    (THREE, {"filter_size": "3x3x3", "dilation_size": "6x6x6", "stride_size": "1x1x1", "input_size": "4x32x32"}),
    (THREE + ", C: 3", {"input_shape": "C=3, D=4, H=32, W=32", "padding_sizes": "PadD=6, PadH=6, PadW=6"}),
    ("H: 9, W: 8, R: 3, S: 5, stride: [2, 1], padding: [1, 2]", {"filter_size": "3x5", "stride_size": "2x1"}),
    ("H: 9, W: 8, R: 3, S: 5, padding: [1, 2]", {"padding_sizes": "PadH=1, PadW=2", "input_size": "9x8"}),
    ("dims: 1, W: 8, S: 5, C: 4", {"filter_size": "1x5", "input_shape": "C=4, W=8"}),
    ("H: 9, S: 5", {"filter_size": "?x5", "input_size": "9x?", "input_shape": "C=?, H=9, W=?"}),
    ("C: 8, K: 12, groups: 4", {"groups_divide": True}),
    ("C: 8, K: 13, groups: 4", {"groups_divide": False}),
    ("C: 9, groups: 4", {"groups_divide": False}),
    ("C: 8, groups: 4", {"groups_divide": UNKNOWN}),
    ("K: 8", {"groups_divide": True, "matches_arriving": True, "arriving_shape": "C=?, H=?, W=?"}),
]


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


DEAD = "H: 16, W: 16, R: 3, S: 3, dilation: 24, padding: 24"
TINY = "H: 2, W: 2, R: 5, S: 5, padding: 2"
UP = "op: conv_transpose, H: 32, W: 32, R: 3, S: 4, stride: 2, padding: 1"
TAPS: list[tuple[str, dict[str, Any]]] = [
    (DEAD, {"fitting_DilH": 8, "fitting_PadH": 8, "fitting_PadH_end": 8, "fitting_DilD": 1, "fitting_PadD": 0}),
    (DEAD, {"live_R": 1, "live_PadH": 0, "live_PadH_end": 0, "live_T": 1, "live_PadD": 0}),
    (TINY, {"live_R": 3, "live_PadW": 1, "live_PadW_end": 1, "spatial_filter": True, "padded": True}),
    # only the tap above reads padding alone, and no window reaches what is padded below
    ("H: 2, W: 2, R: 3, S: 3, stride: 4, padding: 1", {"live_R": 2, "live_PadH": 0, "live_PadH_end": 0, "P": 1}),
    ("H: 2, W: 2, R: 3, S: 3, stride: 2, padding: 1", {"live_S": 2, "live_PadW": 0, "live_PadW_end": 0, "Q": 1}),
    # uneven: one tap above is dead, none below
    ("H: 8, W: 8, R: 3, S: 3, padding: [5, 0, 0, 0]", {"live_PadH": 5, "live_PadH_end": 0, "has_output": True}),
    (THREE, {"live_T": 1, "live_PadD": 0, "fitting_DilD": 2, "fitting_PadD": 2, "fitting_DilH": 6, "fitting_PadW": 6}),
    ("R: 1, S: 1, H: 4, W: 4", {"spatial_filter": False, "padded": False, "has_output": True}),
    ("R: 5, S: 5, H: 4, W: 9", {"has_output": False}),
    # known as soon as one decides it
    ("R: 3, H: 4, W: 4", {"spatial_filter": True, "has_output": UNKNOWN}),
    ("R: 1, H: 4, W: 4", {"spatial_filter": UNKNOWN}),
    (UP, {"even_PadH": 2, "even_PadH_end": 2, "even_OutPadH": 1, "even_PadW": 1, "even_OutPadW": 0}),
    (UP + ", output_padding: 1", {"even_PadH": 1, "even_PadH_end": 1, "even_OutPadH": 0, "even_OutPadW": 1}),
    ("op: conv_transpose, R: 3, S: 3, stride: 2", {"even_PadH": 1, "even_OutPadH": 1}),
    ("op: conv_transpose, S: 3, stride: 2", {"even_PadH": UNKNOWN, "even_PadW": 1}),
]


@pytest.mark.parametrize(("layer", "expected"), [*SHAPES, *SIZES_SHOWN, *TAPS])
def test_what_follows_from_the_sizes_of_one_layer(layer: str, expected: dict[str, Any]) -> None:
    found = facts(layer)
    for name, value in expected.items():
        assert found[name] is value if value is UNKNOWN else found[name] == value, name


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
        # No tap reads input for half of the outputs where padding makes most of these.
        for tap in (0, taps - 1) if fitting < dilation and found["P"] * stride <= size else ():
            reads = [0 <= row * stride - begin + tap * fitting < size for row in range(found["P"])]
            assert sum(reads) >= found["P"] // 2


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


FROM = "name: a, N: 1, C: 3, H: 32, W: 32, K: 64, kernel_size: 3"


def test_a_layer_that_stands_alone_is_reached_by_nothing() -> None:
    assert facts(FROM)["arriving"] is UNKNOWN
    assert facts(FROM)["connected"] is False


@pytest.mark.parametrize(
    ("producer", "layout", "arrives", "layout_of", "grouped"),
    [
        ("layout: NHWC", "NHWC", "NHWC", "a", False),
        ("layout: NCHW", "NHWC", "NCHW", "a", False),
        ("layout: NCHW, groups: 3, K: 63", "NHWC", "NCHW", "a", False),  # depthwise is not grouped
        ("layout: NCHW, C: 4, groups: 2", "NHWC", "NCHW", "a", True),
        ("layout: auto", "NHWC", "NHWC", "a", False),  # the framework's business
        ("layout: NCHW", "auto", "auto", "a", False),
    ],
)
def test_the_layout_that_differs(producer: str, layout: str, arrives: str, layout_of: str, grouped: bool) -> None:
    given = dict(part.split(": ") for part in f"{FROM}, {producer}".split(", "))
    found = facts(", ".join(f"{key}: {value}" for key, value in given.items()), f"name: b, K: 8, layout: {layout}")
    seen = found["arriving"]
    assert (seen.layout, seen.layout_of, seen.grouped, seen.source) == (arrives, layout_of, grouped, "a")
    assert (int(given["K"]), 30, 30) == (seen.C, seen.H, seen.W)


def test_sizes_that_a_producer_lacks_are_unknown() -> None:
    seen = facts("name: a, C: 3, K: 64, kernel_size: 3", "name: b, input: a, K: 8")["arriving"]
    assert seen.C == 64
    assert seen.H is UNKNOWN


LACKING = frozenset(("lacking",))


@pytest.mark.parametrize(
    ("dtype", "runtime", "mode", "gpu", "expected"),
    [
        ("fp8", "framework: pytorch", "training", "b200", True),
        ("fp8", "framework: pytorch", "inference", "h100-sxm", True),
        ("fp8", "framework: pytorch", "inference", "b200", False),
        ("fp8", "framework: tensorrt", "inference", "h100-sxm", False),
        ("int8", "framework: pytorch", "inference", "t4", True),
        ("int8", "cudnn_benchmark: true", "inference", "t4", True),  # PyTorch's, whose setting it is
        ("int8", "framework: tensorrt", "inference", "t4", False),
        ("int8", "", "training", "t4", True),  # nowhere
        ("int8", "framework: onnxruntime", "inference", "t4", True),
        ("int8", "framework: onnxruntime, tensorrt: '10.3'", "inference", "t4", False),
        ("fp16", "framework: tensorrt", "training", "t4", True),
        ("fp64", "framework: tensorrt", "inference", "a100", True),
        ("fp16", "framework: pytorch", "training", "t4", False),
        ("fp8", "framework: tensorflow", "inference", "h100-sxm", True),
        ("int8", "framework: pytorch", "training", "t4", True),
        ("bf16", "framework: mxnet", "training", "a100", True),
        ("fp16", "", "training", "t4", False),  # all have it
        ("fp8", "", "inference", "h100-sxm", UNKNOWN),
        ("int8", "", "inference", "t4", UNKNOWN),
    ],
)
def test_what_is_lacking(dtype: str, runtime: str, mode: Mode, gpu: str, expected: object) -> None:
    found = facts(f"name: a, dtype: {dtype}", gpu=gpu, runtime=runtime, mode=mode)
    assert found["lacking"] is expected
    says, fix = found["lacking_says"], found["lacking_fix"]
    assert (says is not UNKNOWN) == (fix is not UNKNOWN) == (expected is True)
    assert found.needs(LACKING) == (("runtime.framework",) if expected is UNKNOWN else ())


def test_without_a_dtype_it_is_the_dtype_that_is_needed() -> None:
    found = facts("name: a", runtime="framework: pytorch")
    assert found["lacking"] is UNKNOWN
    assert found.needs(LACKING) == ("dtype",)


def test_what_the_framework_has_instead() -> None:
    assert facts("name: a, dtype: fp8", runtime="framework: pytorch")["lacking_instead"] == "fp16"
    assert facts("name: a, dtype: fp16", runtime="framework: tensorrt")["lacking_instead"] is UNKNOWN


def test_the_one_mode_that_is_lacking() -> None:
    assert facts("name: a, dtype: int8", gpu="t4")["lacking_mode"] == "training"
    assert facts("name: a, dtype: int8", gpu="t4", runtime="framework: pytorch")["lacking_mode"] is UNKNOWN  # both
    assert facts("name: a, dtype: fp8", gpu="b200", runtime="framework: pytorch")["lacking_mode"] == "training"
