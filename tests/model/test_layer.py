"""A layer in the guide's letters: its outputs from its sizes, its kinds, and where its values were written."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace
from sized_layers import RESNET_STEM, layer

from convlint.model.layer import (
    PASSES,
    ConvLayer,
    Dtype,
    Gemm,
    equal_without,
    flops,
    gemm,
    output_size,
    same_padding,
    tensor_elements,
    transposed_output_size,
)
from convlint.model.location import Location


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


def test_what_is_left_out_is_not_shown() -> None:
    assert repr(Noted(text="a", line=7)) == "Noted(text='a')"


@pytest.mark.parametrize(("dilation", "extent"), [(1, 3), (2, 5), (3, 7)])
def test_effective_filter(dilation: int, extent: int) -> None:
    """A 3x3 of dilation 2 covers 5 rows, of dilation 3 covers 7; it needs exactly that much input."""
    assert output_size(extent, stride=1, pad=0, dilation=dilation, taps=3) == 1
    assert output_size(extent - 1, stride=1, pad=0, dilation=dilation, taps=3) == 0


@given(size=st.integers(1, 40), stride=st.integers(1, 4), dilation=st.integers(1, 4), taps=st.integers(1, 7))
def test_same_padding_gives_the_ceiling(size: int, stride: int, dilation: int, taps: int) -> None:
    sides = same_padding(size, stride=stride, dilation=dilation, taps=taps)
    assert sides[1] - sides[0] in (0, 1)
    assert output_size(size, stride=stride, pad=sum(sides), dilation=dilation, taps=taps) == -(-size // stride)


def test_same_padding_of_an_unknown_size() -> None:
    assert same_padding(None, stride=1, dilation=2, taps=3) == (2, 2)
    assert same_padding(None, stride=2, dilation=1, taps=3) is None


@given(
    size=st.integers(1, 40),
    stride=st.integers(1, 4),
    pad=st.integers(0, 4),
    dilation=st.integers(1, 3),
    taps=st.integers(1, 5),
)
def test_a_transposed_convolution_undoes_a_convolution(
    size: int, stride: int, pad: int, dilation: int, taps: int
) -> None:
    out = output_size(size, stride=stride, pad=2 * pad, dilation=dilation, taps=taps)
    rest = (size + 2 * pad - dilation * (taps - 1) - 1) % stride
    back = transposed_output_size(out, stride=stride, pad=2 * pad, dilation=dilation, taps=taps, output_padding=rest)
    assert back == size


@pytest.mark.parametrize(
    ("sizes", "out"),
    [
        (RESNET_STEM, (1, 112, 112)),
        ({"C": 1, "H": 5, "W": 7, "K": 1, "R": 3, "S": 3}, (1, 3, 5)),
        # dilation widens the filter to DilH·(R-1)+1, not DilH·R
        ({"C": 1, "H": 33, "W": 33, "K": 1, "R": 3, "S": 3, "DilH": 12, "DilW": 12,
         "PadH": 12, "PadW": 12}, (1, 33, 33)),
        ({"C": 1, "H": 7, "W": 7, "K": 1, "R": 3, "S": 3, "DilH": 3, "DilW": 3}, (1, 1, 1)),
        # a filter larger than its padded input has no output
        ({"C": 1, "H": 2, "W": 2, "K": 1, "R": 5, "S": 5}, (1, -2, -2)),
        ({"C": 1, "H": 4, "W": 4, "K": 1, "R": 3, "S": 3,
         "PadH": 0, "PadH_end": 1, "PadW": 1, "PadW_end": 0}, (1, 3, 3)),
        ({"dims": 1, "C": 8, "H": 1, "W": 100, "K": 16, "R": 1, "S": 3, "V": 2, "PadW": 1}, (1, 1, 50)),
        (
            {"dims": 3, "C": 8, "D": 16, "H": 56, "W": 56, "K": 8, "T": 3, "R": 3, "S": 3, "StrideD": 2, "PadD": 1,
             "PadH": 1, "PadW": 1},
            (8, 56, 56),
        ),
        ({"op": "conv_transpose", "C": 8, "H": 4, "W": 4, "K": 8, "R": 4, "S": 4, "U": 2, "V": 2,
         "PadH": 1, "PadW": 1}, (1, 8, 8)),
        (
            {"op": "conv_transpose", "C": 8, "H": 7, "W": 7, "K": 8, "R": 3, "S": 3, "U": 2, "V": 2,
             "PadH": 1, "PadW": 1,
             "OutPadH": 1, "OutPadW": 1},
            (1, 14, 14),
        ),
        ({"op": "conv_transpose", "C": 8, "H": 5, "W": 5, "K": 8, "R": 3, "S": 3, "DilH": 2, "DilW": 2}, (1, 9, 9)),
    ],
)  # fmt: skip
def test_output_sizes(sizes: dict[str, Any], out: tuple[int, int, int]) -> None:
    made = layer(**sizes)
    assert out == (made.Z, made.P, made.Q)


def test_an_unknown_part_keeps_the_declared_output() -> None:
    assert layer(C=3, K=64, R=3, S=3, declared_P=10).P == 10
    assert layer(C=3, K=64, R=3, S=3).P is None
    assert layer(C=3, H=8, W=8, K=64, R=3, S=3, PadH=None, declared_P=4).P == 4
    assert layer(C=3, H=8, W=8, K=64, R=3, S=3, declared_P=10).P == 6


def test_locate_takes_the_first_value_that_was_written() -> None:
    made = ConvLayer(name="a", path="net.yaml", spans={"layer": (3, 5, 3, 40), "K": (3, 20, 3, 22)})
    assert made.locate("C", "K") == Location(path="net.yaml", line=3, column=20, end_line=3, end_column=22)
    assert made.locate("C").column == 5
    assert ConvLayer(name="a", path="net.onnx").locate("C") == Location(path="net.onnx")


@pytest.mark.parametrize(
    ("sizes", "depthwise", "pointwise_map"),
    [
        ({"C": 32, "K": 32, "groups": 32}, True, False),
        ({"C": 32, "K": 64, "groups": 32}, True, False),
        ({"C": 32, "K": 32, "groups": 16}, False, False),
        ({"C": 1, "K": 1, "groups": 1}, False, False),
        ({"C": 96, "K": 4, "H": 1, "W": 1, "R": 1, "S": 1}, False, True),
        ({"C": 96, "K": 4, "H": 1, "W": 2, "R": 1, "S": 1}, False, False),
    ],
)
def test_kinds_of_layers(sizes: dict[str, int], depthwise: bool, pointwise_map: bool) -> None:
    made = layer(**sizes)
    assert (made.depthwise, made.pointwise_map) == (depthwise, pointwise_map)


def test_dilation_changes_no_gemm() -> None:
    plain = layer(N=32, C=64, H=56, W=56, K=64, R=3, S=3, PadH=1, PadW=1)
    dilated = layer(N=32, C=64, H=56, W=56, K=64, R=3, S=3, PadH=2, PadW=2, DilH=2, DilW=2)
    assert [gemm(plain, p) for p in PASSES] == [gemm(dilated, p) for p in PASSES]


def test_reduction_of_a_3x3_over_128_channels() -> None:
    found = gemm(layer(N=1, C=128, H=56, W=56, K=64, R=3, S=3, PadH=1, PadW=1), "fprop")
    assert found.K == 1152


def test_arithmetic_intensity_of_the_guides_layer() -> None:
    """3x3, 256x56x56x64 to 256x56x56x128 in fp16: 383.8 FLOPs a byte, 384.0 without the weights."""
    made = layer(N=256, C=64, H=56, W=56, K=128, R=3, S=3, PadH=1, PadW=1, dtype=Dtype.fp16)
    work, elements = flops(made), tensor_elements(made)
    assert elements is not None
    x, w, y = elements
    assert work / (2 * (x + w + y)) == pytest.approx(383.8, abs=0.05)
    assert work / (2 * (x + y)) == pytest.approx(384.0, abs=0.05)


@pytest.mark.parametrize(
    ("sizes", "fprop", "dgrad", "wgrad"),
    [
        (
            RESNET_STEM,
            Gemm(M=256 * 112 * 112, N=64, K=3 * 49),
            Gemm(M=256 * 224 * 224, N=3, K=64 * 49),
            Gemm(M=3 * 49, N=64, K=256 * 112 * 112),
        ),
        (  # grouped: each group has its share of C and K
            {"N": 8, "C": 64, "H": 14, "W": 14, "K": 128, "R": 3, "S": 3, "PadH": 1, "PadW": 1, "groups": 32},
            Gemm(M=8 * 196, N=4, K=2 * 9, batch=32),
            Gemm(M=8 * 196, N=2, K=4 * 9, batch=32),
            Gemm(M=2 * 9, N=4, K=8 * 196, batch=32),
        ),
        (
            {"dims": 1, "N": 4, "C": 8, "H": 1, "W": 100, "K": 16, "R": 1, "S": 5, "V": 2, "PadW": 2},
            Gemm(M=4 * 50, N=16, K=8 * 5),
            Gemm(M=4 * 100, N=8, K=16 * 5),
            Gemm(M=8 * 5, N=16, K=4 * 50),
        ),
        (
            {"dims": 3, "N": 2, "C": 8, "D": 10, "H": 12, "W": 14, "K": 16, "T": 3, "R": 5, "S": 7},
            Gemm(M=2 * 8 * 8 * 8, N=16, K=8 * 105),
            Gemm(M=2 * 10 * 12 * 14, N=8, K=16 * 105),
            Gemm(M=8 * 105, N=16, K=2 * 8 * 8 * 8),
        ),
        (  # the mirror image of a convolution from 64x14x14 to 128x7x7
            {"op": "conv_transpose", "N": 2, "C": 128, "H": 7, "W": 7, "K": 64, "R": 4, "S": 4, "U": 2, "V": 2,
             "PadH": 1, "PadW": 1},
            Gemm(M=2 * 14 * 14, N=64, K=128 * 16),
            Gemm(M=2 * 7 * 7, N=128, K=64 * 16),
            Gemm(M=64 * 16, N=128, K=2 * 7 * 7),
        ),
    ],
)  # fmt: skip
def test_gemms(sizes: dict[str, Any], fprop: Gemm, dgrad: Gemm, wgrad: Gemm) -> None:
    made = layer(**sizes)
    assert gemm(made, "fprop") == fprop
    assert gemm(made, "dgrad") == dgrad
    assert gemm(made, "wgrad") == wgrad


@pytest.mark.parametrize("missing", ["N", "C", "D", "H", "W", "K", "T", "R", "S"])
def test_an_unknown_size_leaves_no_gemm(missing: str) -> None:
    made = replace(layer(**RESNET_STEM), **{missing: None})
    assert [gemm(made, p) for p in PASSES] == [None] * 3
    assert flops(made) is None
    assert tensor_elements(made) is None


def test_a_filter_that_exceeds_its_input_does_nothing() -> None:
    """Two outputs of less than one point are no product of more."""
    made = replace(layer(**RESNET_STEM), P=-3, Q=-3)
    assert [gemm(made, p) for p in PASSES] == [None] * 3
    assert (flops(made), tensor_elements(made)) == (None, None)


sizes = st.fixed_dictionaries(
    {
        "N": st.integers(1, 2), "C": st.integers(1, 4), "K": st.integers(1, 4), "H": st.integers(1, 7),
        "W": st.integers(1, 7), "R": st.integers(1, 3), "S": st.integers(1, 3), "U": st.integers(1, 3),
        "V": st.integers(1, 3), "DilH": st.integers(1, 2), "DilW": st.integers(1, 2), "PadH": st.integers(0, 2),
        "PadH_end": st.integers(0, 2), "PadW": st.integers(0, 2),
    }
)  # fmt: skip


@given(sizes=sizes)
def test_outputs_and_flops_as_counted(sizes: dict[str, int]) -> None:
    """P counts the positions where the filter fits the padded input; FLOPs are two per tap, channel and output."""
    made = layer(**sizes)
    assert made.Q is not None
    extent = made.DilH * (sizes["R"] - 1) + 1
    padded = sizes["H"] + sizes["PadH"] + sizes["PadH_end"]
    assert max(0, made.P) == len(range(0, padded - extent + 1, made.U))
    if made.P > 0 and made.Q > 0:
        counted = 2 * sum(
            sizes["C"] * sizes["K"]
            for _ in product(range(sizes["N"]), range(made.P), range(made.Q), range(sizes["R"]), range(sizes["S"]))
        )
        assert flops(made) == counted
