"""Sweeps of one parameter of a layer: values, points with their times, ticks of an axis, the guide's figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from convlint.estimate import compute_dtype, estimate_pass
from convlint.estimate.board import cuda_core_peak, tensor_peak
from convlint.gpus.gpu import Gpu, load_gpu
from convlint.gpus.support import lack_of
from convlint.model.errors import InputFault, UsageError
from convlint.model.estimates import PassEstimate
from convlint.model.layer import PASSES, ConvLayer, Dtype, Layout, Mode, Pass, same_padding, with_output
from convlint.model.runtime import Runtime, Version


def ticks(values: Sequence[int], most: int) -> tuple[int, ...]:
    """At most `most` of the values, which ascend: all, or multiples of a power of 2, or every n-th and the last.

    Multiples of powers of 2 come first, since these are the sizes that matter; every tick is a value that was swept.
    """
    if len(values) <= most:
        return tuple(values)
    step = 2
    while len(multiples := [value for value in values if value % step == 0]) > most:
        step *= 2
    spread = {later - earlier for earlier, later in pairwise(multiples)}
    if len(multiples) >= 3 and len(spread) == 1:
        return tuple(multiples)
    every = -(-(len(values) - 1) // (most - 1))
    result = list(values[::every])
    if result[-1] != values[-1]:
        if len(values) - 1 - values.index(result[-1]) < every / 2:
            result.pop()
        result.append(values[-1])
    return tuple(result)


Metric = Literal["time", "tflops", "efficiency"]
METRICS: tuple[Metric, ...] = ("time", "tflops", "efficiency")

MOST_POINTS = 10_000  # of one sweep: about a second, and more than a chart can show
LARGEST_VALUE = 2**31  # of any size, as in specs

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
    log_x: bool = False

    @property
    def reasons(self) -> dict[str, list[int]]:
        """Reason why points have no time -> the values of these points."""
        values_of: dict[str, dict[int, None]] = {}
        for series in self.series:
            for point in series.points:
                if point.estimate is None:
                    values_of.setdefault(point.reason, {})[point.x] = None
        return {reason: list(values) for reason, values in values_of.items()}


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
    if layer.dtype == Dtype.fp64:  # which every GPU has, at a rate that no source tells for some
        return f"the fp64 peak of {gpu.name} is not known"
    return f"{gpu.name} has no unit for {layer.dtype}"


def peak_flops(layer: ConvLayer, gpu: Gpu, runtime: Runtime) -> float | None:
    """The GPU's dense peak, in FLOP/s, for the dtype that multiplies: the better of Tensor Cores and CUDA cores."""
    if layer.dtype is None:
        return None
    dtype = compute_dtype(layer.dtype, gpu, runtime)
    engine = runtime.framework == "tensorrt"
    peaks = tensor_peak(gpu, dtype, fp16_accumulate=engine), cuda_core_peak(gpu, dtype, tensorrt=engine)
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


GUIDE: Final = "NVIDIA Optimizing Convolutional Layers"
GPU: Final = "a100-80gb-sxm"
RUNTIME: Final = Runtime(cuda=Version("11.2"), cudnn=Version("8.1"))

Sizes = Mapping[str, int]
_POWERS: Final = tuple(2**i for i in range(12))  # 1 to 2048


class Line(Struct, frozen=True, kw_only=True):
    """One line of a figure: a pass, and the sizes in which it differs from the figure's others."""

    label: str
    which: Pass
    sizes: Sizes = field(default_factory=dict)
    layout: Layout = "NHWC"
    marks: bool = False


class Figure(Struct, frozen=True, kw_only=True):
    """One figure. `PQ` sets P = Q, from which H and W follow; `RS` sets R = S; vary `NPQ` sets N = NPQ / (P·Q)."""

    number: int
    title: str
    section: str
    given: str  # what the guide states about the setting
    chosen: str  # what we had to choose
    vary: str
    x_label: str
    values: tuple[int, ...]
    sizes: Sizes
    lines: tuple[Line, ...]
    first: bool = False


def _filters(which: Pass) -> tuple[Line, ...]:
    return tuple(Line(label=f"{size}x{size} filter", which=which, sizes={"RS": size}) for size in (7, 5, 3, 1))


def _strides(*passes: Pass) -> tuple[Line, ...]:
    return tuple(
        Line(label=f"{which}, P=Q={size}", which=which, sizes={"PQ": size}) for which in passes for size in (56, 28)
    )


_PASSES: Final = tuple(Line(label=which, which=which) for which in ("fprop", "dgrad", "wgrad"))

FIGURES: Final = {
    figure.number: figure
    for figure in (
        Figure(
            number=2,
            title="NHWC needs no transposes, NCHW does",
            section="4.1 Tensor Layouts In Memory: NCHW vs NHWC",
            given="NHWC against NCHW; transposes weigh more with smaller filters",
            chosen="forward pass, N=256, H=W=28, K=256, the values of C, filters 1x1 and 3x3",
            vary="C",
            x_label="C, input channels",
            values=_POWERS[5:12],
            sizes={"N": 256, "PQ": 28, "K": 256},
            lines=tuple(
                Line(label=f"{layout} {taps}x{taps}", which="fprop", sizes={"RS": taps}, layout=layout)
                for taps in (3, 1)
                for layout in ("NHWC", "NCHW")
            ),
        ),
        Figure(
            number=4,
            title="Wave quantization of a small GEMM",
            section="4.3 Quantization Effects",
            given="3x3 filter, input 16x16, C=4096, K=256; 108 SMs; N=54 makes 216 tiles, N=55 220",
            chosen="forward pass, N from 1 to 540 (ten full waves) in one panel for the guide's (a) and (b)",
            vary="N",
            x_label="N, batch size",
            values=tuple(range(1, 541)),
            sizes={"C": 4096, "PQ": 16, "K": 256, "RS": 3},
            lines=(Line(label="fprop", which="fprop"),),
        ),
        Figure(
            number=5,
            title="Equal N·P·Q, equal performance",
            section="4.4.1 Batch Size, Height, And Width",
            given="performance rises with N·P·Q; equal products perform about equally",
            chosen="forward pass, 3x3 filter, C=K=256, maps of 64, 32, 16 and 8, the range of N·P·Q",
            vary="NPQ",
            x_label="N·P·Q",
            values=tuple(2**i for i in range(12, 22)),
            sizes={"C": 256, "K": 256, "RS": 3},
            lines=tuple(
                Line(label=f"P=Q={size}", which="fprop", sizes={"PQ": size}, marks=size != 64)
                for size in (64, 32, 16, 8)
            ),
        ),
        Figure(
            number=6,
            title="Larger filters and more input channels: forward pass",
            section="4.4.2 Filter Size",
            given="performance against C for several filter sizes, 1x1 among them; C·R·S matters",
            chosen="N=256, H=W=16, K=256, filters 3x3, 5x5 and 7x7 beside 1x1, the values of C",
            vary="C",
            x_label="C, input channels",
            values=_POWERS[4:12],
            sizes={"N": 256, "PQ": 16, "K": 256},
            lines=_filters("fprop"),
        ),
        Figure(
            number=7,
            title="Larger filters and more output channels: activation gradient",
            section="4.4.2 Filter Size",
            given="as Figure 6, for the activation gradient against K; K·R·S matters",
            chosen="N=256, H=W=16, C=256, filters 3x3, 5x5 and 7x7 beside 1x1, the values of K",
            vary="K",
            x_label="K, output channels",
            values=_POWERS[4:12],
            sizes={"N": 256, "PQ": 16, "C": 256},
            lines=_filters("dgrad"),
        ),
        Figure(
            number=8,
            title="First layers: C = 4 or a multiple of 8 runs best",
            section="4.4.3 Channels In And Out",
            given="first layers, stride 2, NHWC, small C; C=4 or a multiple of 8 performs best",
            chosen="N=256, H=W=224, K=64, 7x7 filter, C from 1 to 16, forward pass and weight gradient",
            vary="C",
            x_label="C, input channels",
            values=tuple(range(1, 17)),
            sizes={"N": 256, "PQ": 112, "K": 64, "RS": 7, "UV": 2},
            lines=(Line(label="fprop", which="fprop"), Line(label="wgrad", which="wgrad")),
            first=True,
        ),
        Figure(
            number=9,
            title="More output channels: forward pass and weight gradient",
            section="4.4.3 Channels In And Out",
            given="forward pass and weight gradient against K, with diminishing returns",
            chosen="N=256, H=W=28, C=256, 3x3 filter, the values of K",
            vary="K",
            x_label="K, output channels",
            values=_POWERS[3:12],
            sizes={"N": 256, "PQ": 28, "C": 256, "RS": 3},
            lines=(Line(label="fprop", which="fprop"), Line(label="wgrad", which="wgrad")),
        ),
        Figure(
            number=10,
            title="More input channels: activation gradient",
            section="4.4.3 Channels In And Out",
            given="activation gradient against C, with diminishing returns",
            chosen="N=256, H=W=28, K=256, 3x3 filter, the values of C",
            vary="C",
            x_label="C, input channels",
            values=_POWERS[3:12],
            sizes={"N": 256, "PQ": 28, "K": 256, "RS": 3},
            lines=(Line(label="dgrad", which="dgrad"),),
        ),
        Figure(
            number=11,
            title="Stride at constant P and Q: forward pass and weight gradient",
            section="4.5 Strides",
            given="forward pass and weight gradient, equal P and Q, H, W, U and V varying",
            chosen="N=256, C=K=256, 3x3 filter, P=Q 56 and 28, strides 1 to 4, H = P·U and W = Q·V",
            vary="UV",
            x_label="U = V, stride",
            values=(1, 2, 3, 4),
            sizes={"N": 256, "C": 256, "K": 256, "RS": 3},
            lines=_strides("fprop", "wgrad"),
        ),
        Figure(
            number=12,
            title="Stride at constant P and Q: activation gradient",
            section="4.5 Strides",
            given="activation gradient, equal P and Q, H, W, U and V varying",
            chosen="N=256, C=K=256, 3x3 filter, P=Q 56 and 28, strides 1 to 4, H = P·U and W = Q·V",
            vary="UV",
            x_label="U = V, stride",
            values=(1, 2, 3, 4),
            sizes={"N": 256, "C": 256, "K": 256, "RS": 3},
            lines=_strides("dgrad"),
        ),
        Figure(
            number=13,
            title="A layer near the peak: 64x64 maps, 1024 channels in and out",
            section="4.6 High-Performance Example",
            given="input 64x64, 3x3 filter, C=K=1024, NHWC; all passes near 250 TFLOPS at large N",
            chosen="the values of N",
            vary="N",
            x_label="N, batch size",
            values=_POWERS[:9],
            sizes={"C": 1024, "PQ": 64, "K": 1024, "RS": 3},
            lines=_PASSES,
        ),
        Figure(
            number=15,
            title="Dilation 2 runs as dilation 1",
            section="5.1 Dilated",
            given="all three passes, dilation 1 against 2",
            chosen="H=W=32, C=K=256, 3x3 filter, the values of N",
            vary="N",
            x_label="N, batch size",
            values=_POWERS[:9],
            sizes={"C": 256, "PQ": 32, "K": 256, "RS": 3},
            lines=tuple(
                replace(line, label=f"{line.label}, dilation {dilation}", sizes={"Dil": dilation}, marks=dilation == 2)
                for line in _PASSES
                for dilation in (1, 2)
            ),
        ),
    )
}


def figure_layer(figure: Figure, line: Line, value: int) -> ConvLayer:
    """The layer of one point of a figure: fp16, padded so that P = H / U and Q = W / V."""
    sizes = {"UV": 1, "Dil": 1, **figure.sizes, **line.sizes}
    if figure.vary == "NPQ":
        sizes["N"] = value // sizes["PQ"] ** 2
    else:
        sizes[figure.vary] = value
    size, taps, stride, dilation = sizes["PQ"] * sizes["UV"], sizes["RS"], sizes["UV"], sizes["Dil"]
    begin, end = same_padding(size, stride=stride, dilation=dilation, taps=taps) or (0, 0)
    layer = ConvLayer(
        name=f"figure {figure.number}", N=sizes["N"], C=sizes["C"], H=size, W=size, K=sizes["K"], R=taps, S=taps,
        U=stride, V=stride, DilH=dilation, DilW=dilation, PadH=begin, PadH_end=end, PadW=begin, PadW_end=end,
        dtype=Dtype.fp16, layout=line.layout, first=figure.first,
    )  # fmt: skip
    return with_output(layer)


def figure_sweep(number: int) -> Sweep:
    """The sweep of one of the guide's figures on the guide's GPU. Raises UsageError for a figure that has no data."""
    figure = FIGURES.get(number)
    if figure is None:
        raise UsageError(f"--figure: no chart {number}; the guide's charts are Figures {', '.join(map(str, FIGURES))}")
    target = (GPU, load_gpu(GPU))
    return Sweep(
        title=f"Figure {number}: {figure.title}",
        setting=f"{target[1].name.removeprefix('NVIDIA ')}, fp16, CUDA {RUNTIME.cuda}, cuDNN {RUNTIME.cudnn}",
        parameter=figure.vary,
        x_label=figure.x_label,
        series=tuple(
            series(
                line.label,
                line.which,
                figure.values,
                partial(figure_layer, figure, line),
                target,
                RUNTIME,
                marks=line.marks,
            )
            for line in figure.lines
        ),
        notes=(
            f"Predicted, not measured. Source of the setting: {GUIDE}, {figure.section}, Figure {number}.",
            f"The guide gives: {figure.given}.",
            f"Chosen here: {figure.chosen}.",
        ),
        log_x=geometric(figure.values),
    )
