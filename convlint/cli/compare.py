"""The command line of `convlint compare` and `convlint versions`."""

from typing import TYPE_CHECKING, Annotated

from convlint.cli import options as shared
from convlint.cli.arguments import argument, option
from convlint.model.errors import UsageError

if TYPE_CHECKING:
    from convlint.run.plan import Options

FORMATS = ("text", "json", "markdown")

Gpu = Annotated[list[str] | None, shared.gpu_option("Target GPU; repeat for several. Default: the spec's, else a100.")]
Tolerance = Annotated[
    float,
    option("--tolerance", metavar="PERCENT", min_=0.0, max_=1e6, help_="By how much a network may become slower."),
]
Output = Annotated[list[str] | None, shared.output_option(f"{shared.listed(FORMATS)}; repeatable.")]


def _options(
    gpu: list[str] | None, mode: str | None, reading: shared.ReadFlags, running: shared.RunFlags,
    project: shared.ProjectFlags, *, files_only: bool, models: tuple[str, ...] | None = None,
) -> "Options":  # fmt: skip
    """What both commands ask of a check. Raises UsageError."""
    from convlint.run.plan import Options

    return Options(
        gpus=shared.gpu_names(gpu), mode=shared.mode_of(mode), reading=reading.options(), running=running.running(),
        config=project.config, isolated=project.isolated, modules=not files_only, jobs=0, models=models,
    )  # fmt: skip


def compare(
    *,
    old: Annotated[str, argument("OLD", "A spec, a model, a folder, or a JSON report of check.")],
    new: Annotated[str, argument("NEW", "The same as it is now.")],
    gpu: Gpu = None,
    mode: shared.ModeOption = None,
    tolerance: Tolerance = 5.0,
    output: Output = None,
    reading: shared.ReadFlags,
    running: shared.RunFlags,
    files_only: shared.FilesOnly = False,
    project: shared.ProjectFlags,
    color: shared.Color = "auto",
) -> int:
    """Hold two versions of a network against each other: what became slower, faster or heavier.

    Exit code 1 where a network takes more than --tolerance longer or has a new error, 3 where that cannot be told.
    """
    from convlint.cli.commands import compare as command

    options = _options(gpu, mode, reading, running, project, files_only=files_only)
    shown = shared.presentation(output, shared.ShowFlags(color=color), known=FORMATS)
    return command.compare(old, new, options, shown, tolerance)


def versions(
    *,
    paths: Annotated[
        list[str] | None,
        argument("PATH…", "Specs, models, folders or package.module:name. Default: the current folder."),
    ] = None,
    before: Annotated[
        str | None,
        option("--from", metavar="VERSION|FILE", help_="A release of the framework, or a lock file. Default: as now."),
    ] = None,
    after: Annotated[
        str | None, option("--to", metavar="VERSION|FILE", help_="The release or lock file to change to.")
    ] = None,
    models: shared.ModelFlags,
    gpu: Gpu = None,
    mode: shared.ModeOption = None,
    tolerance: Tolerance = 5.0,
    output: Output = None,
    reading: shared.ReadFlags,
    running: shared.RunFlags,
    files_only: shared.FilesOnly = False,
    project: shared.ProjectFlags,
    color: shared.Color = "auto",
) -> int:
    """Say what another release of the framework, or another lock file, does to a network, before anybody installs it.

    Of a bare release of PyTorch, CUDA and cuDNN are those of its wheel on PyPI; 2.9.1+cu126 names another. Exit codes
    are those of compare.
    """
    from convlint.cli.commands import compare as command

    if after is None:
        raise UsageError("give --to VERSION or --to FILE")
    options = _options(gpu, mode, reading, running, project, files_only=files_only, models=models.names())
    shown = shared.presentation(output, shared.ShowFlags(color=color), known=FORMATS)
    return command.versions(paths or (), before, after, options, shown, tolerance)
