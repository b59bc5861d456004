"""What an estimate says: one `PassEstimate` per pass, one `LayerEstimate` per layer, and the grade."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from convlint.estimate.basis import Basis
from convlint.model.gemm import Gemm
from convlint.model.layer import Dtype, Pass

Bound = Literal["compute", "memory", "launch"]

# Attainable over predicted time, least value of each letter (design: "Grades"); below the last it is F.
GRADES: tuple[tuple[float, str], ...] = ((0.90, "A"), (0.75, "B"), (0.60, "C"), (0.40, "D"))


class PassEstimate(Struct, frozen=True, gc=False):
    """One pass of one layer on one GPU. Times in us, sizes in bytes; a wave is SMs times resident tiles.

    `gemm`, `flops`, `bytes` and `arithmetic_intensity` describe the useful work: tensors read once and written once,
    weights counted, no padding. Tiles, waves and times describe what is predicted to run. A pass that runs without
    tiling (depthwise, fallbacks) has tile (1, 1), one thread each, and nothing lost to quantization.
    """

    gemm: Gemm
    flops: int
    bytes: int
    arithmetic_intensity: float
    compute_dtype: Dtype
    tensor_cores: bool
    algorithm: str  # implicit-gemm, winograd, fft or direct
    tile: tuple[int, int]
    split_k: int
    tiles: int  # batch and split included
    waves: float
    resident_tiles: int  # per SM
    resident_warps: int  # per SM, of those tiles that there are
    last_wave_tiles: int  # in the partly filled last wave; 0 if it is full
    tile_efficiency: float
    wave_efficiency: float
    time_us: float
    tflops: float
    bound_by: Bound
    lost_to_tiles_us: float
    lost_to_waves_us: float
    main_loop_steps: int  # granules of the reduction that an unsplit tile works through (of one phase, of one tap)
    overhead_us: float  # launches and setup
    transposes_us: float  # NCHW on Tensor Cores
    padding_us: float  # copies into aligned channels
    attainable_us: float  # see LayerEstimate


class LayerEstimate(Struct, frozen=True, kw_only=True):
    """The passes of one layer that its mode runs.

    `time_us` is the sum over the passes, times the layer's `calls`. `attainable_us` is the same sum for the best form
    of the same layer: useful FLOPs at the best rate that the GPU's largest tiles sustain, useful bytes at the
    bandwidth that streaming kernels reach, joined as in the model, plus one launch; aligned, NHWC, no quantization.
    """

    passes: Mapping[Pass, PassEstimate]
    time_us: float
    attainable_us: float
    grade: str
    basis: Basis  # of the pass that rests on least


def grade(ratio: float) -> str:
    """The letter of attainable over predicted time."""
    return next((letter for least, letter in GRADES if ratio >= least), "F")
