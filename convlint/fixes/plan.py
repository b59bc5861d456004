"""One consistent set of changes to a network, from what the fixes of single findings wish for.

Channels are changed by whole groups, the batch for all layers that share it, the layout for all that are connected.
Where two wishes contradict each other, the one on the graver finding counts; what cannot be granted is refused with
the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain

from msgspec import Struct

from convlint.fixes.applicable import Wish
from convlint.fixes.change import Change
from convlint.fixes.layouts import Layouts
from convlint.fixes.stated import Stated
from convlint.fixes.widths import agreed, group_of, obstacle
from convlint.model.channel_walk import channels_of
from convlint.model.channels import Channels
from convlint.model.network import Network
from convlint.report import Scalar

_MOST_PASSES = 20


class Plan(Struct, frozen=True, kw_only=True):
    """What is to change, and why.

    `granted` are the wishes behind it, `touched` the layers that each of them changes, by index, and `refused` the
    others with the reason. `sets` is what becomes of the layers, `runtime` what of the runtime ("runtime.tf32").
    `changes` are those of the file's values, each with the positions in `granted` of the wishes that need it. `loose`
    are sets of layers that follow, although no wish touches them.
    """

    granted: tuple[Wish, ...] = ()
    touched: tuple[frozenset[int], ...] = ()
    refused: tuple[tuple[Wish, str], ...] = ()
    sets: Mapping[int, Mapping[str, Scalar]] = {}
    runtime: Mapping[str, Scalar] = {}
    changes: Mapping[Change, tuple[int, ...]] = {}
    loose: tuple[frozenset[int], ...] = ()


class Planner:
    """Plans for one network. `blocked` says of fields why a change of the file would not reach them.

    `silenced` are findings that nobody wants to hear of, by rule and layer: for their rules those layers do not change.
    The layers `staying` keep their layout, unless a wish is for them.
    """

    def __init__(
        self, network: Network, blocked: Mapping[str, str] | None = None,
        silenced: Iterable[tuple[str, str | None]] = (), staying: Collection[int] = (),
    ) -> None:  # fmt: skip
        self.network, self.blocked, self.staying = network, blocked or {}, staying
        self.layouts = Layouts(network)
        self.silenced: dict[str, set[int]] = {}
        self.index_of = {layer.name: index for index, layer in enumerate(network.layers)}
        for code, name in silenced:
            if name in self.index_of:
                self.silenced.setdefault(code, set()).add(self.index_of[name])

    @cached_property
    def channels(self) -> Channels:
        """The groups of channels; worked out where a wish is about channels."""
        return channels_of(self.network)

    @cached_property
    def by_batch(self) -> Mapping[int | None, list[int]]:
        """The layers of each N."""
        found: dict[int | None, list[int]] = {}
        for index, layer in enumerate(self.network.layers):
            found.setdefault(layer.N, []).append(index)
        return found

    def plan(self, wishes: Iterable[Wish]) -> Plan:
        """What can be granted of the wishes, the most important of which come first."""
        judged = [(wish, self._impossible(wish)) for wish in wishes]
        refused = [(wish, reason) for wish, reason in judged if reason]
        left = [wish for wish, reason in judged if not reason]
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
        if wish.layer is None and "N" in wish.sets and len(self.by_batch) != 1:
            return "its layers differ in N"
        return next((self.blocked[field] for field in wish.sets if field in self.blocked), "")


class _Attempt:
    """One attempt to grant all of some wishes; `refused` says by their numbers which of them cannot be."""

    def __init__(self, planner: Planner, wishes: Sequence[Wish]) -> None:
        self.planner, self.wishes, self.network = planner, wishes, planner.network
        self.refused: dict[int, str] = {}
        self.claims: dict[tuple[int | None, str], tuple[Scalar, tuple[int, ...]]] = {}
        self.wanted: dict[int, dict[int, list[int]]] = {}  # group -> width -> wishes
        self.following: list[tuple[int, int, str, Scalar]] = []  # what groups have to bring about: wish, layer, field
        self.together: dict[tuple[str, Scalar], dict[int, list[int]]] = {}  # what many layers get -> who wants it
        self.touched: list[frozenset[int]] = [frozenset()] * len(wishes)
        self.loose: list[frozenset[int]] = []
        for number, wish in enumerate(wishes):
            index = None if wish.layer is None else planner.index_of[wish.layer]
            for field, value in wish.sets.items():
                self._ask(number, index, field, value)
        self.widths = self._widths()
        self._follow()
        for (field, value), asking in self.together.items():
            (self._batch if field == "N" else self._layout)(asking, value)
        self._heed()

    def _ask(self, number: int, index: int | None, field: str, value: Scalar) -> None:
        if field == "N" or (field == "layout" and index is not None):
            self.together.setdefault((field, value), {}).setdefault(index or 0, []).append(number)
        elif index is None or field.startswith("runtime."):
            self._claim((number,), (None,), field, value)
        elif self._is_wired(index, field):
            of = None
            if field != "groups":
                of = group_of(self.planner.channels, self.network.layers[index], index, field, int(value))
            if of is None:
                self.following.append((number, index, field, value))
            else:
                self.wanted.setdefault(of[0], {}).setdefault(of[1], []).append(number)
        else:
            self._claim((number,), (index,), field, value)
            self._touch((number,), frozenset((index,)))

    def _is_wired(self, index: int, field: str) -> bool:
        """Whether a field counts channels that others read or write too; a C that does not fit is the layer's own."""
        if field not in ("C", "K", "groups"):
            return False
        channels, follows = self.planner.channels, self.network.layers[index].depthwise
        return (field == "K" and index in channels.written) or (index in channels.read and (field == "C" or follows))

    def _batch(self, asking: Mapping[int, Sequence[int]], N: Scalar) -> None:
        """The batch is one for all layers that share it."""
        by_batch: dict[int | None, list[int]] = {}
        for index, numbers in asking.items():
            by_batch.setdefault(self.network.layers[index].N, []).extend(numbers)
        for now, numbers in by_batch.items():
            every = self.planner.by_batch[now]
            self._claim(tuple(numbers), every, "N", N)
            self._touch(numbers, frozenset(every))

    def _layout(self, asking: Mapping[int, Sequence[int]], layout: Scalar) -> None:
        """The layout is one for all layers that are connected, and for others that draw it from the same place."""
        planner = self.planner
        advised = {i: own for i, several in asking.items() if (own := [n for n in several if self._is_advised(n)])}
        for index, numbers in advised.items():  # advice on the layout is for all of the network already
            self._claim(tuple(numbers), (index,), "layout", layout)
            self._touch(numbers, frozenset((index,)))
        asking = {i: own for i, several in asking.items() if (own := [n for n in several if not self._is_advised(n)])}
        codes = {self.wishes[n].finding.rule.code for several in asking.values() for n in several}
        silenced = set[int]().union(*(planner.silenced.get(code, ()) for code in codes))
        for company in planner.layouts.companies(layout, asking, planner.staying):
            loose = [layers for layers in company.loose if silenced.isdisjoint(layers)]
            for layers in (company.layers, *loose):
                self._claim(company.wishes, layers, "layout", layout)
            self._touch(company.wishes, company.layers)
            self.loose += loose

    def _is_advised(self, number: int) -> bool:
        return self.wishes[number].finding.advised

    def _claim(self, numbers: tuple[int, ...], layers: Iterable[int | None], field: str, value: Scalar) -> None:
        """Notes a value that these wishes want in these layers, or that another wish wants another one there."""
        for index in layers:
            said, known = self.claims.setdefault((index, field), (value, numbers))
            if said != value:
                code = self.wishes[known[0]].finding.rule.code
                for number in numbers:
                    self.refused.setdefault(number, f"{code} wants {field}={said} instead of {value}")
                return
            if known is not numbers:
                self.claims[index, field] = said, (*known, *numbers)

    def _touch(self, numbers: Iterable[int], layers: frozenset[int]) -> None:
        for number in numbers:  # thousands of wishes may share one set of thousands of layers
            self.touched[number] = self.touched[number] | layers if self.touched[number] else layers

    def _heed(self) -> None:
        """Refuses what would change a layer in which the user silenced the very rule."""
        for number, wish in enumerate(self.wishes if self.planner.silenced else ()):
            silenced = self.touched[number] & self.planner.silenced.get(wish.finding.rule.code, set())
            if silenced:
                self.refused.setdefault(number, f"it is silenced in {self.network.layers[min(silenced)].name}")

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
                    self._touch(numbers, frozenset(of.layers))
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
        runtime: dict[str, Scalar] = {}
        for (index, field), (value, _) in self.claims.items():
            if index is None:
                runtime[field] = value
            else:
                sets.setdefault(index, {})[field] = value
        return Plan(
            granted=tuple(self.wishes),
            touched=tuple(self.touched),
            refused=tuple(refused),
            sets=sets,
            runtime=runtime,
            changes=self._stated(),
            loose=tuple(self.loose),
        )

    def _stated(self) -> Mapping[Change, tuple[int, ...]]:
        stated = Stated(self.network)
        stated.claims(self.claims)
        if self.widths:
            wanted = {group: tuple(chain(*several.values())) for group, several in self.wanted.items()}
            stated.widths(self.planner.channels, self.widths, wanted, self.by_group)
        return stated.changes
