"""Runs the command line in this process and keeps what it prints."""

from __future__ import annotations

import io
import sys
from typing import NamedTuple
from unittest.mock import patch

from convlint.__main__ import _run


class Ran(NamedTuple):
    code: int
    out: str
    err: str


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
