"""The command line: options in, exit code out. The only place that prints or exits."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from convlint import __version__, cli_estimate, cli_project
from convlint.cli_options import (
    Color,
    ConfigFile,
    ExtendSelect,
    FailOnOption,
    Gpu,
    Ignore,
    Isolated,
    MinLoss,
    ModeOption,
    Output,
    Quiet,
    Rules,
    Select,
)
from convlint.completion import gpus_and_aliases, rule_keys
from convlint.errors import UsageError

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
    version: Annotated[bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    pass


def _common(**given: Any) -> tuple[Any, Any]:
    """(Options, Presentation) from the shared options. Raises UsageError for a value that is none of those allowed."""
    from convlint.commands.check import Presentation
    from convlint.plan import Options
    from convlint.readers import ReadOptions

    _one_of("--mode", given["mode"], ("training", "inference"))
    _one_of("--fail-on", given["fail_on"], ("error", "warning", "info", "never"))
    _one_of("--color", given["color"], ("auto", "always", "never"))
    options = Options(
        gpus=tuple(given["gpu"] or ()),
        mode=given["mode"],
        select=_split(given["select"]),
        ignore=_split(given["ignore"]),
        extend_select=_split(given["extend_select"]),
        fail_on=given["fail_on"],
        min_loss=given["min_loss"],
        rules=tuple(given["rules"] or ()),
        reading=ReadOptions(batch=given.get("batch"), inputs=given.get("inputs") or {}),
        config=given["config"],
        isolated=given["isolated"],
        jobs=given.get("jobs", 1),
        allow_empty=given.get("allow_empty", False),
        specs_only=given.get("specs_only", False),
    )
    return options, Presentation(outputs=tuple(given["output"] or ()), color=given["color"], quiet=given["quiet"])


def _split(values: list[str] | None) -> tuple[str, ...]:
    """`--select CL1,CL2 --select CL3` -> all three."""
    return tuple(part for value in values or () for part in value.replace(",", " ").split())


def _one_of(option: str, value: str | None, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        from convlint.errors import suggestion

        raise UsageError(f"{option}: {value!r} is not one of {', '.join(known)}{suggestion(value, known)}")


@app.command()
def check(
    paths: Annotated[list[str] | None, typer.Argument(metavar="PATH…", help="Specs, models, folders, package.module:name, or - for standard input. Default: the current folder.", show_default=False)] = None,
    gpu: Gpu = None,
    mode: ModeOption = None,
    select: Select = None,
    ignore: Ignore = None,
    extend_select: ExtendSelect = None,
    fail_on: FailOnOption = None,
    min_loss: MinLoss = None,
    output: Output = None,
    rules: Rules = None,
    batch: Annotated[int | None, typer.Option("--batch", help="Batch size of the whole network.", min=1, show_default=False)] = None,
    inputs: Annotated[list[str] | None, typer.Option("--input", metavar="[NAME=]SHAPE", help="Shape of a model's input, such as Nx3x224x224; repeatable.", show_default=False)] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Processes; the result is the same.", min=1)] = 1,
    allow_empty: Annotated[bool, typer.Option("--allow-empty", help="Nothing to check is no error.")] = False,
    specs_only: Annotated[bool, typer.Option("--specs-only", help="Pass over YAML and JSON files that are no specs, also where they are named.")] = False,
    baseline: Annotated[str | None, typer.Option("--baseline", metavar="FILE", help="Only findings that this file does not hold count.", show_default=False)] = None,
    write_baseline: Annotated[str | None, typer.Option("--write-baseline", metavar="FILE", help="Write all of today's findings to this file.", show_default=False)] = None,
    prune_baseline: Annotated[bool, typer.Option("--prune-baseline", help="Take what no longer occurs out of the baseline.")] = False,
    config: ConfigFile = None,
    isolated: Isolated = False,
    quiet: Quiet = False,
    color: Color = "auto",
) -> None:
    """Check specs and models. Exit code 1 where a finding is at or above --fail-on, 3 where the check is incomplete."""
    from convlint.commands import check as command

    options, shown = _common(**dict(locals(), inputs=_named_inputs(inputs)))
    files = command.BaselineFiles(read=baseline, write=write_baseline, prune=prune_baseline)
    raise typer.Exit(command.check(paths or [], options, shown, files))


def _named_inputs(values: list[str] | None) -> dict[str, str]:
    inputs: dict[str, str] = {}
    for value in values or ():
        name, found, shape = value.rpartition("=")
        inputs[name if found else ""] = shape
    return inputs


def _size(letter: str, help_: str, *names: str) -> Any:
    return typer.Option(f"-{letter}", *names, metavar="INT", help=help_, show_default=False)


@app.command()
def layer(
    N: Annotated[str | None, _size("N", "Batch size.", "--batch")] = None,
    C: Annotated[str | None, _size("C", "Input channels.")] = None,
    H: Annotated[str | None, _size("H", "Input height.")] = None,
    W: Annotated[str | None, _size("W", "Input width.")] = None,
    K: Annotated[str | None, _size("K", "Output channels.")] = None,
    R: Annotated[str | None, _size("R", "Filter height.")] = None,
    S: Annotated[str | None, _size("S", "Filter width.")] = None,
    D: Annotated[str | None, _size("D", "Input depth (3-D).")] = None,
    T: Annotated[str | None, _size("T", "Filter depth (3-D).")] = None,
    P: Annotated[str | None, _size("P", "Output height, to be checked.")] = None,
    Q: Annotated[str | None, _size("Q", "Output width, to be checked.")] = None,
    stride: Annotated[str | None, typer.Option("--stride", help="U or U,V.", show_default=False)] = None,
    pad: Annotated[str | None, typer.Option("--pad", "--padding", help="PadH or PadH,PadW; top,bottom,left,right; same; valid.", show_default=False)] = None,
    dilation: Annotated[str | None, typer.Option("--dilation", help="DilH or DilH,DilW.", show_default=False)] = None,
    groups: Annotated[str | None, typer.Option("--groups", help="Groups.", show_default=False)] = None,
    op: Annotated[str | None, typer.Option("--op", help="conv or conv_transpose.", show_default=False)] = None,
    output_padding: Annotated[str | None, typer.Option("--output-padding", help="Of a transposed convolution.", show_default=False)] = None,
    dtype: Annotated[str | None, typer.Option("--dtype", help="fp64 fp32 tf32 fp16 bf16 fp8 int8.", show_default=False)] = None,
    layout: Annotated[str | None, typer.Option("--layout", help="NCHW, NHWC or auto.", show_default=False)] = None,
    runtime: Annotated[list[str] | None, typer.Option("--runtime", metavar="KEY=VALUE", help="A runtime setting of the spec, such as cudnn=8.9.2; repeatable.", show_default=False)] = None,
    gpu: Gpu = None,
    mode: ModeOption = None,
    select: Select = None,
    ignore: Ignore = None,
    extend_select: ExtendSelect = None,
    fail_on: FailOnOption = None,
    min_loss: MinLoss = None,
    output: Output = None,
    rules: Rules = None,
    config: ConfigFile = None,
    isolated: Isolated = False,
    quiet: Quiet = False,
    color: Color = "auto",
) -> None:
    """Check one layer given by flags."""
    from convlint.commands import check as command

    given = dict(locals())
    options, shown = _common(**given)
    raise typer.Exit(command.layer(_layer_flags(given), options, shown))


_LAYER_FLAGS = ("N", "C", "H", "W", "K", "R", "S", "D", "T", "P", "Q", "stride", "pad", "dilation", "groups", "op", "output_padding", "dtype", "layout")


def _layer_flags(given: dict[str, Any]) -> dict[str, str]:
    flags = {name: given[name] for name in _LAYER_FLAGS if given[name] is not None}
    if "D" in flags or "T" in flags:
        flags["dims"] = "3"
    for setting in given["runtime"] or ():
        key, found, value = setting.partition("=")
        if not found:
            raise UsageError(f"--runtime: {setting!r} is not KEY=VALUE")
        flags[f"runtime.{key}"] = value
    return flags


@app.command()
def rule(
    key: Annotated[str | None, typer.Argument(metavar="[CODE|NAME]", help="Which rule; all of them where none is named.", show_default=False, autocompletion=rule_keys)] = None,
    test: Annotated[str | None, typer.Option("--test", metavar="DIR", help="Run the examples of the rules in this folder.", show_default=False)] = None,
    rules: Rules = None,
    color: Color = "auto",
) -> None:
    """Explain a rule, list all rules, or test your own."""
    from convlint.commands import rules as command

    raise typer.Exit(command.run(key, test, rules or (), color))


@app.command()
def gpus(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Which GPU; all of them where none is named.", show_default=False, autocompletion=gpus_and_aliases)] = None,
    color: Color = "auto",
) -> None:
    """List the GPUs that convlint knows, or show one with its sources."""
    from convlint.commands import gpus as command

    raise typer.Exit(command.run(name, color))


app.add_typer(cli_estimate.app)
app.add_typer(cli_project.app)
