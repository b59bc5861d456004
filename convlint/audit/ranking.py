"""What an audit's models lose, ranked by model, change, rule, architecture and GPU; and the cells of its tables."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable

from msgspec import Struct

from convlint.audit.rows import ROWS, ErrorRow, FindingRow, LayerRow, ModelRow, Row, Rows, Table
from convlint.audit.store import Ledger, Store, Weight, Weights, lost_hours, lost_of_layer
from convlint.gpus.gpu import load_gpu

_NAMED = 3  # models that are named where a note is on some of them


class Lost(Struct, frozen=True, kw_only=True):
    """Hours of a group of models and those of them that advice would save; shares are of one."""

    what: str
    models: int
    hours: float
    lost: float
    share: float | None  # of the hours; None where there are none
    of_all: float | None  # of everything that is lost


class Worst(Struct, frozen=True, kw_only=True):
    """A model on a GPU, what it loses, and the rule that mends most of that."""

    model: str
    gpu: str
    grade: str | None
    hours: float
    lost: float
    share: float | None
    code: str | None
    name: str | None


class RankedChange(Struct, frozen=True, kw_only=True):
    """A change, in how many models it is advised, and the hours that it saves beside all other advice.

    `alone` are those that it saves if nothing else is done: negative where it costs time without `pays_with`, the rules
    that it waits for where it weighs most.
    """

    code: str
    name: str
    describe: str
    safety: str
    models: int
    lost: float
    alone: float
    of_all: float | None
    pays_with: tuple[str, ...]


class Some(Struct, frozen=True, kw_only=True):
    """Some of the models, on some of their GPUs: how many pairs, their hours, and the first of their names."""

    pairs: int
    hours: float
    names: tuple[str, ...]


class Ranking(Struct, frozen=True, kw_only=True):
    """The answer of an audit. `weighed`: hours are GPU hours, and not one for each model."""

    weighed: bool
    pairs: int  # of a model and one of its GPUs
    counted: int  # those with hours and a time
    hours: float
    assumed: float  # those of them that are taken to be all convolutions, as nobody says how much they take
    lost: float
    by_basis: dict[str, float]  # what is lost, by what its times rest on
    untimed: Some  # with hours, and without a time
    idle: Some  # without hours
    stored: Some  # in fp32, which is how their weights are stored and may not be how they run
    worst: tuple[Worst, ...]
    changes: tuple[RankedChange, ...]
    more_changes: int
    rules: tuple[Lost, ...]
    architectures: tuple[Lost, ...]
    gpus: tuple[Lost, ...]


def ranking_of(base: sqlite3.Connection, most: int, *, weighed: bool) -> Ranking:
    """The first `most` entries of each ranking, from the tables that a ledger has filled."""
    pairs, counted, hours, assumed, lost = base.execute(
        "SELECT COUNT(*), COUNT(lost), TOTAL(hours) FILTER (WHERE lost IS NOT NULL), "
        "TOTAL(hours) FILTER (WHERE lost IS NOT NULL AND NOT shared), TOTAL(lost) FROM temp.ranked"
    ).fetchone()
    changes = _changes(base, lost)
    timed = "FROM temp.ranked WHERE lost IS NOT NULL GROUP BY"
    return Ranking(
        weighed=weighed, pairs=pairs, counted=counted, hours=hours, assumed=assumed if weighed else 0.0, lost=lost,
        by_basis=dict(base.execute("SELECT basis, TOTAL(lost) FROM temp.bases GROUP BY basis ORDER BY 2 DESC")),
        untimed=_some(base, "hours IS NOT NULL AND lost IS NULL"), idle=_some(base, "hours IS NULL"),
        stored=_some(base, "stored"),
        worst=_worst(base, most), changes=tuple(changes[:most]), more_changes=max(0, len(changes) - most),
        rules=_groups(
            base, "SELECT code || ' ' || name, COUNT(DISTINCT model), NULL, TOTAL(lost) AS lost FROM temp.advised "
            "GROUP BY code, name ORDER BY lost DESC, code LIMIT ?", most, lost,
        ),
        architectures=_groups(
            base,
            "SELECT COALESCE(architecture, CASE WHEN COUNT(DISTINCT model) > 1 THEN 'like ' ELSE '' END || MIN(model)) "
            f"AS what, COUNT(DISTINCT model), TOTAL(hours), TOTAL(lost) AS lost {timed} "
            "COALESCE(architecture, structure) ORDER BY lost DESC, what LIMIT ?", most, lost,
        ),
        gpus=_groups(
            base, f"SELECT MIN(gpu) AS what, COUNT(DISTINCT model), TOTAL(hours), TOTAL(lost) AS lost {timed} chip "
            "ORDER BY lost DESC, what LIMIT ?", most, lost,
        ),
    )  # fmt: skip


def _worst(base: sqlite3.Connection, most: int) -> tuple[Worst, ...]:
    best = (
        "(SELECT {} FROM temp.advised a WHERE a.model = r.model AND a.gpu = r.gpu GROUP BY code, name "
        "ORDER BY TOTAL(a.lost) DESC, code LIMIT 1)"
    )
    sought = (
        f"SELECT model, gpu, grade, hours, lost, {best.format('code')}, {best.format('name')} FROM "
        "(SELECT * FROM temp.ranked WHERE lost > 0 ORDER BY lost DESC, model, gpu LIMIT ?) r "
        "ORDER BY lost DESC, model, gpu"
    )
    return tuple(
        Worst(
            model=model, gpu=gpu, grade=grade, hours=hours, lost=lost, share=_share(lost, hours), code=code, name=name
        )
        for model, gpu, grade, hours, lost, code, name in base.execute(sought, (most,))
    )


def _changes(base: sqlite3.Connection, everything: float) -> list[RankedChange]:
    """All of them, of which there are few: what is particular to a layer is no part of a change."""
    # Where one aggregate is MAX, SQLite takes what stands alone from the row that has it: the words of the largest.
    sought = (
        "SELECT code, name, describe, safety, COUNT(DISTINCT model), TOTAL(lost) AS saved, TOTAL(alone), pays_with, "
        "MAX(lost) FROM temp.advised GROUP BY code, name, change, safety HAVING TOTAL(lost) > 0 "
        "ORDER BY saved DESC, code, change"
    )
    return [
        RankedChange(
            code=code, name=name, describe=describe, safety=safety, models=models, lost=saved, alone=alone,
            of_all=_share(saved, everything), pays_with=tuple(pays_with.split()) if alone < saved / 2 else (),
        )
        for code, name, describe, safety, models, saved, alone, pays_with, _ in base.execute(sought)
    ]  # fmt: skip


def _groups(base: sqlite3.Connection, sought: str, most: int, everything: float) -> tuple[Lost, ...]:
    return tuple(
        Lost(
            what=what, models=models, hours=hours or 0.0, lost=lost, share=_share(lost, hours or 0.0),
            of_all=_share(lost, everything),
        )
        for what, models, hours, lost in base.execute(sought, (most,))
    )  # fmt: skip


def _some(base: sqlite3.Connection, which: str) -> Some:
    pairs, hours = base.execute(f"SELECT COUNT(*), TOTAL(hours) FROM temp.ranked WHERE {which}").fetchone()
    sought = f"SELECT model || ' on ' || gpu FROM temp.ranked WHERE {which} ORDER BY hours DESC, model, gpu LIMIT ?"
    return Some(pairs=pairs, hours=hours, names=tuple(name for (name,) in base.execute(sought, (_NAMED,))))


def _share(part: float, total: float) -> float | None:
    return part / total if total else None


# The model's hours, and those that the row's advice would save; of models, also how much of them convolutions take.
WEIGHED = ("gpu_hours", "lost_gpu_hours")
SHARED = (*WEIGHED, "convolution_share")
Cells = tuple[object, ...]
_MOST_SAID = 5  # errors that are listed


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


def for_each_row(
    store: Store, weights: Weights, ledger: Ledger, tally: Tally, on_row: Callable[[Table, Cells], None]
) -> None:
    """Calls `on_row` for each row, with its cells in the order of its table's columns, and counts what they hold."""
    for rows in store.rows():
        _count(rows, tally)
        heavy: dict[str, tuple[ModelRow, Weight | None]] = {}
        for row in rows.models:
            weight = weights.of(row.model, row.gpu, first=not heavy)
            heavy[row.gpu] = row, weight
            ledger.add(row, rows.layers, rows.findings, weight)
        first = next(iter(heavy), "")
        for table in ROWS:
            for entry in rows.of(table):
                on_row(table, _cells(entry, heavy, first))


def _count(rows: Rows, tally: Tally) -> None:
    tally.models += bool(rows.models)
    tally.failed += bool(rows.errors) and not rows.models
    tally.layers += rows.models[0].layers if rows.models else 0
    tally.findings += len(rows.findings)
    tally.unread += len(rows.errors)
    tally.first_unread += rows.errors[: _MOST_SAID - len(tally.first_unread)]
    tally.internal = tally.internal or any(row.internal for row in rows.errors)
    severities = Counter(finding.severity for finding in rows.findings)
    tally.errors += severities["error"]
    tally.warnings += severities["warning"]
    tally.infos += severities["info"]
    grave = [finding for finding in rows.findings if finding.severity == "error"]
    tally.first_errors += grave[: _MOST_SAID - len(tally.first_errors)]
    for row in rows.models:
        tally.gpus.setdefault(load_gpu(row.gpu).id, row.gpu)


def _cells(row: Row, heavy: dict[str, tuple[ModelRow, Weight | None]], first: str) -> Cells:
    cells = tuple(getattr(row, name) for name in row.__struct_fields__)
    if isinstance(row, ErrorRow):
        return cells
    # What is found on every GPU is weighed by the first one's hours.
    model, weight = heavy.get(row.gpu or first, (None, None))
    lost_us = lost_of_layer(row) if isinstance(row, LayerRow) else row.lost_us
    lost = None if model is None else lost_hours(lost_us, model, weight)
    more = (None if weight is None else weight.hours, lost)
    if isinstance(row, ModelRow):
        return (*cells, *more, None if weight is None else weight.share)
    return (*cells, *more)
