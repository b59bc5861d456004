"""What B makes of each layer's time: what the check of the changed network says, layer by layer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from msgspec.structs import replace
from promised import followed, promised
from random_networks import chain, tangle
from wirings import Wiring, resnet50, resnext50

from convlint.model.network import Network
from convlint.model.runtime import Runtime

BAD = (60, 124, 250, 500)
NETWORKS: dict[str, Callable[[], Network]] = {
    "resnet": partial(resnet50, BAD, dtype="fp32", layout="NCHW"),
    "resnext": partial(resnext50, 6, dtype="fp32", layout="NCHW"),
    "on a host": partial(resnet50, BAD, dtype="fp32", layout="NCHW", runtime=Runtime(framework="pytorch")),
    "chain": partial(chain, 2),
    "tangle": partial(tangle, 7),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_it_is_kept_layer_by_layer(name: str) -> None:
    network = NETWORKS[name]()
    before, promise = promised(network, "v100")
    after, _ = promised(followed(network, promise), "v100")
    for one, other in zip(before.layers, after.layers, strict=True):
        now, then = one.times["v100"], other.times["v100"]
        assert now is not None
        assert then is not None
        assert then.time_us == pytest.approx(now.after_us, rel=1e-6), one.layer.name
        assert then.ideal_us == pytest.approx(now.ideal_us, rel=1e-6), one.layer.name


def test_where_the_host_sets_the_pace_nothing_is_promised() -> None:
    runtime = Runtime(framework="pytorch", cuda_graphs=False)
    result, promise = promised(resnet50(BAD, N=1, runtime=runtime, mode="inference"), "a100", "inference")
    (whole,) = result.networks
    assert whole.times is not None
    assert whole.times.after_us == pytest.approx(whole.times.time_us)
    assert (promise.optimum.choices, promise.optimum.levers) == ({}, {})


def test_what_no_file_states_is_no_part_of_what_is_written() -> None:
    """A copy that an operation of the user's code makes is saved by whoever changes that."""
    net = Wiring(C=64, N=32, size=56)
    network = net.network(net.conv(net.conv(net.image, 64, 3), 64, 3))
    layers = (network.layers[0], replace(network.layers[1], copies_input=True))
    edges = tuple(replace(edge, copied=True, changed_at="view at net.py:3") for edge in network.edges)
    result, promise = promised(replace(network, layers=layers, edges=edges))
    (whole,) = result.networks
    assert whole.times is not None
    assert promise.optimum.levers
    assert whole.times.after_us < whole.times.time_us
    assert whole.times.after_fix_us == pytest.approx(whole.times.time_us)
    (finding,) = [each for each in result.findings if each.advised]
    assert finding.fix is not None
    assert (finding.rule.code, finding.fix.applicable) == ("CL402", False)


def test_a_layer_without_a_time_promises_none() -> None:
    net = Wiring(C=64, N=32, size=56)
    network = net.network(net.conv(net.conv(net.image, 60, 3), 64, 3, dtype=None))
    result, _ = promised(network)
    assert [layer.times["a100"] is None for layer in result.layers] == [False, True]
    assert result.networks[0].times is None
