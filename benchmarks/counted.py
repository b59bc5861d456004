"""Function calls of a few small checks, which no noise of the machine moves, beside those of the last release.

    python benchmarks/counted.py                 # a table: calls now, and against data/counted_calls.csv
    python benchmarks/counted.py --write VERSION # adds a column of that release; with --package DIR, of that checkout

Counted by cProfile, built-in functions included, in fresh processes with warm caches. Python's versions differ in what
they count, so that only counts of the same one are compared.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import speed_inputs as given

HERE = Path(__file__).resolve().parent
COUNTS = HERE / "data" / "counted_calls.csv"
PYTHON = ".".join(map(str, sys.version_info[:2]))
_COUNTED = """
import cProfile, contextlib, io, pstats, sys
import convlint.__main__ as program
sys.argv = ["convlint", *sys.argv[1:]]
profile = cProfile.Profile()
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    profile.runcall(program.main)
print(pstats.Stats(profile).total_calls)
"""


def cases(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Each case: its name, and what convlint is called with in `folder`."""
    (folder / "clean.yaml").write_text(given.spec_text(50, distinct=True))
    (folder / "flawed.yaml").write_text(given.flawed_text(50))
    (folder / "more.yaml").write_text(given.flawed_text(300))
    given.write_source(folder / "source", 10)
    yield "--version", ["--version"]
    yield "check, 50 distinct layers", ["check", "clean.yaml"]
    yield "check, 50 distinct, flawed layers", ["check", "flawed.yaml"]
    yield "check, 300 distinct, flawed layers", ["check", "more.yaml", "-o", "json"]
    yield "plan, 50 distinct, flawed layers", ["plan", "flawed.yaml"]
    yield "check, 10 files of Python", ["check", "source", "--jobs", "1"]


def counted(package: Path | None = None) -> dict[str, int]:
    """The calls of each case, of convlint as it is installed or of the checkout `package`."""
    found = {}
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as cache:
        folder = Path(made)
        own = {"PYTHONHASHSEED": "0", "XDG_CACHE_HOME": cache, "COLUMNS": "80"}
        environment = {**os.environ, **own}
        environment.pop("CONVLINT_NO_CACHE", None)
        if package is not None:  # under the names that they have once they are installed
            for name, part in (("convlint", "convlint"), ("convlint_rules", "rules")):
                link = Path(cache) / "packages" / name
                link.parent.mkdir(exist_ok=True)
                link.symlink_to(package.resolve() / part, target_is_directory=True)
            environment["PYTHONPATH"] = str(Path(cache) / "packages")
        for name, arguments in cases(folder):
            for _ in range(2):  # the first fills the caches
                ran = subprocess.run(
                    [sys.executable, "-c", _COUNTED, *arguments], cwd=folder, env=environment, capture_output=True,
                    text=True, check=True,
                )  # fmt: skip
            found[name] = int(ran.stdout.split()[-1])
    return found


def known() -> dict[str, dict[str, int]]:
    """The counts of each release on this Python, by its version, oldest first."""
    found: dict[str, dict[str, int]] = {}
    with COUNTS.open(newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            if row["python"] == PYTHON:
                found.setdefault(row["version"], {})[row["case"]] = int(row["calls"])
    return found


def written(version: str, counts: Mapping[str, int]) -> None:
    """Keeps the counts of a release."""
    with COUNTS.open(newline="", encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if (row["python"], row["version"]) != (PYTHON, version)]
    rows += [{"python": PYTHON, "version": version, "case": name, "calls": calls} for name, calls in counts.items()]
    with COUNTS.open("w", newline="", encoding="utf-8") as stream:
        table = csv.DictWriter(stream, ["python", "version", "case", "calls"], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def main() -> None:
    """Prints the table, or writes it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", metavar="VERSION", help="keep the counts as those of this release")
    parser.add_argument("--package", type=Path, metavar="DIR", help="a checkout of another release")
    asked = parser.parse_args()
    counts, before = counted(asked.package), known()
    last = next(reversed(before.values()), {})
    for name, calls in counts.items():
        ratio = f"{calls / last[name]:.2f}" if name in last else "-"
        print(f"{name:40} {calls:>12,} {ratio:>8}")
    if asked.write:
        written(asked.write, counts)


if __name__ == "__main__":
    main()
