"""What a command line says, read without Typer, is what Typer reads of it; what is not plain is left to Typer."""

import subprocess
import sys
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import NODEFAULT

from convlint.cli import app, arguments
from convlint.cli.arguments import COMMANDS, Flags, call, grouped, load_command, option, parameters, read

VALUES = (
    "x.yaml", "8", "0", "-1", "1.5", "100", "101", ".5", "5.", "nan", "1e3", "1_0", " 8", "８", "9999999999", "", "-",
    "--", "a=b", "--x=y", "-x", "Nx3x224x224",
)  # fmt: skip


def command_lines(name: str) -> st.SearchStrategy[list[str]]:
    """Words that a user may put behind the command's name: options, values of them, and what is neither."""
    names = [each for parameter in parameters(load_command(name)) for each in parameter.option.names]
    values, options = st.sampled_from(VALUES), st.sampled_from([*names, "--no-such", "-qv", "--help", "-ga100"])
    given_ = st.tuples(options, values)
    word = st.one_of(given_.map(list), given_.map(lambda pair: ["=".join(pair)]), options.map(lambda each: [each]),
                     values.map(lambda each: [each]))  # fmt: skip
    return st.lists(word, max_size=6).map(lambda words: [each for word in words for each in word])


def told(command: Any, taken: list[dict[str, Any]]) -> Any:
    """A stand-in for the command: the same options, but it keeps what it is given."""

    def keeps(**values: Any) -> int:
        taken.append(values)
        return 0

    keeps.__annotations__, keeps.__kwdefaults__ = command.__annotations__, command.__kwdefaults__
    return keeps


@pytest.mark.parametrize("name", COMMANDS)
@given(data=st.data())
def test_typer_reads_the_same(name: str, data: st.DataObject) -> None:
    words = [name, *data.draw(command_lines(name))]
    taken: list[dict[str, Any]] = []
    command = told(load_command(name), taken)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arguments, "load_command", lambda _: command)
        patch.setattr(app, "load_command", lambda _: command)
        if call(words) is None:
            assert taken == []
            return
        patch.setattr(app.LazyCommands, "get_command", lambda _, ctx, asked: app._built(asked))
        assert app.run(words) == 0
    assert taken[0] == taken[1]


@pytest.mark.parametrize(
    "words",
    [
        ["check"],
        ["check", "a.yaml", "-", "--gpu", "a100", "-g", "h100", "--fail-on=never", "-q"],
        ["check", "--min-loss", "2.5", "--jobs", "2", "--batch=8", "--output", "json=out.json", "a"],
        ["layer", "-C", "64"],
        ["compare", "old.yaml", "new.yaml", "--tolerance", "7"],
        ["gpus", "t4"],
    ],
)
def test_what_is_plain_is_read_here(words: list[str]) -> None:
    assert read(words[1:], list(parameters(load_command(words[0])))) is not None


@pytest.mark.parametrize(
    "words",
    [
        [], ["chek"], ["--version"], ["check", "--help"], ["check", "--no-such"], ["check", "-qv"], ["check", "--gpu"],
        ["check", "--gpu", "-q"], ["check", "--batch", "0"], ["check", "--batch", "x"], ["check", "--min-loss", "nan"],
        ["check", "--min-loss", "101"], ["check", "--fix=yes"], ["check", ""], ["check", "--", "a"], ["gpus", "a", "b"],
        ["compare", "old.yaml"], ["layer", "-K=64"], ["sweep", "--plot"],
    ],
)  # fmt: skip
def test_what_is_not_plain_is_left_to_typer(words: list[str]) -> None:
    assert call(words) is None


def test_a_shell_that_asks_for_completion_is_answered_by_typer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_CONVLINT_COMPLETE", "complete_bash")
    assert call(["gpus"]) is None


class Inner(Flags, frozen=True, kw_only=True):
    deep: Annotated[bool, option("--deep", help_="How deep.")] = False


class Outer(Flags, frozen=True, kw_only=True):
    first: Annotated[str, option("--first", help_="The first.")] = "a"
    inner: Inner
    last: Annotated[list[str] | None, option("--last", help_="The last.")] = None


def grouping(
    *,
    path: Annotated[str, option("--path", help_="Where.")],
    outer: Outer,
    end: Annotated[int, option("--end", help_="The end.")] = 1,
) -> int:
    return len(path) + end + outer.inner.deep


def test_a_command_has_the_options_of_its_groups_in_their_place() -> None:
    known = list(parameters(grouping))
    assert [each.name for each in known] == ["path", "first", "deep", "last", "end"]
    assert [each.default for each in known] == [NODEFAULT, "a", False, None, 1]
    values = read(["--path", "x", "--deep", "--last", "b", "--last=c", "--end", "2"], known)
    assert values is not None
    assert grouped(grouping, values) == {
        "path": "x", "outer": Outer(inner=Inner(deep=True), last=["b", "c"]), "end": 2,
    }  # fmt: skip


def test_a_check_loads_no_typer() -> None:
    code = (
        "import sys; from convlint.__main__ import _run; "
        "assert _run(['check', '--fail-on', 'never', 'sample_configs']) == 0; "
        "print([name for name in ('typer', 'click', 'rich', 'inspect') if name in sys.modules], file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr.splitlines()[-1] == "[]"
