"""The command line of `convlint plan`."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Annotated

import typer

from convlint.cli.options import (
    Allow,
    Batch,
    ChannelsLast,
    Color,
    Inputs,
    Isolated,
    ModeOption,
    ModuleTimeout,
    OneInput,
    OneModel,
    RuntimeOption,
    TraceOption,
    allowances,
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
    from convlint.engine.steps import Wishes

FORMATS = ("text", "json", "markdown", "html")
FIXED = "fixed"  # stands for a dtype or a layout that is to stay
_KEPT = ("results",)
_PERCENT = re.compile(r"\+?(\d{1,9}(?:\.\d{1,9})?) ?%", re.ASCII)
_TIME = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(us|ms|s)", re.ASCII)
_IN_US = {"us": 1.0, "ms": 1e3, "s": 1e6}


def plan(
    path: OneInput = None,
    model: OneModel = None,
    gpu: Annotated[
        list[str] | None,
        typer.Option("--gpu", "-g", help="The GPU. Default: the spec's first, else a100.", show_default=False),
    ] = None,
    mode: ModeOption = None,
    batch: Batch = None,
    inputs: Inputs = None,
    channels_last: ChannelsLast = False,
    module_timeout: ModuleTimeout = None,
    trace: TraceOption = None,
    runtime: RuntimeOption = None,
    dtype: Annotated[
        str | None,
        typer.Option("--dtype", help="What layers are computed in; or fixed: as it is.", show_default=False),
    ] = None,
    layout: Annotated[
        str | None, typer.Option("--layout", help="NCHW, NHWC or auto; or fixed: as it is.", show_default=False)
    ] = None,
    fixed: Annotated[
        list[str] | None,
        typer.Option("--fixed", help="What stays: dtype, layout, batch or channels; repeatable.", show_default=False),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep", metavar="results", help="Only safe steps, as check --fix: neither network nor weights change.",
            show_default=False,
        ),
    ] = None,
    allow: Allow = None,
    max_params: Annotated[
        str | None,
        typer.Option("--max-params", metavar="PERCENT", help="How many more, such as +5%.", show_default=False),
    ] = None,
    max_flops: Annotated[
        str | None,
        typer.Option("--max-flops", metavar="PERCENT", help="How many more, such as +5%.", show_default=False),
    ] = None,
    target_time: Annotated[
        str | None,
        typer.Option(
            "--target-time", metavar="TIME", help="Of one step, such as 10ms: no more than that needs.",
            show_default=False,
        ),
    ] = None,
    write: Annotated[
        str | None,
        typer.Option("--write", metavar="FILE", help="The changed network, as a spec.", show_default=False),
    ] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output", "-o", metavar="FORMAT[=FILE]", help=f"{listed(FORMATS)}; repeatable.", show_default=False
        ),
    ] = None,
    isolated: Isolated = False,
    color: Color = "auto",
) -> None:  # fmt: skip
    """Plan what to change in a whole network, step by step. Exit code 1 where --target-time is out of reach.

    A step saves at least 0.1 % of the network's time; one on channels also 1 % of its layers', and no channels become a
    worse multiple of 8.
    """
    from convlint.checking.one_input import Job
    from convlint.cli.commands import plan as command
    from convlint.cli.streams.outputs import Presentation, parse_outputs

    if (path is None) == (model is None):
        raise UsageError("give one input: a PATH, or a model of the config with --model NAME")
    gpus = gpu_names(gpu)
    if len(gpus) > 1:
        raise UsageError("--gpu: a plan is for one GPU")
    if write == "-":
        raise UsageError("--write: needs the name of a file")
    asked = running(runtime, None if dtype == FIXED else dtype, None if layout == FIXED else layout)
    stays = [*(fixed or ()), *(lot for lot, value in (("dtype", dtype), ("layout", layout)) if value == FIXED)]
    job = Job(
        gpus=gpus, mode=one_of("--mode", mode, MODES),
        reading=read_options(batch, inputs, module_timeout, trace, channels_last),
        asked=asked, isolated=isolated, allow=frozenset(allowances(allow)),
    )  # fmt: skip
    wishes = _wishes(stays, keep, max_params, max_flops, target_time)
    shown = Presentation(outputs=parse_outputs(output or (), FORMATS), color=color_of(color))
    raise typer.Exit(command.run(path, model, job, wishes, shown, write))


def _wishes(
    fixed: list[str], keep: str | None, max_params: str | None, max_flops: str | None, target_time: str | None
) -> Wishes:
    """Raises UsageError."""
    from convlint.engine.steps import LOTS, Wishes

    one_of("--keep", keep, _KEPT)
    return Wishes(
        keeps_results=keep is not None,
        fixed=frozenset(lot for value in fixed if (lot := one_of("--fixed", value, LOTS)) is not None),
        max_parameters=share("--max-params", max_params),
        max_flops=share("--max-flops", max_flops),
        target_us=None if target_time is None else time_us(target_time),
    )


def share(option: str, text: str | None) -> float | None:
    """`+5%` as 0.05. Raises UsageError."""
    if text is None:
        return None
    found = _PERCENT.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{option}: {text!r} is no share to add, such as +5%")
    return float(found[1]) / 100


def time_us(text: str) -> float:
    """`10ms` as 10000. Raises UsageError."""
    found = _TIME.fullmatch(text.strip())
    value = 0.0 if found is None else float(found[1]) * _IN_US[found[2]]
    if not value or not math.isfinite(value):
        raise UsageError(f"--target-time: {text!r} is no time, such as 10ms (us, ms or s)")
    return value
