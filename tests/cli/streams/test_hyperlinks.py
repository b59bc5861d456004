"""Which terminals get links, by what their environments say."""

from __future__ import annotations

import io

import pytest

from convlint.cli.streams.hyperlinks import follows_links
from convlint.cli.streams.output import style_of


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "followed"),
    [
        ({}, False),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "linux"}, False),
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "alacritty"}, True),
        ({"VTE_VERSION": "4999"}, False),
        ({"VTE_VERSION": "5000"}, True),
        ({"VTE_VERSION": "7603"}, True),
        ({"VTE_VERSION": "0.50"}, False),
        ({"VTE_VERSION": "²"}, False),
        ({"VTE_VERSION": "9" * 5000}, True),
        ({"TERM_PROGRAM": "Apple_Terminal"}, False),
        ({"TERM_PROGRAM": "iTerm.app"}, True),
        ({"TERM_PROGRAM": "vscode"}, True),
        ({"COLORTERM": "truecolor"}, False),
        ({"COLORTERM": "xfce4-terminal"}, True),
        ({"WT_SESSION": "1"}, True),
        ({"KONSOLE_VERSION": "220401"}, True),
        ({"FORCE_HYPERLINK": "1"}, True),
        ({"FORCE_HYPERLINK": "0", "TERM": "xterm-kitty"}, False),
        ({"FORCE_HYPERLINK": "", "TERM": "xterm-kitty"}, True),
    ],
)
def test_a_terminal(environment: dict[str, str], followed: bool) -> None:
    assert follows_links(environment, terminal=True) is followed


def test_what_is_no_terminal_gets_them_only_where_that_is_forced() -> None:
    assert not follows_links({"TERM": "xterm-kitty", "WT_SESSION": "1"}, terminal=False)
    assert follows_links({"FORCE_HYPERLINK": "1"}, terminal=False)


@pytest.mark.parametrize(
    ("environment", "color", "linked"),
    [
        ({}, "auto", True),
        ({"NO_COLOR": "1"}, "auto", False),
        ({"NO_COLOR": "1"}, "always", True),
        ({}, "never", False),
        ({"TERM": "dumb", "WT_SESSION": "1"}, "auto", False),
        ({"FORCE_HYPERLINK": "0"}, "always", False),
    ],
)
def test_what_has_no_colours_has_no_links(
    environment: dict[str, str], color: str, linked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "NO_COLOR",
        "FORCE_COLOR",
        "FORCE_HYPERLINK",
        "VTE_VERSION",
        "TERM_PROGRAM",
        "COLORTERM",
        "WT_SESSION",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-kitty")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert style_of(Terminal(), color).links is linked
    assert not style_of(io.TextIOWrapper(io.BytesIO(), "utf-8"), color).links
