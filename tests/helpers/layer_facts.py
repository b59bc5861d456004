"""What rules read of a layer that is written in a few words."""

from __future__ import annotations

from convlint.engine.facts import LayerFacts
from convlint.engine.target_facts import TargetFacts
from convlint.estimate import estimate_layer
from convlint.files.located_yaml import parse
from convlint.gpus.gpu import load_gpu
from convlint.readers.spec.reader import read_fragment


def facts(*layers: str, gpu: str = "a100") -> LayerFacts:
    """What rules read of the last of `layers`."""
    parsed = parse("version: 1\nlayers:\n" + "".join(f"  - {{ {layer} }}\n" for layer in layers))
    assert parsed is not None
    network, errors = read_fragment(parsed, "net.yaml")
    assert network is not None
    assert not errors, errors
    shared = TargetFacts(gpu, load_gpu(gpu), network.runtime, "training")
    last = len(network.layers) - 1
    edge = next((edge for edge in network.edges if edge.consumer == last), None)
    producers = tuple(network.layers[index] for index in edge.producers) if edge else ()
    layer = network.layers[last]
    return LayerFacts(shared, layer, edge, producers, estimate_layer(layer, shared.gpu, shared.runtime, "training"))
