"""Usage weights: GPU hours by model, and by GPU where a row says so, from CSV into the store where they are joined."""

from __future__ import annotations

import csv
import math
import sqlite3
from collections.abc import Iterator

from msgspec import Struct

from convlint.errors import InputFault, UsageError, shown, suggestion
from convlint.files.bounded_file import open_regular
from convlint.files.safe import clean
from convlint.gpus.gpu import load_gpu
from convlint.linting.audit.listed import MOST_LINE, lines_of

_COLUMNS = {
    "model": "model", "name": "model", "path": "model", "gpu_hours": "hours", "hours": "hours", "weight": "hours",
    "gpu": "gpu", "convolution_share": "share",
}  # fmt: skip
_SCHEMA = """
CREATE TEMP TABLE hours (name TEXT, gpu TEXT, hours REAL, share REAL, used INTEGER DEFAULT 0, PRIMARY KEY (name, gpu))
"""


class Weight(Struct, frozen=True, kw_only=True):
    """Hours on a GPU, and which part of them convolutions take: all, unless that is `shared`."""

    hours: float
    share: float = 1.0
    shared: bool = False


class Weights:
    """The hours of each model. Without a file nothing is known of any, and every model counts the same."""

    def __init__(self, base: sqlite3.Connection, path: str | None) -> None:
        """Raises UsageError with the place of what is wrong in the file."""
        self._base, self.path = base, path
        base.execute(_SCHEMA)
        if path is not None:
            for number, row in _rows(path):
                self._add(path, number, row)

    def _add(self, path: str, number: int, row: dict[str, str]) -> None:
        def fail(message: str) -> UsageError:
            return UsageError(f"{path}:{number}: {message}")

        name, gpu = clean(row.get("model", "").strip().removeprefix("./")), row.get("gpu", "").strip()
        if not name:
            raise fail("names no model")
        try:
            gpu = load_gpu(gpu).id if gpu else ""
        except UsageError as error:
            raise fail(str(error)) from None
        hours, given = _number(row.get("hours", "")), row.get("share", "").strip()
        share = _number(given) if given else None
        if hours is None:
            raise fail(f"{shown(row.get('hours', ''))!r} are no GPU hours")
        if given and (share is None or share > 1):
            raise fail("convolution_share must be from 0 to 1")
        try:
            self._base.execute("INSERT INTO temp.hours VALUES (?, ?, ?, ?, 0)", (name, gpu, hours, share))
        except sqlite3.IntegrityError:
            where = f" on {gpu}" if gpu else ""
            raise fail(f"{shown(name)!r} has hours{where} already: add them up to one row") from None

    def of(self, name: str, gpu: str, *, first: bool) -> Weight | None:
        """The hours of a model on a GPU; those that name no GPU are of the `first` one that it is audited for.

        A row may name a model by the end of its path without the suffix, where no other model's ends so.
        """
        if self.path is None:
            return None
        gpu = load_gpu(gpu).id
        for key in self._keys(name):
            for where in (gpu, "") if first else (gpu,):
                sought = "SELECT hours, share FROM temp.hours WHERE name = ? AND gpu = ?"
                found = self._base.execute(sought, (key, where)).fetchone()
                if found is not None:
                    self._base.execute("UPDATE temp.hours SET used = 1 WHERE name = ? AND gpu = ?", (key, where))
                    hours, share = found
                    return Weight(hours=hours, share=1.0 if share is None else share, shared=share is not None)
        return None

    def _keys(self, name: str) -> Iterator[str]:
        yield name
        sought = (
            "SELECT stem FROM models WHERE name = ? AND 1 = (SELECT COUNT(*) FROM models o WHERE o.stem = models.stem)"
        )
        found = self._base.execute(sought, (name,)).fetchone()
        if found is not None:
            yield found[0]

    def unused(self, most: int) -> tuple[int, float, list[str]]:
        """Rows that match no model: how many, their hours, and the names of those with `most` hours first."""
        count, hours = self._base.execute("SELECT COUNT(*), TOTAL(hours) FROM temp.hours WHERE NOT used").fetchone()
        named = "name || CASE gpu WHEN '' THEN '' ELSE ' on ' || gpu END"
        sought = f"SELECT {named} FROM temp.hours WHERE NOT used ORDER BY hours DESC, name LIMIT ?"
        names = self._base.execute(sought, (most,))
        return count, hours, [name for (name,) in names]


def _number(text: str) -> float | None:
    """A finite number that is not negative, else None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _rows(path: str) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        with open_regular(path) as file:
            yield from _cells(path, (_whole(path, number, line) for number, line in lines_of(file)))
    except InputFault as fault:
        raise UsageError(f"{path}: {fault.message}") from None


def _whole(path: str, number: int, line: str | None) -> str:
    if line is None:
        raise UsageError(f"{path}:{number}: is no line of UTF-8 with at most {MOST_LINE:,} bytes")
    return f"{line}\n"


def _cells(path: str, lines: Iterator[str]) -> Iterator[tuple[int, dict[str, str]]]:
    rows = csv.reader(lines, strict=True)
    try:
        header = [cell.strip() for cell in next(rows, [])]
        for cell in header:
            if cell not in _COLUMNS:
                known = ", ".join(_COLUMNS)
                raise UsageError(
                    f"{path}:1: unknown column {shown(cell)!r}{suggestion(cell, _COLUMNS)}; known are {known}"
                )
        keys = [_COLUMNS[cell] for cell in header]
        if not {"model", "hours"} <= set(keys) or len(set(keys)) < len(keys):
            raise UsageError(f"{path}:1: must have one column model and one gpu_hours")
        for row in rows:
            if any(cell.strip() for cell in row):
                if len(row) != len(keys):
                    raise UsageError(f"{path}:{rows.line_num}: has {len(row)} cells, and the header {len(keys)}")
                yield rows.line_num, dict(zip(keys, row, strict=True))
    except csv.Error as error:
        raise UsageError(f"{path}:{rows.line_num}: {error}") from None
