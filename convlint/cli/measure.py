"""The command line of `convlint measure`."""

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
    ModeOption,
    ModuleTimeout,
    OneInput,
    OneModel,
    Quiet,
    RuntimeOption,
    TraceOption,
    color_of,
    gpu_names,
    listed,
    one_of,
    read_options,
    running,
)
from convlint.errors import UsageError
from convlint.model.layer import MODES

if TYPE_CHECKING:
    from convlint.measuring.workload import Kind

FORMATS = ("text", "json")
DEVICES: tuple[Kind, ...] = ("cuda", "cpu")


def measure(
    path: OneInput = None,
    model: OneModel = None,
    device: Annotated[str, typer.Option("--device", help="cuda or cpu; the latter only tries the way.")] = "cuda",
    gpu: Annotated[
        str | None,
        typer.Option(
            "--gpu", "-g", help="The GPU to predict for. Default: the one that times; on the CPU, the input's.",
            show_default=False,
        ),
    ] = None,
    mode: ModeOption = None,
    batch: Batch = None,
    inputs: Inputs = None,
    channels_last: ChannelsLast = False,
    module_timeout: ModuleTimeout = None,
    trace: TraceOption = None,
    runtime: RuntimeOption = None,
    dtype: DtypeOption = None,
    layout: Layout = None,
    csv: Annotated[
        str | None,
        typer.Option(
            "--csv", metavar="FILE", help="Where timings are kept, and read from. Default: convlint-GPU.csv.",
            show_default=False,
        ),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Time anew what the file has already.")] = False,
    layers_only: Annotated[bool, typer.Option("--layers-only", help="Do not try the fixes of findings.")] = False,
    calibrate: Annotated[
        str | None,
        typer.Option(
            "--calibrate", metavar="FILE", help="Write what all timings of this GPU say of convlint's estimates.",
            show_default=False,
        ),
    ] = None,
    limit_seconds: Annotated[
        float | None,
        typer.Option("--limit-seconds", metavar="SECONDS", help="Begin nothing new then.", min=0.0, show_default=False),
    ] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output", "-o", metavar="FORMAT[=FILE]", help=f"{listed(FORMATS)}; repeatable.", show_default=False
        ),
    ] = None,
    quiet: Quiet = False,
    isolated: Isolated = False,
    color: Color = "auto",
) -> None:  # fmt: skip
    """Time a network's convolutions on this machine's GPU, beside what is predicted, and try the advice.

    Runs PyTorch's convolutions, one pass at a time. Exit code 3 where something could not be timed.
    """
    from convlint.checking.one_input import Job
    from convlint.cli.commands import measure as command
    from convlint.cli.commands.measure import MeasureRequest
    from convlint.cli.streams.outputs import Presentation, parse_outputs

    if (path is None) == (model is None):
        raise UsageError("give one input: a PATH, or a model of the config with --model NAME")
    kind = one_of("--device", device, DEVICES) or "cuda"
    gpus = gpu_names([gpu] if gpu is not None else None)
    if len(gpus) > 1:
        raise UsageError("--gpu: times are held against predictions for one GPU")
    job = Job(
        gpus=gpus, mode=one_of("--mode", mode, MODES),
        reading=read_options(batch, inputs, module_timeout, trace, channels_last),
        asked=running(runtime, dtype, layout), isolated=isolated,
    )  # fmt: skip
    asked = MeasureRequest(
        kind=kind, csv=csv, again=again, tries=not layers_only, limit_s=limit_seconds, calibration=calibrate
    )  # fmt: skip
    shown = Presentation(outputs=parse_outputs(output or (), FORMATS), color=color_of(color), quiet=quiet)
    raise typer.Exit(command.run(path, model, job, asked, shown))
