"""What models say of dtypes: fp32 is what exporters store unless told, and no word on what will multiply it."""

from __future__ import annotations

from msgspec.structs import replace

from convlint.model.layer import Dtype, DtypeSource
from convlint.model.network import Network
from convlint.readers import ReadOptions
from convlint.readers.input_shapes import states_fp32


def of_model(network: Network, options: ReadOptions, source: DtypeSource) -> Network:
    """A model's network: what its fp32 layers are multiplied in, another engine or autocast may say.

    Other dtypes stand in a model because somebody put them there; so does fp32 where the user says that the inputs are.
    """
    stored = source == "storage"
    if any(map(states_fp32, options.inputs.values())):
        return replace(network, stored=stored)
    layers = tuple(
        replace(layer, dtype_source=source) if layer.dtype == Dtype.fp32 else layer for layer in network.layers
    )
    return replace(network, layers=layers, stored=stored)
