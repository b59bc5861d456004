"""The command line of `convlint audit`."""

from __future__ import annotations

from typing import Annotated

import typer

from convlint.cli.options import (
    FAIL_ON,
    Batch,
    ChannelsLast,
    Color,
    ConfigFile,
    DtypeOption,
    ExtendSelect,
    FailOnOption,
    Gpu,
    Ignore,
    Inputs,
    Isolated,
    Layout,
    MinLoss,
    ModelNames,
    Models,
    ModeOption,
    ModuleTimeout,
    Quiet,
    Rules,
    RuntimeOption,
    Select,
    TraceOption,
    color_of,
    gpu_names,
    listed,
    model_names,
    one_of,
    read_options,
    running,
    split,
)
from convlint.errors import UsageError
from convlint.model.layer import MODES

_MIB = 1 << 20


def audit(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH…",
            help="Specs, models, folders, globs or package.module:name. Default: the current folder, where there is "
            "no --models-from.",
            show_default=False,
        ),
    ] = None,
    models_from: Annotated[
        list[str] | None,
        typer.Option(
            "--models-from",
            metavar="FILE",
            help="A list of models: one per line with key=value behind it, .csv or .jsonl; - for standard input; "
            "repeatable.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FORMAT[=FILE]",
            help=f"{listed(('text', 'json'))} for the answer; parquet=FILE, csv=FILE or jsonl=FILE for tables; "
            "repeatable.",
            show_default=False,
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            "--weights", metavar="FILE", help="CSV with the columns model and gpu_hours, and gpu.", show_default=False
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the audit of these tables: only what is new or changed.")
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Processes; the result is the same.", min=1)] = 1,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster", metavar="ADDRESS", help="A running Ray cluster: ray://HOST:PORT or auto.", show_default=False
        ),
    ] = None,
    ship_limit: Annotated[
        int,
        typer.Option(
            "--ship-limit", metavar="MIB", help="Largest file to send to a cluster that does not see it.", min=0
        ),
    ] = 256,
    top: Annotated[int, typer.Option("--top", metavar="N", help="Entries of each ranking.", min=1, max=1000)] = 10,
    models: Models = False,
    model: ModelNames = None,
    gpu: Gpu = None,
    mode: ModeOption = None,
    select: Select = None,
    ignore: Ignore = None,
    extend_select: ExtendSelect = None,
    fail_on: FailOnOption = None,
    min_loss: MinLoss = None,
    rules: Rules = None,
    batch: Batch = None,
    inputs: Inputs = None,
    channels_last: ChannelsLast = False,
    module_timeout: ModuleTimeout = None,
    trace: TraceOption = None,
    runtime: RuntimeOption = None,
    dtype: DtypeOption = None,
    layout: Layout = None,
    allow_empty: Annotated[bool, typer.Option("--allow-empty", help="Nothing to audit is no error.")] = False,
    files_only: Annotated[
        bool,
        typer.Option("--files-only", help="Never take a word for package.module:name: no code of the project runs."),
    ] = False,
    config: ConfigFile = None,
    isolated: Isolated = False,
    quiet: Quiet = False,
    color: Color = "auto",
) -> None:
    """Audit any number of models into tables, and rank what loses most.

    A model that fails is a row among the errors. Exit code 1 where a finding is at or above --fail-on, 3 where
    anything could not be read.
    """
    from convlint.cli.commands import audit as command
    from convlint.cli.streams.outputs import Presentation, parse_outputs
    from convlint.run.plan import Options

    if cluster is not None and jobs > 1:
        raise UsageError("--cluster and --jobs contradict each other: the cluster has workers of its own")
    options = Options(
        gpus=gpu_names(gpu), mode=one_of("--mode", mode, MODES), select=split(select), ignore=split(ignore),
        extend_select=split(extend_select), fail_on=one_of("--fail-on", fail_on, FAIL_ON), min_loss=min_loss,
        rules=tuple(rules or ()),
        reading=read_options(batch, inputs, module_timeout, trace, channels_last),
        running=running(runtime, dtype, layout), config=config, isolated=isolated, jobs=jobs,
        allow_empty=allow_empty, models=model_names(models, model), modules=not files_only,
    )  # fmt: skip
    asked = command.AuditRequest(
        paths=tuple(paths or ()), lists=tuple(models_from or ()), weights=weights, resume=resume, most=top,
        cluster=cluster, ship_bytes=ship_limit * _MIB, allow_empty=allow_empty,
    )  # fmt: skip
    outputs = parse_outputs(output or (), command.FORMATS, files_only=command.TABLES)
    raise typer.Exit(command.run(asked, options, Presentation(outputs=outputs, color=color_of(color), quiet=quiet)))
