"""Options become typed values, or are refused with what is allowed."""

import os
import subprocess
import sys

import pytest
from command_line import convlint

from convlint.cli.options import (
    BuildFlags,
    ShowFlags,
    color_of,
    formats,
    gpus_and_aliases,
    one_of,
    presentation,
    rule_keys,
    split,
)
from convlint.model.errors import UsageError
from convlint.model.layer import MODES
from convlint.reporters import REPORTERS


def complete(*words: str) -> list[str]:
    """What bash is offered for the last of `words`."""
    line = " ".join(("convlint", *words))
    environment = {
        **os.environ, "_CONVLINT_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words)),
    }  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "-m", "convlint"], env=environment, capture_output=True, text=True, check=True
    )
    return ran.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["ch"], ["check"]),
        (["check", "--fail"], ["--fail-on"]),
        (["check", "--select", "CL90"], ["CL901", "CL902", "CL903"]),
        (["check", "--ignore", "channel-a"], ["channel-alignment"]),
        (["check", "--output", "jso"], ["json"]),
        (["check", "--gpu", "h100-n"], ["h100-nvl"]),
        (["gpus", "t4"], ["t4"]),
        (["rule", "unused-s"], ["unused-suppression"]),
        (["config", "--sel"], ["--select"]),
    ],
)
def test_the_shell_is_offered(words: list[str], offered: list[str]) -> None:
    assert complete(*words) == offered


def test_lists_are_completed_at_their_end() -> None:
    assert rule_keys("CL102,CL90") == [
        ("CL102,CL901", "unused-suppression"),
        ("CL102,CL902", "unknown-rule-in-suppression"),
        ("CL102,CL903", "expired-suppression"),
    ]
    assert "a100" in gpus_and_aliases("A1")
    assert formats("") == list(REPORTERS)


def test_completion_can_be_shown_for_the_shell() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "convlint", "--show-completion", "bash"], capture_output=True, text=True, check=False,
        # without it typer looks for the shell among its parents, of which a job in the background has none
        env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
    )  # fmt: skip
    assert "_CONVLINT_COMPLETE" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["check", "x.yaml", "--select", "CL1O2"], "'CL102'"),
        (["check", "x.yaml", "--ignore", "chanel-alignment"], "'channel-alignment'"),
        (["check", "x.yaml", "--gpu", "a10O"], "a10"),
        (["check", "x.yaml", "--output", "sarfi"], "'sarif'"),
        (["check", "x.yaml", "--fail-on", "warnings"], "'warning'"),
        (["check", "x.yaml", "--mode", "trainig"], "'training'"),
        (["check", "x.yaml", "--fail-no", "x"], "--fail-on"),
        (["rule", "CL9O1"], "'CL901'"),
        (["gpus", "h10O"], "h100"),
        (["schema", "confg"], "'config'"),
        (["chek"], "check"),
    ],
)
def test_did_you_mean(arguments: list[str], meant: str) -> None:
    ran = convlint(*arguments)
    assert ran.code == 2
    assert "id you mean" in ran.err or "Possible options" in ran.err  # the second: click, where several may be meant
    assert meant in ran.err


@pytest.mark.parametrize(
    "words", [["check", "--min-loss", "nan"], ["layer", "--min-loss=NaN"], ["compare", "a", "b", "--tolerance", "nan"]]
)
def test_what_is_no_number_is_no_limit(words: list[str]) -> None:
    ran = convlint(*words)
    assert (ran.code, ran.out) == (2, "")
    assert "nan: no number" in ran.err


@pytest.mark.parametrize("words", [{"COMP_CWORD": "x"}, {"COMP_CWORD": "99", "COMP_WORDS": "'"}, {}])
def test_a_shell_that_asks_nonsense_is_told_nothing(words: dict[str, str]) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "convlint"], capture_output=True, text=True, check=False,
        env={**os.environ, "_CONVLINT_COMPLETE": "complete_bash", **words},
    )  # fmt: skip
    assert ran.returncode in (0, 1, 2)
    assert "error" not in ran.stdout + ran.stderr


def test_one_of_those_allowed() -> None:
    assert one_of("--mode", None, MODES) is None
    assert one_of("--mode", "inference", MODES) == "inference"
    with pytest.raises(UsageError, match="--mode: 'train' is not one of training, inference"):
        one_of("--mode", "train", MODES)
    with pytest.raises(UsageError, match="--color: 'on' is not one of auto, always, never"):
        color_of("on")


def test_the_first_of_several_wrong_options_is_told() -> None:
    with pytest.raises(UsageError, match="--color"):
        presentation(["jsn"], ShowFlags(color="on"))


def test_lists_of_words() -> None:
    assert split(["CL1,CL2", "CL3 CL4"]) == ("CL1", "CL2", "CL3", "CL4")
    assert split(None) == ()
    assert BuildFlags(inputs=["x=1x3", "4x3", "5"]).read_options().inputs == {"x": "1x3", "": "4x3,\n5"}


def test_a_dash_is_standard_output() -> None:
    known = ("text", "json")
    assert presentation(["json=-"], ShowFlags(), known=known).outputs[0].file is None
    with pytest.raises(UsageError, match="unknown format '=json'"):
        presentation(["=json"], ShowFlags(), known=known)
    ran = convlint("check", "-", "--write-baseline", "-", stdin="version: 1\n")
    assert (ran.code, ran.err) == (2, "convlint: error: --write-baseline: needs the name of a file\n")


@pytest.mark.parametrize("command", ["check", "config"])
def test_an_unknown_gpu_is_refused_by_what_shows_settings_too(command: str) -> None:
    ran = convlint(command, "--gpu", "a1000")
    assert ran.code == 2
    assert "unknown GPU 'a1000'" in ran.err


def test_an_empty_word_is_no_input() -> None:
    ran = convlint("check", "")
    assert ran.code == 3
    assert "an empty word names no input" in " ".join(ran.out.split())
    for command in ("estimate", "plan", "export"):
        assert convlint(command, "").code == 3


@pytest.mark.parametrize("options", [[], ["--fix"], ["--output", "sarif"]])
def test_standard_input_in_another_encoding_is_not_called_empty(options: list[str]) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "convlint", "check", "-", *options], input="version: 1\n".encode("utf-16"),
        capture_output=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 3
    assert b"is UTF-16 or UTF-32" in ran.stdout + ran.stderr
