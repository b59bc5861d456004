"""Layers that share a channel width: which flaws are about one number, and what a new width sets in each layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import lcm

from msgspec.structs import replace

from convlint.engine.hits import Evaluator, Flaw, Hit, with_fix
from convlint.facts.layer import LayerFacts
from convlint.facts.network import shortened
from convlint.files.languages.saying import sentence
from convlint.model.channels import Axis, ChannelGroup, Channels, channels_of
from convlint.model.layer import ConvLayer
from convlint.model.network import Network
from convlint.model.text import Text, joined

_SIDES = ("K", "C")
_NAMED = 4  # layers, each way
# A fix that takes or adds a larger share of the channels than this gives another network, and is not split by sides.
_MOST_TAKEN, _MOST_WIDENING = 1 / 8, 1 / 2
_MOST_WIDTHS = 256  # that are tried for one group: what suits vectors and tiles recurs sooner


class Coupling:
    """The channel groups of a network that more than one layer shares."""

    def __init__(self, network: Network) -> None:
        self.layers = network.layers
        self._network = network
        self._fits: dict[tuple[object, ...], int] = {}
        self.wired = any(operation.inputs for operation in network.operations)

    @cached_property
    def channels(self) -> Channels:
        """All groups, worked out at the first use: most checks of small networks never need them."""
        return channels_of(self._network)

    def group_of(self, index: int, name: str) -> int | None:
        """The group that is this layer's C or K, if others have it too. Zeros may be added to an input of each."""
        number = self.number_of(index, name)
        return number if number is not None and self._is_shared(number) else None

    def number_of(self, index: int, name: str) -> int | None:
        """The group that is this layer's C or K, whoever else has it."""
        if not self.wired or name not in _SIDES:
            return None
        axis: Axis = self.channels.read.get(index, ())
        if name == "K":
            number = self.channels.written.get(index)
        else:
            number = axis[0][0] if len(axis) == 1 and axis[0][1] == 1 else None
        return number

    def _is_shared(self, number: int) -> bool:
        group = self.channels.groups[number]
        return len(group.readers) > 1 if group.only_input else len(group.writers) + len(group.readers) > 1

    def is_free(self, index: int, fields: Iterable[str]) -> bool:
        """Whether nothing in the network keeps these channels of a layer as they are; an input can be filled up."""
        if not self.wired:
            return True
        numbers = [self.channels.written.get(index)] if "K" in fields else []
        numbers += [number for number, _ in self.channels.read.get(index, ())] if "C" in fields else []
        groups = [self.channels.groups[number] for number in numbers if number is not None]
        return all(not group.fixed or group.only_input for group in groups)

    def split(self, index: int, flaw: Flaw, values: Callable[[], LayerFacts]) -> Sequence[Flaw]:
        """The flaw by sides, where C or K is not this layer's alone: each as it stands once the other is mended.

        What nobody would act on, because it is an info or asks for another network, stays as it is.
        """
        sides = [name for name in _SIDES if name in flaw.set]
        if not self.wired or len(sides) != len(flaw.set) or all(self._is_own(index, name) for name in sides):
            return (flaw,)
        if flaw.case.severity == "info" or _is_another_network(flaw, self.layers[index]):
            return (flaw,)
        found = [flaw] if len(sides) == 1 else [_alone(flaw, name, values()) for name in sides]
        return [self._sided(each, index, name, values) for each, name in zip(found, sides, strict=True)]

    def _is_own(self, index: int, name: str) -> bool:
        if name == "C" and self._is_composed(index):
            return False
        return self.group_of(index, name) is None

    def _is_composed(self, index: int) -> bool:
        axis = self.channels.read.get(index, ())
        return len(axis) > 1 or any(scale != 1 for _, scale in axis)

    def _sided(self, flaw: Flaw, index: int, side: str, values: Callable[[], LayerFacts]) -> Flaw:
        if side == "C" and self._is_composed(index):
            return self._composed(flaw, index, values)
        number = self.group_of(index, side)
        width = int(flaw.set[side])
        if number is not None and self.width(number, width) != width:
            found = values()
            key = number, index, side, flaw.rule.info.code, width, found.context, found.layer.dtype
            if key not in self._fits:
                self._fits[key] = self._fitting(number, flaw, side, found)
            width = self._fits[key]
            if not width:
                return replace(flaw, side=side, set={}, other={}, refused=True)
        return replace(flaw, side=side, group=number, width=width)

    def _fitting(self, number: int, flaw: Flaw, side: str, values: LayerFacts) -> int:
        """The least width from the wanted one on that all layers of a group can take, and that suits the flaw's rule.

        What the group must divide by may be at odds with vectors and tiles: 0 where nothing up to twice the width
        serves both, as far as that is tried.
        """
        group, layer = self.channels.groups[number], values.layer
        alone = Evaluator([flaw.rule])
        widths = range(self.width(number, int(flaw.set[side])), 2 * group.width + 1, group.multiple_of)
        for width in widths[:_MOST_WIDTHS]:
            changed = LayerFacts(values.context, with_fix(layer, {side: width}), None, (), None)
            if layer.groups == 1 and values.context.is_unaligned(layer.dtype, width):
                continue
            if not any(side in places for _, _, places in alone.broken(changed)):
                return width
        return 0

    def _composed(self, flaw: Flaw, index: int, values: Callable[[], LayerFacts]) -> Flaw:
        """Of a C that others add up to: the first of them that is not aligned is the one to change."""
        alignment = values()["alignment"] if flaw.rule.loss == "fix" else 0
        axis = self.channels.read[index] if isinstance(alignment, int) and alignment > 1 else ()
        for part, (number, scale) in enumerate(axis):
            width = self.channels.groups[number].width
            step = lcm((Fraction(alignment) / scale).numerator, self.channels.groups[number].multiple_of)
            if width % step and self._is_shared(number):
                return replace(flaw, side="C", group=number, part=part, width=-(-width // step) * step)
        return replace(flaw, side="C", composed=True)

    def alike(self, index: int) -> object:
        """Equal for layers whose flaws are taken apart in the same way; of one of them, `at_home` makes another's."""
        if not self.wired:
            return None
        axis = self.channels.read.get(index, ())
        parts = tuple((self.channels.groups[number].width, scale, self._is_shared(number)) for number, scale in axis)
        return self.group_of(index, "K") is None, parts

    def at_home(self, flaw: Flaw, index: int) -> Flaw:
        """The flaw with this layer's group, where it was found in one that is alike."""
        if flaw.group is None:
            return flaw
        number = self.channels.written[index] if flaw.side == "K" else self.channels.read[index][flaw.part][0]
        return flaw if number == flaw.group else replace(flaw, group=number)

    def width(self, number: int, wanted: int) -> int:
        """The least width of a group from `wanted` on that all of its layers can take, however it must divide."""
        step = self.channels.groups[number].multiple_of
        return -(-wanted // step) * step

    def sets(self, indices: Sequence[int], widths: Mapping[int, int], number: int) -> tuple[Mapping[str, int], ...]:
        """What a group changes in each of these layers; where others are part of the same C, beside their widths."""
        return tuple(self._change(index, widths, number) for index in indices)

    def _change(self, index: int, widths: Mapping[int, int], number: int) -> Mapping[str, int]:
        axis, layer = self.channels.read.get(index, ()), self.layers[index]
        of_K = {number: widths[number]} if self.channels.written.get(index) == number else {}
        of_C = widths if any(part == number for part, _ in axis) else {}
        changes = self.channels.changes_of(index, layer, of_C)
        if "K" in changes and not layer.depthwise:
            del changes["K"]
        return {**self.channels.changes_of(index, layer, of_K), **changes}

    def follows(self, number: int, index: int, side: str, *, widens: bool) -> str:
        """What else the group is, beside this side of this layer: `K of d and C of b, c with it`.

        Where that `widens` it, and does not only pad what is written, also why it cannot change.
        """
        group = self.channels.groups[number]
        others = [each for each in group.writers if (each, "K") != (index, side)]
        whole = [reader.layer for reader in group.readers if self.group_of(reader.layer, "C") == number]
        part = [reader.layer for reader in group.readers if reader.layer not in whole]
        places = (
            (sentence("K of {layers}"), others),
            (sentence("C of {layers}"), [each for each in whole if (each, "C") != (index, side)]),
            (sentence("part of C of {layers}"), part),
        )
        text = joined(Text(" and "), [Text(what, layers=self._names(which)) for what, which in places if which])
        if group.fixed and widens:
            return Text("{others} with it; but {reason}", others=text, reason=group.fixed[0])
        return Text("{others} with it", others=text)

    def _names(self, which: list[int]) -> str:
        return shortened([self.layers[index].name for index in which], _NAMED)

    def group(self, number: int) -> ChannelGroup:
        """The group of that number."""
        return self.channels.groups[number]


class Spokesmen:
    """Of each rule and group, the layer that speaks first: where that is silenced, so are the others."""

    def __init__(self) -> None:
        self._speaks: dict[tuple[int, str], bool] = {}

    def in_force(self, hit: Hit, own: Callable[[], bool]) -> bool:
        """Whether a hit is, where `own` says whether the user wants to hear of it in its layer."""
        if hit.flaw.group is None:
            return own()
        key = hit.flaw.group, hit.rule.info.code
        if key not in self._speaks:
            self._speaks[key] = own()
            return self._speaks[key]
        return self._speaks[key] and own()


def _is_another_network(flaw: Flaw, layer: ConvLayer) -> bool:
    """Whether a fix takes away more channels than a little, or widens them for the tiles' sake by more than half."""
    sizes = [(float(flaw.set[name]), now) for name in _SIDES if name in flaw.set and (now := getattr(layer, name))]
    if any(new < (1 - _MOST_TAKEN) * now for new, now in sizes):
        return True
    return flaw.rule.loss != "fix" and any(new > (1 + _MOST_WIDENING) * now for new, now in sizes)


def _alone(flaw: Flaw, side: str, values: LayerFacts) -> Flaw:
    """What its rule finds on one side, once the other has what the fix sets; its own words where it finds nothing."""
    mended = with_fix(values.layer, {name: value for name, value in flaw.set.items() if name != side})
    of_side = LayerFacts(values.context, mended, values.edge, values.producers, None)
    found = Evaluator([flaw.rule]).evaluate(of_side, connected=values.edge is not None, exists=False).flaws
    own = next((each for each in found if each.set.keys() == {side}), None)
    if own is not None:
        # what would be no more than a remark alone may be what the other side pays with
        return replace(own, case=replace(own.case, severity=flaw.case.severity))
    other = {name: value for name, value in flaw.other.items() if name == side}
    return replace(flaw, set={side: flaw.set[side]}, other=other)
