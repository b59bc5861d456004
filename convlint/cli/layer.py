"""The command line of `convlint layer`; `cli.py` adds it to the program."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from convlint.cli.options import (
    Color,
    ConfigFile,
    DtypeOption,
    ExtendSelect,
    FailOnOption,
    Gpu,
    Ignore,
    Isolated,
    Layout,
    MinLoss,
    ModeOption,
    Op,
    Output,
    OutputPadding,
    Pad,
    Quiet,
    Rules,
    RuntimeOption,
    Select,
    common_options,
    size_option,
)
from convlint.errors import UsageError

app = typer.Typer()


@app.command()
def layer(
    N: Annotated[str | None, size_option("N", "Batch size.", "--batch")] = None,
    C: Annotated[str | None, size_option("C", "Input channels.")] = None,
    H: Annotated[str | None, size_option("H", "Input height.")] = None,
    W: Annotated[str | None, size_option("W", "Input width.")] = None,
    K: Annotated[str | None, size_option("K", "Output channels.")] = None,
    R: Annotated[str | None, size_option("R", "Filter height.")] = None,
    S: Annotated[str | None, size_option("S", "Filter width.")] = None,
    D: Annotated[str | None, size_option("D", "Input depth (3-D).")] = None,
    T: Annotated[str | None, size_option("T", "Filter depth (3-D).")] = None,
    P: Annotated[str | None, size_option("P", "Output height, to be checked.")] = None,
    Q: Annotated[str | None, size_option("Q", "Output width, to be checked.")] = None,
    stride: Annotated[str | None, typer.Option("--stride", help="U or U,V.", show_default=False)] = None,
    pad: Pad = None,
    dilation: Annotated[str | None, typer.Option("--dilation", help="DilH or DilH,DilW.", show_default=False)] = None,
    groups: Annotated[str | None, typer.Option("--groups", help="Groups.", show_default=False)] = None,
    op: Op = None,
    output_padding: OutputPadding = None,
    dtype: DtypeOption = None,
    layout: Layout = None,
    runtime: RuntimeOption = None,
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
    from convlint.cli.commands import check as command

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
