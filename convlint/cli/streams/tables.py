"""Tables as Parquet, CSV or JSON lines, written row by row; their files take their places when all is written."""

from __future__ import annotations

import csv
import io
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
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


@contextmanager
def written(form: str, path: str) -> Iterator[Callable[[Table, Cells], None]]:
    """A function that takes the rows of all tables, in one format; the files are there once it ends without an error.

    Raises UsageError where they cannot be written, as on a full disk.
    """
    finals = {table: os.path.realpath(final) for table, final in files_of(path).items()}  # links stay
    # The names cannot be foreseen, so that nobody can lay links in their places.
    parts = {final: f"{final}.{os.urandom(8).hex()}.tmp" for final in finals.values()}
    sinks: dict[Table, _Sink] = {}
    try:
        with ExitStack() as stack:
            files = {table: stack.enter_context(open(parts[final], "xb")) for table, final in finals.items()}
            for table, file in files.items():
                with suppress(FileNotFoundError):
                    os.chmod(file.name, stat.S_IMODE(os.stat(finals[table]).st_mode))
                sinks[table] = _SINKS[form](table, file)
            yield lambda table, cells: sinks[table].add(cells)
            for sink in sinks.values():
                sink.close()
            for file in files.values():
                file.flush()
                os.fsync(file.fileno())
        for final, part in parts.items():
            os.replace(part, final)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:  # an interrupt, too, leaves nothing half written
        for part in parts.values():
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
    plain = [kind for kind in get_args(hint) or (hint,) if kind is not type(None)]
    return list if get_origin(hint) is list else plain[0]


_Sink = _Csv | _JsonLines | _Parquet  # a table of one format in an open file
_SINKS: Mapping[str, Callable[[Table, IO[bytes]], _Sink]] = {"parquet": _Parquet, "csv": _Csv, "jsonl": _JsonLines}
