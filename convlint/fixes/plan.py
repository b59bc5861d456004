"""Plans of edits: which wishes of findings can be granted together, what they change, and why others are refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from math import lcm
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from convlint.engine.findings import NetworkResult
from convlint.engine.hits import NOT_WRITTEN, edge_after, with_fix, with_settings
from convlint.model.channels import ChannelGroup, Channels, channels_of
from convlint.model.grouping import grouped
from convlint.model.layer import ConvLayer
from convlint.model.network import Network, leaders
from convlint.model.report import Finding, Fix, Scalar
from convlint.model.text import Text


class ValueChange(Struct, frozen=True, gc=False):
    """One value of a spec that must become another.

    `layer` counts the items of `layers:`, convolutions or not; None is for a setting of the whole network, whose
    `field` is then such as "runtime.tf32". Otherwise `field` is a letter of the guide, groups, dtype, layout, bias.
    PadH alone changes both sides where they are equal; so do PadD and PadW.
    """

    layer: int | None
    field: str
    value: int | str | bool


# What leaves the sizes of other layers alone.
KEEPING_SIZES = frozenset(("N", "C", "K", "groups", "dtype", "layout", "bias"))
Applicability = Literal["safe", "unsafe"]
WishKey = tuple[str, str | None, str | None, tuple[tuple[str, Scalar], ...]]  # rule, layer, GPU, what it sets


class Wish(Struct, frozen=True, kw_only=True):
    """What the fix of one finding sets in one layer, by name; in the network's runtime, where there is no layer."""

    finding: Finding
    layer: str | None
    sets: Mapping[str, Scalar]

    @property
    def key(self) -> WishKey:
        """The key by which a wish is known again in the next round."""
        return self.finding.rule.code, self.layer, self.finding.gpu, tuple(sorted(self.sets.items()))


def applicability(finding: Finding) -> Applicability | None:
    """How safely its fix can be applied; None where there is nothing to apply, or where that is not advised.

    A fix that has a price is applied where it is among those that make the network fastest. One without a price mends
    what is wrong whatever it costs; advice on the batch is one only where that is allowed, or more than an info.
    """
    fix = finding.fix
    if fix is None:
        return None
    fields = {name for sets in (fix.set, *fix.by_layer) for name in sets}
    if not fields or fields & NOT_WRITTEN:
        return None
    if not fix.advised and (finding.lost_us is not None or (fix.time_change_us or 0.0) > 0):
        return None
    if "N" in fields and finding.severity == "info" and not is_asked_batch(fix):
        return None
    # Anything but the layout and settings of the runtime makes another network, or other weights.
    keeps = all(field == "layout" or field.startswith("runtime.") for field in fields)
    return "safe" if fix.safety == "safe" and keeps else "unsafe"


def is_asked_batch(fix: Fix) -> bool:
    """Whether a fix sets another batch, which the user has allowed."""
    return "N" in fix.set and fix.advised


def wishes(findings: Iterable[Finding]) -> Iterator[Wish]:
    """The wishes of the fixes of findings, layer by layer."""
    for finding in findings:
        fix, names = finding.fix, finding.layers or (() if finding.layer is None else (finding.layer,))
        if fix is None:
            continue
        # All that shares the channels of a layer follows from its K.
        if not names or (finding.layer is not None and fix.set.keys() == {"K"}):
            yield Wish(finding=finding, layer=finding.layer, sets=fix.set)
            continue
        for name, sets in zip(names, fix.by_layer or (fix.set,) * len(names), strict=True):
            if sets:
                yield Wish(finding=finding, layer=name, sets=sets)


_MOST_GUESSED = 4  # channels up to which a layer that stands alone is taken for the first

Claims = dict[tuple[int | None, str], tuple[Scalar, tuple[int, ...]]]  # layer, field -> value, wishes


class StatedChanges:
    """The `changes` of one network's file, each with the wishes that need it, by number."""

    def __init__(self, network: Network) -> None:
        self.changes: dict[ValueChange, tuple[int, ...]] = {}
        self._network = network
        numbered = reversed(list(enumerate(network.operations)))
        # layer -> the operation that it is, of several the first
        self._position_of = {operation.layer: number for number, operation in numbered if operation.layer is not None}

    def _note(self, position: int | None, field: str, value: Scalar, numbers: tuple[int, ...]) -> None:
        if isinstance(value, float):  # expressions of rules divide; specs hold whole numbers
            value = int(value)
        change = ValueChange(layer=position, field=field, value=value)
        known = self.changes.setdefault(change, numbers)
        if known is not numbers:  # thousands of changes may share thousands of wishes
            self.changes[change] = tuple(dict.fromkeys((*known, *numbers)))

    def claims(self, claims: Claims) -> None:
        """Adds the claims on layers, which are no widths that others share, and on the runtime (None)."""
        carried = None
        for (index, field), (value, numbers) in claims.items():
            if index is None:
                self._note(None, field, value, numbers)
            elif field == "N" and "N" not in self._network.layers[index].spans:
                carried = carried or (value, numbers)
            else:
                self._note(self._position_of[index], field, value, numbers)
        for position, operation in enumerate(self._network.operations if carried is not None else ()):
            if operation.kind == "input" and carried is not None:
                self._note(position, "N", *carried)

    def widths(
        self, channels: Channels, widths: Mapping[int, int], wanted: Mapping[int, tuple[int, ...]],
        by_layer: Mapping[int, Mapping[str, int]],
    ) -> None:  # fmt: skip
        """Adds the changes of what states groups' channels; `by_layer` has the layers' fields at these `widths`."""
        network = self._network
        fed = {index for edge in network.edges for index in edge.producers}  # the layers that others read
        behind: dict[int, tuple[int, ...]] = {}  # layer -> wishes
        for group, width in widths.items():
            for index in channels.groups[group].layers:
                behind[index] = (*behind.get(index, ()), *wanted[group])
            for position in (*channels.groups[group].inputs, *channels.groups[group].linear):
                for number, scale in channels.axes[position] or ():
                    if number == group:  # a linear layer may read it alone
                        self._note(position, "C", int(width * scale), wanted[group])
        for index, changes in by_layer.items():
            layer, position = network.layers[index], self._position_of[index]
            for field, value in changes.items():
                if field in layer.spans and getattr(layer, field) != value:
                    self._note(position, field, value, behind[index])
            alone = not network.operations[position].inputs and index not in fed
            if layer.first and alone and "first" not in layer.spans and changes.get("C", 0) > _MOST_GUESSED:
                self._note(position, "first", True, behind[index])


MOST_WIDENING = 0.25  # beyond what the fixes want
_ROUNDEST = 16  # channels: no vector of a Tensor Core has more


def group_of(channels: Channels, layer: ConvLayer, index: int, field: str, value: int) -> tuple[int, int] | None:
    """(the group that the C or K of a layer is, how wide it is once that is `value`); None where it is not one group.

    `index` is the layer's. The K of a depthwise convolution follows its C.
    """
    own = field == "K" and index in channels.written
    axis = ((channels.written[index], channels.times.get(index, 1)),) if own else channels.read.get(index, ())
    if len(axis) != 1:
        return None
    number, scale = axis[0]
    if field == "K" and not own:
        if not (layer.depthwise and layer.C and layer.K) or layer.K % layer.C:
            return None
        scale *= layer.K // layer.C
    width, over = divmod(value * scale.denominator, scale.numerator)
    return None if over else (number, width)


def obstacle(group: ChannelGroup, wanted: Iterable[int]) -> str:
    """Why a group can get none of the wanted widths; empty where it can."""
    if group.fixed and not (group.only_input and all(width >= group.width for width in wanted)):
        return group.fixed[0]
    return ""


def agreed(group: ChannelGroup, wanted: Mapping[int, object]) -> int | None:
    """The width for all the `wanted` ones, the first of which counts most; None where there is none.

    Of several that are no narrower than now, it is the widest; where some take away and some add, the first.
    """
    first = next(iter(wanted))
    width = max(wanted) if min(wanted) >= group.width else first
    if width % group.multiple_of == 0:
        return width
    if width < group.width:
        return None
    return _aligned(group, width)


def _aligned(group: ChannelGroup, width: int) -> int | None:
    """The least width from `width` on that its groups divide, and that is as round as `width` is where that is near."""
    step = min(width & -width, _ROUNDEST)
    while step >= 1:
        common = lcm(step, group.multiple_of)
        least = -(-width // common) * common
        if least <= width * (1 + MOST_WIDENING):
            return least
        step //= 2
    return None


class Company(Struct, frozen=True):
    """Layers that change their layout together, and the wishes that want it, by number.

    `loose` are sets of layers that no tensor connects with them, and that would have to state the layout which they
    draw from the same place; each may as well stay.
    """

    wishes: tuple[int, ...]
    layers: frozenset[int]
    loose: tuple[frozenset[int], ...] = ()


def is_its_own(layer: ConvLayer, layout: object) -> bool:
    """Whether a layer may have this layout beside others that have not: in NCHW, groups have other kernels."""
    return layout == "NCHW" and layer.groups > 1 and not layer.depthwise


class Layouts:
    """The layers of one network by what connects them."""

    def __init__(self, network: Network) -> None:
        self.layers, self._edges = network.layers, network.edges

    @cached_property
    def _part_of(self) -> list[int]:
        """For each layer one that stands for all that tensors connect it with, but where one is said to be no copy."""
        reading: dict[str, int] = {}  # what several read, the network's input too -> one of them
        pairs = (
            (other, edge.consumer)
            for edge in self._edges
            if edge.copied is not False
            for other in (reading.setdefault(edge.source, edge.consumer), *edge.producers)
        )
        return leaders(len(self.layers), pairs)

    @cached_property
    def _parts(self) -> Mapping[int, Sequence[int]]:
        return grouped((part, index) for index, part in enumerate(self._part_of))

    def companies(
        self, layout: object, asking: Mapping[int, Sequence[int]], staying: Container[int]
    ) -> Iterator[Company]:
        """The layers that change to `layout` together: those `asking` for it and their neighbours but the `staying`."""
        moving: dict[int, list[int]] = {}  # part -> wishes
        for index, wishes in asking.items():
            if is_its_own(self.layers[index], layout):
                yield Company(tuple(wishes), frozenset((index,)))
            else:
                moving.setdefault(self._part_of[index], []).extend(wishes)
        loose = tuple(self._loose(layout, moving, staying)) if moving else ()
        for part, wishes in moving.items():
            indices = asking.keys() & self._parts[part]
            yield Company(tuple(wishes), self._changing(part, layout, staying).union(indices), loose)
            loose = ()

    def _changing(self, part: int, layout: object, staying: Container[int]) -> frozenset[int]:
        every = self._parts[part]
        return frozenset(i for i in every if self.layers[i].layout not in ("auto", layout) and i not in staying)

    def _loose(self, layout: object, moving: Container[int], staying: Container[int]) -> Iterator[frozenset[int]]:
        spans = {layer.spans.get("layout") for index, layer in enumerate(self.layers) if self._part_of[index] in moving}
        for part, every in self._parts.items():
            if part not in moving and any(self.layers[index].spans.get("layout") in spans for index in every):
                changing = self._changing(part, layout, staying)
                if changing:
                    yield changing


# Each pass refuses at least one wish and judges all others again: thousands of clashing wishes must come to an end.
_MOST_PASSES = 20


class EditPlan(Struct, frozen=True, kw_only=True):
    """What is to change, and why.

    `granted` are the wishes behind it, `touched` the layers that each of them changes, by index, and `refused` the
    others with the reason. `sets` is what becomes of the layers, `runtime` what of the runtime ("runtime.tf32").
    `changes` are those of the file's values, each with the positions in `granted` of the wishes that need it. `loose`
    are sets of layers that follow, although no wish touches them. `widths` are those of groups of channels.
    """

    granted: tuple[Wish, ...] = ()
    touched: tuple[frozenset[int], ...] = ()
    refused: tuple[tuple[Wish, str], ...] = ()
    sets: Mapping[int, Mapping[str, Scalar]] = {}
    runtime: Mapping[str, Scalar] = {}
    changes: Mapping[ValueChange, tuple[int, ...]] = {}
    loose: tuple[frozenset[int], ...] = ()
    widths: Mapping[int, int] = {}


class EditPlanner:
    """Plans for one network. `blocked` says of fields why a change of the file would not reach them.

    `silenced` are findings that nobody wants to hear of, by rule and layer: for their rules those layers do not change.
    The layers `staying` keep their layout, unless a wish is for them that is not advised for the whole network.
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
        return grouped((layer.N, index) for index, layer in enumerate(self.network.layers))

    def plan(self, wishes: Iterable[Wish]) -> EditPlan:
        """What can be granted of the wishes, the most important of which come first."""
        judged = [(wish, self._impossible(wish)) for wish in wishes if not (self.staying and self._stays(wish))]
        refused = [(wish, reason) for wish, reason in judged if reason]
        remaining = [wish for wish, reason in judged if not reason]
        for _ in range(_MOST_PASSES):
            attempt = _Attempt(self, remaining)
            if not attempt.refused:
                break
            refused += [(remaining[number], reason) for number, reason in attempt.refused.items()]
            remaining = [wish for number, wish in enumerate(remaining) if number not in attempt.refused]
        else:
            refused += [(wish, "it depends on fixes that contradict each other") for wish in remaining]
            attempt = _Attempt(self, [])
        return attempt.plan(refused)

    def after(self, plan: EditPlan) -> Network:
        """The network with a plan written; sizes that follow from those of other layers are left as they are."""
        network = self.network
        layers = tuple(with_fix(layer, plan.sets.get(index, {})) for index, layer in enumerate(network.layers))
        edges = tuple(edge_after(edge, network.layers, layers) for edge in network.edges)
        operations = self.channels.widened(network, plan.widths).operations if plan.widths else network.operations
        runtime = with_settings(network.runtime, plan.runtime)
        return replace(network, layers=layers, edges=edges, operations=operations, runtime=runtime)

    def _stays(self, wish: Wish) -> bool:
        """Whether a wish is the part of a layout for the whole network that is of a layer which stays."""
        of_all = wish.finding.advised and wish.sets.keys() == {"layout"}
        return of_all and wish.layer is not None and self.index_of.get(wish.layer) in self.staying

    def _impossible(self, wish: Wish) -> str:
        """Why a wish is refused whatever the others are; empty where nothing speaks against it."""
        if wish.layer is not None and wish.layer not in self.index_of:
            return "the file does not name its layer"
        if wish.layer is None and "N" in wish.sets and len(self.by_batch) != 1:
            return "its layers differ in N"
        if wish.layer is not None and self._enlarges_filter(wish, self.network.layers[self.index_of[wish.layer]]):
            return Text(
                "a larger filter takes longer; a smaller stride is the other way, and which one is for you to say"
            )
        return next((self.blocked[field] for field in wish.sets if field in self.blocked), "")

    @staticmethod
    def _enlarges_filter(wish: Wish, layer: ConvLayer) -> bool:
        return any(int(wish.sets[name]) > (getattr(layer, name) or 0) for name in ("T", "R", "S") if name in wish.sets)


class _Attempt:
    """One attempt to grant all of some wishes; `refused` says by their numbers which of them cannot be."""

    def __init__(self, planner: EditPlanner, wishes: Sequence[Wish]) -> None:
        self.planner, self.wishes, self.network = planner, wishes, planner.network
        self.refused: dict[int, str] = {}
        self.claims: Claims = {}
        self.numbers: dict[int, dict[int, list[int]]] = {}  # group -> width -> wishes
        self.following: list[tuple[int, int, str, Scalar]] = []  # what groups have to bring about: wish, layer, field
        self.together: dict[tuple[str, Scalar], dict[int, list[int]]] = {}  # what many layers get -> who wants it
        self.touched: list[frozenset[int]] = [frozenset()] * len(wishes)
        self.loose: list[frozenset[int]] = []
        for number, wish in enumerate(wishes):
            index = None if wish.layer is None else planner.index_of[wish.layer]
            for field, value in wish.sets.items():
                self._ask(number, index, field, value)
        self.widths = self._widths()
        self.by_group = planner.channels.changes(self.network.layers, self.widths) if self.widths else {}
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
                self.numbers.setdefault(of[0], {}).setdefault(of[1], []).append(number)
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
        layers = self.network.layers
        by_batch = grouped((layers[index].N, number) for index, numbers in asking.items() for number in numbers)
        for now, numbers in by_batch.items():
            every = self.planner.by_batch[now]
            self._claim(tuple(numbers), every, "N", N)
            self._touch(numbers, frozenset(every))

    def _layout(self, asking: Mapping[int, Sequence[int]], layout: Scalar) -> None:
        """The layout is one for all layers that are connected, and for others that draw it from the same place."""
        planner, others = self.planner, dict[int, list[int]]()
        for index, numbers in asking.items():
            for number in numbers:
                if self.wishes[number].finding.advised:  # that is for all of the network already
                    self._claim((number,), (index,), "layout", layout)
                    self._touch((number,), frozenset((index,)))
                else:
                    others.setdefault(index, []).append(number)
        codes = {self.wishes[number].finding.rule.code for numbers in others.values() for number in numbers}
        silenced = set[int]().union(*(planner.silenced.get(code, ()) for code in codes))
        for company in planner.layouts.companies(layout, others, planner.staying):
            loose = [layers for layers in company.loose if silenced.isdisjoint(layers)]
            for layers in (company.layers, *loose):
                self._claim(company.wishes, layers, "layout", layout)
            self._touch(company.wishes, company.layers)
            self.loose += loose

    def _claim(self, numbers: tuple[int, ...], layers: Iterable[int | None], field: str, value: Scalar) -> None:
        """Notes a value that these wishes want in these layers, or that another wish wants another one there."""
        for index in layers:
            claimed, known = self.claims.setdefault((index, field), (value, numbers))
            if claimed != value:
                code = self.wishes[known[0]].finding.rule.code
                for number in numbers:
                    self.refused.setdefault(number, f"{code} wants {field}={claimed} instead of {value}")
                return
            if known is not numbers:
                self.claims[index, field] = claimed, (*known, *numbers)

    def _touch(self, numbers: Iterable[int], layers: frozenset[int]) -> None:
        for number in numbers:  # thousands of wishes may share one set of thousands of layers
            self.touched[number] = self.touched[number] | layers if self.touched[number] else layers

    def _heed(self) -> None:
        """Refuses wishes that change a layer in which the user silenced their rule."""
        for number, wish in enumerate(self.wishes if self.planner.silenced else ()):
            silenced = self.touched[number] & self.planner.silenced.get(wish.finding.rule.code, set())
            if silenced:
                self.refused.setdefault(number, f"it is silenced in {self.network.layers[min(silenced)].name}")

    def _widths(self) -> dict[int, int]:
        """The new width of each group that gets one; wishes that cannot be granted are refused."""
        widths = {}
        for group, by_width in self.numbers.items():
            of = self.planner.channels.groups[group]
            reason = obstacle(of, by_width)
            width = None if reason else agreed(of, by_width)
            if width is None and not reason:
                reason = f"their number has to be a multiple of {of.multiple_of}"
            for option, numbers in by_width.items():
                if width is not None and (option == width or of.width <= option < width):
                    self._touch(numbers, frozenset(of.layers))
                    continue
                for number in numbers:
                    self.refused.setdefault(number, f"{of.width} channels stay: {reason or f'others want {width}'}")
            if width is not None:
                widths[group] = width
        return widths

    def _follow(self) -> None:
        """Refuses wishes about several groups at once that the groups' new widths do not fulfil."""
        for number, index, field, value in self.following:
            if self.by_group.get(index, {}).get(field) != value:
                self.refused.setdefault(number, f"{field} stays: it is made of other layers' channels")

    def plan(self, refused: Sequence[tuple[Wish, str]]) -> EditPlan:
        """The attempt as a plan."""
        sets: dict[int, dict[str, Scalar]] = {index: dict(changes) for index, changes in self.by_group.items()}
        runtime: dict[str, Scalar] = {}
        for (index, field), (value, _) in self.claims.items():
            if index is None:
                runtime[field] = value
            else:
                sets.setdefault(index, {})[field] = value
        return EditPlan(
            granted=tuple(self.wishes),
            touched=tuple(self.touched),
            refused=tuple(refused),
            sets=sets,
            runtime=runtime,
            changes=self._stated(),
            loose=tuple(self.loose),
            widths=self.widths,
        )

    def _stated(self) -> Mapping[ValueChange, tuple[int, ...]]:
        stated = StatedChanges(self.network)
        stated.claims(self.claims)
        if self.widths:
            numbers = {group: tuple(chain(*by_width.values())) for group, by_width in self.numbers.items()}
            stated.widths(self.planner.channels, self.widths, numbers, self.by_group)
        return stated.changes


UNUSED = "a comment would silence nothing any more"


def unused(plan: EditPlan, before: NetworkResult, after: NetworkResult, codes: Container[str]) -> dict[int, str]:
    """The granted wishes, by position, after which comments are useless or wrong; `codes` are the rules that say so.

    Those of other rules may be innocent, since all that is known is the layers in which nothing is silenced any more.
    """
    known = Counter(map(_comment, (finding for finding in before.findings if finding.rule.code in codes)))
    new = Counter(map(_comment, (finding for finding in after.findings if finding.rule.code in codes))) - known
    if not new:
        return {}
    silenced, remaining = before.silenced, after.silenced
    gone = {layer for _, layer in silenced - remaining}
    index_of = {entry.layer.name: index for index, entry in enumerate(before.layers)}
    layers = {index_of[name] for name in gone if name in index_of}
    reasons = {number: UNUSED for number, touched in enumerate(plan.touched) if touched & layers}
    return reasons or dict.fromkeys(range(len(plan.granted)), UNUSED)


def _comment(finding: Finding) -> tuple[str, str | None, str]:
    return finding.rule.code, finding.layer, finding.message
