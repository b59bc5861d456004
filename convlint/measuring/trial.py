"""What a finding promises, as something to time: its layers as they are, and as its fix makes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import hypot, sqrt
from typing import Literal, NamedTuple

from msgspec import Struct

from convlint.engine.changes import with_fix, with_settings
from convlint.gpus.gpu import Gpu
from convlint.measuring.rows import Row
from convlint.measuring.workload import Workload, passes, why_not, workloads
from convlint.model.layer import ConvLayer, Mode, Pass
from convlint.model.network import Network
from convlint.model.runtime import Runtime
from convlint.report import Finding, Fix, Scalar

Held = Literal["held", "in part", "not held", "too close to tell"]
# Of a median of n values, two standard errors over the width of their middle half and the root of n (normal values).
_ERRORS = 2 * 1.2533 / 1.349
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


class Measured(NamedTuple):
    """Times in us of a step, and how far off their medians may be: two standard errors."""

    us: float
    noise_us: float


class Outcome(Struct, frozen=True, kw_only=True):
    """What came of a trial: times of one step in us, for as many images as before."""

    trial: Trial
    before: Measured
    after: Measured
    held: Held


def parts(index: int, layer: ConvLayer, gpu: Gpu, runtime: Runtime, mode: Mode, share: float = 1.0) -> Iterator[Part]:
    """The passes of a layer that can be timed; `share` of their time counts."""
    for which in passes(layer, mode):
        yield Part(index, which, layer.calls * share, tuple(workloads(layer, which, gpu, runtime)))


def trials(
    network: Network, findings: Sequence[Finding], predicted_us: Sequence[float | None], gpu: Gpu, mode: Mode
) -> list[Trial]:
    """Those of the findings that promise time on layers that can be timed, the largest promise first; then settings.

    `predicted_us` are the times of the network's layers as they are.
    """
    places: dict[str, list[int]] = {}
    for index, layer in enumerate(network.layers):
        places.setdefault(layer.name, []).append(index)
    found = [_trial(network, finding, places, predicted_us, gpu, mode) for finding in findings]
    return sorted(filter(None, found), key=lambda trial: trial.finding.fix.time_change_us or 0.0)  # type: ignore[union-attr]


def _trial(
    network: Network, finding: Finding, places: Mapping[str, list[int]], predicted_us: Sequence[float | None],
    gpu: Gpu, mode: Mode,
) -> Trial | None:  # fmt: skip
    fix = finding.fix
    if fix is None or not _can_be_tried(fix):
        return None
    own = finding.layers or ((finding.layer,) if finding.layer is not None else ())
    names = tuple(places) if "N" in fix.set else own or tuple(places)  # a network has one batch
    indices = [index for name in names for index in places.get(name, ())]
    changes = fix.by_layer if len(fix.by_layer) == len(indices) else (fix.set,) * len(indices)
    runtime = with_settings(network.runtime, fix.set)
    before: list[Part] = []
    after: list[Part] = []
    whole_us = 0.0
    for index, change in zip(indices, changes, strict=True):
        layer, time_us = network.layers[index], predicted_us[index]
        fixed = with_fix(layer, _of_layer(change))
        if time_us is None or why_not(layer) or why_not(fixed):
            return None
        whole_us += time_us
        before += parts(index, layer, gpu, network.runtime, mode)
        after += parts(index, fixed, gpu, runtime, mode, (layer.N or 1) / (fixed.N or 1))
    if not whole_us or before == after:
        return None
    promised = None if fix.time_change_us is None else fix.time_change_us / whole_us
    return Trial(finding=finding, promised=promised, before=tuple(before), after=tuple(after))


def _can_be_tried(fix: Fix) -> bool:
    """Whether it says what to change, and promises time, or is a setting that may bring some."""
    if fix.time_change_us is None:
        return bool(fix.set) and not _of_layer(fix.set) and not fix.by_layer
    return fix.time_change_us < 0 and bool(fix.set or fix.by_layer)


def _of_layer(changes: Mapping[str, Scalar]) -> dict[str, Scalar]:
    return {name: value for name, value in changes.items() if not name.startswith("runtime.")}


def measured(some: Sequence[Part], rows: Mapping[Workload, Row]) -> Measured | None:
    """What parts take together; None where one of them was not timed."""
    total, noise = 0.0, 0.0
    for part in some:
        timings = [rows[option].timing for option in part.options if option in rows]
        if len(timings) < len(part.options):
            return None
        best = min(timings, key=lambda timing: timing.us)
        total += best.us * part.times
        noise = hypot(noise, best.us * best.spread * part.times * _ERRORS / sqrt(best.runs))
    return Measured(total, noise)


def outcome(trial: Trial, rows: Mapping[Workload, Row]) -> Outcome | None:
    """What came of a trial; None where not all of it was timed.

    Advice holds where it saves HELD_SHARE of what it promises or more, and more than the timings are uncertain by.
    """
    before, after = measured(trial.before, rows), measured(trial.after, rows)
    if before is None or after is None:
        return None
    noise_us = hypot(before.noise_us, after.noise_us)
    saved_us, promised_us = before.us - after.us, -(trial.promised or 0.0) * before.us
    held: Held = "not held"
    if saved_us > noise_us:
        held = "held" if saved_us >= HELD_SHARE * promised_us else "in part"
    elif promised_us <= noise_us and saved_us > -noise_us:
        held = "too close to tell"
    return Outcome(trial=trial, before=before, after=after, held=held)
