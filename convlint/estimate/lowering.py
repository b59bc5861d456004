"""How a pass becomes batched GEMMs: implicit GEMM with its padding, output phases and filter taps."""

from __future__ import annotations

from msgspec import Struct

from convlint.estimate import constants as const
from convlint.estimate.constants import Family
from convlint.estimate.problem import Problem
from convlint.model.layer import Pass


class Lowering(Struct, frozen=True, gc=False):
    """`batch` GEMMs of M x N with `steps` main-loop steps each, and what comes on top of them."""

    algorithm: str
    table: str  # which of the unit's program tables it chooses from
    batch: int
    M: int
    N: int
    steps: int
    useful_outputs: int  # of batch * M * N, those that are results
    extra_kernels: int = 0
    serial_bytes: float = 0.0  # moved by those kernels, beside the GEMM
    zeroed_bytes: float = 0.0  # zero-filled just before, so that the GEMM writes over what L2 still holds
    fused_tiles: int = 0  # tiles counted exactly, where the kernel does not tile M and N independently
    peak_share: float = 1.0  # on top of the family's sustained share
    workspace_bytes: int = 0  # what its transforms keep beside the tensors


def ceil_to(x: int, step: int) -> int:
    """The least multiple of `step` that is not below `x`."""
    return -(-x // step) * step


def padded_channels(problem: Problem, alignment: int, few_channels: bool) -> tuple[int, int]:
    """Input and output channels per group as the kernels see them; `few_channels`: C <= 4 has kernels of its own."""
    c, k = problem.C // problem.groups, problem.K // problem.groups
    wide_c = const.FIRST_LAYER_CHANNELS if few_channels and c <= const.FIRST_LAYER_CHANNELS else ceil_to(c, alignment)
    return wide_c, ceil_to(k, alignment)


def implicit_gemm(
    problem: Problem, which: Pass, family: Family, c: int, k: int, *, tensor: bool, few_channels: int = 0
) -> list[Lowering]:
    """The implicit GEMMs of a pass with `c` and `k` padded channels per group (CG 4.2, Table 2; 4.4.2 for wgrad).

    Tensor Core kernels walk the reduction tap by tap, so that channels are rounded up to a granule per tap; kernels
    on CUDA cores, and those for up to `few_channels` of them, walk it as one row. wgrad tiles C, not C·R·S.
    """
    one_row = not tensor or (c <= few_channels and family.granule % c == 0)
    groups, granule, taps = problem.groups, family.granule, problem.taps
    if which == "fprop":
        M = problem.pixels_out
        lengths = ([-(-c * taps // granule)] if one_row else []) + ([taps * -(-c // granule)] if tensor else [])
        useful = groups * M * (problem.K // groups)
        return [Lowering("implicit-gemm", "fprop", groups, M, k, steps, useful) for steps in lengths]
    if which == "dgrad":
        useful = problem.pixels_in * problem.C
        if not problem.strided:
            steps = taps * -(-k // granule) if tensor else -(-k * taps // granule)
            return [Lowering("implicit-gemm", "dgrad", groups, problem.pixels_in, c, steps, useful)]
        N, D, H, W, T, R, S = problem.N, problem.D, problem.H, problem.W, problem.T, problem.R, problem.S
        StrideD, U, V = problem.StrideD, problem.U, problem.V
        owned = min(T, StrideD) * min(R, U) * min(S, V)
        phases = StrideD * U * V
        M = N * -(-D // StrideD) * -(-H // U) * -(-W // V)
        per_phase = -(-T // StrideD) * -(-R // U) * -(-S // V)
        zero_fill = owned < phases
        x_bytes = problem.element_bytes * useful if zero_fill else 0
        if not tensor:
            batch = 2 if taps == 1 else phases  # a strided 1x1 computes twice what it needs; fit
            steps = -(-k * per_phase // granule)
            outputs = batch * groups * M * c
            return [Lowering("implicit-gemm", "dgrad", batch * groups, M, c, steps, outputs, int(zero_fill), x_bytes)]
        return [
            Lowering(
                "implicit-gemm", "dgrad", owned * groups, M, c, per_phase * -(-k // granule),
                min(useful, owned * M * problem.C), int(zero_fill), 0.0, x_bytes,
            )
        ]  # fmt: skip
    steps = -(-problem.pixels_out // granule)
    useful = taps * groups * (problem.C // groups) * (problem.K // groups)
    table = "pointwise wgrad" if taps == 1 else "wgrad"
    per_tap = Lowering("implicit-gemm", table, taps * groups, c, k, steps, useful)
    if taps == 1 or not one_row:
        return [per_tap]
    # Issue 793 of NVIDIA/cutlass measures a first layer (N 128, C 4, 224x224, K 64, 7x7, stride 2) on an A100: 0.46 ms,
    # 1.31 ms at best with 64x64 tiles of an own kernel; one GEMM per tap would need 3 ms.
    return [per_tap, Lowering("implicit-gemm", table, groups, c * taps, k, steps, useful)]
