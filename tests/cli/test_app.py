"""The table of commands, and how their options become typed values."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest
from command_line import convlint
from typer.core import TyperGroup

from convlint import cli
from convlint.cli.app import COMMANDS
from convlint.cli.layer import LayerFlags
from convlint.cli.options import MODES, color_of, named_inputs, one_of, presentation, split
from convlint.cli.streams.outputs import Destination, files_of, parse_outputs
from convlint.errors import UsageError

TEXT, JSON = Destination(format="text"), Destination(format="json", file="a=b.json")


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


def test_a_command_that_is_none_is_compared_with_all() -> None:
    ran = convlint("chek")
    assert (ran.code, ran.out) == (2, "")
    assert "No such command 'chek'" in ran.err
    if "suggest_commands" in signature(TyperGroup.__init__).parameters:  # newer versions of Typer
        assert "Did you mean 'check'" in ran.err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [(KeyboardInterrupt(), 130, ""), (EOFError("half"), 4, "unexpected end: half"), (UsageError("odd"), 2, "odd")],
)
def test_what_ends_a_command(monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, message: str) -> None:
    from convlint.cli.commands import gpus

    def ends(*_: object) -> int:
        raise error

    monkeypatch.setattr(gpus, "run", ends)
    ran = convlint("gpus")
    assert ran.code == code
    assert message in ran.err
    assert bool(message) == bool(ran.err)


@pytest.mark.parametrize(
    ("values", "places"),
    [
        ((), (TEXT,)),
        (("json=a=b.json",), (JSON,)),
        (("text", "json=a=b.json"), (TEXT, JSON)),
        (("text=",), (TEXT,)),
    ],
)
def test_outputs(values: tuple[str, ...], places: tuple[Destination, ...]) -> None:
    assert parse_outputs(values, ("text", "json")) == places
    assert [use.path for use in files_of(places)] == [place.file for place in places if place.file]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (("jsn",), "unknown format 'jsn'; did you mean 'json'?; known are text, json, svg"),
        (("svg",), "--output svg needs a file: --output svg=FILE.svg"),
        (("text", "json"), "two formats write to standard output; give one of them a file: json=FILE"),
    ],
)
def test_outputs_that_are_refused(values: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_outputs(values, ("text", "json", "svg"), files_only=("svg",))
    assert str(caught.value) == message


def test_one_of_those_allowed() -> None:
    assert one_of("--mode", None, MODES) is None
    assert one_of("--mode", "inference", MODES) == "inference"
    with pytest.raises(UsageError, match="--mode: 'train' is not one of training, inference"):
        one_of("--mode", "train", MODES)
    with pytest.raises(UsageError, match="--color: 'on' is not one of auto, always, never"):
        color_of("on")


def test_the_first_of_several_wrong_options_is_told() -> None:
    with pytest.raises(UsageError, match="--color"):
        presentation(["jsn"], "on", quiet=False)


@pytest.mark.parametrize(
    ("flags", "given"),
    [
        (LayerFlags(), {}),
        (LayerFlags(C="3", pad="same"), {"C": "3", "pad": "same"}),
        (LayerFlags(T="3"), {"T": "3", "dims": "3"}),
        (LayerFlags(D="3"), {"D": "3", "dims": "3"}),
        (LayerFlags(runtime=("cudnn=8.9", "cuda=a=b")), {"runtime.cudnn": "8.9", "runtime.cuda": "a=b"}),
    ],
)
def test_flags_of_a_layer(flags: LayerFlags, given: dict[str, str]) -> None:
    assert flags.given() == given


def test_a_setting_without_a_value_is_refused() -> None:
    with pytest.raises(UsageError, match="--runtime: 'cudnn' is not KEY=VALUE"):
        LayerFlags(runtime=("cudnn",)).given()


def test_lists_of_words() -> None:
    assert split(["CL1,CL2", "CL3 CL4"]) == ("CL1", "CL2", "CL3", "CL4")
    assert split(None) == ()
    assert named_inputs(["x=1x3", "4x3", "5"]) == {"x": "1x3", "": "4x3,5"}


def test_options_are_named_one_by_one() -> None:
    folder = Path(cli.__file__).parent
    assert [path.name for path in folder.rglob("*.py") if "locals()" in path.read_text(encoding="utf-8")] == []
