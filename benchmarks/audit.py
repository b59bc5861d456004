"""How fast audits are, and how much memory they take: processes, a Ray cluster, going on, and the plain checks.

    python benchmarks/audit.py                          # all sections
    python benchmarks/audit.py memory --models 10000    # one of them, with as many models at most
    python benchmarks/audit.py --runs 1 --models 40     # whether all of it runs

Models are those of zoo.py. Linux alone. What needs a package that is not installed is named as left out.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import zoo
from clusters import ray_cluster
from process_trees import Taken, taken

_SIZES = (100, 1_000, 10_000)
_MIB = 1 << 20
_HOUR = 3600
_FEW = 4  # models of an audit that does nothing but start


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where it runs, with how many models and how often."""

    folder: Path
    models: int
    runs: int

    def zoo(self, models: int) -> Path:
        """A zoo of that many."""
        made = self.folder / f"zoo{models}"
        if not made.exists():
            zoo.write(made, models)
        return made


def convlint(*arguments: str) -> list[str]:
    """The command line of this Python's convlint."""
    return [sys.executable, "-m", "convlint", *arguments]


def audit(bench: Bench, models: int, *options: str, beside: bool = False, fresh: bool = True) -> Taken:
    """An audit of a zoo of that many models, into tables of JSON lines."""
    folder = bench.zoo(models)
    if fresh:
        for path in bench.folder.glob("audit*"):
            path.unlink()
    command = convlint("audit", folder.name, "--fail-on", "never", "--quiet", "-o", "jsonl=audit.jsonl", *options)
    return taken(command, cwd=bench.folder, beside=beside)


def medians(several: Sequence[Taken]) -> tuple[float, float, float]:
    """Of the clock's time, the processors' and the peak."""
    return (
        statistics.median(each.wall for each in several),
        statistics.median(each.cpu for each in several),
        statistics.median(each.peak for each in several),
    )


def row(*cells: object) -> None:
    """A line of the table, as soon as it is known."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def head(*names: str) -> None:
    """The first lines of a table."""
    print()
    row(*names)
    row(*("---" for _ in names))


def bench_overhead(bench: Bench) -> None:
    """An audit against one process that checks the same models; in turn, as the machine may not be quiet."""
    models = min(bench.models, 300)
    pairs = []
    for _ in range(bench.runs):
        ours = audit(bench, models)
        command = convlint("check", bench.zoo(models).name, "--fail-on", "never", "-o", "json=check.json")
        pairs.append((ours, taken(command, cwd=bench.folder)))
    (wall, cpu, peak), (other_wall, other_cpu, other_peak) = (medians(side) for side in zip(*pairs, strict=True))
    head(f"{models:,} models, one process", "audit", "check of all", "ratio")
    row("time", f"{wall:.1f} s", f"{other_wall:.1f} s", f"{wall / other_wall:.2f}")
    row("processor time", f"{cpu:.1f} s", f"{other_cpu:.1f} s", f"{cpu / other_cpu:.2f}")
    row("peak memory", f"{peak / _MIB:.0f} MiB", f"{other_peak / _MIB:.0f} MiB", f"{peak / other_peak:.2f}")


def bench_workers(bench: Bench) -> None:
    """Models per second by the number of processes, and of workers of a Ray cluster; and what starting takes."""
    models = min(bench.models, 500)
    head(
        f"{models:,} models", "time", "of it, to start", "models/s then", "core s per model", "a million", "peak memory"
    )
    for jobs in (1, 2):
        start = audit(bench, _FEW, "--jobs", str(jobs))
        several = [audit(bench, models, "--jobs", str(jobs)) for _ in range(bench.runs)]
        _speed(f"--jobs {jobs}", models, start, several)
    if find_spec("ray") is None:
        print("Ray: left out, as it is not installed")
        return
    for workers in (1, 2, 4):
        with ray_cluster(workers) as address:
            start = audit(bench, _FEW, "--cluster", address, beside=True)
            several = [audit(bench, models, "--cluster", address, beside=True) for _ in range(bench.runs)]
        _speed(f"Ray, {workers} {'worker' if workers == 1 else 'workers'}", models, start, several)


def _speed(name: str, models: int, start: Taken, several: Sequence[Taken]) -> None:
    """A line; what an audit of next to nothing takes is its start."""
    wall, cpu, peak = medians(several)
    each = (cpu - start.cpu) / (models - _FEW)
    row(
        name, f"{wall:.1f} s", f"{start.wall:.1f} s", f"{(models - _FEW) / (wall - start.wall):.1f}",
        f"{each * 1e3:.0f} ms", f"{each * 1e6 / _HOUR:.0f} core hours", f"{peak / _MIB:.0f} MiB",
    )  # fmt: skip


def bench_memory(bench: Bench) -> None:
    """Memory and time by the number of models, one run each; then going on with nothing changed."""
    head("models", "time", "models per core second", "peak memory", "nothing changed: time", "models/s", "peak memory")
    for models in (size for size in _SIZES if size <= max(bench.models, _SIZES[0])):
        first = audit(bench, models)
        again = audit(bench, models, "--resume", fresh=False)
        if f"{models} known from before" not in again.printed.replace("\n", " "):
            raise SystemExit(f"--resume audited anew: {again.printed}")
        row(
            f"{models:,}", f"{first.wall:.0f} s", f"{models / first.cpu:.1f}", f"{first.peak / _MIB:.0f} MiB",
            f"{again.wall:.1f} s", f"{models / again.wall:.0f}", f"{again.peak / _MIB:.0f} MiB",
        )  # fmt: skip


SECTIONS: dict[str, Callable[[Bench], None]] = {
    "overhead": bench_overhead,
    "workers": bench_workers,
    "memory": bench_memory,
}


def main() -> None:
    """Runs the sections asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], help="which to run (default: all)")
    parser.add_argument("--models", type=int, default=1_000, help="at most (default 1000)")
    parser.add_argument("--runs", type=int, default=5, help="of which the median counts (default 5)")
    arguments = parser.parse_args()
    for name in arguments.sections or SECTIONS:
        with tempfile.TemporaryDirectory() as folder:
            SECTIONS[name](Bench(folder=Path(folder).resolve(), models=arguments.models, runs=max(1, arguments.runs)))


if __name__ == "__main__":
    main()
