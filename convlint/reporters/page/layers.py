"""Layers on the page: their table, costs and roofline."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from markupsafe import Markup, escape
from msgspec import Struct

from convlint.files.languages import duration, is_english, plural, say, sentence
from convlint.files.safe import clean
from convlint.gpus.gpu import Gpu, load_gpu
from convlint.model.errors import UsageError
from convlint.model.estimates import PassEstimate, Roof
from convlint.model.layer import PASSES, Mode, Pass
from convlint.model.report import LayerReport, Report
from convlint.reporters.words import place_of, shape

BOUNDS: Mapping[str, str] = {
    "compute": sentence("compute"),
    "memory": sentence("memory"),
    "launch": sentence("launch"),
}
SCRIPTS = ("page.js", "roofline.js")
_SAY_CALL = re.compile(r"""\bsay\(\s*"([^"]+)\"""")


def say_marked_up(english: str, **values: object) -> Markup:
    """A sentence of a template, which may hold tags; what fills it is escaped."""
    return Markup(say(english)).format(**values)


def said_by_scripts() -> dict[str, dict[str, str]]:
    """The translations of the scripts' sentences, for the data of the page; nothing where English is spoken."""
    return (
        {} if is_english() else {"say": {english: say(english) for english in (*script_sentences(), *BOUNDS.values())}}
    )


@cache
def script_sentences() -> tuple[str, ...]:
    """What the scripts say, in English."""
    texts = (files("convlint.reporters.page").joinpath("assets", name).read_text("utf-8") for name in SCRIPTS)
    return tuple(dict.fromkeys(english for text in texts for english in _SAY_CALL.findall(text)))


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


class PageLayer(Struct, frozen=True, kw_only=True):
    """A layer of the page."""

    number: int
    name: str
    what: str
    place: str  # empty where all layers are of one file
    calls: int
    cells: tuple[Cell, ...]
    findings: tuple[int, ...]


def rows(report: Report, findings: Mapping[int, tuple[int, ...]]) -> list[PageLayer]:
    """All layers in network order; `findings` has the numbers of those of each layer."""
    longest = {gpu: max((_time(entry, gpu) for entry in report.layers), default=0.0) for gpu in report.targets}
    totals = {  # a step and a forward pass have no sum
        (gpu, mode): sum(_time(entry, gpu) for entry in report.layers if entry.mode == mode)
        for gpu in report.targets
        for mode in {entry.mode for entry in report.layers}
    }
    names = names_of(report)
    files = len({entry.layer.path for entry in report.layers}) > 1
    return [
        PageLayer(
            number=number,
            name=names[number],
            what=clean(shape(entry.layer, "×", "→")),
            place=place_of(entry.layer.locate()) if files else "",
            calls=entry.layer.calls,
            cells=tuple(_cell(entry, gpu, longest[gpu], totals[gpu, entry.mode]) for gpu in report.targets),
            findings=findings.get(number, ()),
        )
        for number, entry in enumerate(report.layers)
    ]


def names_of(report: Report) -> list[str]:
    """What each layer is called on the page: with its model where there are several."""
    several_models = len({entry.layer.model for entry in report.layers}) > 1
    return [
        say("{layer} of {model}", layer=clean(entry.layer.name) or say("(no name)"), model=clean(entry.layer.model))
        if several_models
        else clean(entry.layer.name) or say("(no name)")
        for entry in report.layers
    ]


def passes_run(entry: LayerReport, gpu: str) -> Iterator[tuple[Pass, PassEstimate]]:
    """The passes of a layer on a target, in the order in which they run."""
    estimate = entry.estimates.get(gpu)
    if estimate is not None:
        yield from ((which, estimate.passes[which]) for which in PASSES if which in estimate.passes)


def _time(entry: LayerReport, gpu: str) -> float:
    times = entry.times.get(gpu)
    return 0.0 if times is None else times.time_us


def _cell(entry: LayerReport, gpu: str, longest: float, total: float) -> Cell:
    times = entry.times.get(gpu)
    if times is None or entry.estimates.get(gpu) is None:
        lacking = entry.lacking.get(gpu, "")
        return Cell(gpu=clean(gpu), says=clean(say(lacking)) if lacking else say("time unknown"))
    bars = tuple(_bars(entry, gpu, longest))
    beside = " ".join(bar.letter for bar in bars) if any(bar.width < _LETTERED for bar in bars) else ""
    share = f"{100 * times.time_us / total:.1f} %" if total else ""
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
    for which, estimate in passes_run(entry, gpu):
        time_us = estimate.time_us * entry.layer.calls
        width = max(BAR * time_us / longest if longest else 0.0, _LEAST)
        says = say(
            "{which} {time}, bound by {bound}, {algorithm}, {intensity:.3g} FLOP/B, {speed:.3g} TFLOPS",
            which=which,
            time=duration(time_us),
            bound=say(BOUNDS[estimate.bound_by]),
            algorithm=estimate.algorithm,
            intensity=estimate.arithmetic_intensity,
            speed=estimate.tflops,
        )
        yield PassBar(which=which, bound=estimate.bound_by, x=round(x, 2), width=round(width, 2), says=says,
                      letter=LETTERS[which])  # fmt: skip
        x += width + _GAP


_DEAREST = 3  # layers at the top


class Costs(Struct, frozen=True, kw_only=True):
    """What costs most of the layers of one mode on one target; shares are of the known times."""

    dearest: tuple[tuple[int, str], ...]  # numbers of the layers that cost most, and their shares
    bounds: tuple[tuple[str, str], ...]  # what bounds it, and the share of the time
    known: str  # `57 of 60 layers`, where the time of some is unknown
    together: str  # the time of those that are known; empty where none is


def costs(report: Report, gpu: str, mode: Mode) -> Costs:
    """The costs of the layers of one mode on one target."""
    own = [number for number, entry in enumerate(report.layers) if entry.mode == mode]
    times = {number: known.time_us for number in own if (known := report.layers[number].times.get(gpu)) is not None}
    total = sum(times.values())
    longest = heapq.nlargest(_DEAREST, times, key=lambda number: (times[number], -number)) if total else []
    return Costs(
        dearest=tuple((number, _percent(times[number], total)) for number in longest),
        bounds=_bounds(report, gpu, list(times)),
        known=""
        if len(times) == len(own)
        else say("{count:,} of {layers}", count=len(times), layers=plural(len(own), "layer")),
        together=duration(total) if times else "",
    )


def _bounds(report: Report, gpu: str, numbers: Sequence[int]) -> tuple[tuple[str, str], ...]:
    by_bound: dict[str, float] = {}
    for number in numbers:
        entry = report.layers[number]
        for _, estimate in passes_run(entry, gpu):
            by_bound[estimate.bound_by] = by_bound.get(estimate.bound_by, 0.0) + estimate.time_us * entry.layer.calls
    total = sum(by_bound.values())
    largest = sorted(by_bound.items(), key=lambda item: -item[1])
    return tuple((bound, _percent(time_us, total)) for bound, time_us in largest if time_us > 0)


def _percent(part: float, total: float) -> str:
    share = 100 * part / total
    return f"{share:.0f} %" if share >= 0.95 else say("under 1 %")


MOST_POINTS = 6_000  # of one target; of more, those that take longest

_Point = tuple[int, str, float, float, float, str, str]  # layer, pass, FLOP/B, TFLOPS, us, bound, algorithm


def chart(report: Report) -> dict[str, Any]:
    """The numbers for the script, each target with its points and ceilings."""
    return {
        "names": names_of(report),
        "targets": [_target(report, gpu) for gpu in report.targets],
    }


def _target(report: Report, label: str) -> dict[str, Any]:
    gpu = known_gpu(label)
    points = list(_points(report, label))
    shown = heapq.nlargest(MOST_POINTS, points, key=lambda point: point[4])
    roofs = list(dict.fromkeys(estimate.roof for entry in report.layers for _, estimate in passes_run(entry, label)))
    return {
        "label": clean(label),
        "name": clean(label) if gpu is None else gpu.name,
        "bandwidth": round(roofs[0].bandwidth / 1e9, 1) if roofs else None,
        "reached": round(roofs[0].reached_bandwidth / 1e9, 1) if roofs else None,
        "ceilings": [[_unit(roof), round(roof.peak / 1e12, 3), round(roof.reached / 1e12, 3)] for roof in roofs],
        "points": [list(point) for point in shown],
        "left": len(points) - len(shown),
    }


def known_gpu(label: str) -> Gpu | None:
    """The GPU of a target; None of one that is not known here, as in a report that was made elsewhere."""
    try:
        return load_gpu(label)
    except UsageError:
        return None


def _points(report: Report, gpu: str) -> Iterator[_Point]:
    for number, entry in enumerate(report.layers):
        for which, estimate in passes_run(entry, gpu):
            if estimate.time_us > 0 and estimate.flops > 0 and estimate.bytes > 0:
                time_us = round(estimate.time_us * entry.layer.calls, 3)
                yield (number, which, round(estimate.arithmetic_intensity, 3), round(estimate.tflops, 4), time_us,
                       estimate.bound_by, estimate.algorithm)  # fmt: skip


def _unit(roof: Roof) -> str:
    """`fp16 Tensor Cores`, with what is summed in where that has a rate of its own."""
    units = say("Tensor Cores") if roof.tensor_cores else say("CUDA cores")
    return f"{roof.dtype.value} {units}{say(', fp16 sums') if roof.fp16_sums else ''}"
