"""`convlint measure`: what a network's convolutions really take, beside what is predicted and promised."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from convlint.cli.commands.measure_words import Measurement
from convlint.cli.streams.clashes import Use, inputs, refuse_clashes
from convlint.cli.streams.files import append, replace_file
from convlint.cli.streams.output import style_of
from convlint.cli.streams.outputs import Presentation, deliver, files_of
from convlint.cli.streams.progress import Progress
from convlint.engine.check import Target
from convlint.errors import InputFault, UsageError
from convlint.files.bounded_file import open_regular
from convlint.linting.idle import refuse_idle
from convlint.linting.models import models_here
from convlint.linting.one_input import DEFAULT_TARGET, Job, as_asked, last_resort, read_input, resolve_targets, say
from convlint.measuring.comparison import agreement, compared
from convlint.measuring.device import Device, Kind, gpu_of
from convlint.measuring.process import Bench, NoDevice
from convlint.measuring.rows import MOST_BYTES, Row, header, line, rows_of
from convlint.measuring.session import timed
from convlint.measuring.trial import outcome
from convlint.measuring.wanted import Wanted, wanted
from convlint.measuring.workload import Workload
from convlint.model.network import Network
from convlint.model.runtime import default_mode, framework_of
from convlint.readers.inputs import Input, decide
from convlint.readers.reading import Reading
from convlint.report import InputError
from convlint.reporters import Style
from convlint.rulebook.book import load_rulebook
from convlint.verdict.select import incomplete

_NAMES = 5  # layers named in one message


class Asked(Struct, frozen=True, kw_only=True):
    """What the command line asks of timing."""

    kind: Kind = "cuda"
    csv: str | None = None
    again: bool = False
    tries: bool = True
    limit_s: float | None = None


def run(path: str | None, model: str | None, job: Job, asked: Asked, shown: Presentation) -> int:
    """Times one input, writes what came of it, and returns the exit code. Raises UsageError."""
    source = decide(path) if path is not None else models_here([model or ""])[0]
    refuse_idle(job.reading, [source])
    kept = [Use(role="the timings", path=asked.csv)] if asked.csv is not None else []
    refuse_clashes([*files_of(shown.outputs), *kept], inputs([source]))
    resolve_targets(job.gpus)
    found = _measured(source, job, asked, quiet=shown.quiet)
    for place in shown.outputs:
        style = style_of(sys.stdout, shown.color, quiet=shown.quiet) if place.file is None else Style()
        deliver(place.file, _render(place.format, found, style), style)
    return incomplete(found.errors)


def _render(name: str, found: Measurement, style: Style) -> str:
    if name == "json":
        from convlint.cli.commands.measure_json import render as render_json

        return render_json(found)
    from convlint.cli.commands.measure_text import render

    return render(found, style)


def _measured(source: Input, job: Job, asked: Asked, *, quiet: bool) -> Measurement:
    """All of it; everything wrong with the input or the device is a value. Raises UsageError and RuleError."""
    errors: list[InputError] = []
    found = Measurement(path=source.name)
    with last_resort(errors, source.name):
        with Reading(on_output=say) as reading:
            network, read_errors = read_input(source, job.reading, reading)
        errors += read_errors
        if network is not None and not network.layers and not errors:
            errors.append(InputError(path=network.path, message="nothing to time: no convolution in it"))
        if network is not None and network.layers:
            try:
                with Bench(asked.kind) as bench:
                    found = _on(bench, as_asked(network, job), job, asked, errors, quiet=quiet)
            except NoDevice as error:
                errors.append(InputError(path=source.name, message=str(error)))
    return replace(found, errors=tuple(errors))


def _on(
    bench: Bench, network: Network, job: Job, asked: Asked, errors: list[InputError], *, quiet: bool
) -> Measurement:
    own = gpu_of(bench.device)
    target = _target(bench.device, own.id if own is not None else None, network, job)
    name = own.id if own is not None else _plain(bench.device.name)
    mode = network.mode or default_mode(network.runtime)
    wants = wanted(network, load_rulebook(), target, mode)
    if not asked.tries:
        wants = replace(wants, trials=())
    csv = asked.csv or f"convlint-{name}.csv"
    workloads = list(dict.fromkeys(wants.workloads()))
    known, kept = _known(csv, bench.device, frozenset(workloads), again=asked.again)
    with Progress(sys.stderr, quiet=quiet, doing="timing") as progress:
        progress.start(len(workloads))
        results = timed(
            workloads, bench, name, known,
            keep=lambda row: append(csv, kept.line(row)),
            done=lambda workload: progress.done(_short(workload)),
            limit_s=asked.limit_s,
        )  # fmt: skip
    names = [layer.name for layer in network.layers]
    some = compared(names, wants.parts, wants.estimates, results.rows, results.failed)
    outcomes = [found for trial in wants.trials if (found := outcome(trial, results.rows)) is not None]
    errors += _errors(network, wants, results.failed)
    clocks = [row.clock for row in results.rows.values() if row.clock]
    return Measurement(
        path=network.path, device=bench.device, gpu=target.label, mode=mode,
        benchmark=bool(network.runtime.cudnn_benchmark), compared=tuple(some),
        agreement=agreement(some) if bench.device.kind == "cuda" else None,
        outcomes=tuple(outcomes), untried=wants.findings - len(wants.trials) if asked.tries else 0,
        csv=csv, fresh=len(results.rows) - len(known), reused=len(known),
        waiting=len(workloads) - len(results.rows) - len(results.failed),
        clocks=(min(clocks), max(clocks)) if clocks else None, notes=tuple(_notes(bench.device, network, target, name)),
    )  # fmt: skip


def _target(device: Device, own: str | None, network: Network, job: Job) -> Target:
    """The GPU to predict for. Raises UsageError where nothing says which."""
    if job.gpus:
        return resolve_targets(job.gpus)[0]
    if own is not None:
        return resolve_targets([own])[0]
    if device.kind == "cuda":
        raise UsageError(
            f"convlint does not know the GPU {device.name} (compute capability {device.compute_capability}, "
            f"{device.sms} SMs); --gpu names the one to predict for"
        )
    return resolve_targets([(network.targets or (DEFAULT_TARGET,))[0]])[0]


def _notes(device: Device, network: Network, target: Target, name: str) -> list[str]:
    found = []
    if device.kind == "cpu":
        found.append(f"timed on a CPU: nothing of it says how right the predictions for {target.label} are")
    elif target.gpu.id != name:
        found.append(f"predicted for {target.label}, which is not the GPU that timed")
    framework = framework_of(network.runtime)
    if framework not in (None, "pytorch"):
        found.append(f"predicted for {framework}; what is timed are PyTorch's convolutions")
    return found


class _File:
    """The file of timings: its first line is written with the first row."""

    def __init__(self, *, is_new: bool) -> None:
        self._is_new = is_new

    def line(self, row: Row) -> str:
        text = header() + line(row) if self._is_new else line(row)
        self._is_new = False
        return text


def _known(
    csv: str, device: Device, workloads: frozenset[Workload], *, again: bool
) -> tuple[dict[Workload, Row], _File]:
    """The timings of these workloads on this device that the file has, and the file, ready for more.

    Raises UsageError where it is another file.
    """
    if not os.path.lexists(csv):
        return {}, _File(is_new=True)
    try:
        with open_regular(csv) as stream:
            raw = stream.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise InputFault(f"more than {MOST_BYTES >> 20} MiB")
        text = raw.decode()
        rows = list(rows_of(text)) if text else []
    except (InputFault, UnicodeDecodeError) as fault:
        at = f":{fault.line}" if isinstance(fault, InputFault) and fault.line else ""
        raise UsageError(f"{csv}{at}: {fault}; --csv names another file") from None
    mine = {row.workload: row for row in rows if row.is_of(device) and row.workload in workloads}
    if again or not text.endswith("\n"):  # what an interrupt has cut off goes too
        rows = [row for row in rows if not (again and row.is_of(device) and row.workload in workloads)]
        replace_file(csv, "".join([header(), *map(line, rows)]))
        text = "\n"
    return ({} if again else mine), _File(is_new=not text)


def _errors(network: Network, wants: Wanted, failed: Mapping[Workload, str]) -> list[InputError]:
    """One error for each reason why layers were not timed."""
    layers: dict[str, dict[int, None]] = {}
    for index, reason in wants.untimed.items():
        layers.setdefault(reason, {})[index] = None
    for part in (*wants.parts, *(part for trial in wants.trials for part in (*trial.before, *trial.after))):
        for option in part.options:
            if option in failed:
                layers.setdefault(f"{option.which}: {failed[option]}", {})[part.layer] = None
    found = []
    for reason, indices in layers.items():
        several = [network.layers[index] for index in indices]
        at = several[0].locate()
        names = ", ".join(layer.name for layer in several[:_NAMES])
        more = f" and {len(several) - _NAMES} more" if len(several) > _NAMES else ""
        found.append(
            InputError(path=at.path or network.path, message=f"{names}{more} not timed: {reason}", line=at.line,
                       column=at.column)
        )  # fmt: skip
    return found


def _short(work: Workload) -> str:
    return f"{work.C}->{work.K} {work.R}x{work.S} {work.precision} {work.layout} {work.which}"


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-") or "device"
