"""What all convolutions of an input come to on one target: parameters, FLOPs, memory, and what the host needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import asdict

from convlint.estimate import LayerEstimate, estimate_layer
from convlint.estimate.host import LEAST_CALLS, NO_HOST, Host, Hosted, host_us, hosted
from convlint.estimate.memory import parameters, parts
from convlint.facts.memory import Held
from convlint.gpus.frameworks import lack_of
from convlint.gpus.gpu import Gpu
from convlint.model.gemm import flops
from convlint.model.layer import ConvLayer, Dtype, Mode
from convlint.model.network import Network
from convlint.model.runtime import Runtime
from convlint.report import LayerReport, LayerTimes, NetworkReport


def estimated(network: Network, running: Sequence[ConvLayer], gpu: Gpu, mode: Mode) -> Hosted:
    """The estimates of all layers, `running` as the framework lays them out, with what the host adds to them.

    int8 is estimated forward where nobody asked for training; where somebody did, there is none.
    """
    refused = (Dtype.int8,) if network.mode == "training" else ()
    estimates = [
        None if layer.dtype in refused else estimate_layer(layer, gpu, network.runtime, mode) for layer in running
    ]
    return hosted(network.layers, estimates, host_of(network, gpu))


def host_of(network: Network, gpu: Gpu) -> Host:
    """What holds up the layers of one network, heads of another batch included.

    A list of layers most of which have nothing to do with each other is none, and so is a part of some network.
    """
    calls = [sum(network.layers[index].calls for index in part) for part in parts(network.layers, network.edges)]
    is_one = max(calls, default=0) >= max(LEAST_CALLS, sum(calls) / 2)
    return host_us(gpu, network.runtime) if is_one else NO_HOST


def lacking(layer: ConvLayer, runtime: Runtime, mode: Mode, gpus: Mapping[str, Gpu]) -> dict[str, str]:
    """On which of the `gpus` the framework cannot run the layer, and what it lacks."""
    lacks = {label: lack_of(runtime, layer.dtype, mode, gpu) for label, gpu in gpus.items()}
    return {label: lack.says for label, lack in lacks.items() if lack is not None}


def network_report(
    network: Network, label: str, gpu: Gpu, mode: Mode, held: Held, on_host: Hosted, times: LayerTimes | None = None
) -> NetworkReport:  # fmt: skip
    """The network on `gpu`, which the user calls `label`; `held` is its memory there and `on_host` its time."""
    batches = {layer.N for layer in network.layers}
    work = [None if (own := flops(layer)) is None else own * layer.calls for layer in network.layers]
    needs = held.needs or held.needs_state
    return NetworkReport(
        path=network.path,
        gpu=label,
        mode=mode,
        times=times,
        batch=batches.pop() if len(batches) == 1 else None,
        parameters=parameters(network.layers),
        flops=None if None in work else sum(each or 0 for each in work),
        memory={} if needs else asdict(held.memory),
        memory_needs=needs,
        capacity_bytes=gpu.memory_bytes,
        largest_batch=None if needs else held.largest_batch,
        unbatched=network.unbatched,
        host_us=on_host.host_us,
        gpu_us=on_host.gpu_us,
    )


def layer_reports(
    network: Network,
    mode: Mode,
    gpus: Mapping[str, Gpu],
    estimates: Mapping[str, Sequence[LayerEstimate | None]],
    times: Mapping[str, Sequence[LayerTimes | None]],
) -> tuple[LayerReport, ...]:
    """Each layer with its estimate and its times on every target, by the target's label."""
    return tuple(
        LayerReport(
            layer=layer,
            estimates={label: estimates[label][index] for label in gpus},
            times={label: times[label][index] for label in gpus},
            mode=mode,
            lacking=lacking(layer, network.runtime, mode, gpus),
        )
        for index, layer in enumerate(network.layers)
    )
