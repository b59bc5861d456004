"""The command line of `convlint check`."""

from __future__ import annotations

from typing import Annotated

import typer

from convlint.cli.options import (
    FAIL_ON,
    MODES,
    Batch,
    Color,
    ConfigFile,
    ExtendSelect,
    FailOnOption,
    Gpu,
    Ignore,
    Inputs,
    Isolated,
    MinLoss,
    ModeOption,
    ModuleTimeout,
    Output,
    Quiet,
    Rules,
    Select,
    one_of,
    presentation,
    read_options,
    split,
)


def check(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH…",
            help="Specs, models, folders, package.module:name, or - for standard input. Default: the current folder.",
            show_default=False,
        ),
    ] = None,
    gpu: Gpu = None,
    mode: ModeOption = None,
    select: Select = None,
    ignore: Ignore = None,
    extend_select: ExtendSelect = None,
    fail_on: FailOnOption = None,
    min_loss: MinLoss = None,
    output: Output = None,
    rules: Rules = None,
    batch: Batch = None,
    inputs: Inputs = None,
    module_timeout: ModuleTimeout = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Processes; the result is the same.", min=1)] = 1,
    allow_empty: Annotated[bool, typer.Option("--allow-empty", help="Nothing to check is no error.")] = False,
    specs_only: Annotated[
        bool,
        typer.Option(
            "--specs-only", help="Pass over YAML and JSON files that are no specs, also where they are named."
        ),
    ] = False,
    files_only: Annotated[
        bool,
        typer.Option("--files-only", help="Never take a word for package.module:name: no code of the project runs."),
    ] = False,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", metavar="FILE", help="Only findings that this file does not hold count.", show_default=False
        ),
    ] = None,
    write_baseline: Annotated[
        str | None,
        typer.Option(
            "--write-baseline", metavar="FILE", help="Write all of today's findings to this file.", show_default=False
        ),
    ] = None,
    prune_baseline: Annotated[
        bool, typer.Option("--prune-baseline", help="Take what no longer occurs out of the baseline.")
    ] = False,
    config: ConfigFile = None,
    isolated: Isolated = False,
    quiet: Quiet = False,
    color: Color = "auto",
) -> None:
    """Check specs and models. Exit code 1 where a finding is at or above --fail-on, 3 where the check is incomplete."""
    from convlint.cli.commands import check as command
    from convlint.linting.plan import Options

    options = Options(
        gpus=tuple(gpu or ()),
        mode=one_of("--mode", mode, MODES),
        select=split(select),
        ignore=split(ignore),
        extend_select=split(extend_select),
        fail_on=one_of("--fail-on", fail_on, FAIL_ON),
        min_loss=min_loss,
        rules=tuple(rules or ()),
        reading=read_options(batch, inputs, module_timeout),
        config=config,
        isolated=isolated,
        jobs=jobs,
        allow_empty=allow_empty,
        specs_only=specs_only,
        modules=not files_only,
    )
    shown = presentation(output, color, quiet=quiet)
    files = command.BaselineFiles(read=baseline, write=write_baseline, prune=prune_baseline)
    raise typer.Exit(command.check(paths or [], options, shown, files))
