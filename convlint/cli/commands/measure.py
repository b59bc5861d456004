"""`convlint measure`: times layers and advice on the user's device, and keeps the timings in a file."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import date
from typing import TYPE_CHECKING

from msgspec.structs import replace

from convlint.cli.streams import outputs
from convlint.cli.streams.gate import style_of
from convlint.engine.check import Target
from convlint.facts.network import shortened
from convlint.files.bounded_file import open_regular
from convlint.files.languages import plural
from convlint.files.safe import clean_path
from convlint.gpus.devices import Device, Kind, gpu_of
from convlint.gpus.gpu import Gpu
from convlint.measuring.calibrate import calibration_file
from convlint.measuring.rows import MOST_BYTES, TimingRow, header, line, rows_of
from convlint.measuring.session import Bench, NoDevice, RecordedTimer, Timer, timed
from convlint.measuring.trial import TimePlan, agreement, compared, outcome, plan_of
from convlint.measuring.workload import Workload
from convlint.mend import checking
from convlint.model.errors import ConvlintError, InputFault, UsageError
from convlint.model.network import Network
from convlint.model.report import InputError
from convlint.model.runtime import Version, default_mode, framework_of
from convlint.readers import TRACE
from convlint.readers.inputs import Input
from convlint.readers.reading import OutOfTime, Reading, time_bound
from convlint.readers.trace.reader import read_with_device
from convlint.reporters import Style
from convlint.reporters.measurements import Measurement, percent, render_json, render_text
from convlint.reporters.words import batch_note, calibration_notes
from convlint.rulebook.book import load_rulebook
from convlint.run.plan import refuse_idle
from convlint.verdict.select import incomplete

if TYPE_CHECKING:
    from convlint.cli.measure import TimingFlags


class TimingsFile:
    """The rows at `path`, which need not be there yet."""

    def __init__(self, path: str) -> None:
        """Raises UsageError where it is another file."""
        self.path = path
        text = _text(path) if os.path.lexists(path) else ""
        self._is_empty, self._is_cut = not text, not text.endswith("\n")
        try:
            self.rows = list(rows_of(text)) if text else []
        except InputFault as fault:
            raise _not_timings(f"{path}:{fault.line}", fault) from None

    def known(self, device: Device, workloads: Collection[Workload]) -> dict[Workload, TimingRow]:
        """The timings of these on this device, with its libraries."""
        return {row.workload: row for row in self.rows if row.is_of(device) and row.workload in workloads}

    def settle(self) -> None:
        """Removes rows that were timed again, and a line that an interrupt cut off. Raises UsageError."""
        last = {(row.workload, row.device, row.framework_version, row.cudnn, row.cuda): row for row in self.rows}
        if len(last) < len(self.rows) or (self._is_cut and not self._is_empty):
            self.rows, self._is_cut = list(last.values()), False
            outputs.replace_file(self.path, "".join([header(), *map(line, self.rows)]))

    def add(self, row: TimingRow) -> None:
        """Adds a row. Raises UsageError where it cannot be written."""
        outputs.append(self.path, header() + line(row) if self._is_empty else line(row))
        self._is_empty = False
        self.rows.append(row)


def _text(path: str) -> str:
    try:
        with open_regular(path) as stream:
            raw = stream.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise InputFault(f"more than {MOST_BYTES >> 20} MiB")
        return raw.decode()
    except (InputFault, UnicodeDecodeError) as fault:
        raise _not_timings(path, fault) from None


def _not_timings(at: str, fault: Exception) -> UsageError:
    # The name may be a slip: another file is never written over.
    return UsageError(f"{at}: {fault}; --csv names another file")


_NAMES = 5  # layers named in one message
INCOMPLETE = 3  # exit code: there was no time for all of it


def run(source: Input, job: checking.Job, kind: Kind, asked: TimingFlags, shown: outputs.Presentation) -> int:
    """Times one input, writes the result, and returns the exit code. Raises UsageError."""
    refuse_idle(job.reading, [source])
    files = {"the timings": asked.csv, "the calibration": asked.calibrate}
    written = outputs.files_of(shown.outputs)
    written += [outputs.FileUse(role=role, path=path) for role, path in files.items() if path is not None]
    outputs.refuse_clashes(written, outputs.inputs([source]))
    checking.resolve_targets(job.gpus)
    if asked.calibrate is None:
        job = replace(job, calibrations=checking.calibrations_near(source, isolated=job.isolated))
    measurement = _measured(source, job, kind, asked, written, quiet=shown.quiet)
    for place in shown.outputs:
        style = style_of(sys.stdout, shown.color, quiet=shown.quiet) if place.file is None else Style()
        text = render_json(measurement) if place.format == "json" else render_text(measurement, style)
        outputs.deliver(place.file, text, style)
    return incomplete(measurement.errors) or (INCOMPLETE if measurement.waiting else 0)


def _measured(
    source: Input, job: checking.Job, kind: Kind, flags: TimingFlags, written: Sequence[outputs.FileUse], *, quiet: bool
) -> Measurement:
    """The measurement of one input, with what is wrong with it or the device. Raises UsageError and RuleError."""
    errors: list[InputError] = []
    measurement = Measurement(path=source.name)
    with checking.last_resort(errors, source.name):
        trace = None if flags.from_trace is None else _read_trace(flags.from_trace)
        if trace is not None and _is_of_trace(source.name, flags):
            network, _, read_errors = trace
        else:
            with Reading(on_output=checking.say) as reading:
                network, read_errors = checking.read_input(source, job, reading)
            errors += () if trace is None else trace[2]
        errors += read_errors
        if network is not None and not network.layers and not errors:
            errors.append(InputError(path=network.path, message="nothing to time: no convolution in it"))
        if network is not None and network.layers:
            try:
                network = checking.as_asked(network, job)
                if trace is not None and trace[0] is not None and network.mode is None:
                    network = replace(network, mode=trace[0].mode)
                with Bench(kind) if trace is None else nullcontext(_recorded(*trace[:2], network)) as timer:
                    csv = flags.csv or f"convlint-{_name(timer.device)}.csv"
                    if flags.csv is None:
                        outputs.refuse_clashes(
                            [*written, outputs.FileUse(role="the timings", path=csv)], outputs.inputs([source])
                        )
                    measurement = _timed_on(timer, network, job, flags, TimingsFile(csv), errors, quiet=quiet)
            except NoDevice as error:
                errors.append(InputError(path=flags.from_trace or source.name, message=str(error)))
    return replace(measurement, errors=tuple(errors))


def _is_of_trace(path: str, flags: TimingFlags) -> bool:
    """Whether the network at `path` is the one of the trace itself."""
    return flags.from_trace is not None and os.path.realpath(path) == os.path.realpath(flags.from_trace)


def _read_trace(path: str) -> tuple[Network | None, Device | None, tuple[InputError, ...]]:
    """A trace, within the time that any input may take."""
    try:
        with time_bound(TRACE.cpu_s):
            return read_with_device(path)
    except OutOfTime:
        return None, None, (InputError(path=path, message=f"reading it takes more than {TRACE.cpu_s:g} s"),)


def _recorded(trace: Network | None, device: Device | None, network: Network) -> RecordedTimer:
    """The timings of a trace. Raises NoDevice."""
    gpu = None if device is None else gpu_of(device)
    if trace is None or device is None or gpu is None:
        name = "" if device is None else f": {device.name}"
        raise NoDevice(f"the trace names no GPU that convlint knows{name}")
    if all(layer.measured is None for layer in trace.layers):
        raise NoDevice("no kernel of a GPU in the trace belongs to a convolution: nothing was timed")
    searched = {name: getattr(network.runtime, name) for name in ("cudnn_benchmark", "deterministic")}
    runtime = replace(trace.runtime, **{name: value for name, value in searched.items() if value is not None})
    return RecordedTimer(device, trace.layers, gpu, runtime)


def _recorded_alone(time_plan: TimePlan, timer: RecordedTimer, *, whole: bool) -> TimePlan:
    """The wanted parts with the options that the trace has; if `whole`, without parts that have none."""
    parts = []
    for part in time_plan.parts:
        there = tuple(option for option in part.options if option in timer.timings)
        if there or not whole:
            parts.append(part._replace(options=there or part.options))
    return replace(time_plan, parts=tuple(parts), trials=())


def _timed_on(
    bench: Timer,
    network: Network,
    job: checking.Job,
    flags: TimingFlags,
    file: TimingsFile,
    errors: list[InputError],
    *,
    quiet: bool,
) -> Measurement:
    own, name, stated = gpu_of(bench.device), _name(bench.device), network.runtime.cudnn
    target = _target(bench.device, own, network, job)
    if stated is None and bench.device.cudnn:  # predictions are for the library that times, unless the input names one
        network = replace(network, runtime=replace(network.runtime, cudnn=Version(bench.device.cudnn)))
    (target,), uses = checking.calibrated([target], network.runtime, job.calibrations)
    mode = network.mode or default_mode(network.runtime)
    time_plan = plan_of(network, load_rulebook(), target, mode, own)
    if isinstance(bench, RecordedTimer):
        time_plan = _recorded_alone(time_plan, bench, whole=_is_of_trace(network.path, flags))
    if flags.layers_only:
        time_plan = replace(time_plan, trials=())
    workloads = list(dict.fromkeys(time_plan.workloads()))
    file.settle()  # before timing too: an interrupt of the run before may have left a line cut off
    known = {} if flags.again or flags.from_trace is not None else file.known(bench.device, frozenset(workloads))
    with _noting_interrupts(file), outputs.Progress(sys.stderr, quiet=quiet, doing="timing") as progress:
        progress.start(len(workloads))
        results = timed(
            workloads, bench, name, known, file.add,
            done=lambda workload: progress.done(_short(workload)), limit_s=flags.limit_seconds,
        )  # fmt: skip
    file.settle()
    names = [layer.name for layer in network.layers]
    some = compared(names, time_plan.parts, time_plan.estimates, results.rows, results.failed)
    outcomes = [result for trial in time_plan.trials if (result := outcome(trial, results.rows)) is not None]
    errors += _errors(network, time_plan, results.failed)
    notes = [*calibration_notes(uses, several=False), *_notes(bench.device, network, target, name)]
    if stated is not None and bench.device.cudnn and str(stated) != bench.device.cudnn:
        notes.append(f"predicted for cuDNN {stated}, as the input says; timed with {bench.device.cudnn}")
    if flags.from_trace is not None and network.runtime.cudnn_benchmark is None:
        notes.append("nothing says whether cudnn.benchmark was on; --runtime cudnn_benchmark=true says it was")
    if network.unbatched:
        notes.append(batch_note(network.unbatched))
    if flags.calibrate is not None:
        notes += _calibrated(flags.calibrate, file, bench.device, errors)
    clocks = [row.clock for row in results.rows.values() if row.clock]
    return Measurement(
        path=network.path, device=bench.device, gpu=target.label, mode=mode,
        benchmark=bool(network.runtime.cudnn_benchmark), compared=tuple(some),
        agreement=agreement(some) if bench.device.kind == "cuda" else None,
        outcomes=tuple(outcomes),
        untried=time_plan.findings - len(time_plan.trials) if not flags.layers_only and flags.from_trace is None else 0,
        trace=flags.from_trace or "",
        unfinished=len(time_plan.trials) - len(outcomes), csv=file.path, calibrations=uses,
        fresh=len(results.rows) - len(known), reused=len(known),
        waiting=len(workloads) - len(results.rows) - len(results.failed),
        clocks=(min(clocks), max(clocks)) if clocks else None, notes=tuple(notes),
    )  # fmt: skip


def _calibrated(path: str, file: TimingsFile, device: Device, errors: list[InputError]) -> list[str]:
    """Writes what all timings of the device in the file say; a note on that, or an error where they say too little."""
    try:
        text, calibration = calibration_file(file.rows, device, date.today().isoformat())
    except ConvlintError as error:
        errors.append(InputError(path=path, message=str(error)))
        return []
    outputs.replace_file(path, text)
    before, after = percent(calibration.error_before), percent(calibration.error_after)
    passes = plural(calibration.rows, "timing")
    return [f"{path}: calibrated on {passes}; half of them within {after} of what is predicted then, {before} before"]


@contextmanager
def _noting_interrupts(file: TimingsFile) -> Iterator[None]:
    """Tells the user of an interrupted run where its timings are."""
    before = len(file.rows)
    try:
        yield
    except KeyboardInterrupt:
        new = plural(len(file.rows) - before, "new timing")
        checking.say(f"convlint: interrupted; {clean_path(file.path)} has {new}, and the next run goes on from there\n")
        raise


def _name(device: Device) -> str:
    """What the device is called in rows and file names."""
    own = gpu_of(device)
    if own is not None:
        return own.id
    return re.sub(r"[^a-z0-9]+", "-", device.name.casefold()).strip("-") or "device"


def _target(device: Device, own: Gpu | None, network: Network, job: checking.Job) -> Target:
    """The GPU to predict for. Raises UsageError where nothing says which."""
    if job.gpus:
        return checking.resolve_targets(job.gpus)[0]
    if own is not None:
        return Target(label=own.id, gpu=own)
    if device.kind == "cuda":
        raise UsageError(
            f"convlint does not know the GPU {device.name} (compute capability {device.compute_capability}, "
            f"{device.sms} SMs); --gpu names the one to predict for"
        )
    return checking.resolve_targets([(network.targets or (checking.DEFAULT_TARGET,))[0]])[0]


def _notes(device: Device, network: Network, target: Target, name: str) -> list[str]:
    notes = []
    if device.kind == "cpu":
        notes.append(f"timed on a CPU: nothing of it says how right the predictions for {target.label} are")
    elif target.gpu.id != name:
        notes.append(f"predicted for {target.label}, which is not the GPU that timed")
    framework = framework_of(network.runtime)
    if framework not in (None, "pytorch"):
        notes.append(f"predicted for {framework}; what is timed are PyTorch's convolutions")
    return notes


def _errors(network: Network, time_plan: TimePlan, failed: Mapping[Workload, str]) -> list[InputError]:
    """One error for each reason why layers were not timed."""
    layers: dict[str, dict[int, None]] = {}
    for index, reason in time_plan.untimed.items():
        layers.setdefault(reason, {})[index] = None
    for part in (*time_plan.parts, *(part for trial in time_plan.trials for part in (*trial.before, *trial.after))):
        for option in part.options:
            if option in failed:
                layers.setdefault(f"{option.which}: {failed[option]}", {})[part.layer] = None
    errors = []
    for reason, indices in layers.items():
        untimed = [network.layers[index] for index in indices]
        at = untimed[0].locate()
        names = shortened([layer.name for layer in untimed], _NAMES)
        errors.append(
            InputError(path=at.path or network.path, message=f"{names} not timed: {reason}", line=at.line,
                       column=at.column)
        )  # fmt: skip
    return errors


def _short(work: Workload) -> str:
    return f"{work.C}->{work.K} {work.R}x{work.S} {work.precision} {work.layout} {work.which}"
