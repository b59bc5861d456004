"""What there is to time in a network."""

from __future__ import annotations

from convlint.engine.check import Target
from convlint.estimate import estimate_layer
from convlint.gpus.gpu import load_gpu
from convlint.measuring.wanted import Wanted, wanted
from convlint.readers.spec.reader import read_spec
from convlint.rulebook.book import load_rulebook

A100 = Target(label="a100", gpu=load_gpu("a100"))
SPEC = """\
version: 1
runtime: { framework: pytorch }
defaults: { N: 8, dtype: fp16, layout: NHWC, kernel_size: 3, padding: 1 }
layers:
  - { name: stem, C: 3, H: 32, W: 32, K: 64 }
  - { name: a, K: 64 }
  - { name: again, K: 64 }
"""
OPEN = SPEC.replace("C: 3, H: 32, W: 32, K: 64", "C: 3, K: 64").replace("name: a,", "name: a, C: 64, H: 32, W: 32,")


def wants(spec: str) -> Wanted:
    network, _ = read_spec(spec, "net.yaml")
    assert network is not None
    return wanted(network, load_rulebook(), A100, "training")


def test_every_pass_of_every_layer_and_equal_ones_once() -> None:
    found = wants(SPEC)
    passes = [(part.layer, part.which) for part in found.parts]
    assert passes[:5] == [(0, "fprop"), (0, "wgrad"), (1, "fprop"), (1, "dgrad"), (1, "wgrad")]
    assert len(passes) == 8
    options = {(part.layer, part.which): part.options for part in found.parts}
    assert options[1, "fprop"] == options[2, "fprop"]
    assert len({work for part in found.parts for work in part.options}) == 5


def test_what_the_network_runs_is_timed_before_what_fixes_make_of_it() -> None:
    found = wants(SPEC.replace("K: 64", "K: 60"))
    order = list(found.workloads())
    own = [option for part in found.parts for option in part.options]
    assert order[: len(own)] == own
    assert len(found.trials) > 0
    assert len(set(order)) > len(set(own))


def test_layers_of_unknown_size_are_named_and_the_others_timed() -> None:
    found = wants(OPEN)
    assert dict(found.untimed) == {0: "H and W are not known"}
    assert {part.layer for part in found.parts} == {1, 2}


def test_estimates_are_those_of_the_layers_without_a_host() -> None:
    network, _ = read_spec(SPEC, "net.yaml")
    assert network is not None
    found = wants(SPEC)
    expected = [estimate_layer(layer, A100.gpu, network.runtime, "training") for layer in network.layers]
    assert list(found.estimates) == expected
