"""What an audit has found so far, in a file of SQLite beside its output: rows leave memory, and an audit can go on."""

from __future__ import annotations

import heapq
import os
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import date
from operator import itemgetter
from pathlib import PurePath
from types import TracebackType
from typing import Literal

import msgspec

from convlint.errors import UsageError
from convlint.linting.audit.rows import ErrorRow, Rows
from convlint.linting.audit.seal import digest_of, is_settled, stamp_of
from convlint.linting.audit.subject import Subject
from convlint.linting.audit.task import Audited

FORMAT = 3  # of the file; another one is of another convlint
_MOST_BYTES = 1 << 30  # of a model's rows: 100,000 layers have a tenth
_EVERY = 100  # models after which what was found is on the disk
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
    """The models of this run and of those before it. Raises UsageError where its file cannot be used or written."""

    def __init__(self, path: str) -> None:
        """`path` need not exist; "" is a file that is gone when the audit ends."""
        self.path = path
        self._is_new = path != "" and not os.path.lexists(path)
        with self.guarded():
            self._base = sqlite3.connect(path, isolation_level=None)
            self._base.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._base.execute("PRAGMA synchronous=NORMAL")
            self._base.execute("BEGIN EXCLUSIVE")
            if not self._base.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
                for statement in (_SCHEMA % FORMAT).split(";\n"):
                    self._base.execute(statement)
            found = self._base.execute("SELECT format, run FROM meta").fetchone()
            if found is None or found[0] != FORMAT:
                raise UsageError(f"{path} is of another convlint: remove it to audit anew")
            self._run = int(found[1]) + 1
            self._base.execute("UPDATE meta SET run = ?", (self._run,))
            self._base.execute("DELETE FROM faults")
        self._pending = 0

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self.guarded():
            if self._base.in_transaction:
                self._base.execute("COMMIT")
            bare = self._is_new and error is not None and not self.count()
            self._base.close()
        if bare:  # nothing to go on with
            with suppress(OSError):
                os.unlink(self.path)

    @property
    def base(self) -> sqlite3.Connection:
        """The connection, for questions to what was found."""
        return self._base

    def claim(self, number: int, subject: Subject, ask: str, today: date) -> Claim:
        """Whether a subject is to be audited, is known from a run before, was met in this one, or has another's name.

        `ask` says how it is asked for.
        """
        with self.guarded():
            sought = "SELECT run, ask, stamp, seen, digest, found, until FROM models WHERE name = ?"
            row = self._base.execute(sought, (subject.name,)).fetchone()
            if row is not None and row[0] == self._run:
                return "again" if row[1] == ask else "taken"
            lasts = row is not None and row[5] is not None and (row[6] is None or row[6] >= today.isoformat())
            seen_ns, stamp = time.time_ns(), stamp_of(subject.source)  # before the content is looked at
            if lasts and row[1] == ask and _same(subject, stamp, *row[2:5]):
                self._base.execute(
                    "UPDATE models SET run = ?, number = ?, stamp = ?, seen = ? WHERE name = ?",
                    (self._run, number, stamp, seen_ns, subject.name),
                )
                return "known"
            stem = PurePath(subject.name).stem
            self._base.execute(
                "INSERT OR REPLACE INTO models VALUES (?, ?, ?, ?, ?, NULL, NULL, NULL, NULL, 0, NULL)",
                (subject.name, stem, number, self._run, ask),
            )
            return "new"

    def put(self, name: str, audited: Audited) -> None:
        """What the audit of a claimed subject came to."""
        found = zlib.compress(msgspec.msgpack.encode(audited.rows), 1)
        until = None if audited.until is None else audited.until.isoformat()
        with self.guarded():
            self._base.execute(
                "UPDATE models SET stamp = ?, seen = ?, digest = ?, until = ?, failing = ?, found = ? WHERE name = ?",
                (audited.stamp, audited.seen_ns, audited.digest, until, audited.failing, found, name),
            )
            self._pending += 1
            if self._pending >= _EVERY:
                self._save()

    def fault(self, number: int, row: ErrorRow) -> None:
        """What stands for no model."""
        found = zlib.compress(msgspec.msgpack.encode(Rows(errors=[row])), 1)
        with self.guarded():
            self._base.execute("INSERT INTO faults VALUES (?, ?)", (number, found))

    def finish(self) -> None:
        """All subjects were claimed and all answers put: what is of no run but those before goes."""
        with self.guarded():
            self._base.execute("DELETE FROM models WHERE run <> ? OR found IS NULL", (self._run,))
            self._save()

    def rows(self) -> Iterator[Rows]:
        """The rows of each model and fault, in the order of the audit."""
        with self.guarded():
            several = [
                self._base.execute(f"SELECT number, found FROM {table} ORDER BY number")
                for table in ("models", "faults")
            ]
            for _, found in heapq.merge(*several, key=itemgetter(0)):
                yield _DECODER.decode(_unpacked(found))

    def refuse_foreign(self, paths: Iterable[str]) -> None:
        """Raises UsageError where a file is there that is to become a table, and is none that these runs wrote."""
        with self.guarded():
            for path in paths:
                sought = "SELECT 1 FROM outputs WHERE path = ?"
                if os.path.lexists(path) and not self._base.execute(sought, (self._beside(path),)).fetchone():
                    raise UsageError(f"{path} exists, and is no table of the audit that goes on: name another file")

    def wrote(self, paths: Iterable[str]) -> None:
        """These are tables of this audit, which it may write anew."""
        with self.guarded():
            self._base.executemany(
                "INSERT OR IGNORE INTO outputs VALUES (?)", ((self._beside(each),) for each in paths)
            )

    def _beside(self, path: str) -> str:
        """As seen from the folder of the state, which may move with its tables."""
        return os.path.relpath(path, os.path.dirname(self.path) or ".")

    def is_failing(self) -> bool:
        """Whether a finding fails the run."""
        with self.guarded():
            return self._base.execute("SELECT 1 FROM models WHERE failing LIMIT 1").fetchone() is not None

    def count(self) -> int:
        """Models whose audit is done."""
        with self.guarded():
            sought = "SELECT COUNT(*) FROM models WHERE run = ? AND found IS NOT NULL"
            return int(self._base.execute(sought, (self._run,)).fetchone()[0])

    def _save(self) -> None:
        self._base.execute("COMMIT")
        self._base.execute("BEGIN EXCLUSIVE")
        self._pending = 0

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Around whatever uses the connection: says what is wrong with its files. Raises UsageError."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise UsageError(f"{self.path} is in use: another audit writes the same output") from None
            raise UsageError(f"{self.path or 'a temporary file'} cannot be written: {error}") from None
        except (sqlite3.DatabaseError, zlib.error, msgspec.DecodeError) as error:
            raise UsageError(f"{self.path} is not what an audit left ({error}): remove it to audit anew") from None


def _unpacked(found: bytes) -> bytes:
    """The rows of one model, of which no sound one has more than so many bytes. Raises zlib.error."""
    unpacking = zlib.decompressobj()
    rows = unpacking.decompress(found, _MOST_BYTES)
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
