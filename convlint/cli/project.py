"""The command line of `convlint init`, `rule`, `gpus`, `config`, `schema` and `export`."""

from __future__ import annotations

from typing import Annotated

import typer

from convlint.cli.options import (
    AdviceFlags,
    Batch,
    BuildFlags,
    Color,
    JudgeFlags,
    Lang,
    ProjectFlags,
    Rules,
    allowances,
    argument,
    color_of,
    gpus_and_aliases,
    mode_of,
    one_input,
    option,
    rule_keys,
)
from convlint.files.languages import language_asked


def init(
    folder: Annotated[
        str,
        argument("[FOLDER]", "Where the Python is. Default: the current folder."),
    ] = ".",
    diff: Annotated[bool, typer.Option("--diff", help="Print what would be written and write nothing.")] = False,
    color: Color = "auto",
) -> None:
    """Name the networks of a Python repository in its config, for check --models.

    Reads the code and runs none of it. Entries go to the end of convlint.toml or pyproject.toml, with guessed inputs.
    """
    from convlint.cli.commands import init as command

    raise typer.Exit(command.run(folder, diff=diff, color=color_of(color)))


def rule(
    key: Annotated[
        str | None,
        argument("[CODE|NAME]", "Which rule; all of them where none is named.", rule_keys),
    ] = None,
    test: Annotated[
        str | None,
        option("--test", metavar="DIR", help_="Run the examples of the rules in this folder."),
    ] = None,
    rules: Rules = None,
    lang: Lang = None,
    color: Color = "auto",
) -> None:
    """Explain a rule, list all rules, or test your own."""
    from convlint.cli.commands import rules as command

    raise typer.Exit(command.run(key, test, rules or (), color, language_asked(lang)))


def gpus(
    name: Annotated[
        str | None,
        argument("[NAME]", "Which GPU; all of them where none is named.", gpus_and_aliases),
    ] = None,
    color: Color = "auto",
) -> None:
    """List the GPUs that convlint knows, or show one with its sources."""
    from convlint.cli.commands import gpus as command

    raise typer.Exit(command.run(name, color))


def config(
    path: Annotated[
        str | None,
        argument("[PATH]", "The input whose settings are shown. Default: the current folder."),
    ] = None,
    *,
    project: ProjectFlags,
    judging: JudgeFlags,
    advice: AdviceFlags,
    rules: Rules = None,
    lang: Lang = None,
) -> None:
    """Show every setting in force for an input, and where it comes from; options are those of check."""
    from convlint.cli.commands import settings as command

    given: dict[str, command.Given | None] = {
        "target": judging.gpu,
        "mode": mode_of(judging.mode),
        "select": judging.select,
        "ignore": judging.ignore,
        "extend-select": judging.extend_select,
        "fail-on": judging.fails_on(),
        "min-loss": judging.min_loss,
        "allow": list(allowances(advice.allow)),
        "strict": "true" if advice.strict else None,
        "rules": rules,
        "lang": None if lang is None else language_asked(lang),
    }
    options = {key: value for key, value in given.items() if value is not None and value != []}
    raise typer.Exit(command.run(path or ".", project.config, options, isolated=project.isolated))


def schema(
    what: Annotated[str, typer.Argument(metavar="[spec|config]", help="Which files the schema is for.")] = "spec",
) -> None:
    """Print the JSON Schema of specs or of the config, for editors."""
    from convlint.cli.commands import schema as command

    raise typer.Exit(command.run(what))


def export(
    path: Annotated[
        str | None,
        argument("[PATH]", "A model: a file, package.module:name, or - for a spec on standard input."),
    ] = None,
    *,
    model: Annotated[str | None, option("--model", metavar="NAME", help_="A model of the config.")] = None,
    batch: Batch = None,
    build: BuildFlags,
    file: Annotated[
        str | None, option("--output", "-o", metavar="FILE", help_="Write here rather than to standard output.")
    ] = None,
) -> None:
    """Write what a reader sees in a model as a YAML spec, to edit and check again."""
    from convlint.cli.commands import export as command

    reading = build.read_options(batch)
    raise typer.Exit(command.run(one_input(path, model), reading, file))
