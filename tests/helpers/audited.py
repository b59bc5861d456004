"""Writes specs for audits, and reads the tables that audits write."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TABLES = ("findings", "layers", "models", "errors")
GOOD = """version: 1
layers:
  - {{name: a, N: {N}, C: {C}, H: 56, W: 56, K: {K}, R: 3, S: 3, padding: 1, dtype: fp16, layout: {layout}}}
"""


def write_spec(path: Path, *, N: int = 64, C: int = 64, K: int = 64, layout: str = "NHWC") -> str:
    """Writes a spec of one convolution and returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(GOOD.format(N=N, C=C, K=K, layout=layout))
    return str(path)


def rows_of(output: Path | str, table: str = "findings") -> list[dict[str, Any]]:
    """The rows of a table of an audit whose output is JSON lines."""
    path = Path(output)
    if table != "findings":
        path = path.with_name(f"{path.stem}-{table}{path.suffix}")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def all_bytes(output: Path | str) -> dict[str, bytes]:
    """Each table of an audit as it lies on the disk."""
    path = Path(output)
    files = {
        table: path if table == "findings" else path.with_name(f"{path.stem}-{table}{path.suffix}") for table in TABLES
    }
    return {table: file.read_bytes() for table, file in files.items()}


def names_of(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The models of rows."""
    return [row["model"] for row in rows]
