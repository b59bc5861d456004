"""The widths that a search finds, held against all that there are."""

from __future__ import annotations

from math import prod

import pytest
from planned import searched
from random_networks import all_widths, chain, tangle
from wirings import densenet201, resnet50, unet

from convlint.estimate import time_us
from convlint.gpus.gpu import load_gpu
from convlint.model.channel_walk import channels_of
from convlint.model.network import Network
from convlint.planning import search
from convlint.planning.search import Weights

A100 = load_gpu("a100")


def least_us(network: Network, candidates: dict[int, tuple[int, ...]]) -> float:
    return min(
        sum(time_us(layer, A100, one.runtime, "training") or 0.0 for layer in one.layers)
        for one in all_widths(network, candidates)
    )


@pytest.mark.slow
@pytest.mark.parametrize("build", [chain, tangle])
@pytest.mark.parametrize("seed", range(16))
def test_nothing_beats_what_it_finds(build: object, seed: int) -> None:
    network = (chain if build is chain else tangle)(seed, 3 + seed % 2)
    found = searched(network)
    candidates = {group: tuple(widths) for group, widths in found.candidates.items()}
    assert prod(map(len, candidates.values())) <= 2000
    assert found.is_exact
    assert found.cost(found.best()).time_us == pytest.approx(least_us(network, candidates), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(16))
def test_a_descent_is_within_two_percent(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_ENTRIES", 8)
    monkeypatch.setattr(search, "HELD_ENTRIES", 8)
    network = tangle(seed, 4)
    found = searched(network)
    candidates = {group: tuple(widths) for group, widths in found.candidates.items()}
    assert found.cost(found.best()).time_us <= 1.02 * least_us(network, candidates)


def test_residual_networks_and_u_nets_are_exact_and_dense_ones_are_not() -> None:
    assert searched(resnet50((60, 124, 250, 500))).is_exact
    assert searched(unet((60, 124, 250, 500, 1000))).is_exact
    assert not searched(densenet201(30)).is_exact


def test_a_descent_moves_all_that_are_alike() -> None:
    """No group of a dense block pays alone: what reads them is misaligned as long as any of them is."""
    found = searched(densenet201(30, N=32))
    widths = found.best()
    assert len(widths) > 50
    assert found.cost(widths).time_us < 0.93 * found.cost({}).time_us


def test_only_what_changes_is_named() -> None:
    network = resnet50((60, 124, 250, 500))
    found, channels = searched(network), channels_of(network)
    for group, width in found.best().items():
        assert width > channels.groups[group].width


def test_dear_parameters_leave_everything_as_it_is() -> None:
    found = searched(resnet50((60, 124, 250, 500)))
    widths = found.best(Weights(parameter=1e9, flop=1e9))
    assert found.cost(widths).parameters == found.cost({}).parameters


def test_nothing_to_choose() -> None:
    found = searched(resnet50((64, 128, 256, 512), C=8))
    assert found.best() == {}
    assert found.is_exact
