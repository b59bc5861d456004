"""Copies that a pass needs: between layouts and dtypes, and of the Winograd and FFT transforms."""

from __future__ import annotations

from msgspec import Struct

from convlint.estimate import constants as const
from convlint.estimate.board import Board
from convlint.estimate.constants import Family
from convlint.estimate.results import Problem
from convlint.estimate.search import Lowering
from convlint.model.layer import Pass

# Output points per side that F(m x m, R x R) computes at once; both multiply (m + R - 1)^2 = 36 points.
_WINOGRAD_OUTPUT = {3: 4, 5: 2}
_FUSED_WINOGRAD_SHARE = 0.93  # of what the GEMM's inner loop reaches
LEAST_BATCH_NOT_FUSED = 12  # images from which on the kernel with a workspace may run
# cuFFT's 32 x 32 tiles: 32 * 17 complex points; 3 real multiplies of a complex one count as 4 real GEMM columns.
_FFT_TILE, _FFT_POINTS, _FFT_BYTES = 32, 544, 16


def transforms(problem: Problem, which: Pass, family: Family, l2_bytes: int, *, searched: bool) -> list[Lowering]:
    """The transform-based lowerings that apply to a 2-D, stride-1, ungrouped pass; none otherwise.

    FFT is taken where all algorithms were `searched`: heuristics do not pick it. Assumed.
    """
    if problem.T != 1 or problem.D != 1 or problem.StrideD != 1 or problem.U != 1 or problem.V != 1:
        return []
    if problem.groups != 1:
        return []
    found = []
    if problem.R == problem.S and problem.R in _WINOGRAD_OUTPUT:
        # Libraries keep to the fused kernel for small batches, also where the other one is faster; Kepler has none.
        fused = family.fused_winograd and which != "wgrad" and problem.R == 3
        if not fused or problem.N >= LEAST_BATCH_NOT_FUSED:
            found.append(_winograd(problem, which, family, l2_bytes))
        if fused:
            found.append(_fused_winograd(problem, which, family))
    if searched and 5 <= problem.R <= 9 and problem.S < _FFT_TILE:
        found.append(_fft(problem, which, family))
    return found


def _gemm_of(which: Pass, points: int, C: int, K: int) -> tuple[int, int, int]:
    """M, N and the reduction of the GEMM at one point of the transform."""
    if which == "fprop":
        return points, K, C
    return (points, C, K) if which == "dgrad" else (C, K, points)


def _tensors_bytes(problem: Problem) -> int:
    N, C, H, W, K, P, Q = problem.N, problem.C, problem.H, problem.W, problem.K, problem.P, problem.Q
    return problem.element_bytes * (N * C * H * W + N * K * P * Q)


def _winograd(problem: Problem, which: Pass, family: Family, l2_bytes: int) -> Lowering:
    m = _WINOGRAD_OUTPUT[problem.R]
    C, K = problem.C, problem.K
    tiles = problem.N * -(-problem.P // m) * -(-problem.Q // m)
    M, N, reduction = _gemm_of(which, tiles, C, K)
    added = _tensors_bytes(problem) + _spilled(which, tiles, C, K, l2_bytes)
    workspace = sum(_transformed_bytes(tiles, C, K))
    return Lowering(
        "winograd", "winograd", 36, M, N, -(-reduction // family.granule), 36 * M * N, 3, added,
        workspace_bytes=workspace,
    )  # fmt: skip


def _transformed_bytes(tiles: int, C: int, K: int) -> tuple[int, int, int]:
    """Input, weights and output as 36 matrices of fp32 each."""
    return 144 * tiles * C, 144 * C * K, 144 * tiles * K


def _spilled(which: Pass, tiles: int, C: int, K: int, l2_bytes: int) -> float:
    """DRAM traffic of the transformed tensors that L2 cannot hold, in bytes.

    They are written and read. Of activations a part is read while L2 still holds it; the transform of weights, which
    scatters each 3x3 filter over 36 matrices, writes at half the rate of a stream. A weight gradient is only read. Fit.
    """
    weights = 1.0 if which == "wgrad" else 3.0
    sizes = _transformed_bytes(tiles, C, K)
    return sum(times * size for times, size in zip((1.5, weights, 1.5), sizes, strict=True) if size > l2_bytes)


def _fused_winograd(problem: Problem, which: Pass, family: Family) -> Lowering:
    if which == "fprop":
        height, width, columns, channels = problem.P, problem.Q, problem.K, problem.C
    else:
        height, width, columns, channels = problem.H, problem.W, problem.C, problem.K
    blocks = problem.N * -(-height // 8) * -(-width // 16)
    tiles = blocks * -(-columns // 32)
    useful = problem.N * height * width * columns
    return Lowering(
        "winograd",
        "fused winograd", 1, blocks * 128, columns, -(-channels // family.granule), useful,
        fused_tiles=tiles, peak_share=_FUSED_WINOGRAD_SHARE,
    )  # fmt: skip


def _fft(problem: Problem, which: Pass, family: Family) -> Lowering:
    C, K = problem.C, problem.K
    tiles = problem.N * -(-problem.P // (_FFT_TILE + 1 - problem.R)) * -(-problem.Q // (_FFT_TILE + 1 - problem.S))
    M, N, reduction = _gemm_of(which, tiles, C, K)
    workspace = _FFT_POINTS * _FFT_BYTES * (tiles * C + C * K + tiles * K)
    added = _tensors_bytes(problem) + workspace
    return Lowering(
        "fft", "fft", _FFT_POINTS, M, N, -(-reduction // family.granule), _FFT_POINTS * M * N, 3, added,
        workspace_bytes=workspace,
    )  # fmt: skip


class Copies(Struct, frozen=True, gc=False):
    """Time of the copies, by cause, and their size. A transpose into padded channels counts as one transpose."""

    transposes_us: float
    padding_us: float
    bytes: int = 0  # of workspace


NONE = Copies(0.0, 0.0)


def copies(problem: Problem, which: Pass, c: int, k: int, *, pads: bool, board: Board) -> Copies:
    """The copies of tensors in the wrong layout or with misaligned channels into what the kernel reads.

    `c` and `k` are padded channels per group; `pads`: copies are what makes them so (a TensorRT engine has its
    tensors padded already). Without misalignment only the activations are transposed, in dgrad the weights too
    (CG 4.1); where C or K is misaligned, the weights are copied as well (CG 4.4.3). From cc 8.0 on, fprop writes y as
    it is wanted, in NCHW and with any K; and 1x1 filters on fp32 tensors in NCHW, a batched product as it stands, have
    nothing transposed.
    """
    raw_c, raw_k = problem.C // problem.groups, problem.K // problem.groups
    nchw = problem.nchw
    if not nchw and ((c == raw_c and k == raw_k) or not pads):
        return NONE
    pixels_in, pixels_out, taps = problem.pixels_in, problem.pixels_out, problem.taps
    bytes_ = problem.groups * problem.element_bytes
    kept_in_l2 = board.l2_bytes * const.COPY_IN_L2 if board.modern else 0
    transposes = padding = 0.0
    workspace = 0
    writes = board.modern and which == "fprop"
    product = writes and nchw and problem.element_bytes == 4 and taps == 1 and not (problem.strided or problem.padded)
    for raw, wide, transposed, kept in (
        (pixels_in * raw_c, pixels_in * c, nchw, product),
        (pixels_out * raw_k, pixels_out * k, nchw, writes),
        (taps * raw_c * raw_k, taps * c * k, nchw and which == "dgrad", False),
    ):
        if kept or (raw == wide and not transposed):
            continue
        # A copy that L2 holds is read from there by the kernel that it was made for, and overwritten by the next one.
        written = wide if wide * bytes_ > kept_in_l2 else 0
        time = (raw + written) * bytes_ * board.copy_us_per_byte + const.COPY_KERNEL_US
        if transposed or pads:
            workspace += wide * bytes_
        if transposed:
            transposes += time
        elif pads:
            padding += time
    return Copies(transposes, padding, workspace)


def input_copy(size: int, board: Board) -> Copies:
    """A tensor of `size` bytes, written once more in the layout that the kernel reads: the framework's own copy."""
    kept_in_l2 = board.l2_bytes * const.COPY_IN_L2 if board.modern else 0
    moved = size + (size if size > kept_in_l2 else 0)
    return Copies(moved * board.copy_us_per_byte + const.COPY_KERNEL_US, 0.0, size)
