"""Reads a block of mutated inputs in one process, and watches that process from outside.

`python -m attack.block KIND START END FOLDER` reads the inputs and leaves one byte for each in FOLDER/outcomes, so that
whoever watches knows which input it was that crashed, hung or grew.
"""

import json
import mmap
import os
import resource
import subprocess
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from . import entry, mutated

OUTCOMES = ("", "read", "incomplete", "refused", "checked", "breach", "died", "slow", "large")
BREACHES = ("breach", "died", "slow", "large")
SECONDS, MEGABYTES = 2.0, 200
CHECK_EVERY = 10  # so many are only read for one that is checked against all rules
SEARCHED = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]


@dataclass(slots=True, kw_only=True)
class Tally:
    """What became of a block's inputs."""

    counts: Counter[str] = field(default_factory=Counter)
    breaches: list[tuple[int, str]] = field(default_factory=list)  # seed, what was wrong


def run_block(kind: str, start: int, end: int, folder: Path) -> Tally:
    """Runs the seeds from `start` up to `end`; a process that dies or has to be stopped is followed by another."""
    tally = Tally()
    while start < end:
        start = _run_one(kind, start, end, folder, tally)
    return tally


def _run_one(kind: str, start: int, end: int, folder: Path, tally: Tally) -> int:
    """One process; returns the seed after the last that it came to."""
    outcomes, faults = folder / "outcomes", folder / "faults"
    outcomes.write_bytes(bytes(end - start))
    faults.write_bytes(b"")
    path = os.pathsep.join([*SEARCHED, os.environ.get("PYTHONPATH", "")])
    with (folder / "noise").open("wb") as noise:
        process = subprocess.Popen(
            [sys.executable, "-m", "attack.block", kind, str(start), str(end), str(folder)],
            stdin=subprocess.DEVNULL, stdout=noise, stderr=noise, env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        why = _watch(process, outcomes, kind)
    done = outcomes.read_bytes()
    count = done.find(0)
    count = len(done) if count < 0 else count
    tally.counts.update(OUTCOMES[code] for code in done[:count])
    tally.breaches += [tuple(json.loads(line)) for line in faults.read_text(encoding="utf-8").splitlines()]
    if count == len(done) and process.returncode == 0:
        return end
    if process.returncode == 3 and not why:  # it ends itself after an input for which it grew
        return start + count
    tally.counts[why or "died"] += 1
    if kind not in entry.CONTAINED:
        noise_text = (folder / "noise").read_bytes()[-300:].decode("utf-8", "replace")
        tally.breaches.append((start + count, why or f"died with {process.returncode}: {noise_text}"))
    return start + count + 1


def _watch(process: subprocess.Popen[bytes], outcomes: Path, kind: str) -> str:
    """Waits; stops a process that spends too much time on one input, and says so."""
    tick = os.sysconf("SC_CLK_TCK")
    position, since = -1, 0.0
    while process.poll() is None:
        time.sleep(0.05)
        at = outcomes.read_bytes().find(0)
        used = _cpu_s(process.pid, tick)
        if at != position:
            position, since = at, used
        elif at >= 0 and used - since > SECONDS + (3 if at == 0 else 0):  # the first one waits for the imports
            process.kill()
            process.wait()
            return "slow"
    return ""


def _cpu_s(pid: int, tick: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / tick


def _main(kind: str, start: int, end: int, folder: Path) -> None:
    path = folder / ("input" + mutated.KINDS[kind][0])
    with (folder / "outcomes").open("r+b") as stream, (folder / "faults").open("a", encoding="utf-8") as faults:
        shared = mmap.mmap(stream.fileno(), 0)
        path.write_bytes(mutated.content(kind, 0))
        for warm in range(3):  # imports are not any input's own memory
            path.write_bytes(mutated.content("safetensors" if kind in entry.CONTAINED else kind, warm))
        bare = peak_mb()
        limit = 4 << 30
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        for seed in range(start, end):
            path.write_bytes(mutated.content(kind, seed))
            code, problem = _outcome(kind, path, seed)
            shared[seed - start] = OUTCOMES.index(code)
            if seed - start < 20:
                bare = max(bare, min(peak_mb(), bare + MEGABYTES))
            if problem:
                faults.write(json.dumps([seed, problem]) + "\n")
                faults.flush()
            if peak_mb() > bare + MEGABYTES:
                shared[seed - start] = OUTCOMES.index("large")
                if kind not in entry.CONTAINED:
                    faults.write(json.dumps([seed, f"{peak_mb():.0f} MB, {bare:.0f} MB before"]) + "\n")
                sys.exit(3)


def _outcome(kind: str, path: Path, seed: int) -> tuple[str, str]:
    try:
        return entry.outcome(kind, path, checked=seed % CHECK_EVERY == 0), ""
    except BaseException as error:  # whatever comes out here is undocumented
        place = traceback.extract_tb(error.__traceback__)[-1]
        return "breach", f"{type(error).__name__}: {str(error)[:200]} ({Path(place.filename).name}:{place.lineno})"


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
