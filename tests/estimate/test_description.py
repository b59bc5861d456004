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
