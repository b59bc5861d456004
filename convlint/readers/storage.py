"""What models say of dtypes: fp32 is what exporters store unless told, and no word on what will multiply it."""

from __future__ import annotations

from msgspec.structs import replace

from convlint.model.layer import Dtype
from convlint.model.network import Network
from convlint.readers import ReadOptions
from convlint.readers.input_shapes import states_fp32


def of_storage(network: Network, options: ReadOptions) -> Network:
    """A model's network: its fp32 layers run as the engine or autocast is told, unless the user says that they do.

    Other dtypes stand in a model because somebody put them there.
    """
    if any(map(states_fp32, options.inputs.values())):
        return network
    layers = tuple(
        replace(layer, dtype_stated=False) if layer.dtype == Dtype.fp32 else layer for layer in network.layers
    )
    return replace(network, layers=layers)
