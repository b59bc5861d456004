"""What Typer does for the commands: help, completion, and what is wrong with a command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer
from msgspec import NODEFAULT
from typer.core import TyperGroup

from convlint import __version__
from convlint.cli.arguments import COMMANDS, Command, Parameter, grouped, load_command, parameters
from convlint.model.errors import UsageError


class LazyCommands(TyperGroup):
    """The commands, each built when it is asked for: Typer's way from a function to its options takes time."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Without any argument, says what to type, with the exit code of wrong usage."""
        if not args and not ctx.resilient_parsing:  # a shell that asks for completions
            from convlint.reporters.words import first_steps

            typer.echo("\n".join((*first_steps(), "", "All commands: convlint --help")), err=True)
            raise typer.Exit(2)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """All of them, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, or None."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            self.commands[cmd_name] = _built(cmd_name)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """What is asked for; an unknown name is compared with all of them."""
        if args[0] not in COMMANDS:  # Typer suggests only commands that are built
            for name in COMMANDS:
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)


def _built(name: str) -> Any:
    """The command as Typer makes it: by an app of its own, so that the others need not be imported."""
    holder = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    holder.command(name)(_with_single_options(load_command(name)))
    return typer.main.get_command(holder)


def _with_single_options(command: Command) -> Any:
    """The command as a function that has every option by itself, as Typer wants it."""
    known = list(parameters(command))

    def with_options(**values: Any) -> None:
        for parameter in known:
            if (value := values[parameter.name]) != value:  # which Typer takes for a number, and no limit refuses
                raise UsageError(f"{parameter.option.names[0]} {value}: no number")
        _asked.append(partial(command, **grouped(command, values)))

    with_options.__doc__ = command.__doc__
    singles = [_single(parameter) for parameter in known]
    vars(with_options)["__signature__"] = inspect.Signature(singles)  # what Typer reads instead of **values
    return with_options


def _single(parameter: Parameter) -> inspect.Parameter:
    option = parameter.option
    ways: dict[str, Any] = {"metavar": option.metavar, "help": option.help, "autocompletion": option.complete}
    declared = (
        typer.Option(*option.names, **ways, min=option.min, max=option.max, show_default=parameter.default is not None)
        if option.names
        else typer.Argument(**ways, show_default=False)
    )
    default = inspect.Parameter.empty if parameter.default is NODEFAULT else parameter.default
    annotation: Any = Annotated[parameter.annotation, declared]
    return inspect.Parameter(parameter.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


app = typer.Typer(
    name="convlint",
    cls=LazyCommands,
    help="Linter and advisor for convolution layers on NVIDIA GPUs.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


_asked: list[Callable[[], int]] = []  # the command that Typer has read, with its options


def run(words: list[str]) -> int:
    """Has Typer read the command line, runs the command that it asks for and returns its exit code.

    The command runs when Typer is done: what it raises is none of Typer's business.
    """
    _asked.clear()
    try:
        app(words, prog_name="convlint")  # says what is wrong with the words, and exits
    except SystemExit as leaving:
        if not _asked:
            return leaving.code if isinstance(leaving.code, int) else 0
    return _asked.pop()()


def _version(value: bool) -> None:
    if value:
        typer.echo(f"convlint {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass
