"""The command line of `convlint estimate` and `convlint sweep`; `cli.py` adds both to the program."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from convlint.cli.options import (
    Batch,
    Color,
    DtypeOption,
    Inputs,
    Layout,
    ModeOption,
    ModuleTimeout,
    Op,
    OutputPadding,
    Pad,
    RuntimeOption,
    one_of,
    read_options,
    size_option,
)

app = typer.Typer()

Gpu = Annotated[
    list[str] | None,
    typer.Option("--gpu", "-g", help="GPU; repeat to compare. Default: the spec's, else a100.", show_default=False),
]


def _job(
    gpu: list[str] | None,
    mode: str | None,
    color: str,
    batch: int | None,
    inputs: list[str] | None,
    timeout: float | None,
) -> Any:
    """What to read and for what. Raises UsageError for a value that is none of those allowed."""
    from convlint.linting.one_input import Job

    one_of("--mode", mode, ("training", "inference"))
    one_of("--color", color, ("auto", "always", "never"))
    return Job(gpus=tuple(gpu or ()), mode=mode, reading=read_options(batch, inputs, timeout))  # type: ignore[arg-type]


@app.command()
def estimate(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH…", help="Specs, models, package.module:name, or - for standard input.", show_default=False
        ),
    ] = None,
    gpu: Gpu = None,
    mode: ModeOption = None,
    batch: Batch = None,
    inputs: Inputs = None,
    module_timeout: ModuleTimeout = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output", "-o", metavar="FORMAT[=FILE]", help="text, json or csv; repeatable.", show_default=False
        ),
    ] = None,
    color: Color = "auto",
) -> None:
    """Predict each layer's time per pass: GEMM, tiles, waves, intensity. Exit code 3 where a time is unknown."""
    from convlint.cli.commands import estimate as command

    job = _job(gpu, mode, color, batch, inputs, module_timeout)
    raise typer.Exit(command.run(paths or [], job, output or (), color))


_RANGE = "INT|RANGE"


@app.command()
def sweep(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="[PATH]",
            help="A spec or model that holds the layer; else the layer is given by flags.",
            show_default=False,
        ),
    ] = None,
    layer: Annotated[
        str | None, typer.Option("--layer", metavar="NAME", help="Which layer of PATH.", show_default=False)
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
    color: Color = "auto",
) -> None:
    """Vary one parameter of a layer: START:STOP[:STEP], both ends included, or a list such as 1,2,4,8.

    The layer comes from flags, from PATH, or from a figure of NVIDIA's guide.
    """
    given = dict(locals())
    from convlint.cli.commands import sweep as command
    from convlint.cli.layer import layer_flags

    shown = command.Shown(outputs=tuple(output or ()), metric=metric, plot=plot, color=color)
    flags = layer_flags({**given, "P": None, "Q": None})
    raise typer.Exit(
        command.run(flags, path, layer, figure, _job(gpu, mode, color, None, inputs, module_timeout), shown)
    )
