"""Tables as Parquet, CSV or JSON lines, written row by row; their files take their places when all is written."""

from __future__ import annotations

import csv
import io
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import msgspec

from convlint.audit.ranking import Cells, columns
from convlint.audit.rows import ROWS, TABLES, Table
from convlint.cli.streams.outputs import unwritable
from convlint.model.errors import UsageError

if TYPE_CHECKING:
    import pyarrow

FORMATS = ("parquet", "csv", "jsonl")
_HELD = 256  # rows as objects of Python, which take many times the room of columns
_GROUP = 4096  # rows of a group, which is written at once


def files_of(path: str) -> dict[Table, str]:
    """Where each table goes: `audit.csv` has findings, `audit-layers.csv` layers, and so on."""
    stem, suffix = os.path.splitext(path)
    return {table: path if table == TABLES[0] else f"{stem}-{table}{suffix}" for table in TABLES}


def refuse_lacking(form: str) -> None:
    """Raises UsageError where the format needs what is not installed."""
    if form == "parquet":
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError as error:
            raise UsageError("--output parquet needs pyarrow: pip install 'convlint[parquet]'") from error


class Tables:
    """All tables of an audit, in one format."""

    def __init__(self, form: str, path: str) -> None:
        self._form, self._path = form, path
        self._finals = {table: os.path.realpath(final) for table, final in files_of(path).items()}  # links stay
        # The names cannot be foreseen, so that nobody can lay links in their places.
        self._parts = {final: f"{final}.{os.urandom(8).hex()}.tmp" for final in self._finals.values()}
        self._files: list[IO[bytes]] = []
        self._sinks: dict[Table, _Sink] = {}

    def __enter__(self) -> Tables:
        try:
            for table, final in self._finals.items():
                file = open(self._parts[final], "xb")
                self._files.append(file)
                with suppress(FileNotFoundError):
                    os.chmod(self._parts[final], stat.S_IMODE(os.stat(final).st_mode))
                self._sinks[table] = _SINKS[self._form](table, file)
        except BaseException as error:
            self._drop()
            if isinstance(error, OSError):
                raise unwritable(self._path, error) from error
            raise
        return self

    def add(self, table: Table, cells: Cells) -> None:
        """One row. Raises OSError where the disk is full."""
        self._sinks[table].add(cells)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._drop()
            if isinstance(error, OSError):
                raise unwritable(self._path, error) from error
            return
        try:
            for sink in self._sinks.values():
                sink.close()
            for file in self._files:
                file.flush()
                os.fsync(file.fileno())
                file.close()
            for final, part in self._parts.items():
                os.replace(part, final)
        except BaseException as failure:  # an interrupt, too, leaves nothing half written
            self._drop()
            if isinstance(failure, OSError):
                raise unwritable(self._path, failure) from failure
            raise

    def _drop(self) -> None:
        for file in self._files:
            with suppress(OSError):
                file.close()
        for part in self._parts.values():
            with suppress(OSError):
                os.unlink(part)


class _Csv:
    def __init__(self, table: Table, file: IO[bytes]) -> None:
        self._text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        self._rows = csv.writer(self._text, lineterminator="\n")
        self._rows.writerow(columns(table))

    def add(self, cells: Cells) -> None:
        self._rows.writerow([" ".join(cell) if isinstance(cell, list) else cell for cell in cells])

    def close(self) -> None:
        self._text.flush()
        self._text.detach()


class _JsonLines:
    def __init__(self, table: Table, file: IO[bytes]) -> None:
        self._file, self._columns = file, columns(table)

    def add(self, cells: Cells) -> None:
        self._file.write(msgspec.json.encode(dict(zip(self._columns, cells, strict=True))) + b"\n")

    def close(self) -> None:
        pass


class _Parquet:
    def __init__(self, table: Table, file: IO[bytes]) -> None:
        from pyarrow import parquet

        self._schema = _schema(table)
        self._writer = parquet.ParquetWriter(file, self._schema, compression="zstd")
        self._held: list[Cells] = []
        self._batches: list[pyarrow.RecordBatch] = []

    def add(self, cells: Cells) -> None:
        self._held.append(cells)
        if len(self._held) == _HELD:
            self._pack()
            if len(self._batches) * _HELD >= _GROUP:
                self._write()

    def close(self) -> None:
        self._pack()
        self._write()
        self._writer.close()

    def _pack(self) -> None:
        import pyarrow

        if self._held:
            values = zip(zip(*self._held, strict=True), self._schema, strict=True)
            arrays = [pyarrow.array(column, type=field.type) for column, field in values]
            self._batches.append(pyarrow.RecordBatch.from_arrays(arrays, schema=self._schema))
            self._held = []

    def _write(self) -> None:
        import pyarrow

        if self._batches:
            self._writer.write_table(pyarrow.Table.from_batches(self._batches))
            self._batches = []


def _schema(table: Table) -> pyarrow.Schema:
    import pyarrow

    kinds: Mapping[Any, Any] = {
        str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_(),
        list: pyarrow.list_(pyarrow.string()),
    }  # fmt: skip
    hints = get_type_hints(ROWS[table])
    hints |= {name: float for name in columns(table) if name not in hints}
    return pyarrow.schema([pyarrow.field(name, kinds[_kind(hint)]) for name, hint in hints.items()])


def _kind(hint: Any) -> Any:
    """`int` for `int | None`, `list` for `list[str]`."""
    plain = [each for each in get_args(hint) or (hint,) if each is not type(None)]
    return list if get_origin(hint) is list else plain[0]


_Sink = _Csv | _JsonLines | _Parquet  # a table of one format in an open file
_SINKS: Mapping[str, Callable[[Table, IO[bytes]], _Sink]] = {"parquet": _Parquet, "csv": _Csv, "jsonl": _JsonLines}
