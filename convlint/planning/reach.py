"""How far along its steps a plan goes: as far as a time asked for needs, and as memory and limits allow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from convlint.engine.check import Target
from convlint.engine.networks import as_laid_out
from convlint.estimate.memory import parameters
from convlint.facts.memory import Held
from convlint.model.gemm import flops
from convlint.model.layer import Mode
from convlint.model.network import Network
from convlint.planning.levers import Lever
from convlint.planning.settings import on_host
from convlint.planning.steps import Unit, ordered
from convlint.planning.subsets import Subsets
from convlint.planning.wishes import Wishes


def reaching(subsets: Subsets, units: Sequence[Unit], target_us: float) -> list[Unit]:
    """As few steps as reach the time, safe ones alone where those do; all of them where they do not."""
    safe = [unit for unit in units if all(subsets.levers[number].safety == "safe" for number in unit)]
    for series in (ordered(subsets, [number for unit in safe for number in unit]), units):
        taken: list[Unit] = []
        for unit in (None, *series):
            taken += [] if unit is None else [unit]
            if _time_us(subsets, taken) <= target_us:
                return _needed(subsets, taken, target_us)
    return list(units)


def _needed(subsets: Subsets, units: list[Unit], target_us: float) -> list[Unit]:
    """Without those that it takes not: what saves least is tried first."""
    for unit in reversed(units[:-1]):
        without = [one for one in units if one != unit]
        if _time_us(subsets, without) <= target_us:
            units = without
    return units


def _time_us(subsets: Subsets, units: Sequence[Unit]) -> float:
    pulled = {number for unit in units for number in unit}
    return subsets.step_us(subsets.gpu_us(pulled), pulled)


def fitting(
    units: Sequence[Unit], levers: Sequence[Lever], with_units: Callable[[Sequence[Unit]], Network],
    network: Network, target: Target, mode: Mode, wishes: Wishes,
) -> list[Unit]:  # fmt: skip
    """The steps without the last ones that widen the network, where it gets too large for memory or limits.

    What is too large for the memory already stays so.
    """

    def fits(one: Network) -> bool:
        return _within(one, network, wishes) and (not_now or not _is_too_much(one, target, mode))

    not_now = _is_too_much(network, target, mode)
    wide = [unit for unit in units if any(levers[number].group is not None for number in unit)]
    low, high = 0, len(wide)  # of which the first ones are kept
    if not wide or fits(with_units(units)):
        return list(units)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(with_units(_without(units, wide[middle:]))) else (low, middle - 1)
    return _without(units, wide[low:])


def _without(units: Sequence[Unit], dropped: Sequence[Unit]) -> list[Unit]:
    return [unit for unit in units if unit not in dropped]


def _within(network: Network, before: Network, wishes: Wishes) -> bool:
    """Whether the parameters and FLOPs of all layers, those that share a module once, keep the limits."""
    sizes = [
        (wishes.max_parameters, parameters(network.layers), parameters(before.layers)),
        (wishes.max_flops, _flops(network), _flops(before)),
    ]
    return all(
        share is None or after is None or now is None or after <= now * (1 + share) for share, after, now in sizes
    )


def _flops(network: Network) -> int:
    return sum(layer.calls * (flops(layer) or 0) for layer in network.layers)


def _is_too_much(network: Network, target: Target, mode: Mode) -> bool:
    """Whether it needs more memory than the GPU has, as far as that is known."""
    estimates = on_host(network, target, mode).estimates
    held = Held(as_laid_out(network), network.edges, estimates, target.gpu, network.runtime, mode)
    return not held.needs and held.is_too_much
