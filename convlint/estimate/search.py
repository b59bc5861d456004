"""The implicit GEMM of a pass, and the tiles and splits that a library would choose for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from convlint.estimate import constants as const
from convlint.estimate.constants import Family, Split
from convlint.estimate.results import Problem
from convlint.model.layer import Pass


class Lowering(Struct, frozen=True, gc=False):
    """A pass as `batch` GEMMs of M x N with `steps` main-loop steps each, and its further kernels and bytes."""

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


THREADS_PER_TILE = 256
# How many tiles per SM a split makes. Where it is to fill idle SMs alone, more than two buy nothing on any row.
_WAVES: dict[Split, tuple[int, ...]] = {"idle": (1, 2, 4), "free": (1, 2, 4, 8, 16)}


class TileProgram(NamedTuple):
    """One tile shape on one GPU. `rounds_us[m]`: one main-loop step of m resident tiles; [0] is 0."""

    tm: int
    tn: int
    resident: int
    rounds_us: tuple[float, ...]
    drain_us: float  # per main-loop step
    full_us: float  # rounds_us[resident]
    wave: int  # tiles that run at once on all SMs
    turned: TileProgram | None = None  # the same tile the other way round, as fast for as many tiles


_NO_LIMIT = float("inf")
_MOST_KEPT = 50_000  # searches of one unit: of some 10,000 layers, whose fixes ask for many of them again


class ProgramChoice(Struct, frozen=True, gc=False):
    """The program that a lowering runs, and its time without setup, serial copies and extra kernels."""

    lowering: Lowering
    program: TileProgram
    split: int
    tiles: int
    steps: int
    compute_us: float
    memory_us: float
    kernels: int  # beyond the first


Searches = dict[object, ProgramChoice | None]  # by all that decides the program of a lowering


def programs(
    shapes: Iterable[tuple[int, int]], family: Family, *, peak: float, sms: int, registers: int, thread_registers: int
) -> tuple[TileProgram, ...]:
    """A family's tiles on a GPU whose SMs together reach `peak` FLOP/s (the clock under load included)."""
    table = list[TileProgram]()
    flops_per_us = peak * 1e-6 / sms * family.sustained
    for tm, tn in shapes:
        if tm * tn / THREADS_PER_TILE > thread_registers - 31:  # accumulators alone would spill (GK104)
            continue
        resident = int(registers * const.ACCUMULATORS_PER_REGISTER) // (tm * tn)
        resident = max(1, min(resident, family.most_resident))
        step = 2 * tm * tn * family.granule / flops_per_us * (1 + family.operand_cost * (tm + tn) / (tm * tn))
        if resident == 1:
            step *= family.lone_tile_cost
        power = const.LATENCY_OVERLAP
        rounds = tuple(
            ((m * step) ** power + family.load_latency_us**power) ** (1 / power) if m else 0.0
            for m in range(resident + 1)
        )
        program = TileProgram(tm, tn, resident, rounds, family.drain * step, rounds[resident], sms * resident)
        first = next((index for index, other in enumerate(table) if (other.tm, other.tn) == (tn, tm)), None)
        if first is None:
            table.append(program)
        else:
            table[first] = table[first]._replace(turned=program)
    return tuple(table)


def join(compute_us: float, memory_us: float, power: float = const.OVERLAP) -> float:
    """Time of a kernel that computes and streams at once; the larger `power`, the better both overlap."""
    longer, shorter = (compute_us, memory_us) if compute_us > memory_us else (memory_us, compute_us)
    return longer * (1 + (shorter / longer) ** power) ** (1 / power) if longer else 0.0


def _splits(rule: Split, unsplit: int, most: int, sms: int) -> list[int]:
    """The splits tried, from 2 to `most`; where SMs are to be filled, `unsplit` tiles leave some idle."""
    if rule == "one":
        most = min(most, 1 + sms // unsplit)
        return [] if most < 2 else [2] if most == 2 else [most - 1, most]
    splits, last = list[int](), 1
    for waves in _WAVES[rule]:
        split = waves * sms // unsplit
        if split > most:
            split = most
        if split > last:
            splits.append(split)
            last = split
    return splits


def fastest(
    lowering: Lowering,
    table: tuple[TileProgram, ...],
    rule: Split,
    family: Family,
    *,
    sms: int,
    bytes_us: float,
    us_per_byte: float,
    below_us: float = _NO_LIMIT,
    known: Searches | None = None,
) -> ProgramChoice | None:
    """The program that the library is expected to take: the least expected time over tiles and splits.

    None if no program takes less than `below_us`. `known` caches searches without that limit: different layers may
    have the same product, such as one that the library pads and one that a fix gives the padded channels.
    """
    key = None
    if known is not None and below_us == _NO_LIMIT:
        batch, M, N, steps = lowering.batch, lowering.M, lowering.N, lowering.steps
        key = lowering.table, rule, batch, M, N, steps, lowering.fused_tiles, lowering.peak_share, bytes_us
        if key in known:
            choice = known[key]
            if choice is None:
                return None
            return ProgramChoice(
                lowering, choice.program, choice.split, choice.tiles, choice.steps, choice.compute_us, choice.memory_us,
                lowering.extra_kernels + (choice.split > 1),
            )  # fmt: skip
    choice = _search(
        lowering, table, rule, family, sms=sms, bytes_us=bytes_us, us_per_byte=us_per_byte, below_us=below_us
    )
    if key is not None and known is not None:
        if len(known) >= _MOST_KEPT:
            known.clear()
        known[key] = choice
    return choice


def _search(
    lowering: Lowering,
    table: tuple[TileProgram, ...],
    rule: Split,
    family: Family,
    *,
    sms: int,
    bytes_us: float,
    us_per_byte: float,
    below_us: float,
) -> ProgramChoice | None:
    """The best program; None if none takes less than `below_us`.

    If the unsplit tiles fill more than one wave, the expected time lies between the steady state and the true time:
    libraries weigh the last wave only partly when they choose a tile (CG Fig. 4: 128x128 tiles are kept at N = 55 for a
    wave of 4 tiles).
    """
    batch, M, N, total_steps = lowering.batch, lowering.M, lowering.N, lowering.steps
    share, fused_tiles = lowering.peak_share, lowering.fused_tiles
    round_us, foresight = family.round_us, const.WAVE_FORESIGHT
    most = total_steps // const.LEAST_STEPS_PER_SPLIT
    # From so many tiles on none is split: they fill the SMs.
    filled = 0 if rule == "never" or most < 2 else sms if rule == "idle" else sms + 1 if rule == "one" else _NO_LIMIT
    may_split = list[tuple[float, int, TileProgram]]()
    best: tuple[TileProgram, int, int, int, float, float] | None = None
    # Unsplit programs move the same bytes, so that the least compute time among them is the least time.
    least = below_us
    for program in table:
        tm, tn, resident, rounds_us, drain_us, full_us, wave, turned = program
        tiles = fused_tiles or batch * -(-M // tm) * -(-N // tn)
        if turned is not None:
            there, other = batch * -(-M // tn) * -(-N // tm), turned
            if there < tiles:
                tiles, there, program, other = there, tiles, turned, program
            if tiles < there < filled:  # which has no program unsplit that is as fast, but may have one that is split
                may_split.append((there * total_steps * full_us / (wave * share), there, other))
        bound = tiles * total_steps * full_us / (wave * share)  # without a tail, start or end
        if tiles < filled:
            may_split.append((bound, tiles, program))
        if bound >= least:
            continue
        rounds, rest = divmod(-(-tiles // sms), resident)
        compute_us = rounds * (full_us * total_steps + round_us) + drain_us * total_steps
        if rest:
            compute_us += rounds_us[rest] * total_steps + round_us
        compute_us /= share
        expected = compute_us
        if tiles > wave and rule != "free":
            steady = tiles / wave * (full_us * total_steps + round_us) / share
            expected = steady * (compute_us / steady) ** foresight
        if expected < least:
            least = expected
            best = (program, 1, tiles, total_steps, compute_us, bytes_us)
    if best is not None:
        least = join(least, bytes_us)
        if least >= below_us:
            best, least = None, below_us
    more = family.extra_kernel_us
    for bound, unsplit, program in may_split:
        if bound + more >= least:
            continue
        resident, rounds_us, drain_us, full_us = program[2:6]
        for split in _splits(rule, unsplit, most, sms):
            memory_us = bytes_us + 8 * split * batch * M * N * us_per_byte
            if memory_us + more >= least:
                continue
            steps = -(-total_steps // split)
            tiles = unsplit * split
            rounds, rest = divmod(-(-tiles // sms), resident)
            compute_us = rounds * (full_us * steps + round_us) + drain_us * steps
            if rest:
                compute_us += rounds_us[rest] * steps + round_us
            compute_us /= share
            if compute_us + more >= least:
                continue
            expected = join(compute_us, memory_us) + more
            if expected < least:
                least = expected
                best = (program, split, tiles, steps, compute_us, memory_us)
    return None if best is None else ProgramChoice(lowering, *best, lowering.extra_kernels + (best[1] > 1))
