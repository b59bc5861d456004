"""Estimates for people: each layer with its share of the time, and its passes as rows; GPUs side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from convlint.cli.commands.estimate_csv import passes_run
from convlint.cli.commands.estimate_totals import clock, closing_lines, figures, totals_of
from convlint.estimate import PassEstimate
from convlint.files.safe import ascii_only, clean, clean_path
from convlint.model.gemm import gemm
from convlint.model.layer import ConvLayer, Pass
from convlint.model.report import LayerReport, Report
from convlint.reporters import Style
from convlint.reporters.ink import ASCII, GRADE_INKS, UNICODE, columns, painter, shorten, wrap
from convlint.reporters.words import shape

_NARROW, _WIDE = 60, 120
_LEAST_SHAPE = 20  # columns below which a layer is not described
_EIGHTHS = " ▏▎▍▌▋▊▉█"

# Title and cell, in the order of the table.
_Cell = Callable[[PassEstimate], str]
_COLUMNS: tuple[tuple[str, _Cell], ...] = (
    ("tile", lambda one: "-" if one.algorithm == "direct" else f"{one.tile[0]}x{one.tile[1]}"),
    ("split", lambda one: "-" if one.algorithm == "direct" else str(one.split_k)),
    ("tiles", lambda one: "-" if one.algorithm == "direct" else str(one.tiles)),
    ("waves", lambda one: "-" if one.algorithm == "direct" else figures(one.waves)),
    ("tile %", lambda one: "-" if one.algorithm == "direct" else f"{100 * one.tile_efficiency:.0f}"),
    ("wave %", lambda one: "-" if one.algorithm == "direct" else f"{100 * one.wave_efficiency:.0f}"),
    ("FLOP/B", lambda one: figures(one.arithmetic_intensity)),
    ("time", lambda one: clock(one.time_us)),
    ("TFLOPS", lambda one: figures(one.tflops)),
    ("peak %", lambda one: f"{100 * one.peak_share:.0f}"),
    ("bound", lambda one: one.bound_by),
)
_DROPPED_FIRST = ("FLOP/B", "split", "tiles", "peak %", "tile %", "waves", "wave %", "bound", "tile")


def render(report: Report, style: Style) -> str:
    """The whole table; the same words with and without colour."""
    page = _Page(report, style)
    if report.layers:
        if len(report.targets) > 1:
            page.side_by_side()
        else:
            page.detailed()
    lines = [*page.lines, *closing_lines(report, page.totals, page.paint, page.glyphs, page.width)]
    text = "\n".join(line.rstrip() for line in lines)
    return text if style.unicode else ascii_only(text)


class _Page:
    """The lines written so far, and how the terminal wants them."""

    def __init__(self, report: Report, style: Style) -> None:
        self.report = report
        self.paint = painter(style.color)
        self.glyphs = UNICODE if style.unicode else ASCII
        self.width = min(max(style.width, _NARROW), _WIDE)
        self.lines: list[str] = []
        self.totals = totals_of(report)
        self._several_files = len({entry.layer.path for entry in report.layers}) > 1
        self._path: str | None = None

    def detailed(self) -> None:
        """One GPU: per pass the GEMM, how it is tiled, and what bounds it."""
        label = self.report.targets[0]
        rows = {id(entry): self._pass_rows(entry, label) for entry in self.report.layers}
        every = [row for group in rows.values() for row in group]
        titles = ["pass", f"GEMM M{self.glyphs.times}N{self.glyphs.times}K", *(title for title, _ in _COLUMNS)]
        sizes = [max(len(cell) for cell in column) for column in zip(titles, *every, strict=True)]
        kept, gap = self._fitting(titles, sizes)
        heads = "layer".ljust(self.width - self._verdict_width) + f"{'time':>8}   {'share':>6}"
        self.lines.append(self.paint("faint", heads))
        self._pass_line(titles, sizes, kept, gap, ink="faint")
        for entry in self.report.layers:
            self._file(entry)
            self._layer_line(entry, self._verdict(entry, label, self._bar_width))
            for row in rows[id(entry)]:
                self._pass_line(row, sizes, kept, gap)
        left_out = [title for index, title in enumerate(titles) if index not in kept]
        if left_out:
            note = f"columns left out at this width: {', '.join(left_out)}; all of them: a wider terminal, --output csv"
            self.lines += ["", *(self.paint("faint", line) for line in wrap(note, self.width))]

    def _fitting(self, titles: list[str], sizes: list[int]) -> tuple[list[int], int]:
        """Which columns fit, and the gap between them."""
        kept = list(range(len(titles)))
        for dropped in (None, *_DROPPED_FIRST):
            if dropped is not None:
                kept.remove(titles.index(dropped))
            for gap in (2, 1):
                if 2 + sum(sizes[i] for i in kept) + gap * (len(kept) - 1) <= self.width:
                    return kept, gap
        return kept, 1

    def _pass_rows(self, entry: LayerReport, label: str) -> list[list[str]]:
        estimate = entry.estimates.get(label)
        rows = []
        for which in passes_run(entry):
            one = estimate.passes.get(which) if estimate is not None else None
            cells = [cell(one) if one is not None else "-" for _, cell in _COLUMNS]
            rows.append([_pass_name(which, one), product(entry.layer, which, self.glyphs.times), *cells])
        return rows

    def _pass_line(self, row: list[str], sizes: list[int], kept: list[int], gap: int, ink: str = "") -> None:
        cells = [row[i].ljust(sizes[i]) if i < 2 or i == len(row) - 1 else row[i].rjust(sizes[i]) for i in kept]
        line = "  " + (" " * gap).join(cells)
        self.lines.append(self.paint(ink, line.rstrip()) if ink else line)

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
            if start + count < len(targets):
                self.lines.append("")
        note = "tiles and waves: with one --gpu, or --output csv"
        self.lines += ["", self.paint("faint", note)]

    def _band(self, targets: Sequence[str], left: int, block: int) -> None:
        heads = [shorten(clean(label), block, self.glyphs.more) for label in targets]
        named = [f"  {self.paint('strong', head)}{' ' * (block - columns(head))}" for head in heads]
        self.lines.append(" " * left + "".join(named))
        titles = f"  {'time':>8} {'':1} {'share':>6}" + " " * (block - 17)
        self.lines.append(self.paint("faint", "layer".ljust(left) + titles * len(targets)))
        titles = f"  {'time':>8} {'TFLOPS':>7}  {'bound':<7}"
        self.lines.append(self.paint("faint", "  pass   GEMM".ljust(left) + titles * len(targets)))
        self._path = None
        for entry in self.report.layers:
            self._file(entry)
            name = self._name(entry.layer, left)
            verdicts = [self._verdict(entry, label, block - 18) for label in targets]
            pad = " " * (left - columns(name))
            self.lines.append(self.paint("strong", name) + pad + "".join(f"  {text}" for text in verdicts))
            for which in passes_run(entry):
                cells = f"  {which:<5}  {product(entry.layer, which, self.glyphs.times)}".ljust(left)
                for label in targets:
                    estimate = entry.estimates.get(label)
                    one = estimate.passes.get(which) if estimate is not None else None
                    time, rate, bound = (
                        "---" if one is None else (clock(one.time_us), figures(one.tflops), one.bound_by)
                    )
                    cells += f"  {time:>8} {rate:>7}  {bound:<7}"
                self.lines.append(cells)

    def _file(self, entry: LayerReport) -> None:
        """A line that names the file, where there are several and it changes."""
        if self._several_files and entry.layer.path != self._path:
            self._path = entry.layer.path
            path = shorten(clean_path(self._path), self.width - 4, self.glyphs.more)
            self.lines.append(self.paint("frame", f"{self.glyphs.line * 2} {path}"))

    def _name(self, layer: ConvLayer, room: int) -> str:
        name = clean(layer.name) or "(no name)"
        if self.glyphs.line.isascii():
            name = ascii_only(name)
        calls = f" {self.glyphs.times}{layer.calls}" if layer.calls > 1 else ""
        return shorten(name, room - len(calls), self.glyphs.more) + calls

    def _layer_line(self, entry: LayerReport, verdict: str) -> None:
        """Name and shape at the left, as far as there is room, the verdict at the right."""
        room = self.width - self._verdict_width - 2
        name = self._name(entry.layer, room)
        words = shape(entry.layer, self.glyphs.times, self.glyphs.arrow)
        rest = room - columns(name) - 2
        words = f"  {shorten(words, rest, self.glyphs.more)}" if rest >= _LEAST_SHAPE else ""
        pad = " " * (room - columns(name) - columns(words) + 2)
        self.lines.append(self.paint("strong", name) + self.paint("faint", words) + pad + verdict)

    @property
    def _verdict_width(self) -> int:
        return 18 + self._bar_width

    @property
    def _bar_width(self) -> int:
        return 11 if self.width < 100 else 19

    def _verdict(self, entry: LayerReport, label: str, room: int) -> str:
        """`2.10 ms C 12.3 % bar`: the time of all calls and passes; the bar's length is relative to the longest one."""
        estimate, times = entry.estimates.get(label), entry.times.get(label)
        if estimate is None or times is None:
            return f"{'-':>8} - {'-':>6} {' ' * room}"
        total = self.totals[label, entry.mode]
        share = 100 * estimate.time_us / total.time_us if total.time_us else 0.0
        percent = f"{share:.{0 if share >= 99.5 else 1}f} %"
        drawn = bar(estimate.time_us / total.longest_us, room, ascii_=self.glyphs.line.isascii())
        grade = self.paint(GRADE_INKS.get(times.grade, "strong"), times.grade)
        padding = " " * (room - len(drawn))
        return f"{clock(estimate.time_us):>8} {grade} {percent:>6} {self.paint('label', drawn)}{padding}"


def bar(share: float, width: int, *, ascii_: bool) -> str:
    """A bar of at most `width` columns; what is more than nothing is never shown as nothing."""
    eighths = max(1, round(share * width * 8))
    if ascii_:
        return "#" * max(1, round(eighths / 8))
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def product(layer: ConvLayer, which: Pass, times: str) -> str:
    """The GEMM as `802816x64x576`, with `96 of` before it where there is one per group; no size is `-`."""
    whole = gemm(layer, which)
    if whole is not None:
        sizes: tuple[int | None, ...] = (whole.M, whole.N, whole.K)
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
    result = 1
    for size in sizes:
        if size is None:
            return None
        result *= size
    return result


def _pass_name(which: Pass, one: PassEstimate | None) -> str:
    return which if one is None or one.algorithm == "implicit-gemm" else f"{which} {one.algorithm}"
