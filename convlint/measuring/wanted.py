"""What there is to time in a network: its own passes, and what its findings would make of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from convlint.engine.check import Target, check_network
from convlint.engine.timing import as_laid_out
from convlint.estimate import LayerEstimate, estimate_layer
from convlint.gpus.gpu import Gpu
from convlint.measuring.trial import Part, Trial, parts, trials
from convlint.measuring.workload import Workload, why_not
from convlint.model.layer import Mode
from convlint.model.network import Network
from convlint.rulebook.book import Rulebook


class Wanted(Struct, frozen=True, kw_only=True):
    """The parts of a network as it is, with their estimates by layer, and the trials of its findings.

    `untimed` says of layers, by their place, why they cannot be timed; `findings` is how many there are in all.
    """

    parts: tuple[Part, ...]
    estimates: tuple[LayerEstimate | None, ...]
    trials: tuple[Trial, ...]
    untimed: Mapping[int, str]
    findings: int

    def workloads(self) -> Iterator[Workload]:
        """All of them, in the order in which they are to be timed: what the network runs comes first."""
        for part in self.parts:
            yield from part.options
        for trial in self.trials:
            for part in (*trial.before, *trial.after):
                yield from part.options


def wanted(network: Network, rulebook: Rulebook, target: Target, mode: Mode, device: Gpu | None = None) -> Wanted:
    """What to time of a network for the advice on `target`, by `device` where that is another GPU. Raises RuleError."""
    device = device or target.gpu
    running = as_laid_out(network)
    untimed = {index: reason for index, layer in enumerate(network.layers) if (reason := why_not(layer))}
    result = check_network(network, rulebook, [target], mode)
    # PyTorch does not search algorithms unless it is told to.
    runtime = replace(network.runtime, cudnn_benchmark=bool(network.runtime.cudnn_benchmark))
    laid_out = replace(network, layers=running, runtime=runtime)
    return Wanted(
        parts=tuple(
            part
            for index, layer in enumerate(running)
            if index not in untimed
            for part in parts(index, layer, device, runtime, mode)
        ),
        estimates=tuple(estimate_layer(layer, target.gpu, runtime, mode) for layer in running),
        trials=tuple(trials(laid_out, result.findings, target.gpu, device, mode)),
        untimed=untimed,
        findings=len(result.findings),
    )
