"""The command line of `convlint layer`; `cli.py` adds it to the program."""

from __future__ import annotations

from typing import Annotated

import typer
from msgspec import Struct

from convlint.cli.options import (
    FAIL_ON,
    Allow,
    Color,
    ConfigFile,
    DtypeOption,
    ExtendSelect,
    FailOnOption,
    Gpu,
    Ignore,
    Isolated,
    Lang,
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
    Strict,
    allowances,
    gpu_names,
    one_of,
    presentation,
    size_option,
    split,
)
from convlint.files.languages import language_asked
from convlint.model.layer import MODES


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
    allow: Allow = None,
    strict: Strict = False,
    output: Output = None,
    rules: Rules = None,
    config: ConfigFile = None,
    isolated: Isolated = False,
    lang: Lang = None,
    quiet: Quiet = False,
    color: Color = "auto",
) -> None:
    """Check one layer given by flags."""
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
        config=config,
        isolated=isolated,
        language=language_asked(lang),
    )
    shown = presentation(output, color, quiet=quiet)
    flags = LayerFlags(
        N=N, C=C, H=H, W=W, K=K, R=R, S=S, D=D, T=T, P=P, Q=Q,
        stride=stride, pad=pad, dilation=dilation, groups=groups, op=op, output_padding=output_padding,
        dtype=dtype, layout=layout, runtime=tuple(runtime or ()),
    )  # fmt: skip
    raise typer.Exit(command.layer(flags.given(), options, shown))


class LayerFlags(Struct, frozen=True, kw_only=True):
    """One layer as flags give it, under the names of a spec."""

    N: str | None = None
    C: str | None = None
    H: str | None = None
    W: str | None = None
    K: str | None = None
    R: str | None = None
    S: str | None = None
    D: str | None = None
    T: str | None = None
    P: str | None = None
    Q: str | None = None
    stride: str | None = None
    pad: str | None = None
    dilation: str | None = None
    groups: str | None = None
    op: str | None = None
    output_padding: str | None = None
    dtype: str | None = None
    layout: str | None = None
    runtime: tuple[str, ...] = ()  # KEY=VALUE

    def given(self) -> dict[str, str]:
        """The flags that were given; settings of the runtime as `runtime.KEY`. Raises UsageError."""
        texts = {name: getattr(self, name) for name in self.__struct_fields__ if name != "runtime"}
        flags: dict[str, str] = {name: text for name, text in texts.items() if text is not None}
        if "D" in flags or "T" in flags:
            flags["dims"] = "3"
        from convlint.checking.one_input import pairs_of

        return flags | {f"runtime.{key}": text for key, text in pairs_of(self.runtime).items()}
