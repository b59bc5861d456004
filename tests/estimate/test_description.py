"""What is said of a pass: its tiles and waves, and the workspace beside its tensors."""

from __future__ import annotations

import pytest
from convolutions import A100, RUNTIME, conv, fprop

from convlint.estimate import estimate_layer, estimate_pass, workspace_bytes
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import PASSES, Dtype
from convlint.model.runtime import Runtime


def test_aligned_nhwc_needs_no_workspace_and_nchw_that_of_its_copies() -> None:
    assert fprop(conv()).workspace_bytes == 0
    copied = 256 * 64 * 56 * 56 * 2
    assert fprop(conv(layout="NCHW")).workspace_bytes == pytest.approx(copied, rel=0.01)  # of the input


def test_padded_channels_are_copied_at_their_padded_width() -> None:
    assert fprop(conv(C=60)).workspace_bytes == 0  # Ampere reads narrower vectors
    assert fprop(conv(C=60), load_gpu("v100")).workspace_bytes == pytest.approx(256 * 64 * 56 * 56 * 2, rel=0.01)


def test_a_split_reduction_keeps_partial_sums_in_fp32() -> None:
    one = estimate_pass(conv(C=256, K=256, H=7, W=7), "wgrad", A100, RUNTIME)
    assert one is not None
    assert one.split_k > 1
    assert one.workspace_bytes == 4 * one.split_k * 256 * 256 * 9


def test_transforms_keep_their_transformed_tensors() -> None:
    """fp32 on Pascal, whose Winograd and FFT kernels are separate programs."""
    found = {}
    for which in PASSES:
        one = estimate_pass(conv(dtype=Dtype.fp32, layout="NCHW"), which, load_gpu("p100"), RUNTIME)
        assert one is not None
        found[one.algorithm] = one.workspace_bytes
    assert found
    assert all(size > 0 for algorithm, size in found.items() if algorithm == "fft")


def test_the_largest_pass_is_what_a_layer_needs() -> None:
    layer = conv(layout="NCHW")
    whole = estimate_layer(layer, A100, RUNTIME, "training")
    assert whole is not None
    most = max(one.workspace_bytes for one in whole.passes.values())
    assert workspace_bytes(layer, A100, RUNTIME, "training") == most > 0
    assert workspace_bytes(conv(C=None), A100, Runtime(), "training") is None


@pytest.mark.parametrize("gpu", ["a100", "h100", "v100", "k80", "gtx-1080-ti"])
@pytest.mark.parametrize(
    "sizes",
    [
        {"K": 72},
        {"C": 3, "R": 7, "S": 7, "U": 2, "V": 2},
        {"U": 3, "V": 2, "H": 31},
        {"C": 256, "K": 256, "groups": 4},
        {"dtype": Dtype.fp32, "layout": "NCHW", "N": 16},
        {"dtype": Dtype.fp32, "layout": "NCHW", "N": 4, "K": 100},
        {"dtype": Dtype.fp32, "layout": "NCHW", "R": 5, "S": 5},
    ],
)
def test_the_grid_makes_the_tiles_and_covers_all_results(sizes, gpu):
    estimate = estimate_layer(conv(**sizes), load_gpu(gpu), RUNTIME, "training")
    for one in estimate.passes.values():
        grid = one.grid
        assert (grid is None) is (one.algorithm == "direct")
        if grid is not None:
            assert grid.batch * grid.rows * grid.columns * one.split_k == one.tiles
            covered = grid.batch * grid.rows * grid.height * grid.columns * grid.width
            assert grid.batch * grid.M * grid.N <= covered
            assert one.tile_efficiency * covered <= grid.batch * grid.M * grid.N * (1 + 1e-9)


def test_the_fused_winograd_kernel_has_tiles_of_its_own():
    one = fprop(conv(dtype=Dtype.fp32, layout="NCHW", N=4, K=100), load_gpu("v100"))
    assert one.algorithm == "winograd"
    assert one.grid.batch == 1  # not a product for each of 36 points
    assert (one.grid.height, one.grid.width, one.grid.columns) == (128, 32, 4)
    assert one.grid.rows == 4 * 7 * 4  # blocks of 8 x 16 positions on 56x56


def test_the_tile_of_a_fused_winograd_kernel_is_what_it_covers_of_the_output() -> None:
    """8 x 16 positions by 32 channels, as its grid counts them; 128 x 128 only prices its steps."""
    layer = conv(N=4, C=64, K=80, H=28, W=28, dtype=Dtype.fp32, layout="NCHW")
    for which in ("fprop", "dgrad"):
        one = estimate_pass(layer, which, load_gpu("v100"), RUNTIME)
        assert one is not None
        assert one.grid is not None
        assert (one.algorithm, one.tile) == ("winograd", (128, 32))
        assert one.tile == (one.grid.height, one.grid.width)
        assert one.tiles == one.grid.rows * one.grid.columns
