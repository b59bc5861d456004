"""Norms in PyTorch beyond their bytes, against what single ones took on H200 (PyTorch 2.11, cuDNN 9.19), in us."""

import pytest
from msgspec.structs import replace

from convlint.estimate.board import Board
from convlint.estimate.norms import (
    Norm,
    batch_norm_us,
    group_norm_us,
    instance_norm_us,
    layer_norm_sums_us,
    layer_norm_us,
    stored_norm_us,
)
from convlint.gpus.gpu import load_gpu
from convlint.model.runtime import Version

H100, H200 = Board(load_gpu("h100-sxm")), Board(load_gpu("h200-sxm"))
IMAGES = 128


def norm(channels: int, side: int, *, size: int = 2, in_nhwc: bool = False, **fields: bool) -> Norm:
    how = {"learns": True, "by_cudnn": True} | fields
    return Norm(elements=IMAGES * channels * side**2, positions=side**2, size=size, in_nhwc=in_nhwc, **how)


@pytest.mark.parametrize(
    ("channels", "side", "size", "forward", "back"),
    [
        (64, 112, 2, 1168, 2249), (64, 112, 4, 914, 2328), (256, 56, 2, 413, 650), (256, 56, 4, 407, 742),
        (512, 28, 2, 199, 207), (512, 28, 4, 199, 289),
    ],
)  # fmt: skip
def test_a_channel_of_a_batch_is_one_block(channels: int, side: int, size: int, forward: float, back: float) -> None:
    one = norm(channels, side, size=size)
    for us, way in (forward, True), (back, False):
        assert batch_norm_us(one, IMAGES * side**2, H200, forward=way) == pytest.approx(us, rel=0.22)


@pytest.mark.parametrize(
    ("channels", "side", "forward", "back"),
    [
        (64, 112, 670 + 115, 1463), (64, 56, 161 + 29, 413), (128, 28, 36 + 14, 87), (256, 56, 200 + 132, 460),
        (256, 14, 12 + 12, 31), (512, 28, 68 + 71, 165), (512, 7, 8 + 21, 14), (1024, 14, 34 + 42, 87),
        (2048, 7, 26 + 81, 47),
    ],
)  # fmt: skip
def test_a_channel_of_pytorchs_own_batch_norm_is_one_block(
    channels: int, side: int, forward: float, back: float
) -> None:
    """64 images in bf16 on H100, PyTorch 2.11, from a trace of ResNet-50's training."""
    one = replace(norm(channels, side, by_cudnn=False), elements=64 * channels * side**2)
    for us, way in (forward, True), (back, False):
        assert batch_norm_us(one, 64 * side**2, H100, forward=way) == pytest.approx(us, rel=0.2)


def test_an_sm_of_turing_runs_half_as_many_blocks_at_once() -> None:
    one = replace(norm(4096, 14, by_cudnn=False), elements=64 * 4096 * 14**2)
    a100, t4 = Board(load_gpu("a100")), Board(load_gpu("t4"))
    ours, its = (batch_norm_us(one, 64 * 14**2, board, forward=False) * board.clocks_per_us for board in (t4, a100))
    assert ours / its == pytest.approx((2.9 + 2 * 0.9) * 2 / (2.9 + 4 * 0.9), rel=0.03)


def test_of_unknown_sizes_a_batch_norm_is_one_of_resnets() -> None:
    one = norm(256, 56, by_cudnn=False)
    for way in True, False:
        known = batch_norm_us(one, IMAGES * 56**2, H100, forward=way)
        for unknown, channel in (one, 0.0), (replace(one, positions=0), 9.0):
            assert batch_norm_us(unknown, channel, H100, forward=way) == pytest.approx(known, rel=0.5)
    pascal = Board(load_gpu("gtx-1080-ti"))
    assert batch_norm_us(one, 9.0, pascal, forward=True) == batch_norm_us(one, 0.0, pascal, forward=True)


def test_vectors_are_in_nhwc() -> None:
    one = norm(4096, 1, by_cudnn=False)
    for way in True, False:
        ours = [batch_norm_us(replace(one, in_nhwc=in_nhwc), 128, H100, forward=way) for in_nhwc in (False, True)]
        assert ours[0] == ours[1] > 0


def test_small_channels_are_held_and_bytes_alone_count() -> None:
    assert batch_norm_us(norm(2048, 7), IMAGES * 49, H200, forward=True) == 0.0
    assert batch_norm_us(norm(64, 112, in_nhwc=True), IMAGES * 112**2, H200, forward=True) == 0.0
    assert batch_norm_us(norm(64, 112), 0.0, H200, forward=True) == 0.0  # nobody says how many channels there are


@pytest.mark.parametrize(
    ("in_nhwc", "learns", "us"), [(False, False, 293), (False, True, 798), (True, False, 699), (True, True, 855)]
)
def test_the_way_back_of_stored_statistics_is_pytorchs_own(in_nhwc: bool, learns: bool, us: float) -> None:
    """Of 256 channels of 56x56; in NHWC the copy of the gradient comes on top, as networks showed."""
    back = stored_norm_us(norm(256, 56, in_nhwc=in_nhwc, learns=learns), H200, forward=False)
    assert 0.9 * us < back < 2 * us
    assert back == stored_norm_us(norm(256, 56, in_nhwc=in_nhwc, learns=learns, size=4), H200, forward=False)


def test_stored_statistics_forward() -> None:
    assert 0.9 < stored_norm_us(norm(256, 56), H200, forward=True) / 240 < 1.3
    assert stored_norm_us(norm(256, 56, size=8), H200, forward=True) == 0.0  # fp64: nothing was timed
    own = stored_norm_us(norm(256, 56, in_nhwc=True, by_cudnn=False), H200, forward=True)
    assert own < stored_norm_us(norm(256, 56, in_nhwc=True), H200, forward=True)


def test_an_instance_norm_of_few_channels_leaves_sms_idle() -> None:
    positions = 128**3
    two, eight = (
        instance_norm_us(
            Norm(elements=32 * images * positions, positions=positions, size=2, in_nhwc=False, learns=True,
                 by_cudnn=True),
            H200, forward=True,
        )
        for images in (2, 8)
    )  # fmt: skip
    assert two == pytest.approx(1430, rel=0.2)
    assert eight < 2.5 * two
    fp64 = Norm(elements=1e9, positions=positions, size=8, in_nhwc=False, learns=True, by_cudnn=True)
    assert instance_norm_us(fp64, H200, forward=True) == 0.0


def test_a_group_norm_takes_clocks_for_its_elements() -> None:
    many = 4096.0
    assert group_norm_us(1e9, many, 4, H200, forward=True) > group_norm_us(1e9, many, 2, H200, forward=True) > 0
    assert group_norm_us(1e9, many, 4, H200, forward=True) == group_norm_us(1e9, 0.0, 4, H200, forward=True)
    assert group_norm_us(1e9, many, 8, H200, forward=True) == 0.0  # fp64: nothing was timed
    assert group_norm_us(1e9, many, 4, Board(load_gpu("k80")), forward=True) == 0.0  # nor there


@pytest.mark.parametrize(
    ("gpu", "channels", "side", "us"),
    [
        ("h100-sxm", 18, 512, 793), ("h100-sxm", 18, 127, 33),
        ("a100", 18, 512, 1119), ("a100", 48, 127, 188), ("a100", 18, 127, 44),
    ],
)  # fmt: skip
def test_few_groups_leave_sms_idle(gpu: str, channels: int, side: int, us: float) -> None:
    """13 images in bf16, as published in pull requests 182907 and 183946 of PyTorch; 6 groups are assumed."""
    elements = 13 * channels * side**2
    board = Board(load_gpu(gpu))
    assert group_norm_us(elements, 13 * 6, 2, board, forward=True) == pytest.approx(us, rel=0.14)
    assert group_norm_us(elements, 13, 2, board, forward=True) > 3 * us
    back = group_norm_us(elements, 13, 2, board, forward=False)
    assert back == group_norm_us(elements, 13 * 6, 2, board, forward=False)


@pytest.mark.parametrize(("rows", "channels", "us"), [(25_216, 384, 53), (401_408, 96, 660)])
def test_the_rows_of_layer_norms(rows: int, channels: int, us: float) -> None:
    """ViT-S's, and ConvNeXt-T's first stage, in fp32, forward."""
    streamed_us = 8 * rows * channels * H200.us_per_byte
    assert layer_norm_us(rows, H200, forward=True) + streamed_us == pytest.approx(us, rel=0.15)


def test_the_gradients_of_a_layer_norms_weights() -> None:
    """25,216 rows of ViT-S took 94 us of 12 blocks; from PyTorch 2.8 on more than 65,536 rows have more of them."""
    assert layer_norm_sums_us(25_216, 0.0, None, H200) == pytest.approx(94, rel=0.05)
    assert layer_norm_sums_us(25_216, 1e6, None, H200) == 0.0
    latest, same, before = (
        layer_norm_sums_us(401_408, 0.0, version, H200) for version in (None, Version("2.8"), Version("2.7.1"))
    )
    assert latest == same < before / 5
    assert before == pytest.approx(16 * layer_norm_sums_us(25_088, 0.0, Version("2.7.1"), H200))
