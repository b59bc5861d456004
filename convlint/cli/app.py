"""The command line: options in, exit code out. The only place that prints or exits."""

from __future__ import annotations

from typing import Annotated

import typer

from convlint import __version__
from convlint.cli import estimate as cli_estimate
from convlint.cli import layer as cli_layer
from convlint.cli import project as cli_project
from convlint.cli.options import (
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
    common_options,
)

app = typer.Typer(
    name="convlint",
    help="Linter and advisor for convolution layers on NVIDIA GPUs.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"convlint {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
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

    options, shown = common_options(**dict(locals(), inputs_given=inputs))
    files = command.BaselineFiles(read=baseline, write=write_baseline, prune=prune_baseline)
    raise typer.Exit(command.check(paths or [], options, shown, files))


for part in (cli_layer, cli_estimate, cli_project):
    app.add_typer(part.app)
