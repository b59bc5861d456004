"""What was measured, and what all forms of it say in the same words."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from convlint.files.languages.saying import duration, plural
from convlint.gpus.gpu import CalibrationUse
from convlint.measuring.trial import Agreement, Compared, Held, Outcome
from convlint.measuring.workload import Device
from convlint.model.layer import Mode
from convlint.model.report import InputError

VERDICTS: tuple[Held, ...] = ("held", "in part", "not held", "too close to tell")


class Measurement(Struct, frozen=True, kw_only=True):
    """All of one run. `reused` passes come from the file at `csv`, `waiting` ones were not begun in time.

    `clocks` are the least and the greatest SM clock in MHz that were seen.
    """

    path: str
    device: Device | None = None
    gpu: str = ""
    mode: Mode | None = None
    benchmark: bool = False
    compared: tuple[Compared, ...] = ()
    agreement: Agreement | None = None
    outcomes: tuple[Outcome, ...] = ()
    untried: int = 0
    unfinished: int = 0  # trials of which something was not timed
    csv: str = ""
    fresh: int = 0
    reused: int = 0
    waiting: int = 0
    clocks: tuple[int, int] | None = None
    errors: tuple[InputError, ...] = ()
    notes: tuple[str, ...] = ()
    calibrations: tuple[CalibrationUse, ...] = ()


def headline(one: Measurement) -> str:
    """`resnet50.yaml, training, on NVIDIA H200 with PyTorch 2.11.0 and cuDNN 9.10.2, cudnn.benchmark off`."""
    device = one.device
    if device is None:
        return ""
    where = device.name if device.kind == "cuda" else f"this machine's CPU ({device.name})"
    libraries = f"PyTorch {device.framework_version}" + (f" and cuDNN {device.cudnn}" if device.cudnn else "")
    return f"{one.mode}, on {where} with {libraries}, cudnn.benchmark {'on' if one.benchmark else 'off'}"


def percent(share: float) -> str:
    """`12 %`, `1.2 %`."""
    value = 100 * share
    return f"{value:.0f} %" if abs(value) >= 9.95 else f"{value:.1f} %"


def agreed(found: Agreement, gpu: str) -> str:
    """How predictions agree."""
    passes = "1 pass" if found.count == 1 else f"{found.count} passes"
    return (
        f"predicted for {gpu} over measured: {found.bias:.2f} on average of {passes}; half of them within "
        f"{percent(found.error)}, within {percent(found.error_unbiased)} once all are divided by that"
    )


def promise(one: Outcome) -> str:
    """`promised 12 % faster, measured 10 % (310 us -> 279 us)`."""
    before, after = one.before_us, one.after_us
    change = after / before - 1 if before else 0.0
    is_faster = change < 0
    found = f"{percent(abs(change))} {'faster' if is_faster else 'slower'}"
    promised = "" if one.trial.promised is None else f"promised {percent(-one.trial.promised)} faster, "
    return f"{promised}measured {found}: {duration(before)} -> {duration(after)}"


def tally(one: Measurement) -> str:
    """`4 of 5 pieces of advice held, 1 in part`; empty where none was tried."""
    counts = {held: sum(each.held == held for each in one.outcomes) for held in VERDICTS}
    if not one.outcomes:
        return ""
    others = [f"{count} {held}" for held, count in counts.items() if count and held != "held"]
    line = f"{counts['held']} of {plural(len(one.outcomes), 'piece')} of advice held"
    return f"{line}, {', '.join(others)}" if others else line


def notes(one: Measurement) -> Iterator[str]:
    """What else has to be said."""
    yield from one.notes
    if one.clocks is not None:
        low, high = one.clocks
        yield f"SM clock held at {high} MHz" if low == high else f"SM clock between {low} and {high} MHz"
    if one.untried:
        yield f"{plural(one.untried, 'finding')} not tried: alone their fix promises no time, or changes nothing timed"
    if one.unfinished:
        yield f"{plural(one.unfinished, 'finding')} not tried to the end: not all of its timings are there"
    if one.waiting:
        yield f"{one.waiting} timings not begun: --limit-seconds is over; the next run goes on from there"
    if one.csv:
        known = f", {one.reused} were there" if one.reused else ""
        yield f"{one.csv}: {one.fresh} new timings{known}"
