"""The command line of `convlint init`, `rule`, `gpus`, `config`, `schema` and `export`."""

from typing import Annotated

from convlint.cli import options as shared
from convlint.cli.arguments import argument, option
from convlint.files.languages import language_asked


def init(
    *,
    folder: Annotated[
        str,
        argument("[FOLDER]", "Where the Python is. Default: the current folder."),
    ] = ".",
    diff: Annotated[bool, option("--diff", help_="Print what would be written and write nothing.")] = False,
    color: shared.Color = "auto",
) -> int:
    """Name the networks of a Python repository in its config, for check --models.

    Reads the code and runs none of it. Entries go to the end of convlint.toml or pyproject.toml, with guessed inputs.
    """
    from convlint.cli.commands import init as command

    return command.run(folder, diff=diff, color=shared.color_of(color))


def rule(
    *,
    key: Annotated[
        str | None,
        argument("[CODE|NAME]", "Which rule; all of them where none is named.", shared.rule_keys),
    ] = None,
    test: Annotated[
        str | None,
        option("--test", metavar="DIR", help_="Run the examples of the rules in this folder."),
    ] = None,
    rules: shared.Rules = None,
    lang: shared.Lang = None,
    color: shared.Color = "auto",
) -> int:
    """Explain a rule, list all rules, or test your own."""
    from convlint.cli.commands import rules as command

    return command.run(key, test, rules or (), color, language_asked(lang))


def gpus(
    *,
    name: Annotated[
        str | None,
        argument("[NAME]", "Which GPU; all of them where none is named.", shared.gpus_and_aliases),
    ] = None,
    color: shared.Color = "auto",
) -> int:
    """List the GPUs that convlint knows, or show one with its sources."""
    from convlint.cli.commands import gpus as command

    return command.run(name, color)


def config(
    *,
    path: Annotated[
        str | None,
        argument("[PATH]", "The input whose settings are shown. Default: the current folder."),
    ] = None,
    project: shared.ProjectFlags,
    judging: shared.JudgeFlags,
    advice: shared.AdviceFlags,
    rules: shared.Rules = None,
    lang: shared.Lang = None,
) -> int:
    """Show every setting in force for an input, and where it comes from; options are those of check."""
    from convlint.cli.commands import settings as command
    from convlint.mend.checking import resolve_targets

    resolve_targets(shared.gpu_names(judging.gpu))  # refuses what check would refuse
    given: dict[str, command.Given | None] = {
        "target": judging.gpu,
        "mode": shared.mode_of(judging.mode),
        "select": judging.select,
        "ignore": judging.ignore,
        "extend-select": judging.extend_select,
        "fail-on": judging.fails_on(),
        "min-loss": judging.min_loss,
        "allow": list(shared.allowances(advice.allow)),
        "strict": "true" if advice.strict else None,
        "rules": rules,
        "lang": None if lang is None else language_asked(lang),
    }
    options = {key: value for key, value in given.items() if value is not None and value != []}
    return command.run(path or ".", project.config, options, isolated=project.isolated)


def schema(
    *,
    what: Annotated[str, argument("[spec|config]", "Which files the schema is for. Default: spec.")] = "spec",
) -> int:
    """Print the JSON Schema of specs or of the config, for editors."""
    from convlint.cli.commands import schema as command

    return command.run(what)


def export(
    *,
    path: Annotated[
        str | None,
        argument("[PATH]", "A model: a file, package.module:name, or - for a spec on standard input."),
    ] = None,
    model: Annotated[str | None, option("--model", metavar="NAME", help_="A model of the config.")] = None,
    batch: shared.Batch = None,
    build: shared.BuildFlags,
    file: Annotated[
        str | None, option("--output", "-o", metavar="FILE", help_="Write here rather than to standard output.")
    ] = None,
) -> int:
    """Write what a reader sees in a model as a YAML spec, to edit and check again."""
    from convlint.cli.commands import export as command

    reading = build.read_options(batch)
    return command.run(shared.one_input(path, model), reading, file)
