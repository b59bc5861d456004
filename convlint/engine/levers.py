"""The changes that advice may make, which of them hold, and which layers a change of channels reaches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from math import lcm
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from convlint.engine.hits import Evaluator, Flaw, Hit, impossible, stated, with_fix, with_settings
from convlint.engine.timing import NOTHING, Changes, NetworkSetting, NetworkTiming, key_of
from convlint.estimate import estimate_layer
from convlint.estimate.memory import parameters
from convlint.facts.layer import LayerFacts
from convlint.facts.network import shortened
from convlint.facts.target import TargetFacts
from convlint.files.languages import sentence
from convlint.model.channels import ChannelGroup, Channels, channels_of, least_width
from convlint.model.estimates import LayerEstimate
from convlint.model.grouping import grouped
from convlint.model.layer import Allowance, ConvLayer, flops, layer_identity
from convlint.model.network import Network
from convlint.model.text import Text, joined
from convlint.rulebook.rule import Rule

if TYPE_CHECKING:
    from convlint.model.channels import Axis

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
        """The group of this layer's C or K, if several layers share it; of the network's input, if several read it."""
        number = self.number_of(index, name)
        return number if number is not None and self._is_shared(number) else None

    def number_of(self, index: int, name: str) -> int | None:
        """The group of this layer's C or K, shared or not; None where there is none."""
        if not self.wired or name not in _SIDES:
            return None
        axis = self._axis(index, name)
        return axis[0][0] if len(axis) == 1 and axis[0][1] == 1 else None

    def _axis(self, index: int, name: str) -> Axis:
        """The groups in this layer's C, or the one in its K; none where none is known."""
        if name == "C":
            return self.channels.read.get(index, ())
        number = self.channels.written.get(index)
        return () if number is None else ((number, self.channels.times.get(index, 1)),)

    def _is_shared(self, number: int) -> bool:
        group = self.channels.groups[number]
        if group.only_input:
            return len(group.readers) > 1
        return len(group.writers) + len(group.readers) + len(group.linear) > 1

    def is_free(self, index: int, fields: Iterable[str]) -> bool:
        """Whether nothing in the network fixes these channels of a layer; an input can be filled up with zeros."""
        if not self.wired:
            return True
        sides = [side for side in _SIDES if side in fields]
        groups = [self.channels.groups[number] for side in sides for number, _ in self._axis(index, side)]
        return all(not group.fixed or group.only_input for group in groups)

    def split(self, index: int, flaw: Flaw, values: Callable[[], LayerFacts]) -> Sequence[Flaw]:
        """Splits a flaw by sides where other layers share C or K; each part is as it stands once the other is mended.

        A flaw that is an info, or whose fix makes another network, is not split.
        """
        sides = [name for name in _SIDES if name in flaw.set]
        if not self.wired or len(sides) != len(flaw.set) or all(self.is_own(index, name) for name in sides):
            return (flaw,)
        if flaw.case.severity == "info" or _is_another_network(flaw, self.layers[index]):
            return (flaw,)
        flaws = [flaw] if len(sides) == 1 else [_alone(flaw, name, values()) for name in sides]
        return [self._sided(flaw, index, name, values) for flaw, name in zip(flaws, sides, strict=True)]

    def is_own(self, index: int, name: str) -> bool:
        """Whether no other layer has this width."""
        if self._is_composed(index, name):
            return False
        return self.group_of(index, name) is None

    def _is_composed(self, index: int, name: str) -> bool:
        axis = self._axis(index, name)
        return len(axis) > 1 or any(scale != 1 for _, scale in axis)

    def _sided(self, flaw: Flaw, index: int, side: str, values: Callable[[], LayerFacts]) -> Flaw:
        if self._is_composed(index, side):
            return self._composed(flaw, index, side, values)
        number = self.group_of(index, side)
        width = int(flaw.set[side])
        if number is not None and self.width(number, width) != width:
            facts = values()
            key = number, index, side, flaw.rule.info.code, width, facts.context, facts.layer.dtype
            if key not in self._fits:
                self._fits[key] = self._fitting(number, flaw, side, facts)
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
            if not any(side in violation.places for violation in alone.broken(changed)):
                return width
        return 0

    def _composed(self, flaw: Flaw, index: int, side: str, values: Callable[[], LayerFacts]) -> Flaw:
        """The flaw on a C that several groups make up, or parts of one: the first that is not aligned has to change."""
        alignment = values()["alignment"] if flaw.rule.loss == "fix" else 0
        axis = self._axis(index, side) if isinstance(alignment, int) and alignment > 1 else ()
        for part, (number, scale) in enumerate(axis):
            width = self.channels.groups[number].width
            step = lcm(least_width(alignment, scale), self.channels.groups[number].multiple_of)
            if width % step and self._is_shared(number):
                return replace(flaw, side=side, group=number, part=part, width=-(-width // step) * step)
        return replace(flaw, side=side, composed=True)

    def at_home(self, flaw: Flaw, index: int) -> Flaw:
        """The flaw with this layer's group, where it was found in another layer."""
        if flaw.group is None:
            return flaw
        number = self._axis(index, flaw.side)[flaw.part][0]
        return flaw if number == flaw.group else replace(flaw, group=number)

    def width(self, number: int, wanted: int) -> int:
        """The least width of a group from `wanted` on that all of its layers can take, however it must divide."""
        step = self.channels.groups[number].multiple_of
        return -(-wanted // step) * step

    def sets(self, indices: Sequence[int], widths: Mapping[int, int], number: int) -> tuple[Mapping[str, int], ...]:
        """The changes of a group in each of these layers; `widths` has those of all groups that share a C with it."""
        return tuple(self._change(index, widths, number) for index in indices)

    def _change(self, index: int, widths: Mapping[int, int], number: int) -> Mapping[str, int]:
        layer = self.layers[index]
        of_K = {number: widths[number]} if self.channels.written.get(index) == number else {}
        of_C = widths if number in self.channels.parts.get(index, ()) else {}
        changes = self.channels.changes_of(index, layer, of_C)
        if "K" in changes and not layer.depthwise:
            del changes["K"]
        return {**self.channels.changes_of(index, layer, of_K), **changes}

    def follows(self, number: int, index: int, side: str, *, widens: bool) -> str:
        """The other layers and sides of the group, in words: `K of d and C of b, c with it`; linear layers too.

        Some change in proportion, such as those that read half of its channels, or of which a pixel shuffle makes one.
        Where the change `widens` the group, and does not only pad it, also why it cannot change.
        """
        group = self.channels.groups[number]
        others = [layer for layer in group.writers if (layer, "K") != (index, side)]
        # Also where a pixel shuffle hands on several channels as one.
        whole = [reader.layer for reader in group.readers if self.channels.parts[reader.layer].keys() == {number}]
        part = [reader.layer for reader in group.readers if reader.layer not in whole]
        places = (
            (sentence("K of {layers}"), others),
            (sentence("C of {layers}"), [layer for layer in whole if (layer, "C") != (index, side)]),
            (sentence("part of C of {layers}"), part),
        )
        parts = [Text(what, layers=self._names(which)) for what, which in places if which]
        linear = self.linear_layers(group)
        text = joined(Text(" and "), [*parts, *([shortened(linear, _NAMED)] if linear else [])])
        scales = {self.channels.times.get(layer, 1) for layer in group.writers}
        alike = len(scales.union(reader.times for reader in group.readers)) <= 1
        if not group.fixed or not widens:
            return Text(sentence("{others} with it") if alike else sentence("{others} in proportion"), others=text)
        but = sentence("{others} with it; but {reason}") if alike else sentence("{others} in proportion; but {reason}")
        return Text(but, others=text, reason=group.fixed[0])

    def linear_layers(self, group: ChannelGroup) -> list[str]:
        """The linear layers that read or write a group, as people know them: `linear fc`, `linear at net.py:12`."""
        linear = (self._network.operations[number] for number in group.linear)
        return list(dict.fromkeys(operation.where or operation.name for operation in linear))

    def _names(self, which: list[int]) -> str:
        return shortened([self.layers[index].name for index in which], _NAMED)

    def group_of_lever(self, lever: Lever) -> int | None:
        """The group of channels that a lever is; also one that is a single layer's own, as far as it is wired."""
        if lever.group is not None:
            return lever.group
        return self.number_of(lever.layers[0], *lever.changes) if len(lever.changes) == 1 else None

    def widened(self, network: Network, levers: Iterable[Lever]) -> Network:
        """The network with those of the levers that are groups of channels."""
        widths = {
            number: lever.width or int(next(iter(lever.changes.values())))
            for lever in levers
            if (number := self.group_of_lever(lever)) is not None
        }
        return self.channels.widened(network, widths) if widths else network

    def group(self, number: int) -> ChannelGroup:
        """The group of that number."""
        return self.channels.groups[number]


class Spokesmen:
    """Of each rule and group, the layer that speaks first: where that is silenced, so are the others."""

    def __init__(self) -> None:
        self._speaks: dict[tuple[int, str], bool] = {}

    def in_force(self, hit: Hit, own: Callable[[], bool]) -> bool:
        """Whether a hit is in force; `own` says whether it is not silenced in its own layer."""
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
    """The flaw of its rule on one side, once the other is mended; this flaw, with that side alone, if there is none."""
    mended = with_fix(values.layer, {name: value for name, value in flaw.set.items() if name != side})
    of_side = LayerFacts(values.context, mended, values.edge, values.producers, None)
    flaws = Evaluator([flaw.rule]).evaluate(of_side, connected=values.edge is not None, exists=False).flaws
    own = next((candidate for candidate in flaws if candidate.set.keys() == {side}), None)
    if own is not None:
        present = {name: getattr(values.layer, name) for name in flaw.set if name != side}
        message = own.case.message.render(of_side, present, code=own.rule.info.code)
        # what would be no more than a remark alone may be what the other side pays with
        return replace(own, case=replace(own.case, severity=flaw.case.severity), message=message)
    other = {name: value for name, value in flaw.other.items() if name == side}
    return replace(flaw, set={side: flaw.set[side]}, other=other)


Kind = Literal["dtype", "layout", "runtime"]
KINDS: tuple[Kind, ...] = ("dtype", "layout", "runtime")
TF32 = "runtime.tf32"
AUTOCAST = "runtime.mixed_precision"
MOST_ROUNDS = 4  # in which sizes are changed and the rules asked again
_SETS: Mapping[str, Kind] = {"dtype": "dtype", TF32: "dtype", "layout": "layout"}
Key = tuple[object, ...]
FlawFilter = Callable[[int, Flaw], bool]  # whether the user wants to hear of a flaw in a layer


class Lever(Struct, frozen=True):
    """A new width of a group of channels, or `changes` of one layer; `layers` are those that it changes.

    `asking` are the flaws behind it, with their layers.
    """

    key: Key
    layers: tuple[int, ...]
    asking: tuple[tuple[int, Flaw], ...]
    group: int | None = None
    width: int = 0
    changes: Changes = NOTHING

    @property
    def code(self) -> str:
        """The rule that asks first."""
        return self.asking[0][1].rule.info.code

    @property
    def is_safe(self) -> bool:
        """Whether the fixes of all flaws behind it are safe."""
        return all(flaw.case.fix is not None and flaw.case.fix.safety == "safe" for _, flaw in self.asking)


Levers = Mapping[Key, Lever]


class Advised(Struct, frozen=True):
    """What rules advise for the network in one setting."""

    settings: Sequence[tuple[int, Flaw]]
    levers: Levers


class Limits(Struct, frozen=True, kw_only=True):
    """What advice must leave as it is: `fields` are kinds of settings and "channels"; or all that changes results."""

    fields: frozenset[str] = frozenset()
    results: bool = False


NO_LIMITS = Limits()


def kind_of(changes: Collection[str]) -> Kind | None:
    """Which setting of the network these fields are; None where they are sizes and forms of a layer."""
    return _kind_of(tuple(changes))


@lru_cache(256)  # rules set a few fields in many layers
def _kind_of(changes: tuple[str, ...]) -> Kind | None:
    kinds = {_SETS.get(name, "runtime" if name.startswith("runtime.") else None) for name in changes}
    if "dtype" in kinds and AUTOCAST in changes:
        kinds.discard("runtime")
    return next(iter(kinds)) if len(kinds) == 1 else None


def may_play(flaw: Flaw, layer: ConvLayer) -> bool:
    """Whether its fix is one that anybody may be advised to make for the sake of time."""
    fix = flaw.case.fix
    if fix is None or not fix.priced or flaw.rule.loss != "fix" or not flaw.set or "N" in flaw.set or flaw.composed:
        return False
    return stated(flaw, layer) != "info" and not takes_away(flaw.set, layer)


def _has_price(flaw: Flaw) -> bool:
    return flaw.rule.loss == "fix" and flaw.case.fix is not None and flaw.case.fix.priced


def narrowing(flaw: Flaw, layer: ConvLayer) -> Changes:
    """The narrower size that a flaw of tiles names, for those who allow it; nothing where it names none."""
    fix = flaw.case.fix
    if flaw.rule.loss != "tile" or fix is None or not fix.priced or flaw.refused or flaw.composed or flaw.part:
        return NOTHING
    if stated(flaw, layer) == "info":
        return NOTHING
    ways = (way for way in (flaw.set, flaw.other) if len(way) == 1 and way.keys() <= {"C", "K"})
    return next((way for way in ways if takes_away(way, layer)), NOTHING)


def takes_away(changes: Changes, layer: ConvLayer) -> bool:
    """Whether a layer does less work after these changes, or has fewer weights."""
    if kind_of(changes) is not None:
        return False
    widths = [name for name in _SIDES if name in changes]
    if any(int(changes[name]) < (getattr(layer, name) or 0) for name in widths):
        return True
    if len(widths) == len(changes):  # more channels are no less work
        return False
    after = with_fix(layer, changes)
    pairs = ((flops(layer), flops(after)), (parameters([layer]), parameters([after])))
    return any(before is not None and later is not None and later < before for before, later in pairs)


class Advice:
    """The rules of one network on one target, asked about it in any setting."""

    def __init__(
        self, timing: NetworkTiming, facts: TargetFacts, rules: Iterable[Rule], coupling: Coupling,
        is_wanted: FlawFilter | None, limits: Limits, allow: Collection[Allowance] = (), *,
        codes: Collection[str] | None = None,
    ) -> None:  # fmt: skip
        """`facts` are those of the network as it is; `is_wanted` says of flaws in other settings whether they count.

        `codes` are those of all `rules` (None: of the whole rulebook), which find what the rest of it silences.
        """
        rules = list(rules)
        own = [rule for rule in rules if rule.scope == "layer"]
        self._on_tiles = Evaluator(own) if "narrower" in allow else None
        self._timing, self._facts, self.coupling, self._is_wanted = timing, facts, coupling, is_wanted
        self._limits = limits
        playing = _playing(rules)
        self._evaluator = Evaluator(playing)
        self._grave = Evaluator([rule for rule in own if any(case.severity == "error" for case in rule.cases)])
        # What the rest of the rulebook silences as things are, these rules find.
        self._silenced_alike = codes is None or all(code in codes for rule in playing for code in rule.yields_to)
        self._known: dict[object, Sequence[Flaw]] = {}  # what was found, by all that decides it
        self._now: dict[int, list[Flaw]] | None = None  # what was found in each layer as things are, once it is known
        self.out_of_play: set[tuple[str, int]] = set()  # rules and groups of which a member is silenced or known

    def of(self, setting: NetworkSetting, present: Iterable[tuple[int, Flaw]] | None = None) -> Advised:
        """What the rules advise in a setting; `present` are their flaws there, where it is the present one."""
        flaws = list(self._flaws(setting, range(len(setting.layers)), {})) if present is None else list(present)
        if present is not None and self._silenced_alike:
            self._now = grouped(flaws)
        settings = [(index, flaw) for index, flaw in flaws if kind_of(flaw.set) is not None]
        known = {(index, flaw.key, key_of(flaw.set)) for index, flaw in settings}
        levers: dict[Key, Lever] = {}
        forms: dict[int, list[Key]] = {}
        for index, flaw in flaws:
            if kind_of(flaw.set) is None and flaw.rule.loss != "tile":
                self._add(levers, forms, index, flaw)
        changed = self.changes(levers)
        for _ in range(MOST_ROUNDS):
            if not changed:
                break
            before = {key: (lever.width, lever.changes) for key, lever in levers.items()}
            useless: set[Key] = set()
            for index, flaw in self._flaws(setting, changed, self.changes(levers)):
                if kind_of(flaw.set) is not None:
                    if (index, flaw.key, key_of(flaw.set)) not in known:  # sizes may be what a setting waits for
                        known.add((index, flaw.key, key_of(flaw.set)))
                        settings.append((index, flaw))
                elif not self._add(levers, forms, index, flaw, again=True):
                    useless.add(_key(index, flaw))
            for key in useless & before.keys():  # the flaw would stay
                del levers[key]
            moved = [lever for key, lever in levers.items() if before.get(key) != (lever.width, lever.changes)]
            touched = {index for lever in moved for index in lever.layers}
            changed = {index: own for index, own in self.changes(levers).items() if index in touched}
        if self._on_tiles is not None:
            tiles = self._flaws(setting, range(len(setting.layers)), {}, self._on_tiles) if present is None else flaws
            self._narrow(levers, tiles)
        return Advised(settings, levers)

    def _narrow(self, levers: dict[Key, Lever], flaws: Iterable[tuple[int, Flaw]]) -> None:
        """Adds the narrower sizes that flaws of tiles name, where nothing asks for wider ones."""
        for index, flaw in flaws:
            layer = self.coupling.layers[index]
            less, key = narrowing(flaw, layer), _key(index, flaw)
            if not less or key in levers or not self._is_allowed(index, replace(flaw, set=less)):
                continue
            side = next(iter(less))
            if flaw.group is None:
                if self.coupling.is_own(index, side):  # else other layers would keep the width that it had
                    levers[key] = Lever(key, (index,), ((index, flaw),), changes=less)
                continue
            group = self.coupling.group(flaw.group)
            width = int(less[side]) // group.multiple_of * group.multiple_of
            if self.coupling.group_of(index, side) == flaw.group and 0 < width < group.width:
                levers[key] = Lever(key, group.layers, ((index, flaw),), flaw.group, width)

    def changes(self, levers: Levers, only: int | None = None) -> dict[int, Changes]:
        """What all of the levers change, by layer; `only` is the one layer that matters, which all of them change."""
        by_layer: dict[int, Changes] = {}
        widths: dict[int, int] = {}
        grouped: dict[int, None] = {} if only is None else {only: None}
        for lever in levers.values():
            if lever.group is None:
                (index,) = lever.layers
                by_layer[index] = {**by_layer[index], **lever.changes} if index in by_layer else lever.changes
            else:
                widths[lever.group] = lever.width
                if only is None:
                    grouped.update(dict.fromkeys(lever.layers))
        for index in grouped:
            sizes = self.coupling.channels.changes_of(index, self.coupling.layers[index], widths)
            by_layer[index] = {**by_layer.get(index, {}), **sizes}
        return by_layer

    def _flaws(
        self, setting: NetworkSetting, indices: Iterable[int], changes: Mapping[int, Changes],
        on_tiles: Evaluator | None = None,
    ) -> Iterator[tuple[int, Flaw]]:  # fmt: skip
        """Yields the flaws that may play in these layers once they have `changes`, each layer as if it stood alone.

        With `on_tiles`, those that name narrower sizes.
        """
        context, evaluator = self._facts.with_runtime(setting.runtime), on_tiles or self._evaluator
        known = self._known if on_tiles is None else {}
        for index in indices:
            layer = setting.layers[index]
            own = changes.get(index, NOTHING)
            if own:
                layer = with_fix(layer, own)
            if layer.dtype is None:
                continue
            if self._now is not None and not own and on_tiles is None and self._is_as_now(setting, index):
                yield from ((index, flaw) for flaw in self._now.get(index, ()))
                continue
            running = setting.running[index]
            key = (
                setting.number, layer_identity(layer), running.copies_input, running.norm_copies,
                layer.name if evaluator.tells_apart else None,
            )  # fmt: skip
            estimate = partial(self._timing.estimate, setting, index, own)
            values = partial(LayerFacts, context, layer, None, (), estimate)
            if key not in known:
                flaws = evaluator.evaluate(values(), connected=False, exists=False).flaws
                plays = may_play if on_tiles is None else narrowing
                known[key] = [flaw for flaw in flaws if plays(flaw, layer)]
            for flaw in known[key]:
                for side in self.coupling.split(index, flaw, values):
                    if side.set and (self._is_wanted is None or self._is_wanted(index, side)):
                        yield index, side

    def errors(
        self, setting: NetworkSetting, changes: Mapping[int, Changes], indices: Iterable[int] | None = None
    ) -> frozenset[tuple[int, str]]:
        """The layers (of `indices`) that have errors in a setting once they have `changes`, each with the rule's code.

        An error that has a price runs, in a time that is predicted, and is left out.
        """
        context, known = self._facts.with_runtime(setting.runtime), dict[object, Sequence[Flaw]]()
        errors = set[tuple[int, str]]()
        for index in range(len(setting.layers)) if indices is None else indices:
            layer = with_fix(setting.layers[index], changes.get(index, NOTHING))
            key = layer_identity(layer), layer.name if self._grave.tells_apart else None
            if key not in known:
                values = LayerFacts(context, layer, None, (), None)
                flaws = self._grave.evaluate(values, connected=False, exists=False).flaws
                known[key] = [flaw for flaw in flaws if flaw.case.severity == "error" and not _has_price(flaw)]
            errors.update(
                (index, flaw.rule.info.code)
                for flaw in known[key]
                if self._is_wanted is None or self._is_wanted(index, flaw)
            )
        return frozenset(errors)

    def _is_as_now(self, setting: NetworkSetting, index: int) -> bool:
        """Whether a setting leaves a layer as it is, one that reads no other."""
        timing = self._timing
        alone = setting.number == timing.now.number and index not in timing.edges
        return alone and setting.running[index] is timing.network.layers[index]

    def _add(
        self, levers: dict[Key, Lever], forms: dict[int, list[Key]], index: int, flaw: Flaw, *, again: bool = False
    ) -> bool:
        """Adds what a flaw asks for to `levers`; False where the rules are asked `again` and it adds nothing.

        `forms` are the keys of those that change one layer, by the layer.
        """
        if not self._is_allowed(index, flaw):
            return True
        key, known = _key(index, flaw), levers.get(_key(index, flaw))
        if flaw.group is None:
            own = self._own(index, flaw)
            if known is not None:
                more = {**known.changes, **own}
                if again and more == known.changes:
                    return False
                levers[key] = replace(known, changes=more, asking=(*known.asking, (index, flaw)))
                return True
            # two forms of one layer that set the same field
            clashing = [other for other in forms.get(index, ()) if other in levers and set(other[1:]) & set(key[1:])]
            if clashing and not again:
                return True  # the rule that comes first has it
            for other in clashing:
                more = {**levers[other].changes, **own}
                if more == levers[other].changes:
                    return True
                levers[other] = replace(levers[other], changes=more, asking=(*levers[other].asking, (index, flaw)))
                return True
            forms.setdefault(index, []).append(key)
            levers[key] = Lever(key, (index,), ((index, flaw),), changes=own)
            return True
        width = self.coupling.width(flaw.group, flaw.width)
        if known is None:
            layers = self.coupling.group(flaw.group).layers
            levers[key] = Lever(key, layers, ((index, flaw),), flaw.group, width)
            return True
        if again and width <= known.width:
            return False
        levers[key] = replace(known, asking=(*known.asking, (index, flaw)), width=max(width, known.width))
        return True

    def _own(self, index: int, flaw: Flaw) -> Changes:
        """What a flaw changes in a layer: of a head, whose K the task fixes, the rest."""
        if "K" not in flaw.set or not self.coupling.layers[index].head:
            return flaw.set
        return {name: value for name, value in flaw.set.items() if name != "K"}

    def _is_allowed(self, index: int, flaw: Flaw) -> bool:
        stays = "channels" in self._limits.fields or self._limits.results
        same = {"copies_input"} if self._limits.results else {"copies_input", "unfolded"}
        if stays and not flaw.set.keys() <= same:
            return False
        if flaw.group is None:
            own = self._own(index, flaw)
            return bool(own) and self.coupling.is_free(index, own)
        group = self.coupling.group(flaw.group)
        if group.fixed and not group.only_input:
            return False
        return (flaw.rule.info.code, flaw.group) not in self.out_of_play


def _key(index: int, flaw: Flaw) -> Key:
    return ("group", flaw.group) if flaw.group is not None else (index, *sorted(flaw.set))


def _playing(rules: Iterable[Rule]) -> list[Rule]:
    """The rules on single layers whose fixes may play, and those that silence them."""
    own = [rule for rule in rules if rule.scope == "layer"]
    players = [rule for rule in own if rule.loss == "fix" and any(_plays(rule, i) for i in range(len(rule.cases)))]
    silencing = {code for rule in players for code in rule.yields_to}
    return [rule for rule in own if rule in players or rule.info.code in silencing]


def _plays(rule: Rule, number: int) -> bool:
    case = rule.cases[number]
    return case.severity != "info" and case.fix is not None and any(name != "N" for name, _ in case.fix.set)


_LAYER = "layer"  # where a rule points that names no field
Broken = frozenset[tuple[str, str]]  # the code of a rule, and a place that it points at


class Validity:
    """The rules in force on one network and target. `running` are the layers as the framework lays them out."""

    def __init__(
        self,
        layers: Sequence[ConvLayer],
        running: Sequence[ConvLayer],
        estimates: Sequence[LayerEstimate | None],
        facts: TargetFacts,
        rules: Iterable[Rule],
        codes: Collection[str] | None = None,
    ) -> None:
        """`codes` are the rules in force, None: all of them."""
        self._layers, self._running, self._estimates, self._facts = layers, running, estimates, facts
        in_force = [rule for rule in rules if codes is None or rule.info.code in codes]
        judging = [rule for rule in in_force if rule.scope == "layer" and rule.loss != "wave"]
        self._all = Evaluator(judging)
        self._grave = Evaluator([rule for rule in judging if rule.loss != "tile"])

    def objections(
        self, index: int, changes: Changes, rule: Rule, *, mends: bool = True, predicted: bool = True
    ) -> frozenset[str]:
        """The codes of the rules that object to `changes` in a layer, for which `rule` asks.

        Where it `mends` the layer by them, `rule` must hold for what they set; else others have asked for them. Rules
        on what is predicted of the layer are asked only if it is to be `predicted`, which takes longer.
        """
        if impossible(changes, self._layers[index]) is not None:
            return frozenset((rule.info.code,))
        about_capacity = rule.loss in ("tile", "wave")
        after = self._after(index, changes, about_capacity, predicted)
        if not after:
            return frozenset()
        now = LayerFacts(self._facts, self._layers[index], None, (), self._estimates[index] if predicted else None)
        new = {code for code, _ in after - self._broken(now, about_capacity, {code for code, _ in after})}
        if mends and any((rule.info.code, place) in after for place in (*changes, _LAYER)):
            new.add(rule.info.code)
        return frozenset(new)

    def _after(self, index: int, changes: Changes, about_capacity: bool, predicted: bool) -> Broken:
        facts = self._facts.with_runtime(with_settings(self._facts.runtime, changes))
        layer, running = self._layers[index], self._running[index]
        same = layer is running
        layer = with_fix(layer, changes)
        running = layer if same else with_fix(running, changes)
        estimate = None
        if predicted and self._estimates[index] is not None:
            estimate = estimate_layer(running, facts.gpu, facts.runtime, facts.mode)
        return self._broken(LayerFacts(facts, layer, None, (), estimate), about_capacity)

    def _broken(self, values: LayerFacts, about_capacity: bool, codes: Collection[str] | None = None) -> Broken:
        judging = self._all if about_capacity else self._grave
        return frozenset(
            (violation.rule.info.code, place)
            for violation in judging.broken(values, codes)
            if about_capacity or violation.case.severity != "info"
            for place in violation.places or (_LAYER,)
            if place != "N"
        )
