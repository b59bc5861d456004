"""Runs the command line in this process and keeps what it prints."""

import io
import signal
import sys
from typing import NamedTuple
from unittest.mock import patch

from convlint.__main__ import _run


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def default_interrupt() -> None:
    """For `preexec_fn`: a test run in the background hands on that interrupts are ignored, and Python keeps to that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def convlint(*arguments: str, stdin: str = "") -> Ran:
    """`convlint ARGUMENTS…` with that standard input."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n") for _ in range(2))
    source = io.TextIOWrapper(io.BytesIO(stdin.encode("utf-8", "surrogatepass")), encoding="utf-8")
    with patch.object(sys, "stdout", out), patch.object(sys, "stderr", err), patch.object(sys, "stdin", source):
        code = _run(list(arguments))
    texts = []
    for stream in (out, err):
        stream.flush()
        stream.seek(0)
        texts.append(stream.read())
    return Ran(code, *texts)
