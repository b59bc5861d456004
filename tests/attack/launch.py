"""Runs one command and measures it, from a process too small to affect the measured memory.

A script of the standard library alone. It is given an order as JSON and writes what it saw as JSON to `report` in it:
the exit code, CPU seconds of the command and of all its reaped descendants, and peak memory in MB. Memory is the larger
of two numbers: the kernel's own peak of the largest single process, which is exact, and the sum over the whole tree of
proportional set sizes, which is sampled. Where there is no /proc, only the first is known.
"""

import json
import os
import resource
import signal
import sys
import time
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")
GRACE_S = 1.0  # for children that are about to end when the command does


def main() -> None:
    order = json.loads(sys.argv[1])
    pid = os.fork()
    if pid == 0:
        become(order)
    seen = watch(pid, order)
    seen["orphans"] = orphans(order["marker"])
    with open(order["report"], "w", encoding="utf-8") as stream:
        json.dump(seen, stream)


def become(order: dict[str, Any]) -> None:
    """Turns the forked process into the command."""
    try:
        os.setsid()
        os.chdir(order["cwd"])
        for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        for name, most in order["limits"].items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
        for descriptor in order["closed"]:
            os.close(descriptor)
        os.execve(order["argv"][0], order["argv"], order["env"])
    finally:
        os._exit(97)


def watch(pid: int, order: dict[str, Any]) -> dict[str, Any]:
    """Waits for the command, samples it, sends it the signal that is ordered, and ends it where it goes too far."""
    started = time.monotonic()
    peak = 0.0
    stopped = ""
    due = order["signal"]
    sent_at = None
    while True:
        done, status, used = os.wait4(pid, os.WNOHANG)
        if done:
            break
        tree = descendants(pid)
        size = sum(map(proportional_mb, tree))
        peak = max(peak, size)
        if due is not None and is_ready(pid, tree, due["when"]):
            time.sleep(due["delay"])
            os.killpg(pid, due["number"])
            due, sent_at = None, time.monotonic()
        elapsed = time.monotonic() - started
        if not stopped and (elapsed > order["wall_s"] or sum(map(cpu_s, tree)) > order["cpu_s"] or size > order["mb"]):
            stopped = f"stopped after {elapsed:.0f} s, {sum(map(cpu_s, tree)):.1f} s of CPU, at {size:.0f} MB"
            for member in tree:
                kill(member)
        time.sleep(0.005 if due is not None else 0.02)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "cpu_s": used.ru_utime + used.ru_stime,
        "mb": max(peak, used.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)),
        "stopped": stopped,
        "signalled": sent_at is not None,
    }


def is_ready(pid: int, tree: list[int], when: str) -> bool:
    """Whether the time for the signal has come: it reads standard input, has a child, or has made a file."""
    if when == "reads":
        return read_text(f"/proc/{pid}/syscall").startswith("0 0x0 ")
    if when == "child":
        return len(tree) > 1
    return os.path.exists(when)


def descendants(pid: int) -> list[int]:
    """The process and everything below it."""
    found = [pid]
    for parent in found:
        try:
            threads = os.listdir(f"/proc/{parent}/task")
        except OSError:
            continue
        for thread in threads:
            found += map(int, read_text(f"/proc/{parent}/task/{thread}/children").split())
    return found


def proportional_mb(pid: int) -> float:
    for line in read_text(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def cpu_s(pid: int) -> float:
    fields = read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS if len(fields) > 15 else 0.0


def orphans(marker: str) -> list[str]:
    """Command lines of the processes that the command left running after a moment; kills them."""
    deadline = time.monotonic() + GRACE_S
    left = marked(marker)
    while left and time.monotonic() < deadline:
        time.sleep(0.02)
        left = marked(marker)
    for pid in left:
        kill(pid)
    return list(left.values())


def marked(marker: str) -> dict[int, str]:
    found = {}
    if not os.path.isdir("/proc/self"):
        return found
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid() and f"{marker}\0" in read_text(f"/proc/{name}/environ") + "\0":
            found[int(name)] = read_text(f"/proc/{name}/cmdline").replace("\0", " ")[:200]
    return found


def read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except (OSError, ValueError):
        return ""


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return


if __name__ == "__main__":
    main()
