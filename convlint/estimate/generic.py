"""Passes that no tiled kernel takes: what libraries were seen to leave to their direct and generic kernels, no more.

Such kernels are bound by instructions: FLOPs per clock and SM say more of them than a share of any peak.
"""

from __future__ import annotations

from convlint.estimate import constants as const
from convlint.estimate.kernels import PASS_INDEX, Case, Priced, untiled


def generic(case: Case, *, native: bool, searched: bool) -> Priced | None:
    """The only way to run such a pass; None for all others. `native`: in PyTorch, where they were timed.

    A large strided filter on an image has it where heuristics pick, as AlexNet's first layer was timed; where all
    algorithms are `searched`, a better one is taken to be found.
    """
    rate = _of_groups(case, native) if case.problem.groups > 1 else _of_few_channels(case, searched)
    if rate is None:
        return None
    board = case.board
    return untiled(case, case.problem.flops / (rate * board.sms * board.clock_hz) * 1e6)


def _of_groups(case: Case, native: bool) -> float | None:
    """Useful FLOPs per clock and SM of direct kernels for groups; depthwise layers have others."""
    problem, which, board = case.problem, case.which, case.board
    c, k = problem.C // problem.groups, problem.K // problem.groups
    if c == 1:
        return None
    if problem.element_bytes == 4:  # of strided transposed layers; ResNeXt in fp32 trains faster than that
        return const.GROUPED_DIRECT if which == "dgrad" and problem.strided and max(c, k) <= 32 else None
    odd = c & (c - 1) or k & (k - 1)
    timed = native and problem.layout == "NHWC" and problem.element_bytes == 2 and board.generation in ("8.0", "8.6")
    return const.ODD_GROUPS[PASS_INDEX[which]] if odd and timed and max(c, k) <= const.WIDEST_ODD_GROUP else None


def _of_few_channels(case: Case, searched: bool) -> float | None:
    """The same of generic kernels for at most three channels in NCHW and NCDHW, where no vector load fits."""
    problem, which, board = case.problem, case.which, case.board
    if problem.element_bytes != 4 or problem.taps == 1:
        return None
    if problem.D == 1 and problem.T == 1:
        large = problem.nchw and problem.strided and problem.taps > const.MOST_TAPS
        if searched or not large or which != "fprop":
            return None
    if problem.layout == "NHWC" or which == "wgrad" or board.generation not in const.GENERIC_VOLUME:
        return None
    if (problem.C if which == "fprop" else problem.K) >= const.FIRST_LAYER_CHANNELS:
        return None
    return (const.GENERIC_VOLUME if which == "fprop" else const.GENERIC_VOLUME_DGRAD)[board.generation]
