"""Comparing measured with predicted times: what to measure, how predictions agree, whether advice holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import exp, hypot, log, sqrt
from statistics import fmean, median
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from convlint.engine.check import Target, check_network
from convlint.engine.hits import with_fix, with_settings
from convlint.engine.timing import as_laid_out, on_gpu
from convlint.estimate import estimate_layer, time_us
from convlint.estimate.sweep import passes_of
from convlint.gpus.gpu import Gpu
from convlint.measuring.rows import TimingRow
from convlint.measuring.workload import Workload, why_not, workloads
from convlint.model.estimates import LayerEstimate
from convlint.model.grouping import grouped
from convlint.model.layer import ConvLayer, Mode, Pass
from convlint.model.network import Network
from convlint.model.report import Finding, Fix
from convlint.model.runtime import Runtime
from convlint.rulebook.book import Rulebook

TrialVerdict = Literal["held", "in part", "not held", "too close to tell"]
# Of a median of n values, two standard errors over the width of their middle half and the root of n (normal values).
_ERRORS = 2 * 1.2533 / 1.349
# What a timing differs by from one that is taken minutes later: clocks, temperature, where tensors lie. Two standard
# errors of the steadier half of the public rows, whose repetitions differ by 3 to 6 %.
_REPEATED = 0.03
HELD_SHARE = 0.5  # of what was promised, relative to the time before: what must be saved at least


class Part(NamedTuple):
    """One pass of one layer: the workloads of which the fastest counts (more than one where the layout is open)."""

    layer: int  # its place in the network
    which: Pass
    times: float  # how often it runs in a step
    options: tuple[Workload, ...]


class Trial(Struct, frozen=True, kw_only=True):
    """A finding whose fix promises time, and what to time for it.

    `promised` is relative to the time before; None for a setting of the runtime, of which nobody knows what it brings.
    """

    finding: Finding
    promised: float | None
    before: tuple[Part, ...]
    after: tuple[Part, ...]


class TrialResult(Struct, frozen=True, kw_only=True):
    """The result of a trial: times of one step in us, for as many images as before.

    Their difference may be off by `noise_us`: two standard errors.
    """

    trial: Trial
    before_us: float
    after_us: float
    noise_us: float
    held: TrialVerdict


def parts(index: int, layer: ConvLayer, gpu: Gpu, runtime: Runtime, mode: Mode, share: float = 1.0) -> Iterator[Part]:
    """The passes of a layer that can be timed; `share` of their time counts."""
    for which in passes_of([layer], mode):
        yield Part(index, which, layer.calls * share, tuple(workloads(layer, which, gpu, runtime)))


def trials(network: Network, findings: Sequence[Finding], target: Gpu, device: Gpu, mode: Mode) -> list[Trial]:
    """A trial for each finding that promises time on layers that can be timed, the largest first; then settings.

    Promises are predicted times on `target`, without its host; `device` is the GPU that times.
    """
    places = grouped((layer.name, index) for index, layer in enumerate(network.layers))
    candidates = [_trial(network, finding, places, target, device, mode) for finding in findings]
    tried = [trial for trial in candidates if trial is not None]
    return sorted(tried, key=lambda trial: trial.finding.fix.time_change_us or 0.0 if trial.finding.fix else 0.0)


def _trial(
    network: Network, finding: Finding, places: Mapping[str, list[int]], target: Gpu, device: Gpu, mode: Mode
) -> Trial | None:
    fix = finding.fix
    if fix is None or not _can_be_tried(fix):
        return None
    indices = _layers(network, finding, fix, places)
    changes = fix.by_layer if len(fix.by_layer) == len(indices) else (fix.set,) * len(indices)
    runtime = with_settings(network.runtime, fix.set)
    before: list[Part] = []
    after: list[Part] = []
    now_us = then_us = 0.0
    for index, change in zip(indices, changes, strict=True):
        layer = network.layers[index]
        fixed = with_fix(layer, change)
        if why_not(layer) or why_not(fixed):
            return None
        share = (layer.N or 1) / (fixed.N or 1)
        now, then = (time_us(*pair, mode) for pair in ((layer, target, network.runtime), (fixed, target, runtime)))
        if now is None or then is None:
            return None
        now_us, then_us = now_us + now, then_us + then * share
        before += parts(index, layer, device, network.runtime, mode)
        after += parts(index, fixed, device, runtime, mode, share)
    promised = None if fix.time_change_us is None else then_us / now_us - 1 if now_us else 0.0
    if before == after or (promised is not None and promised >= 0):
        return None
    return Trial(finding=finding, promised=promised, before=tuple(before), after=tuple(after))


def _layers(network: Network, finding: Finding, fix: Fix, places: Mapping[str, list[int]]) -> list[int]:
    """The layers that a fix changes: all, where it names none; a batch is that of all layers with the same one."""
    own = finding.layers or ((finding.layer,) if finding.layer is not None else tuple(places))
    indices = [index for name in own for index in places.get(name, ())]
    if "N" not in fix.set:
        return indices
    batches = {network.layers[index].N for index in indices}
    return [index for index, layer in enumerate(network.layers) if layer.N in batches]


def _can_be_tried(fix: Fix) -> bool:
    """Whether it says what to change, and promises time, or is a setting that may bring some."""
    if fix.time_change_us is None:
        return bool(fix.set) and all(name.startswith("runtime.") for name in fix.set) and not fix.by_layer
    return fix.time_change_us < 0 and bool(fix.set or fix.by_layer)


def chosen(part: Part, rows: Mapping[Workload, TimingRow]) -> TimingRow | None:
    """The timing of a part: the fastest of its options; None where one of them was not timed."""
    candidates = [rows[option] for option in part.options if option in rows]
    return min(candidates, key=lambda row: row.timing.us) if len(candidates) == len(part.options) else None


def outcome(trial: Trial, rows: Mapping[Workload, TimingRow]) -> TrialResult | None:
    """The result of a trial; None where not all of it was timed.

    Advice holds where it saves more than the timings are uncertain by, and HELD_SHARE of what it promises or more. It
    does not where even with that uncertainty it saves less, and may save nothing.
    """
    counts: dict[Workload, float] = {}  # how often each timing is in the difference: what stays cancels
    totals = []
    for some, sign in ((trial.before, 1.0), (trial.after, -1.0)):
        fastest = [chosen(part, rows) for part in some]
        if None in fastest:  # a sum that lacks a part says nothing
            return None
        totals.append(sum(row.timing.us * part.times for row, part in zip(fastest, some, strict=True) if row))
        for row, part in zip(fastest, some, strict=True):
            if row is not None:
                counts[row.workload] = counts.get(row.workload, 0.0) + sign * part.times
    before_us, after_us = totals
    noise_us = hypot(*(count * _uncertain_us(rows[workload]) for workload, count in counts.items()))
    enough_us = -(trial.promised or 0.0) * before_us * HELD_SHARE
    verdict = _verdict(before_us - after_us, noise_us, enough_us)
    return TrialResult(trial=trial, before_us=before_us, after_us=after_us, noise_us=noise_us, held=verdict)


def _verdict(saved_us: float, noise_us: float, enough_us: float) -> TrialVerdict:
    if saved_us > noise_us and saved_us >= enough_us:
        return "held"
    if saved_us + noise_us >= enough_us:
        return "too close to tell"
    return "in part" if saved_us > noise_us else "not held"


def _uncertain_us(row: TimingRow) -> float:
    timing = row.timing
    return timing.us * hypot(_REPEATED, _ERRORS * timing.spread / sqrt(timing.runs))


class Compared(Struct, frozen=True, kw_only=True):
    """One pass of one layer: times of one call in us, None where they are not known; `reason` says why not measured."""

    layer: str
    which: Pass
    predicted_us: float | None
    measured_us: float | None
    spread: float = 0.0
    runs: int = 0
    reason: str = ""

    @property
    def ratio(self) -> float | None:
        """Predicted over measured."""
        if self.predicted_us is None or self.measured_us is None:
            return None
        return self.predicted_us / self.measured_us


class Agreement(Struct, frozen=True, kw_only=True):
    """How predictions agree with `count` measured passes.

    `bias` is the geometric mean of predicted over measured, `error` the median of how far they are apart, relative to
    what was measured; `error_unbiased` the same once all predictions are divided by the bias.
    """

    count: int
    bias: float
    error: float
    error_unbiased: float


def compared(
    names: Sequence[str], some: Sequence[Part], estimates: Sequence[LayerEstimate | None],
    rows: Mapping[Workload, TimingRow], failed: Mapping[Workload, str],
) -> list[Compared]:  # fmt: skip
    """A comparison for each part."""
    result = []
    for part in some:
        estimate = estimates[part.layer]
        of_pass = None if estimate is None else estimate.passes.get(part.which)
        row = chosen(part, rows)
        timing = None if row is None else row.timing
        result.append(
            Compared(
                layer=names[part.layer], which=part.which,
                predicted_us=None if of_pass is None else of_pass.time_us,
                measured_us=None if timing is None else timing.us,
                spread=0.0 if timing is None else timing.spread,
                runs=0 if timing is None else timing.runs,
                reason=next((failed[option] for option in part.options if option in failed), ""),
            )
        )  # fmt: skip
    return result


def agreement(some: Sequence[Compared]) -> Agreement | None:
    """The agreement over all passes that have both times; None where none has."""
    ratios = [ratio for comparison in some if (ratio := comparison.ratio) is not None and ratio > 0]
    if not ratios:
        return None
    bias = exp(fmean(map(log, ratios)))
    return Agreement(
        count=len(ratios),
        bias=bias,
        error=median(abs(ratio - 1) for ratio in ratios),
        error_unbiased=median(abs(ratio / bias - 1) for ratio in ratios),
    )


class TimePlan(Struct, frozen=True, kw_only=True):
    """What to time of a network: its parts as it is, with estimates by layer, and the trials of its findings.

    `untimed` says of layers, by their place, why they cannot be timed; `findings` is how many there are in all.
    """

    parts: tuple[Part, ...]
    estimates: tuple[LayerEstimate | None, ...]
    trials: tuple[Trial, ...]
    untimed: Mapping[int, str]
    findings: int

    def workloads(self) -> Iterator[Workload]:
        """All of them, in the order in which they are to be timed: what the network runs comes first."""
        for part in self.parts:
            yield from part.options
        for trial in self.trials:
            for part in (*trial.before, *trial.after):
                yield from part.options


def plan_of(network: Network, rulebook: Rulebook, target: Target, mode: Mode, device: Gpu | None = None) -> TimePlan:
    """What to time of a network for the advice on `target`, by `device` where that is another GPU. Raises RuleError."""
    device = device or target.gpu
    network = on_gpu(network, target.gpu)
    # What is timed is the convolution alone: a bias is kernels of its own, and so is a norm.
    running = tuple(replace(layer, bias=None, norm_copies=0, measured=None) for layer in as_laid_out(network, mode))
    untimed = {index: reason for index, layer in enumerate(network.layers) if (reason := why_not(layer))}
    result = check_network(network, rulebook, [target], mode)
    # PyTorch does not search algorithms unless it is told to.
    runtime = replace(network.runtime, cudnn_benchmark=bool(network.runtime.cudnn_benchmark))
    laid_out = replace(network, layers=running, runtime=runtime)
    return TimePlan(
        parts=tuple(
            part
            for index, layer in enumerate(running)
            if index not in untimed
            for part in parts(index, layer, device, runtime, mode)
        ),
        estimates=tuple(estimate_layer(layer, target.gpu, runtime, mode) for layer in running),
        trials=tuple(trials(laid_out, result.findings, target.gpu, device, mode)),
        untimed=untimed,
        findings=len(result.findings),
    )
