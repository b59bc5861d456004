"""The figures of NVIDIA's guide as sweeps: from the settings in `figures` to layers and predictions."""

from __future__ import annotations

from convlint.errors import UsageError
from convlint.estimate.sweep.figures import FIGURES, GPU, GUIDE, RUNTIME, Figure, Line
from convlint.estimate.sweep.sweep import Series, Sweep, geometric, series
from convlint.gpus.gpu import Gpu, load_gpu
from convlint.model.geometry import same_padding
from convlint.model.layer import ConvLayer, Dtype, with_output


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
        series=tuple(_series(figure, line, target) for line in figure.lines),
        notes=(
            f"Predicted, not measured. Source of the setting: {GUIDE}, {figure.section}, Figure {number}.",
            f"The guide gives: {figure.given}.",
            f"Chosen here: {figure.chosen}.",
        ),
        log_x=geometric(figure.values),
    )


def _series(figure: Figure, line: Line, target: tuple[str, Gpu]) -> Series:
    return series(
        line.label, line.which, figure.values, lambda value: figure_layer(figure, line, value),
        target, RUNTIME, marks=line.marks,
    )  # fmt: skip
