"""The command line of `convlint audit`."""

from __future__ import annotations

from typing import Annotated

import typer
from msgspec.structs import replace

from convlint.cli.options import (
    FilesOnly,
    Flags,
    Jobs,
    JudgeFlags,
    ModelFlags,
    ProjectFlags,
    ReadFlags,
    Rules,
    RunFlags,
    ShowFlags,
    argument,
    listed,
    option,
    output_option,
    presentation,
)
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
        output_option(
            f"{listed(('text', 'json'))} for the answer; parquet=FILE, csv=FILE or jsonl=FILE for tables; repeatable."
        ),
    ] = None
    weights: Annotated[
        str | None,
        option("--weights", metavar="FILE", help_="CSV with the columns model and gpu_hours, and gpu."),
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the audit of these tables: only what is new or changed.")
    ] = False
    jobs: Jobs = "auto"  # type: ignore[assignment]  # parsed as what a user writes
    cluster: Annotated[
        str | None,
        option("--cluster", metavar="ADDRESS", help_="A running Ray cluster: ray://HOST:PORT or auto."),
    ] = None
    ship_limit: Annotated[
        int,
        typer.Option(
            "--ship-limit", metavar="MIB", help="Largest file to send to a cluster that does not see it.", min=0
        ),
    ] = 256
    top: Annotated[int, typer.Option("--top", metavar="N", help="Entries of each ranking.", min=1, max=1000)] = 10


def audit(
    paths: Annotated[
        list[str] | None,
        argument(
            "PATH…",
            "Specs, models, folders, globs or package.module:name. Default: the current folder, where there is "
            "no --models-from.",
        ),
    ] = None,
    *,
    asked: AuditFlags,
    models: ModelFlags,
    judging: JudgeFlags,
    rules: Rules = None,
    reading: ReadFlags,
    running: RunFlags,
    allow_empty: Annotated[bool, typer.Option("--allow-empty", help="Nothing to audit is no error.")] = False,
    files_only: FilesOnly = False,
    project: ProjectFlags,
    shown: ShowFlags,
) -> None:
    """Audit any number of models into tables, and rank what loses most.

    A model that fails is a row among the errors. Exit code 1 where a finding is at or above --fail-on, 3 where
    anything could not be read.
    """
    from convlint.cli.commands import audit as command

    if asked.cluster is not None and asked.jobs > 1:
        raise UsageError("--cluster and --jobs contradict each other: the cluster has workers of its own")
    options = replace(
        judging.options(rules, project),
        reading=reading.options(),
        running=running.running(),
        jobs=asked.jobs,
        allow_empty=allow_empty,
        models=models.names(),
        modules=not files_only,
    )
    outputs = presentation(asked.output, shown, known=command.FORMATS, files_only=command.TABLES)
    raise typer.Exit(command.run(paths or [], asked, options, outputs))
