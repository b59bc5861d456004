"""The command line of `convlint layer`, and the options that describe one layer."""

from __future__ import annotations

from typing import Annotated

import typer
from msgspec.structs import asdict, replace

from convlint.cli.options import (
    AdviceFlags,
    Flags,
    JudgeFlags,
    Lang,
    LayerSettingFlags,
    Output,
    Pad,
    ProjectFlags,
    Rules,
    ShowFlags,
    allowances,
    option,
    presentation,
    size_option,
)
from convlint.files.languages import language_asked


class SizeFlags(Flags, frozen=True, kw_only=True):
    """The sizes of one layer, under the names of a spec."""

    N: Annotated[str | None, size_option("N", "Batch size.", "--batch")] = None
    C: Annotated[str | None, size_option("C", "Input channels.")] = None
    H: Annotated[str | None, size_option("H", "Input height.")] = None
    W: Annotated[str | None, size_option("W", "Input width.")] = None
    K: Annotated[str | None, size_option("K", "Output channels.")] = None
    R: Annotated[str | None, size_option("R", "Filter height.")] = None
    S: Annotated[str | None, size_option("S", "Filter width.")] = None
    D: Annotated[str | None, size_option("D", "Input depth (3-D).")] = None
    T: Annotated[str | None, size_option("T", "Filter depth (3-D).")] = None
    P: Annotated[str | None, size_option("P", "Output height, to be checked.")] = None
    Q: Annotated[str | None, size_option("Q", "Output width, to be checked.")] = None
    stride: Annotated[str | None, option("--stride", help_="U or U,V.")] = None
    pad: Pad = None
    dilation: Annotated[str | None, option("--dilation", help_="DilH or DilH,DilW.")] = None
    groups: Annotated[str | None, option("--groups", help_="Groups.")] = None


def layer(
    *,
    sizes: SizeFlags,
    settings: LayerSettingFlags,
    judging: JudgeFlags,
    advice: AdviceFlags,
    output: Output = None,
    rules: Rules = None,
    project: ProjectFlags,
    lang: Lang = None,
    shown: ShowFlags,
) -> None:
    """Check one layer given by flags."""
    from convlint.cli.commands import check as command

    options = replace(
        judging.options(rules, project),
        allow=allowances(advice.allow),
        strict=advice.strict,
        language=language_asked(lang),
    )
    outputs = presentation(output, shown, verbose=True)
    raise typer.Exit(command.layer(given(sizes, settings), options, outputs))


def given(sizes: Flags, settings: LayerSettingFlags) -> dict[str, str]:
    """The flags that describe the layer, as texts; settings of the runtime as `runtime.KEY`. Raises UsageError."""
    from convlint.mend.checking import pairs_of

    texts = asdict(sizes) | asdict(settings)
    runtime = texts.pop("runtime") or ()
    flags: dict[str, str] = {name: text for name, text in texts.items() if text is not None}
    if "D" in flags or "T" in flags:
        flags["dims"] = "3"
    return flags | {f"runtime.{key}": text for key, text in pairs_of(runtime).items()}
