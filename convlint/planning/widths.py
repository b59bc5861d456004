"""Which widths the groups of channels of a network may get: those of today, and others near them that suit the GPU."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from math import lcm, prod

from convlint.engine.severity import MOST_WIDENING
from convlint.model.channels import ChannelGroup, Channels
from convlint.model.network import Network

TILES = (32, 64, 128)  # sides of tiles (CG 1, 4.3)
MOST_PRICED = 60_000  # sizes of all layers together, for each setting
MOST_NARROWING = 0.125  # to fill tiles; what is smaller by more is another network
_MOST_WAYS = 256  # of one layer that are counted: what reads very many groups is not tried in all ways
IMAGE_CHANNELS = 4  # of which a first layer has kernels of its own (CG 4.4.3, Fig. 8)


def is_free(group: ChannelGroup) -> bool:
    """Whether its width can change: it is the network's own, or an input, which can be filled up with zeros."""
    return bool(group.layers) and (not group.fixed or group.only_input)


def candidates(network: Network, channels: Channels, alignments: Collection[int]) -> dict[int, tuple[int, ...]]:
    """The widths of each group that has a choice: the present one first, then the wider ones in order.

    `alignments` are the multiples that Tensor Cores want of channels, for every dtype that may run. None is narrower
    than the present one (those are `narrower`); what only fills tiles widens by a half at most.
    """
    found = {}
    for number, group in enumerate(channels.groups):
        # What works on 1x1 maps alone (squeeze-and-excite) is not worth a change.
        if is_free(group) and not all(network.layers[index].pointwise_map for index in group.layers):
            widths = _filled_up if group.only_input else _widened
            wider = {width for width in widths(number, network, channels, alignments) if width > group.width}
            if wider:
                found[number] = (group.width, *sorted(wider))
    return found


def narrower(network: Network, channels: Channels) -> dict[int, tuple[int, ...]]:
    """The widths of whole tiles just below that of each group, as the check offers them, by an eighth at most."""
    found = {}
    for number, group in enumerate(channels.groups):
        if group.layers and not group.fixed and not all(network.layers[index].pointwise_map for index in group.layers):
            steps = {lcm(step, group.multiple_of) for step in TILES}
            below = {group.width // step * step for step in steps} - {group.width}
            found[number] = tuple(sorted(width for width in below if width >= group.width * (1 - MOST_NARROWING)))
    return {number: widths for number, widths in found.items() if widths}


def needed(number: int, network: Network, channels: Channels, alignments: Collection[int]) -> int:
    """The widest that the Tensor Cores want: what is wider only fills tiles."""
    find = _filled_up if channels.groups[number].only_input else _aligned
    return max(channels.groups[number].width, *find(number, network, channels, alignments))


def fewer(free: Mapping[int, tuple[int, ...]], channels: Channels, alignment: int) -> Mapping[int, tuple[int, ...]]:
    """The same groups with fewer widths, where there are more ways to size all layers than can be priced.

    The narrowest multiples of `alignment` are kept.
    """
    for most in (4, 3, 2):
        if can_be_priced(free, channels):
            break
        free = {
            group: (now, *sorted(sorted(wider, key=lambda width: (width % alignment > 0, width))[: most - 1]))
            for group, (now, *wider) in free.items()
        }
    return free


def can_be_priced(free: Mapping[int, tuple[int, ...]], channels: Channels) -> bool:
    """Whether there are few enough ways to size all layers."""
    scopes = [
        free.keys() & {*(group for group, _ in channels.read.get(index, ())), channels.written.get(index, -1)}
        for index in channels.read.keys() | channels.written.keys()
    ]
    return sum(min(_MOST_WAYS, prod(len(free[group]) for group in scope)) for scope in scopes) <= MOST_PRICED


def _filled_up(number: int, network: Network, channels: Channels, alignments: Collection[int]) -> Iterator[int]:
    group = channels.groups[number]
    for step in alignments:
        yield _up(group.width, lcm(step, group.multiple_of))
    if all((network.layers[reader.layer].C or 0) <= IMAGE_CHANNELS for reader in group.readers):
        yield _up(group.width, lcm(IMAGE_CHANNELS, group.multiple_of))


def _widened(number: int, network: Network, channels: Channels, alignments: Collection[int]) -> Iterator[int]:
    group = channels.groups[number]
    now, multiple = group.width, group.multiple_of
    most = now + int(MOST_WIDENING * now)
    yield from _aligned(number, network, channels, alignments)
    wide = [_up(now, lcm(step, multiple)) for step in TILES]
    layers = [network.layers[index] for index in group.layers]
    for parts in {layer.groups for layer in layers if layer.groups > 1 and not layer.depthwise}:
        wide += [_up(now, lcm(step * parts, multiple)) for step in alignments]
        wide.append(_up(parts << (-(-now // parts) - 1).bit_length(), multiple))  # a power of two in each of them
    yield from (width for width in wide if width <= most)


def _aligned(number: int, _network: Network, channels: Channels, alignments: Collection[int]) -> Iterator[int]:
    group = channels.groups[number]
    now, multiple = group.width, group.multiple_of
    scales = {Fraction(1), *(reader.times for reader in group.readers if len(channels.read[reader.layer]) == 1)}
    for step in alignments:
        for scale in scales:  # what reads it behind a pixel shuffle has more channels, or fewer
            yield _up(now, lcm((step / scale).numerator, multiple))
        yield from _beside_others(number, channels, step)


def _beside_others(number: int, channels: Channels, step: int) -> Iterator[int]:
    """Widths that make the whole of a concatenation a multiple of `step`, where nothing else of it can change."""
    group = channels.groups[number]
    for reader in group.readers:
        axis = channels.read[reader.layer]
        if len(axis) == 1 or any(other != number and is_free(channels.groups[other]) for other, _ in axis):
            continue
        rest = sum(scale * channels.groups[other].width for other, scale in axis if other != number)
        for times in range(step):
            width = group.width + times * group.multiple_of
            if (width * reader.times + rest) % step == 0:
                yield width
                break


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
