"""Measured times beside predicted ones, as text and JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from convlint import __version__
from convlint.engine.measured import far_off
from convlint.files.languages import duration, plural
from convlint.files.safe import clean, clean_path, fields, number
from convlint.gpus.devices import Device
from convlint.measuring.trial import Agreement, Compared, TrialResult, TrialVerdict
from convlint.model.layer import Mode
from convlint.model.report import CalibrationUse, InputError
from convlint.reporters import Style, ink
from convlint.reporters.json_v3 import calibration_object, error_object
from convlint.reporters.words import fault

VERDICTS: tuple[TrialVerdict, ...] = ("held", "in part", "not held", "too close to tell")


class Measurement(Struct, frozen=True, kw_only=True):
    """The result of one run. `reused` passes come from the file at `csv`, `waiting` ones were not begun in time.

    `clocks` are the least and the greatest SM clock in MHz that were seen.
    """

    path: str
    device: Device | None = None
    gpu: str = ""
    mode: Mode | None = None
    benchmark: bool = False
    compared: tuple[Compared, ...] = ()
    agreement: Agreement | None = None
    outcomes: tuple[TrialResult, ...] = ()
    untried: int = 0
    unfinished: int = 0  # trials of which something was not timed
    csv: str = ""
    trace: str = ""  # the file that the timings come from
    fresh: int = 0
    reused: int = 0
    waiting: int = 0
    clocks: tuple[int, int] | None = None
    errors: tuple[InputError, ...] = ()
    notes: tuple[str, ...] = ()
    calibrations: tuple[CalibrationUse, ...] = ()


def headline(measurement: Measurement) -> str:
    """`resnet50.yaml, training, on NVIDIA H200 with PyTorch 2.11.0 and cuDNN 9.10.2, cudnn.benchmark off`."""
    device = measurement.device
    if device is None:
        return ""
    where = device.name if device.kind == "cuda" else f"this machine's CPU ({device.name})"
    libraries = f"PyTorch {device.framework_version}" + (f" and cuDNN {device.cudnn}" if device.cudnn else "")
    search = f"cudnn.benchmark {'on' if measurement.benchmark else 'off'}"
    if measurement.trace:
        return f"{measurement.mode}, on {where}, from the trace {clean_path(measurement.trace)}"
    return f"{measurement.mode}, on {where} with {libraries}, {search}"


def percent(share: float) -> str:
    """`12 %`, `1.2 %`."""
    value = 100 * share
    return f"{value:.0f} %" if abs(value) >= 9.95 else f"{value:.1f} %"


def agreed(agreement: Agreement, gpu: str) -> str:
    """How predictions agree with measured times."""
    passes = "1 pass" if agreement.count == 1 else f"{agreement.count} passes"
    return (
        f"predicted for {gpu} over measured: {agreement.bias:.2f} on average of {passes}; half of them within "
        f"{percent(agreement.error)}, within {percent(agreement.error_unbiased)} once all are divided by that"
    )


def promise(result: TrialResult) -> str:
    """`promised 12 % faster, measured 10 % (310 us -> 279 us)`."""
    before, after = result.before_us, result.after_us
    change = after / before - 1 if before else 0.0
    is_faster = change < 0
    measured = f"{percent(abs(change))} {'faster' if is_faster else 'slower'}"
    promised = "" if result.trial.promised is None else f"promised {percent(-result.trial.promised)} faster, "
    fix = result.trial.finding.fix
    images = " for as many images" if fix is not None and "N" in fix.set else ""
    return f"{promised}measured {measured}: {duration(before)} -> {duration(after)}{images}"


def tally(measurement: Measurement) -> str:
    """`4 of 5 pieces of advice held, 1 in part`; empty where none was tried."""
    if not measurement.outcomes:
        return ""
    counts = Counter(outcome.held for outcome in measurement.outcomes)
    others = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict] and verdict != "held"]
    return ", ".join((f"{counts['held']} of {plural(len(measurement.outcomes), 'piece')} of advice held", *others))


def notes(measurement: Measurement) -> Iterator[str]:
    """Further notes for the user."""
    ratios = [
        (f"{compared.layer} {compared.which}", compared.ratio) for compared in measurement.compared if compared.ratio
    ]
    if measurement.agreement is not None and (off := far_off(ratios)):
        yield clean(off)
    yield from measurement.notes
    if measurement.clocks is not None:
        low, high = measurement.clocks
        yield f"SM clock held at {high} MHz" if low == high else f"SM clock between {low} and {high} MHz"
    if measurement.untried:
        untried = plural(measurement.untried, "finding")
        yield f"{untried} not tried: alone their fix promises no time, or changes nothing timed"
    if measurement.unfinished:
        yield f"{plural(measurement.unfinished, 'finding')} not tried to the end: not all of its timings are there"
    if measurement.waiting:
        yield f"{measurement.waiting} timings not begun: --limit-seconds is over; the next run goes on from there"
    if measurement.csv:
        known = f", {measurement.reused} were there" if measurement.reused else ""
        yield f"{measurement.csv}: {plural(measurement.fresh, 'new timing')}{known}"


_TITLES, _SIDES = ("layer", "pass", "predicted", "measured", "spread", "ratio"), "llrrrr"
_INKS: dict[TrialVerdict, str] = {"held": "good", "in part": "fair", "not held": "poor", "too close to tell": "faint"}


def render_text(measurement: Measurement, style: Style) -> str:
    """The whole report; the same words with and without colour."""
    paint, width = ink.painter(style.color), style.table_width
    lines: list[str] = []
    if measurement.device is not None and not style.quiet:
        lines += ink.wrapped(f"{clean_path(measurement.path)}: {headline(measurement)}", width)
        lines += _table(measurement, paint, width, unicode=style.unicode)
        if measurement.agreement is not None:
            lines += ["", *ink.wrapped(agreed(measurement.agreement, measurement.gpu), width)]
    if measurement.outcomes:
        lines += _advice(measurement, paint, width)
    if not style.quiet:
        texts = list(notes(measurement))
        lines += ["", *(line for note in texts for line in ink.wrapped(note, width, "  "))] if texts else []
    for error in measurement.errors:
        lines += ["", *ink.error_lines(f"error: {fault(error)}", width, paint)]
    return ink.finished([*lines, ""], unicode=style.unicode).lstrip("\n")


def _table(measurement: Measurement, paint: ink.Paint, width: int, *, unicode: bool) -> list[str]:
    rows = [
        (
            clean(compared.layer),
            compared.which,
            "-" if compared.predicted_us is None else duration(compared.predicted_us),
            "-" if compared.measured_us is None else duration(compared.measured_us),
            "-" if compared.runs < 2 else percent(compared.spread),
            "-" if compared.ratio is None else f"{compared.ratio:.2f}",
        )
        for compared in measurement.compared
    ]
    if not rows:
        return []
    sizes = ink.column_sizes([_TITLES, *rows])
    sizes[0] = width - sum(sizes[1:]) - 2 * len(sizes[1:])  # names get what the numbers leave
    more = (ink.UNICODE if unicode else ink.ASCII).more
    lines, before = ["", paint("faint", ink.row(_TITLES, sizes, _SIDES, more))], ""
    for compared, (name, *cells) in zip(measurement.compared, rows, strict=True):
        lines.append(ink.row(["" if compared.layer == before else name, *cells], sizes, _SIDES, more))
        before = compared.layer
    return lines


def _advice(measurement: Measurement, paint: ink.Paint, width: int) -> list[str]:
    lines = ["", paint("strong", tally(measurement))]
    for entry in measurement.outcomes:
        finding = entry.trial.finding
        where = f"{finding.layer}: " if finding.layer is not None else ""
        fix = finding.fix.describe if finding.fix is not None else ""
        first, *rest = ink.wrapped(f"{entry.held}: {finding.rule.code} {where}{fix}; {promise(entry)}", width - 2, "  ")
        lines += [first.replace(entry.held, paint(_INKS[entry.held], entry.held), 1), *(f"  {line}" for line in rest)]
    return lines


def render_json(measurement: Measurement) -> str:
    """The measurement as one JSON object on one line; times in us, `null` for what is not known."""
    device, agreement = measurement.device, measurement.agreement
    document = {
        "schema_version": 2,
        "convlint": __version__,
        "complete": not measurement.errors and not measurement.waiting,
        "path": clean_path(measurement.path),
        "gpu": clean(measurement.gpu) or None,
        "mode": measurement.mode,
        "cudnn_benchmark": measurement.benchmark,
        "device": None
        if device is None
        else {
            "kind": device.kind,
            "name": clean(device.name),
            "compute_capability": device.compute_capability or None,
            "framework_version": clean(device.framework_version),
            "cudnn": clean(device.cudnn) or None,
            "cuda": clean(device.cuda) or None,
            "sm_clock_mhz": None if measurement.clocks is None else list(measurement.clocks),
        },
        "passes": [_pass(compared) for compared in measurement.compared],
        "agreement": None
        if agreement is None
        else {
            "passes": agreement.count,
            "predicted_over_measured": number(agreement.bias),
            "median_error": number(agreement.error),
            "median_error_unbiased": number(agreement.error_unbiased),
        },
        "advice": [_outcome(outcome) for outcome in measurement.outcomes],
        "untried": measurement.untried,
        "unfinished": measurement.unfinished,
        "calibrations": [calibration_object(use) for use in measurement.calibrations],
        "waiting": measurement.waiting,
        "trace": clean_path(measurement.trace) or None,
        "csv": clean_path(measurement.csv) or None,
        "notes": [clean(note) for note in measurement.notes],
        "errors": [error_object(error) for error in measurement.errors],
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def _pass(compared: Compared) -> dict[str, Any]:
    return {
        "layer": clean(compared.layer),
        "pass": compared.which,
        **fields(compared, "predicted_us", "measured_us"),
        "spread": number(compared.spread) if compared.runs else None,
        "runs": compared.runs,
        "reason": clean(compared.reason) or None,
    }


def _outcome(outcome: TrialResult) -> dict[str, Any]:
    finding = outcome.trial.finding
    fix = finding.fix
    return {
        "code": finding.rule.code,
        "fingerprint": finding.fingerprint or None,
        **fields(finding, "layer", "layers"),
        **({"describe": "", "set": {}} if fix is None else fields(fix, "describe", "set")),
        "held": outcome.held,
        "promised_change": number(outcome.trial.promised),
        "measured_change": number(outcome.after_us / outcome.before_us - 1),
        **fields(outcome, "before_us", "after_us", "noise_us"),
    }
