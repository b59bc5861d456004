"""One axis of a convolution: output sizes and padding, against their definitions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convlint.model.geometry import output_size, same_padding, transposed_output_size


@pytest.mark.parametrize(("dilation", "extent"), [(1, 3), (2, 5), (3, 7)])
def test_effective_filter(dilation: int, extent: int) -> None:
    """A 3x3 of dilation 2 covers 5 rows, of dilation 3 covers 7; it needs exactly that much input."""
    assert output_size(extent, stride=1, pad=0, dilation=dilation, taps=3) == 1
    assert output_size(extent - 1, stride=1, pad=0, dilation=dilation, taps=3) == 0


@given(size=st.integers(1, 40), stride=st.integers(1, 4), dilation=st.integers(1, 4), taps=st.integers(1, 7))
def test_same_padding_gives_the_ceiling(size: int, stride: int, dilation: int, taps: int) -> None:
    sides = same_padding(size, stride=stride, dilation=dilation, taps=taps)
    assert sides is not None
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
