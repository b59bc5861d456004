"""What the layers of an estimate add up to: time, grade, shares by pass and by what bounds them; the closing lines.

A training step and a forward pass are never added up: each GPU has one total for each mode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from convlint.files.languages.saying import plural
from convlint.files.safe import ascii_only, clean
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import Dtype, Mode
from convlint.model.report import LayerReport, LayerTimes, Report
from convlint.reporters.ink import GRADE_INKS, Glyphs, Paint, wrap
from convlint.reporters.machine import (
    basis_notes,
    batch_notes,
    calibration_notes,
    dtype_notes,
    host_notes,
    network_notes,
    scaled,
)
from convlint.reporters.words import partly_read, place, step

_WORTH_SAYING = 1.05


class Total(Struct, frozen=True, kw_only=True):
    """Sums over the layers of one mode that have a time on one GPU; times in us, all calls counted, useful `flops`."""

    label: str
    mode: Mode
    time_us: float = 0.0
    times: LayerTimes | None = None  # of all these layers, where each has one
    at_peak_us: float = 0.0  # what the useful FLOPs would take at the peak of their compute dtypes
    at_half_us: float = 0.0  # and at that of 16 bits
    launch_us: float = 0.0
    longest_us: float = 0.0  # of one layer
    flops: int = 0
    without_time: int = 0  # layers
    by_pass_us: dict[str, float] = field(default_factory=dict)
    by_bound_us: dict[str, float] = field(default_factory=dict)

    @property
    def grade(self) -> str | None:
        """The network's letter; None where a layer's time is unknown or there is none."""
        return None if self.times is None else self.times.grade

    @property
    def hardware(self) -> str:
        """How close all of it comes to the hardware: share of the peak, launches, and what the dtype leaves."""
        words = f"{100 * self.at_peak_us / self.time_us:.0f} % of peak"
        if self.at_half_us and self.at_peak_us > _WORTH_SAYING * self.at_half_us:
            words += f", which in 16 bits is {self.at_peak_us / self.at_half_us:.1f} times as high"
        if self.launch_us > (_WORTH_SAYING - 1) * self.time_us:
            words += f"; launches {100 * self.launch_us / self.time_us:.0f} %"
        return words


def clock(time_us: float) -> str:
    """Three significant digits and a unit, so that times line up: `887 us`, `3.70 ms`, `1.25 s`."""
    return scaled(time_us, ("us", "ms", "s"), 1000)


def figures(value: float) -> str:
    """About three significant digits: `0.037`, `1.25`, `61.3`, `1284`."""
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}" if value >= 0.0995 else f"{value:.2g}"


Totals = Mapping[tuple[str, Mode], Total]  # by GPU and mode


def totals_of(report: Report) -> Totals:
    """The sums for each GPU and mode of which there are layers."""
    return {
        (label, mode): _total_of(report, [entry for entry in report.layers if entry.mode == mode], label, mode)
        for label in report.targets
        for mode in dict.fromkeys(entry.mode for entry in report.layers)
    }


def _total_of(report: Report, layers: Sequence[LayerReport], label: str, mode: Mode) -> Total:
    time = longest = at_peak = at_half = launch = 0.0
    gpu = load_gpu(label)
    half = gpu.peak(Dtype.fp16, tensor=gpu.tensor_cores) or 0.0
    flops = without = 0
    by_pass: dict[str, float] = {}
    by_bound: dict[str, float] = {}
    for entry in layers:
        if label not in entry.estimates:  # its file names other targets
            continue
        estimate = entry.estimates[label]
        if estimate is None:
            without += 1
            continue
        time += estimate.time_us
        longest = max(longest, estimate.time_us)
        calls = entry.layer.calls
        for which, one in estimate.passes.items():
            flops += one.flops * calls
            at_peak += one.peak_share * one.time_us * calls
            at_half += one.flops * calls / half * 1e6 if half else 0.0
            launch += one.overhead_us * calls
            by_pass[which] = by_pass.get(which, 0.0) + one.time_us * calls
            by_bound[one.bound_by] = by_bound.get(one.bound_by, 0.0) + one.time_us * calls
    times = next((total.times for total in report.totals if (total.gpu, total.mode) == (label, mode)), None)
    return Total(
        label=label, mode=mode, time_us=time, times=times, at_peak_us=at_peak, at_half_us=at_half, launch_us=launch,
        longest_us=longest, flops=flops, without_time=without, by_pass_us=by_pass, by_bound_us=by_bound,
    )  # fmt: skip


def closing_lines(report: Report, totals: Totals, paint: Paint, glyphs: Glyphs, width: int) -> list[str]:
    """The totals per GPU, what could not be read or predicted, and the last line: what was covered."""
    lines: list[str] = []
    for total in totals.values():
        if not total.time_us:
            continue
        letter = total.grade or "-"
        name, rate = _shown(total.label, glyphs), total.flops / total.time_us * 1e-6
        most = " or more" if total.without_time else ""
        text = f"{name}: {clock(total.time_us)}{most} of convolutions per {step(total.mode)}, grade {letter}, "
        text += f"{figures(rate)} TFLOPS, {total.hardware}"
        first, *rest = wrap(text, width)
        if first.startswith(name):
            first = paint("strong", name) + first[len(name) :]
        graded = first.replace(f" {letter},", f" {paint(GRADE_INKS.get(letter, 'strong'), letter)},", 1)
        lines += ["", graded, *(f"  {line}" for line in rest)]
        shares = f"by pass: {_shares(total.by_pass_us)}; by bound: {_shares(total.by_bound_us)}"
        lines += [f"  {line}" for line in wrap(shares, width - 2)]
    if len(totals) > 1:
        lines.append("")
    calibrated = calibration_notes(report.calibrations, several=len(report.targets) > 1)
    of_times = (*calibrated, *host_notes(report), *batch_notes(report), *dtype_notes(report), *basis_notes(report))
    for note in (*network_notes(report), *of_times):
        first, *rest = wrap(_shown(note, glyphs), width - 4)
        lines += [f"  {first}", *(f"    {line}" for line in rest)]
    if report.errors:
        lines.append("")
    for error in report.errors:
        where = place(error.path, error.line, error.column)
        first, *rest = wrap(_shown(f"error: {where}: {error.message}", glyphs), width - 2)
        lines += [first.replace("error:", paint("error", "error:"), 1), *(f"  {line}" for line in rest)]
    return [*lines, "", _coverage(report, totals, paint, glyphs), ""]


def _shares(times: dict[str, float]) -> str:
    whole = sum(times.values())
    ordered = sorted(times.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {100 * time / whole:.0f} %" for name, time in ordered)


def _coverage(report: Report, totals: Totals, paint: Paint, glyphs: Glyphs) -> str:
    line = f"{plural(len(report.layers), 'layer')} in {plural(report.files, 'file')}"
    if report.targets:
        line += f" on {', '.join(report.targets)}"
    unknown: dict[str, int] = {}
    for total in totals.values():
        if total.without_time:
            unknown[total.label] = unknown.get(total.label, 0) + total.without_time
    if unknown:
        several = len(report.targets) > 1
        counts = ", ".join(f"{count} on {label}" for label, count in unknown.items()) if several else ""
        line += f": no time for {counts or plural(next(iter(unknown.values())), 'layer')}"
    unread = {error.path for error in report.errors} - partly_read(report)
    if unread:
        line += f"{';' if unknown else ':'} {plural(len(unread), 'input')} not read"
    if not report.errors:
        line += ": complete"
    elif not unknown and not unread:
        line += ": incomplete"
    return paint("poor" if report.errors else "good", _shown(line, glyphs))


def _shown(text: str, glyphs: Glyphs) -> str:
    text = clean(text)
    return ascii_only(text) if glyphs.line.isascii() else text
