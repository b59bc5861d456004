"""The fastest program for a GEMM: tiles that fit, splits, and rounds of resident tiles."""

from __future__ import annotations

import pytest
from convolutions import A100, FIRST, conv, fprop

from convlint.gpus.gpu import load_gpu
from convlint.model.layer import Dtype


def test_few_tiles_leave_sms_idle_and_a_larger_batch_fills_them():
    one, many = (fprop(conv(N=n, C=256, K=256, H=14, W=14)) for n in (1, 64))
    assert one.tiles < A100.sms
    assert one.lost_to_waves_us > 0
    assert one.tflops < 0.3 * many.tflops


def test_kepler_holds_the_tiles_that_its_registers_hold():
    layer = conv(dtype=Dtype.fp32, R=1, S=1, C=512, K=512)
    gk104, gk110, gk210 = (fprop(layer, load_gpu(name)) for name in ("gtx-680", "k40", "k80"))
    assert gk104.tile[0] * gk104.tile[1] <= 32 * 256  # 63 registers a thread hold no 64 sums
    assert gk110.resident_tiles * gk110.tile[0] * gk110.tile[1] <= 32768
    assert gk210.resident_tiles * gk210.tile[0] * gk210.tile[1] > 32768  # GK210 has twice the registers
    small = fprop(conv(N=1, dtype=Dtype.fp32, H=7, W=7, R=1, S=1), load_gpu("k40"))
    assert small.resident_warps < gk110.resident_warps


@pytest.mark.parametrize("gpu", ["h100", "b200"])
def test_few_filters_run_in_narrow_tiles_since_hopper(gpu):
    """ResNet-50's layers of 64 channels leave no tile half empty."""
    for layer in (conv(), conv(C=256, R=1, S=1), conv(N=32), conv(C=3, **FIRST)):
        estimate = fprop(layer, load_gpu(gpu))
        assert estimate.tile[1] == 64
        assert estimate.tile_efficiency > 0.95
