"""The command line of `convlint plan`."""

import re
from typing import TYPE_CHECKING, Annotated

from convlint.cli import options as shared
from convlint.cli.arguments import Flags, option
from convlint.model.errors import UsageError

if TYPE_CHECKING:
    from convlint.engine.steps import Wishes

FORMATS = ("text", "json", "markdown", "html")
FIXED = "fixed"  # stands for a dtype or a layout that is to stay
_KEPT = ("results",)
_PERCENT = re.compile(r"\+?(\d{1,9}(?:\.\d{1,9})?) ?%", re.ASCII)
_TIME = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(us|ms|s)", re.ASCII)
_IN_US = {"us": 1.0, "ms": 1e3, "s": 1e6}


class WishFlags(Flags, frozen=True, kw_only=True):
    """What a plan may change, and how far it goes."""

    fixed: Annotated[
        list[str] | None, option("--fixed", help_="What stays: dtype, layout, batch or channels; repeatable.")
    ] = None
    keep: Annotated[
        str | None,
        option(
            "--keep", metavar="results", help_="Only safe steps, as check --fix: neither network nor weights change."
        ),
    ] = None
    allow: shared.Allow = None
    max_params: Annotated[
        str | None, option("--max-params", metavar="PERCENT", help_="How many more, such as +5%.")
    ] = None
    max_flops: Annotated[str | None, option("--max-flops", metavar="PERCENT", help_="How many more, such as +5%.")] = (
        None
    )
    target_time: Annotated[
        str | None,
        option(
            "--target-time",
            metavar="TIME",
            help_="Of the whole step, or of its convolutions where those alone are known: no more than 10ms needs.",
        ),
    ] = None

    def wishes(self, *stays: str) -> "Wishes":
        """The same for the planner, with what else `stays`. Raises UsageError."""
        from convlint.engine.steps import LOTS, Wishes

        shared.one_of("--keep", self.keep, _KEPT)
        fixed = (shared.one_of("--fixed", value, LOTS) for value in (*(self.fixed or ()), *stays))
        return Wishes(
            keeps_results=self.keep is not None,
            fixed=frozenset(lot for lot in fixed if lot is not None),
            max_parameters=share("--max-params", self.max_params),
            max_flops=share("--max-flops", self.max_flops),
            target_us=None if self.target_time is None else time_us(self.target_time),
        )


def plan(
    *,
    path: shared.OneInput = None,
    model: shared.OneModel = None,
    gpu: Annotated[list[str] | None, shared.gpu_option("The GPU. Default: the spec's first, else a100.")] = None,
    mode: shared.ModeOption = None,
    select: shared.Select = None,
    ignore: shared.Ignore = None,
    extend_select: shared.ExtendSelect = None,
    rules: shared.Rules = None,
    reading: shared.ReadFlags,
    runtime: shared.Runtime = None,
    versions: shared.Versions = None,
    dtype: Annotated[str | None, option("--dtype", help_="What layers are computed in; or fixed: as it is.")] = None,
    layout: Annotated[str | None, option("--layout", help_="NCHW, NHWC or auto; or fixed: as it is.")] = None,
    asked: WishFlags,
    write: Annotated[str | None, option("--write", metavar="FILE", help_="The changed network, as a spec.")] = None,
    output: Annotated[list[str] | None, shared.output_option(f"{shared.listed(FORMATS)}; repeatable.")] = None,
    isolated: shared.Isolated = False,
    color: shared.Color = "auto",
) -> int:
    """Plan what to change in a whole network, step by step. Exit code 1 where --target-time is out of reach.

    A change saves at least 0.1 % of the time of the layers that it touches, beside all others; no channels become a
    worse multiple of 8.
    """
    from convlint.cli.commands import plan as command
    from convlint.mend.checking import Job
    from convlint.run.plan import Options

    source = shared.one_input(path, model)
    gpus = shared.gpu_names(gpu)
    if len(gpus) > 1:
        raise UsageError("--gpu: a plan is for one GPU")
    if write == "-":
        raise UsageError("--write: needs the name of a file")
    runs = shared.RunFlags(
        runtime=runtime, dtype=None if dtype == FIXED else dtype, layout=None if layout == FIXED else layout,
        versions=versions,
    )  # fmt: skip
    job = Job(
        gpus=gpus, mode=shared.mode_of(mode), reading=reading.options(), asked=runs.running(), isolated=isolated,
        allow=frozenset(shared.allowances(asked.allow)),
    )  # fmt: skip
    wishes = asked.wishes(*(lot for lot, value in (("dtype", dtype), ("layout", layout)) if value == FIXED))
    shown = shared.presentation(output, shared.ShowFlags(color=color), known=FORMATS)
    chosen = Options(
        select=shared.split(select), ignore=shared.split(ignore), extend_select=shared.split(extend_select),
        rules=tuple(rules or ()), isolated=isolated,
    )  # fmt: skip
    return command.run(source, job, chosen, wishes, shown, write)


def share(option: str, text: str | None) -> float | None:
    """`+5%` as 0.05. Raises UsageError."""
    if text is None:
        return None
    match = _PERCENT.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{option}: {text!r} is no share to add, such as +5%")
    return float(match[1]) / 100


def time_us(text: str) -> float:
    """`10ms` as 10000. Raises UsageError."""
    match = _TIME.fullmatch(text.strip())
    value = 0.0 if match is None else float(match[1]) * _IN_US[match[2]]
    if not value:
        raise UsageError(f"--target-time: {text!r} is no time, such as 10ms (us, ms or s)")
    return value
