"""Channel groups of a network by the names of its layers."""

from convlint.model.channels import ChannelGroup, channels_of
from convlint.model.network import Network, Operation


def named(network: Network, name: str) -> Operation:
    (found,) = [each for each in network.operations if each.name == name]
    return found


def written(network: Network, name: str) -> ChannelGroup:
    """The group that is the K of a convolution."""
    channels = channels_of(network)
    return channels.groups[channels.written[[layer.name for layer in network.layers].index(name)]]


def members(network: Network, name: str) -> tuple[set[str], dict[str, str]]:
    """Who writes the channels that a convolution writes, and who reads them how often."""
    group, layers = written(network, name), network.layers
    return (
        {layers[index].name for index in group.writers},
        {layers[reader.layer].name: str(reader.times) for reader in group.readers},
    )
