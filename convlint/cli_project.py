"""The command line of `convlint config` and `convlint schema`; `cli.py` adds both to the program."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer()


@app.command()
def config(
    path: Annotated[str | None, typer.Argument(metavar="[PATH]", help="The input whose settings are shown. Default: the current folder.", show_default=False)] = None,
    file: Annotated[str | None, typer.Option("--config", metavar="FILE", help="This config, rather than the closest one upward.", show_default=False)] = None,
    isolated: Annotated[bool, typer.Option("--isolated", "--no-config", help="No config at all.")] = False,
) -> None:
    """Show every setting in force for an input, and where it comes from."""
    from convlint.commands import settings as command

    raise typer.Exit(command.run(path or ".", file, isolated=isolated))


@app.command()
def schema(
    what: Annotated[str, typer.Argument(metavar="[spec|config]", help="Which files the schema is for.")] = "spec",
) -> None:
    """Print the JSON Schema of specs or of the config, for editors."""
    from convlint.commands import schema as command

    raise typer.Exit(command.run(what))
