"""Estimates of layers as a table and as CSV, with the totals of the network."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod

from msgspec import Struct, field

from convlint.estimate.sweep import passes_of, unknown_time
from convlint.files.languages import plural
from convlint.files.safe import clean, clean_path, number
from convlint.gpus.gpu import load_gpu
from convlint.model.estimates import LayerEstimate, Part, PassEstimate
from convlint.model.grouping import grouped
from convlint.model.layer import PASSES, ConvLayer, Dtype, Mode, Pass, gemm
from convlint.model.network import RecordedStep
from convlint.model.report import LayerReport, NetworkTotal, Report
from convlint.reporters import Style, ink, words

# Work of a step that belongs to no single operation, by the part that it counts to.
_BESIDE_OPERATIONS: Mapping[Part, str] = {
    "copy": "casts for convolutions", "pointwise": "sums of gradients", "optimizer": "update of weights",
}  # fmt: skip
_LEAST_REST = 0.001  # of a step: less is not shown
_WORTH_SAYING = 1.05  # a ratio: what makes less than 5 % of difference is left out of the totals


class EstimateTotal(Struct, kw_only=True):
    """Sums over the layers of one mode that have a time on one GPU; times in us, all calls counted, useful `flops`."""

    label: str
    mode: Mode
    whole: NetworkTotal | None = None  # of all these layers
    time_us: float = 0.0
    at_peak_us: float = 0.0  # what the useful FLOPs would take at the peak of their compute dtypes
    at_half_us: float = 0.0  # and at that of 16 bits
    launch_us: float = 0.0
    copies_us: float = 0.0  # of tensors in another layout, or into aligned channels
    longest_us: float = 0.0  # of one layer
    flops: int = 0
    without_time: int = 0  # layers
    by_pass_us: dict[str, float] = field(default_factory=dict)
    by_bound_us: dict[str, float] = field(default_factory=dict)

    @property
    def hardware(self) -> str:
        """How close the time comes to the hardware's limit: share of the peak, launches, copies, peak in 16 bits."""
        text = f"{100 * self.at_peak_us / self.time_us:.0f} % of peak"
        if self.at_half_us and self.at_peak_us > _WORTH_SAYING * self.at_half_us:
            text += f", which in 16 bits is {self.at_peak_us / self.at_half_us:.1f} times as high"
        if self.launch_us > (_WORTH_SAYING - 1) * self.time_us:
            text += f"; launches {100 * self.launch_us / self.time_us:.0f} %"
        if self.copies_us > (_WORTH_SAYING - 1) * self.time_us:
            text += f"; copies {100 * self.copies_us / self.time_us:.0f} %"
        return text


def clock(time_us: float) -> str:
    """Three significant digits and a unit, so that times line up: `887 us`, `3.70 ms`, `1.25 s`."""
    return words.scaled(time_us, ("us", "ms", "s"), 1000)


def figures(value: float) -> str:
    """About three significant digits: `0.037`, `1.25`, `61.3`, `1284`."""
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}" if value >= 0.0995 else f"{value:.2g}"


Totals = Mapping[tuple[str, Mode], EstimateTotal]  # by GPU and mode


def totals_of(report: Report) -> Totals:
    """The sums for each GPU and mode of which there are layers."""
    return {
        (label, mode): _total_of(report, [entry for entry in report.layers if entry.mode == mode], label, mode)
        for label in report.targets
        for mode in dict.fromkeys(entry.mode for entry in report.layers)
    }


def _total_of(report: Report, layers: Sequence[LayerReport], label: str, mode: Mode) -> EstimateTotal:
    total = next((total for total in report.totals if (total.gpu, total.mode) == (label, mode)), None)
    sums = EstimateTotal(label=label, mode=mode, whole=total)
    gpu = load_gpu(label)
    half = gpu.peak(Dtype.fp16, tensor=gpu.tensor_cores) or 0.0
    for entry in layers:
        if label not in entry.estimates:  # its file names other targets
            continue
        estimate = entry.estimates[label]
        if estimate is None:
            sums.without_time += 1
            continue
        sums.time_us += estimate.time_us
        sums.longest_us = max(sums.longest_us, estimate.time_us)
        calls = entry.layer.calls
        for which, of_pass in estimate.passes.items():
            sums.flops += of_pass.flops * calls
            sums.at_peak_us += of_pass.peak_share * of_pass.time_us * calls
            sums.at_half_us += of_pass.flops * calls / half * 1e6 if half else 0.0
            sums.launch_us += of_pass.overhead_us * calls
            sums.copies_us += (of_pass.transposes_us + of_pass.padding_us) * calls
            for parts, key in ((sums.by_pass_us, which), (sums.by_bound_us, of_pass.bound_by)):
                parts[key] = parts.get(key, 0.0) + of_pass.time_us * calls
    return sums


def closing_lines(report: Report, totals: Totals, page: ink.Page) -> list[str]:
    """The totals per GPU, what could not be read or predicted, and the last line: what was covered."""
    lines: list[str] = []
    for total in totals.values():
        if not total.time_us:
            continue
        letter = (total.whole and total.whole.grade) or "-"
        name, rate = page.shown(total.label), total.flops / total.time_us * 1e-6
        most = " or more" if total.without_time else ""
        text = f"{name}: {clock(total.time_us)}{most} of convolutions per {words.step(total.mode)}, grade {letter}, "
        text += f"{figures(rate)} TFLOPS, {total.hardware}"
        first, *rest = ink.wrap(text, page.width)
        if first.startswith(name):
            first = page.paint("strong", name) + first[len(name) :]
        graded = first.replace(f" {letter},", f" {page.paint(ink.GRADE_INKS.get(letter, 'strong'), letter)},", 1)
        lines += ["", graded, *(f"  {line}" for line in rest)]
        shares = f"by pass: {_shares(total.by_pass_us)}; by bound: {_shares(total.by_bound_us)}"
        lines += [f"  {line}" for line in ink.wrap(shares, page.width - 2)]
        for text in () if total.whole is None else words.step_lines(total.whole, judged=False):
            lines += [f"  {line}" for line in ink.wrap(page.shown(text), page.width - 2)]
    if len(totals) > 1:
        lines.append("")
    calibrated = words.calibration_notes(report.calibrations, several=len(report.targets) > 1)
    of_times = (*calibrated, *words.host_notes(report), *words.step_notes(report), *words.batch_notes(report),
                *words.layout_notes(report), *words.dtype_notes(report), *words.version_notes(report),
                *words.basis_notes(report))  # fmt: skip
    lines += page.note_lines((*words.network_notes(report), *of_times))
    if report.errors:
        lines.append("")
    for error in report.errors:
        lines += ink.error_lines(page.shown(f"error: {words.fault(error)}"), page.width - 2, page.paint)
    return [*lines, "", _coverage(report, totals, page), ""]


def operation_lines(report: Report, page: ink.Page) -> list[str]:
    """Each operation between the convolutions: what it does, its part of the step, its time and its bytes."""
    lines: list[str] = []
    for network in report.networks:
        step = network.step
        if network.recorded is not None:
            lines += _recorded_lines(network.recorded, page)
            continue
        if step is None:
            continue
        rows = [("operation", "does", "part", "time", "share", "MB")]
        for operation, estimate in zip(network.operations, step.operations, strict=True):
            work = operation.work
            if work is None:
                continue
            name = page.shown(clean(operation.name or work.op))
            does = page.shown(clean(work.op))
            if estimate is None or not estimate.kernels:
                why = "not priced" if estimate is None else "in a kernel above"
                rows.append((name, does, why, "-", "-", "-"))
            else:
                share = f"{100 * estimate.time_us / step.time_us:.1f} %"
                rows.append((name, does, estimate.part, clock(estimate.time_us), share, f"{estimate.bytes / 1e6:.1f}"))
        for part, name in _BESIDE_OPERATIONS.items():
            rest = step.parts.get(part, 0.0) - sum(
                estimate.time_us for estimate in step.operations if estimate and estimate.part == part
            )
            if rest >= _LEAST_REST * step.time_us:
                rows.append((name, "-", part, clock(rest), f"{100 * rest / step.time_us:.1f} %", "-"))
        several_networks = len(report.networks) > 1
        title = f"{clean_path(network.path)} on {network.gpu}" if several_networks else "beside the convolutions"
        lines += _table(title, rows, "mllrrr", page)
    return lines


def _table(title: str, rows: Sequence[Sequence[str]], sides: str, page: ink.Page) -> list[str]:
    """The rows below their title, the first of them the heads of columns, of which the first gets what room is left."""
    sizes = ink.column_sizes(rows)
    sizes[0] = max(_LEAST_SHAPE, min(sizes[0], page.width - sum(sizes[1:]) - 2 * len(sizes)))
    head, *others = [ink.row(cells, sizes, sides, page.glyphs.more) for cells in rows]
    return ["", page.paint("strong", page.shown(title)), page.paint("faint", page.shown(head)), *others]


def _recorded_lines(recorded: RecordedStep, page: ink.Page) -> list[str]:
    """The operators of a trace's step, the slowest first, with their products, measured times and predicted ones."""
    merged = grouped(((work.op, work.gemm, work.part), work) for work in recorded.works)
    ordered = sorted(merged.items(), key=lambda item: -sum(work.us for work in item[1]))
    total = sum(recorded.parts.values()) or 1.0
    rows = [("operator", "M×N×K", "part", "calls", "measured", "share", "predicted")]
    for (op, product, part), works in ordered[:_MOST_OPERATORS]:
        known = [work.predicted_us for work in works if work.predicted_us is not None]
        predicted = clock(sum(known)) if len(known) == len(works) else "-"
        shape, us = page.shown("×".join(map(str, product)) or "-"), sum(work.us for work in works)
        calls = f"{sum(work.calls for work in works):g}"
        rows.append((clean(op), shape, part, calls, clock(us), f"{100 * us / total:.1f} %", predicted))
    rest = sum(work.us for _, works in ordered[_MOST_OPERATORS:] for work in works)
    if rest:
        rows.append(
            (f"{len(ordered) - _MOST_OPERATORS} more", "-", "-", "-", clock(rest), f"{100 * rest / total:.1f} %", "-")
        )
    title = f"kernels of a step by operator{f', as recorded on {recorded.gpu}' if recorded.gpu else ''}"
    return _table(title, rows, "mrlrrrr", page)


_MOST_OPERATORS = 40  # lines


def _shares(times: dict[str, float]) -> str:
    total = sum(times.values())
    ordered = sorted(times.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {100 * time / total:.0f} %" for name, time in ordered)


def _coverage(report: Report, totals: Totals, page: ink.Page) -> str:
    line = f"{plural(len(report.layers), 'layer')} in {plural(report.files, 'file')}"
    if report.targets:
        line += f" on {', '.join(report.targets)}"
    unknown: dict[str, int] = {}
    for total in totals.values():
        if total.without_time:
            unknown[total.label] = unknown.get(total.label, 0) + total.without_time
    if unknown:
        several_targets = len(report.targets) > 1
        counts = ", ".join(f"{count} on {label}" for label, count in unknown.items()) if several_targets else ""
        line += f": no time for {counts or plural(next(iter(unknown.values())), 'layer')}"
    unread = {error.path for error in report.errors} - words.partly_read(report)
    if unread:
        line += f"{';' if unknown else ':'} {plural(len(unread), 'input')} not read"
    if not report.errors:
        line += ": complete"
    elif not unknown and not unread:
        line += ": incomplete"
    return page.paint("poor" if report.errors else "good", page.shown(line))


# GEMM dimensions are those of one group; times in us of one call, layer_time_us of all calls and passes.
COLUMNS = (
    "path", "line", "layer", "gpu", "pass", "calls", "gemm_M", "gemm_N", "gemm_K", "gemm_batch", "flops", "bytes",
    "arithmetic_intensity", "compute_dtype", "algorithm", "tile_M", "tile_N", "split_k", "tiles", "waves",
    "tile_efficiency", "wave_efficiency", "time_us", "tflops", "bound_by", "layer_time_us", "grade", "unknown",
)  # fmt: skip


def render_csv(report: Report) -> str:
    """The header and one row per layer, GPU and pass that runs; what is unknown is empty, its reason last."""
    return csv_text(
        COLUMNS,
        (
            [clean_path(entry.layer.path), entry.layer.locate().line, clean(entry.layer.name), clean(label), which,
             entry.layer.calls, *_cells(entry, which, estimate, label)]
            for entry in report.layers
            for label, estimate in entry.estimates.items()
            for which in passes_run(entry)
        ),
    )  # fmt: skip


def csv_text(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as CSV; None is an empty cell."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([titles, *rows])
    return text.getvalue()


def passes_run(entry: LayerReport) -> tuple[Pass, ...]:
    """The passes of one layer: those estimated; where nothing is, fprop, in training wgrad, and dgrad unless first."""
    for estimate in entry.estimates.values():
        if estimate is not None:
            return tuple(which for which in PASSES if which in estimate.passes)
    return passes_of([entry.layer], entry.mode)


def why_no_time(entry: LayerReport, label: str) -> str:
    """Why the layer has no time on this target: what its framework lacks, else what is unknown."""
    return entry.lacking.get(label) or unknown_time(entry.layer, load_gpu(label))


def _cells(entry: LayerReport, which: Pass, estimate: LayerEstimate | None, label: str) -> list[object]:
    layer, times = entry.layer, entry.times.get(label)
    if estimate is None:
        product = gemm(layer, which)
        sizes = [""] * 4 if product is None else [product.M, product.N, product.K, product.batch]
        return [*sizes, *[""] * (len(COLUMNS) - 11), why_no_time(entry, label)]
    of_pass: PassEstimate = estimate.passes[which]
    return [
        of_pass.gemm.M, of_pass.gemm.N, of_pass.gemm.K, of_pass.gemm.batch, of_pass.flops, of_pass.bytes,
        number(of_pass.arithmetic_intensity), of_pass.compute_dtype, of_pass.algorithm, *of_pass.tile, of_pass.split_k,
        of_pass.tiles, number(of_pass.waves), number(of_pass.tile_efficiency, 4), number(of_pass.wave_efficiency, 4),
        number(of_pass.time_us), number(of_pass.tflops), of_pass.bound_by, number(estimate.time_us),
        "" if times is None else times.grade, "",
    ]  # fmt: skip


_LEAST_SHAPE = 20  # columns below which a layer is not described
_EIGHTHS = " ▏▎▍▌▋▊▉█"

# Title and cell, in the order of the table.
_Cell = Callable[[PassEstimate], str]
_COLUMNS: tuple[tuple[str, _Cell], ...] = (
    ("tile", lambda estimate: "-" if estimate.algorithm == "direct" else f"{estimate.tile[0]}x{estimate.tile[1]}"),
    ("split", lambda estimate: "-" if estimate.algorithm == "direct" else str(estimate.split_k)),
    ("tiles", lambda estimate: "-" if estimate.algorithm == "direct" else str(estimate.tiles)),
    ("waves", lambda estimate: "-" if estimate.algorithm == "direct" else figures(estimate.waves)),
    ("tile %", lambda estimate: "-" if estimate.algorithm == "direct" else f"{100 * estimate.tile_efficiency:.0f}"),
    ("wave %", lambda estimate: "-" if estimate.algorithm == "direct" else f"{100 * estimate.wave_efficiency:.0f}"),
    ("FLOP/B", lambda estimate: figures(estimate.arithmetic_intensity)),
    ("time", lambda estimate: clock(estimate.time_us)),
    ("TFLOPS", lambda estimate: figures(estimate.tflops)),
    ("peak %", lambda estimate: f"{100 * estimate.peak_share:.0f}"),
    ("bound", lambda estimate: estimate.bound_by),
)
# In a narrow terminal columns go in this order: what can be worked out from others first; pass, GEMM and time stay.
_DROPPED_FIRST = ("FLOP/B", "split", "tiles", "peak %", "tile %", "waves", "wave %", "bound", "tile")


def render_table(report: Report, style: Style, *, operations: bool = False) -> str:
    """The whole table; the same words with and without colour. `operations`: those between the convolutions too."""
    page = _EstimatePage(report, style)
    if report.layers and len(report.targets) > 1:
        page.side_by_side()
    elif report.layers:
        page.detailed()
    others = operation_lines(report, page) if operations else []
    lines = [*page.lines, *others, *closing_lines(report, page.totals, page)]
    return ink.finished(lines, unicode=style.unicode)


class _EstimatePage(ink.Page):
    def __init__(self, report: Report, style: Style) -> None:
        super().__init__(style, style.table_width)
        self.report = report
        self._bar_width = 11 if self.width < 100 else 19
        self._verdict_width = 18 + self._bar_width
        self.totals = totals_of(report)
        self._several_files = len({entry.layer.path for entry in report.layers}) > 1
        self._path: str | None = None

    def detailed(self) -> None:
        """One GPU: per pass the GEMM, how it is tiled, and what bounds it."""
        label = self.report.targets[0]
        rows = {id(entry): self._pass_rows(entry, label) for entry in self.report.layers}
        every = [cells for group in rows.values() for cells in group]
        titles = ["pass", f"GEMM M{self.glyphs.times}N{self.glyphs.times}K", *(title for title, _ in _COLUMNS)]
        sizes = ink.column_sizes([titles, *every])
        columns, gap = self._fitting(titles, sizes)
        heads = "layer".ljust(self.width - self._verdict_width) + f"{'time':>8}   {'share':>6}"
        self.lines.append(self.paint("faint", heads))
        self._pass_line(titles, sizes, columns, gap, colour="faint")
        for entry in self.report.layers:
            self._file(entry)
            self._layer_line(entry, self._verdict(entry, label, self._bar_width))
            for cells in rows[id(entry)]:
                self._pass_line(cells, sizes, columns, gap)
        left_out = [title for index, title in enumerate(titles) if index not in columns]
        if left_out:
            note = f"columns left out at this width: {', '.join(left_out)}; all of them: a wider terminal, --output csv"
            self.lines += ["", *(self.paint("faint", line) for line in ink.wrap(note, self.width))]

    def _fitting(self, titles: list[str], sizes: list[int]) -> tuple[list[int], int]:
        """Which columns fit, and the gap between them."""
        columns = list(range(len(titles)))
        for dropped in (None, *_DROPPED_FIRST):
            if dropped is not None:
                columns.remove(titles.index(dropped))
            for gap in (2, 1):
                if 2 + sum(sizes[i] for i in columns) + gap * (len(columns) - 1) <= self.width:
                    return columns, gap
        return columns, 1

    def _pass_rows(self, entry: LayerReport, label: str) -> list[list[str]]:
        estimate = entry.estimates.get(label)
        rows = []
        for which in passes_run(entry):
            of_pass = estimate.passes.get(which) if estimate is not None else None
            cells = [cell(of_pass) if of_pass is not None else "-" for _, cell in _COLUMNS]
            rows.append([_pass_name(which, of_pass), product(entry.layer, which, self.glyphs.times), *cells])
        return rows

    def _pass_line(self, row: list[str], sizes: list[int], columns: list[int], gap: int, colour: str = "") -> None:
        cells = [row[i].ljust(sizes[i]) if i < 2 or i == len(row) - 1 else row[i].rjust(sizes[i]) for i in columns]
        line = "  " + (" " * gap).join(cells)
        self.lines.append(self.paint(colour, line.rstrip()) if colour else line)

    def side_by_side(self) -> None:
        """Several GPUs, in bands that fit: of each layer time, grade and share, of each pass time, TFLOPS and bound."""
        block = 25
        passes = [(entry, which) for entry in self.report.layers for which in passes_run(entry)]
        left = max(len(product(entry.layer, which, self.glyphs.times)) + 9 for entry, which in passes)
        left = max(left, 18)
        count = max(1, (self.width - left) // (block + 2))
        targets = self.report.targets
        for start in range(0, len(targets), count):
            self._band(targets[start : start + count], left, block)
            self.lines.append("")
        self.lines.append(self.paint("faint", "tiles and waves: with one --gpu, or --output csv"))

    def _band(self, targets: Sequence[str], left: int, block: int) -> None:
        heads = [ink.shorten(clean(label), block, self.glyphs.more) for label in targets]
        labels = [f"  {self.paint('strong', head)}{' ' * (block - ink.columns(head))}" for head in heads]
        self.lines.append(" " * left + "".join(labels))
        titles = f"  {'time':>8} {'':1} {'share':>6}" + " " * (block - 17)
        self.lines.append(self.paint("faint", ("layer".ljust(left) + titles * len(targets)).rstrip()))
        titles = f"  {'time':>8} {'TFLOPS':>7}  {'bound':<7}"
        self.lines.append(self.paint("faint", ("  pass   GEMM".ljust(left) + titles * len(targets)).rstrip()))
        self._path = None
        for entry in self.report.layers:
            self._file(entry)
            name = self._name(entry.layer, left)
            verdicts = [self._verdict(entry, label, block - 18) for label in targets]
            pad = " " * (left - ink.columns(name))
            self.lines.append(self.paint("strong", name) + pad + "".join(f"  {text}" for text in verdicts))
            for which in passes_run(entry):
                cells = f"  {which:<5}  {product(entry.layer, which, self.glyphs.times)}".ljust(left)
                for label in targets:
                    estimate = entry.estimates.get(label)
                    of_pass = estimate.passes.get(which) if estimate is not None else None
                    time, rate, bound = (
                        "---"
                        if of_pass is None
                        else (clock(of_pass.time_us), figures(of_pass.tflops), of_pass.bound_by)
                    )
                    cells += f"  {time:>8} {rate:>7}  {bound:<7}"
                self.lines.append(cells)

    def _file(self, entry: LayerReport) -> None:
        """A line that names the file, where there are several and it changes."""
        if self._several_files and entry.layer.path != self._path:
            self._path = entry.layer.path
            path = ink.shorten(clean_path(self._path), self.width - 4, self.glyphs.more)
            self.lines.append(self.paint("frame", f"{self.glyphs.line * 2} {path}"))

    def _name(self, layer: ConvLayer, room: int) -> str:
        name = self.shown(layer.name) or "(no name)"
        calls = f" {self.glyphs.times}{layer.calls}" if layer.calls > 1 else ""
        return ink.shorten(name, room - len(calls), self.glyphs.more) + calls

    def _layer_line(self, entry: LayerReport, verdict: str) -> None:
        """Name and shape at the left, as far as there is room, the verdict at the right."""
        room = self.width - self._verdict_width - 2
        name = self._name(entry.layer, room)
        rest = room - ink.columns(name) - 2
        text = words.shape(entry.layer, self.glyphs.times, self.glyphs.arrow)
        text = f"  {ink.shorten(text, rest, self.glyphs.more)}" if rest >= _LEAST_SHAPE else ""
        pad = " " * (room - ink.columns(name) - ink.columns(text) + 2)
        self.lines.append(self.paint("strong", name) + self.paint("faint", text) + pad + verdict)

    def _verdict(self, entry: LayerReport, label: str, room: int) -> str:
        """`2.10 ms C 12.3 % bar`: the time of all calls and passes; the bar's length is relative to the longest one."""
        estimate, times = entry.estimates.get(label), entry.times.get(label)
        if estimate is None or times is None:
            return f"{'-':>8} - {'-':>6} {' ' * room}"
        total = self.totals[label, entry.mode]
        share = 100 * estimate.time_us / total.time_us if total.time_us else 0.0
        percent = f"{share:.{0 if share >= 99.5 else 1}f} %"
        drawn = bar(estimate.time_us / total.longest_us, room, ascii_=self.glyphs.line.isascii())
        grade = self.paint(ink.GRADE_INKS.get(times.grade, "strong"), times.grade)
        padding = " " * (room - len(drawn))
        return f"{clock(estimate.time_us):>8} {grade} {percent:>6} {self.paint('label', drawn)}{padding}"


def bar(share: float, width: int, *, ascii_: bool) -> str:
    """A bar of at most `width` columns; what is more than nothing is never shown as nothing."""
    eighths = max(1, round(share * width * 8))
    if ascii_:
        return "#" * max(1, round(eighths / 8))
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def product(layer: ConvLayer, which: Pass, times: str) -> str:
    """The GEMM as `802816x64x576`, with `96 of` before it where there is one per group; unknown sizes are `-`."""
    dimensions = gemm(layer, which)
    if dimensions is not None:
        sizes: tuple[int | None, ...] = (dimensions.M, dimensions.N, dimensions.K)
    else:
        c, k = (None if size is None else size // max(layer.groups, 1) for size in (layer.C, layer.K))
        taps = _times(layer.T, layer.R, layer.S)
        inputs, outputs = _times(layer.N, layer.D, layer.H, layer.W), _times(layer.N, layer.Z, layer.P, layer.Q)
        sizes = {
            "fprop": (outputs, k, _times(c, taps)),
            "dgrad": (inputs, c, _times(k, taps)),
            "wgrad": (_times(k, taps), c, inputs) if layer.op == "conv_transpose" else (_times(c, taps), k, outputs),
        }[which]
    text = times.join("-" if size is None or size < 1 else str(size) for size in sizes)
    return f"{layer.groups} of {text}" if layer.groups > 1 else text


def _times(*sizes: int | None) -> int | None:
    known = [size for size in sizes if size is not None and size >= 1]
    return prod(known) if len(known) == len(sizes) else None


def _pass_name(which: Pass, estimate: PassEstimate | None) -> str:
    return which if estimate is None or estimate.algorithm == "implicit-gemm" else f"{which} {estimate.algorithm}"
