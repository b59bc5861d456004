"""What a process and all that it started take: processor time, and memory at the peak, pages that they share once.

Linux alone: /proc says it.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_EVERY_S = 0.1  # between looks at the memory
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Seconds on the clock and on processors, and bytes at the peak."""

    wall: float
    cpu: float
    peak: int
    printed: str


def taken(command: Sequence[str], *, cwd: Path, exits: Sequence[int] = (0,), beside: bool = False) -> Taken:
    """Runs a command and watches its tree. `beside`: what this process has started before counts too, a cluster.

    Those end with the command, and nobody waits for them: their time is what the last look has seen.
    """
    before = _times(tree(os.getpid())) if beside else {}
    begin = time.perf_counter()
    child = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    peak, seen, ended = [0], dict(before), threading.Event()

    def watch() -> None:
        while not ended.wait(_EVERY_S):
            peak[0] = max(peak[0], sum(map(_memory_of, tree(child.pid))))
            if beside:
                seen.update(_times(tree(os.getpid())))

    watching = threading.Thread(target=watch)
    watching.start()
    assert child.stdout is not None
    with child.stdout:
        printed = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    ended.set()
    watching.join()
    wall = time.perf_counter() - begin
    if child.returncode not in exits:
        raise SystemExit(f"exit {child.returncode}, expected {exits}: {' '.join(command)}\n{printed[-2000:]}")
    mine = {os.getpid(), child.pid}
    cpu = usage.ru_utime + usage.ru_stime
    cpu += sum(spent - before.get(pid, 0.0) for pid, spent in seen.items() if pid not in mine)
    return Taken(wall=wall, cpu=cpu, peak=peak[0], printed=printed)


def tree(root: int) -> list[int]:
    """A process and all that descends from it."""
    parents: dict[int, list[int]] = {}
    for pid in _processes():
        fields = _fields(pid)
        if fields:
            parents.setdefault(int(fields[1]), []).append(pid)
    found = [root]
    for pid in found:
        found += parents.get(pid, ())
    return found


def _times(pids: Sequence[int]) -> dict[int, float]:
    """Seconds that each process has taken itself."""
    return {pid: sum(map(int, fields[11:13])) / _TICKS for pid in pids if (fields := _fields(pid))}


def _processes() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _fields(pid: int) -> list[str]:
    """What /proc/PID/stat says behind the name; nothing of a process that has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _memory_of(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) << 10
