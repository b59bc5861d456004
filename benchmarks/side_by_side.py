"""Timing two sides in turn, whole processes from outside, and the table of what came out."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

_COLUMNS = ("comparison", "convlint", "peer", "ratio", "CPU ratio", "aim")


class Cost(NamedTuple):
    """What one run took: seconds on the clock and on the processor, and bytes of memory at the peak (0: not known)."""

    wall: float
    cpu: float
    peak: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table. The ratios are ours over theirs, of medians; None where there is no peer."""

    name: str
    ours: str
    theirs: str = "-"
    ratio: float | None = None
    cpu_ratio: float | None = None
    aim: str

    def cells(self) -> tuple[str, ...]:
        """The line as texts, in the order of the columns."""
        ratios = ("-" if ratio is None else f"{ratio:.2f}" for ratio in (self.ratio, self.cpu_ratio))
        return self.name, self.ours, self.theirs, *ratios, self.aim


class Table:
    """Prints each line as soon as it is known, so that a long run can be watched: in columns or as Markdown."""

    def __init__(self, *, markdown: bool) -> None:
        self._markdown = markdown
        self._print(_COLUMNS)
        if markdown:
            self._print(["---"] * len(_COLUMNS))

    def add(self, row: Row) -> None:
        """One comparison."""
        self._print(row.cells())

    def leave_out(self, name: str, why: str) -> None:
        """One comparison that cannot be made here."""
        self._print((name, f"left out: {why}", "", "", "", "")) if self._markdown else print(f"{name}: left out: {why}")

    def _print(self, cells: Sequence[str]) -> None:
        if self._markdown:
            print(f"| {' | '.join(cells)} |", flush=True)
        else:
            name, ours, theirs, ratio, cpu_ratio, aim = cells
            print(f"{name:<78} {ours:>9} {theirs:>9} {ratio:>6} {cpu_ratio:>9}   {aim}", flush=True)


def process(command: Sequence[str], *, exits: int = 0, cwd: Path | None = None) -> Cost:
    """What one whole process with its children took; its output is thrown away.

    Ends the run where it exits otherwise than expected: a crash is quick, but no measurement. Python keeps a checkout's
    byte code as an installation has it, whatever the environment says: compiling is no part of a check.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile() as errors:
        begin = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, cwd=cwd, env=environment)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != exits:
            errors.seek(0)
            said = errors.read().decode(errors="replace")[-2000:]
            raise SystemExit(f"exit {child.returncode}, expected {exits}: {' '.join(command)}\n{said}")
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def call(function: Callable[[], object]) -> Cost:
    """What one call in this process took."""
    wall, cpu = time.perf_counter(), time.process_time()
    function()
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


def compare(
    name: str, ours: Callable[[], Cost], theirs: Callable[[], Cost], *, runs: int, warm_up: bool, aim: str
) -> Row:
    """Runs the two sides in turn."""
    if warm_up:
        ours(), theirs()
    pairs = [(ours(), theirs()) for _ in range(runs)]
    a, b = ([statistics.median(values) for values in zip(*side, strict=True)] for side in zip(*pairs, strict=True))
    return Row(
        name=name, ours=shown(a[0]), theirs=shown(b[0]), ratio=a[0] / b[0], cpu_ratio=a[1] / b[1] if b[1] else None,
        aim=aim,
    )  # fmt: skip


def shown(seconds: float) -> str:
    """A time in the unit that suits it."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.0f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} us"
