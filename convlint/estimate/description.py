"""What is said of a pass whose way to run is decided: its tiles and waves, what they waste, what bounds it."""

from __future__ import annotations

from msgspec import Struct

from convlint.estimate.board import Board, Unit
from convlint.estimate.kernels import (
    FUSED_TILE,
    Priced,
    is_quantized,
    tile_efficiency,
    without_waves,
    workspace_bytes,
)
from convlint.estimate.price import Situation
from convlint.estimate.problem import Problem
from convlint.estimate.results import Bound, Grid, PassEstimate
from convlint.estimate.roof import Roof
from convlint.estimate.search import THREADS_PER_TILE, join
from convlint.model.gemm import Gemm
from convlint.model.layer import Dtype


class Tiling(Struct, frozen=True, gc=False):
    """How a pass is dealt over the SMs; one without tiles counts threads, and wastes nothing."""

    tiles: int
    resident: int  # per SM
    wave: int  # tiles that run at once
    wave_efficiency: float


def tiling_of(priced: Priced, board: Board) -> Tiling:
    """Of the program that the pass runs."""
    choice = priced.choice
    tiles, direct = choice.tiles, choice.lowering.algorithm == "direct"
    resident = 32 * board.gpu.max_warps_per_sm if direct else choice.program.resident
    wave = board.sms * resident
    return Tiling(tiles, resident, wave, 1.0 if direct else tiles / (-(-tiles // wave) * wave))


def described(
    problem: Problem, product: Gemm, elements: int, priced: Priced, board: Board, situation: Situation
) -> PassEstimate:
    """The estimate of a pass whose way to run is decided; `elements` are those of its three tensors."""
    choice, unit = priced.choice, priced.unit
    lowering, program = choice.lowering, choice.program
    dealt = tiling_of(priced, board)
    tiles, resident, wave = dealt.tiles, dealt.resident, dealt.wave
    flops = problem.flops
    bytes_ = problem.element_bytes * elements
    direct = lowering.algorithm == "direct"
    last = 0 if direct else tiles % wave
    efficiency = tile_efficiency(choice)
    sides = FUSED_TILE if lowering.fused_tiles else (program.tm, program.tn)
    if priced.overhead_us > (priced.time_us - priced.overhead_us):
        bound: Bound = "launch"
    elif choice.compute_us >= choice.memory_us:
        bound = "compute"
    else:
        bound = "memory"
    lost_to_tiles = lost_to_waves = 0.0
    unquantized = priced.time_us
    if is_quantized(priced):  # as `without_quantization` has it
        kernel_us, filled_us = join(choice.compute_us, choice.memory_us), without_waves(priced, board)
        lost_to_tiles = kernel_us - join(choice.compute_us * efficiency, choice.memory_us)
        lost_to_waves = kernel_us - join(filled_us, choice.memory_us)
        unquantized = priced.time_us - kernel_us + join(filled_us * efficiency, choice.memory_us)
    resident_warps = THREADS_PER_TILE // 32 * min(resident, -(-tiles // board.sms))
    if direct:
        resident_warps = board.gpu.max_warps_per_sm
    return PassEstimate(
        gemm=product,
        flops=flops,
        bytes=bytes_,
        arithmetic_intensity=flops / bytes_,
        compute_dtype=situation.compute,
        tensor_cores=unit.tensor and not direct,
        algorithm=lowering.algorithm,
        tile=sides,
        split_k=choice.split,
        tiles=tiles,
        waves=tiles / wave,
        resident_tiles=resident,
        resident_warps=resident_warps,
        last_wave_tiles=last,
        tile_efficiency=efficiency,
        wave_efficiency=dealt.wave_efficiency,
        time_us=priced.time_us,
        tflops=flops / priced.time_us * 1e-6,
        peak_share=flops / priced.time_us * 1e6 / board.peak(situation.compute),
        bound_by=bound,
        lost_to_tiles_us=max(0.0, lost_to_tiles),
        lost_to_waves_us=max(0.0, lost_to_waves),
        main_loop_steps=-(-product.K // unit.family.granule) if direct else lowering.steps,
        overhead_us=priced.overhead_us,
        transposes_us=priced.copies.transposes_us,
        padding_us=priced.copies.padding_us,
        unquantized_us=unquantized,
        workspace_bytes=workspace_bytes(priced),
        grid=None if direct else Grid(lowering.batch, lowering.M, lowering.N, *sides),
        roof=_roof(unit, board, situation, direct=direct),
    )


def _roof(unit: Unit, board: Board, situation: Situation, *, direct: bool) -> Roof:
    """That of the unit; kernels without tiles run on CUDA cores, whatever stands beside those."""
    if direct and unit.tensor:
        simt = board.units(situation.compute, situation.tensorrt)[1] or board.units(Dtype.fp32, situation.tensorrt)[1]
        return (simt or unit).roof
    return unit.roof
