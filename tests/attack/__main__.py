"""The long run of all attacks: `make attack`, or `python -m attack --count 2000000` from the folder of the tests.

Three parts: everything made by hand, `--through` mutated model files through the command line, and `--count` mutated
inputs through the readers in one process after another. What breaks the contract is printed with its kind and seed, and
kept in the folder `--keep`; a run that was stopped goes on from there. Exit code 1 where anything broke it.
"""

import argparse
import json
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from . import mutated
from .block import run_block
from .contract import Attack
from .groups import verdicts
from .selection import GENERATORS, grouped, short

# of a hundred mutated inputs through the readers
SHARES = {"spec": 24, "onnx": 16, "pt2": 16, "keras": 16, "safetensors": 12, "index": 3, "rule": 4, "config": 4,
          "baseline": 2, "expression": 2, "comments": 1}  # fmt: skip
THROUGH_SHARES = {"spec": 10, "onnx": 40, "pt2": 18, "keras": 18, "safetensors": 12, "index": 2}
BLOCK, BATCH = 5000, 40

Row = tuple[str, Counter[str], list[str]]  # what it was, what became of it, what broke the contract
Job = tuple[str, Callable[[], Row]]  # the key under which it is done once, and what does it


class Log:
    """What is done, one line each, so that a run which was stopped goes on; and the table."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.path = folder, folder / "done.jsonl"
        self.table: dict[str, Counter[str]] = {}
        self.breaches: list[str] = []
        self.done: set[str] = set()
        self._lock = threading.Lock()
        for line in self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else ():
            key, name, counts, breaches = json.loads(line)
            self._enter(key, (name, Counter(counts), breaches))

    def add(self, key: str, row: Row) -> None:
        """Writes down what a job came to, and says what broke the contract."""
        with self._lock:
            self._enter(key, row)
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps([key, row[0], dict(row[1]), row[2]]) + "\n")
            for breach in row[2]:
                print(f"BREACH {row[0]}: {breach}", flush=True)

    def _enter(self, key: str, row: Row) -> None:
        self.done.add(key)
        self.table.setdefault(row[0], Counter()).update(row[1])
        self.breaches += [f"{row[0]}: {breach}" for breach in row[2]]

    def show(self) -> None:
        """The table of counts."""
        width = max(map(len, self.table), default=0)
        for name, counts in self.table.items():
            total = f"{counts.total():>11,}"
            print(f"{name:<{width}} {total}  " + ", ".join(f"{what} {count:,}" for what, count in counts.most_common()))
        print(
            f"{sum(counts.total() for counts in self.table.values()):,} inputs, "
            f"{len(self.breaches):,} breaches of the contract"
        )


def by_hand(scratch: Path) -> Iterator[Job]:
    """Every attack that is made by hand, in groups where they share a process."""
    for kind in GENERATORS:
        for group in grouped(short(kind, every=True)):
            yield f"{kind}:{group[0].name}:{len(group)}", partial(_held, f"by hand: {kind}", group, scratch)


def through(count: int, start: int, scratch: Path, keep: Path) -> Iterator[Job]:
    """Mutated model files through the command line, many in one process."""
    for kind, seeds in _seeds(count, start, THROUGH_SHARES, BATCH):
        group = [_of_seed(kind, seed) for seed in seeds]
        yield (
            f"through:{kind}:{seeds.start}:{seeds.stop}",
            partial(_held, f"command line: {kind}", group, scratch, keep),
        )


def within(count: int, start: int, scratch: Path, keep: Path) -> Iterator[Job]:
    """Mutated inputs through the readers of one process."""
    for kind, seeds in _seeds(count, start, SHARES, BLOCK):
        yield f"within:{kind}:{seeds.start}:{seeds.stop}", partial(_block, kind, seeds, scratch, keep)


def _seeds(count: int, start: int, shares: dict[str, int], size: int) -> Iterator[tuple[str, range]]:
    for kind, share in shares.items():
        last = start + count * share // 100
        yield from ((kind, range(at, min(at + size, last))) for at in range(start, last, size))


def _of_seed(kind: str, seed: int) -> Attack:
    path = f"m{seed}{mutated.KINDS[kind][0]}"
    bare = "safetensors" if kind == "index" else kind
    return Attack(
        name=f"{kind}:{seed}",
        make=partial(_write, kind, seed, path),
        inputs=(path,),
        exits=frozenset({0, 1, 3}),
        bare=bare,
    )


def _write(kind: str, seed: int, path: str, folder: Path) -> None:
    (folder / path).write_bytes(mutated.content(kind, seed))


def _held(name: str, group: list[Attack], scratch: Path, keep: Path | None = None) -> Row:
    counts: Counter[str] = Counter()
    breaches = []
    for attack, found in verdicts(group, scratch):
        counts["breach" if found else "held"] += 1
        if found:
            breaches.append(f"{attack.name}: {'; '.join(found)[:600]}")
            if keep is not None:
                attack.make(keep)
    return name, counts, breaches


def _block(kind: str, seeds: range, scratch: Path, keep: Path) -> Row:
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        tally = run_block(kind, seeds.start, seeds.stop, Path(folder))
    for seed, _ in tally.breaches[:20]:
        _write(kind, seed, f"{kind}-{seed}{mutated.KINDS[kind][0]}", keep)
    return f"readers: {kind}", tally.counts, [f"seed {seed}: {problem}" for seed, problem in tally.breaches]


def _work(jobs: Iterable[Job], log: Log, processes: int) -> None:
    """All jobs that are not done yet, so many at a time; no more of them are held in memory than are at work."""
    free = threading.Semaphore(processes * 2)

    def one(key: str, job: Callable[[], Row]) -> None:
        try:
            log.add(key, job())
        finally:
            free.release()

    with ThreadPoolExecutor(processes) as pool:
        started = []
        for key, job in jobs:
            if key in log.done:
                continue
            free.acquire()
            started = [future for future in started if not future.done() or future.result() is not None]
            started.append(pool.submit(one, key, job))
        for future in started:
            future.result()


def main() -> int:
    """Runs what is asked for and prints the table."""
    parser = argparse.ArgumentParser(
        prog="attack", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=2_000_000, help="mutated inputs through the readers (%(default)s)")
    parser.add_argument(
        "--through", type=int, default=50_000, help="mutated files through the command line (%(default)s)"
    )
    parser.add_argument("--start", type=int, default=0, help="first seed of each kind (%(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time (%(default)s)")
    parser.add_argument(
        "--keep", type=Path, default=Path("attack-run"), help="folder for what is done and what broke (%(default)s)"
    )
    parser.add_argument("--no-hand", action="store_true", help="leave out what is made by hand")
    asked = parser.parse_args()
    log = Log(asked.keep)
    with tempfile.TemporaryDirectory(prefix="convlint-attack-") as name:
        scratch = Path(name)
        if not asked.no_hand:
            _work(by_hand(scratch), log, asked.jobs)
        _work(through(asked.through, asked.start, scratch, asked.keep), log, asked.jobs)
        _work(within(asked.count, asked.start, scratch, asked.keep), log, asked.jobs)
    log.show()
    return 1 if log.breaches else 0


if __name__ == "__main__":
    sys.exit(main())
