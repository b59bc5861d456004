"""What loses most: models, changes, rules, architectures and GPUs by the GPU hours that advice would save.

Filled row by row while tables are written, in tables of SQLite that need not fit into memory. Where there are no
weights, every model counts one hour, so that hours are shares of a model.
"""

from __future__ import annotations

import re
import sqlite3
from typing import Any

from msgspec import Struct

from convlint.gpus.gpu import load_gpu
from convlint.linting.audit.rows import FindingRow, ModelRow
from convlint.linting.audit.weights import Weight

_SCHEMA = """
CREATE TEMP TABLE ranked (model TEXT, gpu TEXT, chip TEXT, architecture TEXT, structure TEXT, grade TEXT, hours REAL,
  lost REAL);
CREATE TEMP TABLE advised (code TEXT, name TEXT, change TEXT, safety TEXT, model TEXT, gpu TEXT, lost REAL, alone REAL,
  PRIMARY KEY (code, change, safety, model, gpu)) WITHOUT ROWID;
"""
_OWN_CASE = re.compile(r"(?:; | \(|: ).*")  # from here on, a fix speaks of its own layers


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


class Change(Struct, frozen=True, kw_only=True):
    """A change, in how many models it is advised, what it saves beside all other advice, and what alone."""

    code: str
    name: str
    describe: str
    safety: str
    models: int
    lost: float
    alone: float
    of_all: float | None


class Ranking(Struct, frozen=True, kw_only=True):
    """The answer of an audit. `weighed`: hours are GPU hours, and not one for each model."""

    weighed: bool
    shared: bool  # some weights say how much of their hours convolutions take
    models: int  # on all their GPUs
    counted: int  # those with hours and a time
    hours: float
    lost: float
    worst: tuple[Worst, ...]
    changes: tuple[Change, ...]
    rules: tuple[Lost, ...]
    architectures: tuple[Lost, ...]
    gpus: tuple[Lost, ...]


class Ledger:
    """Adds up what models lose, and ranks it."""

    def __init__(self, base: sqlite3.Connection, *, weighed: bool) -> None:
        """`base` holds the temporary tables."""
        self._base, self._weighed, self._shared = base, weighed, False
        for statement in _SCHEMA.split(";\n"):
            base.execute(statement)

    def add(self, row: ModelRow, findings: list[FindingRow], weight: Weight | None) -> None:
        """A model on one GPU, what was found in it there, and its hours."""
        if weight is None and not self._weighed:
            weight = Weight(hours=1.0)
        hours = None if weight is None else weight.hours
        self._shared = self._shared or (weight is not None and weight.share != 1.0)
        lost = lost_hours(row.lost_us, row, weight)
        self._base.execute(
            "INSERT INTO temp.ranked VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (row.model, row.gpu, load_gpu(row.gpu).id, row.architecture, row.structure, row.grade, hours, lost),
        )
        for finding in findings:
            saved = lost_hours(finding.lost_us, row, weight)
            if finding.gpu != row.gpu or not finding.advised or saved is None:
                continue
            alone = lost_hours(finding.lost_alone_us, row, weight) or 0.0
            change = _OWN_CASE.sub("", finding.fix or "", count=1)
            self._base.execute(
                "INSERT INTO temp.advised VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                "lost = lost + excluded.lost, alone = alone + excluded.alone",
                (finding.code, finding.name, change, finding.fix_safety or "", row.model, row.gpu, saved, alone),
            )

    def ranking(self, most: int) -> Ranking:
        """The first `most` of each kind."""
        models, counted, hours, lost = self._one(
            "SELECT COUNT(*), COUNT(lost), TOTAL(CASE WHEN lost IS NULL THEN 0 ELSE hours END), TOTAL(lost) "
            "FROM temp.ranked"
        )
        return Ranking(
            weighed=self._weighed, shared=self._shared, models=models, counted=counted, hours=hours, lost=lost,
            worst=self._worst(most), changes=self._changes(most, lost),
            rules=self._groups(
                "SELECT code || ' ' || name, COUNT(DISTINCT model), NULL, TOTAL(lost) AS lost FROM temp.advised "
                "GROUP BY code, name ORDER BY lost DESC, code LIMIT ?", most, lost,
            ),
            architectures=self._groups(
                "SELECT COALESCE(architecture, MIN(model)) AS what, COUNT(DISTINCT model), TOTAL(hours), "
                "TOTAL(lost) AS lost FROM temp.ranked WHERE lost IS NOT NULL "
                "GROUP BY COALESCE(architecture, structure) ORDER BY lost DESC, what LIMIT ?", most, lost,
            ),
            gpus=self._groups(
                "SELECT MIN(gpu) AS what, COUNT(DISTINCT model), TOTAL(hours), TOTAL(lost) AS lost FROM temp.ranked "
                "WHERE lost IS NOT NULL GROUP BY chip ORDER BY lost DESC, what LIMIT ?", most, lost,
            ),
        )  # fmt: skip

    def _worst(self, most: int) -> tuple[Worst, ...]:
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
                model=model,
                gpu=gpu,
                grade=grade,
                hours=hours,
                lost=lost,
                share=_share(lost, hours),
                code=code,
                name=name,
            )
            for model, gpu, grade, hours, lost, code, name in self._base.execute(sought, (most,))
        )

    def _changes(self, most: int, everything: float) -> tuple[Change, ...]:
        sought = (
            "SELECT code, name, change, safety, COUNT(DISTINCT model), TOTAL(lost) AS lost, TOTAL(alone) "
            "FROM temp.advised GROUP BY code, name, change, safety HAVING TOTAL(lost) > 0 "
            "ORDER BY lost DESC, code, change LIMIT ?"
        )
        return tuple(
            Change(
                code=code, name=name, describe=change, safety=safety, models=models, lost=lost, alone=alone,
                of_all=_share(lost, everything),
            )
            for code, name, change, safety, models, lost, alone in self._base.execute(sought, (most,))
        )  # fmt: skip

    def _groups(self, sought: str, most: int, everything: float) -> tuple[Lost, ...]:
        return tuple(
            Lost(
                what=what, models=models, hours=hours or 0.0, lost=lost, share=_share(lost, hours or 0.0),
                of_all=_share(lost, everything),
            )
            for what, models, hours, lost in self._base.execute(sought, (most,))
        )  # fmt: skip

    def _one(self, sought: str) -> Any:
        return self._base.execute(sought).fetchone()


def lost_hours(lost_us: float | None, row: ModelRow, weight: Weight | None) -> float | None:
    """The hours of a model in which its convolutions do what `lost_us` of each step does; None where unknown."""
    if weight is None or lost_us is None or not row.time_us:
        return None
    return weight.hours * weight.share * lost_us / row.time_us


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None
