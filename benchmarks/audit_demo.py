"""Writes 500 specs and ONNX files, audits them by two processes and on a Ray cluster, and compares what comes out."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

import zoo
from clusters import ray_cluster

_NODES = 3
_TABLES = ("", "-layers", "-models", "-errors")


def audited(folder: Path, name: str, *options: str) -> str:
    """Audits the zoo into tables of that name and returns the answer; ends the run where that fails."""
    begin = time.perf_counter()
    done = subprocess.run(
        [
            sys.executable, "-m", "convlint", "audit", "--models-from", "zoo/models.csv", "--weights", "zoo/hours.csv",
            "--output", f"parquet={name}.parquet", "--output", f"jsonl={name}.jsonl", "--output", "text",
            "--fail-on", "never", "--color", "never", *options,
        ],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{' '.join(options)}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    print(f"{' '.join(options):<32} {time.perf_counter() - begin:5.1f} s", flush=True)
    return done.stdout


def differing(folder: Path, one: str, other: str) -> list[str]:
    """Tables that are not the same, byte for byte."""
    files = [f"{{}}{table}.{form}" for table in _TABLES for form in ("parquet", "jsonl")]
    return [
        file.format(one)
        for file in files
        if (folder / file.format(one)).read_bytes() != (folder / file.format(other)).read_bytes()
    ]


def main() -> None:
    """Runs the demonstration; exits with 1 where the tables differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a zoo and tables in it are written anew")
    parser.add_argument("--models", type=int, default=500)
    arguments = parser.parse_args()
    folder: Path = arguments.folder.resolve()
    for name in ("jobs", "ray"):  # what a run before has left
        for path in folder.glob(f"{name}*"):
            path.unlink()
    shutil.rmtree(folder / "zoo", ignore_errors=True)
    paths = zoo.write(folder / "zoo", arguments.models)
    specs = sum(path.suffix == ".yaml" for path in paths)
    print(f"{specs} specs and {len(paths) - specs} ONNX files in {folder / 'zoo'}")
    answers = [audited(folder, "jobs", "--jobs", "2")]
    with ray_cluster(_NODES) as address:
        print(f"a Ray cluster of {_NODES} nodes at {address}")
        answers.append(audited(folder, "ray", "--cluster", address))
    different = differing(folder, "jobs", "ray")
    if different or answers[0] != answers[1]:
        raise SystemExit(f"the tables differ: {', '.join(different) or 'the answer'}")
    print(f"all {2 * len(_TABLES)} tables are the same, byte for byte\n\n{answers[0]}", end="")


if __name__ == "__main__":
    main()
