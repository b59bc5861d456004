"""What models lose, written down row by row in tables of SQLite that need not fit into memory."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Sequence

from convlint.gpus.gpu import load_gpu
from convlint.linting.audit.rows import FindingRow, LayerRow, ModelRow
from convlint.linting.audit.weights import Weight

_SCHEMA = """
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
        for statement in _SCHEMA.split(";\n"):
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
            self._rest(layer, row, weight)

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

    def _rest(self, layer: LayerRow, row: ModelRow, weight: Weight | None) -> None:
        lost = lost_hours(lost_of_layer(layer), row, weight)
        if lost and layer.basis:
            self._base.execute(
                "INSERT INTO temp.bases VALUES (?, ?) ON CONFLICT DO UPDATE SET lost = lost + excluded.lost",
                (layer.basis, lost),
            )


def _setting(fix_set: str | None) -> str:
    """What a fix sets, where it is the same in every model, such as a layout, whatever frameworks call it; else ""."""
    found = json.loads(fix_set or "{}")
    if not isinstance(found, dict) or any(type(value) in (int, float) for value in found.values()):
        return ""
    return fix_set if found and fix_set else ""


def lost_of_layer(layer: LayerRow) -> float | None:
    """What advice would save in it, in us."""
    return None if layer.time_us is None or layer.time_after_us is None else layer.time_us - layer.time_after_us


def lost_hours(lost_us: float | None, row: ModelRow, weight: Weight | None) -> float | None:
    """The hours of a model in which its convolutions do what `lost_us` of each step does; None where unknown."""
    if weight is None or lost_us is None or not row.time_us:
        return None
    return weight.hours * weight.share * lost_us / row.time_us
