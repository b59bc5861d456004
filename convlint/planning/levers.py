"""The changes that a plan is made of, each on its own: a setting, a layout, the width of one group of channels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from convlint.facts.network import shortened
from convlint.model.channels import ChannelGroup, Channels
from convlint.model.network import Network
from convlint.planning.settings import LAYOUT, Choice, Setting, with_choices
from convlint.report import Scalar

Kind = Literal["runtime", "dtype", "layout", "channels", "batch"]
_KINDS: Mapping[str, Kind] = {"dtype": "dtype", "runtime.tf32": "dtype", "layout": "layout", "copies_input": "layout"}
_NAMED = 4  # layers of one group, in words


class Lever(Struct, frozen=True, kw_only=True):
    """One change: `choice` in its layers or the runtime, or else `width` for a group. `layers` are those it changes.

    `safe` ones change neither the network nor its weights, as `check --fix` has it; one that `fills_up` adds zeros to
    the input and to the weights, which changes no result.
    """

    kind: Kind
    describe: str
    safety: Literal["safe", "unsafe"]
    layers: tuple[int, ...] = ()
    choice: Choice | None = None
    group: int | None = None
    width: int = 0
    fills_up: bool = False

    @property
    def of_runtime(self) -> bool:
        """Whether it changes how all layers run, and no layer itself."""
        return self.choice is not None and not self.choice.layers


def levers_of(
    network: Network, setting: Setting, own_layouts: Iterable[int], widths: Mapping[int, int], channels: Channels
) -> list[Lever]:
    """All that it takes to run the network in this setting, at these widths of groups.

    `own_layouts` are the layers that take their alternative, rather than the layout of the others.
    """
    choices = [choice for choice in setting.choices if choice.name != LAYOUT]
    choices += _layouts(network, setting, frozenset(own_layouts))
    return [of_choice(choice) for choice in choices] + [
        _of_group(number, width, channels.groups[number], network) for number, width in widths.items()
    ]


def of_choice(choice: Choice) -> Lever:
    """The lever that sets it."""
    kind = _KINDS.get(choice.name, "runtime")
    return Lever(kind=kind, describe=choice.describe, safety=choice.safety, layers=choice.layers, choice=choice)


def _layouts(network: Network, setting: Setting, own: frozenset[int]) -> list[Choice]:
    """One choice for every layout that layers get which they do not have."""
    found: dict[Scalar, Choice] = {}
    for index, (before, after) in enumerate(zip(network.layers, setting.network.layers, strict=True)):
        advice = setting.alternatives[index] if index in own else None
        value = after.layout if advice is None else advice.value
        if value == before.layout:
            continue
        told = advice or next(choice for choice in setting.choices if choice.name == LAYOUT and index in choice.layers)
        known = found.get(value, Choice(LAYOUT, value, (), told.describe, told.safety))
        found[value] = known._replace(layers=(*known.layers, index))
    return list(found.values())


def _of_group(number: int, width: int, group: ChannelGroup, network: Network) -> Lever:
    def named(layers: Iterable[int]) -> str:
        return shortened([network.layers[index].name for index in layers], _NAMED)

    readers = [reader.layer for reader in group.readers]
    if group.only_input:
        describe = f"fill the input up to {width} channels with zeros, in it and in the weights of {named(readers)}"
    else:
        parts = [f"{letter} of {named(of)}" for letter, of in (("K", group.writers), ("C", readers)) if of]
        describe = f"{width} channels for {group.width}: {', '.join(parts)}"
    return Lever(
        kind="channels", describe=describe, safety="unsafe", layers=group.layers, group=number, width=width,
        fills_up=group.only_input,
    )  # fmt: skip


def applied(network: Network, levers: Sequence[Lever], channels: Channels) -> Network:
    """The network with all of them."""
    widths = {lever.group: lever.width for lever in levers if lever.group is not None}
    changed = channels.widened(network, widths) if widths else network
    return with_choices(changed, [lever.choice for lever in levers if lever.choice is not None])
