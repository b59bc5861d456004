"""The command line of `convlint check`."""

from __future__ import annotations

from typing import Annotated

import typer

from convlint.cli.options import (
    FAIL_ON,
    Allow,
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
    Lang,
    Layout,
    MinLoss,
    ModelNames,
    Models,
    ModeOption,
    ModuleTimeout,
    Output,
    Quiet,
    Rules,
    RuntimeOption,
    Select,
    Strict,
    TraceOption,
    allowances,
    gpu_names,
    jobs_of,
    model_names,
    one_of,
    presentation,
    read_options,
    running,
    split,
)
from convlint.files.languages import language_asked
from convlint.model.layer import MODES


def check(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH…",
            help="Specs, models, Python files, folders, package.module:name, or - for standard input. "
            "Default: the current folder.",
            show_default=False,
        ),
    ] = None,
    models: Models = False,
    model: ModelNames = None,
    gpu: Gpu = None,
    mode: ModeOption = None,
    select: Select = None,
    ignore: Ignore = None,
    extend_select: ExtendSelect = None,
    fail_on: FailOnOption = None,
    min_loss: MinLoss = None,
    allow: Allow = None,
    strict: Strict = False,
    output: Output = None,
    rules: Rules = None,
    batch: Batch = None,
    inputs: Inputs = None,
    channels_last: ChannelsLast = False,
    module_timeout: ModuleTimeout = None,
    trace: TraceOption = None,
    runtime: RuntimeOption = None,
    dtype: DtypeOption = None,
    layout: Layout = None,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            help="Processes, 1 or more; the result is the same. auto: one a core for folders of much Python.",
            parser=jobs_of,
            show_default="auto",
        ),
    ] = "auto",  # type: ignore[assignment]  # parsed as what a user writes
    allow_empty: Annotated[bool, typer.Option("--allow-empty", help="Nothing to check is no error.")] = False,
    specs_only: Annotated[
        bool,
        typer.Option(
            "--specs-only",
            help="Pass over Python, and YAML and JSON files that are no specs, also where they are named.",
        ),
    ] = False,
    skip_foreign: Annotated[
        bool,
        typer.Option(
            "--skip-foreign", help="Pass over YAML and JSON files that are no specs; Python and models are checked."
        ),
    ] = False,
    files_only: Annotated[
        bool,
        typer.Option("--files-only", help="Never take a word for package.module:name: no code of the project runs."),
    ] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Mend what can be mended without changing the network, in its file.")
    ] = False,
    unsafe_fixes: Annotated[
        bool,
        typer.Option("--unsafe-fixes", help="Fixes that change the network, its weights or results too."),
    ] = False,
    diff: Annotated[
        bool,
        typer.Option("--diff", help="Print what --fix would change and write nothing; exit code 1 if it would."),
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
    lang: Lang = None,
    quiet: Quiet = False,
    color: Color = "auto",
) -> None:
    """Check specs, models and Python.

    Exit code 1 where a finding is at or above --fail-on, 3 where the check is incomplete.
    """
    from convlint.cli.commands import check as command
    from convlint.run.plan import Options

    options = Options(
        gpus=gpu_names(gpu),
        mode=one_of("--mode", mode, MODES),
        select=split(select),
        ignore=split(ignore),
        extend_select=split(extend_select),
        fail_on=one_of("--fail-on", fail_on, FAIL_ON),
        min_loss=min_loss,
        allow=allowances(allow),
        strict=strict,
        rules=tuple(rules or ()),
        reading=read_options(batch, inputs, module_timeout, trace, channels_last),
        running=running(runtime, dtype, layout),
        config=config,
        isolated=isolated,
        language=language_asked(lang),
        jobs=jobs,
        allow_empty=allow_empty,
        specs_only=specs_only,
        skip_foreign=skip_foreign,
        models=model_names(models, model),
        mends=fix or diff,
        unsafe_fixes=unsafe_fixes,
        modules=not files_only,
    )
    if diff:
        command.refuse_beside_diff(output=output, write_baseline=write_baseline, prune_baseline=prune_baseline)
    shown = presentation(output, color, quiet=quiet)
    files = command.BaselineFiles(read=baseline, write=write_baseline, prune=prune_baseline)
    raise typer.Exit(command.check(paths or [], options, shown, files, diff=diff))
