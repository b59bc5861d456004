"""All rows of an audit in their order: counted, ranked, and told with the hours of their models."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from convlint.gpus.gpu import load_gpu
from convlint.linting.audit.ledger import Ledger, lost_hours, lost_of_layer
from convlint.linting.audit.rows import ROWS, ErrorRow, FindingRow, LayerRow, ModelRow, Row, Rows, Table
from convlint.linting.audit.store import Store
from convlint.linting.audit.weights import Weight, Weights

# The model's hours, and those that the row's advice would save; of models, also how much of them convolutions take.
WEIGHED = ("gpu_hours", "lost_gpu_hours")
SHARED = (*WEIGHED, "convolution_share")
Cells = tuple[object, ...]
_MOST_SAID = 5  # errors that are said at once


class Tally(Struct, kw_only=True):
    """What an audit covered; `unread` counts errors, and `failed` the models that have no other rows."""

    models: int = 0
    failed: int = 0
    layers: int = 0
    findings: int = 0
    errors: int = 0
    warnings: int = 0
    infos: int = 0
    unread: int = 0
    internal: bool = False
    first_unread: list[ErrorRow] = []
    first_errors: list[FindingRow] = []
    gpus: dict[str, str] = {}  # by id, in the order in which they were met: what they are called first


def columns(table: Table) -> tuple[str, ...]:
    """The names of a table's columns, in their order."""
    more = {"errors": (), "models": SHARED}
    return ROWS[table].__struct_fields__ + more.get(table, WEIGHED)


def told(store: Store, weights: Weights, ledger: Ledger, tally: Tally, on_row: Callable[[Table, Cells], None]) -> None:
    """Goes through all rows; `on_row` hears of each, with its cells in the order of its table's columns."""
    for rows in store.rows():
        _count(rows, tally)
        heavy: dict[str, tuple[ModelRow, Weight | None]] = {}
        for row in rows.models:
            weight = weights.of(row.model, row.gpu, first=not heavy)
            heavy[row.gpu] = row, weight
            ledger.add(row, rows.layers, rows.findings, weight)
        first = next(iter(heavy), "")
        for table in ROWS:
            for each in rows.of(table):
                on_row(table, _cells(each, heavy, first))


def _count(rows: Rows, tally: Tally) -> None:
    tally.models += bool(rows.models)
    tally.failed += bool(rows.errors) and not rows.models
    tally.layers += rows.models[0].layers if rows.models else 0
    tally.findings += len(rows.findings)
    tally.unread += len(rows.errors)
    tally.first_unread += rows.errors[: _MOST_SAID - len(tally.first_unread)]
    tally.internal = tally.internal or any(row.internal for row in rows.errors)
    for finding in rows.findings:
        if finding.severity == "error":
            tally.errors += 1
            if len(tally.first_errors) < _MOST_SAID:
                tally.first_errors.append(finding)
        elif finding.severity == "warning":
            tally.warnings += 1
        else:
            tally.infos += 1
    for row in rows.models:
        tally.gpus.setdefault(load_gpu(row.gpu).id, row.gpu)


def _cells(row: Row, heavy: dict[str, tuple[ModelRow, Weight | None]], first: str) -> Cells:
    cells = tuple(getattr(row, name) for name in row.__struct_fields__)
    if isinstance(row, ErrorRow):
        return cells
    # What is found on every GPU is weighed by the first one's hours.
    model, weight = heavy.get(row.gpu or first, (None, None))
    lost = None if model is None else lost_hours(_lost_us(row), model, weight)
    more = (None if weight is None else weight.hours, lost)
    if isinstance(row, ModelRow):
        return (*cells, *more, None if weight is None else weight.share)
    return (*cells, *more)


def _lost_us(row: FindingRow | LayerRow | ModelRow) -> float | None:
    return lost_of_layer(row) if isinstance(row, LayerRow) else row.lost_us
