"""The command line of `convlint rule`, `gpus`, `config`, `schema` and `export`."""

from __future__ import annotations

from typing import Annotated

import typer

from convlint.cli.options import (
    FAIL_ON,
    Allow,
    Batch,
    ChannelsLast,
    Color,
    ConfigFile,
    ExtendSelect,
    FailOnOption,
    Gpu,
    Ignore,
    Inputs,
    Isolated,
    Lang,
    MinLoss,
    ModeOption,
    ModuleTimeout,
    Rules,
    Select,
    Strict,
    allowances,
    gpus_and_aliases,
    one_of,
    read_options,
    rule_keys,
)
from convlint.files.languages import language_asked
from convlint.model.layer import MODES


def rule(
    key: Annotated[
        str | None,
        typer.Argument(
            metavar="[CODE|NAME]",
            help="Which rule; all of them where none is named.",
            show_default=False,
            autocompletion=rule_keys,
        ),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option("--test", metavar="DIR", help="Run the examples of the rules in this folder.", show_default=False),
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
        typer.Argument(
            metavar="[NAME]",
            help="Which GPU; all of them where none is named.",
            show_default=False,
            autocompletion=gpus_and_aliases,
        ),
    ] = None,
    color: Color = "auto",
) -> None:
    """List the GPUs that convlint knows, or show one with its sources."""
    from convlint.cli.commands import gpus as command

    raise typer.Exit(command.run(name, color))


def config(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="[PATH]",
            help="The input whose settings are shown. Default: the current folder.",
            show_default=False,
        ),
    ] = None,
    file: ConfigFile = None,
    isolated: Isolated = False,
    gpu: Gpu = None,
    mode: ModeOption = None,
    select: Select = None,
    ignore: Ignore = None,
    extend_select: ExtendSelect = None,
    fail_on: FailOnOption = None,
    min_loss: MinLoss = None,
    allow: Allow = None,
    strict: Strict = False,
    rules: Rules = None,
    lang: Lang = None,
) -> None:
    """Show every setting in force for an input, and where it comes from; options are those of check."""
    from convlint.cli.commands import settings as command

    given: dict[str, command.Given | None] = {
        "target": gpu, "mode": one_of("--mode", mode, MODES), "select": select, "ignore": ignore,
        "extend-select": extend_select, "fail-on": one_of("--fail-on", fail_on, FAIL_ON), "min-loss": min_loss,
        "allow": list(allowances(allow)),
        "strict": "true" if strict else None,
        "rules": rules, "lang": None if lang is None else language_asked(lang),
    }  # fmt: skip
    options = {key: value for key, value in given.items() if value is not None and value != []}
    raise typer.Exit(command.run(path or ".", file, options, isolated=isolated))


def schema(
    what: Annotated[str, typer.Argument(metavar="[spec|config]", help="Which files the schema is for.")] = "spec",
) -> None:
    """Print the JSON Schema of specs or of the config, for editors."""
    from convlint.cli.commands import schema as command

    raise typer.Exit(command.run(what))


def export(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="[PATH]",
            help="A model: a file, package.module:name, or - for a spec on standard input.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="A model of the config.", show_default=False)
    ] = None,
    batch: Batch = None,
    inputs: Inputs = None,
    channels_last: ChannelsLast = False,
    module_timeout: ModuleTimeout = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write here rather than to standard output.", show_default=False
        ),
    ] = None,
) -> None:
    """Write what a reader sees in a model as a YAML spec, to edit and check again."""
    from convlint.cli.commands import export as command

    raise typer.Exit(command.run(path, model, read_options(batch, inputs, module_timeout, None, channels_last), file))
