"""The rows that an audit has so far, and hours of use, in an SQLite file, so that an audit can go on."""

from __future__ import annotations

import csv
import heapq
import json
import math
import os
import re
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from operator import itemgetter
from pathlib import PurePath
from typing import BinaryIO, Literal

import msgspec
from msgspec import Struct

from convlint.audit.rows import ErrorRow, FindingRow, LayerRow, ModelRow, Rows
from convlint.audit.subjects import MOST_LINE, Subject, lines_of
from convlint.audit.task import Audited, digest_of, is_settled, stamp_of
from convlint.files.bounded_file import open_regular
from convlint.files.safe import clean
from convlint.gpus.gpu import load_gpu
from convlint.model.errors import InputFault, UsageError, shown, suggestion

_COLUMNS = {
    "model": "model", "name": "model", "path": "model", "gpu_hours": "hours", "hours": "hours", "weight": "hours",
    "gpu": "gpu", "convolution_share": "share",
}  # fmt: skip
_WEIGHTS_SCHEMA = """
CREATE TEMP TABLE hours (name TEXT, gpu TEXT, hours REAL, share REAL, used INTEGER DEFAULT 0, PRIMARY KEY (name, gpu))
"""


class Weight(Struct, frozen=True, kw_only=True):
    """Hours on a GPU, and which part of them convolutions take: all, unless that is `shared`."""

    hours: float
    share: float = 1.0
    shared: bool = False


class Unused(Struct, frozen=True, kw_only=True):
    """Rows of weights that match no model: how many, their hours, and the names of those with most hours first."""

    rows: int
    hours: float
    names: tuple[str, ...]


class Weights:
    """The hours of each model. Without a file nothing is known of any, and every model counts the same."""

    def __init__(self, base: sqlite3.Connection, path: str | None) -> None:
        """Raises UsageError with the place of what is wrong in the file."""
        self._base, self.path = base, path
        base.execute(_WEIGHTS_SCHEMA)
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
        hours, text = _number(row.get("hours", "")), row.get("share", "").strip()
        share = _number(text) if text else None
        if hours is None:
            raise fail(f"{shown(row.get('hours', ''))!r} are no GPU hours")
        if text and (share is None or share > 1):
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
                row = self._base.execute(sought, (key, where)).fetchone()
                if row is not None:
                    self._base.execute("UPDATE temp.hours SET used = 1 WHERE name = ? AND gpu = ?", (key, where))
                    hours, share = row
                    return Weight(hours=hours, share=1.0 if share is None else share, shared=share is not None)
        return None

    def _keys(self, name: str) -> Iterator[str]:
        yield name
        sought = (
            "SELECT stem FROM models WHERE name = ? AND 1 = (SELECT COUNT(*) FROM models o WHERE o.stem = models.stem)"
        )
        row = self._base.execute(sought, (name,)).fetchone()
        if row is not None:
            yield row[0]

    def unused(self, most: int) -> Unused | None:
        """The rows that match no model, with `most` of their names; None without a file."""
        if self.path is None:
            return None
        count, hours = self._base.execute("SELECT COUNT(*), TOTAL(hours) FROM temp.hours WHERE NOT used").fetchone()
        label = "name || CASE gpu WHEN '' THEN '' ELSE ' on ' || gpu END"
        sought = f"SELECT {label} FROM temp.hours WHERE NOT used ORDER BY hours DESC, name LIMIT ?"
        names = self._base.execute(sought, (most,))
        return Unused(rows=count, hours=hours, names=tuple(name for (name,) in names))


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
            yield from _cells(path, _lines(path, file))
    except InputFault as fault:
        raise UsageError(f"{path}: {fault.message}") from None


def _lines(path: str, file: BinaryIO) -> Iterator[str]:
    for number, line in lines_of(file):
        if line is None:
            raise UsageError(f"{path}:{number}: is no line of UTF-8 with at most {MOST_LINE:,} bytes")
        yield f"{line}\n"


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


_LEDGER_SCHEMA = """
CREATE TEMP TABLE ranked (model TEXT, gpu TEXT, chip TEXT, architecture TEXT, structure TEXT, grade TEXT, hours REAL,
  shared INTEGER, stored INTEGER, lost REAL);
CREATE TEMP TABLE advised (code TEXT, name TEXT, change TEXT, safety TEXT, model TEXT, gpu TEXT, describe TEXT,
  pays_with TEXT, lost REAL, alone REAL, PRIMARY KEY (code, change, safety, model, gpu)) WITHOUT ROWID;
CREATE TEMP TABLE bases (basis TEXT PRIMARY KEY, lost REAL) WITHOUT ROWID;
"""
_OWN_CASE = re.compile(r"(?:; | \(|: ).*")  # from here on, a fix speaks of its own layers


class Ledger:
    """Writes down what each model loses on each of its GPUs."""

    def __init__(self, base: sqlite3.Connection, *, weighed: bool) -> None:
        """`base` holds the temporary tables; where nothing is `weighed`, every model counts one hour."""
        self._base, self._weighed = base, weighed
        for statement in _LEDGER_SCHEMA.split(";\n"):
            base.execute(statement)

    def add(
        self, row: ModelRow, layers: Sequence[LayerRow], findings: Sequence[FindingRow], weight: Weight | None
    ) -> None:
        """A model on one GPU, its layers and what was found in them on whatever GPU, and its hours."""
        if weight is None and not self._weighed:
            weight = Weight(hours=1.0)
        own = [layer for layer in layers if layer.gpu == row.gpu]
        stored = any(layer.dtype == "fp32" and layer.dtype_source == "storage" for layer in own)
        hours, shared = (None, False) if weight is None else (weight.hours, weight.shared)
        lost = lost_hours(row.lost_us, row, weight)
        self._base.execute(
            "INSERT INTO temp.ranked VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                row.model,
                row.gpu,
                load_gpu(row.gpu).id,
                row.architecture,
                row.structure,
                row.grade,
                hours,
                shared,
                stored,
                lost,
            ),
        )
        for finding in findings:
            if finding.gpu == row.gpu and finding.advised:
                self._advise(finding, row, weight)
        for layer in own:
            lost = lost_hours(lost_of_layer(layer), row, weight)
            if lost and layer.basis:
                self._base.execute(
                    "INSERT INTO temp.bases VALUES (?, ?) ON CONFLICT DO UPDATE SET lost = lost + excluded.lost",
                    (layer.basis, lost),
                )

    def _advise(self, finding: FindingRow, row: ModelRow, weight: Weight | None) -> None:
        saved = lost_hours(finding.lost_us, row, weight)
        if saved is None:
            return
        # What a change alone costs is no part of a share, which is never negative.
        alone_us = finding.lost_alone_us if finding.time_change_us is None else -finding.time_change_us
        describe = _OWN_CASE.sub("", finding.fix or "", count=1)
        self._base.execute(
            "INSERT INTO temp.advised VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "lost = lost + excluded.lost, alone = alone + excluded.alone",
            (
                finding.code, finding.name, _setting(finding.fix_set) or describe, finding.fix_safety or "", row.model,
                row.gpu, describe, " ".join(finding.pays_with), saved, lost_hours(alone_us, row, weight) or 0.0,
            ),
        )  # fmt: skip


def _setting(fix_set: str | None) -> str:
    """What a fix sets, where it has no numbers and so is the same in every model, such as a layout; else ""."""
    setting = json.loads(fix_set or "{}")
    if not isinstance(setting, dict) or any(type(value) in (int, float) for value in setting.values()):
        return ""
    return fix_set if setting and fix_set else ""


def lost_of_layer(layer: LayerRow) -> float | None:
    """What advice would save in it, in us."""
    return None if layer.time_us is None or layer.time_after_us is None else layer.time_us - layer.time_after_us


def lost_hours(lost_us: float | None, row: ModelRow, weight: Weight | None) -> float | None:
    """The hours of a model in which its convolutions do what `lost_us` of each step does; None where unknown."""
    if weight is None or lost_us is None or not row.time_us:
        return None
    return weight.hours * weight.share * lost_us / row.time_us


FORMAT = 3  # of the file; another one is of another convlint
_MOST_BYTES = 1 << 30  # of a model's rows: 100,000 layers have a tenth
_EVERY = 100  # models between two commits: an audit that is killed loses no more, and the disk is seldom waited for
_SCHEMA = """
CREATE TABLE meta (format INTEGER, run INTEGER);
INSERT INTO meta VALUES (%d, 0);
CREATE TABLE models (
  name TEXT PRIMARY KEY, stem TEXT, number INTEGER, run INTEGER, ask TEXT, stamp TEXT, seen INTEGER, digest TEXT,
  until TEXT, failing INTEGER, found BLOB
) WITHOUT ROWID;
CREATE TABLE outputs (path TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE faults (number INTEGER, found BLOB);
CREATE INDEX models_by_number ON models (number);
CREATE INDEX faults_by_number ON faults (number);
CREATE INDEX models_by_stem ON models (stem);
"""
_DECODER = msgspec.msgpack.Decoder(Rows)
Claim = Literal["new", "known", "again", "taken"]


class Store:
    """The models of this run and of those before it. Raises UsageError where its file cannot be used or written.

    `base` is the connection, for questions to what was found.
    """

    def __init__(self, path: str) -> None:
        """`path` need not exist; "" is a file that is gone when the audit ends."""
        self.path = path
        self._is_new = path != "" and not os.path.lexists(path)
        with self.guarded():
            self.base = sqlite3.connect(path, isolation_level=None)
            # Two audits that write one output would each delete the rows of the other.
            self.base.execute("PRAGMA locking_mode=EXCLUSIVE")
            self.base.execute("PRAGMA synchronous=NORMAL")
            self.base.execute("BEGIN EXCLUSIVE")
            if not self.base.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
                for statement in (_SCHEMA % FORMAT).split(";\n"):
                    self.base.execute(statement)
            meta = self.base.execute("SELECT format, run FROM meta").fetchone()
            if meta is None or meta[0] != FORMAT:
                raise UsageError(f"{path} is of another convlint: remove it to audit anew")
            self._run = int(meta[1]) + 1
            self.base.execute("UPDATE meta SET run = ?", (self._run,))
            self.base.execute("DELETE FROM faults")
        self._pending = 0

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self.guarded():
            if self.base.in_transaction:
                self.base.execute("COMMIT")
            bare = self._is_new and kind is not None and not self.count()
            self.base.close()
        if bare:  # nothing to go on with
            with suppress(OSError):
                os.unlink(self.path)

    def claim(self, number: int, subject: Subject, ask: str, today: date) -> Claim:
        """Whether a subject is to be audited, is known from a run before, was met in this one, or has another's name.

        `ask` says how it is asked for.
        """
        with self.guarded():
            sought = "SELECT run, ask, stamp, seen, digest, found, until FROM models WHERE name = ?"
            row = self.base.execute(sought, (subject.name,)).fetchone()
            if row is not None and row[0] == self._run:
                return "again" if row[1] == ask else "taken"
            lasts = row is not None and row[5] is not None and (row[6] is None or row[6] >= today.isoformat())
            seen_ns, stamp = time.time_ns(), stamp_of(subject.source)  # before the content is looked at
            if lasts and row[1] == ask and _same(subject, stamp, *row[2:5]):
                self.base.execute(
                    "UPDATE models SET run = ?, number = ?, stamp = ?, seen = ? WHERE name = ?",
                    (self._run, number, stamp, seen_ns, subject.name),
                )
                return "known"
            stem = PurePath(subject.name).stem
            self.base.execute(
                "INSERT OR REPLACE INTO models VALUES (?, ?, ?, ?, ?, NULL, NULL, NULL, NULL, 0, NULL)",
                (subject.name, stem, number, self._run, ask),
            )
            return "new"

    def put(self, name: str, audited: Audited) -> None:
        """Stores the outcome of a claimed subject."""
        blob = zlib.compress(msgspec.msgpack.encode(audited.rows), 1)  # rows repeat themselves: the fastest level does
        until = None if audited.until is None else audited.until.isoformat()
        with self.guarded():
            self.base.execute(
                "UPDATE models SET stamp = ?, seen = ?, digest = ?, until = ?, failing = ?, found = ? WHERE name = ?",
                (audited.stamp, audited.seen_ns, audited.digest, until, audited.failing, blob, name),
            )
            self._pending += 1
            if self._pending >= _EVERY:
                self._save()

    def fault(self, number: int, row: ErrorRow) -> None:
        """Stores an error that belongs to no model."""
        blob = zlib.compress(msgspec.msgpack.encode(Rows(errors=[row])), 1)
        with self.guarded():
            self.base.execute("INSERT INTO faults VALUES (?, ?)", (number, blob))

    def finish(self) -> None:
        """Removes the models of earlier runs alone, once all subjects are claimed and all outcomes put."""
        with self.guarded():
            self.base.execute("DELETE FROM models WHERE run <> ? OR found IS NULL", (self._run,))
            self._save()

    def rows(self) -> Iterator[Rows]:
        """The rows of each model and fault, in the order of the audit."""
        with self.guarded():
            cursors = [
                self.base.execute(f"SELECT number, found FROM {table} ORDER BY number")
                for table in ("models", "faults")
            ]
            for _, blob in heapq.merge(*cursors, key=itemgetter(0)):
                yield _DECODER.decode(_unpacked(blob))

    def refuse_foreign(self, paths: Iterable[str]) -> None:
        """Raises UsageError where a table would replace a file that is none of this audit."""
        with self.guarded():
            for path in paths:
                sought = "SELECT 1 FROM outputs WHERE path = ?"
                if os.path.lexists(path) and not self.base.execute(sought, (self._beside(path),)).fetchone():
                    raise UsageError(f"{path} exists, and is no table of the audit that goes on: name another file")

    def wrote(self, paths: Iterable[str]) -> None:
        """Records that these files are tables of this audit, which it may replace."""
        with self.guarded():
            self.base.executemany("INSERT OR IGNORE INTO outputs VALUES (?)", ((self._beside(path),) for path in paths))

    def _beside(self, path: str) -> str:
        """The path from the folder of the state, which may move with its tables."""
        return os.path.relpath(path, os.path.dirname(self.path) or ".")

    def is_failing(self) -> bool:
        """Whether a finding fails the run."""
        with self.guarded():
            return self.base.execute("SELECT 1 FROM models WHERE failing LIMIT 1").fetchone() is not None

    def count(self) -> int:
        """Models whose audit is done."""
        with self.guarded():
            sought = "SELECT COUNT(*) FROM models WHERE run = ? AND found IS NOT NULL"
            return int(self.base.execute(sought, (self._run,)).fetchone()[0])

    def _save(self) -> None:
        self.base.execute("COMMIT")
        self.base.execute("BEGIN EXCLUSIVE")
        self._pending = 0

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Surrounds all that uses the connection, and makes its errors UsageErrors that say what is wrong."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise UsageError(f"{self.path} is in use: another audit writes the same output") from None
            raise UsageError(f"{self.path or 'a temporary file'} cannot be written: {error}") from None
        except (sqlite3.DatabaseError, zlib.error, msgspec.DecodeError) as error:
            raise UsageError(f"{self.path} is not what an audit left ({error}): remove it to audit anew") from None


def _unpacked(blob: bytes) -> bytes:
    """The rows of one model. Raises zlib.error for more bytes than a sound one can have."""
    unpacking = zlib.decompressobj()
    rows = unpacking.decompress(blob, _MOST_BYTES)
    if unpacking.unconsumed_tail or not unpacking.eof:
        raise zlib.error("a model has more rows than any can have")
    return rows


def _same(subject: Subject, now: str, stamp: str | None, seen: int | None, digest: str | None) -> bool:
    """Whether the content is still that of the digest. What could not be read, or was lost, is tried again.

    `now` is the stamp of today; `stamp` was that when the content was `seen`.
    """
    if subject.source.kind == "module":
        return digest is not None  # its code is part of how it is asked for
    if not digest:
        return False
    if stamp and seen and is_settled(stamp, seen) and now == stamp:
        return True
    return digest_of(subject.source) == digest
