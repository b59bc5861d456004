"""The command line of `convlint measure`."""

from typing import TYPE_CHECKING, Annotated

from convlint.cli import options as shared
from convlint.cli.arguments import Flags, option
from convlint.model.errors import UsageError

if TYPE_CHECKING:
    from convlint.gpus.devices import Kind

FORMATS = ("text", "json")
DEVICES: "tuple[Kind, ...]" = ("cuda", "cpu")


class TimingFlags(Flags, frozen=True, kw_only=True):
    """What is timed, and where timings are kept."""

    from_trace: Annotated[
        str | None,
        option("--from-trace", metavar="FILE", help_="Take the timings from a trace of PyTorch's profiler."),
    ] = None
    csv: Annotated[
        str | None,
        option("--csv", metavar="FILE", help_="Where timings are kept, and read from. Default: convlint-GPU.csv."),
    ] = None
    again: Annotated[bool, option("--again", help_="Time anew what the file has already.")] = False
    layers_only: Annotated[bool, option("--layers-only", help_="Do not try the fixes of findings.")] = False
    calibrate: Annotated[
        str | None,
        option("--calibrate", metavar="FILE", help_="Write what all timings of this GPU say of convlint's estimates."),
    ] = None
    limit_seconds: Annotated[
        float | None,
        option("--limit-seconds", metavar="SECONDS", help_="Begin nothing new then.", min_=0.0),
    ] = None


def measure(
    *,
    path: shared.OneInput = None,
    model: shared.OneModel = None,
    device: Annotated[str, option("--device", help_="cuda or cpu; the latter only tries the way.")] = "cuda",
    gpu: Annotated[
        str | None, shared.gpu_option("The GPU to predict for. Default: the one that times; on the CPU, the input's.")
    ] = None,
    mode: shared.ModeOption = None,
    reading: shared.ReadFlags,
    running: shared.RunFlags,
    timing: TimingFlags,
    output: Annotated[list[str] | None, shared.output_option(f"{shared.listed(FORMATS)}; repeatable.")] = None,
    quiet: shared.Quiet = False,
    isolated: shared.Isolated = False,
    color: shared.Color = "auto",
) -> int:
    """Time a network's convolutions on this machine's GPU, beside what is predicted, and try the advice.

    Runs PyTorch's convolutions, one pass at a time, or reads their times from a trace. Exit code 3 where something
    could not be timed.
    """
    from convlint.cli.commands import measure as command
    from convlint.mend.checking import Job

    if timing.from_trace is not None:
        if device != "cuda" or timing.again or timing.limit_seconds is not None:
            raise UsageError("--from-trace times nothing: leave out --device, --again and --limit-seconds")
        path = timing.from_trace if path is None and model is None else path
    source = shared.one_input(path, model)
    kind = shared.one_of("--device", device, DEVICES) or "cuda"
    gpus = shared.gpu_names([gpu] if gpu is not None else None)
    if len(gpus) > 1:
        raise UsageError("--gpu: times are held against predictions for one GPU")
    job = Job(
        gpus=gpus, mode=shared.mode_of(mode), reading=reading.options(), asked=running.running(), isolated=isolated
    )
    shown = shared.presentation(output, shared.ShowFlags(quiet=quiet, color=color), known=FORMATS)
    return command.run(source, job, kind, timing, shown)
