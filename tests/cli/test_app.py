"""The table of commands, and how their options become typed values."""

import subprocess
import sys
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest
from command_line import convlint
from typer.core import TyperGroup

from convlint import cli
from convlint.cli.arguments import COMMANDS
from convlint.model.errors import UsageError


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_is_a_documented_function(name: str) -> None:
    module, _, function = COMMANDS[name].partition(":")
    document = getattr(import_module(f"convlint.cli.{module}"), function).__doc__
    assert document.split(".")[0] in " ".join(convlint(name, "--help").out.split())
    assert f"  {name} " in convlint("--help").out


def test_only_the_command_that_is_asked_for_is_loaded() -> None:
    modules = {place.partition(":")[0] for place in COMMANDS.values()}
    code = (
        "import sys; from convlint.__main__ import _run; _run(['gpus', 'a100']); "
        f"print('loaded', *sorted(name for name in {modules} if f'convlint.cli.{{name}}' in sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "loaded project"


def test_without_arguments_it_says_what_to_type() -> None:
    ran = convlint()
    assert (ran.code, ran.out) == (2, "")
    *steps, empty, last = ran.err.splitlines()
    assert [step.split("  ")[0] for step in steps] == [
        "convlint check mypkg.models:Net --input 64x3x224x224",
        "convlint check model.onnx --gpu h100",
        "convlint check .",
        "convlint init",
    ]
    assert (empty, last) == ("", "All commands: convlint --help")


def test_a_command_that_is_none_is_compared_with_all() -> None:
    ran = convlint("chek")
    assert (ran.code, ran.out) == (2, "")
    assert "No such command 'chek'" in ran.err
    if "suggest_commands" in signature(TyperGroup.__init__).parameters:  # newer versions of Typer
        assert "Did you mean 'check'" in ran.err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [(KeyboardInterrupt(), 130, ""), (EOFError("half"), 4, "EOFError: half"), (UsageError("odd"), 2, "odd")],
)
@pytest.mark.parametrize("words", [["gpus"], ["gpus", "--"]], ids=["plain", "read by Typer"])
def test_what_ends_a_command(
    monkeypatch: pytest.MonkeyPatch, words: list[str], error: BaseException, code: int, message: str
) -> None:
    from convlint.cli.commands import gpus

    def ends(*_: object) -> int:
        raise error

    monkeypatch.setattr(gpus, "run", ends)
    ran = convlint(*words)
    assert ran.code == code
    assert message in ran.err
    assert bool(message) == bool(ran.err)


def test_options_are_named_one_by_one() -> None:
    folder = Path(cli.__file__).parent
    assert [path.name for path in folder.rglob("*.py") if "locals()" in path.read_text(encoding="utf-8")] == []
