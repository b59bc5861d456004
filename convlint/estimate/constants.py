"""The constants of the cost model: one `Family` per kind of arithmetic unit and GPU generation.

Where a number comes from is written beside it: "fit" means fitted by `benchmarks/fit.py` on the public rows that
`benchmarks/README.md` names, "hardware" and "library" mean read in NVIDIA's documents, "assumed" that no timing at
hand speaks about it. A Python table, not YAML: it is read at every start.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from convlint.gpus.gpu import Factors
from convlint.model.layer import Pass
from convlint.model.runtime import Version


def unchanged_since(cc: Version) -> tuple[int, int]:
    """The first version of convlint whose predictions for a compute capability are those of today.

    Timings that were held against earlier ones say nothing of how far today's are off: whoever changes any raises it.
    """
    return (0, 4) if cc == "8.7" or "9.0" <= cc < "12.0" else (0, 2)


Tile = tuple[int, int]
# How a pass may split its reduction: not at all; while the unsplit tiles leave SMs idle; freely; up to one tile per SM.
Split = Literal["never", "idle", "free", "one"]

# The exponent that joins compute and memory time: between 1 (no overlap) and infinity (perfect overlap). Fit.
OVERLAP: Final = 1.7
# The same for the steps of resident tiles against the latency of a load. Fit.
LATENCY_OVERLAP: Final = 4.0
# Share of the DRAM bandwidth that streaming kernels reach; copies, transposes and depthwise kernels reach less. Fit.
STREAM_BANDWIDTH: Final = 0.85
STREAMED: Final = 0.95  # of pointwise kernels between convolutions. Fit: the networks of RTX 3090 and 4090
COPY_BANDWIDTH: Final = 0.60
MODERN_COPY_BANDWIDTH: Final = 0.80  # from cc 8.0 on. Fit: 1-D layers on H100 (KernelBench)
COPY_IN_L2: Final = 0.6  # share of L2 in which copies, and what was written last, stay, cc 8.0 on. Fit: a trace of A100
# Bytes that a stream moves in the time of one element's copy between layouts by PyTorch itself: 8 at 0.65 of the
# bandwidth on paper, in 16 bits too. Seen in five networks with GroupNorm on RTX 3090 and 4090 (benchmarks/steps.py).
PERMUTED_BYTES: Final = 10.5
# Clocks of one SM for it, where memory is faster. Fit: what a U-Net with InstanceNorm loses in channels_last on H200,
# PyTorch 2.11 (volumes take 2.7); of RTX 3090 the bytes above are 1.8.
PERMUTED_CLOCKS: Final = 1.75
# How many times longer 16-bit volumes take in PyTorch 2.9 without cuDNN: 4 under AMP (pytorch#166122, nnU-Net and
# single layers, the GPU is not named), 10 to 20 for patch embeddings (#174051). The least of them.
VOLUMES_WITHOUT_CUDNN: Final = 4.0
# The same of dilated layers where cuDNN has to be deterministic, before PyTorch 2.8: 10 to 80 (pytorch#28777; the GPU
# is not named, and nothing waited for it). The least of them.
DILATED_WITHOUT_CUDNN: Final = 10.0
# A pass below the ratio of arithmetic to bandwidth is bound by memory where its bytes and copies take so much of its
# time at least; else its kernel is, which people take for compute.
LEAST_OF_MOVING: Final = 1 / 2
# One transpose or padding kernel beside its bytes, in us. Assumed; reproduces V100's published NCHW ratios.
COPY_KERNEL_US: Final = 5.0
# A kernel that moves little, and the way to the next one's first bytes, of what the host has queued. Fit: networks of
# one image as CUDA graphs on H100, whose kernels alone take two thirds of it.
KERNEL_US: Final = 3.0
# From cc 8.0 on: the shortest transposes in traces of A100 and H100 take 2.2 us, memory's time included.
MODERN_COPY_KERNEL_US: Final = 2.0
# On cc 9.0 transposes and copies that pad take so long beside their bytes, which transposes of 16 bits move at 0.66 of
# the bandwidth, and padding at 0.31, also where L2 holds them. Fit: layers with and without on H100, cuDNN 9.19
# (`measured_h100-sxm.csv`).
HOPPER_TURN_US: Final = 3.0
HOPPER_PAD_US: Final = 5.0
HOPPER_TURNS_SLOWER: Final = MODERN_COPY_BANDWIDTH / 0.66
HOPPER_PADS_SLOWER: Final = MODERN_COPY_BANDWIDTH / 0.31
# XLA pads channels of fp16 itself while no tensor grows by more than this (its `kMaxBytesTouchedBound`).
XLA_PADS_TO: Final = 1.35
# cuDNN's nchwToNhwcKernel moves tiles of so many positions and channels of one image, as its grids say: 1568 x 1 x 4
# blocks for four images of 3 x 224 x 224, 8 x 1 x 768 for the weights of 768 filters of 3 x 16 x 16.
TRANSPOSE_TILE: Final = 32
# Bytes of such tiles, read and written, per clock and SM, where L2 holds the tensors. Fit: traces of AlexNet on A100
# (14.8, fp32) and of a ViT's patch embedding on H100 (12.4, bf16).
TRANSPOSE_BYTES_PER_CLOCK: Final = 13.0
# Share of the fp32 peak that kernels without Tensor Cores and without tiling reach (padded 1x1, narrow groups). Fit.
DIRECT_SHARE: Final = 0.24
# On V100 and T4, wgrad with C = 8 runs on CUDA cores, where that is faster, if the filter has more taps: 5x20 does, 5x5
# and 3x3 take a Tensor Core GEMM per tap, mostly padding. Fit.
MOST_TAPS: Final = 64
# Share of the packed fp16 rate (twice fp32's) that Turing's dgrad of a strided 1x1 reaches without Tensor Cores. Fit.
STRIDED_POINTWISE_SHARE: Final = 0.9
# Share of the fp32 peak that dgrad into at most 4 channels reaches at best. Fit.
NARROW_DGRAD_SHARE: Final = 0.14
# Winograd's F(4x4, 3x3) needs 4 times fewer multiplications: CUDA cores slower than this lose to Tensor Cores anyhow.
WINOGRAD_GAIN: Final = 4.0
# FLOPs per clock and SM of kernels that do not tile: cuDNN's direct one for the dgrad of strided groups in fp32. Fit:
# KernelBench's grouped transposed layers (8 and 16 channels a group), which lie between 4 and 9 on all six GPUs.
GROUPED_DIRECT: Final = 7.0
# The same for dgrad and wgrad of groups in 16 bits and NHWC that have no Tensor Core kernel. Those that have one are of
# 4 or 8 channels where all channels are a multiple of 32, or of a higher power of two in multiples of 32 groups, as
# ResNeXt's. Fit: 57 networks with groups on RTX 3090 (pytorch-image-models, PyTorch 1.12), of which RegNets and NFNets
# train up to 4 times slower in NHWC.
OTHER_GROUPS: Final = 18.0
WIDE_GROUP: Final = 128  # channels, as NFNets have, whose gradients reach more
WIDE_GROUPS: Final = 26.0
GROUPS_AT_ONCE: Final = 32  # or channels of narrow ones
# The same before cuDNN 8 on Volta and Turing, of groups so wide, in fprop, dgrad and wgrad: V100 with cuDNN 7.6.3 took
# 47.3 ms forward and 97.0 for wgrad of 100 x 2048 x 14 x 14, 32 groups, 3x3, stride 2, in direct kernels (a profile in
# pytorch/pytorch#34977), where nobody complained of the network's layers with 8 to 32 channels a group. dgrad was not
# timed. On Ampere cuDNN 8.3 has kernels for both.
SLOW_GROUP_BEFORE_CUDNN_8: Final = 64
GROUPS_BEFORE_CUDNN_8: Final = (2.0, 2.0, 1.0)
# Groups on cc 9.0 in PyTorch, by the layout of the kernel, what multiplies, the width of a group ("pair": 2 channels,
# "narrow": 4 to 16, "wide": more, in powers of two; "odd" and "wide odd": others, also of unlike widths, below 64
# channels and from 64 on) and whether the layer is strided: the least us of a kernel; the power of the channels of a
# group that rates grow by; and FLOPs per clock and SM in fprop, dgrad and wgrad for one channel. 0: tiles predict it as
# well. Fit: half of the shapes of groups timed on H100 and H200 (cuDNN 9.19), of fewer than 10 all. fp32 was timed with
# up to 32 channels; what tiles need is the least from there on.
PAIR: Final = 2
WIDE_ODD_GROUP: Final = 64
GroupTimes = tuple[float, float, tuple[float, float, float]]
HOPPER_GROUPS: Final[dict[tuple[str, str, str, bool], GroupTimes]] = {
    ("NHWC", "16 bits", "pair", False): (15, 0, (2.4, 3.9, 3.9)),
    ("NHWC", "16 bits", "pair", True): (20, 0, (1.9, 1.5, 1.7)),
    ("NHWC", "16 bits", "narrow", False): (5, 1.25, (13.9, 12.5, 0)),
    ("NHWC", "16 bits", "narrow", True): (5, 1.25, (12, 3.4, 0)),
    ("NHWC", "16 bits", "wide", True): (15, 0.5, (0, 28.2, 0)),
    ("NHWC", "tf32", "pair", False): (40, 0, (3.7, 2.5, 1.5)),
    ("NHWC", "tf32", "narrow", False): (10, 1, (15.7, 14.7, 4)),
    ("NHWC", "tf32", "narrow", True): (10, 1, (15.7, 1.6, 2.8)),
    ("NHWC", "tf32", "wide", False): (20, 0.5, (0, 0, 31)),
    ("NHWC", "tf32", "wide", True): (20, 1, (0, 1.5, 2.3)),
    ("NHWC", "fp32", "any", False): (5, 1, (1.4, 0.7, 1.7)),
    ("NHWC", "fp32", "any", True): (5, 1, (1.5, 0, 1.4)),
    ("NCHW", "16 bits", "pair", False): (15, 0, (11.1, 8.7, 20.1)),
    ("NCHW", "16 bits", "narrow", False): (15, 1, (10.9, 10.7, 10.1)),
    ("NCHW", "16 bits", "narrow", True): (15, 1, (6.3, 3.6, 6.4)),
    ("NCHW", "16 bits", "wide", True): (30, 0.5, (0, 40.7, 0)),
    ("NCHW", "16 bits", "odd", False): (40, 0.75, (25.9, 24.8, 19.3)),
    ("NCHW", "16 bits", "odd", True): (30, 0.75, (10, 6.4, 9.4)),
    ("NCHW", "16 bits", "wide odd", False): (30, 0.75, (24.6, 24.8, 14.6)),
    ("NCHW", "16 bits", "wide odd", True): (10, 0.75, (15.8, 13.6, 12.7)),
    ("NCHW", "tf32", "pair", False): (20, 0, (5.7, 9.1, 1.6)),
    ("NCHW", "tf32", "narrow", False): (20, 1, (7.9, 5.9, 4.1)),
    ("NCHW", "tf32", "narrow", True): (30, 1, (5, 1.4, 3.2)),
    ("NCHW", "tf32", "wide", False): (20, 0.5, (0, 0, 26.5)),
    ("NCHW", "tf32", "wide", True): (5, 1, (0, 0.9, 0)),
    ("NCHW", "tf32", "odd", False): (40, 0.75, (15.2, 17.3, 5.2)),
    ("NCHW", "tf32", "odd", True): (40, 0.75, (7.8, 1.4, 5.3)),
    ("NCHW", "tf32", "wide odd", False): (30, 0.75, (12.3, 11.2, 6.9)),
    ("NCHW", "tf32", "wide odd", True): (30, 0.75, (4.7, 4.1, 2.6)),
    ("NCHW", "fp32", "any", False): (5, 1, (2.5, 1.2, 2.1)),
    ("NCHW", "fp32", "any", True): (5, 1, (2.6, 0.7, 2.1)),
}
# Odd groups in NHWC there: tensorTransformGeneric copies x and y into wider ones and back (a profile of RegNetY on
# H200, half of whose step it takes). Least us, and clocks of one SM for an element; more in strided dgrad of 32
# bits. Fit: the same groups. Forward passes on Ampere and Ada take as long, with nothing fitted: RegNets of 24 to 112
# channels a group, DPN, RepVGG and SENet-154 (2 to 4, 8 to 16) on RTX 3090 and 4090, PyTorch 1.12 and 2.4.
WIDENED_US: Final = 28.0
WIDENED_CLOCKS: Final = 2.0
WIDENED_CLOCKS_OF_STRIDED_DGRAD: Final = 8.0
# FLOPs per clock and SM of groups of two channels in 16 bits and NHWC before cc 9.0, in all passes, where H100 has 1.5
# to 3.9. Fit: DLA-46-X-C, the same.
PAIRS: Final = 1.8
# What both kinds take longer on Blackwell for PCs. Fit: the same networks on RTX 5090 and RTX PRO 6000 Max-Q, compiled
# by PyTorch 2.9.1.
GROUPS_ON_BLACKWELL: Final = 1.6
WIDEST_ODD_GROUP: Final = 128  # wider ones fill their tiles
# cuDNN's implicit_convolveNd_sgemm, for volumes whose channels fit no vector load. Fit: KernelBench, C = 3.
GENERIC_VOLUME: Final = {"7.5": 10.0, "8.0": 45.0, "8.6": 34.0, "9.0": 90.0}
GENERIC_VOLUME_DGRAD: Final = {"7.5": 15.0, "8.0": 32.0, "8.6": 2.5, "9.0": 64.0}
# cuDNN's generic kernel on images under large strided filters, in FLOPs per clock and SM, as volumes have theirs. Fit:
# AlexNet's first layer without its bias on RTX A6000 and H100 (KernelBench), on A100 (a trace of PyTorch's profiler);
# Turing's assumed to be that of volumes.
GENERIC_IMAGE: Final = {"7.5": 10.0, "8.0": 114.0, "8.6": 26.0, "9.0": 104.0}
# At most three channels in NCHW and 16 bits on cc 9.0: filters of at most so many taps run on CUDA cores, in one kernel
# of at least so long (3x3 at 112x112, 1x7; H200, TileOPs); larger ones tap by tap on Tensor Cores, behind transposes
# (1x10, 3x3x3; 16x16 in a trace of H100).
FEW_CHANNELS_TAPS: Final = 9
# Elements in a step that holds the few channels of one tap, the rest padding. Library (256x64_32x4 in that trace).
TAP_GRANULE: Final = 32
TAP_LATENCY_US: Final = 0.16  # of Ampere's kernels for such a step on H100. Fit: the same trace
# Of the speed of other steps, what those have that load 16 bytes of each position: 0.38 us in that trace. Fit.
SHARE_BY_TAPS: Final = 0.78
# The same in 16 bits on cc 9.0, by Ampere's kernels. Fit: first layers and patch embeddings on H100, cuDNN 9.19.
HOPPER_SHARE_BY_TAPS: Final = 0.55
FEW_CHANNELS_US: Final = 4.0
FEW_CHANNELS_ON_CUDA_CORES: Final = 55.0  # FLOPs per clock and SM of that kernel. Fit: 3x3 on H100 and H200
# Grouped volumes in NCDHW run a kernel per group, each at least this long: 281 us for 32 groups on H200 (TileOPs).
VOLUME_OF_GROUP_US: Final = 8.0
# FLOPs per clock that the direct kernel reaches in one group of one image, however idle the other SMs are. Fit: 32
# groups of 4 channels, 28x28, N = 1, 19 us on H200 (TileOPs); with images enough, DIRECT_SHARE is what limits it.
DIRECT_IN_GROUP: Final = 15.0
# Groups of at most so many channels in NCHW and 16 bits have the direct kernel alone from cc 8.0 on. Fit: ResNeXt-50
# (4 to 32) and RegNetX and Y (48, 24) on RTX 3090, whose wider groups that would make longer than the whole step.
NARROW_GROUP: Final = 16
# Of the Tensor Cores' speed, what volumes have from cc 8.0 on, whose positions take more arithmetic to find. Fit:
# KernelBench (A100, H100, A10G, RTX A6000) and TileOPs (H200).
VOLUME_SHARE: Final = 0.7
# What fprop, dgrad and wgrad take of volumes whose stride is their filter, over what tiles and bytes come to: no two
# positions share an input. Fit: the five of 2x2x2 in `conv3d_layout_pairs.csv` (V100, RTX 2070 SUPER; cuDNN 8.0.5).
# Images are not slower for that (CG Fig. 11 has 3x3 at stride 3).
PATCHES_SLOWER: Final = (1.6, 3.0, 3.0)
# A grouped wgrad reduces over all of N·P·Q for few outputs; factor on the direct kernel's time. Assumed.
GROUPED_WGRAD: Final = 3.0
# Least main-loop steps that a split part keeps. Library.
LEAST_STEPS_PER_SPLIT: Final = 4
# cuDNN's first-layer kernels put several taps of up to 4 channels into one step. They run on Tensor Cores since Volta
# (PyProf's and TensorFlow's lists of Tensor Core kernels have first_layer_wgrad_kernel). Library.
FIRST_LAYER_CHANNELS: Final = 4
# What kernels take whose loads are of 8, 4 or 2 bytes instead of 16, over those of 16. Fit: medians of CUTLASS' best
# kernels of each alignment on RTX 3070, fp16 with fp32 sums; wgrad without a split.
NARROW_VECTORS: Final[dict[Pass, dict[int, float]]] = {
    "fprop": {8: 1.05, 4: 1.12, 2: 1.59}, "dgrad": {8: 1.02, 4: 1.11, 2: 1.30}, "wgrad": {8: 1.58, 4: 2.07, 2: 3.88},
}  # fmt: skip
# The same of a 1x1 on cc 9.0; filters of more taps have their channels padded there. Fit: H100, cuDNN 9.19.
NARROW_POINTWISE: Final[dict[Pass, dict[int, float]]] = {
    "fprop": {8: 2.2, 4: 2.5, 2: 4.0}, "dgrad": {8: 2.2, 4: 2.5, 2: 4.0}, "wgrad": {8: 2.4, 4: 2.8, 2: 4.5},
}  # fmt: skip
# In 16 bits times as many bytes, and slower still in fprop, dgrad and wgrad. Fit: H100 and H200.
NARROW_HALVES_MOVE: Final = 2.0
NARROW_HALVES_SLOWER: Final = (1.6, 1.2, 1.6)
NARROW_PRODUCT_SLOWER: Final = 1.6  # in NCHW, all passes. Fit: 453 passes of H100 and H200, most on 7x7 and 14x14
# The same for a plain product, whose rows are so wide that nothing is copied. Fit: medians of 780 products in 16 bits
# on A100 (`gemm_padding_pairs.csv`); H200's 1x1 layers on 7x7 and 14x14 agree.
NARROW_PRODUCT: Final = {8: 1.45, 4: 1.45, 2: 2.3}
# What wgrad takes as a product of NCHW tensors over what it takes of NHWC, in 16 bits and in TF32. Fit: 406 passes of
# 1x1 layers on H100 and H200, cuDNN 9.19.
PRODUCT_WGRAD: Final = (1.8, 1.2)
VECTOR: Final = 8  # fp16 channels of one 16-byte load, to which Tensor Core kernels pad. Hardware.
# Up to this many channels, where they divide a granule, libraries since Ampere do so too, as CUTLASS' kernels for few
# and for fixed channels. V100 and T4 take C = 8 tap by tap (fit). For C = 16 assumed (CG Fig. 8: C = 4 and multiples
# of 8 run best).
MOST_FEW_CHANNELS: Final = 16
# Registers for accumulators: half of the register file of an SM with 65,536. Hardware.
ACCUMULATORS_PER_REGISTER: Final = 0.5
# How much of the last wave's cost a library sees when it chooses a tile: 0 none, 1 all. Assumed from Fig. 4.
WAVE_FORESIGHT: Final = 0.35


class Family(Struct, frozen=True):
    """The implicit-GEMM kernels of one kind of arithmetic unit: tiles they offer and what their steps cost."""

    tiles: tuple[Tile, ...]  # of fprop, and of the products of transforms
    dgrad_tiles: tuple[Tile, ...]
    wgrad_tiles: tuple[Tile, ...]
    granule: int  # elements of gemm.K in one main-loop step
    alignment: int  # channels are padded to this many
    sustained: float  # share of the peak that the innermost loop reaches with operands at hand
    operand_cost: float  # what loading operands adds to a step: times (tm + tn) / (tm * tn)
    operand_rate: float  # FLOPs per clock and SM, times bytes per operand, that operand_cost is for: it grows with both
    pointwise_wgrad_cost: float  # operand_cost where wgrad has one tap, so that no load is shared by taps; 0: the same
    load_latency_us: float  # the latency of one step's loads, hidden by the work of all resident tiles
    round_us: float  # start and end of a round of resident tiles
    drain: float  # steps' worth of one tile that nothing overlaps, as a share of its main loop
    extra_kernel_us: float  # every further kernel of the same pass: reductions of a split, transforms
    setup_us: tuple[float, float, float]  # launch and setup of fprop, dgrad, wgrad
    weight_writes: tuple[float, float, float]  # further bytes per weight that the pass writes, per element
    split: tuple[Split, Split, Split]
    taps_us: float = 0.0  # more for filters of several taps
    most_resident: int = 4  # tiles per SM that the kernels are built for, where registers hold more
    # A tile that has its SM to itself waits at its own barriers; another would work meanwhile. The guide's Fig. 4 has
    # 128x128 tiles where 256x128 would fit as well, so it costs at least what the larger tile saves on operands.
    lone_tile_cost: float = 1.045
    wgrad_sustained: float = 0.0  # `sustained` of wgrad; 0: the same
    fused_winograd: bool = True
    fft_tiles: tuple[Tile, ...] = ((64, 64),)
    workspace: bool = True  # granted, so that transforms need not be fused
    vector_rows: bool = False  # up to a vector of channels is padded to one, and walks all taps in one row


# The likeliest first, so that the search can skip others; ties go to the earlier.
_TENSOR_TILES: Final[tuple[Tile, ...]] = (
    (128, 128), (256, 128), (128, 64), (256, 64), (64, 64), (128, 256), (64, 256), (64, 128),
)  # fmt: skip
# Few filters have tiles of 32 columns since Ampere: kernels named sm80_xmma_fprop_implicit_gemm_*_tilesize128x32x32 and
# 256x32x32 stand in public profiles of cuDNN and TensorRT.
_AMPERE_TILES: Final[tuple[Tile, ...]] = (*_TENSOR_TILES, (128, 32), (256, 32))
FUSED_WINOGRAD_TILE: Final[Tile] = (128, 128)  # of the GEMM whose time a tile of the fused kernel takes
FUSED_TILE_WORK: Final = FUSED_WINOGRAD_TILE[0] * FUSED_WINOGRAD_TILE[1]
_SIMT_TILES: Final[tuple[Tile, ...]] = ((128, 128), (128, 64), (64, 128), (128, 32), (32, 128), (64, 64))

_HOPPER_TILES: Final[tuple[Tile, ...]] = (
    (256, 128), (128, 256), (128, 128), (256, 64), (128, 64), (64, 256), (64, 128), (64, 64),
    (128, 32), (256, 32),
)  # fmt: skip

# Tensor Cores. Fit: V100.
VOLTA: Final = Family(
    tiles=_TENSOR_TILES,
    dgrad_tiles=_TENSOR_TILES,
    wgrad_tiles=((128, 128), (64, 64)),
    granule=32,
    alignment=8,
    sustained=0.86,
    operand_cost=12.5,
    operand_rate=1024.0 * 2,
    pointwise_wgrad_cost=0.0,
    load_latency_us=0.86,
    round_us=2.0,
    drain=0.0,
    extra_kernel_us=1.6,
    setup_us=(5.0, 7.5, 4.3),
    weight_writes=(0.0, 0.0, 0.0),
    split=("idle", "never", "free"),
)
# TensorRT does not split fprop: with 32 channels of one tap a step, fp16 rows at N = 1 take 0.8 to 0.9 us a step, the
# latency that cuDNN's rows gave. Accumulating in fp16, it feeds the Tensor Cores better; C = 3 takes the time of C = 8.
# Fit: V100, one-convolution engines of TensorRT.
VOLTA_TENSORRT: Final = replace(VOLTA, sustained=0.95, split=("never", "never", "free"), vector_rows=True)
# Fit: T4.
TURING: Final = replace(
    VOLTA,
    wgrad_tiles=((128, 128),),
    setup_us=(5.0, 14.0, 15.5),
    weight_writes=(0.0, 0.0, 10.0),
    split=("never", "never", "free"),
)
# TensorRT splits fprop there where tiles leave SMs idle: without it the steps of 62 networks at N = 1 on T4 came out at
# 1.51 of the published time and those of another source at 1.55, with it at 1.25 and 1.11 (`published_steps.csv`).
TURING_TENSORRT: Final = replace(TURING, split=("idle", "never", "free"))
# Copies to shared memory that bypass registers feed twice the rate at the same cost and hide latency. Fit: A100; the
# rest as on V100. Checked against the guide's Figs. 4 and 13.
AMPERE: Final = replace(VOLTA, tiles=_AMPERE_TILES, sustained=0.96, load_latency_us=0.15, operand_rate=2048.0 * 2)
# One tile per SM. fprop is not split however few its tiles and long its reduction. Fit: half of the dense, aligned
# layers in NHWC and 16 bits that were timed on H100 with cuDNN 9.19 (`measured_h100-sxm.csv`).
HOPPER: Final = replace(
    AMPERE,
    tiles=_HOPPER_TILES,
    dgrad_tiles=_HOPPER_TILES,
    wgrad_tiles=((256, 128), (128, 128), (256, 64), (128, 64), (64, 64), (64, 128)),
    granule=64,
    sustained=0.95,
    operand_cost=6.5,
    operand_rate=4096.0 * 2,
    load_latency_us=0.12,
    round_us=0.14,
    extra_kernel_us=1.8,
    setup_us=(3.2, 3.3, 3.8),
    taps_us=4.2,
    split=("never", "never", "free"),
    most_resident=1,
    lone_tile_cost=1.0,
)
# wgrad in tf32 runs Ampere's instructions (mma, not wgmma). Fit: the same layers in tf32.
HOPPER_TF32: Final = replace(
    HOPPER,
    granule=32,
    operand_cost=9.0,
    load_latency_us=0.17,
    round_us=1.4,
    setup_us=(2.4, 3.6, 4.2),
    taps_us=3.0,
    wgrad_sustained=0.48,
)
# FLOPs per clock and SM of H100's Tensor Cores in 16 bits, of which Ampere's instructions reach a share. Hardware.
HOPPER_RATE: Final = 3780.0
# Kernels for 8 bits are taken to be Ampere's there, whose instructions reach this share of the peak (arXiv 2402.13499,
# 62.9 % on average).
MMA_ON_HOPPER: Final = 0.63
# Of the speed of other kernels, what those for few channels have on cc 9.0, and of that those for 8 forward. Fit: first
# layers of up to 8 channels on H100 (fprop: three filters, N from 1 to 256, in fp16), cuDNN 9.19; assumed for 16.
FEW_CHANNELS_ON_HOPPER: Final[dict[Pass, float]] = {"fprop": 0.42, "dgrad": 0.6, "wgrad": 0.4}
EIGHT_CHANNELS_ON_HOPPER: Final = 0.7
# Of the tiles' speed on cc 9.0 in 16 bits, what filters of several taps reach. Fit: half of H100's and H200's shapes.
# A step of 64 channels that 32 fill takes not much more than half of one; other widths that fill no 32 run on slower
# kernels; no tile is narrower than 64 outputs, and those of 64 are slower; wgrad wants both widths in multiples of 64.
HOPPER_HALF_STEP: Final = 1.45
HOPPER_PARTLY_FILLED: Final = 0.72
HOPPER_FEWEST_OUTPUTS: Final = 0.52
HOPPER_FEW_OUTPUTS: Final = 0.7
HOPPER_PARTLY_FILLED_WGRAD: Final = 0.62
# us that wgrad of several taps takes longer in TF32 where its sum is split. Fit: 435 passes of H100 and H200.
TF32_SUM_US: Final = 9.0
# Two SMs may work on one tile of 256x256; per SM that is a Hopper tile. Assumed.
BLACKWELL: Final = replace(HOPPER, operand_rate=8192.0 * 2)
# CUDA cores, fp32. Fit: TITAN Xp, and T4 and V100 but for what the next ones replace.
SIMT: Final = Family(
    tiles=_SIMT_TILES,
    dgrad_tiles=((128, 128), (64, 64)),
    wgrad_tiles=((128, 128), (128, 32), (32, 128)),
    granule=8,
    alignment=1,
    sustained=1.0,
    operand_cost=8.4,
    operand_rate=256.0 * 4,
    pointwise_wgrad_cost=45.0,
    load_latency_us=0.40,
    round_us=2.0,
    drain=0.2,
    extra_kernel_us=1.5,
    setup_us=(10.5, 15.0, 15.2),
    weight_writes=(0.0, 0.0, 46.0),
    split=("never", "never", "one"),
)
# From Volta on, cgemm kernels of smaller tiles multiply FFT's many small products. Fit: V100 and T4.
_FFT_TILES: Final[tuple[Tile, ...]] = ((64, 64), (64, 32), (32, 64), (32, 32))
SIMT_VOLTA: Final = replace(SIMT, weight_writes=(0.0, 0.0, 0.0), fft_tiles=_FFT_TILES)
SIMT_TURING: Final = replace(SIMT, setup_us=(4.4, 8.2, 12.8), weight_writes=(0.0, 0.0, 20.0), fft_tiles=_FFT_TILES)
# Of fp32 without TF32, products and 3x3 layers reach 25 to 40 of 67 TFLOP/s on H100 (cuDNN 9.19). Fit.
SIMT_HOPPER: Final = replace(SIMT_VOLTA, sustained=0.6, setup_us=(2.0, 4.0, 4.3))
# cc 8.6 and later double the fp32 lanes, but half of them share their issue port with integers (GA102 whitepaper), and
# shared memory feeds them no faster. Assumed.
SIMT_DOUBLED: Final = replace(SIMT_VOLTA, sustained=0.7)
# Dual issue is rarely met, and the fused Winograd kernels came with Maxwell. Assumed.
SIMT_KEPLER: Final = replace(SIMT, sustained=0.7, fused_winograd=False)

TENSORRT_SETUP_US: Final = 7.0  # engines launch without a framework; fit
# Channels in one step of int8 on CUDA cores, four to an instruction: twice fp32's. Fit: V100, TensorRT.
DP4A_GRANULE: Final = 16
# Engines of one convolution each, whose own launch is part of it; at 7 us all six groups of them come out faster, most
# the smallest layers. Fit: V100.
TENSORRT_SETUP_ON_VOLTA_US: Final = 10.5
INT8_LATENCY: Final = 0.45  # of fp16: a step holds half the bytes. Fit: T4

# Boards that cannot hold their boost clock under load: watts of the board (hardware) per TFLOP/s of fp32.
BOARD_WATTS: Final = {"t4": 70.0, "p4": 75.0, "quadro-rtx-6000": 260.0, "quadro-rtx-8000": 260.0}
# At or above this many watts per fp32 TFLOP/s a board of compute capability below 8.0 holds its clock. Fit on T4; a
# step of ResNet-50 in fp32 on RTX 8000 (Lambda) goes from 0.82 to 0.86 of its time.
WATTS_PER_TFLOP: Final = 19.1
# Clock under Tensor Core load over boost clock. T4: fit. L4's 72 W hold about 1150 of its 2040 MHz once it is warm, as
# users of it log (public repositories, 2026), and Triton's products in 16 bits reach 55 TFLOP/s of the 121 on paper.
# RTX PRO 6000 Max-Q has 300 W for what takes 600 in its sisters: fit on whole steps (network_steps.csv), so that
# networks of many and of few convolutions come out alike.
TENSOR_CLOCK: Final = {"t4": 0.90, "l4": 0.56, "rtx-pro-6000-max-q": 0.60}
# What Orin's SMs (cc 8.7) reach of the constants of other Amperes. Fit: YOLO11 with TensorRT, N = 1, fp32, fp16 and
# int8, on Orin Nano Super and Orin NX (github ultralytics/ultralytics, docs/en/guides/nvidia-jetson.md). YOLOv8 on Orin
# Nano (github the0807/YOLOv8-ONNX-TensorRT), by Python's stopwatch, went from 0.49 to 0.75 of the published times.
ORIN: Final = Factors(tensor_clock=0.7, bandwidth=0.85, launch_us=16.0)
