"""One parameter of a layer varied: its values, and what each pass is predicted to take at every one of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from convlint.errors import InputFault, UsageError
from convlint.estimate import PassEstimate, compute_dtype, estimate_pass
from convlint.gpus.frameworks import lack_of
from convlint.gpus.gpu import Gpu
from convlint.model.layer import PASSES, ConvLayer, Mode, Pass, with_output
from convlint.model.runtime import Runtime

Metric = Literal["time", "tflops", "efficiency"]
METRICS: tuple[Metric, ...] = ("time", "tflops", "efficiency")

MOST_POINTS = 10_000
LARGEST_VALUE = 2**31

# What may vary -> the fields of a layer that it sets. Stride and dilation are the same along both axes.
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    **{letter: (letter,) for letter in ("N", "C", "H", "W", "K", "R", "S", "D", "T")},
    "stride": ("U", "V"),
    "dilation": ("DilH", "DilW"),
    "groups": ("groups",),
}
_IN_3D: Mapping[str, str] = {"stride": "StrideD", "dilation": "DilD"}

_RANGE = re.compile(r"\s*([^:]*?)\s*:\s*([^:]*?)\s*(?::\s*([^:]*?)\s*)?")
_INTEGER = re.compile(r"[+-]?[0-9]{1,12}")


def varies(text: str) -> bool:
    """Whether the text of an option gives several values: a range or a list."""
    return ":" in text or "," in text


def parse_values(option: str, text: str) -> tuple[int, ...]:
    """`1:256`, `64:1024:64` (both ends included, as far as the step meets the last) or `1,2,4,8`, in the order given.

    Raises UsageError for what is none of these, for values below 1, START > STOP, and more than 10,000 points.
    """
    match = _RANGE.fullmatch(text)
    if match is None:
        if ":" in text:
            raise UsageError(f"{option}: {_short(text)} is not START:STOP or START:STOP:STEP")
        parts = text.split(",")
        _few_enough(option, len(parts))
        return tuple(dict.fromkeys(_positive(option, part.strip()) for part in parts))
    start, stop = _positive(option, match[1]), _positive(option, match[2])
    step = _positive(option, match[3], "the step ") if match[3] is not None else 1
    if start > stop:
        raise UsageError(f"{option}: {start}:{stop} is empty: START is greater than STOP; did you mean {stop}:{start}?")
    _few_enough(option, (stop - start) // step + 1)
    return tuple(range(start, stop + 1, step))


def _few_enough(option: str, count: int) -> None:
    if count > MOST_POINTS:
        raise UsageError(f"{option}: {count} points are more than {MOST_POINTS}; use a larger step: START:STOP:STEP")


def _positive(option: str, text: str, what: str = "") -> int:
    if not _INTEGER.fullmatch(text):
        raise UsageError(f"{option}: {what}{_short(text)} is not a whole number")
    value = int(text)
    if not 1 <= value <= LARGEST_VALUE:
        raise UsageError(f"{option}: {what}{_short(text)} is not between 1 and {LARGEST_VALUE}")
    return value


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "...")


def geometric(values: Sequence[int]) -> bool:
    """Whether the values are spread as on a logarithmic axis: at least 4, each 1.4 to 4 times the one before."""
    pairs = list(pairwise(values))
    return len(values) >= 4 and all(1.4 * low <= high <= 4 * low for low, high in pairs)


class Point(Struct, frozen=True, kw_only=True):
    """One value of the varied parameter; `estimate` is None where no time can be predicted, for the `reason`."""

    x: int
    layer: ConvLayer | None
    estimate: PassEstimate | None
    peak_flops: float | None = None  # FLOP/s of the GPU for the dtype that multiplies, Tensor Cores where it has them
    reason: str = ""

    def value(self, metric: Metric) -> float | None:
        """Time in us, TFLOPS, or the share (0 to 1) of the GPU's dense peak; None where unknown."""
        if self.estimate is None:
            return None
        if metric == "time":
            return self.estimate.time_us
        if metric == "tflops":
            return self.estimate.tflops
        return self.estimate.tflops * 1e12 / self.peak_flops if self.peak_flops else None


class Series(Struct, frozen=True, kw_only=True):
    """One line: a pass of a layer on a GPU over all values. `marks` draws points without a line between them."""

    label: str
    gpu: str
    which: Pass
    points: tuple[Point, ...]
    marks: bool = False


class Sweep(Struct, frozen=True, kw_only=True):
    """All lines of one sweep, and the words around them."""

    title: str
    setting: str  # what stays the same
    parameter: str
    x_label: str
    series: tuple[Series, ...]
    notes: tuple[str, ...] = ()
    metric: Metric = "tflops"
    log_x: bool = False

    @property
    def reasons(self) -> dict[str, list[int]]:
        """Why points have no time -> the values at which."""
        found: dict[str, dict[int, None]] = {}
        for series in self.series:
            for point in series.points:
                if point.estimate is None:
                    found.setdefault(point.reason, {})[point.x] = None
        return {reason: list(values) for reason, values in found.items()}


def vary(layer: ConvLayer, parameter: str, value: int) -> ConvLayer:
    """The layer with one parameter changed, all padding as it was, and its output computed anew.

    Raises UsageError where the layer has no such parameter.
    """
    fields = dict.fromkeys(PARAMETERS[parameter], value)
    if layer.dims == 3 and parameter in _IN_3D:
        fields[_IN_3D[parameter]] = value
    if layer.dims < 3 and parameter in ("D", "T"):
        raise UsageError(f"{parameter} varies in 3-D layers only; {layer.name} has {layer.dims} dimensions")
    if layer.dims == 1:
        fields = {field: size for field, size in fields.items() if field not in ("H", "R", "U", "DilH")}
        if not fields:
            raise UsageError(f"{parameter} is 1 in a 1-D layer; vary W or S")
    changed: dict[str, int | None] = {**fields, "declared_P": None, "declared_Q": None, "declared_Z": None}
    return with_output(replace(layer, **changed))


def unknown_time(layer: ConvLayer, gpu: Gpu) -> str:
    """Why no time can be predicted for this layer on this GPU, in words."""
    letters = ("N", "C", "H", "W", "K", "R", "S", *(("D", "T") if layer.dims == 3 else ()))
    missing = [letter for letter in letters if getattr(layer, letter) is None]
    if not missing:
        missing = [letter for letter in ("P", "Q", "Z") if getattr(layer, letter) is None]
    if layer.dtype is None:
        missing.append("dtype")
    if missing:
        return f"{', '.join(missing)} unknown"
    if layer.groups < 1 or (layer.C or 0) % layer.groups or (layer.K or 0) % layer.groups:
        return f"C={layer.C} and K={layer.K} are not both divisible by groups={layer.groups}"
    outputs = [f"{letter}={size}" for letter in ("Z", "P", "Q") if (size := getattr(layer, letter)) < 1]
    if outputs:
        return f"no output: {', '.join(outputs)}; the filter exceeds the padded input"
    return f"{gpu.name} has no unit for {layer.dtype}"


def peak_flops(layer: ConvLayer, gpu: Gpu, runtime: Runtime) -> float | None:
    """The GPU's dense peak, in FLOP/s, for the dtype that multiplies: the better of Tensor Cores and CUDA cores."""
    if layer.dtype is None:
        return None
    dtype = compute_dtype(layer.dtype, gpu, runtime)
    half = runtime.framework == "tensorrt"
    peaks = [gpu.peak(dtype, tensor=tensor, fp16_accumulate=half) for tensor in (True, False)]
    return max((peak for peak in peaks if peak is not None), default=None)


def series(
    label: str,
    which: Pass,
    values: Sequence[int],
    layer_at: Callable[[int], ConvLayer],
    target: tuple[str, Gpu],
    runtime: Runtime,
    *,
    marks: bool = False,
) -> Series:
    """One pass of `layer_at(value)` for each value; an InputFault or UsageError of a value is its point's reason."""
    name, gpu = target
    points = []
    for value in values:
        try:
            layer = layer_at(value)
        except (InputFault, UsageError) as error:
            points.append(Point(x=value, layer=None, estimate=None, reason=str(error)))
            continue
        lack = lack_of(runtime, layer.dtype, "inference" if which == "fprop" else "training", gpu)
        estimate = None if lack is not None else estimate_pass(layer, which, gpu, runtime)
        points.append(
            Point(
                x=value,
                layer=layer,
                estimate=estimate,
                peak_flops=peak_flops(layer, gpu, runtime),
                reason="" if estimate is not None else lack.says if lack is not None else unknown_time(layer, gpu),
            )
        )
    return Series(label=label, gpu=name, which=which, points=tuple(points), marks=marks)


def passes_of(layers: Sequence[ConvLayer], mode: Mode) -> tuple[Pass, ...]:
    """The passes that `mode` runs on any of these layers: no dgrad where each is the network's first."""
    if mode == "inference":
        return ("fprop",)
    first = all(layer.first for layer in layers) and bool(layers)
    return tuple(which for which in PASSES if not (first and which == "dgrad"))
