"""The CSV that timings are kept in: read when a run begins, added to with each new timing."""

from __future__ import annotations

import os
from collections.abc import Collection

from convlint.cli.streams.files import append, replace_file
from convlint.errors import InputFault, UsageError
from convlint.files.bounded_file import open_regular
from convlint.measuring.device import Device
from convlint.measuring.rows import MOST_BYTES, Row, header, line, rows_of
from convlint.measuring.workload import Workload


class TimingsFile:
    """The rows at `path`, which need not be there yet."""

    def __init__(self, path: str) -> None:
        """Raises UsageError where it is another file."""
        self.path = path
        text = _text(path) if os.path.lexists(path) else ""
        self._is_empty, self._is_cut = not text, not text.endswith("\n")
        try:
            self.rows = list(rows_of(text)) if text else []
        except InputFault as fault:
            raise _another(f"{path}:{fault.line}", fault) from None

    def known(self, device: Device, workloads: Collection[Workload]) -> dict[Workload, Row]:
        """The timings of these on this device, with its libraries."""
        return {row.workload: row for row in self.rows if row.is_of(device) and row.workload in workloads}

    def settle(self) -> None:
        """Leaves out what was timed again, and what an interrupt has cut off. Raises UsageError."""
        last = {(row.workload, row.device, row.framework_version, row.cudnn, row.cuda): row for row in self.rows}
        if len(last) < len(self.rows) or (self._is_cut and not self._is_empty):
            self.rows, self._is_cut = list(last.values()), False
            replace_file(self.path, "".join([header(), *map(line, self.rows)]))

    def add(self, row: Row) -> None:
        """One more. Raises UsageError where it cannot be written."""
        append(self.path, header() + line(row) if self._is_empty else line(row))
        self._is_empty = False
        self.rows.append(row)


def _text(path: str) -> str:
    try:
        with open_regular(path) as stream:
            raw = stream.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise InputFault(f"more than {MOST_BYTES >> 20} MiB")
        return raw.decode()
    except (InputFault, UnicodeDecodeError) as fault:
        raise _another(path, fault) from None


def _another(at: str, fault: Exception) -> UsageError:
    return UsageError(f"{at}: {fault}; --csv names another file")
