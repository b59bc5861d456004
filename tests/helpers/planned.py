"""Short calls for plans of networks."""

from __future__ import annotations

from typing import Any

from convlint.engine.check import Target, check_network
from convlint.engine.plan import plan
from convlint.engine.steps import NetworkPlan, Wishes
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import Mode
from convlint.model.network import Network
from convlint.rulebook.book import load_rulebook

RULEBOOK = load_rulebook()


def target(gpu: str = "a100") -> Target:
    return Target(label=gpu, gpu=load_gpu(gpu))


def planned(network: Network, gpu: str = "a100", mode: Mode = "training", **wishes: Any) -> NetworkPlan:
    found = plan(network, RULEBOOK, target(gpu), mode, Wishes(**wishes))
    assert found is not None
    return found


def checked_us(found: NetworkPlan, network: Network | None = None) -> float:
    """What the check says of the time of a network, or of the plan's; of as many images as the plan's times are of."""
    layers = check_network(network or found.network, RULEBOOK, [target(found.gpu)], found.mode).layers
    N = layers[0].layer.N or 1
    share = (found.batch or N) / N
    return share * sum(times.time_us for one in layers if (times := one.times[found.gpu]) is not None)
