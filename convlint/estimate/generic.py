"""Passes that no tiled kernel takes: groups and volumes that libraries leave to their direct and generic kernels.

Such kernels are bound by instructions: FLOPs per clock and SM say more of them than a share of any peak.
"""

from __future__ import annotations

from convlint.estimate import constants as const
from convlint.estimate.kernels import PASS_INDEX, Case, Priced, untiled

_VECTOR_BYTES = 16


def generic(case: Case) -> Priced | None:
    """The only way to run such a pass; None for all others."""
    rate = _flops_per_clock(case)
    if rate is None:
        return None
    board = case.board
    return untiled(case, case.problem.flops / (rate * board.sms * board.clock_hz) * 1e6)


def _flops_per_clock(case: Case) -> float | None:
    """Useful FLOPs per clock and SM, where one of these kernels runs."""
    problem, which, board = case.problem, case.which, case.board
    groups, element_bytes = problem.groups, problem.element_bytes
    c, k = problem.C // groups, problem.K // groups
    if groups > 1:
        if c == 1:  # depthwise
            return None
        if element_bytes == 4:
            return const.GROUPED_DIRECT if max(c, k) <= const.WIDEST_DIRECT_GROUP else None
        odd = element_bytes == 2 and board.modern and not problem.nchw and (c & (c - 1) or k & (k - 1))
        if not odd:
            return None
        return const.ODD_GROUPS[PASS_INDEX[which]]
    if element_bytes != 4 or (problem.D == 1 and problem.T == 1):
        return None
    vector = _VECTOR_BYTES // element_bytes
    if c % vector == 0 and k % vector == 0:
        return None
    rates = const.GENERIC_VOLUME_DGRAD if which == "dgrad" else const.GENERIC_VOLUME
    return rates[board.generation]
