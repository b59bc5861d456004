"""The steps of a plan: what may be changed, in which order, and what each of them gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from convlint.engine.hits import edge_after, with_fix
from convlint.engine.joint import FoundSteps
from convlint.engine.levers import Key, Lever, Levers
from convlint.engine.optimum import Choices, Search
from convlint.model.grouping import grouped
from convlint.model.layer import ConvLayer, Mode
from convlint.model.network import Edge, Network
from convlint.model.report import Finding, Scalar

LEAST_GAIN = 1e-3  # of the network's time: sizes that save less are one step together


class Members(NamedTuple):
    """Some of B: settings, and sizes."""

    choices: Choices
    levers: Levers

    def plus(self, other: Members) -> Members:
        """The union of both."""
        return Members({**self.choices, **other.choices}, {**self.levers, **other.levers})

    def __len__(self) -> int:
        return len(self.choices) + len(self.levers)


NONE = Members({}, {})


def ordered(every: Members, search: Search) -> list[Members]:
    """The steps, in order; all members are in one of them. Small sizes that follow each other are one step.

    A step that would cost time where it comes, such as 16 bits behind the widths that nothing else asks for, is joined
    with those before it.
    """
    least_us = LEAST_GAIN * search.total_us({}, {})
    steps: list[tuple[Members, float]] = []
    was_small = False
    for step, saved_us in _Order(every, search).steps():
        is_small = not step.choices and saved_us < least_us
        while steps and (saved_us < -least_us or (is_small and was_small)):
            before, before_us = steps.pop()
            step, saved_us, was_small = before.plus(step), before_us + saved_us, False
        steps.append((step, saved_us))
        was_small = is_small
    return [step for step, _ in steps]


class _Order:
    def __init__(self, every: Members, search: Search) -> None:
        self.every, self.search = every, search
        self.touching = grouped([(index, key) for key, lever in every.levers.items() for index in lever.layers])
        self.applied = NONE
        self.saves: dict[Key, float] = {}  # of sizes that are left, as things stand

    def steps(self) -> list[tuple[Members, float]]:
        """The steps in order, each with the time that it saves when it is taken, in us."""
        steps = []
        self._look_at(list(self.every.levers))
        while len(self.applied) < len(self.every):
            step, saved_us = self._next()
            self._take(step)
            steps.append((step, saved_us))
        return steps

    def _next(self) -> tuple[Members, float]:
        now_us = self._us(self.applied)
        choices = {kind: choice for kind, choice in self.every.choices.items() if kind not in self.applied.choices}
        pairs = [
            (now_us - self._us(self.applied.plus(step)), step)
            for step in (Members({k: c}, {}) for k, c in choices.items())
        ]
        upgrades = [pair for pair in pairs if any(choice.upgrades for choice in pair[1].choices.values())]
        if upgrades:  # a slow release first: what else hides it is judged without
            return upgrades[0][1], upgrades[0][0]
        if self.saves:
            key = max(self.saves, key=self.saves.__getitem__)
            pairs.append((self.saves[key], Members({}, {key: self.every.levers[key]})))
        saved_us, step = max(pairs, key=lambda pair: pair[0])
        if saved_us > 0:
            return step, saved_us
        return self._together(choices, now_us)

    def _together(self, choices: Choices, now_us: float) -> tuple[Members, float]:
        """A step that saves time though no member does alone: all settings, sizes near each other, or all the rest."""
        levers = {key: self.every.levers[key] for key in self.saves}
        tried = [Members(choices, {})] if len(choices) > 1 else []
        tried += [Members({kind: choice}, levers) for kind, choice in choices.items()]
        if not choices:
            tried += [Members({}, self._near(key, levers)) for key in levers]
        for step in tried:
            saved_us = now_us - self._us(self.applied.plus(step))
            if saved_us > 0:
                return step, saved_us
        rest = Members(choices, levers)
        return rest, now_us - self._us(self.applied.plus(rest))

    def _near(self, key: Key, levers: Levers) -> dict[Key, Lever]:
        keys = {other for index in self.every.levers[key].layers for other in self.touching[index]}
        return {other: lever for other, lever in levers.items() if other in keys}

    def _take(self, step: Members) -> None:
        self.applied = self.applied.plus(step)
        for key in step.levers:
            self.saves.pop(key, None)
        near = {key for lever in step.levers.values() for index in lever.layers for key in self.touching[index]}
        again = list(self.saves) if step.choices else [key for key in self.saves if key in near]
        self._look_at(again)

    def _look_at(self, keys: list[Key]) -> None:
        setting = self.search.setting(self.applied.choices)
        for key in keys:
            lever = self.every.levers[key]
            self.saves[key] = self.search.saving_us(setting, lever, self._near(key, self.applied.levers))

    def _us(self, members: Members) -> float:
        search = self.search
        return search.timing.gpu_us(search.setting(members.choices), search.advice.changes(members.levers))


Lot = Literal["dtype", "layout", "batch", "channels"]  # what can be kept as it is
LOTS: tuple[Lot, ...] = ("dtype", "layout", "batch", "channels")


class Wishes(Struct, frozen=True, kw_only=True):
    """`max_parameters` and `max_flops` are shares of today's, 0.05 for 5 % more; None: as many as it takes.

    `keeps_results`: only what leaves the network's results as they are. `target_us` is a time for one step at today's
    batch, the whole of it where that is known: no more is changed than that needs.
    """

    keeps_results: bool = False
    fixed: frozenset[Lot] = frozenset()
    max_parameters: float | None = None
    max_flops: float | None = None
    target_us: float | None = None


def changed(network: Network, promise: FoundSteps, members: Members) -> Network:
    """The network with these members of B; layers that are connected to one that changes follow it."""
    setting = promise.search.setting(members.choices)
    coupling = promise.advice.coupling
    layers = list(setting.layers)
    for lever in members.levers.values():
        if coupling.group_of_lever(lever) is None:  # several may be one layer's
            layers[lever.layers[0]] = with_fix(layers[lever.layers[0]], lever.changes)
    laid_out = {
        index for index, pair in enumerate(zip(network.layers, layers, strict=True))
        if pair[0].layout != pair[1].layout or pair[0].copies_input != pair[1].copies_input
    }  # fmt: skip
    edges = tuple(
        _after(edge, network, layers, is_laid_out=not laid_out.isdisjoint((edge.consumer, *edge.producers)))
        for edge in network.edges
    )
    after = replace(network, layers=tuple(layers), edges=edges, runtime=setting.runtime)
    return coupling.widened(after, members.levers.values())


def _after(edge: Edge, network: Network, layers: Sequence[ConvLayer], *, is_laid_out: bool) -> Edge:
    """The edge once the layer that it leads to, and those before it, have changed."""
    if is_laid_out:
        edge = replace(edge, copied=None, changed_at="")
    return edge_after(edge, network.layers, layers)


Kind = Literal["runtime", "dtype", "layout", "channels"]  # of a change


class State(Struct, frozen=True, kw_only=True):
    """A network at some point of a plan: the time of one step at today's batch in us, and its sizes.

    `parameters` and `flops`, those of one forward pass at today's batch, are None where a size is unknown; `grade` is
    None where a layer's time is, and the same ideal over another time in all states of one plan. `step_us` is the whole
    step, where all operations are known.
    """

    time_us: float
    grade: str | None
    parameters: int | None
    flops: int | None
    step_us: float | None = None

    @property
    def stopwatch_us(self) -> float:
        """The whole step where it is known, else its convolutions."""
        return self.time_us if self.step_us is None else self.step_us


StepChange = Literal["weights", "results", "network"]  # what one that is not safe changes, the least first


class PlannedStep(Struct, frozen=True, kw_only=True):
    """One step: what it changes, and the network before and after it.

    `kinds` are those of the changes that make it up, which only pay together where there are several. `by_layer` has
    what every layer gets; `set` what all of them share, and settings of the runtime. It is safe where it changes
    neither the network nor its weights; else `changes` says what: where it fills up an input with zeros, the weights
    alone.
    """

    describe: str
    kinds: tuple[Kind, ...]
    safety: Literal["safe", "unsafe"]
    changes: StepChange
    layers: tuple[str, ...]
    set: Mapping[str, Scalar]
    by_layer: tuple[Mapping[str, Scalar], ...]
    before: State
    after: State


class NetworkPlan(Struct, frozen=True, kw_only=True):
    """What to change in one network on one GPU, step by step.

    `network` is the network with all of it, and with the settings of `unpriced`. `without_time` are the layers that no
    time is known of, by their place, `unpriced` are findings whose fix has no price, `notes` what else has to be said.
    `is_reached`: whether the time asked for is, None where none was.
    """

    path: str
    gpu: str
    mode: Mode
    batch: int | None
    now: State
    after: State
    steps: tuple[PlannedStep, ...]
    network: Network
    is_reached: bool | None = None
    target_us: float | None = None
    without_time: tuple[int, ...] = ()
    unpriced: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = field(default_factory=tuple)
