"""The command line of `convlint audit`."""

from typing import Annotated

from msgspec.structs import replace

from convlint.cli import options as shared
from convlint.cli.arguments import Flags, argument, option
from convlint.model.errors import UsageError


class AuditFlags(Flags, frozen=True, kw_only=True):
    """What is audited, where, and what is kept of it."""

    models_from: Annotated[
        list[str] | None,
        option(
            "--models-from",
            metavar="FILE",
            help_="A list of models: one per line with key=value behind it, .csv or .jsonl; - for standard input; "
            "repeatable.",
        ),
    ] = None
    output: Annotated[
        list[str] | None,
        shared.output_option(
            "text or json for the answer; parquet=FILE, csv=FILE or jsonl=FILE for tables; repeatable."
        ),
    ] = None
    weights: Annotated[
        str | None,
        option("--weights", metavar="FILE", help_="CSV with the columns model and gpu_hours, and gpu."),
    ] = None
    resume: Annotated[
        bool, option("--resume", help_="Go on with the audit of these tables: only what is new or changed.")
    ] = False
    jobs: shared.Jobs = "auto"
    cluster: Annotated[
        str | None,
        option("--cluster", metavar="ADDRESS", help_="A running Ray cluster: ray://HOST:PORT or auto."),
    ] = None
    ship_limit: Annotated[
        int,
        option("--ship-limit", metavar="MIB", help_="Largest file to send to a cluster that does not see it.", min_=0),
    ] = 256
    top: Annotated[int, option("--top", metavar="N", help_="Entries of each ranking.", min_=1, max_=1000)] = 10


def audit(
    *,
    paths: Annotated[
        list[str] | None,
        argument(
            "PATH…",
            "Specs, models, folders, globs or package.module:name. Default: the current folder, where there is "
            "no --models-from.",
        ),
    ] = None,
    asked: AuditFlags,
    models: shared.ModelFlags,
    judging: shared.JudgeFlags,
    rules: shared.Rules = None,
    reading: shared.ReadFlags,
    running: shared.RunFlags,
    allow_empty: Annotated[bool, option("--allow-empty", help_="Nothing to audit is no error.")] = False,
    files_only: shared.FilesOnly = False,
    project: shared.ProjectFlags,
    shown: shared.ShowFlags,
) -> int:
    """Audit any number of models into tables, and rank what loses most.

    A model that fails is a row among the errors. Exit code 1 where a finding is at or above --fail-on, 3 where
    anything could not be read.
    """
    from convlint.cli.commands import audit as command

    jobs = shared.jobs_of(asked.jobs)
    if asked.cluster is not None and jobs > 1:
        raise UsageError("--cluster and --jobs contradict each other: the cluster has workers of its own")
    options = replace(
        judging.options(rules, project),
        reading=reading.options(),
        running=running.running(),
        jobs=jobs,
        allow_empty=allow_empty,
        models=models.names(),
        modules=not files_only,
    )
    outputs = shared.presentation(asked.output, shown, known=command.FORMATS, files_only=command.TABLES)
    return command.run(paths or [], asked, options, outputs)
