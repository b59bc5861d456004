"""The records of a prediction: the grid of tiles, one pass, one layer, and the limits of the unit that it runs on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from msgspec import Struct

from convlint.model.layer import ConvLayer, Dtype, Gemm, Pass

Basis = Literal["measured", "extrapolated", "assumed"]
BASES: tuple[Basis, ...] = ("measured", "extrapolated", "assumed")  # from the best to the worst
Bound = Literal["compute", "memory", "launch"]


class Roof(Struct, frozen=True, kw_only=True, gc=False):
    """The limits of one kind of arithmetic on one GPU; rates in FLOP/s (int8: OP/s) and bytes/s.

    What is reached is that of the largest tile, without latency, rounds and what tiles or waves leave empty, and of a
    kernel that streams. A pass is above it where it needs less than is counted: fewer multiplications by Winograd and
    FFT, fewer bytes by a stride that skips a part of the input.
    """

    dtype: Dtype  # that is multiplied
    tensor_cores: bool
    fp16_sums: bool  # at a rate of its own: TensorRT on GeForce
    peak: float
    reached: float
    bandwidth: float
    reached_bandwidth: float


class Grid(Struct, frozen=True, gc=False):
    """The products that the tiles of a pass cover: `batch` of M x N each, padded channels included.

    Products are groups, times the taps of wgrad, the phases of a strided dgrad or the points of a transform. Each has
    `rows` x `columns` tiles of `height` x `width`, each of them as often as the reduction is split.
    """

    batch: int
    M: int
    N: int
    height: int
    width: int

    @property
    def rows(self) -> int:
        """Tiles along M."""
        return -(-self.M // self.height)

    @property
    def columns(self) -> int:
        """Tiles along N."""
        return -(-self.N // self.width)


class PassEstimate(Struct, frozen=True, gc=False):
    """One pass of one layer on one GPU. Times in us, sizes in bytes; a wave is SMs times resident tiles.

    `gemm`, `flops`, `bytes` and `arithmetic_intensity` describe the useful work: tensors read once and written once,
    weights counted, no padding. Tiles, waves and times describe what is predicted to run. A pass that runs without
    tiling (depthwise, fallbacks) has tile (1, 1), one thread each, no grid, and nothing lost to quantization.
    """

    gemm: Gemm
    flops: int
    bytes: int
    arithmetic_intensity: float
    compute_dtype: Dtype
    tensor_cores: bool
    algorithm: str  # implicit-gemm, winograd, fft or direct
    tile: tuple[int, int]  # of the output; a fused Winograd kernel's is 8 x 16 positions by 32 channels
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
    peak_share: float  # of what the best unit that convolutions of the compute dtype use does at boost clock, on paper
    bound_by: Bound
    lost_to_tiles_us: float
    lost_to_waves_us: float
    main_loop_steps: int  # granules of the reduction that an unsplit tile works through (of one phase, of one tap)
    overhead_us: float  # launches and setup
    transposes_us: float  # NCHW on Tensor Cores
    padding_us: float  # copies into aligned channels
    unquantized_us: float  # if neither tiles nor waves were wasted, all else equal
    workspace_bytes: int  # what the kernels of this pass keep beside its tensors
    grid: Grid | None
    roof: Roof  # of the unit that it runs on
    computes_longer: bool = True  # than it moves bytes, padding and empty parts of tiles included


class LayerEstimate(Struct, frozen=True, kw_only=True):
    """The passes of one layer that its mode runs.

    `time_us` is the sum over the passes, times the layer's `calls`; `unquantized_us` the same sum if neither tiles nor
    waves were wasted, all else equal. `predicted` is what a call of passes was predicted to take that a trace has of
    this GPU: their estimates are scaled to what it says.
    """

    passes: Mapping[Pass, PassEstimate]
    time_us: float
    unquantized_us: float
    basis: Basis  # of the pass that rests on least
    predicted: Mapping[Pass, float] = {}


# The parts of a step, in the order in which reports name those of equal time.
Part = Literal["convolution", "linear", "attention", "normalisation", "pointwise", "copy", "pool", "optimizer", "other"]
PARTS: tuple[Part, ...] = get_args(Part)


class OperationEstimate(Struct, frozen=True, gc=False):
    """One operation between convolutions on one GPU, forward and, in training, backward.

    Of a compiled network the first operation of a fused kernel has its time and bytes, the others have none.
    """

    part: Part
    time_us: float
    bytes: int
    flops: int
    kernels: int


class StepEstimate(Struct, frozen=True, kw_only=True):
    """A step of a network: what the GPU needs, by part, and what the host needs to start it; times in us.

    `operations` has one entry for each of `Network.operations`: None for convolutions, views and what has no price; one
    without kernels where another's kernel does it too. `unpriced` are the numbers of what has no price;
    `unpriced_share` is theirs of all bytes that are moved. `autocast_assumed`: nobody says whether it is on.
    """

    parts: Mapping[Part, float]
    host_us: float | None  # None where no framework's host is known
    operations: tuple[OperationEstimate | None, ...] = ()
    unpriced: tuple[int, ...] = ()
    unpriced_share: float = 0.0
    autocast_assumed: bool = False

    @property
    def gpu_us(self) -> float:
        """The GPU's time."""
        return sum(self.parts.values())

    @property
    def beside_us(self) -> float:
        """The GPU's time beside the convolutions."""
        return self.gpu_us - self.parts.get("convolution", 0.0)

    @property
    def time_us(self) -> float:
        """The step: the slower of the two sets its pace."""
        return max(self.gpu_us, self.host_us or 0.0)

    @property
    def idle_us(self) -> float:
        """For how long the GPU waits for its host."""
        return self.time_us - self.gpu_us


# Where the model is known to be further off than the 15 % of most layers, and by how much: the accuracy page.
Weakness = Literal["volumes", "transposed groups"]
WEAK: Mapping[Weakness, tuple[float, float]] = {  # most lie between so many times what was measured
    "volumes": (0.7, 1.3),  # in both layouts on two GPUs, after one clock for each
    "transposed groups": (0.6, 1.4),  # in 32 bits, on six GPUs
}


def weakness(layer: ConvLayer) -> Weakness | None:
    """Why times of the layer are known to be further off than those of others; None where they are not."""
    if (layer.D or 1) > 1 or (layer.T or 1) > 1:
        return "volumes"
    in_32_bits = layer.dtype in (Dtype.fp32, Dtype.tf32)
    return "transposed groups" if layer.op == "conv_transpose" and layer.groups > 1 and in_32_bits else None
