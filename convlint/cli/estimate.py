"""The command line of `convlint estimate` and `convlint sweep`."""

from typing import Annotated

from convlint.cli import options as shared
from convlint.cli.arguments import Flags, argument, option
from convlint.model.errors import UsageError

FORMATS = ("text", "json", "csv", "html")  # of estimate
IMAGES = ("svg", "png")
SWEEP_FORMATS = ("text", "csv", *IMAGES)

Gpu = Annotated[list[str] | None, shared.gpu_option("GPU; repeat to compare. Default: the spec's, else a100.")]


def estimate(
    *,
    paths: Annotated[
        list[str] | None,
        argument("PATH…", "Specs, models, package.module:name, or - for standard input."),
    ] = None,
    models: shared.ModelFlags,
    gpu: Gpu = None,
    mode: shared.ModeOption = None,
    reading: shared.ReadFlags,
    running: shared.RunFlags,
    output: Annotated[list[str] | None, shared.output_option(f"{shared.listed(FORMATS)}; repeatable.")] = None,
    operations: Annotated[
        bool, option("--operations", help_="In the table, each operation between the convolutions too.")
    ] = False,
    isolated: shared.Isolated = False,
    color: shared.Color = "auto",
) -> int:
    """Predict each layer's time per pass: GEMM, tiles, waves, intensity. Exit code 3 where a time is unknown."""
    from convlint.cli.commands import estimate as command
    from convlint.run.plan import Options

    options = Options(
        gpus=shared.gpu_names(gpu), mode=shared.mode_of(mode), reading=reading.options(), running=running.running(),
        isolated=isolated,
    )  # fmt: skip
    shown = shared.presentation(output, shared.ShowFlags(color=color), known=FORMATS)
    if not paths and models.names() is None:
        raise UsageError("nothing to estimate: give a spec, a model or -")
    return command.run(paths or (), models.names(), options, shown, operations=operations)


_RANGE = "INT|RANGE"


class RangeFlags(Flags, frozen=True, kw_only=True):
    """The sizes of one layer, of which one is varied."""

    N: Annotated[str | None, shared.size_option("N", "Batch size.", "--batch", metavar=_RANGE)] = None
    C: Annotated[str | None, shared.size_option("C", "Input channels.", metavar=_RANGE)] = None
    H: Annotated[str | None, shared.size_option("H", "Input height.", metavar=_RANGE)] = None
    W: Annotated[str | None, shared.size_option("W", "Input width.", metavar=_RANGE)] = None
    K: Annotated[str | None, shared.size_option("K", "Output channels.", metavar=_RANGE)] = None
    R: Annotated[str | None, shared.size_option("R", "Filter height.", metavar=_RANGE)] = None
    S: Annotated[str | None, shared.size_option("S", "Filter width.", metavar=_RANGE)] = None
    D: Annotated[str | None, shared.size_option("D", "Input depth (3-D).", metavar=_RANGE)] = None
    T: Annotated[str | None, shared.size_option("T", "Filter depth (3-D).", metavar=_RANGE)] = None
    stride: Annotated[
        str | None,
        option("--stride", metavar=_RANGE, help_="U = V; two values are U,V where another parameter varies."),
    ] = None
    pad: shared.Pad = None
    dilation: Annotated[
        str | None, option("--dilation", metavar=_RANGE, help_="DilH = DilW; two values as with --stride.")
    ] = None
    groups: Annotated[str | None, option("--groups", metavar=_RANGE, help_="Groups.")] = None


class ChartFlags(Flags, frozen=True, kw_only=True):
    """How a sweep is shown."""

    metric: Annotated[
        str | None, option("--metric", help_="What charts show: time, tflops (default) or efficiency.")
    ] = None
    plot: Annotated[
        bool | None, option("--plot/--no-plot", help_="Chart or table; a chart on a terminal where neither is given.")
    ] = None
    output: Annotated[list[str] | None, shared.output_option("text, csv, svg=FILE or png=FILE; repeatable.")] = None


def sweep(
    *,
    path: Annotated[
        str | None,
        argument("[PATH]", "A spec or model that holds the layer; else the layer is given by flags."),
    ] = None,
    model: shared.OneModel = None,
    layer: Annotated[
        str | None, option("--layer", metavar="NAME", help_="Which layer of PATH or of the model.")
    ] = None,
    figure: Annotated[
        int | None,
        option("--figure", metavar="NUMBER", help_="The setting of a figure of NVIDIA's guide: 2, 4 to 13 or 15."),
    ] = None,
    sizes: RangeFlags,
    settings: shared.LayerSettingFlags,
    gpu: Gpu = None,
    mode: shared.ModeOption = None,
    build: shared.BuildFlags,
    charting: ChartFlags,
    isolated: shared.Isolated = False,
    color: shared.Color = "auto",
) -> int:
    """Vary one parameter of a layer: START:STOP[:STEP], both ends included, or a list such as 1,2,4,8.

    The layer comes from flags, from PATH, from a model of the config, or from a figure of NVIDIA's guide.
    """
    from convlint.cli.check import given
    from convlint.cli.commands import sweep as command
    from convlint.estimate.sweep import METRICS
    from convlint.mend.checking import Job
    from convlint.readers.inputs import decide
    from convlint.run.plan import models_here

    flags = given(sizes, settings)
    job = Job(gpus=shared.gpu_names(gpu), mode=shared.mode_of(mode), reading=build.read_options(), isolated=isolated)
    metric = shared.one_of("--metric", charting.metric, METRICS)
    shown = shared.presentation(charting.output, shared.ShowFlags(color=color), known=SWEEP_FORMATS, files_only=IMAGES)
    if path is not None and model is not None:
        raise UsageError("give one input: a PATH, or a model of the config with --model NAME")
    source = decide(path) if path is not None else next(iter(models_here(None if model is None else [model])), None)
    if source is None and build.channels_last:
        raise UsageError("--channels-last: there is no module to put into it; --layout says how a layer runs")
    return command.run(flags, source, layer, figure, job, shown, metric, plot=charting.plot)
