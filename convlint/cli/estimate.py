"""The command line of `convlint estimate` and `convlint sweep`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from convlint.cli.options import (
    Batch,
    ChannelsLast,
    Color,
    DtypeOption,
    Inputs,
    Isolated,
    Layout,
    ModelNames,
    Models,
    ModeOption,
    ModuleTimeout,
    OneModel,
    Op,
    OutputPadding,
    Pad,
    RuntimeOption,
    TraceOption,
    color_of,
    gpu_names,
    listed,
    model_names,
    one_of,
    read_options,
    running,
    size_option,
)
from convlint.errors import UsageError
from convlint.model.layer import MODES

if TYPE_CHECKING:
    from convlint.checking.one_input import Job, Running
    from convlint.readers import ReadOptions

FORMATS = ("text", "json", "csv", "html")  # of estimate
IMAGES = ("svg", "png")
SWEEP_FORMATS = ("text", "csv", *IMAGES)

Gpu = Annotated[
    list[str] | None,
    typer.Option("--gpu", "-g", help="GPU; repeat to compare. Default: the spec's, else a100.", show_default=False),
]


def _job(
    gpu: list[str] | None, mode: str | None, reading: ReadOptions, asked: Running | None = None, *, isolated: bool
) -> Job:
    """What to read and for what. Raises UsageError for a value that is none of those allowed."""
    from convlint.checking.one_input import Job, Running

    return Job(
        gpus=gpu_names(gpu), mode=one_of("--mode", mode, MODES), reading=reading, asked=asked or Running(),
        isolated=isolated,
    )  # fmt: skip


def estimate(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH…", help="Specs, models, package.module:name, or - for standard input.", show_default=False
        ),
    ] = None,
    models: Models = False,
    model: ModelNames = None,
    gpu: Gpu = None,
    mode: ModeOption = None,
    batch: Batch = None,
    inputs: Inputs = None,
    channels_last: ChannelsLast = False,
    module_timeout: ModuleTimeout = None,
    trace: TraceOption = None,
    runtime: RuntimeOption = None,
    dtype: DtypeOption = None,
    layout: Layout = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output", "-o", metavar="FORMAT[=FILE]", help=f"{listed(FORMATS)}; repeatable.", show_default=False
        ),
    ] = None,
    isolated: Isolated = False,
    color: Color = "auto",
) -> None:
    """Predict each layer's time per pass: GEMM, tiles, waves, intensity. Exit code 3 where a time is unknown."""
    from convlint.cli.commands import estimate as command
    from convlint.cli.streams.outputs import Presentation, parse_outputs
    from convlint.run.plan import Options

    reading = read_options(batch, inputs, module_timeout, trace, channels_last)
    options = Options(
        gpus=gpu_names(gpu), mode=one_of("--mode", mode, MODES), reading=reading,
        running=running(runtime, dtype, layout), isolated=isolated,
    )  # fmt: skip
    when = color_of(color)
    chosen = model_names(models, model)
    if not paths and chosen is None:
        raise UsageError("nothing to estimate: give a spec, a model or -")
    shown = Presentation(outputs=parse_outputs(output or (), FORMATS), color=when)
    raise typer.Exit(command.run(paths or (), chosen, options, shown))


_RANGE = "INT|RANGE"


def sweep(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="[PATH]",
            help="A spec or model that holds the layer; else the layer is given by flags.",
            show_default=False,
        ),
    ] = None,
    model: OneModel = None,
    layer: Annotated[
        str | None,
        typer.Option("--layer", metavar="NAME", help="Which layer of PATH or of the model.", show_default=False),
    ] = None,
    figure: Annotated[
        int | None,
        typer.Option(
            "--figure",
            metavar="NUMBER",
            help="The setting of a figure of NVIDIA's guide: 2, 4 to 13 or 15.",
            show_default=False,
        ),
    ] = None,
    N: Annotated[str | None, size_option("N", "Batch size.", "--batch", metavar=_RANGE)] = None,
    C: Annotated[str | None, size_option("C", "Input channels.", metavar=_RANGE)] = None,
    H: Annotated[str | None, size_option("H", "Input height.", metavar=_RANGE)] = None,
    W: Annotated[str | None, size_option("W", "Input width.", metavar=_RANGE)] = None,
    K: Annotated[str | None, size_option("K", "Output channels.", metavar=_RANGE)] = None,
    R: Annotated[str | None, size_option("R", "Filter height.", metavar=_RANGE)] = None,
    S: Annotated[str | None, size_option("S", "Filter width.", metavar=_RANGE)] = None,
    D: Annotated[str | None, size_option("D", "Input depth (3-D).", metavar=_RANGE)] = None,
    T: Annotated[str | None, size_option("T", "Filter depth (3-D).", metavar=_RANGE)] = None,
    stride: Annotated[
        str | None,
        typer.Option(
            "--stride",
            metavar="INT|RANGE",
            help="U = V; two values are U,V where another parameter varies.",
            show_default=False,
        ),
    ] = None,
    pad: Pad = None,
    dilation: Annotated[
        str | None,
        typer.Option(
            "--dilation", metavar="INT|RANGE", help="DilH = DilW; two values as with --stride.", show_default=False
        ),
    ] = None,
    groups: Annotated[
        str | None, typer.Option("--groups", metavar="INT|RANGE", help="Groups.", show_default=False)
    ] = None,
    op: Op = None,
    output_padding: OutputPadding = None,
    dtype: DtypeOption = None,
    layout: Layout = None,
    runtime: RuntimeOption = None,
    gpu: Gpu = None,
    mode: ModeOption = None,
    inputs: Inputs = None,
    channels_last: ChannelsLast = False,
    module_timeout: ModuleTimeout = None,
    metric: Annotated[
        str | None,
        typer.Option("--metric", help="What charts show: time, tflops (default) or efficiency.", show_default=False),
    ] = None,
    plot: Annotated[
        bool | None,
        typer.Option(
            "--plot/--no-plot", help="Chart or table; a chart on a terminal where neither is given.", show_default=False
        ),
    ] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FORMAT[=FILE]",
            help="text, csv, svg=FILE or png=FILE; repeatable.",
            show_default=False,
        ),
    ] = None,
    isolated: Isolated = False,
    color: Color = "auto",
) -> None:
    """Vary one parameter of a layer: START:STOP[:STEP], both ends included, or a list such as 1,2,4,8.

    The layer comes from flags, from PATH, from a model of the config, or from a figure of NVIDIA's guide.
    """
    from convlint.cli.commands import sweep as command
    from convlint.cli.layer import LayerFlags
    from convlint.cli.streams.outputs import parse_outputs
    from convlint.errors import UsageError
    from convlint.estimate.sweep import METRICS
    from convlint.readers.inputs import decide
    from convlint.run.plan import models_here

    flags = LayerFlags(
        N=N, C=C, H=H, W=W, K=K, R=R, S=S, D=D, T=T,
        stride=stride, pad=pad, dilation=dilation, groups=groups, op=op, output_padding=output_padding,
        dtype=dtype, layout=layout, runtime=tuple(runtime or ()),
    ).given()  # fmt: skip
    job, when = (
        _job(gpu, mode, read_options(None, inputs, module_timeout, None, channels_last), isolated=isolated),
        color_of(color),
    )
    shown = command.Shown(
        metric=one_of("--metric", metric, METRICS),
        outputs=parse_outputs(output or (), SWEEP_FORMATS, files_only=IMAGES),
        plot=plot,
        color=when,
    )
    if path is not None and model is not None:
        raise UsageError("give one input: a PATH, or a model of the config with --model NAME")
    source = decide(path) if path is not None else next(iter(models_here(None if model is None else [model])), None)
    if source is None and channels_last:
        raise UsageError("--channels-last: there is no module to put into it; --layout says how a layer runs")
    raise typer.Exit(command.run(flags, source, layer, figure, job, shown))
