"""The commands, how their options are declared, and how a command line on which nothing is wrong is read.

A command is one function and one line in `COMMANDS`. Its parameters say in their annotations what they are:
`Annotated[TYPE, option(...)]`, or a record of `Flags`, which stands for one option per field. Help, completion and
whatever is to be said of a command line are Typer's (`app`); it takes a quarter of the time of a network's check to
load, so that it is asked only then.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, get_args, get_origin

from convlint.files.libraries import load_msgspec

load_msgspec()

from msgspec import NODEFAULT, Struct  # noqa: E402

# name -> module in this package, and the function in it; loaded only when that command is asked for
COMMANDS: Mapping[str, str] = {
    "check": "check:check",
    "init": "project:init",
    "layer": "check:layer",
    "estimate": "estimate:estimate",
    "plan": "plan:plan",
    "compare": "compare:compare",
    "versions": "compare:versions",
    "measure": "measure:measure",
    "audit": "audit:audit",
    "sweep": "estimate:sweep",
    "rule": "project:rule",
    "gpus": "project:gpus",
    "config": "project:config",
    "schema": "project:schema",
    "export": "project:export",
}

Command = Callable[..., int]  # with keywords only; returns the exit code


class Option(Struct, frozen=True, kw_only=True):
    """What an option, or an argument, is called and says of itself; `complete` is what a shell offers for its start."""

    names: tuple[str, ...]  # none: an argument, known by its place
    help: str
    metavar: str | None = None
    complete: Callable[[str], list[Any]] | None = None
    min: float | None = None
    max: float | None = None


class Flags(Struct, frozen=True, kw_only=True):
    """A group of options; every field has a default, or is a group itself."""


class Parameter(Struct, frozen=True, kw_only=True):
    """One option or argument of a command."""

    name: str  # of the function's parameter, or of the field of its group
    annotation: Any
    default: Any  # NODEFAULT where it has to be given
    option: Option

    def type(self) -> tuple[Any, bool]:
        """What one value of it is, and whether it takes several: of `list[str] | None`, str and True."""
        kind = (get_args(self.annotation) or (self.annotation,))[0]
        return (str, True) if get_origin(kind) is list else (kind, False)


def option(
    *names: str, help_: str, metavar: str | None = None, complete: Callable[[str], list[Any]] | None = None,
    min_: float | None = None, max_: float | None = None,
) -> Option:  # fmt: skip
    """An option of these names."""
    return Option(names=names, help=help_, metavar=metavar, complete=complete, min=min_, max=max_)


def argument(metavar: str, help_: str, complete: Callable[[str], list[Any]] | None = None) -> Option:
    """What a command takes by its place."""
    return Option(names=(), help=help_, metavar=metavar, complete=complete)


def load_command(name: str) -> Command:
    """The function of a command."""
    module, _, function = COMMANDS[name].partition(":")
    command: Command = getattr(import_module(f"convlint.cli.{module}"), function)
    return command


def parameters(command: Any) -> Iterator[Parameter]:
    """All options of a command or of a group, in the order of their declaration."""
    defaults = getattr(command, "__kwdefaults__", None) or {}
    if is_group(command):
        defaults = dict(zip(command.__struct_fields__, command.__struct_defaults__, strict=True))
    for name, annotation in command.__annotations__.items():
        if is_group(annotation):
            yield from parameters(annotation)
        elif name != "return":
            base, declared = get_args(annotation)
            yield Parameter(name=name, annotation=base, default=defaults.get(name, NODEFAULT), option=declared)


def is_group(annotation: Any) -> bool:
    """Whether it stands for several options."""
    return isinstance(annotation, type) and issubclass(annotation, Flags)


def grouped(command: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a command's parameters, where `values` are those of single options."""
    return {
        name: annotation(**grouped(annotation, values)) if is_group(annotation) else values[name]
        for name, annotation in command.__annotations__.items()
        if name != "return"
    }


def call(words: list[str]) -> int | None:
    """Runs the command that the command line asks for and returns its exit code; None where Typer has to look."""
    if not words or words[0] not in COMMANDS or "_CONVLINT_COMPLETE" in os.environ:
        return None
    command = load_command(words[0])
    values = read(words[1:], list(parameters(command)))
    return None if values is None else command(**grouped(command, values))


def read(words: Iterable[str], known: list[Parameter]) -> dict[str, Any] | None:
    """The values of `known` by their names; None where a word is not plainly one of them."""
    values = {parameter.name: parameter.default for parameter in known}
    by_name = {name: parameter for parameter in known for name in parameter.option.names}
    loose: list[str] = []
    rest = iter(words)
    for word in rest:
        if not word:
            return None
        if not word.startswith("-") or word == "-":
            loose.append(word)
            continue
        name, attached, text = word.partition("=")
        parameter = by_name.get(name)
        if parameter is None or (attached and not name.startswith("--")):
            return None
        if parameter.annotation is bool and not attached:
            values[parameter.name] = True
            continue
        value = _value(text if attached else next(rest, ""), parameter)
        if value is None:
            return None
        values[parameter.name] = [*(values[parameter.name] or ()), value] if parameter.type()[1] else value
    for place in (parameter for parameter in known if not parameter.option.names):
        if loose and place.type()[1]:
            values[place.name], loose = loose, []
        elif loose:
            values[place.name] = loose.pop(0)
    return None if loose or NODEFAULT in values.values() else values


def _value(text: str, parameter: Parameter) -> Any:
    """What `text` says; None where it is no value of the parameter, or may be another option."""
    type_ = parameter.type()[0]
    if not text or text.startswith("-") or type_ is bool:
        return None
    if type_ is str:
        return text
    digits = text.isascii() and (text if type_ is int else text.replace(".", "", 1)).isdigit()
    least, most = parameter.option.min, parameter.option.max
    number = type_(text) if digits and len(text) < 10 else None
    return number if number is not None and (least or 0) <= number <= (number if most is None else most) else None
