"""The layers of the page: on each target their time, their grade, and a bar for each pass, to one scale."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from markupsafe import Markup, escape
from msgspec import Struct

from convlint.estimate import PassEstimate
from convlint.files.languages.saying import say
from convlint.files.safe import clean
from convlint.model.layer import PASSES, Mode, Pass
from convlint.report import LayerReport, Report
from convlint.reporters.page.words import BOUNDS
from convlint.reporters.shape import shape
from convlint.reporters.words import duration, place_of

LETTERS: dict[Pass, str] = {"fprop": "f", "dgrad": "d", "wgrad": "w"}
BAR = 90.0  # percent of the drawing's width: the longest layer of the target; the rest is for letters beside it
_GAP = 0.6  # between passes
_LEAST = 0.3  # of a pass, so that it is seen
_LETTERED = 6.0  # of a pass that has room for its letter


class PassBar(Struct, frozen=True, kw_only=True):
    """A pass as a part of its layer's bar; `x` and `width` in percent of the drawing."""

    which: Pass
    bound: str
    x: float
    width: float
    says: str
    letter: str


class Cell(Struct, frozen=True, kw_only=True):
    """A layer on one target; no `time` where it cannot be predicted."""

    gpu: str
    time: str = ""
    time_us: float = 0.0
    share: str = ""
    grade: str = ""
    bars: tuple[PassBar, ...] = ()
    beside: str = ""  # the letters of all passes, where one of them has no room for its own
    drawn: Markup = Markup()  # the shapes of the bar
    says: str = ""


class Row(Struct, frozen=True, kw_only=True):
    """A layer of the page."""

    number: int
    name: str
    what: str
    place: str  # empty where all layers are of one file
    calls: int
    cells: tuple[Cell, ...]
    findings: tuple[int, ...]


def rows(report: Report, findings: Mapping[int, tuple[int, ...]]) -> list[Row]:
    """All layers in network order; `findings` has the numbers of those of each layer."""
    longest = {gpu: _longest(report, gpu) for gpu in report.targets}
    modes = {entry.mode for entry in report.layers}
    whole = {(gpu, mode): _whole(report, gpu, mode) for gpu in report.targets for mode in modes}
    names = names_of(report)
    files = len({entry.layer.path for entry in report.layers}) > 1
    found = []
    for number, entry in enumerate(report.layers):
        layer = entry.layer
        found.append(
            Row(
                number=number,
                name=names[number],
                what=clean(shape(layer, "×", "→")),
                place=place_of(layer.locate()) if files else "",
                calls=layer.calls,
                cells=tuple(_cell(entry, gpu, longest[gpu], whole[gpu, entry.mode]) for gpu in report.targets),
                findings=findings.get(number, ()),
            )
        )
    return found


def names_of(report: Report) -> list[str]:
    """What each layer is called on the page: with its model where there are several."""
    several = len({entry.layer.model for entry in report.layers}) > 1
    return [
        say("{layer} of {model}", layer=clean(entry.layer.name) or say("(no name)"), model=clean(entry.layer.model))
        if several
        else clean(entry.layer.name) or say("(no name)")
        for entry in report.layers
    ]


def passes_run(entry: LayerReport, gpu: str) -> Iterator[tuple[Pass, PassEstimate]]:
    """The passes of a layer on a target, in the order in which they run."""
    estimate = entry.estimates.get(gpu)
    if estimate is not None:
        yield from ((which, estimate.passes[which]) for which in PASSES if which in estimate.passes)


def _longest(report: Report, gpu: str) -> float:
    return max((_time(entry, gpu) for entry in report.layers), default=0.0)


def _whole(report: Report, gpu: str, mode: Mode) -> float:
    """The time of all layers of one mode: a step and a forward pass have no sum."""
    return sum(_time(entry, gpu) for entry in report.layers if entry.mode == mode)


def _time(entry: LayerReport, gpu: str) -> float:
    times = entry.times.get(gpu)
    return 0.0 if times is None else times.time_us


def _cell(entry: LayerReport, gpu: str, longest: float, whole: float) -> Cell:
    times = entry.times.get(gpu)
    if times is None or entry.estimates.get(gpu) is None:
        lacking = entry.lacking.get(gpu, "")
        return Cell(gpu=clean(gpu), says=clean(say(lacking)) if lacking else say("time unknown"))
    bars = tuple(_bars(entry, gpu, longest))
    beside = " ".join(bar.letter for bar in bars) if any(bar.width < _LETTERED for bar in bars) else ""
    share = f"{100 * times.time_us / whole:.1f} %" if whole else ""
    says = say(
        "{time}, grade {grade}: {passes}",
        time=duration(times.time_us),
        grade=times.grade,
        passes=say("; ").join(bar.says for bar in bars),
    )
    return Cell(
        gpu=clean(gpu), time=duration(times.time_us), time_us=round(times.time_us, 3), share=share, grade=times.grade,
        bars=bars, beside=beside, drawn=_drawn(bars, beside), says=says,
    )  # fmt: skip


def _drawn(bars: tuple[PassBar, ...], beside: str) -> Markup:
    """The parts of a bar, each with its letter, or all letters at its end; the template would take far longer."""
    shapes = []
    for bar in bars:
        place = f'class="{bar.bound}" x="{bar.x}%"'
        shapes.append(f'<rect {place} width="{bar.width}%" height="16"><title>{escape(bar.says)}</title></rect>')
        if not beside:
            shapes.append(f'<text {place} dx="3" y="12">{bar.letter}</text>')
    if beside:
        shapes.append(f'<text x="{round(bars[-1].x + bars[-1].width, 2)}%" dx="4" y="12">{beside}</text>')
    return Markup("".join(shapes))


def _bars(entry: LayerReport, gpu: str, longest: float) -> Iterator[PassBar]:
    x = 0.0
    for which, one in passes_run(entry, gpu):
        time_us = one.time_us * entry.layer.calls
        width = max(BAR * time_us / longest if longest else 0.0, _LEAST)
        says = say(
            "{which} {time}, bound by {bound}, {algorithm}, {intensity:.3g} FLOP/B, {speed:.3g} TFLOPS",
            which=which,
            time=duration(time_us),
            bound=say(BOUNDS[one.bound_by]),
            algorithm=one.algorithm,
            intensity=one.arithmetic_intensity,
            speed=one.tflops,
        )
        yield PassBar(which=which, bound=one.bound_by, x=round(x, 2), width=round(width, 2), says=says,
                      letter=LETTERS[which])  # fmt: skip
        x += width + _GAP
