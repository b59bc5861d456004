"""The facts that rules read of a layer, from a short text."""

from convlint.estimate import estimate_layer
from convlint.facts.layer import LayerFacts
from convlint.facts.target import TargetFacts
from convlint.files.located_yaml import parse
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import Mode
from convlint.readers.spec.reader import read_fragment


def facts(*layers: str, gpu: str = "a100", runtime: str = "", mode: Mode = "training") -> LayerFacts:
    """What rules read of the last of `layers`, each the inside of a mapping, as is `runtime`."""
    head = f"runtime: {{ {runtime} }}\n" if runtime else ""
    parsed = parse(f"version: 1\n{head}layers:\n" + "".join(f"  - {{ {layer} }}\n" for layer in layers))
    assert parsed is not None
    network, errors = read_fragment(parsed, "net.yaml")
    assert not errors, errors
    shared = TargetFacts(gpu, load_gpu(gpu), network.runtime, mode)
    estimates = [estimate_layer(layer, shared.gpu, shared.runtime, mode) for layer in network.layers]
    shared.add_network(network.layers, network.edges, estimates)
    last = len(network.layers) - 1
    edge = next((edge for edge in network.edges if edge.consumer == last), None)
    producers = tuple(network.layers[index] for index in edge.producers) if edge else ()
    return LayerFacts(shared, network.layers[last], edge, producers, estimates[last])
