"""The command line of `convlint layer`; `cli.py` adds it to the program."""

from __future__ import annotations

from typing import Annotated, Any

import typer

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
    common_options,
)
from convlint.errors import UsageError

app = typer.Typer()


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
    pad: Annotated[
        str | None,
        typer.Option(
            "--pad", "--padding", help="PadH or PadH,PadW; top,bottom,left,right; same; valid.", show_default=False
        ),
    ] = None,
    dilation: Annotated[str | None, typer.Option("--dilation", help="DilH or DilH,DilW.", show_default=False)] = None,
    groups: Annotated[str | None, typer.Option("--groups", help="Groups.", show_default=False)] = None,
    op: Annotated[str | None, typer.Option("--op", help="conv or conv_transpose.", show_default=False)] = None,
    output_padding: Annotated[
        str | None, typer.Option("--output-padding", help="Of a transposed convolution.", show_default=False)
    ] = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", help="fp64 fp32 tf32 fp16 bf16 fp8 int8.", show_default=False)
    ] = None,
    layout: Annotated[str | None, typer.Option("--layout", help="NCHW, NHWC or auto.", show_default=False)] = None,
    runtime: Annotated[
        list[str] | None,
        typer.Option(
            "--runtime",
            metavar="KEY=VALUE",
            help="A runtime setting of the spec, such as cudnn=8.9.2; repeatable.",
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
    config: ConfigFile = None,
    isolated: Isolated = False,
    quiet: Quiet = False,
    color: Color = "auto",
) -> None:
    """Check one layer given by flags."""
    from convlint.commands import check as command

    given = dict(locals())
    options, shown = common_options(**given)
    raise typer.Exit(command.layer(layer_flags(given), options, shown))


_LAYER_FLAGS = (
    "N",
    "C",
    "H",
    "W",
    "K",
    "R",
    "S",
    "D",
    "T",
    "P",
    "Q",
    "stride",
    "pad",
    "dilation",
    "groups",
    "op",
    "output_padding",
    "dtype",
    "layout",
)


def layer_flags(given: dict[str, Any]) -> dict[str, str]:
    """The flags that were given, under the names of a spec. Raises UsageError."""
    flags = {name: given[name] for name in _LAYER_FLAGS if given[name] is not None}
    if "D" in flags or "T" in flags:
        flags["dims"] = "3"
    for setting in given["runtime"] or ():
        key, found, value = setting.partition("=")
        if not found:
            raise UsageError(f"--runtime: {setting!r} is not KEY=VALUE")
        flags[f"runtime.{key}"] = value
    return flags
