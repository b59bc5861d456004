"""The plan for one network: the steps that make it fastest, from what its rules, layouts and channels allow.

The levers of the fastest network found (`options`) are put in order (`steps`). What is more than memory, limits or the
time asked for allow is left out again (`reach`). The batch comes last, as the check of the changed network advises it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from convlint.engine.check import Target, check_network
from convlint.engine.results import NetworkResult
from convlint.estimate.memory import parameters
from convlint.model.channel_walk import channels_of
from convlint.model.gemm import flops
from convlint.model.layer import ConvLayer, Dtype, Mode
from convlint.model.network import Network
from convlint.planning.advice import Adviser
from convlint.planning.levers import Lever, applied
from convlint.planning.options import options
from convlint.planning.reach import fitting, reaching
from convlint.planning.result import Plan, State, Step
from convlint.planning.settings import as_laid_out, on_host
from convlint.planning.steps import LEAST_GAIN, Unit, ordered
from convlint.planning.subsets import Subsets
from convlint.planning.wishes import Wishes
from convlint.report import Finding, LayerTimes, Scalar
from convlint.rulebook.book import Rulebook

_FIELDS = ("C", "K", "groups", "dtype", "layout", "copies_input", "N")  # what steps change in a layer
_NAMED = 4  # changes of one step, in words
NO_DATAFLOW = "channels stay as they are: the input says nothing of what lies between its convolutions"
LIMITED = "within limits the search is not exact: other widths may be faster still"
DESCENT = "its layers are too entangled for an exact search: other widths may be faster still"


def plan(network: Network, rulebook: Rulebook, target: Target, mode: Mode, wishes: Wishes) -> Plan | None:
    """The plan for a network on one GPU; None where no layer's time is known. Raises RuleError."""
    hosted = on_host(network, target, mode)
    known = [index for index, estimate in enumerate(hosted.estimates) if estimate is not None]
    if not known:
        return None
    channels = channels_of(network)
    found = options(network, channels, Adviser(rulebook.of_networks), hosted, target, mode, wishes)
    subsets = Subsets(network, channels, found.levers, known, target, mode, hosted.host_us)
    units = ordered(subsets, range(len(found.levers)))
    if wishes.target_us is not None:
        units = reaching(subsets, units, wishes.target_us)

    def with_units(chosen: Sequence[Unit]) -> Network:
        return applied(network, [found.levers[number] for unit in chosen for number in unit], channels)

    units = fitting(units, found.levers, with_units, network, target, mode, wishes)
    walk = _Walk(network, subsets, rulebook, target, mode)
    walk.take(units, with_units(units))
    is_fast_enough = wishes.target_us is not None and walk.now.time_us <= wishes.target_us
    if "batch" not in wishes.fixed and not wishes.keeps_results and not is_fast_enough:
        walk.take_batch()
    return walk.plan(
        is_exact=found.is_exact,
        target_us=wishes.target_us,
        without_time=tuple(index for index, estimate in enumerate(hosted.estimates) if estimate is None),
        notes=_notes(network, wishes, is_exact=found.is_exact),
    )


def _notes(network: Network, wishes: Wishes, *, is_exact: bool) -> tuple[str, ...]:
    notes = []
    if not network.operations and "channels" not in wishes.fixed:
        notes.append(NO_DATAFLOW)
    if wishes.max_parameters is not None or wishes.max_flops is not None:
        notes.append(LIMITED)
    elif not is_exact:
        notes.append(DESCENT)
    return tuple(notes)


class _Walk:
    """From the network as it is, step by step; `network` is where it stands."""

    def __init__(self, network: Network, subsets: Subsets, rulebook: Rulebook, target: Target, mode: Mode) -> None:
        self.begin, self.network, self.subsets = network, network, subsets
        self.rulebook, self.target, self.mode = rulebook, target, mode
        self.result = self._checked(network)
        self.first = self.now = _state(network.layers, *_times(self.result, target.label))
        self.steps: list[Step] = []

    def _checked(self, network: Network) -> NetworkResult:
        return check_network(network, self.rulebook, [self.target], self.mode)

    def take(self, units: Sequence[Unit], network: Network) -> None:
        """These steps, which lead to `network`."""
        if not units:
            return
        self.network, self.result = network, self._checked(network)
        end_us, ideal_us = _times(self.result, self.target.label)
        subsets, pulled, layers = self.subsets, set[int](), list(as_laid_out(self.begin))
        gpu_us = subsets.gpu_us(pulled)
        for unit in units:
            touched = subsets.touched(unit)
            before_us = subsets.gpu_us(pulled, touched)
            pulled.update(unit)
            gpu_us += subsets.gpu_us(pulled, touched) - before_us
            levers = [subsets.levers[number] for number in unit]
            changed = sorted({index for lever in levers for index in lever.layers})
            before = [layers[index] for index in changed]
            after = [subsets.layer(index, pulled) for index in changed]
            for index, layer in zip(changed, after, strict=True):
                layers[index] = layer
            changes = {index: _difference(*pair) for index, *pair in zip(changed, before, after, strict=True)}
            time_us = end_us if unit is units[-1] else subsets.step_us(gpu_us, pulled)
            self._step(
                levers,
                changes,
                State(
                    time_us=time_us,
                    grade=_grade(time_us, ideal_us),
                    parameters=_moved(self.now.parameters, parameters(before), parameters(after)),
                    flops=_moved(self.now.flops, _flops(before), _flops(after)),
                ),
            )

    def _step(self, levers: Sequence[Lever], changes: Mapping[int, Mapping[str, Scalar]], after: State) -> None:
        by_layer = {index: own for index, own in changes.items() if own}
        settings = {one.choice.name: one.choice.value for one in levers if one.choice is not None and one.of_runtime}
        first = next(iter(by_layer.values()), {})
        shared = first if all(own == first for own in by_layer.values()) else {}
        self.steps.append(
            Step(
                describe=_described(levers),
                kinds=tuple(dict.fromkeys(lever.kind for lever in levers)),
                safety="safe" if all(lever.safety == "safe" for lever in levers) else "unsafe",
                layers=tuple(self.begin.layers[index].name for index in by_layer),
                set={**shared, **settings},
                by_layer=tuple(by_layer.values()),
                before=self.now,
                after=after,
            )
        )
        self.now = after

    def take_batch(self) -> None:
        """Another batch, where the check of the network advises one: the time is that of today's images."""
        sizes = {layer.N for layer in self.network.layers}
        wanted = next((N for finding in self.result.findings if (N := self._batch(finding)) is not None), None)
        if wanted is None or len(sizes) > 1 or None in sizes:
            return
        (now,) = sizes
        layers = tuple(replace(layer, N=wanted) for layer in self.network.layers)
        network = replace(self.network, layers=layers)
        result = self._checked(network)
        share = (now or 1) / wanted
        time_us, ideal_us = (None if each is None else each * share for each in _times(result, self.target.label))
        if time_us is None or self.now.time_us - time_us <= LEAST_GAIN * self.first.time_us:
            return
        self.network, self.result = network, result
        after = State(
            time_us=time_us, grade=_grade(time_us, ideal_us),
            parameters=self.now.parameters, flops=self.now.flops,
        )  # fmt: skip
        describe = f"N={wanted} for {now}: the time is that of {now} images"
        changes = {index: {"N": wanted} for index in range(len(layers))}
        self._step([Lever(kind="batch", describe=describe, safety="unsafe")], changes, after)

    def _batch(self, finding: Finding) -> int | None:
        """The batch that a finding warns the network for not having."""
        rule, fix = self.rulebook.find(finding.rule.code), finding.fix
        if rule is None or rule.loss == "none" or fix is None or finding.severity != "warning":
            return None
        return int(fix.set["N"]) if set(fix.set) == {"N"} else None

    def plan(
        self, *, is_exact: bool, target_us: float | None, without_time: tuple[int, ...], notes: tuple[str, ...]
    ) -> Plan:
        """All of it."""
        sizes = {layer.N for layer in self.begin.layers}
        return Plan(
            path=self.begin.path, gpu=self.target.label, mode=self.mode,
            batch=sizes.pop() if len(sizes) == 1 else None,
            now=self.first, after=self.now, steps=tuple(self.steps), network=self.network,
            is_exact=is_exact, target_us=target_us,
            is_reached=None if target_us is None else self.now.time_us <= target_us,
            without_time=without_time, unpriced=tuple(filter(self._is_unpriced, self.result.findings)), notes=notes,
        )  # fmt: skip

    def _is_unpriced(self, finding: Finding) -> bool:
        """Whether it stands for more than an info, and nobody knows what its fix is worth."""
        rule = self.rulebook.find(finding.rule.code)
        return finding.severity != "info" and finding.fix is not None and rule is not None and rule.loss == "none"


def _described(levers: Sequence[Lever]) -> str:
    """All of them in words, or the first of very many."""
    shown = "; ".join(lever.describe for lever in levers[:_NAMED])
    return f"{shown}; and {len(levers) - _NAMED} more of this kind" if len(levers) > _NAMED else shown


def _times(result: NetworkResult, label: str) -> tuple[float, float | None]:
    """(time now, time in the ideal); the latter None where a layer's is not known."""
    times = [entry.times[label] for entry in result.layers]
    known = [each for each in times if each is not None]
    ideal_us = sum(each.ideal_us for each in known) if len(known) == len(times) else None
    return sum(each.time_us for each in known), ideal_us


def _state(layers: Sequence[ConvLayer], time_us: float, ideal_us: float | None) -> State:
    return State(
        time_us=time_us, grade=_grade(time_us, ideal_us), parameters=parameters(layers), flops=_flops(layers)
    )  # fmt: skip


def _flops(layers: Sequence[ConvLayer]) -> int | None:
    work = [None if (own := flops(layer)) is None else own * layer.calls for layer in layers]
    return None if None in work else sum(each or 0 for each in work)


def _moved(whole: int | None, before: int | None, after: int | None) -> int | None:
    """The whole, of which a part is `after` now; layers that share a module are in one part."""
    return None if whole is None or before is None or after is None else whole - before + after


def _grade(time_us: float, ideal_us: float | None) -> str | None:
    if ideal_us is None:
        return None
    return LayerTimes(time_us=time_us, after_us=time_us, ideal_us=ideal_us).grade


def _difference(before: ConvLayer, after: ConvLayer) -> dict[str, Scalar]:
    values = {name: getattr(after, name) for name in _FIELDS if getattr(after, name) != getattr(before, name)}
    return {name: value.value if isinstance(value, Dtype) else value for name, value in values.items()}
