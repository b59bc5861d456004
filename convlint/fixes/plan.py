"""One consistent set of changes to a network, from what the fixes of single findings wish for.

Channels are changed by whole groups, the batch for all layers that share it. Where two wishes contradict each other,
the one on the graver finding counts; what cannot be granted is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from convlint.fixes.applicable import Wish
from convlint.fixes.change import Change
from convlint.fixes.widths import agreed, group_of, obstacle
from convlint.model.channel_walk import channels_of
from convlint.model.channels import Channels
from convlint.model.network import Network
from convlint.report import Scalar

_MOST_PASSES = 20
_MOST_GUESSED = 4  # channels up to which a layer that stands alone is taken for the first


class Plan(Struct, frozen=True, kw_only=True):
    """What is to change, and why.

    `granted` are the wishes behind it, `touched` the layers that each of them changes, by index, and `refused` the
    others with the reason. `sets` is what becomes of the layers, `runtime` what of the runtime ("runtime.tf32").
    `changes` are those of the file's values, each with the positions in `granted` of the wishes that need it.
    """

    granted: tuple[Wish, ...] = ()
    touched: tuple[frozenset[int], ...] = ()
    refused: tuple[tuple[Wish, str], ...] = ()
    sets: Mapping[int, Mapping[str, Scalar]] = {}
    runtime: Mapping[str, Scalar] = {}
    changes: Mapping[Change, tuple[int, ...]] = {}


class Planner:
    """Plans for one network. `blocked` says of fields why a change of the file would not reach them."""

    def __init__(self, network: Network, blocked: Mapping[str, str] | None = None) -> None:
        self.network, self.blocked = network, blocked or {}
        self.index_of = {layer.name: index for index, layer in enumerate(network.layers)}
        self.fed = {index for edge in network.edges for index in edge.producers}  # the layers that others read

    @cached_property
    def channels(self) -> Channels:
        """The groups of channels; worked out where a wish is about channels."""
        return channels_of(self.network)

    @cached_property
    def position_of(self) -> Mapping[int, int]:
        """Layer -> the operation that is it."""
        numbered = reversed(list(enumerate(self.network.operations)))
        return {operation.layer: number for number, operation in numbered if operation.layer is not None}

    @cached_property
    def by_batch(self) -> Mapping[int | None, list[int]]:
        """The layers of each N."""
        found: dict[int | None, list[int]] = {}
        for index, layer in enumerate(self.network.layers):
            found.setdefault(layer.N, []).append(index)
        return found

    def plan(self, wishes: Iterable[Wish]) -> Plan:
        """What can be granted of the wishes, the most important of which come first."""
        refused: list[tuple[Wish, str]] = []
        left = []
        for wish in wishes:
            reason = self._impossible(wish)
            if reason:
                refused.append((wish, reason))
            else:
                left.append(wish)
        for _ in range(_MOST_PASSES):
            attempt = _Attempt(self, left)
            if not attempt.refused:
                break
            refused += [(left[number], reason) for number, reason in attempt.refused.items()]
            left = [wish for number, wish in enumerate(left) if number not in attempt.refused]
        else:
            refused += [(wish, "it depends on fixes that contradict each other") for wish in left]
            attempt = _Attempt(self, [])
        return attempt.plan(refused)

    def _impossible(self, wish: Wish) -> str:
        """Why a wish is refused whatever the others are; empty where nothing speaks against it."""
        if wish.layer is not None and wish.layer not in self.index_of:
            return "the file does not name its layer"
        for field in wish.sets:
            if field in self.blocked:
                return self.blocked[field]
        if wish.layer is None and "N" in wish.sets and len(self.by_batch) != 1:
            return "its layers differ in N"
        return ""


class _Attempt:
    """One attempt to grant all of some wishes; `refused` says by their numbers which of them cannot be."""

    def __init__(self, planner: Planner, wishes: Sequence[Wish]) -> None:
        self.planner, self.wishes = planner, wishes
        self.network = planner.network
        self.refused: dict[int, str] = {}
        self.claims: dict[tuple[int | None, str], tuple[Scalar, list[int]]] = {}
        self.wanted: dict[int, dict[int, list[int]]] = {}  # group -> width -> wishes
        self.following: list[tuple[int, int, str, Scalar]] = []  # what groups have to bring about: wish, layer, field
        self.touched: list[set[int]] = [set() for _ in wishes]
        self.batches: dict[tuple[int, int | None], int] = {}  # finding, and N as it is -> the wish that speaks for it
        for number, wish in enumerate(wishes):
            index = None if wish.layer is None else planner.index_of[wish.layer]
            for field, value in wish.sets.items():
                self._ask(number, index, field, value)
        self.widths = self._widths()
        self._follow()

    def _ask(self, number: int, index: int | None, field: str, value: Scalar) -> None:
        if field == "N":
            planner = self.planner
            now = next(iter(planner.by_batch)) if index is None else self.network.layers[index].N
            speaks = self.batches.setdefault((id(self.wishes[number].finding), now), number)
            for each in planner.by_batch[now] if speaks == number else ():
                self._claim(number, each, field, value)
        elif index is None or field.startswith("runtime."):
            self._claim(number, None, field, value)
        elif self._is_wired(index, field):
            of = None
            if field != "groups":
                of = group_of(self.planner.channels, self.network.layers[index], index, field, int(value))
            if of is None:
                self.following.append((number, index, field, value))
            else:
                self.wanted.setdefault(of[0], {}).setdefault(of[1], []).append(number)
        else:
            self._claim(number, index, field, value)

    def _is_wired(self, index: int, field: str) -> bool:
        """Whether a field counts channels that others read or write too; a C that does not fit is the layer's own."""
        if field not in ("C", "K", "groups"):
            return False
        channels, follows = self.planner.channels, self.network.layers[index].depthwise
        return (field == "K" and index in channels.written) or (index in channels.read and (field == "C" or follows))

    def _claim(self, number: int, index: int | None, field: str, value: Scalar) -> None:
        said, numbers = self.claims.setdefault((index, field), (value, []))
        if said != value:
            code = self.wishes[numbers[0]].finding.rule.code
            self.refused.setdefault(number, f"{code} wants {field}={said} instead of {value}")
        else:
            numbers.append(number)
            if index is not None:
                self.touched[number].add(index)

    def _widths(self) -> dict[int, int]:
        """The new width of each group that has one; whose wishes cannot be granted is noted."""
        widths = {}
        for group, wanted in self.wanted.items():
            of = self.planner.channels.groups[group]
            reason = obstacle(of, wanted)
            width = None if reason else agreed(of, wanted)
            if width is None and not reason:
                reason = f"their number has to be a multiple of {of.multiple_of}"
            for asked, numbers in wanted.items():
                if width is not None and (asked == width or of.width <= asked < width):
                    for number in numbers:
                        self.touched[number].update(of.layers)
                    continue
                for number in numbers:
                    self.refused.setdefault(number, f"{of.width} channels stay: {reason or f'others want {width}'}")
            if width is not None:
                widths[group] = width
        return widths

    def _follow(self) -> None:
        """Notes what the groups do not bring about of what was wanted of several of them at once."""
        self.by_group = self.planner.channels.changes(self.network.layers, self.widths) if self.widths else {}
        for number, index, field, value in self.following:
            if self.by_group.get(index, {}).get(field) != value:
                self.refused.setdefault(number, f"{field} stays: it is made of other layers' channels")

    def plan(self, refused: Sequence[tuple[Wish, str]]) -> Plan:
        """The attempt as a plan."""
        sets: dict[int, dict[str, Scalar]] = {index: dict(changes) for index, changes in self.by_group.items()}
        runtime = {}
        for (index, field), (value, _) in self.claims.items():
            if index is None:
                runtime[field] = value
            else:
                sets.setdefault(index, {})[field] = value
        return Plan(
            granted=tuple(self.wishes),
            touched=tuple(map(frozenset, self.touched)),
            refused=tuple(refused),
            sets=sets,
            runtime=runtime,
            changes=self._changes(),
        )

    def _changes(self) -> dict[Change, tuple[int, ...]]:
        """The values that have to be written anew; what a file leaves to be carried follows by itself."""
        found: dict[Change, dict[int, None]] = {}

        def note(position: int | None, field: str, value: Scalar, numbers: Iterable[int]) -> None:
            if isinstance(value, float):
                value = int(value)
            found.setdefault(Change(layer=position, field=field, value=value), {}).update(dict.fromkeys(numbers))

        for (index, field), (value, numbers) in self.claims.items():
            if index is None:
                note(None, field, value, numbers)
            elif field != "N" or "N" in self.network.layers[index].spans:
                note(self.planner.position_of[index], field, value, numbers)
        self._batch_of_inputs(note)
        self._channels(note)
        return {change: tuple(numbers) for change, numbers in found.items()}

    def _batch_of_inputs(self, note: Callable[[int | None, str, Scalar, Iterable[int]], None]) -> None:
        carried = [
            claim
            for (index, field), claim in self.claims.items()
            if field == "N" and index is not None and "N" not in self.network.layers[index].spans
        ]
        for position, operation in enumerate(self.network.operations if carried else ()):
            if operation.kind == "input":
                note(position, "N", *carried[0])

    def _channels(self, note: Callable[[int | None, str, Scalar, Iterable[int]], None]) -> None:
        channels, network = self.planner.channels if self.widths else None, self.network
        if channels is None:
            return
        behind: dict[int, list[int]] = {}  # layer -> wishes
        for group, width in self.widths.items():
            numbers = [number for several in self.wanted[group].values() for number in several]
            for index in channels.groups[group].layers:
                behind.setdefault(index, []).extend(numbers)
            for position in channels.groups[group].inputs:
                note(position, "C", width, numbers)
        for index, changes in self.by_group.items():
            layer, position = network.layers[index], self.planner.position_of[index]
            for field, value in changes.items():
                if field in layer.spans and getattr(layer, field) != value:
                    note(position, field, value, behind[index])
            alone = not network.operations[position].inputs and index not in self.planner.fed
            if layer.first and alone and "first" not in layer.spans and changes.get("C", 0) > _MOST_GUESSED:
                note(position, "first", True, behind[index])
