"""The implicit GEMMs and FLOPs of layers, against numbers worked out by hand and against counting every tap."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from sized_layers import RESNET_STEM, layer

from convlint.model.layer import PASSES, Dtype, Gemm, flops, gemm, tensor_elements


def test_dilation_changes_no_gemm() -> None:
    plain = layer(N=32, C=64, H=56, W=56, K=64, R=3, S=3, PadH=1, PadW=1)
    dilated = layer(N=32, C=64, H=56, W=56, K=64, R=3, S=3, PadH=2, PadW=2, DilH=2, DilW=2)
    assert [gemm(plain, p) for p in PASSES] == [gemm(dilated, p) for p in PASSES]


def test_reduction_of_a_3x3_over_128_channels() -> None:
    found = gemm(layer(N=1, C=128, H=56, W=56, K=64, R=3, S=3, PadH=1, PadW=1), "fprop")
    assert found is not None
    assert found.K == 1152


def test_arithmetic_intensity_of_the_guides_layer() -> None:
    """3x3, 256x56x56x64 to 256x56x56x128 in fp16: 383.8 FLOPs a byte, 384.0 without the weights."""
    made = layer(N=256, C=64, H=56, W=56, K=128, R=3, S=3, PadH=1, PadW=1, dtype=Dtype.fp16)
    work, elements = flops(made), tensor_elements(made)
    assert work is not None
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
    assert made.P is not None
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
