"""The progress bar: only on a terminal, only after a while, and gone at the end."""

from __future__ import annotations

import io
import subprocess
import sys
import time

import pytest

from convlint.cli.streams import outputs
from convlint.cli.streams.outputs import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, *, seconds: float, quiet: bool = False) -> str:
    with Progress(stream, quiet=quiet) as bar:
        bar.start(3)
        time.sleep(seconds)
        bar.done("a\x1b[31m.yaml")
        time.sleep(seconds / 2)
    return stream.getvalue()


def test_a_long_run_on_a_terminal_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "DELAY_S", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    text = shown(Terminal(), seconds=0.5)
    assert "checking" in text
    assert "1/3" in text
    assert "a.yaml" in text
    assert "\x1b[31m.yaml" not in text


@pytest.mark.parametrize(
    ("stream", "quiet", "delay"), [(io.StringIO(), False, 0.01), (Terminal(), True, 0.01), (Terminal(), False, 60.0)]
)
def test_otherwise_nothing_is_shown(
    stream: io.StringIO, quiet: bool, delay: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "DELAY_S", delay)
    assert shown(stream, seconds=0.1, quiet=quiet) == ""


def test_rich_is_loaded_only_for_the_bar() -> None:
    code = (
        "import sys\nfrom convlint.__main__ import _run\nimport convlint.cli.commands.check\n"
        "_run(['check', '-', '--isolated', '-o', 'concise'])\nassert 'rich.progress' not in sys.modules\n"
    )
    spec = "version: 1\nlayers:\n  - { C: 64, K: 64, R: 1, S: 1 }\n"
    subprocess.run([sys.executable, "-c", code], input=spec, text=True, check=True, capture_output=True)
