"""From a network step by step to the planned one: what each step changes, and where the network then stands.

All states are graded against one ideal, that of the planned network: of two states, the faster one never has the worse
letter. So the letter of today's network may be worse than that of its check, which knows of its own advice alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from msgspec.structs import replace

from convlint.engine.changes import with_settings
from convlint.engine.check import Target, check_network
from convlint.engine.networks import as_laid_out
from convlint.engine.results import NetworkResult
from convlint.estimate import LayerEstimate
from convlint.estimate.memory import parameters
from convlint.model.gemm import flops
from convlint.model.layer import ConvLayer, Dtype, Mode
from convlint.model.network import Network
from convlint.planning.levers import Lever
from convlint.planning.result import Plan, State, Step
from convlint.planning.steps import LEAST_GAIN, Unit
from convlint.planning.subsets import Subsets
from convlint.report import Finding, LayerTimes, Scalar
from convlint.rulebook.book import Rulebook

_FIELDS = ("C", "K", "groups", "dtype", "layout", "copies_input", "N")  # what steps change in a layer
_NAMED = 4  # changes of one step, in words
_BATCHES = 4  # one after the other, as the check of the network with the one before advises them


class Walk:
    """From the network as it is, step by step; `network` is where it stands."""

    def __init__(
        self, network: Network, estimates: Sequence[LayerEstimate | None], subsets: Subsets, rulebook: Rulebook,
        target: Target, mode: Mode,
    ) -> None:  # fmt: skip
        """`estimates` are the network's, on its host."""
        self.begin, self.network, self.subsets = network, network, subsets
        self.rulebook, self.target, self.mode = rulebook, target, mode
        time_us = sum(estimate.time_us for estimate in estimates if estimate is not None)
        self.first = self.now = State(
            time_us=time_us, grade=None, parameters=parameters(network.layers), flops=_flops(network.layers)
        )
        self.steps: list[Step] = []

    def _checked(self, network: Network) -> NetworkResult:
        return check_network(network, self.rulebook, [self.target], self.mode)

    def reaches(self, target_us: float | None) -> bool:
        """Whether the time asked for is reached, if there is one."""
        return target_us is not None and self.now.time_us <= target_us

    def take(self, units: Sequence[Unit], network: Network) -> None:
        """These steps, which lead to `network`, and its check; none lead to the network as it is."""
        self.network, self.result = network, self._checked(network)
        end_us, self._ideal_us = _times(self.result, self.target.label)
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
                    grade=None,
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
                fills_up=all(lever.fills_up for lever in levers),
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
        (first, *others) = sizes
        if first is None or others:
            return
        after = self.now
        for _ in range(_BATCHES):
            wanted = next((N for finding in self.result.findings if (N := self._batch(finding)) is not None), None)
            if wanted is None:
                break
            layers = tuple(replace(layer, N=wanted) for layer in self.network.layers)
            network = replace(self.network, layers=layers)
            result = self._checked(network)
            time_us, ideal_us = _times(result, self.target.label)
            time_us *= first / wanted
            if after.time_us - time_us <= LEAST_GAIN * self.first.time_us:
                break
            self.network, self.result = network, result
            self._ideal_us = None if ideal_us is None else ideal_us * first / wanted
            after = replace(after, time_us=time_us)
        if after is not self.now:
            N = self.network.layers[0].N or first
            describe = f"N={N} for {first}: the time is that of {first} images"
            changes = {index: {"N": N} for index in range(len(self.network.layers))}
            self._step([Lever(kind="batch", describe=describe, safety="unsafe")], changes, after)

    def _batch(self, finding: Finding) -> int | None:
        """The batch that a finding warns the network for not having."""
        rule, fix = self.rulebook.find(finding.rule.code), finding.fix
        if rule is None or rule.loss == "none" or fix is None or finding.severity != "warning":
            return None
        return int(fix.set["N"]) if set(fix.set) == {"N"} else None

    def left(self, kept: Set[str]) -> dict[str, int]:
        """Rules that the check of the planned network warns by, with a price and a fix, and in how many layers.

        What would change fields that are `kept` is left out.
        """
        places: dict[str, set[str]] = {}
        for finding in self.result.findings:
            fix = finding.fix
            if finding.severity != "warning" or fix is None or self._is_unpriced(finding):
                continue
            if kept.isdisjoint(name for changes in (fix.set, *fix.by_layer) for name in changes):
                places.setdefault(finding.rule.code, set()).update(_layers_of(finding))
        return {code: len(names) for code, names in sorted(places.items())}

    def errors(self) -> dict[str, int]:
        """Rules by which the planned network is wrong, and in how many layers: none for the whole of it."""
        places: dict[str, set[str]] = {}
        for finding in self.result.findings:
            if finding.severity == "error":
                places.setdefault(finding.rule.code, set()).update(_layers_of(finding))
        return {code: len(names) for code, names in sorted(places.items())}

    def plan(
        self, *, is_exact: bool, target_us: float | None, without_time: tuple[int, ...], notes: tuple[str, ...]
    ) -> Plan:
        """All of it, graded."""
        sizes = {layer.N for layer in self.begin.layers}
        unpriced = tuple(filter(self._is_unpriced, self.result.findings))
        steps = [replace(step, before=self._graded(step.before), after=self._graded(step.after)) for step in self.steps]
        return Plan(
            path=self.begin.path, gpu=self.target.label, mode=self.mode,
            batch=sizes.pop() if len(sizes) == 1 else None,
            now=self._graded(self.first), after=self._graded(self.now), steps=tuple(steps),
            network=self.network if self.reaches(target_us) else _with_settings(self.network, unpriced),
            is_exact=is_exact, target_us=target_us,
            is_reached=None if target_us is None else self.reaches(target_us),
            without_time=without_time, unpriced=unpriced, notes=notes,
        )  # fmt: skip

    def _graded(self, state: State) -> State:
        if self._ideal_us is None:
            return state
        times = LayerTimes(time_us=state.time_us, after_us=self.now.time_us, ideal_us=self._ideal_us)
        return replace(state, grade=times.grade)

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


def _flops(layers: Sequence[ConvLayer]) -> int | None:
    work = [None if (own := flops(layer)) is None else own * layer.calls for layer in layers]
    return None if None in work else sum(each or 0 for each in work)


def _moved(whole: int | None, before: int | None, after: int | None) -> int | None:
    """The whole, of which a part is `after` now; layers that share a module are in one part."""
    return None if whole is None or before is None or after is None else whole - before + after


def _with_settings(network: Network, unpriced: Sequence[Finding]) -> Network:
    """The network with the settings of the runtime that are advised though nobody knows their price."""
    settings: dict[str, Scalar] = {}
    for finding in unpriced:
        fix = finding.fix
        if fix is not None and fix.safety == "safe" and all(name.startswith("runtime.") for name in fix.set):
            settings = {**fix.set, **settings}
    return replace(network, runtime=with_settings(network.runtime, settings)) if settings else network


def _difference(before: ConvLayer, after: ConvLayer) -> dict[str, Scalar]:
    values = {name: getattr(after, name) for name in _FIELDS if getattr(after, name) != getattr(before, name)}
    return {name: value.value if isinstance(value, Dtype) else value for name, value in values.items()}


def _layers_of(finding: Finding) -> tuple[str, ...]:
    return finding.layers or (() if finding.layer is None else (finding.layer,))
