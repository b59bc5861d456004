"""The times that the engine promises for a network, and the changes (B) that lead to them."""

from typing import Any

from convlint.engine.check import Target, check_network
from convlint.engine.findings import NetworkResult
from convlint.engine.joint import Promise
from convlint.engine.steps import Members, changed
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import Mode
from convlint.model.network import Network
from convlint.rulebook.book import load_rulebook

RULEBOOK = load_rulebook()


def promised(
    network: Network, gpu: str = "a100", mode: Mode = "training", **asked: Any
) -> tuple[NetworkResult, Promise]:
    promises: list[Promise] = []
    result = check_network(
        network, RULEBOOK, [Target(label=gpu, gpu=load_gpu(gpu))], mode,
        on_promise=lambda _, promise: promises.append(promise), **asked,
    )  # fmt: skip
    (promise,) = promises
    return result, promise


def without(code: str) -> list[str]:
    """All codes but this one, to be selected."""
    return [rule.info.code for rule in RULEBOOK.rules if rule.info.code != code]


def followed(network: Network, promise: Promise) -> Network:
    """The network with all of B."""
    return changed(network, promise, Members(promise.optimum.choices, promise.optimum.levers))
