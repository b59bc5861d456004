"""The contract that holds for any input: runs the command line in a sandbox and names every breach."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from .sandbox import FIRST, INNOCENT, LAST, NAMES, changes, script, shared, sink, snapshot, source
from .streams import stream_problems

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 2.0 * float(
    os.environ.get("CONVLINT_ATTACK_FACTOR", "1")
)  # of CPU above a bare run; a slow machine may need more
MEGABYTES = 200
RUNS = 3  # of which the least CPU time counts
WALL_S = 60
DOCUMENTED = frozenset({0, 1, 2, 3})


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A signal to the whole process group, as a terminal sends it, once it `reads`, has a `child` or made a file."""

    number: int
    when: str
    delay: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One hostile situation. Without `argv`, `inputs` are checked between two innocent specs, into a JSON report."""

    name: str
    make: Callable[[Path], object] = lambda _: None
    inputs: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    argv: tuple[str, ...] | None = None
    exits: frozenset[int] = DOCUMENTED
    outputs: tuple[str, ...] = ()  # files that may change, relative to the sandbox
    env: Mapping[str, str | None] = field(default_factory=dict)
    stdin: bytes | str = b""  # bytes, "open": a pipe that stays open and silent, "closed"
    stdout: str = "file"  # file, full, broken, closed
    stderr: str = "file"
    limits: Mapping[str, int] = field(default_factory=dict)
    signal: Signal | None = None
    bare: str = "spec"  # the kind of input that the bare run reads
    says: str = ""  # a regular expression that standard output or error must hold
    after: Callable[[Path, Outcome], list[str]] = lambda _folder, _outcome: []
    extra_s: float = 0.0  # of CPU, where the attack's own options ask for it
    alone: bool = False  # uses much of what is allowed, so that it cannot share a process with others

    def line(self) -> tuple[str, ...]:
        """The arguments of the command."""
        if self.argv is not None:
            return self.argv
        return ("check", *self.options, "--output", "json", "--", FIRST, *self.inputs, LAST)


def command(name: str, *argv: str, exits: Iterable[int] = DOCUMENTED, **more: Any) -> Attack:
    """An attack by a whole command line."""
    return Attack(name=name, argv=argv, exits=frozenset(exits), **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run came to."""

    code: int
    out: str
    err: str
    cpu_s: float
    mb: float
    stopped: str
    signalled: bool
    orphans: tuple[str, ...]
    changed: tuple[str, ...]

    @property
    def report(self) -> dict[str, Any] | None:
        """The JSON report on standard output, if there is one."""
        try:
            found = json.loads(self.out)
        except ValueError:
            return None
        return found if isinstance(found, dict) else None


def run(attack: Attack, folder: Path, *, most_cpu_s: float = 30.0, most_mb: float = 1500.0) -> Outcome:
    """Runs an attack in a new sandbox below `folder`."""
    work, home = folder / "work", folder / "home"
    for made in (work, home):
        made.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        (work / name).write_text(INNOCENT[name], encoding="utf-8")
    attack.make(work)
    before = snapshot(work)
    marker = f"CONVLINT_ATTACK_RUN={uuid.uuid4().hex}"
    order = {
        "argv": [sys.executable, str(script()), *(part.replace("{work}", str(work)) for part in attack.line())],
        "cwd": str(work),
        "env": {
            **{key: value.replace("{work}", str(work)) for key, value in environment(attack, home).items()},
            **dict([marker.split("=")]),
        },
        "report": str(folder / "seen.json"),
        "marker": marker,
        "closed": [n for n, kind in enumerate((attack.stdin, attack.stdout, attack.stderr)) if kind == "closed"],
        "limits": dict(attack.limits),
        "signal": None,
        "wall_s": WALL_S,
        "cpu_s": most_cpu_s,
        "mb": most_mb,
    }
    if attack.signal is not None:
        when = attack.signal.when
        when = when if when in ("reads", "child") else str(work / when)
        order["signal"] = {"number": attack.signal.number, "when": when, "delay": attack.signal.delay}
    sent = json.dumps(order, ensure_ascii=True)
    ends = [source(attack.stdin, folder), sink(attack.stdout, folder / "out"), sink(attack.stderr, folder / "err")]
    try:
        subprocess.run(
            [sys.executable, "-I", "-S", str(ROOT / "tests" / "attack" / "launch.py"), sent],
            stdin=ends[0][0], stdout=ends[1][0], stderr=ends[2][0], check=True, timeout=WALL_S * 3,
        )  # fmt: skip
    finally:
        for descriptor in (end for pair in ends for end in pair):
            os.close(descriptor)
    seen = json.loads((folder / "seen.json").read_text(encoding="utf-8"))
    return Outcome(
        **{**seen, "orphans": tuple(seen["orphans"])},
        out=_text(folder / "out"),
        err=_text(folder / "err"),
        changed=tuple(changes(before, snapshot(work), attack.outputs)),
    )


def environment(attack: Attack, home: Path) -> dict[str, str]:
    """The variables of a run: few and known, with a cache of rules that all runs share unless the attack is on it."""
    env: dict[str, str | None] = {
        "PATH": os.environ.get("PATH", os.defpath), "HOME": str(home), "LANG": "C.UTF-8",
        "XDG_CACHE_HOME": str(shared() / "cache"), "PYTHONPATH": str(ROOT), "KERAS_BACKEND": "torch",
        **attack.env,
    }  # fmt: skip
    return {key: value for key, value in env.items() if value is not None}


def breaches(attack: Attack, outcome: Outcome, limits: Outcome | None = None) -> list[str]:
    """Everything in which a run breaks the contract; `limits` is the bare run that it is held against."""
    found = []
    bare = limits or bare_of(attack)
    if outcome.stopped:
        found.append(outcome.stopped)
    elif outcome.code not in attack.exits:
        found.append(f"exit {outcome.code}, not one of {sorted(attack.exits)}: {_tail(outcome)}")
    if outcome.cpu_s > bare.cpu_s + SECONDS + attack.extra_s:
        found.append(f"{outcome.cpu_s:.1f} s of CPU, {bare.cpu_s:.1f} s bare")
    if outcome.mb > bare.mb + MEGABYTES:
        found.append(f"{outcome.mb:.0f} MB, {bare.mb:.0f} MB bare")
    for name, text in (("stdout", outcome.out), ("stderr", outcome.err)):
        found += [f"{name}: {problem}" for problem in stream_problems(text, github=_is_github(attack, name))]
    found += [f"{path} changed" for path in outcome.changed]
    found += [f"left running: {command}" for command in outcome.orphans]
    if attack.says and not re.search(attack.says, outcome.out + outcome.err):
        found.append(f"does not say {attack.says!r}: {_tail(outcome)}")
    if attack.argv is None and outcome.code != 2:
        found += report_problems(outcome)
    return found


def report_problems(outcome: Outcome) -> list[str]:
    """Whether the JSON report is there, holds the findings of both innocent specs, and keeps their layers in order."""
    report = outcome.report
    if report is None:
        return [f"no JSON report: {_tail(outcome)}"]
    layers = [layer["path"] for layer in report.get("layers", ()) if layer["path"] in NAMES]
    found = {finding["path"] for finding in report.get("findings", ())}
    if layers == list(NAMES) and found >= set(NAMES):
        return []
    return [f"innocent inputs: layers of {layers}, findings of {sorted(found)[:9]}"]


def hold(attack: Attack, folder: Path) -> tuple[Outcome, list[str]]:
    """Runs an attack and says in what it breaks the contract; a run that goes far beyond it is stopped early.

    Of its CPU seconds, as of the bare run's, the least of three counts: a machine that is busy only adds to them.
    """
    bare = bare_of(attack)
    for attempt in range(RUNS):
        own = folder / str(attempt)
        outcome = run(
            attack, own, most_cpu_s=bare.cpu_s + 2 * SECONDS + attack.extra_s, most_mb=bare.mb + 3 * MEGABYTES
        )
        found = breaches(attack, outcome, bare)
        if outcome.cpu_s <= bare.cpu_s + SECONDS + attack.extra_s:
            break
    return outcome, found + attack.after(own / "work", outcome)


def bare_of(attack: Attack) -> Outcome:
    """The same command on a small valid input of that kind, in as many processes: what the attack is held against."""
    jobs = "--jobs" in attack.line()
    return bare_run(attack.bare, jobs)


@cache
def bare_run(kind: str, jobs: bool = False) -> Outcome:
    """One run, measured once; of its CPU seconds the least, since noise only adds to them."""
    from .seeds import write_valid

    options = (*(("--jobs", "2") if jobs else ()), *(("--input", "1x3x8x8") if kind == "module" else ()))
    with tempfile.TemporaryDirectory(prefix="convlint-bare-", ignore_cleanup_errors=True) as folder:
        work = Path(folder) / "work"
        work.mkdir()
        attack = Attack(name=f"bare {kind}", bare=kind, inputs=(write_valid(kind, work),), options=options)
        runs = [run(attack, Path(folder)) for _ in range(RUNS)]
    for outcome in runs:
        assert outcome.code in (0, 1, 3), f"the bare run on {kind} fails: {_tail(outcome)}"
        assert not report_problems(outcome), f"the bare run on {kind} fails: {_tail(outcome)}"
    return replace(runs[0], cpu_s=min(run.cpu_s for run in runs), mb=min(run.mb for run in runs))


def _is_github(attack: Attack, stream: str) -> bool:
    return stream == "stdout" and any("github" in part for part in attack.line())


def _tail(outcome: Outcome) -> str:
    return repr((outcome.err or outcome.out)[-400:])


def _text(path: Path) -> str:
    return path.read_bytes()[: 64 << 20].decode("utf-8", "backslashreplace")
